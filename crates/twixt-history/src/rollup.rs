//! Rows of epochs, summed up to minutes and hours: from counts, sums and histograms, never from
//! means and percentiles.
//!
//! An epoch counts by the packets that crossed, which may be more than those that were measured:
//! as when the engine adds up a minute.

mod folding;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use twixt_model::{DelayEstimate, Histogram, Span, Timestamp, needed_for};

use crate::histogram;
use crate::point_sums::PointTotal;
use crate::row::{BUCKETS_MAX, DelayPart, DelaySteps, QUANTILE_SHARES, Quantile, Row, SeriesKey};
use crate::step::Step;

/// Rows of epochs summed up to minutes or hours. In order of series, scope and time.
#[must_use]
pub fn rolled_up<'a>(rows: impl IntoIterator<Item = &'a Row>, step: Step) -> Vec<Row> {
    let mut sums = RollUps::new(step);
    rows.into_iter().for_each(|row| sums.add(row));
    sums.rows().collect()
}

/// Rows of each series and scope summed up to one, whatever their time.
#[must_use]
pub fn totals<'a>(rows: impl IntoIterator<Item = &'a Row>) -> Vec<Row> {
    let mut sums = SeriesTotals::default();
    rows.into_iter().for_each(|row| sums.add(row));
    sums.rows().collect()
}

/// Totals of all series and scopes, as rows come.
#[derive(Clone, Debug, Default)]
pub struct SeriesTotals {
    sums: BTreeMap<SumKey, RollUp>,
}

/// What rows must have in common to be summed up.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct SumKey {
    series: SeriesKey,
    kind: String,
    part: String,
    scope_kind: String,
    scope: String,
    /// 0 where all times are one.
    start_ns: i64,
}

impl SumKey {
    fn of(row: &Row, start_ns: i64) -> Self {
        Self {
            series: row.series.clone(),
            kind: row.kind.clone(),
            part: row.part.clone(),
            scope_kind: row.scope_kind.clone(),
            scope: row.scope.clone(),
            start_ns,
        }
    }

    /// The first of a series.
    fn first_of(series: &SeriesKey) -> Self {
        Self { series: series.clone(), start_ns: i64::MIN, ..Self::default() }
    }
}

impl SeriesTotals {
    /// Adds a row.
    pub fn add(&mut self, row: &Row) {
        let sum = self.sums.entry(SumKey::of(row, 0));
        let sum = sum.or_insert_with(|| RollUp::like(row, row.step));
        sum.row.start_ns = sum.row.start_ns.min(row.start_ns);
        sum.row.end_ns = sum.row.end_ns.max(row.end_ns);
        sum.add(row);
    }

    /// What they come to, in order of series and scope.
    pub fn rows(&self) -> impl Iterator<Item = Row> {
        self.sums.values().map(RollUp::row)
    }
}

/// Roll-ups of all series and scopes, as rows come.
#[derive(Clone, Debug)]
pub struct RollUps {
    step: Step,
    sums: BTreeMap<SumKey, RollUp>,
    memory_bytes: usize,
    /// How many scopes of one point there are, by series and beginning.
    scopes: BTreeMap<(SeriesKey, i64), usize>, // each at most SCOPES_MAX
    folded: u64,
}

/// Scopes of a series at one point that a minute or an hour has; beyond that, the smaller half of them
/// becomes `other`. Between two points, scopes are those of the epochs.
pub const SCOPES_MAX: usize = 1024;

impl RollUps {
    /// None yet.
    #[must_use]
    pub const fn new(step: Step) -> Self {
        Self { step, sums: BTreeMap::new(), memory_bytes: 0, scopes: BTreeMap::new(), folded: 0 }
    }

    /// Adds a row of an epoch.
    pub fn add(&mut self, row: &Row) {
        for piece in pieces(row, self.step.length_ns()) {
            let start_ns = span_of(&piece, self.step).start.as_nanos();
            let mut is_new = false;
            let sum = match self.sums.entry(SumKey::of(&piece, start_ns)) {
                Entry::Vacant(entry) => {
                    is_new = true;
                    entry.insert(RollUp::like(&piece, self.step))
                }
                Entry::Occupied(entry) => {
                    self.memory_bytes -= entry.get().memory_bytes();
                    entry.into_mut()
                }
            };
            sum.add(&piece);
            self.memory_bytes += sum.memory_bytes();
            if is_new && piece.point.is_some() && folding::may_fold(&piece.scope_kind) {
                self.note_scope(&piece.series, start_ns);
            }
        }
    }

    /// What they take in memory.
    #[must_use]
    pub const fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    /// What they come to, in order of series, scope and time.
    pub fn rows(&self) -> impl Iterator<Item = Row> {
        self.sums.values().map(RollUp::row)
    }

    /// What the one of a series that starts at a moment comes to, in each scope.
    pub(crate) fn rows_at<'a>(
        &'a self,
        series: &'a SeriesKey,
        start: Timestamp,
    ) -> impl Iterator<Item = Row> + 'a {
        let of_series = self.sums.range(SumKey::first_of(series)..);
        let of_series = of_series.take_while(move |(key, _)| key.series == *series);
        let at_start = of_series.filter(move |(key, _)| key.start_ns == start.as_nanos());
        at_start.map(|(_, sum)| sum.row())
    }

    /// What those of some series come to.
    pub fn rows_of<'a>(
        &'a self,
        is_wanted: impl Fn(&SeriesKey) -> bool + 'a,
    ) -> impl Iterator<Item = Row> + 'a {
        let wanted = self.sums.iter().filter(move |(key, _)| is_wanted(&key.series));
        wanted.map(|(_, sum)| sum.row())
    }
}

/// A row as rows that end at multiples of a length. Only gaps are cut: an epoch of which
/// something is known belongs to where it starts.
pub(crate) fn pieces(row: &Row, length_ns: Option<i64>) -> impl Iterator<Item = Row> {
    let length_ns = length_ns.filter(|_| row.is_gap()).unwrap_or(i64::MAX);
    let epoch_ns = row.series.epoch_ns.max(1);
    let (first, last) = (row.start_ns.div_euclid(length_ns), row.end_ns.div_euclid(length_ns));
    let row = row.clone();
    (first..=last).filter_map(move |number| {
        if first == last {
            return Some(row.clone());
        }
        let start_ns = number.saturating_mul(length_ns).max(row.start_ns);
        let end_ns = number.saturating_mul(length_ns).saturating_add(length_ns - 1).min(row.end_ns);
        // Epochs count where they start.
        let first_epoch =
            start_ns.div_euclid(epoch_ns) + i64::from(start_ns.rem_euclid(epoch_ns) != 0);
        let gaps = end_ns.div_euclid(epoch_ns) - first_epoch + 1;
        (gaps > 0).then(|| Row {
            start_ns,
            end_ns,
            epoch: row.epoch.map(|_| first_epoch),
            gaps: gaps as u64,
            ..row.clone()
        })
    })
}

/// The minute or hour that a row lies in. Epochs that are longer stay whole.
fn span_of(row: &Row, step: Step) -> Span {
    let is_longer = step.length_ns().is_none_or(|length_ns| row.series.epoch_ns > length_ns);
    step.span_of(row.start_ns).filter(|_| !is_longer).unwrap_or(row.span())
}

/// The sum of rows of one series, scope and interval of time.
#[derive(Clone, Debug)]
struct RollUp {
    row: Row,
    /// Rows added that are no gaps.
    known: u64,
    /// Epochs of which something is not known.
    unclear: u64,
    delay: Option<DelayEstimate>,
    /// Rows added with a delay.
    delays: u64,
    /// Of the only one of them.
    alone: [Quantile; 4],
    histogram: Sum<Box<Histogram>>,
    steps: Sum<DelaySteps>,
    smallest_ns: Sum<i64>,
    largest_ns: Sum<i64>,
    point: Option<PointTotal>,
    /// Whether smaller scopes gave way to it.
    has_folded: bool,
}

/// What is known only while every part of it is.
#[derive(Clone, Debug)]
enum Sum<T> {
    Nothing,
    Known(T),
    Unknown,
}

impl<T> Sum<T> {
    fn add(&mut self, value: Option<T>, combine: impl FnOnce(&mut T, T)) {
        match (&mut *self, value) {
            (Self::Nothing, Some(value)) => *self = Self::Known(value),
            (Self::Known(sum), Some(value)) => combine(sum, value),
            (_, None) => *self = Self::Unknown,
            (Self::Unknown, _) => {}
        }
    }

    const fn known(&self) -> Option<&T> {
        match self {
            Self::Known(sum) => Some(sum),
            _ => None,
        }
    }
}

impl RollUp {
    /// Of nothing yet, where a row lies.
    fn like(row: &Row, step: Step) -> Self {
        let span = span_of(row, step);
        let like = Row {
            series: row.series.clone(),
            step,
            scope_kind: row.scope_kind.clone(),
            scope: row.scope.clone(),
            kind: row.kind.clone(),
            part: row.part.clone(),
            start_ns: span.start.as_nanos(),
            end_ns: span.end.as_nanos(),
            epoch: row.epoch,
            ..Row::default()
        };
        Self {
            row: like,
            known: 0,
            unclear: 0,
            delay: None,
            delays: 0,
            alone: Default::default(),
            histogram: Sum::Nothing,
            steps: Sum::Nothing,
            smallest_ns: Sum::Nothing,
            largest_ns: Sum::Nothing,
            point: None,
            has_folded: false,
        }
    }

    /// With its key, which has the same texts.
    fn memory_bytes(&self) -> usize {
        let histogram = self.histogram.known().map_or(0, |histogram| histogram.memory_bytes());
        let point = self.point.as_ref().map_or(0, PointTotal::heap_bytes);
        size_of::<Self>() + 2 * self.row.memory_bytes() + histogram + point
    }

    fn add(&mut self, row: &Row) {
        let sum = &mut self.row;
        sum.epoch = sum.epoch.into_iter().chain(row.epoch).min();
        sum.epochs = sum.epochs.saturating_add(row.epochs);
        sum.gaps = sum.gaps.saturating_add(row.gaps);
        sum.late_epochs = sum.late_epochs.saturating_add(row.late_epochs);
        sum.clock_offset_ns = row.clock_offset_ns.or(sum.clock_offset_ns);
        sum.realigned_epochs = row.realigned_epochs.or(sum.realigned_epochs);
        if let Some(reason) = &row.reason {
            self.unclear = self.unclear.saturating_add(row.epochs).saturating_add(row.gaps);
            sum.reason.get_or_insert_with(|| reason.clone());
        }
        if !row.is_gap() {
            self.add_counts(row);
            self.add_delay(row);
            self.add_point(row);
        }
    }

    fn add_point(&mut self, row: &Row) {
        match (&mut self.point, &row.point) {
            (Some(total), Some(sums)) => total.add(sums),
            (total @ None, Some(sums)) => *total = Some(PointTotal::of(sums)),
            (_, None) => {}
        }
    }

    fn add_counts(&mut self, row: &Row) {
        let (sum, is_first) = (&mut self.row, self.known == 0);
        self.known += 1;
        let both = |sum: Option<u64>, value: Option<u64>| match is_first {
            true => value,
            false => sum.zip(value).map(|(sum, value)| sum.saturating_add(value)),
        };
        sum.packets = both(sum.packets, row.packets);
        sum.used = both(sum.used, row.used);
        sum.lost = both(sum.lost, row.lost);
        let range = row.loss_range();
        sum.lost_min = both(sum.lost_min, range.map(|range| range.min));
        sum.lost_max = both(sum.lost_max, range.map(|range| range.max));
        let range = row.stray_range();
        sum.strays = both(sum.strays, row.strays);
        sum.strays_min = both(sum.strays_min, range.map(|range| range.min));
        sum.strays_max = both(sum.strays_max, range.map(|range| range.max));
        let ends = [
            (&mut sum.missed_upstream, row.missed_upstream),
            (&mut sum.missed_downstream, row.missed_downstream),
        ];
        for (sum, missed) in ends {
            sum.dropped = both(sum.dropped, missed.dropped);
            sum.late = both(sum.late, missed.late);
        }
        sum.bytes = both(sum.bytes, row.bytes);
        sum.moved = both(sum.moved, row.moved);
        sum.clock_error_ns = match is_first {
            true => row.clock_error_ns,
            false => sum.clock_error_ns.zip(row.clock_error_ns).map(|(one, other)| one.max(other)),
        };
    }

    fn add_delay(&mut self, row: &Row) {
        let Some(part) = &row.delay else { return };
        let crossed = crossed(row, part);
        self.delay = Some(self.delay.map_or(crossed, |delay| delay.merged(&crossed)));
        self.delays += 1;
        self.alone = part.quantiles;
        self.smallest_ns.add(part.min_ns, |sum, value| *sum = value.min(*sum));
        self.largest_ns.add(part.max_ns, |sum, value| *sum = value.max(*sum));
        self.steps.add(part.steps, |sum, steps| {
            sum.count = sum.count.saturating_add(steps.count);
            sum.sum_ns += steps.sum_ns;
        });
        if matches!(self.histogram, Sum::Unknown) {
            return;
        }
        let decoded = part.histogram();
        if matches!(self.histogram, Sum::Nothing) && decoded.is_some() {
            self.histogram = Sum::Known(Box::new(Histogram::new(BUCKETS_MAX)));
        }
        self.histogram.add(decoded.map(Box::new), |sum, value| sum.merge(&value));
    }

    /// Their sum. Percentiles are those of the histogram, where every part has one;
    /// where there is but one part, its own.
    fn row(&self) -> Row {
        let mut row = self.row.clone();
        row.point = self.point.as_ref().map(PointTotal::sums);
        let epochs = row.epochs.saturating_add(row.gaps);
        if let Some(reason) = row.reason.take() {
            row.reason = Some(match epochs {
                0 | 1 => reason,
                _ => format!("{} of {epochs} epochs: {reason}", self.unclear),
            });
        }
        if self.has_folded {
            row.reason.get_or_insert_with(|| folding::REASON.to_owned());
        }
        let Some(delay) = self.delay else { return row };
        let mut part = DelayPart {
            min_ns: self.smallest_ns.known().copied(),
            max_ns: self.largest_ns.known().copied(),
            steps: self.steps.known().copied(),
            ..DelayPart::of(&delay)
        };
        if let Some(known) = self.histogram.known() {
            part.quantiles = quantiles(known);
            part.histogram = Some(histogram::encode(known));
        }
        if self.delays == 1 {
            part.quantiles = self.alone;
        }
        row.delay = Some(part);
        row
    }
}

/// The delay as that of all packets that crossed: same mean and deviation.
fn crossed(row: &Row, part: &DelayPart) -> DelayEstimate {
    let delay = part.estimate();
    let Some(packets) = row.packets else { return delay };
    let count = packets.saturating_sub(row.lost.unwrap_or(0)).max(1);
    if delay.count == count {
        return delay;
    }
    let sum_ns = delay.sum_ns.saturating_mul(i128::from(count)) / i128::from(delay.count);
    DelayEstimate { count, sum_ns, ..delay }
}

/// Percentiles of a histogram; not known where so few sampled packets can carry no interval.
fn quantiles(histogram: &Histogram) -> [Quantile; 4] {
    let Some(times) = histogram.times() else { return Default::default() };
    let is_everything = histogram.weight() <= histogram.count() as f64;
    // The histogram knows ranks to within its sampling, and values to within a bucket.
    let bucket = 2_f64.powf(2_f64.powi(-i32::from(histogram.scale())));
    let low_ns = |low_ns: i64| match low_ns {
        ..=0 => times.min_ns,
        _ => ((low_ns as f64 / bucket).floor() as i64).max(times.min_ns),
    };
    let high_ns = |high_ns: i64| match high_ns {
        ..=0 => times.max_ns.min(0),
        _ => ((high_ns as f64 * bucket).ceil() as i64).min(times.max_ns),
    };
    QUANTILE_SHARES.map(|share| {
        if !is_everything && histogram.count() < needed_for(share) {
            return Quantile::default();
        }
        let mut known = times.percentiles.iter();
        match known.find(|percentile| (percentile.share - share).abs() < 1e-9) {
            Some(found) => Quantile {
                value_ns: Some(found.time_ns),
                low_ns: Some(low_ns(found.low_ns)),
                high_ns: Some(high_ns(found.high_ns)),
            },
            None => histogram.percentile(share).map_or_else(Quantile::default, Quantile::of),
        }
    })
}

#[cfg(test)]
mod tests;

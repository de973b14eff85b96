//! A row: what is known of one segment, scope and interval of time.
//!
//! Rows are what is written, sealed, rolled up and asked for. A row keeps the partial results that
//! can still be added up (`DelayPart`), beside what they come to. It does not know how it is
//! stored.

use twixt_model::{Delay, DelayEstimate, Estimate, LossRange, Scope, Segment, Span, Timestamp};

use crate::histogram;
use crate::point_sums::PointSums;
use crate::step::Step;

/// What is compared with what: rows of one series follow each other in time. Of one point, both points
/// are that one.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SeriesKey {
    /// Passed first.
    pub upstream: String,
    /// Passed second.
    pub downstream: String,
    /// Name of the class of traffic; empty without classes.
    pub class: String,
    /// Name of the algorithm.
    pub algorithm: String,
    /// Within which point names are unique.
    pub domain: String,
    /// Length of an epoch.
    pub epoch_ns: i64,
}

impl SeriesKey {
    /// Whether it is of a segment.
    #[must_use]
    pub fn is_of(&self, segment: &Segment) -> bool {
        self.upstream == segment.upstream.0 && self.downstream == segment.downstream.0
    }
}

/// What is known of an interval of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// Segment, class and algorithm.
    pub series: SeriesKey,
    /// How long it is.
    pub step: Step,
    /// Which kind of scope: `all`, `class`, `prefix-pair`, `prefix`, `flow`, `port`, `other`.
    pub scope_kind: String,
    /// What it is about, as text.
    pub scope: String,
    /// The first moment, in upstream's time.
    pub start_ns: i64,
    /// The last moment.
    pub end_ns: i64,
    /// Number of the epoch, or of the first of them.
    pub epoch: Option<i64>,
    /// Epochs that it rests on.
    pub epochs: u64,
    /// Epochs of which nothing is known.
    pub gaps: u64,
    /// Packets that upstream counted.
    pub packets: Option<u64>,
    /// Packets that the estimate rests on.
    pub used: Option<u64>,
    /// Packets that the network lost, where that is known.
    pub lost: Option<u64>,
    /// Their bytes, where they are known.
    pub bytes: Option<u64>,
    /// What is known of delay.
    pub delay: Option<DelayPart>,
    /// What downstream's clock is ahead by, where that is known.
    pub clock_offset_ns: Option<i64>,
    /// Bound on the difference of the clocks, where that is known.
    pub clock_error_ns: Option<i64>,
    /// Downstream's epochs have numbers larger by this.
    pub realigned_epochs: Option<i64>,
    /// Packets in flight at boundaries that were moved to the epoch they belong to.
    pub moved: Option<u64>,
    /// Why something is not known.
    pub reason: Option<String>,
    /// Epochs among them that were estimated late: a gap may be stored for them as well.
    pub late_epochs: u64,
    /// Packets that the network lost at least, where that is known.
    pub lost_min: Option<u64>,
    /// Packets that the network lost at most, where that is known.
    pub lost_max: Option<u64>,
    /// Packets that only downstream observed, where that is known.
    pub strays: Option<u64>,
    /// At least so many.
    pub strays_min: Option<u64>,
    /// At most so many.
    pub strays_max: Option<u64>,
    /// What the upstream point did not observe.
    pub missed_upstream: PointMisses,
    /// What the downstream point did not observe.
    pub missed_downstream: PointMisses,
    /// Of one point: the kind of round trips; empty for what was observed in all.
    pub kind: String,
    /// Of one point: which part of the kind; empty for the whole.
    pub part: String,
    /// Of one point: the run of the agent, of which an epoch may have several.
    pub run: Option<i64>,
    /// What is known of one point alone.
    pub point: Option<PointSums>,
}

/// Packets that a point did not observe; not known of rows of older releases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PointMisses {
    /// Dropped by the kernel, of all classes of the interface; noticed in this time.
    pub dropped: Option<u64>,
    /// Observed after their epoch was sealed.
    pub late: Option<u64>,
}

/// What is known of delay, in a form that can still be added up.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DelayPart {
    /// Packets that `sum_ns` adds up. Never 0.
    pub count: u64,
    /// Sum of their delays.
    pub sum_ns: i128,
    /// Sum of the squares of what each differs from their mean by, where that is known. About the
    /// mean, since squares of delays that contain a clock offset of hours would leave no digits
    /// for the rest.
    pub squares_ns2: Option<f64>,
    /// Half the width of the 95 % interval of the mean.
    pub half_width_ns: Option<f64>,
    /// Smallest, where it is known.
    pub min_ns: Option<i64>,
    /// Median, 95th, 99th and 99.9th percentile, where they are known.
    pub quantiles: [Quantile; 4],
    /// Largest, where it is known.
    pub max_ns: Option<i64>,
    /// All of them, by buckets that can be added up, as [`histogram`](crate::histogram) writes it.
    pub histogram: Option<Vec<u8>>,
    /// What delays of packets that follow each other differ by, where a sample tells.
    pub steps: Option<DelaySteps>,
}

/// Differences of the delays of packets that follow each other in a sample: clocks do not matter.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DelaySteps {
    /// How many. 0 where a sample has fewer than two packets.
    pub count: u64,
    /// Sum of their absolute values.
    pub sum_ns: f64,
}

/// A percentile, and the ends of its 95 % interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quantile {
    /// Itself.
    pub value_ns: Option<i64>,
    /// Lower end.
    pub low_ns: Option<i64>,
    /// Upper end.
    pub high_ns: Option<i64>,
}

impl Quantile {
    /// Known without an interval.
    #[must_use]
    pub const fn of(value_ns: i64) -> Self {
        Self { value_ns: Some(value_ns), low_ns: None, high_ns: None }
    }
}

/// Most buckets of a histogram: 2.2 % wide over 20 doublings. What does not fit is kept at half the
/// resolution.
pub(crate) const BUCKETS_MAX: usize = 640;

/// The shares that [`DelayPart::quantiles`] are of.
pub const QUANTILE_SHARES: [f64; 4] = [0.5, 0.95, 0.99, 0.999];

impl Row {
    /// A row of an epoch, from what an algorithm concluded.
    #[must_use]
    pub fn of_epoch(series: SeriesKey, epoch: i64, span: Span, estimate: &Estimate) -> Self {
        let evidence = &estimate.evidence;
        Self {
            series,
            step: Step::Epoch,
            scope_kind: scope_kind(&estimate.scope).to_owned(),
            scope: estimate.scope.to_string(),
            start_ns: span.start.as_nanos(),
            end_ns: span.end.as_nanos(),
            epoch: Some(epoch),
            epochs: 1,
            packets: Some(evidence.packets),
            used: Some(evidence.used),
            lost: evidence.lost,
            lost_min: evidence.loss_range().map(|range| range.min),
            lost_max: evidence.loss_range().map(|range| range.max),
            strays: evidence.strays,
            strays_min: evidence.stray_range().map(|range| range.min),
            strays_max: evidence.stray_range().map(|range| range.max),
            bytes: evidence.bytes,
            delay: DelayPart::of_estimate(estimate),
            clock_error_ns: evidence.clock_error.map(Delay::as_nanos),
            reason: estimate.reasons(),
            ..Self::default()
        }
    }

    /// An epoch of a series that is cut at multiples of its length, before anything is known of it.
    #[must_use]
    pub fn untold(series: SeriesKey, epoch: i64) -> Self {
        let length_ns = series.epoch_ns;
        let start_ns = epoch.saturating_mul(length_ns);
        Self {
            series,
            step: Step::Epoch,
            scope_kind: scope_kind(&Scope::All).to_owned(),
            scope: Scope::All.to_string(),
            start_ns,
            end_ns: start_ns.saturating_add(length_ns - 1),
            epoch: Some(epoch),
            epochs: 1,
            ..Self::default()
        }
    }

    /// A row for epochs of which nothing is known.
    #[must_use]
    pub fn of_gap(series: SeriesKey, first: i64, span: Span, epochs: u64, reason: String) -> Self {
        Self {
            series,
            step: Step::Epoch,
            scope_kind: scope_kind(&Scope::All).to_owned(),
            scope: Scope::All.to_string(),
            start_ns: span.start.as_nanos(),
            end_ns: span.end.as_nanos(),
            epoch: Some(first),
            gaps: epochs,
            reason: Some(reason),
            ..Self::default()
        }
    }

    /// Whether nothing is known of all of it.
    #[must_use]
    pub const fn is_gap(&self) -> bool {
        self.epochs == 0
    }

    /// A row of an epoch of one point: what was observed there in all. It stands beside those of kinds
    /// and scopes, so that it is known where there was nothing to measure.
    #[must_use]
    pub fn observed(series: SeriesKey, epoch: i64, span: Span) -> Self {
        Self {
            start_ns: span.start.as_nanos(),
            end_ns: span.end.as_nanos(),
            ..Self::untold(series, epoch)
        }
    }

    /// Whether it is what one point observed in all, or a gap.
    #[must_use]
    pub fn is_of_all(&self) -> bool {
        self.is_gap() || (self.kind.is_empty() && self.scope_kind == scope_kind(&Scope::All))
    }

    /// Epochs that were estimated late are no gaps any more.
    pub(crate) fn close_late_gaps(&mut self) {
        if self.late_epochs == 0 {
            return;
        }
        self.gaps = self.gaps.saturating_sub(self.late_epochs);
        // What is left is the reason of a gap that was closed.
        if self.gaps == 0 && self.lost.is_some() && self.delay.is_some() {
            self.reason = None;
        }
    }

    /// Bounds on how many packets the network lost. Rows of older releases have none beside the
    /// number itself.
    #[must_use]
    pub fn loss_range(&self) -> Option<LossRange> {
        let bounds = self.lost_min.zip(self.lost_max).map(|(min, max)| LossRange { min, max });
        self.lost.map(LossRange::exactly).or(bounds)
    }

    /// Bounds on how many packets only downstream observed. Rows of older releases have none.
    #[must_use]
    pub fn stray_range(&self) -> Option<LossRange> {
        let bounds = self.strays_min.zip(self.strays_max).map(|(min, max)| LossRange { min, max });
        self.strays.map(LossRange::exactly).or(bounds)
    }

    /// The interval of time.
    #[must_use]
    pub const fn span(&self) -> Span {
        let (start, end) = (self.start_ns, self.end_ns);
        Span { start: Timestamp::from_nanos(start), end: Timestamp::from_nanos(end) }
    }

    /// In files, rows of one series and scope lie together, in order of time.
    pub(crate) fn file_order(&self) -> impl Ord + '_ {
        let Self { step, series, kind, part, scope_kind, scope, start_ns, run, .. } = self;
        (*step, series, kind, part, scope_kind, scope, *start_ns, *run)
    }

    /// What it takes in memory, near enough to be bounded by.
    pub(crate) fn memory_bytes(&self) -> usize {
        let series = &self.series;
        let texts = [
            &series.upstream,
            &series.downstream,
            &series.class,
            &series.algorithm,
            &series.domain,
            &self.scope_kind,
            &self.scope,
            &self.kind,
            &self.part,
        ];
        let histogram = self.delay.as_ref().and_then(|delay| delay.histogram.as_ref());
        size_of::<Self>()
            + texts.iter().map(|text| text.capacity()).sum::<usize>()
            + self.reason.as_ref().map_or(0, String::capacity)
            + histogram.map_or(0, Vec::capacity)
            + self.point.as_ref().map_or(0, PointSums::heap_bytes)
    }

    /// In answers, rows come in order of time.
    #[must_use]
    pub fn answer_order(&self) -> impl Ord + '_ {
        let Self { series, kind, part, scope_kind, scope, start_ns, run, .. } = self;
        (*start_ns, series, kind, part, scope_kind, scope, *run)
    }
}

impl DelayPart {
    /// Of what an algorithm concluded. Percentiles and the histogram come from its order
    /// statistics or its sample, where it has one.
    #[must_use]
    pub fn of_estimate(estimate: &Estimate) -> Option<Self> {
        let quantile = |share: f64| {
            estimate.percentile(share).map_or_else(Quantile::default, |found| Quantile {
                value_ns: Some(found.time_ns),
                low_ns: Some(found.low_ns),
                high_ns: Some(found.high_ns),
            })
        };
        let sample = estimate.sample.as_deref().filter(|sample| !sample.packets().is_empty());
        Some(Self {
            quantiles: QUANTILE_SHARES.map(quantile),
            histogram: sample.map(|sample| histogram::encode(&sample.histogram(BUCKETS_MAX))),
            steps: sample.map(|sample| {
                let (sum_ns, count) = sample.steps();
                DelaySteps { count, sum_ns }
            }),
            ..Self::of(estimate.delay.as_ref()?)
        })
    }

    /// Of sums, counts and extremes alone.
    #[must_use]
    pub fn of(delay: &DelayEstimate) -> Self {
        Self {
            count: delay.count,
            sum_ns: delay.sum_ns,
            squares_ns2: delay.deviation_ns.map(|deviation| delay.count as f64 * deviation.powi(2)),
            half_width_ns: delay.half_width_ns,
            min_ns: delay.order.map(|order| order.min.as_nanos()),
            quantiles: [Quantile::default(); 4],
            max_ns: delay.order.map(|order| order.max.as_nanos()),
            histogram: None,
            steps: None,
        }
    }

    /// Sums and counts alone.
    #[must_use]
    pub fn estimate(&self) -> DelayEstimate {
        DelayEstimate {
            count: self.count.max(1),
            sum_ns: self.sum_ns,
            deviation_ns: self.deviation_ns(),
            half_width_ns: self.half_width_ns,
            order: None,
            order_range: None,
        }
    }

    /// Mean delay, rounded to the nearest nanosecond.
    #[must_use]
    pub fn mean_ns(&self) -> i64 {
        self.estimate().mean().as_nanos()
    }

    /// Standard deviation of the delay of single packets.
    #[must_use]
    pub fn deviation_ns(&self) -> Option<f64> {
        self.squares_ns2.map(|squares| (squares / self.count.max(1) as f64).max(0.0).sqrt())
    }

    /// The 95 % confidence interval of the mean.
    #[must_use]
    pub fn interval(&self) -> Option<(i64, i64)> {
        let (low, high) = self.estimate().interval()?;
        Some((low.as_nanos(), high.as_nanos()))
    }

    /// Jitter: the mean of what delays of packets that follow each other differ by.
    #[must_use]
    pub fn jitter_ns(&self) -> Option<f64> {
        self.steps.filter(|steps| steps.count > 0).map(|steps| steps.sum_ns / steps.count as f64)
    }

    /// The histogram, if there is one that can be read.
    #[must_use]
    pub fn histogram(&self) -> Option<twixt_model::Histogram> {
        histogram::decode(self.histogram.as_deref()?).ok()
    }
}

/// Which kind of scope it is.
#[must_use]
pub const fn scope_kind(scope: &Scope) -> &'static str {
    match scope {
        Scope::All => "all",
        Scope::Class(_) => "class",
        Scope::PrefixPair { .. } => "prefix-pair",
        Scope::Flow(_) => "flow",
        Scope::Port { .. } => "port",
        Scope::Other => "other",
    }
}

#[cfg(test)]
mod tests {
    use twixt_model::{DelaySample, Evidence, SampleLevel, SampledDelay};

    use super::*;

    #[test]
    fn what_a_sample_tells_is_kept_in_a_form_that_adds_up() {
        let at = Timestamp::from_nanos;
        let packet = |number: i64| SampledDelay {
            delay: Delay::from_nanos(1_000_000 + number),
            time: at(number),
            flow: 0,
            reach: SampleLevel::MAX,
            level: SampleLevel::from_number(8).unwrap(),
        };
        let delay = DelayEstimate {
            count: 200,
            sum_ns: 200_019_900,
            deviation_ns: None,
            half_width_ns: None,
            order: None,
            order_range: None,
        };
        let span = Span { start: at(0), end: at(1000) };
        let estimate = Estimate {
            scope: Scope::All,
            span,
            evidence: Evidence::default(),
            delay: Some(delay),
            sample: Some(Box::new(DelaySample::new((0..100).map(packet).collect()))),
            crossings: None,
            reason: None,
        };
        let row = Row::of_epoch(SeriesKey::default(), 1, span, &estimate);
        let part = row.delay.unwrap();
        assert_eq!(part.quantiles[0].value_ns, Some(1_000_050));
        // Ranks 40 and 61 of 100.
        assert_eq!(
            (part.quantiles[0].low_ns, part.quantiles[0].high_ns),
            (Some(1_000_039), Some(1_000_060))
        );
        assert_eq!(part.quantiles[3], Quantile::default());
        assert!(row.reason.unwrap().contains("p99.9 needs 3688 sampled packets"));
        // Delays of packets in a row differ by 1 ns.
        assert_eq!(part.steps, Some(DelaySteps { count: 99, sum_ns: 99.0 }));
        assert_eq!(part.jitter_ns(), Some(1.0));
        // Each stands for two.
        assert_eq!(part.histogram().unwrap().weight(), 200.0);
    }
}

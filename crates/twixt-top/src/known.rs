//! What is known of a class of a segment, from the estimates of all algorithms that measured it.

use std::collections::BTreeMap;

use crate::columns::Column;

/// A class of traffic on a segment.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CellName {
    /// The point that packets pass first.
    pub upstream: String,
    /// The point that packets pass second.
    pub downstream: String,
    /// Class of traffic; empty without classes.
    pub class: String,
}

/// A delay with its interval, as far as they are known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TopDelay {
    /// The value.
    pub value_ns: Option<i64>,
    /// Lower end of its 95 % interval.
    pub low_ns: Option<i64>,
    /// Upper end.
    pub high_ns: Option<i64>,
}

/// What one algorithm concluded of a cell, or of a flow.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TopEstimate {
    /// The cell.
    pub cell: CellName,
    /// `all`, or a flow.
    pub scope: String,
    /// The algorithm.
    pub algorithm: String,
    /// Packets that delays rest on.
    pub used: Option<u64>,
    /// Packets upstream, of the time in which loss is known.
    pub packets: Option<u64>,
    /// Packets lost at least and at most, of the same time.
    pub lost: Option<(u64, u64)>,
    /// Mean delay.
    pub mean: TopDelay,
    /// Median.
    pub p50: TopDelay,
    /// 95th percentile.
    pub p95: TopDelay,
    /// 99th percentile.
    pub p99: TopDelay,
    /// Why something is unknown.
    pub reason: Option<String>,
}

/// A value as it is shown and sorted.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct KnownValue {
    pub(crate) value: Option<f64>,
    pub(crate) half_width: Option<f64>,
    /// Little evidence: shown, but dimmed.
    pub(crate) is_weak: bool,
}

/// Fewer packets are little evidence.
const USED_MIN: u64 = 100;
/// Half an interval of more than this share of the value is wide: as on the dashboard.
const WIDE: f64 = 0.25;

/// A line of the table: what all algorithms know together.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct KnownLine {
    pub(crate) cell: CellName,
    pub(crate) scope: String,
    pub(crate) mean: KnownValue,
    pub(crate) p50: KnownValue,
    pub(crate) p95: KnownValue,
    pub(crate) p99: KnownValue,
    pub(crate) loss: KnownValue,
    pub(crate) packets: Option<u64>,
    /// Algorithm of the mean, or of any estimate without one.
    pub(crate) algorithm: String,
    /// Why something is unknown.
    pub(crate) reason: Option<String>,
}

impl KnownLine {
    /// One line for each cell and scope.
    pub(crate) fn of_all(estimates: &[TopEstimate]) -> Vec<Self> {
        let mut groups: BTreeMap<(&CellName, &str), Vec<&TopEstimate>> = BTreeMap::new();
        for estimate in estimates {
            groups.entry((&estimate.cell, &estimate.scope)).or_default().push(estimate);
        }
        groups.into_values().map(|group| Self::of(&group)).collect()
    }

    fn of(group: &[&TopEstimate]) -> Self {
        let delay = |pick: fn(&TopEstimate) -> TopDelay| {
            let best = most_used(group, |of| pick(of).value_ns.is_some());
            best.map(|of| delay_of(pick(of), of.used)).unwrap_or_default()
        };
        let mean_of = most_used(group, |of| of.mean.value_ns.is_some());
        let loss_of = most_used(group, |of| of.packets.is_some_and(|n| n > 0) && of.lost.is_some());
        let loss = loss_of.map(loss).unwrap_or_default();
        let is_whole = mean_of.is_some() && loss.value.is_some();
        let reason = group.iter().find_map(|of| of.reason.clone());
        let nothing = || "no algorithm here measures it".to_owned();
        Self {
            cell: group[0].cell.clone(),
            scope: group[0].scope.clone(),
            mean: delay(|of| of.mean),
            p50: delay(|of| of.p50),
            p95: delay(|of| of.p95),
            p99: delay(|of| of.p99),
            packets: loss_of.and_then(|of| of.packets).or(group.iter().find_map(|of| of.packets)),
            algorithm: mean_of.or(loss_of).unwrap_or(group[0]).algorithm.clone(),
            reason: if is_whole { reason } else { Some(reason.unwrap_or_else(nothing)) },
            loss,
        }
    }

    /// The value of a column, for sorting; `None` is last.
    pub(crate) fn value(&self, column: Column) -> Option<f64> {
        match column {
            Column::Mean => self.mean.value,
            Column::P50 => self.p50.value,
            Column::P95 => self.p95.value,
            Column::P99 => self.p99.value,
            Column::Loss => self.loss.value,
            Column::Packets => self.packets.map(|packets| packets as f64),
            Column::Name | Column::Flow | Column::Class | Column::Course => None,
        }
    }
}

/// Of the estimates that know something, the one that rests on most packets.
fn most_used<'a>(
    group: &[&'a TopEstimate],
    knows: impl Fn(&TopEstimate) -> bool,
) -> Option<&'a TopEstimate> {
    let knowing = group.iter().copied().filter(|of| knows(of));
    knowing.reduce(|most, of| if of.used > most.used { of } else { most })
}

fn delay_of(measured: TopDelay, used: Option<u64>) -> KnownValue {
    let value = measured.value_ns.map(|ns| ns as f64);
    let ends = measured.low_ns.zip(measured.high_ns);
    // Ends are numbers from outside, and may be as far apart as numbers can be.
    let half_width = ends.map(|(low, high)| (high as f64 - low as f64) / 2.0);
    let is_wide = half_width.zip(value).is_none_or(|(half, value)| half > WIDE * value.abs());
    KnownValue { value, half_width, is_weak: is_wide || used.unwrap_or(0) < USED_MIN }
}

fn loss(of: &TopEstimate) -> KnownValue {
    let known = of.packets.zip(of.lost).map(|(packets, (min, max))| {
        let share = |lost: u64| lost as f64 / packets as f64;
        let (low, high) = (share(min), share(max));
        (f64::midpoint(low, high), (high - low) / 2.0)
    });
    KnownValue {
        value: known.map(|(share, _)| share),
        half_width: known.map(|(_, half)| half),
        is_weak: of.packets.unwrap_or(0) < USED_MIN || of.lost.is_some_and(|(min, max)| min != max),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(value_ns: i64, half: i64) -> TopDelay {
        let ends = [value_ns - half, value_ns + half].map(Some);
        TopDelay { value_ns: Some(value_ns), low_ns: ends[0], high_ns: ends[1] }
    }

    fn estimate(algorithm: &str, used: u64) -> TopEstimate {
        let algorithm = algorithm.to_owned();
        TopEstimate { algorithm, used: Some(used), ..TopEstimate::default() }
    }

    #[test]
    fn each_value_is_of_the_estimate_that_rests_on_most_packets() {
        let mean_only = TopEstimate { mean: measured(100, 1), ..estimate("lda", 5_000) };
        let both =
            TopEstimate { mean: measured(90, 1), p99: measured(300, 9), ..estimate("sample", 200) };
        let lines = KnownLine::of_all(&[both, mean_only]);
        assert_eq!(lines.len(), 1);
        assert_eq!((lines[0].mean.value, lines[0].p99.value), (Some(100.0), Some(300.0)));
        assert_eq!(lines[0].algorithm, "lda");
        assert_eq!(lines[0].p50.value, None);
    }

    #[test]
    fn little_evidence_is_weak() {
        let is_weak = |mean, used| {
            let line = TopEstimate { mean, ..estimate("lda", used) };
            KnownLine::of_all(&[line])[0].mean.is_weak
        };
        assert!(!is_weak(measured(100, 25), 100));
        assert!(is_weak(measured(100, 26), 100));
        assert!(is_weak(measured(100, 1), 99));
        assert!(is_weak(TopDelay { value_ns: Some(100), ..TopDelay::default() }, 100));
        let ends = TopDelay { value_ns: Some(0), low_ns: Some(i64::MIN), high_ns: Some(i64::MAX) };
        assert!(is_weak(ends, 100));
    }

    #[test]
    fn loss_between_bounds_is_weak_and_unknown_has_a_reason() {
        let of = |packets, lost| TopEstimate { packets, lost, ..estimate("lda", 1) };
        let loss = |packets, lost| KnownLine::of_all(&[of(packets, lost)])[0].loss.clone();
        assert_eq!(loss(Some(1_000), Some((10, 10))).value, Some(0.01));
        assert!(!loss(Some(1_000), Some((10, 10))).is_weak);
        assert!(loss(Some(1_000), Some((10, 20))).is_weak);
        assert_eq!(loss(Some(0), Some((0, 0))).value, None);
        let line = &KnownLine::of_all(&[of(Some(1_000), None)])[0];
        assert_eq!(line.loss.value, None);
        assert_eq!(line.reason.as_deref(), Some("no algorithm here measures it"));
    }
}

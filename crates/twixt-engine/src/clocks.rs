//! The clocks of segments, by what samples of their packets tell.

use std::collections::BTreeMap;

use twixt_measure::clock::{ClockReport, ClockWatch};
use twixt_model::Segment;

use crate::event::PairEstimate;

/// Most segments whose clocks are watched, by class; about 130 KB each.
pub const CLOCKS_MAX: usize = 1024;

/// What is known of the clocks of a segment.
#[derive(Clone, Debug, PartialEq)]
pub struct SegmentClock {
    /// Within which point names are unique.
    pub domain: String,
    /// The two points.
    pub segment: Segment,
    /// Name of the class of traffic; empty without classes.
    pub class: String,
    /// The downstream clock beside the upstream one.
    pub report: ClockReport,
}

/// Which clocks, by which packets.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ClockKey {
    domain: String,
    segment: Segment,
    class: String,
}

/// The segments whose points keep samples.
#[derive(Debug, Default)]
pub(crate) struct SegmentClocks {
    watches: BTreeMap<ClockKey, ClockWatch>, // at most CLOCKS_MAX
}

impl SegmentClocks {
    /// Takes the samples of an epoch. Those of further segments than can be watched are left; their
    /// estimates are the same.
    pub(crate) fn note(&mut self, pair: &PairEstimate) {
        for sample in pair.estimates.iter().filter_map(|estimate| estimate.sample.as_deref()) {
            let key = ClockKey {
                domain: pair.series.domain.clone(),
                segment: pair.series.segment.clone(),
                class: pair.series.class.clone(),
            };
            if self.watches.len() < CLOCKS_MAX || self.watches.contains_key(&key) {
                self.watches.entry(key).or_default().add(sample);
            }
        }
    }

    /// One report for both directions of a pair of points, seen from either.
    pub(crate) fn reports(&self) -> Vec<SegmentClock> {
        let report = |(key, watch): (&ClockKey, &ClockWatch)| {
            let opposite = key.opposite();
            let other = self.watches.get(&opposite);
            let report = match other.filter(|_| opposite < *key) {
                Some(first) => first.report(Some(watch))?.turned(),
                None => watch.report(other)?,
            };
            let ClockKey { domain, segment, class } = key.clone();
            Some(SegmentClock { report, domain, segment, class })
        };
        self.watches.iter().filter_map(report).collect()
    }
}

impl ClockKey {
    fn opposite(&self) -> Self {
        let Segment { upstream, downstream } = self.segment.clone();
        let segment = Segment { upstream: downstream, downstream: upstream };
        Self { segment, ..self.clone() }
    }
}

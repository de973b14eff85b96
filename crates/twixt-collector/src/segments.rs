//! How segments are, as metrics: one set per series (domain, segment, class, algorithm), never per
//! flow.
//!
//! Counters count from the start of the collector. Gauges are of the last reported epoch, and
//! are left out while nothing is known: a scrape never says 0 for unknown.

mod delays;
mod exposition;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::registry::Registry;
use twixt_engine::{EngineEvent, Gap, PairEstimate, SegmentClock, Series};
use twixt_measure::PointSummary;
use twixt_measure::clock::ClockOffset;
use twixt_model::{Delay, Estimate, LossRange, Scope, Segment};

pub(crate) use delays::DelayBuckets;

/// Series that are shown; epochs of further ones are counted, and only that.
const SERIES_MAX: usize = 5_000;

/// What metrics say of segments.
#[derive(Clone, Debug, Default)]
pub(crate) struct SegmentMetrics {
    shown: Arc<Mutex<Shown>>,
}

#[derive(Debug, Default)]
struct Shown {
    series: BTreeMap<SeriesLabels, SeriesState>, // at most SERIES_MAX
    clocks: BTreeMap<ClockLabels, ClockOffset>,  // at most engine::CLOCKS_MAX
    /// Epochs of series beyond the bound.
    unshown: u64,
}

/// What distinguishes series.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SeriesLabels {
    clock: ClockLabels,
    algorithm: &'static str,
}

/// What distinguishes the clocks of segments.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ClockLabels {
    domain: String,
    /// `UPSTREAM:DOWNSTREAM`.
    segment: String,
    class: String,
}

/// What was reported for a series.
#[derive(Debug, Default)]
struct SeriesState {
    epochs: u64,
    gap_epochs: u64,
    packets: u64,
    measured: u64,
    lost: u64,
    /// Packets of the epochs whose loss is known.
    loss_known: u64,
    /// Bounds on the lost packets of epochs of which only these are known, and all packets of these.
    lost_between: LossRange,
    loss_bounded: u64,
    /// What the points did not observe.
    upstream: MissedPackets,
    downstream: MissedPackets,
    /// Delays of single packets, if any were reported.
    delays: Option<Box<DelayBuckets>>,
    last: Option<LastEpoch>,
}

/// Packets that a point did not observe.
#[derive(Clone, Copy, Debug, Default)]
struct MissedPackets {
    dropped: u64,
    late: u64,
}

/// What is known of the last reported epoch.
#[derive(Clone, Copy, Debug)]
struct LastEpoch {
    end_ns: i64,
    mean_ns: Option<f64>,
    deviation_ns: Option<f64>,
    clock_bound_ns: Option<i64>,
}

impl SegmentMetrics {
    pub(crate) fn new(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register_collector(Box::new(metrics.clone()));
        metrics
    }

    /// Adds an event.
    pub(crate) fn note(&self, event: &EngineEvent) {
        match event {
            EngineEvent::Estimated(pair) => self.note_pair(pair),
            EngineEvent::Gap(gap) => self.note_gap(gap),
            _ => {}
        }
    }

    /// What is known of clocks now, in place of what was.
    pub(crate) fn note_clocks(&self, clocks: &[SegmentClock]) {
        let known = clocks.iter().filter_map(|clock| {
            let SegmentClock { domain, segment, class, report } = clock;
            Some((ClockLabels::new(domain, segment, class), report.offset?))
        });
        let known = known.collect();
        self.with(|shown| shown.clocks = known);
    }

    fn note_pair(&self, pair: &PairEstimate) {
        let of_all = pair.estimates.iter().find(|estimate| estimate.scope == Scope::All);
        let Some(estimate) = of_all else { return };
        let end_ns = pair.span.end.as_nanos();
        self.with(|shown| {
            if let Some(state) = shown.state(&pair.series, 1) {
                state.add(estimate);
                state.upstream.add(&pair.upstream);
                state.downstream.add(&pair.downstream);
                // One that comes late does not say how things are now.
                if !pair.is_late {
                    state.last = Some(LastEpoch::of(estimate, end_ns));
                }
            }
        });
    }

    fn note_gap(&self, gap: &Gap) {
        self.with(|shown| {
            if let Some(state) = shown.state(&gap.series, gap.epochs()) {
                state.gap_epochs = state.gap_epochs.saturating_add(gap.epochs());
                state.last = None;
            }
        });
    }

    fn with<T>(&self, look: impl FnOnce(&mut Shown) -> T) -> T {
        look(&mut self.shown.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Shown {
    /// That of a series; `None`, and counted, if there are too many.
    fn state(&mut self, series: &Series, epochs: u64) -> Option<&mut SeriesState> {
        let labels = SeriesLabels {
            clock: ClockLabels::new(&series.domain, &series.segment, &series.class),
            algorithm: series.algorithm,
        };
        if self.series.len() >= SERIES_MAX && !self.series.contains_key(&labels) {
            self.unshown = self.unshown.saturating_add(epochs);
            return None;
        }
        Some(self.series.entry(labels).or_default())
    }
}

impl ClockLabels {
    fn new(domain: &str, segment: &Segment, class: &str) -> Self {
        Self {
            domain: domain.to_owned(),
            segment: format!("{}:{}", segment.upstream, segment.downstream),
            class: class.to_owned(),
        }
    }
}

impl SeriesState {
    fn add(&mut self, estimate: &Estimate) {
        let evidence = &estimate.evidence;
        self.epochs = self.epochs.saturating_add(1);
        self.packets = self.packets.saturating_add(evidence.packets);
        self.measured = self.measured.saturating_add(evidence.used);
        if let Some(lost) = evidence.lost {
            self.lost = self.lost.saturating_add(lost);
            self.loss_known = self.loss_known.saturating_add(evidence.packets);
        } else if let Some(range) = evidence.lost_between {
            self.lost_between = self.lost_between.added(range);
            self.loss_bounded = self.loss_bounded.saturating_add(evidence.packets);
        }
        if let Some(sample) = estimate.sample.as_deref() {
            self.delays.get_or_insert_default().add(sample);
        }
    }
}

impl MissedPackets {
    const fn add(&mut self, summary: &PointSummary) {
        self.dropped = self.dropped.saturating_add(summary.dropped);
        self.late = self.late.saturating_add(summary.late);
    }
}

impl LastEpoch {
    fn of(estimate: &Estimate, end_ns: i64) -> Self {
        Self {
            end_ns,
            mean_ns: estimate.delay.map(|delay| delay.mean_ns()),
            deviation_ns: estimate.delay.and_then(|delay| delay.deviation_ns),
            clock_bound_ns: estimate.evidence.clock_error.map(Delay::as_nanos),
        }
    }
}

#[cfg(test)]
mod tests {
    use twixt_model::PointId;

    use super::*;

    fn series(number: usize) -> Series {
        let point = |name: String| PointId(name);
        Series {
            domain: "lab".to_owned(),
            segment: Segment {
                upstream: point("up".to_owned()),
                downstream: point(number.to_string()),
            },
            class: String::new(),
            algorithm: "lda",
            tag: 1,
            epoch_ns: Some(1_000_000_000),
        }
    }

    #[test]
    fn series_too_many_are_counted_and_not_shown() {
        let mut shown = Shown::default();
        for number in 0..SERIES_MAX {
            assert!(shown.state(&series(number), 1).is_some());
        }
        assert!(shown.state(&series(SERIES_MAX), 7).is_none());
        assert!(shown.state(&series(3), 1).is_some(), "those that are shown go on");
        assert_eq!((shown.series.len(), shown.unshown), (SERIES_MAX, 7));
    }
}

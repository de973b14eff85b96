//! What single points tell, as metrics: round trips by kind and part, reordering, and large flows. One
//! set per series, never per prefix or flow.
//!
//! Counters count from the start of the collector.

mod exposition;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::registry::Registry;
use twixt_engine::{Conclusions, EngineEvent, PointEstimate};
use twixt_model::{HeavyFlow, ReorderEstimate, RoundTripEstimate, RoundTripPart, Scope};

use crate::segments::DelayBuckets;

/// Series that are shown; epochs of further ones are counted, and only that.
const SERIES_MAX: usize = 5_000;

/// What metrics say of points.
#[derive(Clone, Debug, Default)]
pub(crate) struct PointMetrics {
    shown: Arc<Mutex<Shown>>,
}

#[derive(Debug, Default)]
struct Shown {
    /// Together at most SERIES_MAX.
    round_trips: BTreeMap<KindLabels, RoundTripState>,
    reordering: BTreeMap<PointLabels, ReorderState>,
    heavy: BTreeMap<PointLabels, HeavyState>,
    /// Epochs of series beyond the bound.
    unshown: u64,
}

/// What distinguishes points, and what measures there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct PointLabels {
    domain: String,
    point: String,
    class: String,
    algorithm: &'static str,
}

/// What distinguishes round trips at a point.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct KindLabels {
    point: PointLabels,
    kind: &'static str,
    /// Empty for the whole.
    part: &'static str,
}

#[derive(Debug, Default)]
struct RoundTripState {
    requests: u64,
    matched: u64,
    times: Box<DelayBuckets>,
}

#[derive(Debug, Default)]
struct ReorderState {
    judged: u64,
    out_of_order: u64,
    retransmitted: u64,
    undecided: u64,
    duplicates: u64,
}

#[derive(Debug, Default)]
struct HeavyState {
    /// Packets observed.
    packets: u64,
    /// Those that certainly belong to listed flows.
    listed_min: u64,
    bytes: u64,
}

impl PointMetrics {
    pub(crate) fn new(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register_collector(Box::new(metrics.clone()));
        metrics
    }

    /// Adds an event.
    pub(crate) fn note(&self, event: &EngineEvent) {
        let EngineEvent::Observed(point) = event else { return };
        self.with(|shown| shown.add(point));
    }

    fn with<T>(&self, look: impl FnOnce(&mut Shown) -> T) -> T {
        look(&mut self.shown.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Shown {
    fn add(&mut self, point: &PointEstimate) {
        let labels = PointLabels {
            domain: point.domain.clone(),
            point: point.point.0.clone(),
            class: point.class.clone(),
            algorithm: point.algorithm,
        };
        match &point.conclusions {
            Conclusions::RoundTrips(estimates) => self.add_round_trips(&labels, estimates),
            Conclusions::Reordering(prefixes) => {
                if self.admit(|shown| shown.reordering.contains_key(&labels)) {
                    self.reordering.entry(labels).or_default().add(prefixes);
                }
            }
            Conclusions::Heavy(flows) => {
                if self.admit(|shown| shown.heavy.contains_key(&labels)) {
                    self.heavy.entry(labels).or_default().add(point.counts.packets, flows);
                }
            }
        }
    }

    fn add_round_trips(&mut self, labels: &PointLabels, estimates: &[RoundTripEstimate]) {
        for estimate in estimates.iter().filter(|estimate| estimate.scope == Scope::All) {
            let labels = KindLabels {
                point: labels.clone(),
                kind: estimate.kind.name(),
                part: estimate.part.map_or("", RoundTripPart::name),
            };
            if self.admit(|shown| shown.round_trips.contains_key(&labels)) {
                self.round_trips.entry(labels).or_default().add(estimate);
            }
        }
    }

    /// Whether there is room for a series, or it is shown already.
    fn admit(&mut self, is_shown: impl Fn(&Self) -> bool) -> bool {
        let series = self.round_trips.len() + self.reordering.len() + self.heavy.len();
        let has_room = series < SERIES_MAX || is_shown(self);
        if !has_room {
            self.unshown = self.unshown.saturating_add(1);
        }
        has_room
    }
}

impl RoundTripState {
    fn add(&mut self, estimate: &RoundTripEstimate) {
        self.requests = self.requests.saturating_add(estimate.requests.unwrap_or(0));
        self.matched = self.matched.saturating_add(estimate.matched);
        if let Some(distribution) = estimate.distribution.as_deref() {
            self.times.add_histogram(distribution);
        }
    }
}

impl ReorderState {
    fn add(&mut self, prefixes: &[ReorderEstimate]) {
        let add = |sum: &mut u64, value: u64| *sum = sum.saturating_add(value);
        for prefix in prefixes {
            add(&mut self.judged, prefix.packets);
            add(&mut self.out_of_order, prefix.out_of_order);
            add(&mut self.retransmitted, prefix.retransmitted);
            add(&mut self.undecided, prefix.undecided);
            add(&mut self.duplicates, prefix.duplicates);
        }
    }
}

impl HeavyState {
    fn add(&mut self, packets: u64, flows: &[HeavyFlow]) {
        let add = |sum: &mut u64, value: u64| *sum = sum.saturating_add(value);
        add(&mut self.packets, packets);
        for flow in flows {
            add(&mut self.listed_min, flow.packets_at_least);
            add(&mut self.bytes, flow.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_too_many_are_counted_and_not_shown() {
        let mut shown = Shown::default();
        let labels = |number: usize| PointLabels {
            domain: String::new(),
            point: number.to_string(),
            class: String::new(),
            algorithm: "exact",
        };
        for number in 0..SERIES_MAX {
            shown.heavy.insert(labels(number), HeavyState::default());
        }
        assert!(shown.admit(|shown| shown.heavy.contains_key(&labels(3))));
        assert!(!shown.admit(|shown| shown.heavy.contains_key(&labels(SERIES_MAX))));
        assert_eq!(shown.unshown, 1);
    }
}

//! Writes what is shown of points, metric by metric. `docs/reference/metrics.md` lists them.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, LabelSetEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;

use super::{
    HeavyState, KindLabels, PointLabels, PointMetrics, ReorderState, RoundTripState, Shown,
};

/// A counter of some state: name, help, and how it is found.
type Count<T> = (&'static str, &'static str, fn(&T) -> u64);

const ROUND_TRIPS: [Count<RoundTripState>; 2] = [
    ("round_trip_requests", "Packets that could begin a round trip", |state| state.requests),
    ("round_trips_measured", "Round trips measured", |state| state.matched),
];

const REORDERING: [Count<ReorderState>; 5] = [
    ("reordering_judged_packets", "Packets with data, judged for reordering", |state| state.judged),
    ("reordering_out_of_order_packets", "Packets overtaken by others", |state| state.out_of_order),
    (
        "reordering_retransmitted_packets",
        "Packets that came late because they were sent again",
        |state| state.retransmitted,
    ),
    ("reordering_undecided_packets", "Packets that came late for an unknown reason", |state| {
        state.undecided
    }),
    ("reordering_duplicate_packets", "Copies of packets, not judged", |state| state.duplicates),
];

const HEAVY: [Count<HeavyState>; 3] = [
    ("heavy_observed_packets", "Packets observed where large flows are counted", |state| {
        state.packets
    }),
    ("heavy_listed_min_packets", "Packets of listed flows, at least", |state| state.listed_min),
    ("heavy_listed_bytes", "Bytes of listed flows, as counted or estimated", |state| state.bytes),
];

impl Collector for PointMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.with(|shown| {
            shown.encode_times(&mut encoder)?;
            encode(&mut encoder, &ROUND_TRIPS, || shown.round_trips.iter())?;
            encode(&mut encoder, &REORDERING, || shown.reordering.iter())?;
            encode(&mut encoder, &HEAVY, || shown.heavy.iter())?;
            let help = "Epochs of points that are not exported because there are too many series";
            let unshown =
                encoder.encode_descriptor("unshown_epochs", help, None, MetricType::Counter);
            unshown?.encode_counter::<NoLabelSet, _, u64>(&shown.unshown, None)
        })
    }
}

impl Shown {
    fn encode_times(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let help = "Round-trip times; each counts for as many as it represents";
        let unit = Some(&Unit::Seconds);
        let name = "round_trip_time";
        let mut family = encoder.encode_descriptor(name, help, unit, MetricType::Histogram)?;
        for (labels, state) in &self.round_trips {
            state.times.encode(family.encode_family(labels)?)?;
        }
        Ok(())
    }
}

fn encode<'a, L: EncodeLabelSet + 'a, T: 'a, I: Iterator<Item = (&'a L, &'a T)>>(
    encoder: &mut DescriptorEncoder<'_>,
    counts: &[Count<T>],
    states: impl Fn() -> I,
) -> fmt::Result {
    for (name, help, count) in counts {
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (labels, state) in states() {
            let mut metric = family.encode_family(labels)?;
            metric.encode_counter::<NoLabelSet, _, u64>(&count(state), None)?;
        }
    }
    Ok(())
}

impl EncodeLabelSet for PointLabels {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> fmt::Result {
        let Self { domain, point, class, algorithm } = self;
        let labels = [
            ("domain", domain.as_str()),
            ("point", point.as_str()),
            ("class", class.as_str()),
            ("algorithm", algorithm),
        ];
        labels.encode(encoder)
    }
}

impl EncodeLabelSet for KindLabels {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> fmt::Result {
        self.point.encode(encoder)?;
        [("kind", self.kind), ("part", self.part)].encode(encoder)
    }
}

//! Writes what is shown of segments, metric by metric. `docs/reference/metrics.md` lists them.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, LabelSetEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;
use twixt_model::Delay;

use super::{ClockLabels, LastEpoch, SegmentMetrics, SeriesLabels, SeriesState, Shown};

const SECOND_NS: f64 = 1e9;

/// A counter: name, help, and how it is found in the reports.
type Count = (&'static str, &'static str, fn(&SeriesState) -> u64);

const COUNTS: [Count; 13] = [
    ("epochs", "Epochs with an estimate", |state| state.epochs),
    ("gap_epochs", "Epochs without an estimate", |state| state.gap_epochs),
    ("packets", "Packets counted upstream", |state| state.packets),
    ("measured_packets", "Packets that estimates rest on", |state| state.measured),
    ("lost_packets", "Packets lost by the network, in epochs with known loss", |state| state.lost),
    ("loss_known_packets", "Packets counted upstream in epochs with known loss", |state| {
        state.loss_known
    }),
    ("lost_min_packets", "Packets lost at least, in epochs with bounds on loss only", |state| {
        state.lost_between.min
    }),
    ("lost_max_packets", "Packets lost at most, in epochs with bounds on loss only", |state| {
        state.lost_between.max
    }),
    (
        "loss_bounded_packets",
        "Packets counted upstream in epochs with bounds on loss only",
        |state| state.loss_bounded,
    ),
    ("upstream_dropped_packets", "Packets that the kernel dropped upstream", |state| {
        state.upstream.dropped
    }),
    ("downstream_dropped_packets", "Packets that the kernel dropped downstream", |state| {
        state.downstream.dropped
    }),
    ("upstream_late_packets", "Packets observed upstream after their epoch was sealed", |state| {
        state.upstream.late
    }),
    (
        "downstream_late_packets",
        "Packets observed downstream after their epoch was sealed",
        |state| state.downstream.late,
    ),
];

/// A time of the last epoch, in seconds: name, help, and how it is found.
type Time = (&'static str, &'static str, fn(&LastEpoch) -> Option<f64>);

const TIMES: [Time; 4] = [
    ("mean_delay", "Mean delay of the last epoch", |last| last.mean_ns),
    (
        "delay_deviation",
        "Standard deviation of the delay of single packets in the last epoch",
        |last| last.deviation_ns,
    ),
    ("clock_error_bound", "Bound on the clock difference, as stated by the points", |last| {
        last.clock_bound_ns.map(|bound_ns| bound_ns as f64)
    }),
    ("last_epoch_timestamp", "End of the last epoch, since 1970", |last| Some(last.end_ns as f64)),
];

/// What packets both ways tell of clocks: name, help, and how it is found.
type ClockTime = (&'static str, &'static str, fn(&twixt_measure::clock::ClockOffset) -> Delay);

const CLOCK_TIMES: [ClockTime; 2] = [
    (
        "clock_offset",
        "How far the downstream clock is ahead, if packets of both directions show it",
        |clock| clock.offset,
    ),
    ("clock_offset_bound", "Bound on the error of the clock offset", |clock| clock.error_bound),
];

impl Collector for SegmentMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.with(|shown| {
            shown.encode_delays(&mut encoder)?;
            shown.encode_counts(&mut encoder)?;
            shown.encode_times(&mut encoder)?;
            shown.encode_clocks(&mut encoder)?;
            let help = "Epochs of segments that are not exported because there are too many";
            let unshown =
                encoder.encode_descriptor("unshown_epochs", help, None, MetricType::Counter);
            unshown?.encode_counter::<NoLabelSet, _, u64>(&shown.unshown, None)
        })
    }
}

impl Shown {
    fn encode_delays(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let help = "Delay of packets, from samples; each counts for as many as it represents";
        let unit = Some(&Unit::Seconds);
        let mut family = encoder.encode_descriptor("delay", help, unit, MetricType::Histogram)?;
        for (labels, state) in &self.series {
            if let Some(delays) = &state.delays {
                delays.encode(family.encode_family(labels)?)?;
            }
        }
        Ok(())
    }

    fn encode_counts(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        for (name, help, count) in COUNTS {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            for (labels, state) in &self.series {
                let mut metric = family.encode_family(labels)?;
                metric.encode_counter::<NoLabelSet, _, u64>(&count(state), None)?;
            }
        }
        Ok(())
    }

    fn encode_times(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        for (name, help, time_ns) in TIMES {
            let unit = Some(&Unit::Seconds);
            let mut family = encoder.encode_descriptor(name, help, unit, MetricType::Gauge)?;
            for (labels, state) in &self.series {
                if let Some(time_ns) = state.last.as_ref().and_then(time_ns) {
                    family.encode_family(labels)?.encode_gauge(&(time_ns / SECOND_NS))?;
                }
            }
        }
        Ok(())
    }

    fn encode_clocks(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        for (name, help, time) in CLOCK_TIMES {
            let unit = Some(&Unit::Seconds);
            let mut family = encoder.encode_descriptor(name, help, unit, MetricType::Gauge)?;
            for (labels, clock) in &self.clocks {
                let seconds = time(clock).as_nanos() as f64 / SECOND_NS;
                family.encode_family(labels)?.encode_gauge(&seconds)?;
            }
        }
        Ok(())
    }
}

impl EncodeLabelSet for SeriesLabels {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> fmt::Result {
        self.clock.encode(encoder)?;
        [("algorithm", self.algorithm)].encode(encoder)
    }
}

impl EncodeLabelSet for ClockLabels {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> fmt::Result {
        let Self { domain, segment, class } = self;
        let labels = [("domain", domain), ("segment", segment), ("class", class)]
            .map(|(name, value)| (name, value.as_str()));
        labels.encode(encoder)
    }
}

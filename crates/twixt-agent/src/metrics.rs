//! Metrics for Prometheus, and health.

mod http;

pub(crate) use http::{Page, serve};

use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};
use twixt_delivery::{Receipt, Reply};
use twixt_observe::MergerCounts;
use twixt_wire::{Skip, SkipCounts};

use crate::clock::ClockQuality;
use crate::spool::SpoolCounts;

type PointLabel = [(&'static str, String); 1];
type ReasonLabels = [(&'static str, String); 2];
type Seconds = Counter<f64, AtomicU64>;
type SecondsGauge = Gauge<f64, AtomicU64>;

/// All metrics.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    points: PointFamilies,
    pub(crate) sender: SenderMetrics,
    spool: SpoolGauges,
    clock: ClockGauges,
    /// Threads that should capture, and how many do, by point.
    health: Mutex<Vec<(String, usize, Gauge)>>,
}

#[derive(Clone, Debug, Default)]
struct PointFamilies {
    packets: Family<PointLabel, Counter>,
    skipped: Family<ReasonLabels, Counter>,
    dropped: Family<PointLabel, Counter>,
    late: Family<PointLabel, Counter>,
    unsplit: Family<PointLabel, Counter>,
    busy: Family<PointLabel, Seconds>,
    gaps: Family<PointLabel, Counter>,
    steps: Family<PointLabel, Counter>,
    sealed: Family<PointLabel, Counter>,
    torn: Family<PointLabel, Counter>,
    overrun: Family<PointLabel, Counter>,
    incomplete: Family<PointLabel, Counter>,
    late_parts: Family<PointLabel, Counter>,
    capturing: Family<PointLabel, Gauge>,
    synopsis_bytes: Family<ReasonLabels, Gauge>,
}

/// Metrics of one point. Several threads may have clones.
#[derive(Clone, Debug)]
pub(crate) struct PointMetrics {
    name: String,
    skipped: Family<ReasonLabels, Counter>,
    synopsis_bytes: Family<ReasonLabels, Gauge>,
    /// Packets measured.
    pub(crate) packets: Counter,
    /// Frames that the kernel lost.
    pub(crate) dropped: Counter,
    /// Packets that came after their epoch was sealed.
    pub(crate) late: Counter,
    /// Super-packets that could not be split.
    pub(crate) unsplit: Counter,
    /// Time spent on frames, all threads together.
    pub(crate) busy: Seconds,
    /// How often the interface was lost.
    pub(crate) gaps: Counter,
    /// Clock steps.
    pub(crate) steps: Counter,
    /// Epochs sealed.
    pub(crate) sealed: Counter,
    /// Epochs sealed that cannot be compared.
    pub(crate) torn: Counter,
    /// Parts of epochs lost because they were not taken in time.
    pub(crate) overrun: Counter,
    incomplete: Counter,
    late_parts: Counter,
    /// How many threads capture.
    pub(crate) capturing: Gauge,
}

/// Metrics of the sender.
#[derive(Clone, Debug, Default)]
pub(crate) struct SenderMetrics {
    stored: Counter,
    duplicates: Counter,
    refused: Counter,
    put_back: Counter,
    uploads: Family<PointLabel, Counter>,
}

#[derive(Clone, Debug, Default)]
struct SpoolGauges {
    epochs: Gauge,
    bytes: Gauge,
    oldest: SecondsGauge,
    discarded: Counter,
    unwritten: Counter,
    damaged: Counter,
}

#[derive(Clone, Debug, Default)]
struct ClockGauges {
    synchronised: Family<PointLabel, Gauge>,
    bound: Family<PointLabel, SecondsGauge>,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut registry = Registry::with_prefix("twixt_agent");
        let points = PointFamilies::default();
        points.register(&mut registry);
        let sender = SenderMetrics::default();
        sender.register(&mut registry);
        let spool = SpoolGauges::default();
        spool.register(&mut registry);
        let clock = ClockGauges::default();
        clock.register(&mut registry);
        Self { registry, points, sender, spool, clock, health: Mutex::default() }
    }

    /// Metrics of a new point with this many threads.
    pub(crate) fn point(&self, name: &str, threads: usize) -> PointMetrics {
        let (families, label) = (&self.points, [("point", name.to_owned())]);
        let capturing = families.capturing.get_or_create_owned(&label);
        let mut health = self.health.lock().unwrap_or_else(PoisonError::into_inner);
        health.push((name.to_owned(), threads, capturing.clone()));
        PointMetrics {
            name: name.to_owned(),
            skipped: families.skipped.clone(),
            synopsis_bytes: families.synopsis_bytes.clone(),
            packets: families.packets.get_or_create_owned(&label),
            dropped: families.dropped.get_or_create_owned(&label),
            late: families.late.get_or_create_owned(&label),
            unsplit: families.unsplit.get_or_create_owned(&label),
            busy: families.busy.get_or_create_owned(&label),
            gaps: families.gaps.get_or_create_owned(&label),
            steps: families.steps.get_or_create_owned(&label),
            sealed: families.sealed.get_or_create_owned(&label),
            torn: families.torn.get_or_create_owned(&label),
            overrun: families.overrun.get_or_create_owned(&label),
            incomplete: families.incomplete.get_or_create_owned(&label),
            late_parts: families.late_parts.get_or_create_owned(&label),
            capturing,
        }
    }

    /// The text for Prometheus.
    pub(crate) fn render(&self, spool: &SpoolCounts, clock: &ClockQuality) -> String {
        self.spool.set(spool);
        self.clock.set(clock);
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = encode(&mut text, &self.registry);
        text
    }

    /// Whether every point captures, and what to say about it.
    pub(crate) fn health(&self) -> (bool, String) {
        let health = self.health.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = true;
        let mut text = String::new();
        for (name, threads, capturing) in health.iter() {
            let is_well = capturing.get() >= *threads as i64;
            all &= is_well;
            text += &format!("{name}: {}\n", if is_well { "capturing" } else { "not capturing" });
        }
        (all, text)
    }
}

impl PointMetrics {
    /// Counts frames that were not measured.
    pub(crate) fn count_skipped(&self, skipped: &SkipCounts) {
        for (skip, frames) in skipped.iter() {
            self.skipped_for(skip).inc_by(frames);
        }
    }

    /// Problems so far when parts of threads were combined.
    pub(crate) fn note_merger(&self, counts: MergerCounts) {
        raise(&self.incomplete, counts.incomplete);
        raise(&self.late_parts, counts.late_parts.saturating_add(counts.misfits));
    }

    /// A synopsis of so many bytes was sealed.
    pub(crate) fn note_synopsis(&self, algorithm: &str, bytes: u64) {
        let labels = [("point", self.name.clone()), ("algorithm", algorithm.to_owned())];
        self.synopsis_bytes.get_or_create(&labels).set(bytes.cast_signed());
    }

    fn skipped_for(&self, skip: Skip) -> Counter {
        let labels = [("point", self.name.clone()), ("reason", skip.name().to_owned())];
        self.skipped.get_or_create_owned(&labels)
    }
}

impl SenderMetrics {
    /// Counts a reply to an upload.
    pub(crate) fn replied(&self, reply: &Reply) {
        self.uploads.get_or_create(&[("outcome", reply.name().to_owned())]).inc();
    }

    /// Counts the epochs of a receipt.
    pub(crate) fn received(&self, receipt: &Receipt) {
        self.stored.inc_by(receipt.stored);
        self.duplicates.inc_by(receipt.duplicates);
        let refused = receipt.refused.iter().filter(|refused| refused.is_final());
        self.refused.inc_by(refused.count() as u64);
    }

    /// Counts epochs that go to the back of the spool.
    pub(crate) fn put_back(&self, epochs: u64) {
        self.put_back.inc_by(epochs);
    }

    /// Epochs stored, duplicate, refused and put back.
    #[cfg(test)]
    pub(crate) fn counted(&self) -> [u64; 4] {
        [&self.stored, &self.duplicates, &self.refused, &self.put_back].map(Counter::get)
    }

    fn register(&self, registry: &mut Registry) {
        registry.register("epochs_stored", "Epochs stored by the collector", self.stored.clone());
        let help = "Epochs already stored by the collector";
        registry.register("epochs_duplicate", help, self.duplicates.clone());
        let help = "Epochs permanently refused by the collector, and discarded";
        registry.register("epochs_refused", help, self.refused.clone());
        let help = "Epochs not accepted by the collector for now, returned to the spool";
        registry.register("epochs_put_back", help, self.put_back.clone());
        registry.register("uploads", "Uploads, by outcome", self.uploads.clone());
    }
}

impl PointFamilies {
    fn register(&self, registry: &mut Registry) {
        registry.register("packets", "Packets measured", self.packets.clone());
        registry.register("skipped", "Frames skipped, by reason", self.skipped.clone());
        registry.register("dropped", "Frames dropped by the kernel", self.dropped.clone());
        registry.register("late", "Packets seen after their epoch was sealed", self.late.clone());
        registry.register("unsplit", "Super-packets that could not be split", self.unsplit.clone());
        let help = "Time spent on frames; divide by packets for the cost per packet";
        registry.register_with_unit("busy", help, Unit::Seconds, self.busy.clone());
        registry.register("gaps", "Times the interface was lost", self.gaps.clone());
        registry.register("clock_steps", "Clock steps", self.steps.clone());
        registry.register("epochs_sealed", "Epochs sealed", self.sealed.clone());
        registry.register("epochs_torn", "Epochs not observed completely", self.torn.clone());
        registry.register(
            "overrun",
            "Parts of epochs lost because too many were waiting",
            self.overrun.clone(),
        );
        let help = "Epochs sealed without the parts of all threads";
        registry.register("epochs_incomplete", help, self.incomplete.clone());
        let help = "Parts that came after their epoch was sealed";
        registry.register("late_parts", help, self.late_parts.clone());
        registry.register("capturing", "Capture threads", self.capturing.clone());
        let help = "State of the last sealed synopsis";
        registry.register_with_unit("synopsis", help, Unit::Bytes, self.synopsis_bytes.clone());
    }
}

impl SpoolGauges {
    fn register(&self, registry: &mut Registry) {
        registry.register("spool_epochs", "Epochs waiting to be sent", self.epochs.clone());
        let (bytes, oldest) = (self.bytes.clone(), self.oldest.clone());
        registry.register_with_unit("spool", "Size of the spool", Unit::Bytes, bytes);
        let help = "Age of the oldest waiting epoch";
        registry.register_with_unit("spool_oldest", help, Unit::Seconds, oldest);
        registry.register(
            "epochs_discarded",
            "Epochs discarded because the spool was full",
            self.discarded.clone(),
        );
        registry.register(
            "epochs_unwritten",
            "Epochs that could not be written to disk",
            self.unwritten.clone(),
        );
        registry.register("epochs_damaged", "Epochs damaged on disk", self.damaged.clone());
    }

    fn set(&self, counts: &SpoolCounts) {
        self.epochs.set(counts.epochs.cast_signed());
        self.bytes.set(counts.bytes.cast_signed());
        self.oldest.set(counts.oldest.unwrap_or(Duration::ZERO).as_secs_f64());
        raise(&self.discarded, counts.discarded);
        raise(&self.unwritten, counts.unwritten);
        raise(&self.damaged, counts.damaged);
    }
}

impl ClockGauges {
    fn register(&self, registry: &mut Registry) {
        let help = "Whether the clock is synchronised";
        registry.register("clock_synchronised", help, self.synchronised.clone());
        let help = "Maximum error of the clock, if known";
        registry.register_with_unit("clock_bound", help, Unit::Seconds, self.bound.clone());
    }

    fn set(&self, clock: &ClockQuality) {
        self.synchronised.clear();
        self.bound.clear();
        for (source, word) in clock.words() {
            let label = [("source", source.to_owned())];
            self.synchronised.get_or_create(&label).set(i64::from(word.synchronised));
            if let Some(bound) = word.bound {
                self.bound.get_or_create(&label).set(bound.as_nanos() as f64 / 1e9);
            }
        }
    }
}

/// Sets a counter that is counted elsewhere.
fn raise(counter: &Counter, to: u64) {
    counter.inc_by(to.saturating_sub(counter.get()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_lines_are_as_committed() {
        let metrics = Metrics::new();
        metrics.point("p", 1);
        // A family has a help line only if it has a member.
        let label = || ("label", "value".to_owned());
        drop(metrics.points.skipped.get_or_create(&[label(), label()]));
        drop(metrics.points.synopsis_bytes.get_or_create(&[label(), label()]));
        drop(metrics.sender.uploads.get_or_create(&[label()]));
        drop(metrics.clock.synchronised.get_or_create(&[label()]));
        drop(metrics.clock.bound.get_or_create(&[label()]));
        let mut text = String::new();
        encode(&mut text, &metrics.registry).expect("a string can be written to");
        let help = text.lines().filter(|line| line.starts_with("# HELP"));
        let help: String = help.map(|line| format!("{line}\n")).collect();
        twixt_testing::check_wording("agent-metrics", &help);
    }
}

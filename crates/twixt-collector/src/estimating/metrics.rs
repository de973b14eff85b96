//! What is counted of estimates of all segments together.

use std::sync::atomic::Ordering;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};
use twixt_engine::{Engine, EngineEvent, WarningKind};

use crate::point_metrics::PointMetrics;
use crate::segments::SegmentMetrics;

type ByName = Family<[(&'static str, &'static str); 1], Counter>;

/// Counters of estimates.
#[derive(Clone, Debug, Default)]
pub(crate) struct EstimatingMetrics {
    pub(crate) replayed: Counter,
    pub(crate) unwritten: Counter,
    pub(super) estimated_late: Counter,
    waiting_bytes: Gauge,
    pub(super) segments: SegmentMetrics,
    points: PointMetrics,
    events: ByName,
    gap_epochs: Counter,
    warnings: ByName,
    late: Counter,
    unrouted: Counter,
    unreadable: Gauge,
}

impl EstimatingMetrics {
    pub(crate) fn new(
        registry: &mut Registry,
        segments: SegmentMetrics,
        points: PointMetrics,
    ) -> Self {
        let metrics = Self { segments, points, ..Self::default() };
        registry.register(
            "epochs_replayed",
            "Epochs read from the log after the start",
            metrics.replayed.clone(),
        );
        registry.register(
            "conclusions_unwritten",
            "Failures to save the progress of estimating",
            metrics.unwritten.clone(),
        );
        registry.register("events", "Events published, by kind", metrics.events.clone());
        registry.register(
            "gap_epochs",
            "Epochs of segments without an estimate",
            metrics.gap_epochs.clone(),
        );
        registry.register("warnings", "Warnings, by kind", metrics.warnings.clone());
        registry.register(
            "epochs_late",
            "Epochs that arrived after they were given up",
            metrics.late.clone(),
        );
        registry.register(
            "epochs_estimated_late",
            "Epochs estimated from stored halves, one of which arrived late",
            metrics.estimated_late.clone(),
        );
        registry.register_with_unit(
            "memory_waiting",
            "Memory of epochs waiting for their other half",
            Unit::Bytes,
            metrics.waiting_bytes.clone(),
        );
        registry.register(
            "epochs_unrouted",
            "Epochs of points that are not an end of any segment",
            metrics.unrouted.clone(),
        );
        registry.register(
            "replay_unreadable",
            "Whether stored epochs that are needed after the start cannot be read",
            metrics.unreadable.clone(),
        );
        // Zero is news too, for those who compare with it.
        for kind in ["estimated", "observed", "gap", "warning", "summary"] {
            drop(metrics.events.get_or_create(&[("kind", kind)]));
        }
        for kind in WarningKind::ALL {
            drop(metrics.warnings.get_or_create(&[("kind", kind.name())]));
        }
        metrics
    }

    pub(super) fn note_readable(&self, is_readable: bool) {
        self.unreadable.set(i64::from(!is_readable));
    }

    /// Whether all that is needed after a start could be read.
    pub(crate) fn is_readable(&self) -> bool {
        self.unreadable.get() == 0
    }

    pub(super) fn count(&self, event: &EngineEvent) {
        self.segments.note(event);
        self.points.note(event);
        let kind = match event {
            EngineEvent::Estimated(_) => "estimated",
            EngineEvent::Observed(_) => "observed",
            EngineEvent::Gap(gap) => {
                self.gap_epochs.inc_by(gap.epochs());
                "gap"
            }
            EngineEvent::Warning(warning) => {
                self.warnings.get_or_create(&[("kind", warning.kind.name())]).inc();
                "warning"
            }
            EngineEvent::MinuteOver(_) | EngineEvent::ObservedSummary(_) => "summary",
        };
        self.events.get_or_create(&[("kind", kind)]).inc();
    }

    pub(super) fn copy(&self, engine: &Engine) {
        let counts = engine.counts();
        self.waiting_bytes.set(i64::try_from(engine.waiting_bytes()).unwrap_or(i64::MAX));
        self.late.inner().store(counts.late, Ordering::Relaxed);
        self.unrouted.inner().store(counts.unrouted, Ordering::Relaxed);
    }
}

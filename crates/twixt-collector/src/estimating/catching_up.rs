//! Which points are waited for after a start.

use std::collections::HashSet;

use twixt_engine::SeriesProgress;
use twixt_measure::Sealed;
use twixt_model::{PointId, Timestamp};

/// Points whose segments came less far than this behind the others were there when the collector
/// stopped.
const RECENT_NS: i64 = 600_000_000_000;
/// A point has caught up when its newest epoch ended this many epochs ago or less.
const CAUGHT_UP_EPOCHS: i64 = 3;
/// And this long, for the way to the collector.
const CAUGHT_UP_NS: i64 = 2_000_000_000;

/// Points that have not caught up yet.
#[derive(Debug)]
pub(super) struct CatchingUp {
    points: HashSet<PointId>, // at most two for each series
}

impl CatchingUp {
    /// All that were there before.
    pub(super) fn of(progress: &[SeriesProgress]) -> Self {
        let newest = progress.iter().map(end_ns).max().unwrap_or(i64::MIN);
        let recent =
            progress.iter().filter(|progress| end_ns(progress) >= newest.saturating_sub(RECENT_NS));
        let points = recent.flat_map(|progress| {
            let segment = &progress.series.segment;
            [segment.upstream.clone(), segment.downstream.clone()]
        });
        Self { points: points.collect() }
    }

    pub(super) fn is_over(&self) -> bool {
        self.points.is_empty()
    }

    /// An epoch came.
    pub(super) fn note(&mut self, sealed: &Sealed, now: Timestamp) {
        let length_ns = sealed.rule.length_ns().unwrap_or(0);
        let end_ns = sealed.rule.span_of(sealed.epoch).end.as_nanos();
        let slack_ns = length_ns.saturating_mul(CAUGHT_UP_EPOCHS).saturating_add(CAUGHT_UP_NS);
        if end_ns >= now.as_nanos().saturating_sub(slack_ns) {
            self.points.remove(&sealed.point);
        }
    }
}

fn end_ns(progress: &SeriesProgress) -> i64 {
    let length_ns = progress.series.epoch_ns.unwrap_or(0);
    progress.through.0.saturating_add(1).saturating_mul(length_ns)
}

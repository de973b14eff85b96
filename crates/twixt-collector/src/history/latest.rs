//! The latest state of every segment and point.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use twixt_delivery::SpoolState;
use twixt_engine::{EngineEvent, PairEstimate, PointEstimate};
use twixt_history::SeriesKey;
use twixt_measure::PointSummary;
use twixt_model::{Delay, Span, TimeSource};

use super::series_key;

/// The latest state of all series that the engine follows.
#[derive(Debug, Default)]
pub(crate) struct LatestStates {
    latest: Mutex<Latest>,
}

#[derive(Debug, Default)]
struct Latest {
    clocks: BTreeMap<SeriesKey, ClockState>,
    points: BTreeMap<(String, String), PointState>,
    agents: BTreeMap<(String, String), AgentState>, // at most AGENTS_MAX
}

/// Points of which it is known what their agents say of themselves. Further ones show nothing of it.
const AGENTS_MAX: usize = 10_000;

/// What the agent of a point said of itself when it sent last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AgentState {
    pub(crate) version: Option<String>,
    pub(crate) spool: Option<SpoolState>,
}

/// The last known state of the clocks of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClockState {
    /// The epoch it was found in.
    pub(crate) span: Span,
    /// Bound on the clock difference, if known.
    pub(crate) error_ns: Option<i64>,
    /// Downstream's epochs have numbers larger by this.
    pub(crate) realigned_epochs: i64,
    /// Who took the times, and what bounds their clocks: upstream's and downstream's.
    pub(crate) ends: [(TimeSource, Option<i64>); 2],
}

/// How a point was heard of last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PointState {
    /// End of the last reported epoch.
    pub(crate) last_ns: i64,
    pub(crate) packets: u64,
    pub(crate) skipped: u64,
    pub(crate) dropped: u64,
    pub(crate) late: u64,
}

impl LatestStates {
    pub(super) fn note(&self, event: &EngineEvent) {
        match event {
            // One that comes late does not say how things are now.
            EngineEvent::Estimated(pair) if !pair.is_late => self.note_pair(pair),
            EngineEvent::Observed(point) => self.note_point(point),
            _ => {}
        }
    }

    pub(crate) fn clocks(&self) -> Vec<(SeriesKey, ClockState)> {
        self.with(|latest| {
            latest.clocks.iter().map(|(key, state)| (key.clone(), state.clone())).collect()
        })
    }

    /// Domain, name and state of every point.
    pub(crate) fn points(&self) -> BTreeMap<(String, String), PointState> {
        self.with(|latest| latest.points.clone())
    }

    /// Takes what an agent said, with epochs of these points.
    pub(crate) fn note_agent(
        &self,
        points: impl IntoIterator<Item = (String, String)>,
        agent: &AgentState,
    ) {
        self.with(|latest| {
            for point in points {
                if latest.agents.len() < AGENTS_MAX || latest.agents.contains_key(&point) {
                    latest.agents.insert(point, agent.clone());
                }
            }
        });
    }

    /// By domain and name of the point.
    pub(crate) fn agents(&self) -> BTreeMap<(String, String), AgentState> {
        self.with(|latest| latest.agents.clone())
    }

    fn note_pair(&self, pair: &PairEstimate) {
        let errors = pair.estimates.iter().filter_map(|estimate| estimate.evidence.clock_error);
        let end = |summary: &PointSummary| {
            (summary.time_source, summary.clock_bound.map(Delay::as_nanos))
        };
        let state = ClockState {
            span: pair.span,
            error_ns: errors.map(Delay::as_nanos).max(),
            realigned_epochs: pair.realigned_epochs,
            ends: [end(&pair.upstream), end(&pair.downstream)],
        };
        let segment = &pair.series.segment;
        let ends = [(&segment.upstream, &pair.upstream), (&segment.downstream, &pair.downstream)];
        self.with(|latest| {
            latest.clocks.insert(series_key(&pair.series), state);
            for (point, summary) in ends {
                let state = PointState {
                    last_ns: pair.span.end.as_nanos(),
                    packets: summary.packets,
                    skipped: summary.skipped,
                    dropped: summary.dropped,
                    late: summary.late,
                };
                latest.points.insert((pair.series.domain.clone(), point.0.clone()), state);
            }
        });
    }

    fn note_point(&self, point: &PointEstimate) {
        let state = PointState {
            last_ns: point.span.end.as_nanos(),
            packets: point.counts.packets,
            skipped: point.counts.skipped,
            dropped: point.counts.dropped,
            late: point.counts.late,
        };
        self.with(|latest| {
            latest.points.insert((point.domain.clone(), point.point.0.clone()), state)
        });
    }

    fn with<T>(&self, look: impl FnOnce(&mut Latest) -> T) -> T {
        look(&mut self.latest.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

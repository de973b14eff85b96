//! Stores estimates as the engine reports them, so that they can be queried later.
//!
//! It comes first among those that take the engine's events. Rows are durable before the engine's
//! progress is stored, and rows that are reported again after a crash are stored once.

mod latest;
mod metrics;
mod point_rows;
mod points;
mod upkeep;

pub(crate) use latest::{AgentState, ClockState, LatestStates, PointState};
pub(crate) use metrics::{HistoryMetrics, Work};
pub(crate) use points::PointHistories;
pub(crate) use upkeep::Upkeep;

use std::io;
use std::sync::Arc;

use tokio::sync::broadcast;
use tracing::{info, warn};
use twixt_engine::{EngineEvent, Gap, MinuteOver, PairEstimate, Series};
use twixt_history::{History, PointMisses, Row, SeriesKey, Table};
use twixt_measure::PointSummary;
use twixt_model::{Estimate, PointId, Segment};
use twixt_synopsis::{Purpose, find};

use crate::clock::WallClock;
use crate::estimating::EventSink;

/// Events that a follower may be behind by; then it learns how many it missed.
const LIVE_EVENTS_MAX: usize = 1_024;

/// An event for followers.
#[derive(Clone, Debug)]
pub(crate) enum LiveEvent {
    /// An epoch, or a gap.
    Row(Arc<Row>),
    /// Kind and text.
    Warning(&'static str, Arc<str>),
}

/// Estimates, for those who read them while they are written.
#[derive(Clone, Debug)]
pub(crate) struct Estimates {
    pub(crate) history: Arc<History>,
    /// What is known of single points.
    pub(crate) points: PointHistories,
    pub(crate) latest: Arc<LatestStates>,
    pub(crate) live: broadcast::Sender<LiveEvent>,
    pub(crate) clock: WallClock,
}

impl Estimates {
    pub(crate) fn new(history: History, points: PointHistories, clock: WallClock) -> Self {
        let (live, _) = broadcast::channel(LIVE_EVENTS_MAX);
        Self { history: Arc::new(history), points, latest: Arc::default(), live, clock }
    }

    /// The history of a table.
    pub(crate) fn table(&self, table: Table) -> &Arc<History> {
        self.points.of(table).unwrap_or(&self.history)
    }

    /// The histories of all tables.
    pub(crate) fn tables(&self) -> impl Iterator<Item = &Arc<History>> {
        std::iter::once(&self.history).chain(self.points.all())
    }
}

/// Takes events, stores them, and hands them on.
pub(crate) struct HistorySink {
    estimates: Estimates,
    next: Box<dyn EventSink>,
    /// Rows that are not stored yet, event by event: as many as the engine reports at once.
    pending: Vec<(Table, Vec<Row>)>,
    /// Minutes that are over, and summed up when their last rows are stored.
    minutes: Vec<MinuteOver>,
    metrics: HistoryMetrics,
}

impl HistorySink {
    pub(crate) fn new(
        estimates: Estimates,
        next: Box<dyn EventSink>,
        metrics: HistoryMetrics,
    ) -> Self {
        Self { estimates, next, pending: Vec::new(), minutes: Vec::new(), metrics }
    }

    /// Where estimates are stored.
    pub(crate) fn history(&self) -> Arc<History> {
        Arc::clone(&self.estimates.history)
    }

    /// Takes an event. It is not stored yet.
    pub(crate) fn take(&mut self, event: &EngineEvent) -> io::Result<()> {
        let rows = rows_of(event);
        self.estimates.latest.note(event);
        self.send_live(event, &rows);
        if !rows.is_empty() {
            self.pending.push((Table::Estimates, rows));
        }
        if let EngineEvent::Observed(point) = event {
            let (table, rows, left_out) = point_rows::rows_of(point);
            self.metrics.left_out.inc_by(left_out);
            self.pending.push((table, rows));
        }
        if let EngineEvent::MinuteOver(minute) = event {
            self.minutes.push(minute.clone());
        }
        self.next.take(event)
    }

    /// Stores what was taken, durably. An error is the disk's: to be tried again.
    pub(crate) fn store(&mut self) -> io::Result<()> {
        let was_healthy = self.metrics.is_healthy(Work::Storing);
        let stored = self.store_pending();
        self.metrics.note_health(Work::Storing, stored.is_ok());
        match &stored {
            Ok(()) if !was_healthy => info!("estimates can be stored again"),
            Ok(()) => {}
            Err(problem) => {
                self.metrics.failed.inc();
                if was_healthy {
                    warn!(%problem, "cannot store estimates; retrying");
                }
            }
        }
        stored
    }

    fn store_pending(&mut self) -> io::Result<()> {
        let now = self.estimates.clock.now();
        let mut pending = self.pending.iter();
        let append =
            |(table, rows): &(Table, Vec<Row>)| self.estimates.table(*table).append(rows, now);
        let appended = pending.try_for_each(append);
        let sync = || self.estimates.tables().try_for_each(|history| history.sync());
        appended.and_then(|()| sync()).map_err(io::Error::other)?;
        // Only now: what was not durable is appended again, or found to be there, and synced.
        self.pending.clear();
        Ok(())
    }

    /// Hands on what is stored.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.metrics.copy(&self.estimates);
        self.sum_up()?;
        self.next.flush()
    }

    /// Hands on what the minutes that are over come to.
    fn sum_up(&mut self) -> io::Result<()> {
        for MinuteOver { series, span } in std::mem::take(&mut self.minutes) {
            let rows = self.estimates.history.minute(&series_key(&series), span.start);
            self.next.take_minute(&rows)?;
        }
        Ok(())
    }

    fn send_live(&self, event: &EngineEvent, rows: &[Row]) {
        if self.estimates.live.receiver_count() == 0 {
            return;
        }
        // The last follower may leave meanwhile.
        for row in rows {
            let _ = self.estimates.live.send(LiveEvent::Row(Arc::new(row.clone())));
        }
        if let EngineEvent::Warning(warning) = event {
            let text = Arc::from(warning.text.as_str());
            let _ = self.estimates.live.send(LiveEvent::Warning(warning.kind.name(), text));
        }
    }
}

/// The rows of an event; most kinds of events have none.
fn rows_of(event: &EngineEvent) -> Vec<Row> {
    match event {
        EngineEvent::Estimated(pair) => rows_of_pair(pair),
        // It may be cut otherwise than before, and would count twice.
        EngineEvent::Gap(gap) if gap.is_stored => Vec::new(),
        EngineEvent::Gap(gap) => vec![row_of_gap(gap)],
        _ => Vec::new(),
    }
}

fn rows_of_pair(pair: &PairEstimate) -> Vec<Row> {
    let series = series_key(&pair.series);
    pair.estimates.iter().map(|estimate| row_of_estimate(pair, &series, estimate)).collect()
}

/// The row of one scope of an epoch.
pub(crate) fn row_of_estimate(pair: &PairEstimate, series: &SeriesKey, estimate: &Estimate) -> Row {
    Row {
        realigned_epochs: Some(pair.realigned_epochs),
        moved: Some(pair.moved),
        late_epochs: u64::from(pair.is_late),
        missed_upstream: misses(&pair.upstream),
        missed_downstream: misses(&pair.downstream),
        ..Row::of_epoch(series.clone(), pair.epoch.0, pair.span, estimate)
    }
}

const fn misses(summary: &PointSummary) -> PointMisses {
    PointMisses { dropped: Some(summary.dropped), late: Some(summary.late) }
}

fn row_of_gap(gap: &Gap) -> Row {
    let reason = match &gap.point {
        Some(point) => format!("{point}: {}", gap.reason),
        None => gap.reason.to_string(),
    };
    Row::of_gap(series_key(&gap.series), gap.first.0, gap.span, gap.epochs(), reason)
}

/// A series as the history knows it.
pub(crate) fn series_key(series: &Series) -> SeriesKey {
    SeriesKey {
        upstream: series.segment.upstream.0.clone(),
        downstream: series.segment.downstream.0.clone(),
        class: series.class.clone(),
        algorithm: series.algorithm.to_owned(),
        domain: series.domain.clone(),
        epoch_ns: series.epoch_ns.unwrap_or(0),
    }
}

/// A series as the engine knows it; `None` for an algorithm of another release.
pub(crate) fn series_of(key: &SeriesKey) -> Option<Series> {
    let algorithm = find(Purpose::Delay, &key.algorithm)?;
    let point = |name: &String| PointId(name.clone());
    Some(Series {
        domain: key.domain.clone(),
        segment: Segment { upstream: point(&key.upstream), downstream: point(&key.downstream) },
        class: key.class.clone(),
        algorithm: algorithm.name,
        tag: algorithm.tag,
        epoch_ns: Some(key.epoch_ns).filter(|length_ns| *length_ns > 0),
    })
}

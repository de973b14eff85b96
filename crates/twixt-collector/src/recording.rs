//! Writes estimates down as they are told, so that they can be asked for later.
//!
//! It sits before whoever else takes the engine's events. Rows are durable before it is written
//! down that they were told, and told again after a crash they are stored once. When they cannot
//! be stored, estimating waits: nothing is forgotten because a disk was full for a while.

mod board;
mod keeping;
mod metrics;
mod rows;

pub(crate) use board::{Board, ClockState, PointState};
pub(crate) use keeping::keep;
pub(crate) use metrics::{RecordingMetrics, Work};

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::broadcast;
use tracing::{info, warn};
use twixt_engine::EngineEvent;
use twixt_history::{History, Row};

use crate::clock::Clock;
use crate::estimating::EventSink;
use crate::stop::Stop;

/// Events that a follower may be behind by; then it is told how many it missed.
const LIVE_EVENTS_MAX: usize = 1_024;
/// How long to wait until storing is tried again.
const RETRY: Duration = Duration::from_secs(1);
/// How often it is looked whether to stop, meanwhile.
const RETRY_STEP: Duration = Duration::from_millis(50);

/// What there is to tell followers.
#[derive(Clone, Debug)]
pub(crate) enum Told {
    /// An epoch, or one of which nothing is known.
    Row(Arc<Row>),
    /// Something that the operator should know: its kind, and the text.
    Warning(&'static str, Arc<str>),
}

/// What others may look at while it is written.
#[derive(Clone, Debug)]
pub(crate) struct Recorded {
    pub(crate) history: Arc<History>,
    pub(crate) board: Arc<Board>,
    pub(crate) live: broadcast::Sender<Told>,
    pub(crate) clock: Clock,
}

impl Recorded {
    pub(crate) fn new(history: History, clock: Clock) -> Self {
        let (live, _) = broadcast::channel(LIVE_EVENTS_MAX);
        Self { history: Arc::new(history), board: Arc::default(), live, clock }
    }
}

/// Takes events, stores them, and hands them on.
pub(crate) struct Recording {
    recorded: Recorded,
    next: Box<dyn EventSink>,
    /// Events that are not stored yet: as many as the engine tells at once.
    pending: Vec<Vec<Row>>,
    metrics: RecordingMetrics,
    stop: Stop,
}

impl Recording {
    pub(crate) fn new(
        recorded: Recorded,
        next: Box<dyn EventSink>,
        metrics: RecordingMetrics,
        stop: Stop,
    ) -> Self {
        Self { recorded, next, pending: Vec::new(), metrics, stop }
    }

    fn store(&mut self) -> io::Result<()> {
        let Recorded { history, clock, .. } = &self.recorded;
        let appended = self.pending.iter().try_for_each(|rows| history.append(rows, clock.now()));
        appended.and_then(|()| history.sync()).map_err(io::Error::other)?;
        // Only now: what was not durable is appended again, or found to be there, and synced.
        self.pending.clear();
        Ok(())
    }

    fn tell(&self, event: &EngineEvent, rows: &[Row]) {
        if self.recorded.live.receiver_count() == 0 {
            return;
        }
        // Nobody may be left to hear it.
        for row in rows {
            let _ = self.recorded.live.send(Told::Row(Arc::new(row.clone())));
        }
        if let EngineEvent::Warning(warning) = event {
            let text = Arc::from(warning.text.as_str());
            let _ = self.recorded.live.send(Told::Warning(warning.kind.name(), text));
        }
    }
}

impl EventSink for Recording {
    fn take(&mut self, event: &EngineEvent) -> io::Result<()> {
        let rows = rows::of(event);
        self.recorded.board.note(event);
        self.tell(event, &rows);
        if !rows.is_empty() {
            self.pending.push(rows);
        }
        self.next.take(event)
    }

    /// Waits for a disk that is full; gives up when the collector is to stop, and then nothing says
    /// that these events were told.
    fn flush(&mut self) -> io::Result<()> {
        let mut is_failing = false;
        while let Err(problem) = self.store() {
            self.metrics.failed.inc();
            self.metrics.note_health(Work::Storing, false);
            if !is_failing {
                warn!(%problem, "estimates cannot be stored; trying again");
            }
            is_failing = true;
            let mut waited = Duration::ZERO;
            while waited < RETRY {
                if self.stop.is_requested() {
                    return Err(problem);
                }
                std::thread::sleep(RETRY_STEP);
                waited += RETRY_STEP;
            }
        }
        if is_failing {
            info!("estimates can be stored again");
        }
        self.metrics.note_health(Work::Storing, true);
        self.metrics.copy(self.recorded.history.counts());
        self.next.flush()
    }
}

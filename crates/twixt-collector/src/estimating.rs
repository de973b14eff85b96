//! Runs the engine: hands stored epochs and the time to it, hands its events on, and writes down
//! how far it came.
//!
//! One thread, or whoever steps it. Epochs were made durable before they come here, so nothing is lost
//! if this is stopped at any moment: the next start reads from the log what was not concluded.
//! While estimates cannot be stored, it waits: a disk that is full for a while loses nothing.
//!
//! Events are handed on *before* it counts that they were, so after a crash the last ones may be
//! repeated, never left out. The time in between is as short as it can be without knowing
//! who reads: how far estimates will have come is written to the disk first, then the events go out
//! in one piece, and then the file takes its place, which is one system call. What was not out by
//! then is published by the next start, identically.

mod catching_up;
mod late;
mod metrics;
mod needs;
mod progress;
mod replay;
mod starting;

pub(crate) use metrics::EstimatingMetrics;
pub(crate) use progress::ProgressFile;

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::iter;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use tracing::warn;
use twixt_engine::{Engine, EngineConfig, EngineEvent, SegmentConfig, Series, SeriesProgress};
use twixt_history::Row;
use twixt_model::{Epoch, Segment};
use twixt_store::Log;

use crate::clock::WallClock;
use crate::history::HistorySink;
use crate::journal::StoredEpoch;
use crate::log_limit::LogLimit;
use crate::stop::StopRequest;
use catching_up::CatchingUp;
use late::LatePairing;
use progress::Prepared;
use replay::Replay;

/// Stored epochs that wait to be estimated; then storing waits.
pub(crate) const EPOCHS_WAITING_MAX: usize = 1_024;
/// How often the engine is given the time.
const TICK: Duration = Duration::from_millis(200);
/// How often it is looked what is known of clocks, and at most one part in so many of the time.
const CLOCKS_EVERY: Duration = Duration::from_secs(10);
const CLOCKS_SHARE: u32 = 50;
/// How long to gather what is to be published, at least: making it durable costs the same for one
/// epoch as for many, and more the more series there are.
const PUBLISH_EVERY: Duration = Duration::from_millis(100);
/// How long epochs that came late are paired at a time: those of the present wait meanwhile.
const LATE_SLICE: Duration = Duration::from_millis(250);
/// Epochs taken at a time.
const BATCH_MAX: usize = 256;
/// Time until storing estimates is tried again.
const RETRY: Duration = Duration::from_secs(1);
/// How often to look meanwhile whether to stop.
const RETRY_STEP: Duration = Duration::from_millis(50);

/// Takes the engine's events.
pub trait EventSink: Send {
    /// Takes an event.
    ///
    /// # Errors
    /// When it cannot be handed on, ever: the collector stops then.
    fn take(&mut self, event: &EngineEvent) -> io::Result<()>;

    /// Nothing more comes for a while: what was taken must be out when this returns, and best all
    /// at once. What goes out earlier is repeated if the collector is killed before this returns.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    fn flush(&mut self) -> io::Result<()>;

    /// Takes what a minute of a series comes to, a row for each scope. Most do not need it: minutes
    /// are stored with the epochs.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    fn take_minute(&mut self, _rows: &[Row]) -> io::Result<()> {
        Ok(())
    }
}

/// For collectors that print nothing: metrics, the API and the history have everything.
impl EventSink for io::Sink {
    fn take(&mut self, _: &EngineEvent) -> io::Result<()> {
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What the thread that estimates works with.
pub(crate) struct EstimatingConfig {
    pub(crate) engine: EngineConfig,
    /// Raw epochs.
    pub(crate) log: Log,
    pub(crate) file: ProgressFile,
    /// How long points are waited for after a start.
    pub(crate) resume_wait: Duration,
    pub(crate) clock: WallClock,
}

/// Estimates, step by step.
pub(crate) struct Estimating {
    log: Log,
    file: ProgressFile,
    resume_wait: Duration,
    /// Those that the operator named.
    segments: Vec<SegmentConfig>,
    clock: WallClock,
    metrics: EstimatingMetrics,
    sink: HistorySink,
    engine: Engine,
    stage: Stage,
    /// Events that the sink took, and that are not stored yet. Nothing else is done meanwhile.
    unstored: Option<Unstored>,
    /// While epochs are replayed: from which on each series will need them again if the replay
    /// does not come to its end, and what was learnt of delays before.
    needed: BTreeMap<Series, (Epoch, u64)>,
    late: LatePairing,
    /// There is more to pair than was paired at a time.
    has_late: bool,
    /// Epochs that came late, as far as they were counted.
    late_epochs: u64,
    late_warning: LogLimit,
    late_problem: LogLimit,
    read_problem: LogLimit,
}

/// How far it came since the start.
enum Stage {
    /// Points that were there before are waited for: epochs that come meanwhile are in the log, from
    /// which they are read in order of time afterwards.
    Waiting { progress: Vec<SeriesProgress>, points: CatchingUp, until: Instant },
    /// What the log has and the engine still needs is handed over.
    Replaying { replay: Replay, progress: Vec<SeriesProgress>, retry_at: Instant },
    /// Epochs are handed over as they come.
    Following(Pace),
}

/// When what is done next.
struct Pace {
    /// Points that are behind after a start. As long as they are waited for, the engine is not told
    /// the time: epochs that are late because of us must not be given up.
    behind: CatchingUp,
    patient_until: Instant,
    ticked: Instant,
    publish_after: Instant,
    look_after: Instant,
}

/// What is to be done when events are stored.
struct Unstored {
    prepared: io::Result<Prepared>,
    problem: io::Error,
    retry_at: Instant,
}

impl Estimating {
    /// Begins where the last run ended.
    pub(crate) fn new(
        config: EstimatingConfig,
        metrics: EstimatingMetrics,
        sink: HistorySink,
    ) -> Self {
        let EstimatingConfig { engine, log, file, resume_wait, clock } = config;
        let mut progress = file.read();
        retain_wanted(&engine, &mut progress);
        let points = CatchingUp::of(&progress);
        let until =
            clock.instant() + if progress.is_empty() { Duration::ZERO } else { resume_wait };
        Self {
            late: LatePairing::new(log.clone(), sink.history(), engine.by),
            segments: engine.segments.clone(),
            engine: Engine::resume(engine, progress.clone()),
            stage: Stage::Waiting { progress, points, until },
            log,
            file,
            resume_wait,
            clock,
            metrics,
            sink,
            unstored: None,
            needed: BTreeMap::new(),
            has_late: false,
            late_epochs: 0,
            late_warning: LogLimit::default(),
            late_problem: LogLimit::default(),
            read_problem: LogLimit::default(),
        }
    }

    /// Estimates until no one is left who could store anything, or estimates cannot be stored and the
    /// collector is to stop. The next start then reports these events again.
    pub(crate) fn run(
        mut self,
        stored: &Receiver<StoredEpoch>,
        stop: &StopRequest,
    ) -> io::Result<()> {
        loop {
            let wait = self.wait();
            if !self.takes_epochs() {
                if stop.is_requested() && (self.unstored.is_some() || !self.metrics.is_readable()) {
                    return self.finish();
                }
                std::thread::sleep(wait.min(RETRY_STEP));
                self.step(iter::empty())?;
                continue;
            }
            match stored.recv_timeout(wait) {
                Ok(first) => {
                    self.step(iter::once(first).chain(stored.try_iter().take(BATCH_MAX)))?;
                }
                Err(RecvTimeoutError::Timeout) => self.step(iter::empty())?,
                Err(RecvTimeoutError::Disconnected) => return self.finish(),
            }
        }
    }

    /// How long the next step may wait for epochs.
    fn wait(&self) -> Duration {
        let until = match (&self.unstored, &self.stage) {
            (Some(unstored), _) => unstored.retry_at,
            (None, Stage::Waiting { until, .. }) => *until,
            (None, Stage::Replaying { retry_at, .. }) => *retry_at,
            (None, Stage::Following(pace)) if self.has_late => pace.publish_after,
            (None, Stage::Following(_)) => return TICK,
        };
        until.saturating_duration_since(self.clock.instant())
    }

    /// Whether the next step takes epochs. Otherwise they wait, and then storing waits.
    pub(crate) const fn takes_epochs(&self) -> bool {
        self.unstored.is_none() && !matches!(self.stage, Stage::Replaying { .. })
    }

    /// Takes epochs that came, if it does now, and does what is due.
    pub(crate) fn step(&mut self, came: impl Iterator<Item = StoredEpoch>) -> io::Result<()> {
        if let Some(unstored) = &self.unstored {
            let is_due = self.clock.instant() >= unstored.retry_at;
            return if is_due { self.store() } else { Ok(()) };
        }
        match &mut self.stage {
            Stage::Waiting { points, .. } => {
                let now = self.clock.now();
                for StoredEpoch { sealed, .. } in came {
                    points.note(&sealed, now);
                    self.engine.note_stored(&sealed);
                }
                self.begin_when_due();
                Ok(())
            }
            Stage::Replaying { .. } => self.replay(),
            Stage::Following(_) => self.follow(came),
        }
    }

    /// Nothing more comes: hands on what there is to tell.
    fn finish(mut self) -> io::Result<()> {
        if self.unstored.is_none() && matches!(self.stage, Stage::Following(_)) {
            self.tell()?;
        }
        self.unstored.map_or(Ok(()), |unstored| Err(unstored.problem))
    }

    /// Hands over epochs as they come, and does what is due.
    fn follow(&mut self, came: impl Iterator<Item = StoredEpoch>) -> io::Result<()> {
        let Stage::Following(pace) = &mut self.stage else { return Ok(()) };
        let now = self.clock.now();
        for StoredEpoch { sealed, memory } in came {
            pace.behind.note(&sealed, now);
            self.engine.receive(sealed);
            drop(memory);
        }
        let instant = self.clock.instant();
        if instant.saturating_duration_since(pace.ticked) >= TICK {
            pace.ticked = instant;
            if pace.behind.is_over() || instant >= pace.patient_until {
                self.engine.advance(now);
            }
        }
        if instant >= pace.look_after {
            self.metrics.segments.note_clocks(&self.engine.clocks());
            let took = self.clock.instant().saturating_duration_since(instant);
            pace.look_after = self.clock.instant() + CLOCKS_EVERY.max(took * CLOCKS_SHARE);
        }
        if instant >= pace.publish_after { self.tell_all() } else { Ok(()) }
    }

    /// Hands on what there is to tell, of epochs that came in time and late.
    fn tell_all(&mut self) -> io::Result<()> {
        let started = self.clock.instant();
        self.tell()?;
        let published = self.clock.instant();
        if let Stage::Following(pace) = &mut self.stage {
            // A slow disk takes half of the time at most.
            let took = published.saturating_duration_since(started);
            pace.publish_after = published + took.max(PUBLISH_EVERY);
        }
        self.has_late = false;
        while self.unstored.is_none() && self.pair_late()? {
            if self.clock.instant().saturating_duration_since(published) >= LATE_SLICE {
                self.has_late = true;
                break;
            }
        }
        Ok(())
    }

    /// Publishes what is ready, and records that it was published; whether there was
    /// anything.
    fn tell(&mut self) -> io::Result<bool> {
        let events: Vec<EngineEvent> = iter::from_fn(|| self.engine.poll()).collect();
        self.metrics.copy(&self.engine);
        let came_late = self.note_late(self.engine.counts().late);
        if events.is_empty() && !came_late {
            return Ok(false);
        }
        self.report(&events)?;
        Ok(true)
    }

    /// Estimates epochs whose half came late, a part of them; whether there were any.
    fn pair_late(&mut self) -> io::Result<bool> {
        let now = self.clock.instant();
        let Some(work) = self.late.next(self.engine.late(), now) else { return Ok(false) };
        match self.late.pair(&work) {
            Ok(estimates) => {
                self.metrics.estimated_late.inc_by(estimates.len() as u64);
                self.engine.settle_late(&work.series, work.range);
                let events: Vec<EngineEvent> = estimates
                    .into_iter()
                    .map(|estimate| EngineEvent::Estimated(Box::new(estimate)))
                    .collect();
                self.report(&events)?;
                Ok(true)
            }
            // They stay noted, and are tried again.
            Err(problem) => {
                if let Some(times) = self.late_problem.note(1, now) {
                    warn!(%problem, times, "cannot pair late epochs; retrying");
                }
                Ok(false)
            }
        }
    }

    /// Hands events on, and then writes down that they are out.
    fn report(&mut self, events: &[EngineEvent]) -> io::Result<()> {
        let prepared = self.prepare();
        for event in events {
            if let EngineEvent::Warning(warning) = event {
                let (kind, text) = (warning.kind.name(), &warning.text);
                warn!(kind, "{text}");
            }
            self.metrics.count(event);
            self.sink.take(event)?;
        }
        let problem = io::ErrorKind::WouldBlock.into();
        self.unstored = Some(Unstored { prepared, problem, retry_at: self.clock.instant() });
        self.store()
    }

    /// Stores what was handed on. If that is not possible now, it is tried again later.
    fn store(&mut self) -> io::Result<()> {
        let stored = self.sink.store();
        let Some(mut unstored) = self.unstored.take() else { return Ok(()) };
        if let Err(problem) = stored {
            unstored.problem = problem;
            unstored.retry_at = self.clock.instant() + RETRY;
            self.unstored = Some(unstored);
            return Ok(());
        }
        self.sink.flush()?;
        self.take_place(unstored.prepared);
        Ok(())
    }

    /// Logs that epochs came late; whether any did.
    fn note_late(&mut self, late: u64) -> bool {
        let more = late.saturating_sub(std::mem::replace(&mut self.late_epochs, late));
        if let Some(epochs) = self.late_warning.note(more, self.clock.instant()) {
            warn!(
                epochs,
                "epochs arrived after they were given up; they are paired from the store: a clock \
                 was set back, or an agent was disconnected"
            );
        }
        more > 0
    }

    /// Writes down how far the engine came, beside what is written.
    fn prepare(&self) -> io::Result<Prepared> {
        let mut progress = self.engine.progress();
        for progress in &mut progress {
            if let Some(&(needed, short_delays)) = self.needed.get(&progress.series)
                && needed < progress.replay_from
            {
                (progress.replay_from, progress.short_delays) = (needed, short_delays);
            }
        }
        self.file.prepare(&progress)
    }

    /// All is out: what was prepared holds. If that fails, more is repeated after a crash.
    fn take_place(&self, prepared: io::Result<Prepared>) {
        if let Err(problem) = prepared.and_then(Prepared::take_place) {
            self.metrics.unwritten.inc();
            warn!(%problem, "cannot save the progress of estimating");
        }
    }
}

/// Leaves out what is no longer to be estimated: the configuration may be another one now.
fn retain_wanted(config: &EngineConfig, progress: &mut Vec<SeriesProgress>) {
    let named: HashSet<(&Segment, Option<&str>)> =
        config.segments.iter().map(|of| (&of.segment, of.class.as_deref())).collect();
    progress.retain(|SeriesProgress { series: Series { segment, class, .. }, .. }| {
        config.discover
            || segment.upstream == segment.downstream
            || named.contains(&(segment, None))
            || named.contains(&(segment, Some(class)))
    });
}

#[cfg(test)]
mod tests;

//! Runs the engine: hands stored epochs and the time to it, hands its events on, and writes down
//! how far it came.
//!
//! One thread. Epochs were made durable before they come here, so nothing is lost if this is
//! stopped at any moment: the next start reads from the log what was not concluded.
//!
//! Events are handed on *before* it counts that they were, so after a crash the last ones may be
//! told again, never left out. The moment in between is as short as it can be made without knowing
//! who reads: how far estimates will have come is written to the disk first, then the events go out
//! in one piece, and then the file takes its place, which is one system call. What was not out by
//! then is told by the next start, and the same to the letter.

mod catching_up;
mod late;
mod metrics;
mod progress;
mod replay;

pub(crate) use metrics::EstimatingMetrics;
pub(crate) use progress::ProgressFile;

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::iter;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use tracing::{info, warn};
use twixt_engine::{Engine, EngineConfig, EngineEvent, Series, SeriesProgress};
use twixt_history::{History, Row};
use twixt_model::{Epoch, Segment};
use twixt_store::Log;

use crate::clock::WallClock;
use crate::journal::StoredEpoch;
use crate::log_limit::LogLimit;
use catching_up::CatchingUp;
use late::LatePairing;
use progress::Prepared;

/// Stored epochs that wait to be estimated; then storing waits.
pub(crate) const EPOCHS_WAITING_MAX: usize = 1_024;
/// How often the engine is told the time.
const TICK: Duration = Duration::from_millis(200);
/// How often it is looked what is known of clocks, and at most one part in so many of the time.
const CLOCKS_EVERY: Duration = Duration::from_secs(10);
const CLOCKS_SHARE: u32 = 50;
/// How long to gather what there is to tell, at least: making it durable costs the same for one
/// epoch as for many, and more the more series there are.
const TELL_EVERY: Duration = Duration::from_millis(100);
/// Epochs taken at a time.
const BATCH_MAX: usize = 256;

/// Takes what the engine tells.
pub trait EventSink: Send {
    /// Takes an event.
    ///
    /// # Errors
    /// When it cannot be handed on, ever: the collector stops then.
    fn take(&mut self, event: &EngineEvent) -> io::Result<()>;

    /// Nothing more comes for a while: what was taken must be out when this returns, and best all
    /// at once. What goes out earlier is told again if the collector is killed before this returns.
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

/// What the thread that estimates works with.
pub(crate) struct EstimatingConfig {
    pub(crate) engine: EngineConfig,
    /// Raw epochs.
    pub(crate) log: Log,
    pub(crate) file: ProgressFile,
    pub(crate) history: Arc<History>,
    /// How long points are waited for after a start.
    pub(crate) resume_wait: Duration,
    pub(crate) clock: WallClock,
}

/// The thread that estimates.
pub(crate) struct Estimating {
    config: EngineConfig,
    log: Log,
    file: ProgressFile,
    resume_wait: Duration,
    clock: WallClock,
    metrics: EstimatingMetrics,
    sink: Box<dyn EventSink>,
    /// While epochs are replayed: from which on each series will need them again if the replay
    /// does not come to its end, and what was learnt of delays before.
    needed: BTreeMap<Series, (Epoch, u64)>,
    late: LatePairing,
    /// Epochs that came late, as far as they were counted.
    late_epochs: u64,
    late_warning: LogLimit,
    late_problem: LogLimit,
}

impl Estimating {
    pub(crate) fn new(
        config: EstimatingConfig,
        metrics: EstimatingMetrics,
        sink: Box<dyn EventSink>,
    ) -> Self {
        let EstimatingConfig { engine, log, file, history, resume_wait, clock } = config;
        Self {
            late: LatePairing::new(log.clone(), history, engine.by),
            config: engine,
            log,
            file,
            resume_wait,
            clock,
            metrics,
            sink,
            needed: BTreeMap::new(),
            late_epochs: 0,
            late_warning: LogLimit::default(),
            late_problem: LogLimit::default(),
        }
    }

    /// Estimates until nobody is left who could store anything.
    pub(crate) fn run(mut self, stored: &Receiver<StoredEpoch>) -> io::Result<()> {
        let mut progress = self.file.read();
        self.retain_wanted(&mut progress);
        let resumes = !progress.is_empty();
        if resumes && !self.wait_for_points(CatchingUp::of(&progress), stored) {
            return Ok(());
        }
        let mut engine = Engine::resume(self.config.clone(), progress.clone());
        self.note_gaps(&mut engine, &progress);
        self.replay(&mut engine, &progress)?;
        // Meanwhile points had to wait, and are behind again.
        self.follow(&mut engine, stored, CatchingUp::of(&progress))
    }

    /// Has the engine remember gaps whose halves may both be stored by now.
    fn note_gaps(&self, engine: &mut Engine, progress: &[SeriesProgress]) {
        match self.late.gaps(progress) {
            Ok(gaps) => {
                gaps.iter().for_each(|late| engine.note_late(&late.series, late.range));
            }
            Err(problem) => warn!(%problem, "cannot search for gaps to close"),
        }
    }

    /// Hands over what the log has and the engine still needs.
    fn replay(&mut self, engine: &mut Engine, progress: &[SeriesProgress]) -> io::Result<()> {
        let needed = |progress: &SeriesProgress| {
            (progress.series.clone(), (progress.replay_from, progress.short_delays))
        };
        self.needed = progress.iter().map(needed).collect();
        let (log, now) = (self.log.clone(), self.clock.now());
        let mut received = 0;
        let replayed = replay::replay(&log, progress, now, |sealed| {
            engine.receive(sealed);
            received += 1;
            if received % BATCH_MAX == 0 {
                self.tell(engine)?;
            }
            Ok(())
        })?;
        self.needed.clear();
        self.metrics.replayed.inc_by(replayed);
        if replayed > 0 {
            info!(epochs = replayed, "replayed");
        }
        if !self.tell(engine)? {
            self.take_place(self.prepare(engine));
        }
        Ok(())
    }

    /// Leaves what is no longer to be estimated: the configuration may be another one now.
    fn retain_wanted(&self, progress: &mut Vec<SeriesProgress>) {
        let named: HashSet<(&Segment, Option<&str>)> =
            self.config.segments.iter().map(|of| (&of.segment, of.class.as_deref())).collect();
        progress.retain(|SeriesProgress { series: Series { segment, class, .. }, .. }| {
            self.config.discover
                || segment.upstream == segment.downstream
                || named.contains(&(segment, None))
                || named.contains(&(segment, Some(class)))
        });
    }

    /// After a start, waits until the points that were there before have caught up: epochs that
    /// come meanwhile are in the log, from which they are read in order of time afterwards.
    /// Returns whether to go on.
    fn wait_for_points(&self, mut waiting: CatchingUp, stored: &Receiver<StoredEpoch>) -> bool {
        let until = Instant::now() + self.resume_wait;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || waiting.is_over() {
                return true;
            }
            match stored.recv_timeout(left) {
                Ok(epoch) => waiting.note(&epoch.sealed, self.clock.now()),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return false,
            }
        }
    }

    /// Hands over epochs as they come. While points are `behind`, and for as long as they are waited
    /// for, the engine is not told the time: who comes late because of us has not lost patience.
    fn follow(
        &mut self,
        engine: &mut Engine,
        stored: &Receiver<StoredEpoch>,
        mut behind: CatchingUp,
    ) -> io::Result<()> {
        let mut ticked = Instant::now();
        let patient_until = ticked + self.resume_wait;
        let (mut tell_after, mut look_after) = (ticked, ticked);
        loop {
            let is_over = match stored.recv_timeout(TICK) {
                Ok(first) => {
                    let now = self.clock.now();
                    let epochs = iter::once(first).chain(stored.try_iter().take(BATCH_MAX));
                    for StoredEpoch { sealed, memory } in epochs {
                        behind.note(&sealed, now);
                        engine.receive(sealed);
                        drop(memory);
                    }
                    false
                }
                Err(RecvTimeoutError::Timeout) => false,
                Err(RecvTimeoutError::Disconnected) => true,
            };
            if !is_over && ticked.elapsed() >= TICK {
                ticked = Instant::now();
                if behind.is_over() || ticked >= patient_until {
                    engine.advance(self.clock.now());
                }
            }
            if ticked >= look_after {
                let started = Instant::now();
                self.metrics.segments.note_clocks(&engine.clocks());
                look_after = Instant::now() + CLOCKS_EVERY.max(started.elapsed() * CLOCKS_SHARE);
            }
            if is_over || Instant::now() >= tell_after {
                let started = Instant::now();
                self.tell(engine)?;
                if !is_over {
                    self.pair_late(engine)?;
                }
                // A slow disk takes half of the time at most.
                tell_after = Instant::now() + started.elapsed().max(TELL_EVERY);
            }
            if is_over {
                return Ok(());
            }
        }
    }

    /// Hands on what there is to tell, and writes down that it was told; whether there was
    /// anything.
    fn tell(&mut self, engine: &mut Engine) -> io::Result<bool> {
        let events: Vec<EngineEvent> = std::iter::from_fn(|| engine.poll()).collect();
        self.metrics.copy(engine);
        let came_late = self.note_late(engine.counts().late);
        if events.is_empty() && !came_late {
            return Ok(false);
        }
        self.report(engine, &events)?;
        Ok(true)
    }

    /// Estimates epochs whose half came late, a part of them.
    fn pair_late(&mut self, engine: &mut Engine) -> io::Result<()> {
        let Some(work) = self.late.next(engine.late(), Instant::now()) else { return Ok(()) };
        match self.late.pair(&work) {
            Ok(estimates) => {
                self.metrics.estimated_late.inc_by(estimates.len() as u64);
                engine.settle_late(&work.series, work.range);
                let events: Vec<EngineEvent> = estimates
                    .into_iter()
                    .map(|estimate| EngineEvent::Estimated(Box::new(estimate)))
                    .collect();
                self.report(engine, &events)
            }
            // They stay noted, and are tried again.
            Err(problem) => {
                if let Some(times) = self.late_problem.note(1, Instant::now()) {
                    warn!(%problem, times, "cannot pair late epochs; retrying");
                }
                Ok(())
            }
        }
    }

    /// Hands events on, and then writes down that they are out.
    fn report(&mut self, engine: &Engine, events: &[EngineEvent]) -> io::Result<()> {
        let prepared = self.prepare(engine);
        for event in events {
            if let EngineEvent::Warning(warning) = event {
                let (kind, text) = (warning.kind.name(), &warning.text);
                warn!(kind, "{text}");
            }
            self.metrics.count(event);
            self.sink.take(event)?;
        }
        self.sink.flush()?;
        self.take_place(prepared);
        Ok(())
    }

    /// Logs that epochs came late; whether any did.
    fn note_late(&mut self, late: u64) -> bool {
        let more = late.saturating_sub(std::mem::replace(&mut self.late_epochs, late));
        if let Some(epochs) = self.late_warning.note(more, Instant::now()) {
            warn!(
                epochs,
                "epochs arrived after they were given up; they are paired from the store: a clock \
                 was set back, or an agent was disconnected"
            );
        }
        more > 0
    }

    /// Writes down how far the engine came, beside what is written.
    fn prepare(&self, engine: &Engine) -> io::Result<Prepared> {
        let mut progress = engine.progress();
        for progress in &mut progress {
            if let Some(&(needed, short_delays)) = self.needed.get(&progress.series)
                && needed < progress.replay_from
            {
                (progress.replay_from, progress.short_delays) = (needed, short_delays);
            }
        }
        self.file.prepare(&progress)
    }

    /// All is out: what was prepared holds. If that fails, more is told again after a crash.
    fn take_place(&self, prepared: io::Result<Prepared>) {
        if let Err(problem) = prepared.and_then(Prepared::take_place) {
            self.metrics.unwritten.inc();
            warn!(%problem, "cannot save the progress of estimating");
        }
    }
}

#[cfg(test)]
mod tests;

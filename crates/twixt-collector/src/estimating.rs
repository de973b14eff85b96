//! Runs the engine: hands stored epochs and the time to it, hands its events on, and writes down
//! how far it came.
//!
//! One thread. Epochs were made durable before they come here, so nothing is lost if this is
//! stopped at any moment: the next start reads from the log what was not concluded. Events are
//! handed on *before* it is written down that they were, so after a crash the last ones may be
//! told again, never left out.

mod concluded;
mod metrics;
mod replay;
mod waiting;

pub(crate) use concluded::ConcludedFile;
pub(crate) use metrics::EstimatingMetrics;

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use tracing::{info, warn};
use twixt_measure::Sealed;
use twixt_store::Log;

use crate::clock;
use crate::engine::{Engine, EngineConfig, EngineEvent, Series};
use waiting::Waiting;

/// Stored epochs that wait to be estimated; then storing waits.
pub(crate) const EPOCHS_WAITING_MAX: usize = 1_024;
/// How often the engine is told the time.
const TICK: Duration = Duration::from_millis(200);
/// Epochs taken between two tellings.
const BATCH_MAX: usize = 256;

/// Takes what the engine tells.
pub trait EventSink: Send {
    /// Takes an event.
    ///
    /// # Errors
    /// When it cannot be handed on, ever: the collector stops then.
    fn take(&mut self, event: &EngineEvent) -> io::Result<()>;

    /// Nothing more comes for a while: what was taken must be out when this returns.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    fn flush(&mut self) -> io::Result<()>;
}

/// The thread that estimates.
pub(crate) struct Estimating {
    config: EngineConfig,
    log: Log,
    file: ConcludedFile,
    resume_wait: Duration,
    metrics: EstimatingMetrics,
    sink: Box<dyn EventSink>,
}

impl Estimating {
    pub(crate) fn new(
        config: EngineConfig,
        log: Log,
        file: ConcludedFile,
        resume_wait: Duration,
        metrics: EstimatingMetrics,
        sink: Box<dyn EventSink>,
    ) -> Self {
        Self { config, log, file, resume_wait, metrics, sink }
    }

    /// Estimates until nobody is left who could store anything.
    pub(crate) fn run(mut self, stored: &Receiver<Sealed>) -> io::Result<()> {
        let mut concluded = self.file.read();
        concluded.retain(|concluded| self.is_wanted(&concluded.series));
        let resumes = !concluded.is_empty();
        if resumes && !self.wait_for_points(Waiting::of(&concluded), stored) {
            return Ok(());
        }
        let mut engine = Engine::resume(self.config.clone(), concluded.clone());
        let (log, now) = (self.log.clone(), clock::now());
        let replayed = replay::replay(&log, &concluded, now, |sealed| {
            engine.receive(sealed);
            self.tell(&mut engine).map(drop)
        })?;
        self.metrics.replayed.inc_by(replayed);
        if replayed > 0 {
            info!(epochs = replayed, "replayed");
        }
        self.conclude(&engine);
        self.follow(&mut engine, stored)
    }

    /// Whether a series is still to be estimated: the configuration may be another one now.
    fn is_wanted(&self, series: &Series) -> bool {
        let Series { segment, class, .. } = series;
        let is_named = self.config.segments.iter().any(|named| {
            named.segment == *segment && named.class.as_ref().is_none_or(|named| named == class)
        });
        self.config.discover || segment.upstream == segment.downstream || is_named
    }

    /// After a start, waits until the points that were there before have caught up: epochs that
    /// come meanwhile are in the log, from which they are read in order of time afterwards.
    /// Returns whether to go on.
    fn wait_for_points(&self, mut waiting: Waiting, stored: &Receiver<Sealed>) -> bool {
        let until = Instant::now() + self.resume_wait;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || waiting.is_over() {
                return true;
            }
            match stored.recv_timeout(left) {
                Ok(sealed) => waiting.note(&sealed, clock::now()),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return false,
            }
        }
    }

    fn follow(&mut self, engine: &mut Engine, stored: &Receiver<Sealed>) -> io::Result<()> {
        let mut ticked = Instant::now();
        let mut write_after = ticked;
        let mut told = false;
        loop {
            let is_over = match stored.recv_timeout(TICK) {
                Ok(first) => {
                    engine.receive(first);
                    stored.try_iter().take(BATCH_MAX).for_each(|sealed| engine.receive(sealed));
                    false
                }
                Err(RecvTimeoutError::Timeout) => false,
                Err(RecvTimeoutError::Disconnected) => true,
            };
            if !is_over && ticked.elapsed() >= TICK {
                engine.advance(clock::now());
                ticked = Instant::now();
            }
            told |= self.tell(engine)?;
            if told && (is_over || Instant::now() >= write_after) {
                let started = Instant::now();
                self.conclude(engine);
                told = false;
                // A slow disk takes half of the time at most.
                write_after = Instant::now() + started.elapsed();
            }
            if is_over {
                return Ok(());
            }
        }
    }

    /// Hands on what there is to tell; whether there was anything.
    fn tell(&mut self, engine: &mut Engine) -> io::Result<bool> {
        let mut told = false;
        while let Some(event) = engine.poll() {
            if let EngineEvent::Warning(warning) = &event {
                let (kind, text) = (warning.kind.name(), &warning.text);
                warn!(kind, "{text}");
            }
            self.metrics.count(&event);
            self.sink.take(&event)?;
            told = true;
        }
        if told {
            self.sink.flush()?;
        }
        self.metrics.copy(engine.counts());
        Ok(told)
    }

    /// Writes down how far the engine came. If that fails, more is told again after a crash.
    fn conclude(&self, engine: &Engine) {
        if let Err(problem) = self.file.write(&engine.concluded()) {
            self.metrics.unwritten.inc();
            warn!(%problem, "cannot write down how far estimates came");
        }
    }
}

//! One thread of a point: reads its interface and hands on what is sealed. Waits only for the
//! kernel.

use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError};
use std::time::{Duration, Instant};

use twixt_capture::{BatchEnd, LiveCounts, LiveEnding, SourceCounts, Stop};
use twixt_model::{Delay, Span, TimeSource, Timestamp};
use twixt_observe::{PointShare, SealedPart};

use crate::frames::LiveFrames;
use crate::metrics::PointMetrics;
use crate::steps::{Clocks, PointClock};

/// How often to look whether an interface is back.
const REOPEN_EVERY: Duration = Duration::from_millis(200);
/// A frame whose time is further ahead of the clock was stamped by another one, or the clock was
/// set since.
const AHEAD_MAX: Delay = Delay::from_nanos(2_000_000_000);

/// One thread of a point.
pub(crate) struct Watch<S, C> {
    /// Index of the point.
    pub(crate) point: usize,
    pub(crate) name: String,
    pub(crate) source: S,
    pub(crate) share: PointShare,
    pub(crate) clock: Arc<PointClock<C>>,
    pub(crate) stop: Stop,
    pub(crate) out: SyncSender<(usize, SealedPart)>,
    pub(crate) metrics: PointMetrics,
    pub(crate) seen: ReportedSoFar,
}

/// What the metrics include so far.
#[derive(Debug, Default)]
pub(crate) struct ReportedSoFar {
    /// Frames with a time of another clock.
    other_clock: u64,
    counts: SourceCounts,
    live: LiveCounts,
    packets: u64,
    late: u64,
    /// Time of the last frame.
    last: Option<Timestamp>,
    /// Observing begins with the next frame: its clock cannot be read otherwise.
    begins_with_frame: bool,
}

impl ReportedSoFar {
    /// Nothing, by a clock that can be read or by another one.
    pub(crate) fn nothing(by: TimeSource) -> Self {
        Self { begins_with_frame: by != TimeSource::Kernel, ..Self::default() }
    }
}

/// What a batch brought.
struct FramesRead {
    /// The time before it was asked for.
    asked: Timestamp,
    end: Option<BatchEnd>,
    /// Time of its last frame, if it had one.
    last: Option<Timestamp>,
}

impl<S: LiveFrames, C: Clocks> Watch<S, C> {
    /// Until asked to stop.
    pub(crate) fn run(mut self) {
        self.capture_again();
        while self.step() {}
    }

    /// Takes a block of frames, or waits for an interface that is gone. `false` once told to stop:
    /// all is sealed then.
    pub(crate) fn step(&mut self) -> bool {
        // What was sent by then is seen; what comes while the source ends may not be.
        let before = self.time_now();
        let batch = self.read_batch(before);
        self.tell(&batch);
        let goes_on = match batch.end {
            Some(BatchEnd::More) => true,
            Some(BatchEnd::End) if self.source.ending() == Some(LiveEnding::Stopped) => false,
            _ => self.wait_for_interface(before),
        };
        if !goes_on {
            self.finish(before);
        }
        goes_on
    }

    #[inline]
    fn read_batch(&mut self, asked: Timestamp) -> FramesRead {
        let expected = self.source.time_source();
        let (share, clock, mut other_clock) = (&mut self.share, &self.clock, 0_u64);
        let mut started = None;
        let (mut first, mut last) = (None, None);
        let mut latest = Timestamp::MAX;
        let end = self.source.read_batch(|frame| {
            if started.is_none() {
                started = Some(Instant::now());
                if expected == TimeSource::Kernel {
                    latest = clock.now() + AHEAD_MAX;
                }
            }
            // Two clocks differ by anything up to years: one of them only.
            if frame.time_source == expected && frame.time <= latest {
                first.get_or_insert(frame.time);
                last = Some(frame.time);
                share.take(&frame);
            } else {
                other_clock += 1;
            }
        });
        if let Some(started) = started {
            self.metrics.busy.inc_by(started.elapsed().as_secs_f64());
        }
        self.seen.other_clock += other_clock;
        self.seen.last = last.or(self.seen.last);
        if let Some(first) = first.filter(|_| self.seen.begins_with_frame) {
            self.share.regain(first);
            self.seen.begins_with_frame = false;
        }
        let failed = |error| tracing::warn!(point = self.name, %error, "capturing failed");
        FramesRead { asked, end: end.map_err(failed).ok(), last }
    }

    /// After a batch: counts, the clock, and what is sealed.
    fn tell(&mut self, batch: &FramesRead) {
        let counts =
            SourceCounts { skipped_without_time: self.seen.other_clock, ..self.source.counts() };
        self.metrics.count_skipped(&self.share.skipped());
        self.share.report_counts(counts, self.counts_read(batch.asked));
        self.update_metrics(counts);
        self.look_at_clock();
        // Classes that are silent end their epochs by the packets of others, or by the clock.
        let silent_until = || self.silent_until();
        if let Some(time) = batch.last.or_else(silent_until) {
            self.share.advance(time);
        }
        if let Some(part) = self.share.poll() {
            self.hand_on(part);
        }
    }

    /// When the counts of a batch were read. The adapter's clock is not ours to read.
    fn counts_read(&self, asked: Timestamp) -> Option<Span> {
        (self.source.time_source() == TimeSource::Kernel)
            .then(|| Span { start: asked, end: self.clock.now() })
    }

    fn update_metrics(&mut self, counts: SourceCounts) {
        let (live, seen) = (self.source.live_counts(), &mut self.seen);
        let dropped = |counts: &SourceCounts| counts.dropped.unwrap_or(0);
        self.metrics.dropped.inc_by(dropped(&counts).saturating_sub(dropped(&seen.counts)));
        self.metrics.unsplit.inc_by(live.unsplit - seen.live.unsplit);
        let (packets, late) = (self.share.packets(), self.share.late_packets());
        self.metrics.packets.inc_by(packets - seen.packets);
        self.metrics.late.inc_by(late - seen.late);
        (seen.counts, seen.live, seen.packets, seen.late) = (counts, live, packets, late);
    }

    /// Restarts if the clock was stepped.
    fn look_at_clock(&mut self) {
        if self.source.time_source() != TimeSource::Kernel {
            return;
        }
        let era = self.clock.era();
        if era == self.share.era() {
            return;
        }
        tracing::warn!(point = self.name, "the clock was stepped: epochs restart");
        self.metrics.steps.inc();
        match self.share.begin_era(era, self.clock.now()) {
            Ok(Some(part)) => self.hand_on(part),
            Ok(None) => {}
            Err(error) => tracing::error!(point = self.name, %error, "cannot restart"),
        }
    }

    /// Up to when all frames were handed over, if none came for a while. The adapter's clock is not
    /// ours to read.
    fn silent_until(&self) -> Option<Timestamp> {
        let wait_ns = i64::try_from(self.source.longest_wait().as_nanos()).ok()?;
        // A frame waits twice the longest wait at most; as long again for a busy machine.
        let slack = Delay::from_nanos(wait_ns.saturating_mul(4));
        (self.source.time_source() == TimeSource::Kernel).then(|| self.clock.now() - slack)
    }

    /// The interface is gone: epochs go on, torn, until it is back. `false` if asked to stop.
    fn wait_for_interface(&mut self, lost: Timestamp) -> bool {
        tracing::warn!(point = self.name, "the interface is gone; waiting for it");
        self.metrics.gaps.inc();
        self.metrics.capturing.dec();
        self.share.lose(lost);
        while !self.stop.is_set() {
            std::thread::sleep(REOPEN_EVERY);
            self.tell(&FramesRead { asked: self.time_now(), end: None, last: None });
            if self.source.reopen().is_ok() {
                match self.source.time_source() {
                    TimeSource::Kernel => self.share.regain(self.clock.now()),
                    _ => self.seen.begins_with_frame = true,
                }
                tracing::info!(point = self.name, "the interface is back");
                self.capture_again();
                return true;
            }
        }
        false
    }

    fn capture_again(&self) {
        self.metrics.capturing.inc();
    }

    /// The time on the clock that stamps packets, as far as it can be read.
    fn time_now(&self) -> Timestamp {
        match self.source.time_source() {
            TimeSource::Kernel => self.clock.now(),
            _ => self.seen.last.unwrap_or(Timestamp::MIN),
        }
    }

    fn finish(&mut self, ended: Timestamp) {
        if let Some(part) = self.share.finish(ended) {
            // Capturing has ended, so waiting for the last ones costs nothing.
            let _ = self.out.send((self.point, part));
        }
    }

    fn hand_on(&self, part: SealedPart) {
        match self.out.try_send((self.point, part)) {
            Ok(()) | Err(TrySendError::Disconnected(_)) => {}
            Err(TrySendError::Full((_, part))) => {
                self.metrics.overrun.inc_by(part.sealed.len() as u64);
            }
        }
    }
}

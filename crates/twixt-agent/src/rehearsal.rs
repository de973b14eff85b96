//! A point's thread on stage: frames and clocks from a script, everything behind them as ever.
//!
//! For tests of what no machine lets a test do to it, such as setting its clock. The script says
//! what the clocks show and which frames came; the thread that runs is the agent's own.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use twixt_capture::{
    BatchEnd, CaptureError, Frame, LiveCounts, LiveEnding, LiveError, SourceCounts, Stop,
};
use twixt_measure::Sealed;
use twixt_model::{TimeSource, Timestamp};
use twixt_observe::{Merger, PointShare, SealedPart};

use crate::agent::{AgentError, copies, meters, observer};
use crate::config::AgentConfig;
use crate::frames::LiveFrames;
use crate::metrics::Metrics;
use crate::steps::{Clocks, PointClock};
use crate::watch::{ReportedSoFar, Watch};

/// Link type of Ethernet in the registry of pcap.
const ETHERNET: u16 = 1;
/// As the ring has it by default.
const LONGEST_WAIT: Duration = Duration::from_millis(10);

/// What a script says of a moment: a block of frames is handed over, or none comes in time.
#[derive(Clone, Debug)]
pub struct Moment {
    /// What a clock shows that nobody can set.
    pub steady: Duration,
    /// What the system's clock shows.
    pub wall: Timestamp,
    /// Ethernet frames since the moment before, with the times the kernel gave them.
    pub frames: Vec<(Timestamp, Vec<u8>)>,
}

/// Runs the first point of a configuration through a script, on one thread. Hands over what is
/// sealed, with the steady time of the moment at which it was on its way.
///
/// # Errors
/// When the point cannot be set up so, or the script has no moment.
pub fn rehearse(
    config: &AgentConfig,
    script: impl IntoIterator<Item = Moment>,
    take: impl FnMut(Duration, Sealed),
) -> Result<(), AgentError> {
    let nothing = |what: &str| AgentError::Config { problem: format!("no {what} to rehearse") };
    let point = config.points.first().ok_or_else(|| nothing("point"))?;
    let mut script = script.into_iter().peekable();
    let first = script.peek().ok_or_else(|| nothing("moment"))?;
    let clocks = ScriptedClocks(Rc::new(Cell::new((first.steady, first.wall))));
    let clock = PointClock::with(clocks.clone());
    let observer = observer(config, point)?;
    let meters = meters(config, point, &observer, TimeSource::Kernel);
    let (synopses, began) = (copies(&config.synopses), clock.now());
    let share = PointShare::new(0, meters, synopses, observer, clock.era(), began)?;
    let (out, parts) = sync_channel(crate::PARTS_MAX);
    let stage = SealedOutlet { parts, merger: Merger::new(1), take };
    let counts = SourceCounts::default();
    let source = ScriptedFrames { script, clocks, stage, counts, ended: false };
    let metrics = Metrics::new().point(&point.name, 1);
    Watch {
        point: 0,
        name: &point.name,
        seen: ReportedSoFar::nothing(source.time_source()),
        source,
        share,
        clock: &clock,
        stop: Stop::default(),
        out,
        metrics,
    }
    .run();
    Ok(())
}

/// What the script says that clocks show.
#[derive(Clone, Debug)]
struct ScriptedClocks(Rc<Cell<(Duration, Timestamp)>>);

impl Clocks for ScriptedClocks {
    fn wall(&self) -> Timestamp {
        self.0.get().1
    }

    fn steady_ns(&self) -> i64 {
        self.0.get().0.as_nanos() as i64 // 292 years
    }
}

/// Where parts of epochs arrive.
struct SealedOutlet<T> {
    parts: Receiver<(usize, SealedPart)>,
    merger: Merger,
    take: T,
}

impl<T: FnMut(Duration, Sealed)> SealedOutlet<T> {
    /// Takes what was handed on up to then.
    fn take(&mut self, steady: Duration) {
        self.parts.try_iter().for_each(|(_, part)| self.merger.add(part));
        while let Some(sealed) = self.merger.poll() {
            (self.take)(steady, sealed);
        }
    }
}

/// The frames of a script.
struct ScriptedFrames<I: Iterator<Item = Moment>, T: FnMut(Duration, Sealed)> {
    script: I,
    clocks: ScriptedClocks,
    stage: SealedOutlet<T>,
    counts: SourceCounts,
    ended: bool,
}

impl<I: Iterator<Item = Moment>, T: FnMut(Duration, Sealed)> LiveFrames for ScriptedFrames<I, T> {
    fn read_batch(&mut self, mut sink: impl FnMut(Frame<'_>)) -> Result<BatchEnd, CaptureError> {
        self.stage.take(self.clocks.0.get().0);
        let Some(moment) = self.script.next() else {
            self.ended = true;
            return Ok(BatchEnd::End);
        };
        self.clocks.0.set((moment.steady, moment.wall));
        for (time, bytes) in &moment.frames {
            self.counts.frames += 1;
            sink(Frame {
                time: *time,
                bytes,
                memory: bytes,
                wire_length: bytes.len() as u32, // a frame has less than 2^32
                link_type: ETHERNET,
                interface: 0,
                direction: None,
                time_source: TimeSource::Kernel,
            });
        }
        Ok(BatchEnd::More)
    }

    fn ending(&self) -> Option<LiveEnding> {
        self.ended.then_some(LiveEnding::Stopped)
    }

    fn time_source(&self) -> TimeSource {
        TimeSource::Kernel
    }

    fn counts(&self) -> SourceCounts {
        self.counts
    }

    fn live_counts(&self) -> LiveCounts {
        LiveCounts::default()
    }

    fn longest_wait(&self) -> Duration {
        LONGEST_WAIT
    }

    fn reopen(&mut self) -> Result<(), LiveError> {
        Ok(())
    }
}

impl<I: Iterator<Item = Moment>, T: FnMut(Duration, Sealed)> Drop for ScriptedFrames<I, T> {
    /// What the thread sealed last, when it ended, is on its way as well.
    fn drop(&mut self) {
        self.stage.take(self.clocks.0.get().0);
    }
}

//! A point's thread on stage: frames and clocks from a script, everything behind them as ever.
//!
//! For tests of what no machine lets a test do to it, such as setting its clock. The script says
//! what the clocks show and which frames came; the thread that runs is the agent's own.

use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
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
use crate::metrics::{Metrics, PointMetrics};
use crate::steps::{Clocks, PointClock};
use crate::watch::{ReportedSoFar, Watch};

/// Link type of Ethernet in the registry of pcap.
const ETHERNET: u16 = 1;
/// As the ring has it by default.
const LONGEST_WAIT: Duration = Duration::from_millis(10);

/// What a script says of a moment: a block of frames is handed over, or none comes in time.
#[derive(Clone, Debug)]
pub struct Moment {
    /// A clock that cannot be set.
    pub steady: Duration,
    /// What the system's clock shows.
    pub wall: Timestamp,
    /// Ethernet frames since the moment before, with the times the kernel gave them.
    pub frames: Vec<(Timestamp, Vec<u8>)>,
    /// Frames that the kernel dropped since the moment before.
    pub dropped: u64,
}

/// Runs the first point of a configuration through a script, on one thread. Hands over what is
/// sealed, with the steady time of the moment at which it was on its way.
///
/// # Errors
/// When the point cannot be set up so, or the script has no moment.
pub fn rehearse(
    config: &AgentConfig,
    script: impl IntoIterator<Item = Moment>,
    mut take: impl FnMut(Duration, Sealed),
) -> Result<(), AgentError> {
    let nothing = |what: &str| AgentError::Config { problem: format!("no {what} to rehearse") };
    let point = config.points.first().ok_or_else(|| nothing("point"))?;
    let mut script = script.into_iter().peekable();
    let (mut steady, wall) =
        script.peek().map(|first| (first.steady, first.wall)).ok_or_else(|| nothing("moment"))?;
    let (out, parts) = sync_channel(crate::PARTS_MAX);
    let metrics = Metrics::new().point(&point.name, 1);
    let mut scripted = ScriptedPoint::begin(config, 0, (steady, wall), 0, out, metrics)?;
    let mut merger = Merger::new(1);
    let mut goes_on = true;
    while goes_on {
        let moment = script.next();
        steady = moment.as_ref().map_or(steady, |moment| moment.steady);
        goes_on = scripted.step(moment);
        parts.try_iter().for_each(|(_, part)| merger.add(part));
        while let Some(sealed) = merger.poll() {
            take(steady, sealed);
        }
    }
    Ok(())
}

/// The thread of a point whose frames and clocks come from a script.
pub(crate) struct ScriptedPoint {
    watch: Watch<ScriptedFrames, ScriptedClocks>,
}

impl ScriptedPoint {
    /// Begins when the clocks show this, the steady one and the system's.
    pub(crate) fn begin(
        config: &AgentConfig,
        index: usize,
        clocks: (Duration, Timestamp),
        newest_run: u64,
        out: SyncSender<(usize, SealedPart)>,
        metrics: PointMetrics,
    ) -> Result<Self, AgentError> {
        let point = &config.points[index];
        let clocks = ScriptedClocks(Arc::new(Mutex::new(clocks)));
        let clock = Arc::new(PointClock::with(clocks.clone(), newest_run));
        let observer = observer(config, point)?;
        let meters = meters(config, point, &observer, TimeSource::Kernel);
        let (synopses, began) = (copies(&config.synopses), clock.now());
        let share = PointShare::new(0, meters, synopses, observer, clock.era(), began)?;
        let source = ScriptedFrames { next: None, clocks, counts: SourceCounts::default() };
        let watch = Watch {
            point: index,
            name: point.name.clone(),
            seen: ReportedSoFar::nothing(source.time_source()),
            source,
            share,
            clock,
            stop: Stop::default(),
            out,
            metrics,
        };
        Ok(Self { watch })
    }

    /// Takes a moment. Without one the thread is told to stop, and `false` is returned.
    pub(crate) fn step(&mut self, moment: Option<Moment>) -> bool {
        self.watch.source.next = moment;
        self.watch.step()
    }

    /// The number of the present run.
    pub(crate) fn run(&self) -> u64 {
        self.watch.share.era().run
    }
}

/// What the script says that clocks show.
#[derive(Clone, Debug)]
struct ScriptedClocks(Arc<Mutex<(Duration, Timestamp)>>);

impl ScriptedClocks {
    fn show(&self, moment: &Moment) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = (moment.steady, moment.wall);
    }

    fn shown(&self) -> (Duration, Timestamp) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clocks for ScriptedClocks {
    fn wall(&self) -> Timestamp {
        self.shown().1
    }

    fn steady_ns(&self) -> i64 {
        self.shown().0.as_nanos() as i64 // 292 years
    }
}

/// The frames of a script.
struct ScriptedFrames {
    /// The moment that comes next; none at the end of the script.
    next: Option<Moment>,
    clocks: ScriptedClocks,
    counts: SourceCounts,
}

impl LiveFrames for ScriptedFrames {
    fn read_batch(&mut self, mut sink: impl FnMut(Frame<'_>)) -> Result<BatchEnd, CaptureError> {
        let Some(moment) = self.next.take() else { return Ok(BatchEnd::End) };
        self.clocks.show(&moment);
        self.counts.dropped = Some(self.counts.dropped.unwrap_or(0) + moment.dropped);
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
        Some(LiveEnding::Stopped)
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

//! An interface that is being read, until it is enough.

use std::num::NonZeroU32;
use std::time::{Duration, Instant, SystemTime};

use anyhow::Context;
use clap::{Args, ValueEnum};
use twixt_capture::{
    BatchEnd, Frame, FrameDirection, InterfaceDescription, LiveCounts, LiveEnding, LiveOptions,
    RingSize, SourceCounts, Stop, TimePreference,
};
use twixt_model::quantity::Nanoseconds;
use twixt_model::{Delay, TimeSource, Timestamp};

use super::reader::{InterfaceReader, ReaderArg};
use crate::args::bytes;
use crate::exit::{Exit, note, usage};
use crate::interruption;
use crate::output::units;

/// How an interface is captured.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Live capture")]
pub(crate) struct LiveArgs {
    /// Interface to capture, until -c, --for or Ctrl-C
    #[arg(short = 'i', long = "interface", value_name = "INTERFACE")]
    interface: Option<String>,
    /// Stop after this time
    #[arg(long = "for", value_name = "DURATION")]
    length: Option<Nanoseconds>,
    /// Only frames that the interface receives, or sends
    #[arg(long, value_enum, value_name = "DIRECTION")]
    direction: Option<DirectionArg>,
    /// Only frames for this machine, not those for others
    #[arg(short = 'p', long = "no-promiscuous")]
    no_promiscuous: bool,
    /// Bytes to keep of each frame [default: all]
    #[arg(short = 's', long = "snap-length", value_name = "BYTES")]
    snap_length: Option<NonZeroU32>,
    /// Source of timestamps
    #[arg(long, value_enum, value_name = "CLOCK", default_value_t)]
    times: TimesArg,
    /// Memory shared with the kernel, for frames that wait to be read [default: 32MiB]
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    ring: Option<u64>,
    /// How the interface is read
    #[cfg_attr(not(feature = "libpcap"), arg(skip))]
    #[cfg_attr(feature = "libpcap", arg(long, value_enum, value_name = "READER", default_value_t))]
    capture: ReaderArg,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum DirectionArg {
    In,
    Out,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum TimesArg {
    /// The kernel
    #[default]
    Kernel,
    /// The adapter, if its timestamps are switched on
    Adapter,
    /// The adapter, after switching its timestamps on
    SwitchOnAdapter,
}

impl LiveArgs {
    /// Whether an interface was named.
    pub(crate) const fn is_given(&self) -> bool {
        self.interface.is_some()
    }

    /// Whether only one direction is captured.
    pub(crate) const fn has_direction(&self) -> bool {
        self.direction.is_some()
    }

    /// The name of the interface; empty if none was named.
    pub(super) fn interface(&self) -> &str {
        self.interface.as_deref().unwrap_or_default()
    }

    /// Refuses options of interfaces where there is none. (clap does not, where `-r` is given.)
    pub(crate) fn check_unused(&self) -> anyhow::Result<()> {
        let Self { length, direction, no_promiscuous, snap_length, times, ring, .. } = self;
        let given = [
            ("--for", length.is_some()),
            ("--direction", direction.is_some()),
            ("--no-promiscuous", *no_promiscuous),
            ("--snap-length", snap_length.is_some()),
            ("--times", *times != TimesArg::Kernel),
            ("--ring", ring.is_some()),
            ("--capture", self.capture != ReaderArg::Ring),
        ];
        match given.into_iter().find(|(_, is_given)| *is_given) {
            Some((option, _)) => Err(usage(format!("{option} needs --interface"))),
            None => Ok(()),
        }
    }

    fn options(&self) -> LiveOptions {
        let defaults = LiveOptions::default();
        LiveOptions {
            direction: self.direction.map(|direction| match direction {
                DirectionArg::In => FrameDirection::Inbound,
                DirectionArg::Out => FrameDirection::Outbound,
            }),
            promiscuous: !self.no_promiscuous,
            snap_length: self.snap_length,
            times: match self.times {
                TimesArg::Kernel => TimePreference::Kernel,
                TimesArg::Adapter => TimePreference::Adapter,
                TimesArg::SwitchOnAdapter => TimePreference::SwitchOnAdapter,
            },
            ring: self.ring.map_or(defaults.ring, RingSize::of_bytes),
            wait: self.length().map_or(defaults.wait, |length| defaults.wait.min(length)),
            stop: Stop::default(),
        }
    }

    fn length(&self) -> Option<Duration> {
        let length_ns = self.length?.0;
        Some(Duration::from_nanos(length_ns.try_into().unwrap_or(0)))
    }
}

/// An interface that is being read.
pub(crate) struct LiveInterface {
    name: String,
    source: InterfaceReader,
    stop: Stop,
    started: Instant,
    length: Option<Duration>,
    /// The last batch was empty.
    is_silent: bool,
    /// Frames with a time of another clock than the rest, not handed over.
    other_clock: u64,
}

impl LiveInterface {
    pub(super) fn open(args: &LiveArgs) -> anyhow::Result<Self> {
        let options = args.options();
        let name = args.interface().to_owned();
        let source = InterfaceReader::open(args.capture, &name, &options)?;
        if let Some(remark) = source.time_remark() {
            note(format_args!("{name}: {remark}; using kernel timestamps"));
        }
        interruption::watch().context("cannot handle signals")?;
        // For people who wait, and for scripts that start traffic now.
        note(format_args!("{name}: capturing"));
        Ok(Self {
            name,
            source,
            stop: options.stop,
            started: Instant::now(),
            length: args.length(),
            is_silent: false,
            other_clock: 0,
        })
    }

    #[inline]
    pub(super) fn read_batch(
        &mut self,
        mut sink: impl FnMut(Frame<'_>),
    ) -> anyhow::Result<BatchEnd> {
        let is_over = self.length.is_some_and(|length| self.started.elapsed() >= length);
        if is_over || interruption::is_requested() {
            self.stop.set();
        }
        let expected = self.source.time_source();
        let (mut frames, mut other_clock) = (0_u64, 0);
        let end = self.source.read_batch(|frame| {
            frames += 1;
            // Two clocks differ by anything up to years: one of them only.
            if frame.time_source == expected { sink(frame) } else { other_clock += 1 }
        })?;
        self.is_silent = frames == 0;
        self.other_clock += other_clock;
        Ok(end)
    }

    /// The time on the clock of the packets. The adapter's clock is not ours to read.
    pub(super) fn now(&self) -> Option<Timestamp> {
        if self.time_source() != TimeSource::Kernel {
            return None;
        }
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok()?;
        Some(Timestamp::from_nanos(since.as_nanos().try_into().ok()?))
    }

    pub(super) fn silent_until(&self) -> Option<Timestamp> {
        // A frame waits twice the longest wait at most; as long again for a busy machine.
        let wait_ns = i64::try_from((self.source.longest_wait() * 4).as_nanos()).ok()?;
        self.now().filter(|_| self.is_silent).map(|now| now - Delay::from_nanos(wait_ns))
    }

    pub(super) fn counts(&self) -> SourceCounts {
        let counts = self.source.counts();
        SourceCounts { skipped_without_time: self.other_clock, ..counts }
    }

    /// What an interface has beyond what every source has.
    pub(crate) fn live_counts(&self) -> LiveCounts {
        self.source.live_counts()
    }

    /// What the frames are of.
    pub(crate) fn description(&self) -> InterfaceDescription {
        self.source.interface()
    }

    /// Why it has no more frames, if it has none.
    pub(crate) fn ending(&self) -> Option<LiveEnding> {
        self.source.ending()
    }

    pub(super) fn time_source(&self) -> TimeSource {
        self.source.time_source()
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn conclude(&self, exit: Exit) -> Exit {
        let (name, counts, live) = (&self.name, self.source.counts(), self.source.live_counts());
        let dropped = counts.dropped.unwrap_or(0);
        if dropped > 0 {
            note(format_args!(
                "{name}: the kernel dropped {} frames because the ring was full; try a larger --ring, \
                 or -s to keep less of each frame",
                units::count(dropped)
            ));
        }
        if live.unsplit > 0 {
            note(format_args!(
                "{name}: {} super-packets could not be split into packets; switch the offload off \
                 with: ethtool -K {name} gro off gso off tso off",
                units::count(live.unsplit)
            ));
        }
        if self.other_clock > 0 {
            note(format_args!(
                "{name}: {} frames without an adapter timestamp were skipped; it timestamps \
                 received frames only: use --direction in",
                units::count(self.other_clock)
            ));
        }
        let is_gone = self.ending() == Some(LiveEnding::InterfaceGone);
        if is_gone {
            let frames = units::count(counts.frames);
            note(format_args!(
                "{name}: the interface disappeared; {frames} frames before that were used"
            ));
        }
        exit.or_partial(is_gone).or_interrupted()
    }
}

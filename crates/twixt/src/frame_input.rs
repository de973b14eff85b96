//! Where the frames of a one-pass command come from: a capture, or an interface.
//!
//! A command has [`SourceArgs`] among its arguments, opens them, and reads into its own
//! [`OnePass`]:
//!
//! ```text
//! let mut source = args.source.open()?;
//! source.read(&mut measuring)?;
//! // … print what was measured …
//! Ok(source.conclude(Exit::Done))
//! ```
//!
//! An interface ends after `--for`, when the user interrupts, or when it goes away; a capture, when
//! it ends, or the user interrupts. `-c` is the command's own, which knows what it counts.

mod interface;
mod one_pass;
mod reader;

pub(crate) use interface::{LiveArgs, LiveInterface};
pub(crate) use one_pass::{OnePass, SoFar};

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use twixt_capture::{BatchEnd, SourceCounts};
use twixt_model::{EpochRule, TimeSource, Timestamp};
use twixt_offline::{Capture, dropped_in, is_standard_input};

use crate::exit::{Exit, note, usage};
use crate::interruption;
use crate::output::units;
use crate::progress::ReadProgress;
use crate::remarks::{self, note_ending};

/// A capture or an interface.
#[derive(Args, Clone, Debug)]
pub(crate) struct SourceArgs {
    /// Capture to read; - is standard input. A quoted pattern such as 'ring-*.pcap', or -r several
    /// times, is one capture in several files
    #[arg(
        short = 'r',
        long = "read",
        value_name = "FILE",
        required_unless_present = "interface",
        conflicts_with = "interface"
    )]
    read: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) live: LiveArgs,
}

impl SourceArgs {
    /// Of a command with arguments of its own.
    pub(crate) const fn of(read: Vec<PathBuf>, live: LiveArgs) -> Self {
        Self { read, live }
    }

    /// Opens what was named.
    pub(crate) fn open(&self) -> anyhow::Result<FrameSource> {
        let Some(first) = self.read.first() else { return FrameSource::interface(&self.live) };
        self.live.check_unused()?;
        if self.read.len() > 1 && self.read.iter().any(|path| is_standard_input(path)) {
            return Err(usage("standard input cannot be one of several files"));
        }
        interruption::watch().context("cannot handle signals")?;
        match self.read.as_slice() {
            [path] => FrameSource::capture(path),
            files => {
                let name = format!("{} and {} more", first.display(), files.len() - 1);
                Ok(FrameSource::of(Capture::open_all(files, Path::new(&name))?))
            }
        }
    }

    /// A name for the point: that of the capture, without its ending, or of the interface.
    pub(crate) fn point(&self) -> String {
        let Some(path) = self.read.first() else { return self.live.interface().to_owned() };
        path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
    }
}

/// A capture or an interface that is being read.
pub(crate) enum FrameSource {
    Capture(Box<CaptureSource>),
    Interface(Box<LiveInterface>),
}

/// A capture, with a person watching.
pub(crate) struct CaptureSource {
    pub(crate) capture: Capture,
    /// Shown as long as it is there.
    progress: Option<ReadProgress>,
}

impl FrameSource {
    /// Opens a capture; `-` is standard input.
    pub(crate) fn capture(path: &Path) -> anyhow::Result<Self> {
        interruption::watch().context("cannot handle signals")?;
        Ok(Self::of(Capture::open(path)?))
    }

    fn of(capture: Capture) -> Self {
        let progress = Some(ReadProgress::new(capture.size_bytes(), "reading"));
        Self::Capture(Box::new(CaptureSource { capture, progress }))
    }

    /// Opens an interface.
    pub(crate) fn interface(args: &LiveArgs) -> anyhow::Result<Self> {
        Ok(Self::Interface(Box::new(LiveInterface::open(args)?)))
    }

    /// Hands a batch of frames over. It may be empty though more will come.
    #[inline]
    fn read_batch(&mut self, pass: &mut impl OnePass) -> anyhow::Result<BatchEnd> {
        match self {
            Self::Capture(source) => {
                let progress = source.progress.as_ref().expect("it is taken at the end only");
                Ok(source.capture.read_batch(progress, |frame| pass.take(&frame)))
            }
            Self::Interface(interface) => interface.read_batch(|frame| pass.take(&frame)),
        }
    }

    /// Shows no progress: the terminal shows something else.
    pub(crate) fn without_progress(self) -> Self {
        if let Self::Capture(source) = &self
            && let Some(progress) = &source.progress
        {
            progress.hide();
        }
        self
    }

    /// The time on the clock of the packets, if it can be read.
    fn now(&self) -> Option<Timestamp> {
        match self {
            Self::Capture(_) => None,
            Self::Interface(interface) => interface.now(),
        }
    }

    /// As [`SoFar::silent_until`].
    fn silent_until(&self) -> Option<Timestamp> {
        match self {
            Self::Capture(_) => None,
            Self::Interface(interface) => interface.silent_until(),
        }
    }

    /// What was handed over, and what was not, up to now.
    pub(crate) fn counts(&self) -> SourceCounts {
        match self {
            Self::Capture(source) => source.capture.counts(),
            Self::Interface(interface) => interface.counts(),
        }
    }

    /// Frames that a capture says were dropped. It may say so at its end only, when epochs before
    /// that are written; an interface says so at once.
    pub(crate) fn dropped_ahead(&self, rule: EpochRule) -> anyhow::Result<u64> {
        match self {
            Self::Capture(source) if rule != EpochRule::WHOLE => {
                let files = source.capture.files().iter();
                Ok(files.map(|path| dropped_in(path)).sum::<Result<u64, _>>()?)
            }
            _ => Ok(0),
        }
    }

    /// Frames that a capture, which cannot be read twice, said were dropped when epochs before that
    /// were written.
    pub(crate) fn dropped_too_late(&self, rule: EpochRule) -> u64 {
        match self {
            Self::Capture(source)
                if rule != EpochRule::WHOLE && !source.capture.files()[0].is_file() =>
            {
                self.counts().dropped.unwrap_or(0)
            }
            _ => 0,
        }
    }

    /// Who takes the times.
    pub(crate) fn time_source(&self) -> TimeSource {
        match self {
            Self::Capture(_) => TimeSource::File,
            Self::Interface(interface) => interface.time_source(),
        }
    }

    /// The path or the interface, for messages.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Capture(source) => source.capture.path().display().to_string(),
            Self::Interface(interface) => interface.name().to_owned(),
        }
    }

    /// Whether no more is read, though there may be more: the user interrupted. An interface ends by
    /// itself then, when what the kernel holds was read.
    fn ends_early(&self) -> bool {
        matches!(self, Self::Capture(_)) && interruption::is_requested()
    }

    /// Why no more is read of an interface, or of a capture that ended before its end.
    pub(crate) fn ending(&self) -> Option<String> {
        match self {
            Self::Capture(source) => remarks::ending(&source.capture),
            Self::Interface(interface) => interface.ending().map(|ending| ending.to_string()),
        }
    }

    /// Takes the progress bar away, before anything is printed.
    fn hide_progress(&mut self) {
        if let Self::Capture(source) = self {
            source.progress = None;
        }
    }

    /// Says what is wrong with what was read, and how the command ends with it.
    pub(crate) fn conclude(mut self, exit: Exit) -> Exit {
        self.hide_progress();
        match self {
            Self::Capture(source) => {
                if interruption::is_requested() {
                    let (path, counts) = (source.capture.path(), source.capture.counts());
                    note(format_args!(
                        "{}: interrupted: partial, the first {} frames were used",
                        path.display(),
                        units::count(counts.frames)
                    ));
                }
                exit.or_partial(note_ending(&source.capture)).or_interrupted()
            }
            Self::Interface(interface) => interface.conclude(exit),
        }
    }
}

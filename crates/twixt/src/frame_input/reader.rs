//! Who reads an interface: the ring of our own, or libpcap where that is built in.

use std::time::Duration;

use clap::ValueEnum;
#[cfg(feature = "libpcap")]
use twixt_capture::LibpcapSource;
use twixt_capture::{
    BatchEnd, CaptureError, Frame, InterfaceDescription, LiveCounts, LiveEnding, LiveError,
    LiveOptions, LiveSource, SourceCounts,
};
use twixt_model::TimeSource;

/// Who is to read it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum ReaderArg {
    /// A ring shared with the kernel
    #[default]
    Ring,
    /// The library libpcap, which does not mark super-packets
    #[cfg(feature = "libpcap")]
    Libpcap,
}

/// Who reads it.
pub(super) enum InterfaceReader {
    Ring(Box<LiveSource>),
    #[cfg(feature = "libpcap")]
    Libpcap(Box<LibpcapSource>),
}

/// Forwards to either reader.
macro_rules! either {
    ($reader:expr, $source:ident => $call:expr) => {
        match $reader {
            Self::Ring($source) => $call,
            #[cfg(feature = "libpcap")]
            Self::Libpcap($source) => $call,
        }
    };
}

impl InterfaceReader {
    pub(super) fn open(
        by: ReaderArg,
        interface: &str,
        options: &LiveOptions,
    ) -> Result<Self, LiveError> {
        match by {
            ReaderArg::Ring => {
                LiveSource::open(interface, options).map(|source| Self::Ring(Box::new(source)))
            }
            #[cfg(feature = "libpcap")]
            ReaderArg::Libpcap => LibpcapSource::open(interface, options)
                .map(|source| Self::Libpcap(Box::new(source))),
        }
    }

    #[inline]
    pub(super) fn read_batch(
        &mut self,
        sink: impl FnMut(Frame<'_>),
    ) -> Result<BatchEnd, CaptureError> {
        either!(self, source => source.read_batch(sink))
    }

    pub(super) fn time_source(&self) -> TimeSource {
        match self {
            Self::Ring(source) => source.time_source(),
            #[cfg(feature = "libpcap")]
            Self::Libpcap(_) => TimeSource::Kernel,
        }
    }

    pub(super) fn time_remark(&self) -> Option<&str> {
        match self {
            Self::Ring(source) => source.time_remark(),
            #[cfg(feature = "libpcap")]
            Self::Libpcap(_) => None,
        }
    }

    pub(super) fn longest_wait(&self) -> Duration {
        either!(self, source => source.longest_wait())
    }

    pub(super) fn counts(&self) -> SourceCounts {
        either!(self, source => source.counts())
    }

    pub(super) fn live_counts(&self) -> LiveCounts {
        either!(self, source => source.live_counts())
    }

    pub(super) fn interface(&self) -> InterfaceDescription {
        either!(self, source => source.interface())
    }

    pub(super) fn ending(&self) -> Option<LiveEnding> {
        either!(self, source => source.ending())
    }
}

//! Where there are no packet sockets: the same face, which refuses.

use std::convert::Infallible;
use std::time::Duration;

use twixt_model::TimeSource;

use super::{LiveCounts, LiveEnding, LiveError, LiveOptions};
use crate::{BatchEnd, CaptureError, Frame, InterfaceDescription, PacketSource, SourceCounts};

/// The frames of an interface, as they pass. Needs Linux: elsewhere there is none.
#[derive(Debug)]
pub struct LiveSource(Infallible);

#[allow(missing_docs, reason = "documented where it exists")]
impl LiveSource {
    pub fn open(interface: &str, _: &LiveOptions) -> Result<Self, LiveError> {
        Err(LiveError::NotLinux { interface: interface.to_owned() })
    }

    pub fn open_group(interface: &str, _: &LiveOptions, _: usize) -> Result<Vec<Self>, LiveError> {
        Err(LiveError::NotLinux { interface: interface.to_owned() })
    }

    pub fn reopen(&mut self) -> Result<(), LiveError> {
        match self.0 {}
    }

    pub fn read_batch(&mut self, _: impl FnMut(Frame<'_>)) -> Result<BatchEnd, CaptureError> {
        match self.0 {}
    }

    pub fn ending(&self) -> Option<LiveEnding> {
        match self.0 {}
    }

    pub fn interface(&self) -> InterfaceDescription {
        match self.0 {}
    }

    pub fn time_source(&self) -> TimeSource {
        match self.0 {}
    }

    pub fn time_remark(&self) -> Option<&str> {
        match self.0 {}
    }

    pub fn longest_wait(&self) -> Duration {
        match self.0 {}
    }

    pub fn counts(&self) -> SourceCounts {
        match self.0 {}
    }

    pub fn live_counts(&self) -> LiveCounts {
        match self.0 {}
    }
}

impl PacketSource for LiveSource {
    fn next_batch(&mut self, _: &mut dyn FnMut(Frame<'_>)) -> Result<BatchEnd, CaptureError> {
        match self.0 {}
    }

    fn counts(&self) -> SourceCounts {
        match self.0 {}
    }
}

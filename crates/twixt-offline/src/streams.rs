//! A read of one capture for the RTP streams in it.

use std::path::Path;

use twixt_model::Needs;
use twixt_observe::{PacketPath, PacketSink, SeenPacket};
use twixt_wire::{Observer, RtpFinder, RtpStream, Skip};

use crate::capture::Capture;
use crate::error::OfflineError;
use crate::plan::Plan;
use crate::report::{Pass, Remark, Reporter};

/// The RTP streams among the packets of a capture that are measured.
///
/// # Errors
/// When it cannot be read.
pub fn rtp_streams(
    plan: &Plan,
    path: &Path,
    reporter: &dyn Reporter,
) -> Result<Vec<RtpStream>, OfflineError> {
    let mut capture = Capture::open(path)?;
    let observer = plan.traffic.observer(Needs::default(), plan.digest.digester())?;
    let progress = reporter.progress(Pass::Streams, capture.size_bytes());
    let path = PacketPath::new(observer, StreamSink::default());
    let mut path = path.toward(plan.traffic.toward).within(plan.traffic.within);
    capture.read_to_end(progress.as_ref(), |frame| path.take(&frame));
    let finder = path.into_sink().0;
    if finder.refused() > 0 {
        reporter.remark(Remark::StreamsRefused(finder.refused()));
    }
    Ok(finder.streams())
}

#[derive(Default)]
struct StreamSink(RtpFinder);

impl PacketSink for StreamSink {
    fn take(&mut self, _: &Observer, seen: SeenPacket<'_>) -> Result<(), Skip> {
        self.0.note(seen.frame.time, seen.packet, seen.frame.bytes.bytes());
        Ok(())
    }
}

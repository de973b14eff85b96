//! A read of two captures whose TCP segments may be cut differently: where are they cut?

use std::sync::Arc;
use std::thread;

use twixt_model::{DigestProfile, Needs, Observation, protocol};
use twixt_observe::{PacketPath, PacketSink, SeenPacket};
use twixt_wire::{ByteRange, Cuts, Observer, Packet, SeenSegments, Skip};

use crate::capture::Capture;
use crate::error::OfflineError;
use crate::measured::Files;
use crate::plan::{Plan, Recognition};
use crate::report::{Pass, Remark, Reporter};

/// Most links carry no longer packets: these may be merged segments.
const MTU_BYTES: u32 = 1500;

/// Whether a packet may be of several segments, which an offload merged.
pub(crate) fn may_be_merged(observation: &Observation, packet: &Packet) -> bool {
    observation.length > MTU_BYTES && packet.protocol() == protocol::TCP
}

/// Reads both captures, and finds out where segments of one end within those of the other; `None` if
/// nowhere, or if flows of one cannot be recognised in the other.
pub(crate) fn cuts_of(
    plan: &Plan,
    files: Files<'_>,
    recognition: Recognition,
    reporter: &dyn Reporter,
) -> Result<Option<Arc<Cuts>>, OfflineError> {
    if recognition.profile == DigestProfile::Nat {
        return Ok(None);
    }
    let needs = Needs { flow: true, ..Needs::default() };
    let observer = plan.traffic.observer(needs, plan.digest.digester_by(recognition))?;
    let (up, down) = (Capture::open(files.upstream)?, Capture::open(files.downstream)?);
    let progress = reporter.progress(Pass::Segments, up.size_bytes() + down.size_bytes());
    let toward = plan.traffic.toward;
    let read = |mut capture: Capture| {
        let path = PacketPath::new(observer.clone(), SegmentSink::default());
        let mut path = path.toward(toward);
        capture.read_to_end(progress.as_ref(), |frame| path.take(&frame));
        path.into_sink().0
    };
    let (upstream, downstream) = thread::scope(|scope| {
        let other = scope.spawn(|| read(down));
        (read(up), other.join().expect("reading does not panic"))
    });
    let cuts = Cuts::new(upstream, downstream);
    let (flows, refused, coarse) = (cuts.flows(), cuts.refused_flows(), cuts.coarse_flows());
    if flows + refused > 0 {
        reporter.remark(Remark::OtherSegments { flows, refused, coarse });
    }
    Ok((flows > 0).then(|| Arc::new(cuts)))
}

/// Keeps nothing of packets but which bytes they carry.
#[derive(Default)]
struct SegmentSink(SeenSegments);

impl PacketSink for SegmentSink {
    fn take(&mut self, _: &Observer, seen: SeenPacket<'_>) -> Result<(), Skip> {
        if let Some(range) = ByteRange::of(seen.packet, seen.frame.bytes.bytes()) {
            self.0.note(seen.observation.flow, range);
        }
        Ok(())
    }
}

//! How much of its packets a capture holds, which limits by what they can be recognised.

use std::path::Path;

use twixt_model::{DigestProfile, Needs};
use twixt_observe::{PacketPath, PacketSink, SeenPacket};
use twixt_wire::{Available, Observer, Packet, Skip, available};

use crate::capture::Capture;
use crate::error::OfflineError;
use crate::measured::Files;
use crate::plan::{Plan, Recognition};
use crate::report::Progress;

/// How much of its packets a capture holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Completeness {
    /// Payload bytes that every packet of the capture has, or need not have.
    available_bytes: u8,
    /// Packets whose TCP options are not whole.
    options_cut: u64,
    /// Packets of which not even the fixed headers are whole.
    pub(crate) headers_cut: u64,
}

impl Completeness {
    /// No packet seen yet.
    pub(crate) const fn new() -> Self {
        Self { available_bytes: u8::MAX, options_cut: 0, headers_cut: 0 }
    }

    /// Notes a packet.
    #[inline]
    pub(crate) fn note(&mut self, packet: &Packet, frame: &[u8]) {
        let Available { header, options, payload_bytes } = available(packet, frame);
        self.available_bytes = self.available_bytes.min(payload_bytes);
        self.options_cut += u64::from(!options);
        self.headers_cut += u64::from(!header);
    }

    /// How packets can be recognised with what this capture has.
    pub(crate) fn possible(&self, asked: Recognition) -> Recognition {
        match asked.profile {
            DigestProfile::Headers => asked,
            DigestProfile::Default if self.options_cut > 0 => {
                Recognition { profile: DigestProfile::Headers, payload_bytes: 0 }
            }
            _ => {
                let payload_bytes = asked.payload_bytes.min(self.available_bytes);
                Recognition { payload_bytes, ..asked }
            }
        }
    }
}

/// By what packets can be recognised, going by the first frames of both captures: no less than by all
/// of them, and as a rule the same, since a snap length cuts all frames alike.
pub(crate) fn likely_recognition(
    plan: &Plan,
    files: Files<'_>,
) -> Result<Recognition, OfflineError> {
    let upstream = first_frames(plan, files.upstream)?;
    let downstream = first_frames(plan, files.downstream)?;
    Ok(upstream.possible(downstream.possible(plan.digest.recognition)))
}

fn first_frames(plan: &Plan, path: &Path) -> Result<Completeness, OfflineError> {
    let mut capture = Capture::open(path)?;
    let observer = plan.traffic.observer(Needs::default(), plan.digest.digester())?;
    let path = PacketPath::new(observer, FirstFrames(Completeness::new()));
    let mut path = path.toward(plan.traffic.toward).within(plan.traffic.within);
    capture.read_batch(&Unnoticed, |frame| path.take(&frame));
    Ok(path.into_sink().0)
}

struct FirstFrames(Completeness);

impl PacketSink for FirstFrames {
    fn take(&mut self, _: &Observer, seen: SeenPacket<'_>) -> Result<(), Skip> {
        self.0.note(seen.packet, seen.frame.bytes.bytes());
        Ok(())
    }
}

/// Too short a read to be told of.
struct Unnoticed;

impl Progress for Unnoticed {
    fn advance(&self, _: u64) {}
}

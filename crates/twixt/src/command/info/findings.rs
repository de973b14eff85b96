//! What makes a capture hard to compare with another, and what to do about it when capturing.

use std::collections::VecDeque;

use serde::Serialize;
use twixt_model::{COPIED_WITHIN, Delay, Observation, PacketDigest, Timestamp, protocol};
use twixt_wire::Packet;

use crate::output::units;

/// What is noted of packets.
#[derive(Default)]
pub(super) struct Noting {
    /// TCP packets that are longer than most links carry, and the longest.
    long: u64,
    longest: u32,
    fragments: u64,
    copies: u64,
    /// Packets of the last moments, oldest first.
    recent: VecDeque<(Timestamp, PacketDigest)>, // at most RECENT_MAX
    /// Frames that are far behind the latest before them.
    steps_back: u64,
}

/// One kind of thing that was found.
#[derive(Serialize)]
pub(super) struct Finding {
    /// Its name.
    kind: &'static str,
    /// How many packets or frames it concerns.
    count: u64,
    /// What it is, and what to do.
    pub(super) text: String,
}

/// Most links carry no longer packets.
const MTU_BYTES: u32 = 1500;
/// No link carries longer packets: jumbo frames end here.
const JUMBO_BYTES: u32 = 9216;
/// Packets that are compared with the next ones, at most.
const RECENT_MAX: usize = 64;
/// Frames are not behind others by so much unless a clock was stepped, or files were appended.
const STEP_MIN: Delay = Delay::from_nanos(1_000_000_000);

impl Noting {
    /// Notes a frame that is so far behind the latest before it.
    pub(super) fn note_behind(&mut self, back: Delay) {
        self.steps_back += u64::from(back >= STEP_MIN);
    }

    /// Notes a packet.
    pub(super) fn note(&mut self, observation: &Observation, packet: &Packet) {
        let Observation { time, digest, length, .. } = *observation;
        if packet.protocol() == protocol::TCP && length > MTU_BYTES {
            self.long += 1;
            self.longest = self.longest.max(length);
        }
        self.fragments += u64::from(!packet.is_first_fragment());
        while self.recent.front().is_some_and(|(seen, _)| time - *seen > COPIED_WITHIN) {
            self.recent.pop_front();
        }
        self.copies += u64::from(self.recent.iter().any(|(_, seen)| *seen == digest));
        if self.recent.len() == RECENT_MAX {
            self.recent.pop_front();
        }
        self.recent.push_back((time, digest));
    }

    /// What was found, of so many packets; `dropped` frames are missing.
    pub(super) fn findings(&self, packets: u64, dropped: Option<u64>) -> Vec<Finding> {
        let [of_all, long, fragments, copies, steps_back] =
            [packets, self.long, self.fragments, self.copies, self.steps_back].map(units::count);
        let sure = if self.longest > JUMBO_BYTES { "" } else { ", unless the MTU is larger" };
        let longest = units::count(self.longest.into());
        let found = [
            (
                "offload",
                self.long,
                format!(
                    "{long} of {of_all} packets have more than {MTU_BYTES} bytes, up to {longest}: \
                     segments merged by an offload{sure}; all bytes of one share its timestamp, and one \
                     point cannot count its packets: capture with ethtool -K IFACE gro off gso off tso \
                     off lro off"
                ),
            ),
            (
                "copies",
                self.copies,
                format!(
                    "{copies} of {of_all} packets are copies of one less than 100 µs before: mirror one \
                     port or one direction only, or remove them (for example with editcap -D 64)"
                ),
            ),
            (
                "fragments",
                self.fragments,
                format!(
                    "{fragments} of {of_all} packets are fragments: flows cannot be distinguished by \
                     ports, and packets are not recognised where they are whole: lower the MTU or MSS \
                     of senders"
                ),
            ),
            (
                "dropped",
                dropped.unwrap_or(0),
                "frames are missing, so that loss will be a range: capture with a larger buffer \
                 (tcpdump -B) or a shorter snap length (-s)"
                    .to_owned(),
            ),
            (
                "clock-step",
                self.steps_back,
                format!(
                    "{steps_back} frames are a second or more behind others before them: the clock was \
                     stepped back, or files were appended; sort them (for example with reordercap)"
                ),
            ),
        ];
        let findings = found.into_iter().filter(|(_, count, _)| *count > 0);
        findings.map(|(kind, count, text)| Finding { kind, count, text }).collect()
    }
}

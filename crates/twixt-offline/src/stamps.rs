//! When packets were sent, for algorithms that take it from a stamp in the packet.
//!
//! Packets of captures carry no stamps. So the upstream capture plays their part: it is read once
//! more beforehand, and each packet downstream is handed the time of its twin upstream. That is
//! what a device knows whose packets are stamped; only the memory for it is ours, not the device's.

use twixt_model::{Observation, PacketDigest, Timestamp};

/// Packets whose send times are kept at most, 24 bytes each.
const STAMPS_MAX: usize = 1 << 26;

/// Send times by packet.
#[derive(Default)]
pub(crate) struct Stamps {
    /// In order once all are known.
    sent: Vec<(PacketDigest, Timestamp)>,
    /// Of equal packets, how many were taken since the first of them.
    taken: Vec<u32>,
    refused: u64,
}

impl Stamps {
    /// Keeps when a packet was sent.
    pub(crate) fn note(&mut self, packet: &Observation) {
        match self.sent.len() < STAMPS_MAX {
            true => self.sent.push((packet.digest, packet.time)),
            false => self.refused += 1,
        }
    }

    /// All are known.
    pub(crate) fn sorted(mut self) -> Self {
        self.sent.sort_unstable();
        self.taken = vec![0; self.sent.len()];
        self
    }

    /// When a packet was sent; of several equal ones, each time is given out once, in order.
    pub(crate) fn take(&mut self, digest: PacketDigest) -> Option<Timestamp> {
        let first = self.sent.partition_point(|(other, _)| *other < digest);
        let taken = self.taken.get_mut(first)?;
        let (found, sent) = *self.sent.get(first + *taken as usize)?;
        (found == digest).then(|| {
            *taken += 1;
            sent
        })
    }

    /// Packets whose send times could not be kept.
    pub(crate) const fn refused(&self) -> u64 {
        self.refused
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_is_given_out_once_and_in_order() {
        let packet = |digest, time_ns| Observation {
            digest: PacketDigest(digest),
            time: Timestamp::from_nanos(time_ns),
            ..Observation::default()
        };
        let packets = [packet(7, 30), packet(5, 20), packet(7, 10)];
        let mut stamps = Stamps::default();
        packets.iter().for_each(|packet| stamps.note(packet));
        let mut stamps = stamps.sorted();
        let mut take = |digest| stamps.take(PacketDigest(digest)).map(Timestamp::as_nanos);
        assert_eq!([take(7), take(7), take(7)], [Some(10), Some(30), None]);
        assert_eq!([take(5), take(5), take(6), take(9)], [Some(20), None, None, None]);
    }
}

//! When packets were sent, for algorithms that take it from a stamp in the packet.
//!
//! Packets of captures carry no stamps. So the upstream capture plays their part: it is read once
//! more beforehand, and each packet downstream is handed the time of its twin upstream. That is
//! what a device knows whose packets are stamped; only the memory for it is ours, not the device's.
//!
//! Of identical packets, one downstream has the send time of its twin only if no other of them was sent
//! so that it could have arrived then: else the time of one would be given to another, and a single loss
//! would shift all that follow. A copy that arrives later has none: it is no packet that was sent.

use twixt_model::{Delay, Observation, PacketDigest, Timestamp, sort_by_hash};

use crate::report::{Remark, Reporter};

/// Packets whose send times are kept at most, 24 bytes each.
const STAMPS_MAX: usize = 1 << 26;

/// Send times by packet.
#[derive(Default)]
pub(crate) struct Stamps {
    /// In order once all are known.
    sent: Vec<(PacketDigest, Timestamp)>,
    /// Where digests begin that start with the same bits: one more than those bits can tell apart.
    starts: Vec<u32>, // of at most STAMPS_MAX packets
    /// Which of them were handed out, a bit each.
    taken: Vec<u64>,
    /// Delays that are possible; `None` if nothing is known of them.
    possible: Option<(Delay, Delay)>,
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

    /// All are known. Delays usually lie in this range, if it is known: others are possible that are
    /// longer or shorter by as much as these differ.
    pub(crate) fn sorted(mut self, usual: Option<(Delay, Delay)>) -> Self {
        sort_by_hash(&mut self.sent, |(digest, _)| digest.0);
        self.sent
            .chunk_by_mut(|one, next| one.0 == next.0)
            .filter(|equal| equal.len() > 1)
            .for_each(<[_]>::sort_unstable);
        let mut starts = vec![0; (1 << self.bits()) + 1];
        for (digest, _) in &self.sent {
            starts[self.first_bits(*digest) + 1] += 1;
        }
        for index in 1..starts.len() {
            starts[index] += starts[index - 1];
        }
        self.starts = starts;
        self.taken = vec![0; self.sent.len().div_ceil(u64::BITS as usize)];
        self.possible = usual.map(|(min, max)| {
            let spread = max - min;
            (min - spread, max + spread)
        });
        self
    }

    /// When a packet was sent that arrived at this time; `None` if it may be one of several, or a copy of one
    /// that arrived before.
    pub(crate) fn of(&mut self, digest: PacketDigest, arrived: Timestamp) -> Option<Timestamp> {
        let index = self.index_of(digest, arrived)?;
        let (word, bit) = (&mut self.taken[index / 64], 1 << (index % 64));
        let is_first = *word & bit == 0;
        *word |= bit;
        is_first.then(|| self.sent[index].1)
    }

    fn index_of(&self, digest: PacketDigest, arrived: Timestamp) -> Option<usize> {
        let bits = self.first_bits(digest);
        let (start, end) = (self.starts[bits] as usize, self.starts[bits + 1] as usize);
        let alike = &self.sent[start..end];
        let first = alike.partition_point(|(other, _)| *other < digest);
        let equal = &alike[first..];
        let is_equal = |index: usize| equal.get(index).is_some_and(|(other, _)| *other == digest);
        if !is_equal(1) {
            return is_equal(0).then_some(start + first);
        }
        let (low, high) = self.possible?;
        let equal = &equal[..equal.partition_point(|(other, _)| *other == digest)];
        let from = equal.partition_point(|(_, sent)| arrived - *sent > high);
        let until = equal.partition_point(|(_, sent)| arrived - *sent >= low);
        (until == from + 1).then_some(start + first + from)
    }

    /// How many of the first bits of digests tell about one packet from another.
    fn bits(&self) -> u32 {
        self.sent.len().max(2).ilog2()
    }

    fn first_bits(&self, digest: PacketDigest) -> usize {
        (digest.0 >> (u64::BITS - self.bits())) as usize
    }

    /// Says how many send times could not be kept.
    pub(crate) fn report_refused(&self, reporter: &dyn Reporter) {
        if self.refused > 0 {
            reporter.remark(Remark::StampsRefused(self.refused));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamps(packets: &[(u64, i64)], usual: Option<(i64, i64)>) -> Stamps {
        let mut stamps = Stamps::default();
        for &(digest, time_ns) in packets {
            stamps.note(&Observation {
                digest: PacketDigest(digest),
                time: Timestamp::from_nanos(time_ns),
                ..Observation::default()
            });
        }
        stamps.sorted(usual.map(|(min, max)| (Delay::from_nanos(min), Delay::from_nanos(max))))
    }

    #[track_caller]
    fn check(stamps: &mut Stamps, digest: u64, arrived_ns: i64, expected: Option<i64>) {
        let found = stamps.of(PacketDigest(digest), Timestamp::from_nanos(arrived_ns));
        assert_eq!(found.map(Timestamp::as_nanos), expected);
    }

    #[test]
    fn a_packet_that_occurs_once_was_sent_when_it_was_sent() {
        let mut found = stamps(&[(7, 30), (5, 20)], None);
        check(&mut found, 7, 99, Some(30));
        check(&mut found, 5, 21, Some(20));
        check(&mut found, 6, 21, None);
        check(&mut found, 9, 21, None);
    }

    /// Copies made the mean too long, with certainty.
    #[test]
    fn a_copy_that_arrives_later_was_not_sent() {
        let mut found = stamps(&[(7, 30), (5, 20)], None);
        check(&mut found, 7, 99, Some(30));
        check(&mut found, 7, 99, None);
        check(&mut found, 5, 101, Some(20));
    }

    /// After a loss, every identical packet was given the time of the one before.
    #[test]
    fn an_identical_packet_is_not_given_the_time_of_another() {
        let heartbeats = [(7, 1000), (7, 2000), (7, 3000), (7, 3010)];
        let mut found = stamps(&heartbeats, Some((50, 60)));
        check(&mut found, 7, 1055, Some(1000));
        check(&mut found, 7, 2048, Some(2000));
        // Either of two, or none of them.
        check(&mut found, 7, 3062, None);
        check(&mut found, 7, 2500, None);
        check(&mut stamps(&heartbeats, None), 7, 1055, None);
    }
}

//! How many packets there are in each part of all digests.
//!
//! Identical packets are sampled all or not at all, so a sample usually lacks a heartbeat that is a tenth of
//! the traffic, and looks none the worse for it. These counts show it: a part with far more packets
//! than the others has one digest many times.

use super::entries::Entries;
use crate::codec::{DecodeError, Reader, Writer};
use crate::independent::limit_of;

/// Enough to find a digest that has 2 % of 3 000 packets, or 0.1 % of a million.
const PARTS: usize = 64;

/// Packets by part of the digests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PartCounts([u32; PARTS]);

impl PartCounts {
    pub(super) const BYTES: u32 = 4 * PARTS as u32;

    pub(super) const fn new() -> Self {
        Self([0; PARTS])
    }

    /// Those of a sample that has every packet.
    pub(super) fn of(entries: &Entries) -> Self {
        let mut counts = Self::new();
        entries.iter().for_each(|entry| counts.add(entry.rank));
        counts
    }

    #[inline]
    pub(super) fn add(&mut self, rank: u64) {
        let count = &mut self.0[part_of(rank)];
        *count = count.wrapping_add(1);
    }

    pub(super) fn remove(&mut self, rank: u64) {
        let count = &mut self.0[part_of(rank)];
        *count = count.wrapping_sub(1);
    }

    pub(super) fn merge(&mut self, other: &Self) {
        for (count, other) in self.0.iter_mut().zip(&other.0) {
            *count = count.wrapping_add(*other);
        }
    }

    /// Packets of digests that occur so often that their part stands out, without those that are in the
    /// sample: `sampled` has the digests of large clusters, and their packets.
    pub(super) fn hidden(&self, sampled: impl Iterator<Item = (u64, u64)>) -> f64 {
        let mut counts = self.0.map(f64::from);
        let (mean, limit) = limit_of(|| counts.iter().copied());
        for (rank, packets) in sampled {
            counts[part_of(rank)] -= packets as f64;
        }
        counts.iter().filter(|&&count| count > limit).map(|count| count - mean).sum()
    }

    pub(super) fn encode(&self, out: &mut Writer) {
        self.0.iter().for_each(|&count| out.u32(count));
    }

    pub(super) fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut counts = Self::new();
        for count in &mut counts.0 {
            *count = input.u32("packets by part")?;
        }
        Ok(counts)
    }
}

/// By the low bits: the high ones decide whether a packet is sampled.
const fn part_of(rank: u64) -> usize {
    rank as usize % PARTS
}

#[cfg(test)]
mod tests {
    use twixt_model::mix;

    use super::*;

    fn counts(packets: u64, heartbeats: u64) -> PartCounts {
        let mut counts = PartCounts::new();
        (0..packets).for_each(|packet| counts.add(mix(packet)));
        (0..heartbeats).for_each(|_| counts.add(7));
        counts
    }

    #[test]
    fn packets_that_differ_hide_nothing() {
        for packets in [0, 1, 30, 3_000, 100_000, 1_000_000] {
            assert_eq!(counts(packets, 0).hidden(std::iter::empty()), 0.0, "{packets}");
        }
    }

    #[test]
    fn a_heartbeat_that_is_not_sampled_is_found() {
        for (packets, heartbeats) in [(2_730, 270), (3_000, 60), (1_000_000, 1_000)] {
            let found = counts(packets, heartbeats).hidden(std::iter::empty());
            // Other packets of its part scatter around their mean; four standard errors.
            let error = 4.0 * (packets as f64 / PARTS as f64).sqrt();
            assert!((found - heartbeats as f64).abs() <= error, "{packets} {heartbeats}: {found}");
        }
    }

    #[test]
    fn a_heartbeat_that_is_sampled_is_not_hidden() {
        assert_eq!(counts(2_730, 270).hidden([(7, 270)].into_iter()), 0.0);
    }
}

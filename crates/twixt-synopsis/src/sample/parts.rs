//! How many packets there are in each part of all digests.
//!
//! Identical packets are sampled all or not at all, so a sample usually lacks a heartbeat that is a tenth of
//! the traffic, and looks none the worse for it. These counts show it: a part with far more packets
//! than the others has one digest many times. The more parts, the fewer such packets are noticed.

use super::entries::Entries;
use crate::codec::{DecodeError, Reader, Writer};
use crate::independent::limit_of;

/// A part of independent packets stands out with a probability below this.
const LIMIT_CHANCE: f64 = 1e-7;
/// More parts are not read from bytes.
pub(super) const PARTS_MAX: u16 = 4096;
/// Parts in the second version of the format.
const FIRST_PARTS: usize = 64;
/// The packets that a part would have anyway are not more or fewer by so many standard errors.
const ERRORS: f64 = 4.0;

/// Packets by part of the digests: a power of two of them, so that more parts can become fewer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PartCounts(Vec<u32>); // of at most PARTS_MAX

/// Packets of a part that stands out, beyond what others have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Excess {
    pub(super) packets: f64,
    /// What chance may have added taken off.
    pub(super) least: f64,
}

impl PartCounts {
    pub(super) fn new(parts: usize) -> Self {
        Self(vec![0; parts])
    }

    /// Those of a sample that has every packet.
    pub(super) fn of(entries: &Entries, parts: usize) -> Self {
        let mut counts = Self::new(parts);
        entries.iter().for_each(|entry| counts.add(entry.rank));
        counts
    }

    /// By the low bits: the high ones decide whether a packet is sampled.
    #[inline]
    fn part_of(&self, rank: u64) -> usize {
        rank as usize & (self.0.len() - 1)
    }

    #[inline]
    pub(super) fn add(&mut self, rank: u64) {
        let part = self.part_of(rank);
        self.0[part] = self.0[part].wrapping_add(1);
    }

    pub(super) fn remove(&mut self, rank: u64) {
        let part = self.part_of(rank);
        self.0[part] = self.0[part].wrapping_sub(1);
    }

    pub(super) fn merge(&mut self, other: &Self) {
        let parts = self.0.len().min(other.0.len());
        *self = self.folded(parts);
        for (index, other) in other.0.iter().enumerate() {
            let count = &mut self.0[index & (parts - 1)];
            *count = count.wrapping_add(*other);
        }
    }

    /// The same in fewer parts.
    pub(super) fn folded(&self, parts: usize) -> Self {
        let mut folded = Self::new(parts.min(self.0.len()));
        for (index, count) in self.0.iter().enumerate() {
            let part = folded.part_of(index as u64);
            folded.0[part] = folded.0[part].wrapping_add(*count);
        }
        folded
    }

    /// Packets of digests that occur so often that their part stands out, part by part, without those that are
    /// in the sample: `sampled` has the digests of large clusters, and their packets.
    pub(super) fn hidden(&self, sampled: impl Iterator<Item = (u64, u64)>) -> Vec<Excess> {
        let mut counts: Vec<f64> = self.0.iter().map(|&count| count.into()).collect();
        let (mean, limit) = limit_of(|| counts.iter().copied(), LIMIT_CHANCE);
        for (rank, packets) in sampled {
            counts[self.part_of(rank)] -= packets as f64;
        }
        let chance = ERRORS * mean.sqrt();
        let excess = |count: f64| Excess { packets: count - mean, least: count - mean - chance };
        counts.into_iter().filter(|&count| count > limit).map(excess).collect()
    }

    pub(super) fn encode(&self, out: &mut Writer) {
        out.u16(self.0.len() as u16);
        self.0.iter().for_each(|&count| out.u32(count));
    }

    pub(super) fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let parts = usize::from(input.u16("number of parts")?);
        if !parts.is_power_of_two() || parts > usize::from(PARTS_MAX) {
            let problem = format!("{parts} is no power of two up to {PARTS_MAX}");
            return Err(DecodeError::invalid("number of parts", problem));
        }
        Self::decode_so_many(parts, input)
    }

    /// As the second version of the format has them.
    pub(super) fn decode_first(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Self::decode_so_many(FIRST_PARTS, input)
    }

    fn decode_so_many(parts: usize, input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let counts = (0..parts).map(|_| input.u32("packets by part"));
        Ok(Self(counts.collect::<Result<_, _>>()?))
    }
}

#[cfg(test)]
mod tests {
    use twixt_model::mix;

    use super::*;

    const PARTS: usize = 256;

    fn counts(packets: u64, heartbeats: u64) -> PartCounts {
        let mut counts = PartCounts::new(PARTS);
        (0..packets).for_each(|packet| counts.add(mix(packet)));
        (0..heartbeats).for_each(|_| counts.add(7));
        counts
    }

    #[test]
    fn packets_that_differ_hide_nothing() {
        for packets in [0, 1, 30, 3_000, 100_000, 1_000_000] {
            assert_eq!(counts(packets, 0).hidden(std::iter::empty()), [], "{packets}");
        }
    }

    #[test]
    fn a_heartbeat_that_is_not_sampled_is_found() {
        for (packets, heartbeats) in
            [(2_730, 270), (3_000, 60), (3_000, 40), (100_000, 300), (1_000_000, 800)]
        {
            let found = counts(packets, heartbeats).hidden(std::iter::empty());
            // Other packets of its part scatter around their mean; four standard errors.
            let error = ERRORS * (packets as f64 / PARTS as f64).sqrt();
            let [Excess { packets: excess, least }] = found[..] else { panic!("{found:?}") };
            let off = (excess - heartbeats as f64).abs();
            assert!(
                off <= error && least <= heartbeats as f64,
                "{packets} {heartbeats}: {found:?}"
            );
        }
    }

    #[test]
    fn a_heartbeat_that_is_sampled_is_not_hidden() {
        assert_eq!(counts(2_730, 270).hidden([(7, 270)].into_iter()), []);
    }

    #[test]
    fn more_parts_become_fewer() {
        let (mut some, more) = (counts(1_000, 50), counts(3_000, 0));
        let fewer = some.folded(64);
        assert_eq!(fewer.0.iter().sum::<u32>(), 1_050);
        let mut merged = fewer;
        merged.merge(&more);
        some.merge(&more);
        assert_eq!(some.folded(64), merged);
    }
}

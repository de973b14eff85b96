//! Where packets and flows are counted.

use twixt_model::{FlowHash, GroupId, Observation, PacketDigest, mix};

use super::excerpt::Excerpt;
use crate::sketch::scaled;

/// Keep the derived bits apart from those of every other algorithm; vector and number of the
/// counter are added.
const FLOW_SALT: u64 = 0x434f_4c41_0000_0000;
const PACKET_SALT: u64 = 0x434f_4c41_8000_0000;
const BANK_SALT: u64 = 0x434f_4c41_c000_0000;

/// What decides where packets are counted, made once for many of them.
#[derive(Clone, Copy)]
pub(in crate::colate) struct Placing<'a> {
    /// Sampling rates in units of 2^-32.
    pub(super) thresholds: &'a [u64],
    pub(super) counters: u32,
    pub(super) per_flow: u32,
    pub(super) banks: u32,
    pub(super) bank_counters: u32,
    pub(super) excerpt: Option<&'a Excerpt>,
}

impl Placing<'_> {
    /// How many vectors there are.
    pub(in crate::colate) const fn vectors(&self) -> usize {
        self.thresholds.len()
    }

    /// Where a packet is counted in a vector, if that samples it.
    #[inline]
    pub(in crate::colate) fn cell_for(&self, vector: usize, packet: &Observation) -> Option<usize> {
        let number = self.number_for(vector, packet.digest)?;
        self.place(self.cell(vector, self.bank_of(packet.group), packet.flow, number))
    }

    /// Which of a flow's counters in a vector counts a packet, if that samples it. The high half of a
    /// packet's bits decides on the sample and the low half on the counter: a vector that samples little
    /// would otherwise use few of them.
    #[inline]
    pub(super) fn number_for(&self, vector: usize, digest: PacketDigest) -> Option<u32> {
        let bits = digest.derive(PACKET_SALT + vector as u64);
        (bits >> 32 < self.thresholds[vector]).then(|| scaled(bits << 32, self.per_flow))
    }

    /// Where a packet is counted: one counter in each vector that samples it.
    pub(in crate::colate) fn cells_for(self, packet: &Observation) -> impl Iterator<Item = usize> {
        (0..self.vectors()).filter_map(move |vector| self.cell_for(vector, packet))
    }

    /// Where a counter is that whole vectors have there; `None` if it is none of an excerpt's.
    #[inline]
    pub(super) fn place(&self, cell: usize) -> Option<usize> {
        match self.excerpt {
            None => Some(cell),
            Some(excerpt) => excerpt.place(cell),
        }
    }

    #[inline]
    pub(super) fn bank_of(&self, group: GroupId) -> u32 {
        match self.banks {
            1 => 0,
            banks => scaled(mix(u64::from(group.0) ^ BANK_SALT), banks),
        }
    }

    /// One of a flow's counters, by its number.
    #[inline]
    pub(super) fn cell(&self, vector: usize, bank: u32, flow: FlowHash, number: u32) -> usize {
        let salt = FLOW_SALT + ((vector as u64) << 16) + u64::from(number);
        let in_bank = scaled(flow.derive(salt), self.bank_counters);
        let before = bank * self.bank_counters + in_bank;
        vector * self.counters as usize + before as usize
    }
}

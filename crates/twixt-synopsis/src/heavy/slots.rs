//! Counters in fixed places, of which a flow may have but a few.

use twixt_model::FlowHash;

use super::chance::Placement;
use super::config::WaysConfig;
use super::entry::{Entry, by_size};
use crate::codec::{DecodeError, Reader, Writer};

/// `ways` times `slots` counters.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Slots<P> {
    pub(super) placement: P,
    ways: usize,
    slots: usize,
    entries: Vec<Option<Entry>>,
}

impl<P: Placement> Slots<P> {
    pub(super) fn new<const WAYS: u32>(config: &WaysConfig<WAYS>, placement: P) -> Self {
        let entries = vec![None; config.entries() as usize];
        Self { placement, ways: config.ways() as usize, slots: config.slots(), entries }
    }

    /// Bytes of state of a table with so many counters.
    pub(super) fn bytes_for(entries: usize) -> u64 {
        (entries * size_of::<Option<Entry>>()) as u64
    }

    pub(super) fn state_bytes(&self) -> u64 {
        Self::bytes_for(self.entries.len())
    }

    pub(super) const fn ways(&self) -> usize {
        self.ways
    }

    /// Where a flow may be in this way.
    #[inline]
    pub(super) fn place(&self, flow: FlowHash, way: usize) -> usize {
        self.placement.place(flow, way, self.slots)
    }

    #[inline]
    pub(super) fn at(&mut self, place: usize) -> &mut Option<Entry> {
        &mut self.entries[place]
    }

    /// The flow's counter of this way; 0 if it is free.
    #[inline]
    pub(super) fn packets_at(&self, place: usize) -> u64 {
        self.entries[place].as_ref().map_or(0, |entry| entry.packets)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().flatten()
    }

    /// Adds all counters of another table: flows again in the first free of their places, largest
    /// first. Those that find none are left out.
    pub(super) fn merge(&mut self, other: &Self) {
        let flows = by_size(self.iter().chain(other.iter()));
        self.entries.fill(None);
        for entry in flows {
            let mut places = (0..self.ways).map(|way| self.place(entry.flow, way));
            if let Some(free) = places.find(|&place| self.entries[place].is_none()) {
                self.entries[free] = Some(entry);
            }
        }
    }

    /// A byte per counter: whether it is in use.
    pub(super) fn encode(&self, out: &mut Writer) {
        for entry in &self.entries {
            out.u8(u8::from(entry.is_some()));
            if let Some(entry) = entry {
                entry.encode(out);
            }
        }
    }

    pub(super) fn decode<const WAYS: u32>(
        config: &WaysConfig<WAYS>,
        placement: P,
        input: &mut Reader<'_>,
    ) -> Result<Self, DecodeError> {
        let needed = u64::from(config.entries());
        let left = input.left() as u64;
        if needed > left {
            return Err(DecodeError::Truncated { field: "counters", needed, left });
        }
        let mut slots = Self::new(config, placement);
        for slot in &mut slots.entries {
            *slot = match input.u8("counter")? {
                0 => None,
                1 => Some(Entry::decode(input)?),
                mark => {
                    return Err(DecodeError::invalid("counter", format!("unknown mark {mark}")));
                }
            };
        }
        Ok(slots)
    }
}

//! A bounded table that always knows its smallest counter.
//!
//! Entries lie still; a binary heap of their positions keeps the smallest on top, and an index
//! finds a flow's. Of equal counters the one with the lowest rank is the smallest: what ranks
//! mean is the algorithm's business. A packet of a known flow moves its entry down the heap, which
//! for large flows, already at the bottom, costs one comparison or two.

use twixt_model::FlowHash;

use super::entry::{Entry, by_size};
use super::index::Index;
use crate::codec::{DecodeError, Reader, Writer};

#[derive(Clone, Debug)]
pub(super) struct Summary {
    capacity: usize,
    entries: Vec<Entry>,
    ranks: Vec<u64>,
    /// Positions of entries, smallest on top.
    heap: Vec<u32>,
    /// Where in the heap each position is.
    places: Vec<u32>,
    index: Index,
}

impl Summary {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            capacity,
            entries: Vec::with_capacity(capacity),
            ranks: Vec::with_capacity(capacity),
            heap: Vec::with_capacity(capacity),
            places: Vec::with_capacity(capacity),
            index: Index::for_entries(capacity),
        }
    }

    /// Bytes of state of a table with so many entries.
    pub(super) fn bytes_for(capacity: usize) -> u64 {
        let each = size_of::<Entry>() + size_of::<u64>() + 2 * size_of::<u32>();
        (capacity * each) as u64 + Index::bytes_for(capacity)
    }

    pub(super) const fn capacity(&self) -> usize {
        self.capacity
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn is_full(&self) -> bool {
        self.entries.len() >= self.capacity
    }

    /// The smallest counter; `None` if there are none.
    pub(super) fn smallest(&self) -> Option<&Entry> {
        self.heap.first().map(|&position| &self.entries[position as usize])
    }

    /// In order of their positions.
    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// In order of their ranks.
    pub(super) fn ranked(&self) -> impl Iterator<Item = &Entry> {
        let mut positions: Vec<usize> = (0..self.entries.len()).collect();
        positions.sort_unstable_by_key(|&position| self.ranks[position]);
        positions.into_iter().map(|position| &self.entries[position])
    }

    /// Counts a packet of a flow that has an entry; whether it has one.
    #[inline]
    pub(super) fn count(&mut self, flow: FlowHash, bytes: u32) -> bool {
        let found = self.index.find(flow, |position| self.entries[position].flow);
        if let Some(position) = found {
            self.entries[position].count(bytes);
            self.sink(self.places[position] as usize);
        }
        found.is_some()
    }

    /// Adds an entry for a flow that has none. The table is not full.
    pub(super) fn insert(&mut self, entry: Entry, rank: u64) {
        let position = self.entries.len();
        self.entries.push(entry);
        self.ranks.push(rank);
        self.places.push(position as u32);
        self.heap.push(position as u32);
        self.index.insert(position, |position| self.entries[position].flow);
        self.rise(position);
    }

    /// Gives the smallest counter to another flow, which has none yet; `entry` continues it.
    pub(super) fn replace_smallest(&mut self, entry: Entry, rank: Option<u64>) {
        let position = self.heap[0] as usize;
        let before = self.entries[position].flow;
        self.index.remove(before, |position| self.entries[position].flow);
        self.entries[position] = entry;
        self.ranks[position] = rank.unwrap_or(self.ranks[position]);
        self.index.insert(position, |position| self.entries[position].flow);
        self.sink(0);
    }

    /// Starts again with the largest of these, one per flow, ranked in that order.
    pub(super) fn refill<'a>(&mut self, entries: impl IntoIterator<Item = &'a Entry>) {
        let mut largest = by_size(entries);
        largest.truncate(self.capacity);
        *self = Self { capacity: self.capacity, ..Self::new(largest.len()) };
        for (rank, entry) in largest.into_iter().enumerate() {
            self.insert(entry, rank as u64);
        }
    }

    fn order(&self, place: usize) -> (u64, u64) {
        let position = self.heap[place] as usize;
        (self.entries[position].packets, self.ranks[position])
    }

    fn sink(&mut self, mut place: usize) {
        let own = self.order(place);
        while let Some((child, order)) = self.smaller_child(place)
            && order < own
        {
            self.swap(place, child);
            place = child;
        }
    }

    /// The smaller of what is below a place; `None` at the bottom.
    #[inline]
    fn smaller_child(&self, place: usize) -> Option<(usize, (u64, u64))> {
        let (left, right) = (2 * place + 1, 2 * place + 2);
        if left >= self.heap.len() {
            return None;
        }
        let one = (left, self.order(left));
        if right >= self.heap.len() {
            return Some(one);
        }
        let other = (right, self.order(right));
        Some(if other.1 < one.1 { other } else { one })
    }

    fn rise(&mut self, mut place: usize) {
        while place > 0 {
            let parent = (place - 1) / 2;
            if self.order(parent) <= self.order(place) {
                return;
            }
            self.swap(place, parent);
            place = parent;
        }
    }

    fn swap(&mut self, one: usize, other: usize) {
        self.heap.swap(one, other);
        self.places[self.heap[one] as usize] = one as u32;
        self.places[self.heap[other] as usize] = other as u32;
    }

    /// Entries in order of their ranks, which is all that ranks are for.
    pub(super) fn encode(&self, out: &mut Writer) {
        out.u64(self.entries.len() as u64);
        for entry in self.ranked() {
            entry.encode(out);
        }
    }

    pub(super) fn decode(capacity: usize, input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let count = input.count("entries", Entry::BYTES)?;
        if count > capacity {
            let problem = format!("{count} in a table of {capacity}");
            return Err(DecodeError::invalid("entries", problem));
        }
        let mut summary = Self { capacity, ..Self::new(count) };
        for rank in 0..count {
            let entry = Entry::decode(input)?;
            if summary.index.find(entry.flow, |at| summary.entries[at].flow).is_some() {
                return Err(DecodeError::invalid("entries", "duplicate flow"));
            }
            summary.insert(entry, rank as u64);
        }
        Ok(summary)
    }
}

impl PartialEq for Summary {
    fn eq(&self, other: &Self) -> bool {
        self.capacity == other.capacity && self.ranked().eq(other.ranked())
    }
}

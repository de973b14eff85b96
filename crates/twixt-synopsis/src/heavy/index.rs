//! Where a flow's entry is: a hash table of positions, in one piece of memory.
//!
//! Open addressing with linear probing; what is removed leaves no gravestone, because the
//! entries behind it move up. It never holds more than half of what it has room for.

use twixt_model::FlowHash;

/// No entry.
const NONE: u32 = u32::MAX;
const INDEX_SALT: u64 = 0x6865_6176_792d_696e;

#[derive(Clone, Debug)]
pub(super) struct Index {
    /// A power of two of them.
    places: Vec<u32>,
    used: usize,
}

impl Index {
    /// With room for `entries`.
    pub(super) fn for_entries(entries: usize) -> Self {
        Self { places: vec![NONE; places_for(entries)], used: 0 }
    }

    /// Bytes of an index with room for `entries`.
    pub(super) fn bytes_for(entries: usize) -> u64 {
        (places_for(entries) * size_of::<u32>()) as u64
    }

    /// The position of a flow's entry; `flow_at` tells whose entry is at a position.
    #[inline]
    pub(super) fn find(
        &self,
        flow: FlowHash,
        flow_at: impl Fn(usize) -> FlowHash,
    ) -> Option<usize> {
        let place = self.place_of(flow, flow_at);
        let position = self.places[place];
        (position != NONE).then_some(position as usize)
    }

    /// Remembers a position. The flow is not yet there.
    pub(super) fn insert(&mut self, position: usize, flow_at: impl Fn(usize) -> FlowHash) {
        if (self.used + 1) * 2 > self.places.len() {
            self.grow(&flow_at);
        }
        let place = self.place_of(flow_at(position), &flow_at);
        self.places[place] = position as u32;
        self.used += 1;
    }

    /// Forgets a flow's position.
    pub(super) fn remove(&mut self, flow: FlowHash, flow_at: impl Fn(usize) -> FlowHash) {
        let mask = self.places.len() - 1;
        let mut gap = self.place_of(flow, &flow_at);
        if self.places[gap] == NONE {
            return;
        }
        self.used -= 1;
        let mut place = gap;
        loop {
            place = (place + 1) & mask;
            let position = self.places[place];
            if position == NONE {
                break;
            }
            // An entry may move up to the gap unless it would then lie before its own home.
            let home = self.home(flow_at(position as usize));
            if (place.wrapping_sub(home) & mask) >= (place.wrapping_sub(gap) & mask) {
                self.places[gap] = position;
                gap = place;
            }
        }
        self.places[gap] = NONE;
    }

    fn home(&self, flow: FlowHash) -> usize {
        flow.derive(INDEX_SALT) as usize & (self.places.len() - 1)
    }

    /// Where the flow is, or the free place where it would be.
    #[inline]
    fn place_of(&self, flow: FlowHash, flow_at: impl Fn(usize) -> FlowHash) -> usize {
        let mask = self.places.len() - 1;
        let mut place = self.home(flow);
        while self.places[place] != NONE && flow_at(self.places[place] as usize) != flow {
            place = (place + 1) & mask;
        }
        place
    }

    fn grow(&mut self, flow_at: impl Fn(usize) -> FlowHash) {
        let places = vec![NONE; self.places.len() * 2];
        let before = std::mem::replace(&mut self.places, places);
        for position in before.into_iter().filter(|&position| position != NONE) {
            let place = self.place_of(flow_at(position as usize), &flow_at);
            self.places[place] = position;
        }
    }
}

fn places_for(entries: usize) -> usize {
    (entries * 2).next_power_of_two().max(4)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use twixt_model::mix;

    use super::*;

    /// Flows come and go at random; an ordered map does the same.
    #[test]
    fn it_finds_what_a_map_finds() {
        const POSITIONS: u64 = 50;
        let mut flows = vec![FlowHash(u64::MAX); POSITIONS as usize];
        let mut index = Index::for_entries(4); // grows on the way
        let mut map = BTreeMap::new();
        for step in 0..20_000 {
            let position = (mix(step) % POSITIONS) as usize;
            let before = flows[position];
            if map.remove(&before).is_some() {
                index.remove(before, |position| flows[position]);
            }
            let flow = FlowHash(mix(step ^ 0xabcd) % 80);
            if !map.contains_key(&flow) && step % 3 != 0 {
                flows[position] = flow;
                index.insert(position, |position| flows[position]);
                map.insert(flow, position);
            } else {
                flows[position] = FlowHash(u64::MAX);
            }
            for flow in (0..80).map(FlowHash) {
                let found = index.find(flow, |position| flows[position]);
                assert_eq!(found, map.get(&flow).copied(), "step {step}");
            }
        }
    }
}

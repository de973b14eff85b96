//! Where packets lie in a list without order, so that one can be taken out without a search.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use twixt_model::PacketDigest;

use super::Selected;

/// The places of the packets of each digest. Mostly one.
#[derive(Clone, Debug)]
pub(super) struct Places(HashMap<PacketDigest, Vec<usize>, RandomState>);

impl Places {
    pub(super) fn of(packets: &[Selected]) -> Self {
        let mut places =
            Self(HashMap::with_capacity_and_hasher(packets.len(), RandomState::default()));
        for (place, selected) in packets.iter().enumerate() {
            places.add(selected.packet.digest, place);
        }
        places
    }

    pub(super) fn add(&mut self, digest: PacketDigest, place: usize) {
        self.0.entry(digest).or_default().push(place);
    }

    /// Where packets of that digest lie.
    pub(super) fn of_digest(&self, digest: PacketDigest) -> &[usize] {
        self.0.get(&digest).map_or(&[], Vec::as_slice)
    }

    /// Takes the packet at a place out of the list, and moves the last one there.
    pub(super) fn swap_remove(&mut self, packets: &mut Vec<Selected>, place: usize) {
        let removed = packets.swap_remove(place);
        if let Some(places) = self.0.get_mut(&removed.packet.digest) {
            places.retain(|&other| other != place);
            if places.is_empty() {
                self.0.remove(&removed.packet.digest);
            }
        }
        let from = packets.len();
        let moved = packets.get(place).and_then(|moved| self.0.get_mut(&moved.packet.digest));
        for other in moved.into_iter().flatten().filter(|other| **other == from) {
            *other = place;
        }
    }
}

#[cfg(test)]
mod tests {
    use twixt_model::{Observation, mix};

    use super::*;

    #[test]
    fn places_stay_right_while_packets_are_taken_out() {
        let selected = |number: u64| {
            let digest = PacketDigest(number % 40);
            Selected { packet: Observation { digest, ..Observation::default() }, tcp_flags: 0 }
        };
        let mut packets: Vec<Selected> = (0..100).map(selected).collect();
        let mut places = Places::of(&packets);
        for step in 0..100 {
            let place = (mix(step) % packets.len() as u64) as usize;
            places.swap_remove(&mut packets, place);
            for digest in (0..40).map(PacketDigest) {
                let mut found = places.of_digest(digest).to_vec();
                found.sort_unstable();
                let lies = |place: &usize| packets[*place].packet.digest == digest;
                let expected: Vec<usize> = (0..packets.len()).filter(lies).collect();
                assert_eq!(found, expected);
            }
        }
    }
}

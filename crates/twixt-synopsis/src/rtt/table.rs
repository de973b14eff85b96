//! A table of requests in which each has one place.

use twixt_model::mix;

use super::entry::Entry;

/// So many places; the number of a request says which is its own.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Table {
    entries: u32,
    /// Made when the first request comes: a synopsis that was read needs none.
    places: Vec<Entry>,
}

impl Table {
    pub(super) const fn new(entries: u32) -> Self {
        Self { entries, places: Vec::new() }
    }

    /// The place of a request.
    #[inline]
    pub(super) fn place(&mut self, id: u64) -> &mut Entry {
        if self.places.is_empty() {
            self.places = vec![Entry::EMPTY; self.entries as usize];
        }
        let at = self.at(id);
        &mut self.places[at]
    }

    /// The request of that number, if it is there.
    #[inline]
    pub(super) fn find(&mut self, id: u64) -> Option<&mut Entry> {
        let at = self.at(id);
        self.places.get_mut(at).filter(|entry| entry.is(id))
    }

    pub(super) const fn entries(&self) -> u32 {
        self.entries
    }

    /// Bytes of state, once a request came.
    pub(super) const fn state_bytes(&self) -> u64 {
        self.entries as u64 * size_of::<Entry>() as u64
    }

    #[inline]
    const fn at(&self, id: u64) -> usize {
        (((id & 0xffff_ffff) * self.entries as u64) >> 32) as usize
    }
}

/// 32 bits that decide whether a request is admitted: independent of those that choose its place,
/// or the requests that are admitted would share few places.
#[inline]
pub(super) const fn admission_bits(id: u64) -> u64 {
    const SALT: u64 = 0x6672_6964_6765_2121;
    mix(id ^ SALT) >> 32
}

/// A probability in units of 2^-32, as admission compares it.
pub(super) fn threshold(probability: f64) -> u64 {
    ((probability * 2_f64.powi(32)).round() as u64).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With the same low bits for both only 64 of 1024 places would be used.
    #[test]
    fn the_admitted_use_every_place() {
        let (table, limit) = (Table::new(1024), threshold(1.0 / 16.0));
        let mut used = vec![false; 1024];
        let admitted = (0..300_000).map(mix).filter(|&id| admission_bits(id) < limit);
        let mut count = 0;
        for id in admitted {
            used[table.at(id)] = true;
            count += 1;
        }
        assert!(used.iter().all(|&used| used));
        // Five standard deviations of a binomial count.
        assert!((f64::from(count) - 18_750.0).abs() < 5.0 * 18_750_f64.sqrt(), "{count}");
    }
}

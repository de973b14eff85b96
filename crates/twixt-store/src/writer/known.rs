//! Which records a file has, and where: all that matter for what comes now, in bounded memory.
//!
//! Epochs of a stream come in order, but for a few. So those that were appended last are
//! remembered, and of each stream up to which epoch others were forgotten: one behind that is
//! certain not to be there. A query for an older one reads the file again.

use std::collections::HashMap;

/// Records that are remembered; twice as many after older ones were asked for.
const KNOWN_MAX: usize = 1 << 11;

/// What is known of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sought {
    /// It is at this place.
    At(u64),
    /// It is not there.
    Nowhere,
    /// It may be among those that were forgotten.
    Forgotten,
}

/// Places of records by hash of the stream and epoch.
#[derive(Debug)]
pub(super) struct Known {
    places: HashMap<(u64, i64), u64>, // at most `places_max`
    /// By stream: no later epoch was forgotten.
    forgotten: HashMap<u64, i64>,
    places_max: usize,
}

impl Known {
    /// The records of a file, in the order in which they were appended.
    pub(super) fn of(records: impl Iterator<Item = ((u64, i64), u64)>) -> Self {
        let mut known =
            Self { places: HashMap::new(), forgotten: HashMap::new(), places_max: KNOWN_MAX };
        records.for_each(|(record, place)| known.add(record, place));
        known
    }

    /// All of them, since older ones are asked for: there will be more of these.
    pub(super) fn all_of(records: impl Iterator<Item = ((u64, i64), u64)>) -> Self {
        let places: HashMap<(u64, i64), u64> = records.collect();
        let places_max = KNOWN_MAX.max(2 * places.len());
        Self { places, forgotten: HashMap::new(), places_max }
    }

    pub(super) fn find(&self, record: (u64, i64)) -> Sought {
        let (stream, epoch) = record;
        match self.places.get(&record) {
            Some(&place) => Sought::At(place),
            None if self.forgotten.get(&stream).is_some_and(|&last| epoch <= last) => {
                Sought::Forgotten
            }
            None => Sought::Nowhere,
        }
    }

    /// Adds one that was appended.
    pub(super) fn add(&mut self, record: (u64, i64), place: u64) {
        self.places.insert(record, place);
        if self.places.len() > self.places_max {
            self.forget_half();
            self.places_max = KNOWN_MAX;
        }
    }

    /// Forgets those that were appended first: as many as to make this cheap on the whole.
    fn forget_half(&mut self) {
        let mut places: Vec<u64> = self.places.values().copied().collect();
        let surplus = places.len() - KNOWN_MAX / 2;
        let (_, &mut first, _) = places.select_nth_unstable(surplus);
        let forgotten = &mut self.forgotten;
        self.places.retain(|&(stream, epoch), &mut place| {
            let is_kept = place >= first;
            if !is_kept {
                let last = forgotten.entry(stream).or_insert(epoch);
                *last = epoch.max(*last);
            }
            is_kept
        });
        self.places.shrink_to(KNOWN_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(epochs: std::ops::Range<i64>) -> impl Iterator<Item = ((u64, i64), u64)> {
        epochs.map(|epoch| ((7, epoch), 100 * epoch as u64))
    }

    #[test]
    fn what_is_forgotten_is_not_said_to_be_absent() {
        let last = 100_000;
        let known = Known::of(records(0..last));
        assert!(known.places.len() <= KNOWN_MAX);
        assert_eq!(known.find((7, last - 1)), Sought::At(100 * (last as u64 - 1)));
        assert_eq!(known.find((7, last)), Sought::Nowhere);
        assert_eq!(known.find((8, 0)), Sought::Nowhere, "another stream");
        assert_eq!(known.find((7, 0)), Sought::Forgotten);
        for epoch in 0..last {
            assert_ne!(known.find((7, epoch)), Sought::Nowhere, "{epoch}");
        }
    }

    /// One that sends what it kept for long has the file read a few times, not for each epoch.
    #[test]
    fn old_epochs_that_come_in_numbers_are_remembered() {
        let mut known = Known::all_of(records(0..50_000));
        assert_eq!(known.find((7, 0)), Sought::At(0));
        records(50_000..90_000).for_each(|(record, place)| known.add(record, place));
        assert_eq!(known.find((7, 0)), Sought::At(0));
        records(90_000..110_000).for_each(|(record, place)| known.add(record, place));
        assert!(known.places.len() <= KNOWN_MAX);
        assert_eq!(known.find((7, 0)), Sought::Forgotten);
    }
}

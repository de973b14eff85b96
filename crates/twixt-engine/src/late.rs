//! Epochs whose half came after they were concluded, as ranges.

use std::collections::BTreeMap;

use twixt_model::Epoch;

/// Ranges of a series; when there are more, one that holds them all takes their place. Epochs in
/// it that did not come late are looked at in vain.
const RANGES_MAX: usize = 256;

/// Numbers of epochs, as ranges that do not touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct EpochRanges {
    /// Last by first.
    ranges: BTreeMap<Epoch, Epoch>, // at most RANGES_MAX
    /// There were too many: some epochs in them were never inserted.
    is_coarse: bool,
}

impl EpochRanges {
    pub(crate) fn insert(&mut self, epoch: Epoch) {
        self.insert_range(epoch, epoch);
    }

    pub(crate) fn insert_range(&mut self, first: Epoch, last: Epoch) {
        let (mut first, mut last) = (first, last.max(first));
        let beyond = Epoch(last.0.saturating_add(1));
        while let Some((&start, &end)) = self.ranges.range(..=beyond).next_back()
            && end.0.saturating_add(1) >= first.0
        {
            self.ranges.remove(&start);
            (first, last) = (first.min(start), last.max(end));
        }
        self.ranges.insert(first, last);
        if self.ranges.len() > RANGES_MAX {
            self.merge_all();
        }
    }

    /// Takes out all epochs from `first` to `last`.
    pub(crate) fn remove(&mut self, first: Epoch, last: Epoch) {
        while let Some((&start, &end)) = self.ranges.range(..=last).next_back()
            && end >= first
        {
            self.ranges.remove(&start);
            if end > last {
                self.ranges.insert(Epoch(last.0.saturating_add(1)), end);
            }
            if start < first {
                self.ranges.insert(start, Epoch(first.0.saturating_sub(1)));
                break;
            }
        }
    }

    pub(crate) fn contains(&self, epoch: Epoch) -> bool {
        self.ranges.range(..=epoch).next_back().is_some_and(|(_, &last)| epoch <= last)
    }

    /// Epochs from `first` to `last`, in runs, and whether they are known to have been inserted.
    pub(crate) fn runs(&self, first: Epoch, last: Epoch) -> Vec<(Epoch, Epoch, bool)> {
        if self.is_coarse {
            return vec![(first, last, false)];
        }
        let (mut runs, mut next) = (Vec::new(), first);
        let reaching = self.iter().filter(|(start, end)| *start <= last && *end >= first);
        for (start, end) in reaching.map(|(start, end)| (start.max(first), end.min(last))) {
            if next < start {
                runs.push((next, Epoch(start.0.saturating_sub(1)), false));
            }
            runs.push((start, end, true));
            next = Epoch(end.0.saturating_add(1));
        }
        if next <= last {
            runs.push((next, last, false));
        }
        runs
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Epoch, Epoch)> {
        self.ranges.iter().map(|(&first, &last)| (first, last))
    }

    fn merge_all(&mut self) {
        let first = self.ranges.first_key_value().map(|(&first, _)| first);
        let last = self.ranges.values().max().copied();
        self.ranges = first.zip(last).into_iter().collect();
        self.is_coarse = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(ranges: &EpochRanges, expected: &[(i64, i64)]) {
        let found: Vec<_> = ranges.iter().map(|(first, last)| (first.0, last.0)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn neighbours_become_one_range() {
        let mut ranges = EpochRanges::default();
        for epoch in [5, 9, 7, 6, 6, 1] {
            ranges.insert(Epoch(epoch));
        }
        check(&ranges, &[(1, 1), (5, 7), (9, 9)]);
        ranges.insert_range(Epoch(2), Epoch(8));
        check(&ranges, &[(1, 9)]);
        ranges.insert_range(Epoch(20), Epoch(30));
        ranges.insert_range(Epoch(22), Epoch(23));
        check(&ranges, &[(1, 9), (20, 30)]);
    }

    #[test]
    fn what_is_removed_may_split_a_range() {
        let mut ranges = EpochRanges::default();
        ranges.insert_range(Epoch(1), Epoch(9));
        ranges.insert_range(Epoch(20), Epoch(30));
        ranges.remove(Epoch(4), Epoch(5));
        check(&ranges, &[(1, 3), (6, 9), (20, 30)]);
        ranges.remove(Epoch(8), Epoch(25));
        check(&ranges, &[(1, 3), (6, 7), (26, 30)]);
        ranges.remove(Epoch(i64::MIN), Epoch(i64::MAX));
        check(&ranges, &[]);
    }

    #[test]
    fn runs_are_inside_or_outside() {
        let mut ranges = EpochRanges::default();
        ranges.insert_range(Epoch(1), Epoch(4));
        ranges.insert_range(Epoch(8), Epoch(9));
        let runs = |first, last| {
            let runs = ranges.runs(Epoch(first), Epoch(last)).into_iter();
            runs.map(|(first, last, inside)| (first.0, last.0, inside)).collect::<Vec<_>>()
        };
        assert_eq!(runs(5, 7), [(5, 7, false)]);
        assert_eq!(runs(2, 3), [(2, 3, true)]);
        let expected = [(0, 0, false), (1, 4, true), (5, 7, false), (8, 8, true)];
        assert_eq!(runs(0, 8), expected);
    }

    #[test]
    fn there_are_never_too_many() {
        let mut ranges = EpochRanges::default();
        for number in 0..=RANGES_MAX as i64 {
            ranges.insert(Epoch(number * 2));
        }
        check(&ranges, &[(0, 2 * RANGES_MAX as i64)]);
        // Epoch 1 was never inserted.
        assert_eq!(ranges.runs(Epoch(0), Epoch(1)), [(Epoch(0), Epoch(1), false)]);
    }
}

//! Packets that the point may not have observed, by the epochs that may lack them. Drops are noticed
//! some time after they happened, so it is seldom certain which epoch that was.

use std::collections::VecDeque;

use twixt_model::Epoch;

/// Most ranges of epochs remembered, of which a meter has a few open. Beyond, the two oldest count
/// as one, with all epochs between them.
pub(super) const RANGES_MAX: usize = 64;

/// What may be missing, and where.
#[derive(Debug, Default)]
pub(super) struct Missing {
    ranges: VecDeque<Range>, // at most RANGES_MAX
}

/// Packets that all belong to one epoch of a range, or several, or none.
#[derive(Clone, Copy, Debug)]
struct Range {
    first: Epoch,
    last: Epoch,
    packets: u64,
}

impl Missing {
    /// Up to `packets` may be missing in the epochs from `first` to `last`.
    pub(super) fn add(&mut self, (first, last): (Epoch, Epoch), packets: u64) {
        if packets == 0 {
            return;
        }
        match self.ranges.back_mut().filter(|range| (range.first, range.last) == (first, last)) {
            Some(same) => same.packets = same.packets.saturating_add(packets),
            None => self.ranges.push_back(Range { first, last, packets }),
        }
        if self.ranges.len() > RANGES_MAX
            && let (Some(oldest), Some(next)) = (self.ranges.pop_front(), self.ranges.front_mut())
        {
            next.first = next.first.min(oldest.first);
            next.last = next.last.max(oldest.last);
            next.packets = next.packets.saturating_add(oldest.packets);
        }
    }

    /// How many packets an epoch may lack at most; `None` if nothing was ever missing.
    pub(super) fn of(&self, epoch: Epoch) -> Option<u64> {
        let here = self.ranges.iter().filter(|range| (range.first..=range.last).contains(&epoch));
        let packets = here.fold(0_u64, |sum, range| sum.saturating_add(range.packets));
        (!self.ranges.is_empty()).then_some(packets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_may_lack_what_any_range_that_holds_it_lacks() {
        let mut missing = Missing::default();
        assert_eq!(missing.of(Epoch(3)), None);
        for _ in 0..1000 {
            missing.add((Epoch(3), Epoch(4)), 1);
        }
        missing.add((Epoch(4), Epoch(4)), 20);
        let all: Vec<Option<u64>> = (2..6).map(|epoch| missing.of(Epoch(epoch))).collect();
        assert_eq!(all, [Some(0), Some(1000), Some(1020), Some(0)]);
    }

    #[test]
    fn too_many_ranges_become_one_and_nothing_is_forgotten() {
        let mut missing = Missing::default();
        for epoch in 0..1000 {
            missing.add((Epoch(epoch), Epoch(epoch)), 1);
        }
        assert_eq!(missing.ranges.len(), RANGES_MAX);
        assert_eq!(missing.of(Epoch(999)), Some(1));
        assert_eq!(missing.of(Epoch(0)), Some(1001 - RANGES_MAX as u64));
    }
}

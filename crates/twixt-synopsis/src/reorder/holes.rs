//! Holes in the data of a flow: what others overtook, or what was lost.

use twixt_model::Timestamp;

/// How far `one` lies behind `other`, modulo 2^32.
pub(super) const fn difference(one: u32, other: u32) -> i32 {
    one.wrapping_sub(other) as i32
}

/// Data that later data overtook, and that has not arrived yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hole {
    pub(super) start: u32,
    pub(super) end: u32,
    /// When the first packet arrived that overtook it.
    pub(super) since: Timestamp,
}

/// How a packet lies to the holes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cover {
    /// All of its data arrived before.
    Outside,
    /// None of its data arrived before, and one hole has all of it.
    Within(Timestamp),
    /// Some of its data arrived before.
    Partly,
}

/// Open holes of a flow, at most so many; each has its own age. A hole opens above all others, so
/// they are in the order of their numbers and of their ages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Holes<const MAX: usize> {
    open: [Hole; MAX],
    count: usize, // <= MAX
}

impl Hole {
    /// What is left of it without `start..end`: below and above.
    fn without(self, start: u32, end: u32) -> [Option<Self>; 2] {
        let below = Self { end: lower(self.end, start), ..self };
        let above = Self { start: upper(self.start, end), ..self };
        [below, above].map(|part| Some(part).filter(|part| difference(part.start, part.end) < 0))
    }
}

impl<const MAX: usize> Holes<MAX> {
    pub(super) const NONE: Self = {
        let hole = Hole { start: 0, end: 0, since: Timestamp::from_nanos(0) };
        Self { open: [hole; MAX], count: 0 }
    };

    fn open(&self) -> &[Hole] {
        &self.open[..self.count]
    }

    /// Adds a hole above all others. If there are too many, the lowest is given up: its end is
    /// returned.
    pub(super) fn add(&mut self, hole: Hole) -> Option<u32> {
        let given_up = (self.count == MAX).then(|| self.open[0].end);
        if given_up.is_some() {
            self.open.copy_within(1.., 0);
            self.count -= 1;
        }
        self.open[self.count] = hole;
        self.count += 1;
        given_up
    }

    /// How the data `start..end` lies to the holes.
    pub(super) fn cover(&self, start: u32, end: u32) -> Cover {
        let touched =
            |hole: &&Hole| difference(hole.start, end) < 0 && difference(start, hole.end) < 0;
        let Some(hole) = self.open().iter().find(touched) else { return Cover::Outside };
        let within = difference(start, hole.start) >= 0 && difference(end, hole.end) <= 0;
        if within { Cover::Within(hole.since) } else { Cover::Partly }
    }

    /// The data `start..end` arrived. A hole may become two; if these are too many, the lowest is
    /// given up: its end is returned.
    pub(super) fn fill(&mut self, start: u32, end: u32) -> Option<u32> {
        let (mut left, mut given_up) = (Self::NONE, None);
        for part in self.open().iter().flat_map(|hole| hole.without(start, end)).flatten() {
            given_up = left.add(part).or(given_up);
        }
        *self = left;
        given_up
    }
}

const fn lower(one: u32, other: u32) -> u32 {
    if difference(one, other) < 0 { one } else { other }
}

const fn upper(one: u32, other: u32) -> u32 {
    if difference(one, other) > 0 { one } else { other }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(ns: i64) -> Timestamp {
        Timestamp::from_nanos(ns)
    }

    fn holes<const MAX: usize>(ranges: &[(u32, u32)]) -> Holes<MAX> {
        let mut holes = Holes::NONE;
        for (number, &(start, end)) in ranges.iter().enumerate() {
            holes.add(Hole { start, end, since: at(number as i64) });
        }
        holes
    }

    #[test]
    fn each_hole_has_its_own_age() {
        let holes = holes::<4>(&[(u32::MAX - 9, 10), (20, 30)]);
        assert_eq!(holes.cover(u32::MAX, 5), Cover::Within(at(0)));
        assert_eq!(holes.cover(20, 30), Cover::Within(at(1)));
        assert_eq!(holes.cover(10, 20), Cover::Outside);
        assert_eq!(holes.cover(0, 20), Cover::Partly);
        assert_eq!(holes.cover(0, 40), Cover::Partly);
    }

    #[test]
    fn the_lowest_hole_gives_way() {
        let mut holes = holes::<2>(&[(0, 10), (20, 30)]);
        assert_eq!(holes.fill(24, 26), Some(10));
        assert_eq!(
            (holes.cover(0, 10), holes.cover(26, 30)),
            (Cover::Outside, Cover::Within(at(1)))
        );
        assert_eq!(holes.add(Hole { start: 40, end: 50, since: at(9) }), Some(24));
    }

    proptest! {
        #![proptest_config(twixt_testing::cases(64))]

        /// Beside a set of missing numbers, around the place where they wrap.
        #[test]
        fn what_is_missing_is_what_was_not_filled(
            filled in prop::collection::vec((0..60_u32, 1..20_u32), 0..12),
        ) {
            let base = u32::MAX - 30;
            let number = |place: u32| base.wrapping_add(place);
            let mut holes = holes::<16>(&[(number(5), number(25)), (number(40), number(70))]);
            let mut missing: Vec<u32> = (5..25).chain(40..70).collect();
            for (start, length) in filled {
                let end = start + length;
                let found = missing.iter().filter(|&&place| (start..end).contains(&place)).count();
                let cover = holes.cover(number(start), number(end));
                prop_assert_eq!(cover == Cover::Outside, found == 0);
                prop_assert_eq!(matches!(cover, Cover::Within(_)), found as u32 == length);
                prop_assert_eq!(holes.fill(number(start), number(end)), None);
                missing.retain(|place| !(start..end).contains(place));
            }
        }
    }
}

//! Packets that pass the points one after the other, with delay and loss, and the truth about them.
//!
//! Everything about a packet follows from its number, so that nothing need be remembered of it.

use std::collections::BTreeSet;
use std::ops::{Range, RangeInclusive};

use twixt_model::mix;

use crate::plan::{MS, Plan, SECOND};

/// Longest delay from one point to the next.
const DELAY_NS_MAX: i64 = 12 * MS;

/// A packet at a point: which point, and when.
pub(crate) type Passing = (usize, i64);

/// The packets of a story.
#[derive(Clone, Debug)]
pub(crate) struct Traffic {
    seed: u64,
    /// A packet is sent each so often.
    every_ns: i64,
    /// One packet in so many is lost between two points.
    loss_one_in: u64,
    /// When the last packet is sent.
    end_ns: i64,
}

impl Traffic {
    pub(crate) const fn new(seed: u64, plan: &Plan) -> Self {
        let &Plan { packet_every_ns: every_ns, loss_one_in, length_ns: end_ns, .. } = plan;
        Self { seed, every_ns, loss_one_in, end_ns }
    }

    /// Packets that pass a point within a time: when, and as Ethernet frames.
    pub(crate) fn frames(&self, point: usize, within_ns: Range<i64>) -> Vec<(i64, Vec<u8>)> {
        let passing = self.sent_by(point, &within_ns).filter_map(|number| {
            let at_ns = self.passes(number, point)?;
            within_ns.contains(&at_ns).then(|| (at_ns, frame(number)))
        });
        let mut passing: Vec<_> = passing.collect();
        passing.sort_unstable_by_key(|(at_ns, _)| *at_ns);
        passing
    }

    /// Packets that a point sees within a time and that are lost before the next point.
    pub(crate) fn lost_behind(
        &self,
        point: usize,
        within_ns: Range<i64>,
        dropped: &BTreeSet<Passing>,
    ) -> u64 {
        let is_seen = |at_ns: i64| within_ns.contains(&at_ns) && !dropped.contains(&(point, at_ns));
        let is_lost = |number: &i64| {
            self.passes(*number, point).is_some_and(is_seen)
                && self.passes(*number, point + 1).is_none()
        };
        self.sent_by(point, &within_ns).filter(is_lost).count() as u64
    }

    /// Packets that may pass a point within a time.
    fn sent_by(&self, point: usize, within_ns: &Range<i64>) -> RangeInclusive<i64> {
        let longest_ns = DELAY_NS_MAX * point as i64 + self.every_ns;
        let first = (within_ns.start - longest_ns).div_euclid(self.every_ns).max(0);
        first..=within_ns.end.div_euclid(self.every_ns)
    }

    /// When a packet passes a point; `None` if it was lost before.
    fn passes(&self, number: i64, point: usize) -> Option<i64> {
        let draw = |what: u64| mix(self.seed ^ mix(number.cast_unsigned() << 8 | what));
        let sent_ns = number * self.every_ns + (draw(0) % self.every_ns as u64).cast_signed();
        let mut at_ns = (sent_ns < self.end_ns).then_some(sent_ns)?;
        for hop in 1..=point as u64 {
            if draw(2 * hop).is_multiple_of(self.loss_one_in) {
                return None;
            }
            let delay_ns = draw(2 * hop + 1) % (DELAY_NS_MAX - MS) as u64;
            at_ns += MS + delay_ns.cast_signed();
        }
        Some(at_ns)
    }
}

/// When an epoch begins and ends, since the start of a story whose clocks began with a time.
pub(crate) const fn epoch_ns(epoch: i64, start_ns: i64) -> Range<i64> {
    let begins_ns = epoch * SECOND - start_ns;
    begins_ns..begins_ns + SECOND
}

/// An UDP packet whose payload is its number.
fn frame(number: i64) -> Vec<u8> {
    const PAYLOAD: u16 = 8;
    let identification = (number as u16).to_be_bytes();
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
    frame.extend([0x45, 0]);
    frame.extend((20 + 8 + PAYLOAD).to_be_bytes());
    frame.extend(identification);
    frame.extend([0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    frame.extend([0x0f, 0xa0, 0x13, 0x88]);
    frame.extend((8 + PAYLOAD).to_be_bytes());
    frame.extend([0, 0]);
    frame.extend(number.to_be_bytes());
    frame
}

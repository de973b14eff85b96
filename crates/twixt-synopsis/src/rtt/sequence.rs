//! Which segments and ACKs may be compared: Karn's rule by ranges of sequence numbers.
//!
//! Of each direction of a connection one range is kept: what was sent in order and is not yet
//! acknowledged. An ACK inside it answers the segment that ends there. Whatever makes that doubtful
//! empties the range: data sent again or out of order (the ACK may be to either, and one that
//! fills a gap releases the ACKs of what came after it), and a repeated ACK (something is missing
//! beyond the point). Data behind a gap begins a new range. So nothing comes from segments that
//! were sent again or that the receiver held back, and selective acknowledgements need not be
//! read: their ACKs are repeated ones.
//!
//! The rules are those of Sengupta, Kim, Rexford: "Continuous in-network round-trip time
//! monitoring", SIGCOMM 2022, section 3.

use crate::flow_table::FlowTable;

/// Sent in order and not yet acknowledged: empty if both ends are equal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Range {
    left: u32,
    right: u32,
    /// Whether anything was sent.
    known: bool,
}

/// Whether `one` lies before `other`, where numbers wrap around.
#[inline]
pub(super) const fn before(one: u32, other: u32) -> bool {
    (one.wrapping_sub(other) as i32) < 0
}

impl FlowTable<Range> {
    /// Data passed; whether an ACK of its end would be an answer to it.
    #[inline]
    pub(super) fn sent(&mut self, flow: u64, sequence: u32, end: u32) -> bool {
        if !self.is_kept() {
            return true;
        }
        let range = self.entry(flow);
        if !range.known || before(range.right, sequence) {
            *range = Range { left: sequence, right: end, known: true };
            return true;
        }
        if range.right == sequence {
            range.right = end;
            return true;
        }
        let right = if before(range.right, end) { end } else { range.right };
        *range = Range { left: right, right, known: true };
        false
    }

    /// A new connection begins in direction `flow`. No flow gives way for that.
    pub(super) fn forget(&mut self, flow: u64) {
        if let Some(range) = self.find_mut(flow) {
            *range = Range::default();
        }
    }

    /// An ACK passed for what goes in direction `flow`; whether it is an answer. `bare` if it
    /// carries nothing else.
    #[inline]
    pub(super) fn acknowledged(&mut self, flow: u64, number: u32, bare: bool) -> bool {
        if !self.is_kept() {
            return true;
        }
        let Some(range) = self.find_mut(flow) else { return false };
        if before(range.left, number) && !before(range.right, number) {
            range.left = number;
            return true;
        }
        if bare && number == range.left {
            range.left = range.right;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `s0-10` sends, `a10` acknowledges; an upper-case letter must be usable.
    #[track_caller]
    fn check(script: &str) {
        let mut ranges = FlowTable::new(None);
        for step in script.split(' ') {
            let (letter, rest) = step.split_at(1);
            let usable = match rest.split_once('-') {
                Some((sequence, end)) => ranges.sent(1, number(sequence), number(end)),
                None => ranges.acknowledged(1, number(rest), true),
            };
            assert_eq!(usable, letter == letter.to_uppercase(), "{step} of {script}");
        }
    }

    /// Around the place where numbers wrap.
    fn number(text: &str) -> u32 {
        text.parse::<u32>().unwrap().wrapping_sub(25)
    }

    #[test]
    fn data_in_order_is_answered_once() {
        check("S0-10 S10-20 A10 A20 a20");
        check("S0-10 S10-20 S20-30 S30-40 A40 a40 S40-50 A50");
        check("a10 S0-10 a99 A10");
    }

    #[test]
    fn nothing_comes_from_what_was_sent_again() {
        check("S0-10 s0-10 a10 S10-20 A20");
        check("S0-10 S10-20 s0-10 a10 a20");
        check("S0-10 s5-15 a15 S15-20 A20");
    }

    #[test]
    fn nothing_comes_from_what_the_receiver_held_back() {
        check("S0-10 S20-30 s10-20 a30");
        check("S0-10 A10 S10-20 S20-30 a10 a30 S30-40 A40");
    }

    #[test]
    fn a_gap_begins_anew() {
        check("S0-10 S20-30 a10 A30");
    }

    /// Numbers of a new connection lie before those of the old one as often as behind them.
    #[test]
    fn a_new_connection_begins_anew() {
        let mut ranges = FlowTable::new(None);
        assert!(ranges.sent(1, 5000, 5010));
        ranges.forget(1);
        assert!(ranges.sent(1, 100, 110) && ranges.acknowledged(1, 110, true));
    }

    #[test]
    fn without_state_everything_passes() {
        let mut ranges = FlowTable::<Range>::new(Some(0));
        assert!(ranges.sent(1, 0, 10) && ranges.sent(1, 0, 10) && ranges.acknowledged(1, 10, true));
    }
}

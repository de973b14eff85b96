//! Packets that an epoch could have held and does not, by why.

use std::collections::BTreeMap;

/// Maximum number of reasons in an epoch; further ones are counted as `other`.
pub const SKIP_REASONS_MAX: usize = 64;
/// Longest name of a reason, in bytes; longer ones are counted as `other`.
pub const SKIP_REASON_BYTES_MAX: usize = 64;

const OTHER: &str = "other";

/// Packets that are not in the synopsis, by why.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    skipped: BTreeMap<String, u64>, // at most SKIP_REASONS_MAX and `other`
    /// Dropped by the kernel before anyone saw them, of all classes of the interface; noticed in this
    /// epoch, though they may have been dropped in another.
    pub dropped: u64,
    /// Most packets that this epoch lacks since they were not observed. `None` where nothing was
    /// dropped; and where it is not known when: then this epoch or one beside it may lack `dropped`.
    pub missing_max: Option<u64>,
    /// Seen after their epoch was sealed, while this one was the newest.
    pub late: u64,
}

impl Tally {
    /// Counts packets that were not measured on purpose.
    pub fn skip(&mut self, reason: &str, packets: u64) {
        let named = self.skipped.len() - usize::from(self.skipped.contains_key(OTHER));
        let room = named < SKIP_REASONS_MAX && reason.len() <= SKIP_REASON_BYTES_MAX;
        let known = room || self.skipped.contains_key(reason);
        let reason = if known { reason } else { OTHER };
        match self.skipped.get_mut(reason) {
            Some(count) => *count = count.saturating_add(packets),
            None => {
                self.skipped.insert(reason.to_owned(), packets);
            }
        }
    }

    /// Reasons in alphabetical order, and how many packets were skipped for each.
    pub fn skipped(&self) -> impl ExactSizeIterator<Item = (&str, u64)> {
        self.skipped.iter().map(|(reason, &packets)| (reason.as_str(), packets))
    }

    /// Packets skipped for any reason.
    #[must_use]
    pub fn skipped_total(&self) -> u64 {
        self.skipped.values().fold(0, |sum, &packets| sum.saturating_add(packets))
    }

    /// Most packets that this epoch itself lacks.
    #[must_use]
    pub fn missing(&self) -> u64 {
        self.missing_max.unwrap_or(self.dropped)
    }

    /// Most packets that an epoch beside this one lacks and that were noticed in this one.
    #[must_use]
    pub fn missing_beside(&self) -> u64 {
        if self.missing_max.is_some() { 0 } else { self.dropped }
    }

    /// Adds what another has counted.
    pub fn merge(&mut self, other: &Self) {
        for (reason, packets) in other.skipped() {
            self.skip(reason, packets);
        }
        self.missing_max = match (self.missing_max, other.missing_max) {
            (None, None) => None,
            _ => Some(self.missing().saturating_add(other.missing())),
        };
        self.dropped = self.dropped.saturating_add(other.dropped);
        self.late = self.late.saturating_add(other.late);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_beyond_the_bound_are_counted_together() {
        let mut tally = Tally::default();
        for reason in 0..SKIP_REASONS_MAX + 10 {
            tally.skip(&format!("reason {reason:03}"), 1);
        }
        tally.skip(&"x".repeat(SKIP_REASON_BYTES_MAX + 1), 5);
        tally.skip("reason 000", 1);
        tally.skip("zebra", 0);
        assert_eq!(tally.skipped().len(), SKIP_REASONS_MAX + 1);
        assert!(tally.skipped().any(|counted| counted == (OTHER, 15)));
        assert!(tally.skipped().any(|counted| counted == ("reason 000", 2)));
        assert_eq!(tally.skipped_total(), SKIP_REASONS_MAX as u64 + 16);
        let mut copy = Tally::default();
        copy.merge(&tally);
        assert_eq!(copy, tally);
    }
}

//! What can be said of loss where a point did not observe every packet that passed it.
//!
//! A packet that downstream did not observe looks like a lost one. One that upstream did not
//! observe, and downstream did, hides a lost one where packets are only counted. So a number of
//! packets that were not observed turns a number of lost packets into a range.

/// Most packets that passed the points of a segment and were not observed there: dropped by the
/// kernel, say. At least none of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unobserved {
    /// At the upstream point.
    pub upstream: u64,
    /// At the downstream point.
    pub downstream: u64,
}

/// Bounds on how many packets the network lost, of those that upstream observed; or on how many
/// strays there are, of those that downstream observed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LossRange {
    /// At least so many.
    pub min: u64,
    /// At most so many; not less than `min`.
    pub max: u64,
}

impl Unobserved {
    /// Whether both points observed every packet.
    #[must_use]
    pub const fn is_nothing(self) -> bool {
        self.upstream == 0 && self.downstream == 0
    }
}

impl LossRange {
    /// Known exactly.
    #[must_use]
    pub const fn exactly(lost: u64) -> Self {
        Self { min: lost, max: lost }
    }

    /// Where packets were counted: upstream observed `sent` packets, downstream `received`. `None`
    /// if downstream observed more than can have come from upstream.
    #[must_use]
    pub fn counted(sent: u64, received: u64, unobserved: Unobserved) -> Option<Self> {
        // What downstream observed and upstream did not makes up for as many that are missing.
        let max = sent.saturating_add(unobserved.upstream).checked_sub(received)?.min(sent);
        let min = sent.saturating_sub(received).saturating_sub(unobserved.downstream);
        Some(Self { min, max })
    }

    /// Where each packet that upstream observed was looked for downstream, and `missing` of them
    /// were not found. What upstream did not observe was not looked for, and changes nothing.
    #[must_use]
    pub const fn matched(missing: u64, unobserved: Unobserved) -> Self {
        Self { min: missing.saturating_sub(unobserved.downstream), max: missing }
    }

    /// As many as `strays`, and what upstream counted more than downstream: whatever only downstream
    /// observed makes up for a lost packet in the counts. `None` if that contradicts the counts.
    #[must_use]
    pub fn beside_strays(strays: Self, sent: u64, received: u64) -> Option<Self> {
        let max = strays.max.saturating_add(sent).checked_sub(received)?.min(sent);
        let min = strays.min.saturating_add(sent).saturating_sub(received).min(max);
        Some(Self { min, max })
    }

    /// The number, if there is but one.
    #[must_use]
    pub const fn exact(self) -> Option<u64> {
        if self.min == self.max { Some(self.min) } else { None }
    }

    /// Of packets of two parts.
    #[must_use]
    pub const fn added(self, other: Self) -> Self {
        Self { min: self.min.saturating_add(other.min), max: self.max.saturating_add(other.max) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every fate that eight packets can have, or those of `seed` with many packets: passed or
    /// lost, observed or not at each point. The truth lies within every range.
    fn check(fates: impl Iterator<Item = u64>) {
        let (mut sent, mut received, mut matched, mut lost) = (0, 0, 0, 0);
        let mut unobserved = Unobserved::default();
        for fate in fates {
            let (is_lost, up, down) = (fate & 1 != 0, fate & 2 != 0, fate & 4 != 0);
            sent += u64::from(up);
            unobserved.upstream += u64::from(!up);
            lost += u64::from(up && is_lost);
            received += u64::from(!is_lost && down);
            unobserved.downstream += u64::from(!is_lost && !down);
            matched += u64::from(up && !is_lost && down);
        }
        let counted = LossRange::counted(sent, received, unobserved).unwrap();
        let matched = LossRange::matched(sent - matched, unobserved);
        for range in [counted, matched] {
            assert!(range.min <= lost && lost <= range.max, "{lost} lost, {range:?}");
            assert!(range.max <= sent);
        }
        assert!(counted.min <= matched.max && matched.max <= counted.max);
        if unobserved.is_nothing() {
            assert_eq!((counted.exact(), matched.exact()), (Some(lost), Some(lost)));
        }
    }

    #[test]
    fn the_truth_lies_within_the_range_whatever_the_fates_of_packets() {
        for fates in 0..8_u64.pow(5) {
            check((0..5).map(|packet| fates / 8_u64.pow(packet) % 8));
        }
    }

    /// Whatever the numbers of lost and stray packets, bounds on one give bounds on the other.
    #[test]
    fn strays_make_up_for_as_many_lost_packets() {
        for (crossed, lost, strays) in (0..6_u64.pow(3)).map(|n| (n % 6, n / 6 % 6, n / 36)) {
            let (sent, received) = (crossed + lost, crossed + strays);
            for (min, max) in (0..36).map(|n| (n % 6, n / 6)).filter(|&(min, max)| min <= max) {
                let found = LossRange::beside_strays(LossRange { min, max }, sent, received);
                if min <= strays && strays <= max {
                    let found = found.unwrap();
                    assert!(found.min <= lost && lost <= found.max, "{lost} lost, {found:?}");
                }
            }
            let exactly = LossRange::beside_strays(LossRange::exactly(strays), sent, received);
            assert_eq!(exactly, Some(LossRange::exactly(lost)));
        }
        assert_eq!(LossRange::beside_strays(LossRange::exactly(0), 3, 5), None);
    }

    #[test]
    fn a_drop_is_never_certain_loss() {
        let downstream = |downstream| Unobserved { upstream: 0, downstream };
        assert_eq!(
            LossRange::counted(100, 90, downstream(10)),
            Some(LossRange { min: 0, max: 10 })
        );
        assert_eq!(LossRange::matched(10, downstream(4)), LossRange { min: 6, max: 10 });
        // Nothing is missing, so nothing is lost: the drops were of other packets.
        assert_eq!(LossRange::counted(100, 100, downstream(7)), Some(LossRange::exactly(0)));
        let upstream = Unobserved { upstream: 5, downstream: 0 };
        assert_eq!(LossRange::counted(100, 98, upstream), Some(LossRange { min: 2, max: 7 }));
        assert_eq!(LossRange::matched(3, upstream).exact(), Some(3));
        assert_eq!(LossRange::counted(100, 106, upstream), None);
    }
}

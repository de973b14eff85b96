//! Why frames are not measured, and how many.
//!
//! A skip is our choice; it is neither a drop (the kernel lost the frame) nor a loss (the network
//! lost the packet). Some reasons are given by those who use this crate; all live here, so that
//! one table can count them.

use std::fmt;

/// Why a frame is not measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Skip {
    /// Address resolution, not traffic.
    Arp,
    /// Carries something other than IP: LLDP, spanning tree, PPP control and the like.
    NotIp,
    /// Cut before the end of the IP header or of the ports. Capture with a larger snap length.
    Truncated,
    /// Contradicts itself, such as an IP length smaller than the IP header.
    BadHeader,
    /// The link type of the capture is not one that twixt reads.
    UnsupportedLink,
    /// More layers than [`LAYERS_MAX`](crate::LAYERS_MAX) or more IPv6 extension headers than
    /// [`EXTENSIONS_MAX`](crate::EXTENSIONS_MAX).
    TooDeep,
    /// The capture does not say when it was seen.
    NoTime,
    /// One of our own markers among the packets, not traffic.
    Marker,
    /// The filter does not select it.
    Filtered,
    /// It belongs to a class that was not asked for.
    OtherClass,
    /// It travels downstream to upstream.
    WrongDirection,
    /// Nothing tells which way it travels.
    DirectionUnknown,
    /// Seen before the other point began or after it ended.
    OutsideStretch,
}

impl Skip {
    /// Every reason, in the order in which they are shown.
    pub const ALL: [Self; 13] = [
        Self::Arp,
        Self::NotIp,
        Self::Truncated,
        Self::BadHeader,
        Self::UnsupportedLink,
        Self::TooDeep,
        Self::NoTime,
        Self::Marker,
        Self::Filtered,
        Self::OtherClass,
        Self::WrongDirection,
        Self::DirectionUnknown,
        Self::OutsideStretch,
    ];

    /// The name in output and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Arp => "arp",
            Self::NotIp => "not-ip",
            Self::Truncated => "truncated",
            Self::BadHeader => "bad-header",
            Self::UnsupportedLink => "unsupported-link",
            Self::TooDeep => "too-deep",
            Self::NoTime => "no-time",
            Self::Marker => "marker",
            Self::Filtered => "filtered",
            Self::OtherClass => "other-class",
            Self::WrongDirection => "wrong-direction",
            Self::DirectionUnknown => "direction-unknown",
            Self::OutsideStretch => "outside-stretch",
        }
    }
}

impl fmt::Display for Skip {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// How many frames were skipped, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SkipCounts([u64; Skip::ALL.len()]);

impl SkipCounts {
    /// Counts one frame.
    #[inline]
    pub fn count(&mut self, skip: Skip) {
        self.add(skip, 1);
    }

    /// Counts several frames.
    #[inline]
    pub fn add(&mut self, skip: Skip, frames: u64) {
        let count = &mut self.0[skip as usize];
        *count = count.saturating_add(frames);
    }

    /// Adds all that `other` counted.
    pub fn merge(&mut self, other: &Self) {
        for (skip, frames) in other.iter() {
            self.add(skip, frames);
        }
    }

    /// How many for this reason.
    #[must_use]
    pub const fn of(&self, skip: Skip) -> u64 {
        self.0[skip as usize]
    }

    /// How many for any reason.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().fold(0, |sum, &count| sum.saturating_add(count))
    }

    /// The reasons that occurred, with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (Skip, u64)> + '_ {
        Skip::ALL.iter().map(|&skip| (skip, self.of(skip))).filter(|&(_, frames)| frames > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_its_own_place_and_name() {
        for (index, skip) in Skip::ALL.into_iter().enumerate() {
            assert_eq!(skip as usize, index);
            assert_eq!(Skip::ALL.iter().filter(|other| other.name() == skip.name()).count(), 1);
        }
    }

    #[test]
    fn counts_add_up_and_zeros_are_not_listed() {
        let mut counts = SkipCounts::default();
        counts.count(Skip::Arp);
        counts.add(Skip::OutsideStretch, 4);
        let mut sum = counts;
        sum.merge(&counts);
        assert_eq!(sum.iter().collect::<Vec<_>>(), [(Skip::Arp, 2), (Skip::OutsideStretch, 8)]);
        assert_eq!((sum.total(), sum.of(Skip::NotIp)), (10, 0));
        sum.add(Skip::Arp, u64::MAX);
        assert_eq!(sum.total(), u64::MAX);
    }
}

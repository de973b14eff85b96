//! Packets that came out of order, of one prefix or of all.

use twixt_model::{Prefix, ReorderEstimate, ReorderExtent};

/// Counts of packets by the verdict on them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ReorderSums {
    /// Packets with data that were judged.
    pub packets: u64,
    /// Those that others overtook.
    pub out_of_order: u64,
    /// Those that came late because they were sent again.
    pub retransmitted: u64,
    /// Those that came late, and nothing tells why.
    pub undecided: u64,
    /// Copies of packets. Not among the packets.
    pub duplicates: u64,
    /// Sum over the packets that were overtaken of how far, where the algorithm can tell.
    pub extent_sum: Option<f64>,
    /// The largest of them.
    pub extent_max: Option<u64>,
}

impl ReorderSums {
    /// Of what an algorithm concluded.
    #[must_use]
    pub fn of(estimate: &ReorderEstimate) -> Self {
        let extent = estimate.extent;
        Self {
            packets: estimate.packets,
            out_of_order: estimate.out_of_order,
            retransmitted: estimate.retransmitted,
            undecided: estimate.undecided,
            duplicates: estimate.duplicates,
            extent_sum: extent.map(|extent| extent.mean * estimate.out_of_order as f64),
            extent_max: extent.map(|extent| u64::from(extent.largest)),
        }
    }

    /// Adds others.
    pub fn add(&mut self, other: &Self) {
        let add = |sum: &mut u64, value: u64| *sum = sum.saturating_add(value);
        // Where nothing was overtaken, nothing is missing from the extent.
        let knows = |sums: &Self| sums.extent_sum.is_some() || sums.out_of_order == 0;
        let is_known = knows(self) && knows(other);
        let extents = [self.extent_sum, other.extent_sum].into_iter().flatten();
        self.extent_sum = extents.reduce(|one, other| one + other).filter(|_| is_known);
        self.extent_max = self.extent_max.max(other.extent_max).filter(|_| is_known);
        add(&mut self.packets, other.packets);
        add(&mut self.out_of_order, other.out_of_order);
        add(&mut self.retransmitted, other.retransmitted);
        add(&mut self.undecided, other.undecided);
        add(&mut self.duplicates, other.duplicates);
    }

    /// As an algorithm concludes it, for verdicts. Sums of several prefixes are judged alike.
    #[must_use]
    pub fn estimate(&self, prefix: Prefix) -> ReorderEstimate {
        let mean = self.extent_mean().filter(|mean| mean.is_finite());
        ReorderEstimate {
            prefix,
            packets: self.packets,
            out_of_order: self.out_of_order,
            retransmitted: self.retransmitted,
            undecided: self.undecided,
            duplicates: self.duplicates,
            extent: mean.zip(self.extent_max).map(|(mean, largest)| ReorderExtent {
                mean,
                largest: u32::try_from(largest).unwrap_or(u32::MAX),
            }),
        }
    }

    /// How far packets were overtaken on average.
    #[must_use]
    pub fn extent_mean(&self) -> Option<f64> {
        self.extent_sum.filter(|_| self.out_of_order > 0).map(|sum| sum / self.out_of_order as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_add_up_and_extents_by_packets() {
        let mut sum = ReorderSums {
            packets: 100,
            out_of_order: 1,
            extent_sum: Some(10.0),
            extent_max: Some(10),
            ..ReorderSums::default()
        };
        sum.add(&ReorderSums { packets: 50, undecided: 2, ..ReorderSums::default() });
        assert_eq!((sum.packets, sum.undecided, sum.extent_mean()), (150, 2, Some(10.0)));
        let three = ReorderSums {
            packets: 50,
            out_of_order: 3,
            extent_sum: Some(6.0),
            extent_max: Some(3),
            ..ReorderSums::default()
        };
        sum.add(&three);
        assert_eq!((sum.extent_mean(), sum.extent_max), (Some(4.0), Some(10)));
        sum.add(&ReorderSums { packets: 5, out_of_order: 1, ..ReorderSums::default() });
        assert_eq!((sum.extent_mean(), sum.extent_max), (None, None), "one is not known");
    }
}

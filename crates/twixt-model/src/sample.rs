//! Delays of packets that were chosen by their digests: exact for these, and fair for all.
//!
//! Who knows single delays knows percentiles, and percentiles of an hour can be had from those of
//! its seconds only if the delays themselves are combined. That is what a [`DelaySample`] is
//! for: it merges, it stays bounded, and it says of every percentile how sure it is, or that it
//! cannot know. Where its packets were chosen, and how, is the business of an algorithm.

mod level;
mod percentile;

pub use level::SampleLevel;
pub use percentile::{TooFew, needed_for};

use crate::{Delay, Histogram, Percentile, Timestamp};

/// One packet that was chosen, and seen at both ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SampledDelay {
    /// How long it took.
    pub delay: Delay,
    /// When it was seen upstream.
    pub time: Timestamp,
    /// Stands for its directed flow, where that was kept; else 0.
    pub flow: u32,
    /// The highest level that keeps it.
    pub reach: SampleLevel,
    /// The level at which it was chosen: it stands for as many packets as that says.
    pub level: SampleLevel,
}

/// Delays of packets that were chosen by their digests.
///
/// Each stands for `1 / share` packets of its level. Within an epoch all levels are equal; put
/// together, epochs of different levels keep theirs, until there are too many packets: then those
/// at the lowest level are thinned out to the next one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DelaySample {
    /// By delay.
    packets: Vec<SampledDelay>,
    steps: Steps,
}

/// Differences of the delays of packets that follow each other.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Steps {
    sum_ns: f64,
    count: u64,
}

impl DelaySample {
    /// Packets that are kept when samples are combined, 32 bytes each. Enough for an interval
    /// of p99.9, which takes 3 688.
    pub const MERGED_MAX: usize = 8192;
    /// The shares whose percentiles are reported.
    pub const SHARES: [f64; 4] = [0.5, 0.95, 0.99, 0.999];

    /// Of these packets, in any order.
    #[must_use]
    pub fn new(mut packets: Vec<SampledDelay>) -> Self {
        packets.sort_unstable_by_key(|packet| (packet.time, packet.delay));
        let steps = Steps::of(&packets);
        packets.sort_unstable();
        Self { packets, steps }
    }

    /// The packets, by delay.
    #[must_use]
    pub fn packets(&self) -> &[SampledDelay] {
        &self.packets
    }

    /// Adds the packets of another interval of time.
    pub fn merge(&mut self, other: &Self) {
        self.steps.sum_ns += other.steps.sum_ns;
        self.steps.count = self.steps.count.saturating_add(other.steps.count);
        self.packets.extend_from_slice(&other.packets);
        // Two sorted runs: this is a merge, not a sort.
        self.packets.sort();
        while self.packets.len() > Self::MERGED_MAX && self.thin_out() {}
    }

    /// What a share of all packets did not exceed, with its 95 % interval.
    ///
    /// # Errors
    /// When so few packets can carry no interval.
    pub fn percentile(&self, share: f64) -> Result<Percentile, TooFew> {
        percentile::percentile(&self.packets, share)
    }

    /// Mean absolute difference of the delays of packets that follow each other in the sample: it
    /// does not depend on what clocks differ by. (As in RFC 3550, section 6.4.1, but of packets of
    /// whatever flow, and as a plain mean.) `None` with fewer than two.
    #[must_use]
    pub fn jitter_ns(&self) -> Option<f64> {
        let (sum_ns, count) = self.steps();
        (count > 0).then(|| sum_ns / count as f64)
    }

    /// What jitter is the mean of: the sum of those differences, and how many there are. Sums of
    /// intervals of time add up; the step from one interval to the next is in none of them.
    #[must_use]
    pub const fn steps(&self) -> (f64, u64) {
        (self.steps.sum_ns, self.steps.count)
    }

    /// The same packets with their delays changed by what a clock was wrong.
    #[must_use]
    pub fn corrected(&self, ahead: impl Fn(Timestamp) -> Delay) -> Self {
        let correct = |packet: &SampledDelay| SampledDelay {
            delay: packet.delay - ahead(packet.time),
            ..*packet
        };
        let mut packets: Vec<SampledDelay> = self.packets.iter().map(correct).collect();
        packets.sort_unstable();
        Self { packets, steps: self.steps }
    }

    /// The delays as a histogram of so many buckets, each weighing as many packets as it stands
    /// for: what longer intervals of time are summed up in.
    #[must_use]
    pub fn histogram(&self, buckets_max: usize) -> Histogram {
        let mut histogram = Histogram::new(buckets_max);
        for packet in &self.packets {
            histogram.add(packet.delay.as_nanos(), packet.level.weight());
        }
        histogram
    }

    /// Brings what is at the lowest level to the next; false if nothing was above.
    fn thin_out(&mut self) -> bool {
        let Some(lowest) = self.packets.iter().map(|packet| packet.level).min() else {
            return false;
        };
        let Some(next) = lowest.next() else { return false };
        self.packets.retain_mut(|packet| {
            packet.level = packet.level.max(next);
            packet.reach >= packet.level
        });
        // Levels are a part of the order.
        self.packets.sort();
        true
    }
}

impl Steps {
    /// Of packets in the order of their times.
    fn of(packets: &[SampledDelay]) -> Self {
        let step =
            |pair: &[SampledDelay]| (pair[1].delay - pair[0].delay).as_nanos().unsigned_abs();
        Self {
            sum_ns: packets.windows(2).map(|pair| step(pair) as f64).sum(),
            count: packets.len().saturating_sub(1) as u64,
        }
    }
}

#[cfg(test)]
mod tests;

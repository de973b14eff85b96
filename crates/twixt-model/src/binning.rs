//! Packets by time and by delay: what pictures are made of.

use crate::{Crossing, Delay, Span, Timestamp};

/// Packets that were sent within a short interval of time.
#[derive(Clone, Debug, PartialEq)]
pub struct TimeBin {
    /// When they were sent.
    pub span: Span,
    /// How many upstream counted.
    pub packets: u64,
    /// How many of them were lost.
    pub lost: u64,
    /// Their delays, in ascending order.
    pub delays: Vec<Delay>,
}

impl TimeBin {
    /// What a share of the delays did not exceed: element `min(n - 1, floor(p n))`.
    #[must_use]
    pub fn percentile(&self, share: f64) -> Option<Delay> {
        percentile(&self.delays, share)
    }

    /// The share of packets that was lost; `None` without packets.
    #[must_use]
    pub fn loss(&self) -> Option<f64> {
        (self.packets > 0).then(|| self.lost as f64 / self.packets as f64)
    }
}

/// Cuts packets, in any order, into at most so many intervals of equal and round length. Intervals
/// without packets are there too.
#[must_use]
pub fn by_time<'a>(
    packets: impl Iterator<Item = &'a Crossing> + Clone,
    bins_max: usize,
) -> Vec<TimeBin> {
    let times = packets.clone().map(|packet| packet.sent.as_nanos());
    let (Some(first), Some(last)) = (times.clone().min(), times.max()) else { return Vec::new() };
    let length_ns = round_length(last.saturating_sub(first), bins_max);
    let start_ns = first.div_euclid(length_ns).saturating_mul(length_ns);
    let bin_of = |time_ns: i64| (time_ns.saturating_sub(start_ns) / length_ns) as usize;
    let bin = |index: usize| {
        let start = Timestamp::from_nanos(start_ns.saturating_add(index as i64 * length_ns));
        let span = Span { start, end: start + Delay::from_nanos(length_ns) };
        TimeBin { span, packets: 0, lost: 0, delays: Vec::new() }
    };
    let mut bins: Vec<TimeBin> = (0..=bin_of(last)).map(bin).collect();
    for packet in packets {
        let bin = &mut bins[bin_of(packet.sent.as_nanos())];
        bin.packets += 1;
        bin.lost += u64::from(packet.is_lost());
        bin.delays.extend(packet.delay());
    }
    bins.iter_mut().for_each(|bin| bin.delays.sort_unstable());
    bins
}

/// The shortest of 1, 2 and 5 times a power of ten that cuts a length of time into no more parts
/// than so many, not counting one that begins before it.
#[must_use]
pub fn round_length(length_ns: i64, parts_max: usize) -> i64 {
    let least = (length_ns / parts_max.max(1) as i64).saturating_add(1);
    let mut power: i64 = 1;
    loop {
        for factor in [1, 2, 5] {
            match power.checked_mul(factor) {
                Some(length_ns) if length_ns >= least => return length_ns,
                Some(_) => {}
                None => return i64::MAX,
            }
        }
        power = power.saturating_mul(10);
    }
}

/// What a share of sorted delays did not exceed: element `min(n - 1, floor(p n))`.
#[must_use]
pub fn percentile(sorted: &[Delay], share: f64) -> Option<Delay> {
    let last = sorted.len().checked_sub(1)?;
    Some(sorted[((share * sorted.len() as f64) as usize).min(last)])
}

/// The distribution of sorted delays: a delay, and the share of packets that took no longer. At most
/// so many points, and the first and the last are among them.
#[must_use]
pub fn distribution(sorted: &[Delay], points_max: usize) -> Vec<(Delay, f64)> {
    let count = sorted.len();
    let points = count.min(points_max.max(2));
    let index_of = |point: usize| match points {
        0 | 1 => 0,
        _ => point * (count - 1) / (points - 1),
    };
    (0..points)
        .map(|point| (sorted[index_of(point)], (index_of(point) + 1) as f64 / count as f64))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CrossingFate, FlowHash};

    fn packet(sent: i64, delay: Option<i64>) -> Crossing {
        let fate = delay.map_or(CrossingFate::Lost, |ns| CrossingFate::Took(Delay::from_nanos(ns)));
        Crossing { sent: Timestamp::from_nanos(sent), flow: FlowHash(1), length: 1, fate }
    }

    #[test]
    fn bins_are_of_round_length_and_hold_every_packet() {
        let packets: Vec<Crossing> =
            (0..100).map(|at| packet(1_003 + 7 * at, (at % 10 > 0).then_some(at))).collect();
        let bins = by_time(packets.iter(), 10);
        // 693 ns in 10 parts: 100 ns each, from 1 000 to 1 700.
        assert_eq!(bins.len(), 7);
        assert_eq!(bins[0].span.start.as_nanos(), 1_000);
        assert_eq!(bins[6].span.end.as_nanos(), 1_700);
        assert_eq!(bins.iter().map(|bin| bin.packets).sum::<u64>(), 100);
        assert_eq!(bins.iter().map(|bin| bin.lost).sum::<u64>(), 10);
        assert_eq!(bins.iter().map(|bin| bin.delays.len()).sum::<usize>(), 90);
        // Sent at 1 003 to 1 094: 14 packets, of which the first and the eleventh were lost.
        assert_eq!((bins[0].packets, bins[0].lost, bins[0].loss()), (14, 2, Some(2.0 / 14.0)));
        assert_eq!(bins[0].percentile(0.5), Some(Delay::from_nanos(7)));
    }

    #[test]
    fn empty_bins_say_nothing() {
        let packets = [packet(0, Some(1)), packet(900, None)];
        let bins = by_time(packets.iter(), 9);
        assert_eq!(bins.len(), 5);
        assert_eq!((bins[1].loss(), bins[1].percentile(0.5)), (None, None));
        assert!(by_time([].iter(), 9).is_empty());
    }

    #[test]
    fn times_before_1970_are_times_too() {
        let packets = [packet(-1_500, Some(1)), packet(-1, Some(2))];
        let bins = by_time(packets.iter(), 2);
        assert_eq!((bins[0].span.start.as_nanos(), bins.len()), (-2_000, 2));
    }

    #[test]
    fn lengths_are_round() {
        let cases = [(0, 10, 1), (99, 10, 10), (100, 10, 20), (5_049_000_000, 100, 100_000_000)];
        for (length, parts, expected) in cases {
            assert_eq!(round_length(length, parts), expected, "{length} in {parts}");
        }
        assert_eq!(round_length(i64::MAX, 1), i64::MAX);
    }

    #[test]
    fn a_distribution_begins_with_the_smallest_and_ends_with_all() {
        let sorted: Vec<Delay> = (1..=1000).map(Delay::from_nanos).collect();
        let points = distribution(&sorted, 11);
        assert_eq!(points.len(), 11);
        assert_eq!((points[0].0.as_nanos(), points[0].1), (1, 0.001));
        assert_eq!((points[10].0.as_nanos(), points[10].1), (1000, 1.0));
        assert!(distribution(&[], 10).is_empty());
        assert_eq!(distribution(&sorted[..1], 10), [(Delay::from_nanos(1), 1.0)]);
    }
}

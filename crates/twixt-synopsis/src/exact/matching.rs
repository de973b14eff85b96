//! Which sighting upstream and which downstream are one packet.
//!
//! Digests are not unique: a retransmission can be identical to the last bit, and some senders
//! repeat whole packets. Equal packets are matched in the order of their times; where one point
//! saw more of them than the other, so as to keep their delays nearest to the median of all
//! packets whose match is beyond doubt.

use twixt_model::{Delay, Observation};

/// Each upstream packet with its delay, or without if it did not arrive.
pub(crate) struct Matching {
    /// Upstream packets and their delays, by digest and then by time.
    pub packets: Vec<(Observation, Option<Delay>)>,
}

/// Equal packets beyond this many comparisons are matched in plain order: the alignment takes
/// memory and time by the product of their numbers.
const ALIGNMENT_MAX: usize = 1 << 22;

impl Matching {
    /// Matches what two points saw. Packets whose delay is further than `window` from the median
    /// are different packets that look alike.
    pub(crate) fn new(
        mut upstream: Vec<Observation>,
        mut downstream: Vec<Observation>,
        window: Delay,
    ) -> Self {
        let by_digest = |packet: &Observation| (packet.digest, packet.time);
        upstream.sort_unstable_by_key(by_digest);
        downstream.sort_unstable_by_key(by_digest);
        let median = median_of_sure(&upstream, &downstream).unwrap_or(Delay::ZERO);
        let mut packets = Vec::with_capacity(upstream.len());
        for (sent, received) in groups(&upstream, &downstream) {
            let delays = match_group(sent, received, median);
            let near = |delay: &Delay| {
                (*delay - median).as_nanos().unsigned_abs() <= window.as_nanos().unsigned_abs()
            };
            packets.extend(
                sent.iter().zip(delays).map(|(packet, delay)| (*packet, delay.filter(near))),
            );
        }
        Self { packets }
    }
}

/// Runs of equal digests upstream, each with its run downstream (which may be empty).
fn groups<'a>(
    upstream: &'a [Observation],
    downstream: &'a [Observation],
) -> impl Iterator<Item = (&'a [Observation], &'a [Observation])> {
    let mut left = downstream;
    upstream.chunk_by(|one, other| one.digest == other.digest).map(move |sent| {
        let digest = sent[0].digest;
        let before = left.iter().take_while(|packet| packet.digest < digest).count();
        let equal = left[before..].iter().take_while(|packet| packet.digest == digest).count();
        let received = &left[before..before + equal];
        left = &left[before + equal..];
        (sent, received)
    })
}

fn median_of_sure(upstream: &[Observation], downstream: &[Observation]) -> Option<Delay> {
    let sure = groups(upstream, downstream).filter(|(sent, received)| sent.len() == received.len());
    let mut delays: Vec<Delay> = sure
        .flat_map(|(sent, received)| sent.iter().zip(received))
        .map(|(sent, received)| received.time - sent.time)
        .collect();
    let middle = delays.len() / 2;
    (!delays.is_empty()).then(|| *delays.select_nth_unstable(middle).1)
}

fn match_group(
    sent: &[Observation],
    received: &[Observation],
    median: Delay,
) -> Vec<Option<Delay>> {
    let mut delays = vec![None; sent.len()];
    let in_order = sent.len() == received.len() || sent.len() * received.len() > ALIGNMENT_MAX;
    let pairs: Vec<(usize, usize)> = match in_order {
        true => (0..sent.len().min(received.len())).map(|index| (index, index)).collect(),
        false => align(sent, received, median),
    };
    for (one, other) in pairs {
        delays[one] = Some(received[other].time - sent[one].time);
    }
    delays
}

/// Order-preserving pairs of all of the shorter run with some of the longer, such that the sum
/// of distances from the median is least.
fn align(sent: &[Observation], received: &[Observation], median: Delay) -> Vec<(usize, usize)> {
    let swap = sent.len() > received.len();
    let (short, long) = if swap { (received, sent) } else { (sent, received) };
    let distance = |one: usize, other: usize| {
        let (sent, received) =
            if swap { (&long[other], &short[one]) } else { (&short[one], &long[other]) };
        (received.time - sent.time - median).as_nanos().unsigned_abs()
    };
    // cost[i][j]: least sum when the first i of the short run are paired within the first j.
    let width = long.len() + 1;
    let mut cost = vec![u64::MAX; (short.len() + 1) * width];
    cost[..width].fill(0);
    for one in 1..=short.len() {
        for other in one..=long.len() {
            let skip = cost[one * width + other - 1];
            let pair =
                cost[(one - 1) * width + other - 1].saturating_add(distance(one - 1, other - 1));
            cost[one * width + other] = skip.min(pair);
        }
    }
    let mut pairs = Vec::with_capacity(short.len());
    let (mut one, mut other) = (short.len(), long.len());
    while one > 0 {
        if other > one && cost[one * width + other - 1] == cost[one * width + other] {
            other -= 1;
        } else {
            (one, other) = (one - 1, other - 1);
            pairs.push(if swap { (other, one) } else { (one, other) });
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use twixt_model::{PacketDigest, Timestamp};

    use super::*;

    fn seen(packets: &[(u64, i64)]) -> Vec<Observation> {
        let observation = |&(digest, time_ns): &(u64, i64)| Observation {
            digest: PacketDigest(digest),
            time: Timestamp::from_nanos(time_ns),
            ..Observation::default()
        };
        packets.iter().map(observation).collect()
    }

    #[track_caller]
    fn check(upstream: &[(u64, i64)], downstream: &[(u64, i64)], expected: &[Option<i64>]) {
        let matching = Matching::new(seen(upstream), seen(downstream), Delay::from_nanos(1_000));
        let delays: Vec<Option<i64>> =
            matching.packets.iter().map(|(_, delay)| delay.map(Delay::as_nanos)).collect();
        assert_eq!(delays, expected);
    }

    #[test]
    fn packets_are_matched_by_digest_whatever_their_order() {
        check(&[(1, 0), (2, 10), (3, 20)], &[(3, 25), (1, 7)], &[Some(7), None, Some(5)]);
    }

    #[test]
    fn identical_packets_are_matched_in_order() {
        check(&[(1, 0), (1, 100)], &[(1, 9), (1, 105)], &[Some(9), Some(5)]);
    }

    #[test]
    fn of_identical_packets_the_one_with_the_usual_delay_arrived() {
        let sure = [(7, 0), (8, 0), (9, 0)];
        let arrived = [(7, 10), (8, 10), (9, 10)];
        let up = [&[(1, 0), (1, 500)], &sure[..]].concat();
        let down = [&[(1, 511)], &arrived[..]].concat();
        check(&up, &down, &[None, Some(11), Some(10), Some(10), Some(10)]);
        let up = [&[(1, 500)], &sure[..]].concat();
        let down = [&[(1, 100), (1, 509)], &arrived[..]].concat();
        check(&up, &down, &[Some(9), Some(10), Some(10), Some(10)]);
    }

    #[test]
    fn equal_packets_far_apart_are_different_packets() {
        check(&[(1, 0), (2, 0), (3, 0)], &[(1, 5), (2, 5), (3, 2_000)], &[Some(5), Some(5), None]);
    }

    #[test]
    fn negative_delays_stay_negative() {
        check(&[(1, 100), (2, 100)], &[(1, 90), (2, 95)], &[Some(-10), Some(-5)]);
    }

    #[test]
    fn nothing_matches_nothing() {
        check(&[], &[(1, 5)], &[]);
        check(&[(1, 5)], &[], &[None]);
    }
}

//! What holds for whatever two points saw, for every algorithm that compares them.

use proptest::prelude::*;
use twixt_model::{
    Batch, Delay, Detail, Estimate, FlowHash, Observation, PacketDigest, Span, Timestamp,
};
use twixt_synopsis::{ALGORITHMS, AnySynopsis, Estimator, Pair, Question};

/// A packet: digest, flow, when it was sent, and its delay; `None` if it was lost.
type Fate = (u64, u64, i64, Option<i64>);

/// Packets of two seconds; some are identical, and some are lost.
fn fates(digests: u64, most: usize) -> impl Strategy<Value = Vec<Fate>> {
    let delay = prop::option::weighted(0.9, 1_000_000..3_000_000_i64);
    prop::collection::vec((0..digests, 0..5_u64, 0..2_000_000_000_i64, delay), 0..most)
}

/// What a point sees: all packets, or those that arrive, in the order of time; with its clock ahead by so much.
fn seen(fates: &[Fate], is_downstream: bool, ahead_ns: i64) -> Vec<Observation> {
    let seen = fates.iter().filter_map(|&(digest, flow, sent_ns, delay_ns)| {
        let after_ns = if is_downstream { delay_ns? } else { 0 };
        Some(Observation {
            time: Timestamp::from_nanos(sent_ns + after_ns + ahead_ns),
            digest: PacketDigest(twixt_model::mix(digest)),
            flow: FlowHash(twixt_model::mix(flow)),
            length: 100,
            ..Observation::default()
        })
    });
    let mut seen: Vec<Observation> = seen.collect();
    seen.sort_by_key(|packet| packet.time);
    seen
}

/// What each algorithm says of all traffic, by its name.
fn asked(
    [upstream, downstream]: [&[Observation]; 2],
    reference: Delay,
) -> Vec<(&'static str, Estimate)> {
    let two_point = ALGORITHMS.iter().filter_map(|algorithm| match algorithm.estimator {
        Estimator::TwoPoint { estimate, .. } => Some((algorithm, estimate)),
        _ => None,
    });
    let asked = two_point.map(|(algorithm, estimate)| {
        let [upstream, downstream] = [upstream, downstream].map(|packets| {
            let mut synopsis = (algorithm.start)(&toml::Table::new()).unwrap();
            let details = vec![Detail::default(); packets.len()];
            synopsis.update_batch(Batch { observations: packets, details: &details });
            synopsis
        });
        let pair: Pair<'_, dyn AnySynopsis> =
            Pair { upstream: upstream.as_ref(), downstream: downstream.as_ref() };
        let [start, end] = [0, 2_000_000_000].map(Timestamp::from_nanos);
        let question = Question { reference, ..Question::about(Span { start, end }) };
        (algorithm.name, estimate(pair, &question).unwrap().remove(0))
    });
    asked.collect()
}

proptest! {
    #![proptest_config(twixt_testing::cases(48))]

    /// `lost + matched = upstream` and `strays + matched = downstream` for some numbers within what is stated,
    /// and for the only ones if these are exact.
    #[test]
    fn lost_and_matched_are_upstream_and_strays_and_matched_are_downstream(
        fates in fates(300, 120),
        strays in 0..10_usize,
    ) {
        let sent = seen(&fates, false, 0);
        // Strays are packets whose digest upstream never saw.
        let others: Vec<Fate> = (0..strays).map(|number| (1_000 + number as u64, 7, 0, Some(5))).collect();
        let received = seen(&[fates.as_slice(), &others].concat(), true, 0);
        for (name, estimate) in asked([&sent, &received], Delay::ZERO) {
            let evidence = estimate.evidence;
            prop_assert_eq!(evidence.packets, sent.len() as u64, "{}", name);
            let Some((lost, strays)) = evidence.loss_range().zip(evidence.stray_range()) else { continue };
            let more = sent.len() as i64 - received.len() as i64;
            let least = lost.min as i64 - strays.max as i64;
            let most = lost.max as i64 - strays.min as i64;
            prop_assert!(least <= more && more <= most, "{}: {:?} {:?} {}", name, lost, strays, more);
        }
    }

    /// A clock that is ahead adds to the mean of one direction what it takes from that of the other: the sum of both
    /// is not changed by any correction.
    #[test]
    fn no_clock_changes_the_sum_of_the_means_of_both_directions(
        forward in fates(100_000, 120),
        backward in fates(100_000, 120),
        ahead_ns in -1_000_000_000..1_000_000_000_i64,
    ) {
        let means = |ahead_ns: i64| {
            let there = [seen(&forward, false, 0), seen(&forward, true, ahead_ns)];
            let back = [seen(&backward, false, ahead_ns), seen(&backward, true, 0)];
            let of = |[sent, received]: &[Vec<Observation>; 2], ahead_ns: i64| {
                asked([sent, received], Delay::from_nanos(ahead_ns))
            };
            of(&there, ahead_ns).into_iter().zip(of(&back, -ahead_ns)).map(|((name, one), (_, other))| {
                let both = one.delay.zip(other.delay);
                (name, both.map(|(one, other)| one.mean_ns() + other.mean_ns()))
            }).collect::<Vec<_>>()
        };
        for ((name, right), (_, ahead)) in means(0).into_iter().zip(means(ahead_ns)) {
            let Some((right, ahead)) = right.zip(ahead) else { continue };
            // Each mean is a sum in whole nanoseconds over a count.
            prop_assert!((right - ahead).abs() <= 2.0, "{}: {} {} {}", name, right, ahead, ahead_ns);
        }
    }

    /// As a mirror that shows every frame twice: a mean is what it was, or unknown. Twice as many packets still fit
    /// every sample.
    #[test]
    fn doubling_every_packet_at_one_point_changes_no_mean(fates in fates(100_000, 90), is_upstream: bool) {
        let points = [seen(&fates, false, 0), seen(&fates, true, 0)];
        let doubled = points[usize::from(!is_upstream)].iter().flat_map(|&packet| [packet, packet]).collect();
        let mut other = points.clone();
        other[usize::from(!is_upstream)] = doubled;
        let of = |[sent, received]: &[Vec<Observation>; 2]| asked([sent, received], Delay::ZERO);
        for ((name, once), (_, twice)) in of(&points).into_iter().zip(of(&other)) {
            let Some((once, twice)) = once.delay.zip(twice.delay) else { continue };
            prop_assert!((once.mean_ns() - twice.mean_ns()).abs() <= 1.0, "{}: {:?} {:?}", name, once, twice);
        }
    }
}

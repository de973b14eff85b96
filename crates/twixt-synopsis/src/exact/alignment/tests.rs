use proptest::prelude::*;
use twixt_model::Timestamp;

use super::*;

fn seen(times_ns: &[i64]) -> Vec<Observation> {
    let at = |&ns: &i64| Observation { time: Timestamp::from_nanos(ns), ..Observation::default() };
    times_ns.iter().map(at).collect()
}

fn band(low: i64, median: i64, high: i64) -> Band {
    let [low, median, high] = [low, median, high].map(Delay::from_nanos);
    Band { low, median, high }
}

/// Index of the packet sent, its delay, and between what the delays of the sum lie.
fn matches(sent: &[i64], received: &[i64], band: Band) -> Vec<(usize, i64, [i64; 2])> {
    let alignment = Alignment::new(&seen(sent), &seen(received), band);
    let shown = |((index, _), matched): (Indexes, Matched)| {
        let Matched { delay, least, most, .. } = matched;
        (index, delay.as_nanos(), [least, most].map(Delay::as_nanos))
    };
    alignment.matches.into_iter().map(shown).collect()
}

/// Heartbeats further apart than delays differ: whatever is lost, each is itself.
#[test]
fn far_apart_all_is_certain() {
    let sent: Vec<i64> = (0..10_000).map(|number| number * 100).collect();
    let arrives = |number: i64| number % 50 != 7;
    let delay = |number: i64| 20 + number * 7 % 40;
    let received: Vec<i64> =
        (0..10_000).filter(|&n| arrives(n)).map(|n| n * 100 + delay(n)).collect();
    let found = matches(&sent, &received, band(15, 40, 65));
    let expected: Vec<(usize, i64, [i64; 2])> = (0..10_000)
        .filter(|&n| arrives(n))
        .map(|n| (n as usize, delay(n), [delay(n); 2]))
        .collect();
    assert_eq!(found, expected);
}

/// One of two was lost, and nothing tells which.
#[test]
fn what_is_possible_is_known() {
    assert_eq!(matches(&[0, 10], &[20], band(5, 11, 30)), [(1, 10, [10, 20])]);
    assert_eq!(matches(&[0, 10], &[20], band(5, 18, 30)), [(0, 20, [10, 20])]);
    assert_eq!(matches(&[0, 10], &[20], band(15, 18, 30)), [(0, 20, [20, 20])]);
}

/// A doubled frame has no packet of its own.
#[test]
fn more_may_be_received_than_were_sent() {
    assert_eq!(
        matches(&[0, 100], &[20, 21, 120, 121], band(15, 20, 30)),
        [(0, 20, [20, 21]), (1, 20, [20, 21])]
    );
}

/// Too many combinations to compare: the middle of what is possible.
#[test]
fn very_many_are_between_the_earliest_and_the_latest() {
    let count = 5_000;
    let sent: Vec<i64> = (0..count).collect();
    let received: Vec<i64> = (0..count).filter(|&n| n != 1_000).map(|n| n + 10).collect();
    let found = matches(&sent, &received, band(0, 10, 20));
    assert_eq!(found.len(), received.len());
    let sum = |pick: fn(&(usize, i64, [i64; 2])) -> i64| found.iter().map(pick).sum::<i64>();
    let truth = 10 * received.len() as i64;
    assert!((sum(|found| found.2[0])..=sum(|found| found.2[1])).contains(&truth));
}

/// The most pairs of what is left, and the least and the largest sum of their delays.
fn all_ways(sent: &[i64], received: &[i64], band: Band) -> (usize, i64, i64) {
    let Some((&first, later)) = received.split_first() else { return (0, 0, 0) };
    let mut best = all_ways(sent, later, band);
    for (index, &time) in sent.iter().enumerate() {
        let delay = first - time;
        if !band.contains(Delay::from_nanos(delay)) {
            continue;
        }
        // Any of the others may come before or after: packets may overtake each other.
        let others = [&sent[..index], &sent[index + 1..]].concat();
        let (count, least, most) = all_ways(&others, later, band);
        let (count, least, most) = (count + 1, least + delay, most + delay);
        best = match count.cmp(&best.0) {
            std::cmp::Ordering::Greater => (count, least, most),
            std::cmp::Ordering::Equal => (count, best.1.min(least), best.2.max(most)),
            std::cmp::Ordering::Less => best,
        };
    }
    best
}

proptest! {
    #![proptest_config(twixt_testing::cases(256))]

    #[test]
    fn no_other_way_is_outside(
        mut sent in prop::collection::vec(0..60_i64, 0..6),
        mut received in prop::collection::vec(0..80_i64, 0..6),
        low in 0..20_i64,
        width in 0..40_i64,
    ) {
        sent.sort_unstable();
        received.sort_unstable();
        let band = band(low, low + width / 3, low + width);
        let found = matches(&sent, &received, band);
        let (count, least, most) = all_ways(&sent, &received, band);
        prop_assert_eq!(found.len(), count);
        let sum = |pick: fn(&(usize, i64, [i64; 2])) -> i64| found.iter().map(pick).sum::<i64>();
        prop_assert!(sum(|found| found.2[0]) <= least && most <= sum(|found| found.2[1]));
        prop_assert!((least..=most).contains(&sum(|found| found.1)));
        let mut indexes: Vec<usize> = found.iter().map(|found| found.0).collect();
        indexes.dedup();
        prop_assert_eq!(indexes.len(), count);
    }
}

//! Formulas against worked examples, and plans against what they promise.

use super::*;

#[test]
fn quantiles_are_those_of_the_tables() {
    for (share, expected) in [(0.95, "1.959964"), (0.99, "2.575829"), (0.9, "1.644854")] {
        assert_eq!(format!("{:.6}", two_sided_quantile(share)), expected);
    }
}

/// With the square below the fraction's line the interval agrees with the equation that it was
/// derived from; as printed it is thirty times as long.
#[test]
fn the_papers_interval_as_corrected() {
    let (n, m, all, own, k) = (1000.0, 20.0, 1e6, 2e4, 1.959_964);
    let interval = binomial_interval(n, m, all, own, k);
    assert_eq!(format!("{interval:.6}"), "0.019642");
    let mean = |own: f64| own / m + (all - own) / n;
    assert_eq!(format!("{:.4}", mean((1.0 + interval) * own) - mean(own)), "19.2487");
    assert_eq!(format!("{:.6}", interval * (n - m).sqrt()), "0.614877");
}

const TRAFFIC: ColateTraffic =
    ColateTraffic { smallest: 1000.0, largest: 100_000.0, spread: 0.5, jitter: 0.7 };
const WANTED: Reliability = Reliability { reliability: 0.95, interval: 0.05 };

fn plan(memory_bytes: u64, packets: Option<f64>) -> ColatePlan {
    ColatePlan::within(memory_bytes, &TRAFFIC, WANTED, packets, 1e6).unwrap()
}

#[test]
fn what_is_asked_for_is_reached_or_said_not_to_be() {
    let free = plan(1 << 27, None);
    assert_eq!(free.reachable, WANTED);
    let full = plan(1 << 27, Some(100.0 * free.threshold));
    assert!(full.reachable.reliability < 0.5 && full.reachable.interval > 0.2, "{full:?}");
    // An epoch that could not even hold the largest flow is no answer.
    let small = plan(1 << 16, None);
    assert!(small.threshold >= TRAFFIC.largest && small.reachable.reliability < 0.95, "{small:?}");
    assert_eq!(ColatePlan::within(8, &TRAFFIC, WANTED, None, 1e6), None);
}

#[test]
fn twice_the_memory_takes_twice_the_packets() {
    let (one, two) = (plan(1 << 27, None), plan(1 << 28, None));
    assert!((two.threshold / one.threshold - 2.0).abs() < 0.05, "{one:?} {two:?}");
    assert_eq!(one.config.per_flow(), two.config.per_flow());
}

#[test]
fn sums_are_wide_enough_for_the_fullest_counter() {
    let plan = plan(1 << 24, None);
    let load = 1e5 / f64::from(plan.config.per_flow())
        + plan.threshold / f64::from(plan.config.counters());
    assert!(2_f64.powi(plan.time_bits as i32 - 1) >= load * 1e6);
}

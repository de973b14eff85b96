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
    ColateTraffic { least: 30.0, smallest: 1000.0, largest: 100_000.0, spread: 0.5, jitter: 0.7 };
const WANTED: Reliability = Reliability { reliability: 0.95, interval: 0.05 };

const ESTIMATORS: [PlannedEstimator; 2] = [PlannedEstimator::Joint, PlannedEstimator::Equation];

fn goal(estimator: PlannedEstimator, packets: Option<f64>) -> ColateGoal {
    ColateGoal { wanted: WANTED, estimator, packets, delay_units: 1e6 }
}

fn plan(memory_bytes: u64, estimator: PlannedEstimator, packets: Option<f64>) -> ColatePlan {
    ColatePlan::within(memory_bytes, &TRAFFIC, &goal(estimator, packets)).unwrap()
}

#[test]
fn what_is_asked_for_is_reached_or_said_not_to_be() {
    for estimator in ESTIMATORS {
        let free = plan(1 << 27, estimator, None);
        assert_eq!(free.reachable, WANTED);
        let full = plan(1 << 27, estimator, Some(100.0 * free.threshold));
        assert!(full.reachable.reliability < 0.6 && full.reachable.interval > 0.1, "{full:?}");
        // An epoch that could not even hold the largest flow is not an answer.
        let small = plan(1 << 12, estimator, None);
        assert!(small.threshold >= TRAFFIC.largest, "{small:?}");
        assert!(small.reachable.reliability < 0.95, "{small:?}");
        assert_eq!(ColatePlan::within(8, &TRAFFIC, &goal(estimator, None)), None);
    }
}

#[test]
fn twice_the_memory_takes_twice_the_packets() {
    for estimator in ESTIMATORS {
        let (one, two) = (plan(1 << 27, estimator, None), plan(1 << 28, estimator, None));
        assert!((two.threshold / one.threshold - 2.0).abs() < 0.05, "{one:?} {two:?}");
        assert_eq!(one.config.per_flow(), two.config.per_flow());
    }
}

#[test]
fn solving_for_all_flows_takes_more_packets_than_one_at_a_time() {
    let [joint, equation] = ESTIMATORS.map(|estimator| plan(1 << 24, estimator, None));
    assert!(joint.threshold > 2.0 * equation.threshold, "{joint:?} {equation:?}");
    let [near, far] = ESTIMATORS.map(|of| joint.expected_error(&TRAFFIC, of, 1000.0));
    assert!(near < far, "{near} {far}");
    // A flow about which counters say nothing is as far off as flows differ, and no farther.
    let tiny = plan(1 << 12, PlannedEstimator::Joint, Some(1e9));
    let off = tiny.expected_error(&TRAFFIC, PlannedEstimator::Joint, 1000.0);
    assert!((0.49..=0.5).contains(&off), "{off}");
}

#[test]
fn sums_are_wide_enough_for_the_fullest_counter() {
    for estimator in ESTIMATORS {
        let plan = plan(1 << 24, estimator, None);
        let load = 1e5 / f64::from(plan.config.per_flow())
            + plan.threshold / f64::from(plan.config.counters());
        assert!(2_f64.powi(plan.time_bits as i32 - 1) >= load * 1e6);
    }
}

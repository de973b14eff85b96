//! What a plan expects of the solver against what the solver does.

use std::ops::Range;

use twixt_sim::Config;
use twixt_synopsis::{
    ColateConfig, ColateGoal, ColatePlan, ColateTraffic, PlannedEstimator, Reliability,
};

use twixt_testing::check_coverage;

use crate::colate::traffic::{Traffic, config, traffic};

/// Share of a normal distribution within one standard deviation.
const ONE_DEVIATION: f64 = 0.6827;
/// What the model leaves out (how unlike counters are, that delays are far from normal) is worth
/// less than this factor either way.
const FACTOR: f64 = 1.5;

/// Sizes of flows that are looked at, and how many flows of each say something.
const SIZES: [u64; 3] = [45, 300, 2000];
const FLOWS_MIN: usize = 20;

fn sized(packets: u64, smallest: u64, largest: u64) -> Config {
    let flow_size = format!("pareto:shape=1,min={smallest},max={largest}");
    Config { flow_size: flow_size.parse().unwrap(), flows: 40_000, ..config(1, packets) }
}

/// The means of flows, log-normal, deviate by this much from their mean; packets by 0.7 of it,
/// squares of means being larger than the square of their mean.
fn planned(least: f64, smallest: f64, largest: f64) -> ColateTraffic {
    let spread = 0.25_f64.exp_m1().sqrt();
    ColateTraffic { least, smallest, largest, spread, jitter: 0.7 * 0.125_f64.exp() }
}

/// What flows of some sizes are off by, at one standard deviation, relative to the mean.
fn measured<const N: usize>(
    traffic: &Traffic,
    config: &ColateConfig,
    sizes: &[Range<u64>; N],
) -> [f64; N] {
    let truth = || traffic.truth.values().map(|flow| (flow.evidence.packets as f64, flow.delay));
    let packets: f64 = truth().map(|(packets, _)| packets).sum();
    let delays = truth().map(|(packets, delay)| packets * delay.unwrap().mean_ns());
    let mean_ns = delays.sum::<f64>() / packets;
    let ends = traffic.ends(config);
    let mut off = [const { Vec::new() }; N];
    for (estimate, flow) in traffic.ask(&ends, "joint", true).iter().zip(&traffic.flows) {
        let real_ns = traffic.truth[&flow.key].delay.unwrap().mean_ns();
        let off_ns = (estimate.delay.unwrap().mean_ns() - real_ns).abs();
        for (off, sizes) in off.iter_mut().zip(sizes) {
            if sizes.contains(&flow.packets.unwrap()) {
                off.push(off_ns / mean_ns);
            }
        }
    }
    off.map(|mut off| {
        off.sort_by(f64::total_cmp);
        assert!(off.len() >= FLOWS_MIN, "{} flows say little", off.len());
        off[(off.len() as f64 * ONE_DEVIATION) as usize]
    })
}

#[track_caller]
fn check(traffic: &Traffic, model: &ColateTraffic, load: u64) {
    let packets: u64 = traffic.flows.iter().filter_map(|flow| flow.packets).sum();
    let goal = ColateGoal {
        wanted: Reliability { reliability: 0.95, interval: 0.05 },
        estimator: PlannedEstimator::Joint,
        packets: Some(packets as f64),
        delay_units: 1e6,
    };
    let counters = ColateConfig::new((packets / load) as u32, 20, &[1.0]).unwrap();
    let plan = ColatePlan::within(counters.state_bytes(), model, &goal).unwrap();
    // The geometric middle of a class is the size that was asked for.
    let classes = SIZES.map(|size| size * 10 / 14..size * 14 / 10);
    for (size, found) in SIZES.into_iter().zip(measured(traffic, &plan.config, &classes)) {
        let expected = plan.expected_error(model, PlannedEstimator::Joint, size as f64);
        let ratio = found / expected;
        println!(
            "{load:>4} packets per counter, flows of {size:>5}: off by {found:.4}, expected \
             {expected:.4}, ratio {ratio:.2}"
        );
        assert!((1.0 / FACTOR..FACTOR).contains(&ratio), "ratio {ratio}");
    }
}

#[test]
fn errors_are_as_planned() {
    let traffic = traffic(&sized(300_000, 30, 20_000));
    let model = planned(30.0, 30.0, 20_000.0);
    for load in [2, 20, 100] {
        check(&traffic, &model, load);
    }
}

/// What a plan promises holds if traffic is recorded exactly as planned: of flows from the smallest that
/// matters to half as much again, how many are as near to their own means as was asked for. Most flows,
/// and half of the packets, are of flows that do not matter.
#[track_caller]
fn check_promise(memory_bytes: u64, (reliability, interval): (f64, f64), seeds: u64) {
    const LEAST: u64 = 30;
    const SMALLEST: u64 = 1000;
    const LARGEST: u64 = 100_000;
    let [least, smallest, largest] = [LEAST, SMALLEST, LARGEST].map(|packets| packets as f64);
    let wanted = Reliability { reliability, interval };
    let goal =
        ColateGoal { wanted, estimator: PlannedEstimator::Joint, packets: None, delay_units: 1e6 };
    let plan = ColatePlan::within(memory_bytes, &planned(least, smallest, largest), &goal).unwrap();
    assert_eq!(plan.reachable, wanted);
    let mean_size = (largest / least).ln() * least * largest / (largest - least);
    let flows = (plan.threshold / mean_size).round() as u32;
    let (mut near, mut all) = (0, 0);
    for seed in 1..=seeds {
        let sized = sized(0, LEAST, LARGEST);
        let traffic = traffic(&Config { seed, flows, packets: None, ..sized });
        let ends = traffic.ends(&plan.config);
        for (estimate, flow) in traffic.ask(&ends, "joint", true).iter().zip(&traffic.flows) {
            if (SMALLEST..SMALLEST * 3 / 2).contains(&flow.packets.unwrap()) {
                let real_ns = traffic.truth[&flow.key].delay.unwrap().mean_ns();
                let off = (estimate.delay.unwrap().mean_ns() - real_ns).abs() / real_ns;
                near += u64::from(off <= interval);
                all += 1;
            }
        }
    }
    check_coverage(&format!("{memory_bytes} bytes, within {interval}"), near, all, reliability);
}

#[test]
fn promises_are_kept() {
    check_promise(64 << 10, (0.9, 0.1), 10);
    check_promise(64 << 10, (0.9, 0.05), 12);
    check_promise(256 << 10, (0.95, 0.05), 6);
}

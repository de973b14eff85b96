//! Flows of several kinds, with their true means.

use std::collections::BTreeMap;

use twixt_model::{
    Delay, Detail, Estimate, FlowHash, FlowKey, Observation, PacketDigest, Scope, Span, Timestamp,
    mix,
};

use crate::cnf::{Cnf, CnfConfig, RecordEstimator};
use crate::question::{By, Question};
use crate::synopsis::{Pair, Synopsis, TwoPoint};

const PACKETS: u64 = 40_000;

fn unit(seed: u64, salt: u64, number: u64) -> f64 {
    (mix(mix(seed << 48 | salt << 40 | number) ^ 0x636e_6621) >> 11) as f64 / (1_u64 << 53) as f64
}

fn key(flow: u64) -> FlowKey {
    FlowKey { source_port: flow as u16, protocol: 17, ..FlowKey::default() }
}

/// Estimates of all flows with a record, and the true means. A packet's delay is a function of its
/// flow and three random numbers.
fn estimated(
    seed: u64,
    flows: u64,
    estimator: &str,
    delay_ns: impl Fn(u64, f64) -> f64,
) -> (Vec<Estimate>, BTreeMap<FlowKey, f64>) {
    let config: CnfConfig = toml::from_str("sampling = 0.02").unwrap();
    let (mut upstream, mut downstream) = (Cnf::new(&config), Cnf::new(&config));
    let mut sums: BTreeMap<FlowKey, (f64, f64)> = BTreeMap::new();
    for number in 0..PACKETS {
        // Flows begin one after the other, and a dozen of them pass at a time.
        let oldest = number * flows / PACKETS;
        let flow = (oldest + (unit(seed, 1, number) * 12.0) as u64) % flows;
        let delay = delay_ns(flow, unit(seed, 2, number));
        let packet = Observation {
            time: Timestamp::from_nanos(number as i64 * 200_000),
            digest: PacketDigest(mix(seed << 32 | number)),
            flow: FlowHash(mix(flow)),
            length: 100,
            ..Observation::default()
        };
        let detail = Detail { key: key(flow), ..Detail::default() };
        upstream.update_detailed(&packet, &detail);
        let time = packet.time + Delay::from_nanos(delay as i64);
        downstream.update_detailed(&Observation { time, ..packet }, &detail);
        let (sum, count) = sums.entry(key(flow)).or_default();
        (*sum, *count) = (*sum + delay, *count + 1.0);
    }
    let about = Question::about(Span::at(Timestamp::from_nanos(0)));
    let question = Question { by: By::Flow, estimator: Some(estimator), ..about };
    let estimates = Cnf::estimate(Pair { upstream: &upstream, downstream: &downstream }, &question);
    (estimates, sums.into_iter().map(|(flow, (sum, count))| (flow, sum / count)).collect())
}

/// Whether each interval holds.
fn held(estimates: &[Estimate], truth: &BTreeMap<FlowKey, f64>) -> Vec<bool> {
    let held = |estimate: &Estimate| {
        let Scope::Flow(key) = &estimate.scope else { return None };
        let delay = estimate.delay?;
        Some((delay.mean_ns() - truth[key]).abs() <= delay.half_width_ns.expect("or no mean"))
    };
    estimates.iter().filter_map(held).collect()
}

#[test]
fn means_have_an_interval_that_holds_or_are_not_stated() {
    for (flows, answered_min) in [(100, 300), (400, 30)] {
        for estimator in ["hybrid", "multiflow"] {
            let (mut good, mut all) = (0, 0);
            for seed in 0..5 {
                let (estimates, truth) =
                    estimated(seed, flows, estimator, |_, unit| 1e6 * -(1.0 - unit).ln());
                let holding = held(&estimates, &truth);
                all += holding.len() as u64;
                good += holding.iter().filter(|&&held| held).count() as u64;
                for estimate in estimates.iter().filter(|estimate| estimate.delay.is_none()) {
                    let reason = estimate.reason.as_deref().unwrap();
                    assert!(
                        ["a mean needs", "no mean", "recognised"]
                            .iter()
                            .any(|why| reason.contains(why)),
                        "{reason}"
                    );
                }
            }
            // Of 100 flows 8 packets each are metered, of 400 flows 2.
            assert!(all > answered_min, "{flows} {all}");
            twixt_testing::check_coverage(&format!("{flows} flows, {estimator}"), good, all, 0.95);
        }
    }
}

/// Some flows take another path: the mean of all was stated for each of them.
#[test]
fn flows_that_differ_are_not_answered_by_others() {
    let two_paths = |flow: u64, unit: f64| 1e6 * (0.7 + 0.6 * unit) * [0.2, 1.5][flow as usize % 2];
    let broken = |flow: u64, unit: f64| -1e6 * (1.0 - unit).ln() + if flow < 3 { 5e8 } else { 0.0 };
    for seed in 0..5 {
        for estimator in RecordEstimator::NAMES {
            let (estimates, _) = estimated(seed, 60, estimator, two_paths);
            assert!(estimates.iter().all(|estimate| estimate.delay.is_none()), "{estimator}");
            let differ = estimates.iter().filter(|estimate| {
                estimate.reason.as_deref().is_some_and(|reason| reason.contains("flows differ"))
            });
            assert!(estimator == "endpoint" || differ.count() > 30, "{estimator}");
            let (estimates, truth) = estimated(seed, 60, estimator, broken);
            assert!(held(&estimates, &truth).iter().all(|&held| held), "{estimator}");
        }
    }
}

/// A flow of ten seconds whose delay rises from 1 to 20 ms, while records are closed every second: the points cut it
/// differently, so that few of them are recognised. Those were taken for all of it.
#[test]
fn a_mean_is_not_that_of_the_few_records_that_were_recognised() {
    for (sampling, estimator) in
        [("1.0", "hybrid"), ("1.0", "multiflow"), ("0.2", "endpoint"), ("0.2", "hybrid")]
    {
        let settings = format!("sampling = {sampling}\nactive_timeout = 1000000000");
        let config: CnfConfig = toml::from_str(&settings).unwrap();
        let (mut upstream, mut downstream) = (Cnf::new(&config), Cnf::new(&config));
        let mut sum_ns = 0.0;
        for number in 0..5_000_u64 {
            let packet = Observation {
                time: Timestamp::from_nanos(number as i64 * 2_000_000),
                digest: PacketDigest(mix(number)),
                flow: FlowHash(mix(1)),
                length: 100,
                ..Observation::default()
            };
            let detail = Detail { key: key(1), ..Detail::default() };
            let delay_ns = 1_000_000.0 + 19e6 * (number as f64 / 1_000.0).min(1.0);
            sum_ns += delay_ns;
            upstream.update_detailed(&packet, &detail);
            let time = packet.time + Delay::from_nanos(delay_ns as i64);
            downstream.update_detailed(&Observation { time, ..packet }, &detail);
        }
        let about = Question::about(Span::at(Timestamp::from_nanos(0)));
        let question = Question { by: By::Flow, estimator: Some(estimator), ..about };
        let pair = Pair { upstream: &upstream, downstream: &downstream };
        let estimate = Cnf::estimate(pair, &question).remove(0);
        let truth_ns = sum_ns / 5_000.0;
        let near = |delay: twixt_model::DelayEstimate| {
            let off_ns = (delay.mean_ns() - truth_ns).abs();
            delay.half_width_ns.map_or(off_ns < truth_ns / 2.0, |width| off_ns <= width)
        };
        assert!(estimate.delay.is_none_or(near), "{sampling} {estimator}: {estimate:?}");
        assert!(estimate.delay.is_some() || estimate.reason.is_some());
    }
}

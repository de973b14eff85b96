//! From packets in samples to percentiles of an hour, and nothing in between is an average.

use serde_json::Value;
use twixt_measure::Sealed;
use twixt_model::{Delay, DelaySample, Scope};
use twixt_synopsis::{Estimator, Pair, Purpose, Question, find};

use crate::api::{ask_until, ask_well, patient};
use crate::epochs::{Agent, DELAY_NS, EPOCH_NS, body, epoch_now};

const EPOCHS: i64 = 600;
/// Delays vary by this, mostly by less. Packets are 2 ms apart: none is in flight at a boundary.
const SPREAD_NS: i64 = 900_000;
/// Agents take turns: no more than so many epochs of one wait for those of the other.
const TURN: usize = 30;

/// All samples of some epochs, as the two points sealed them, combined.
fn merged(up: &[Sealed], down: &[Sealed]) -> DelaySample {
    let algorithm = find(Purpose::Delay, "sample").unwrap();
    let Estimator::TwoPoint { estimate, .. } = algorithm.estimator else { unreachable!() };
    let mut all = DelaySample::default();
    for (up, down) in up.iter().zip(down) {
        let pair = Pair { upstream: up.synopsis.as_ref(), downstream: down.synopsis.as_ref() };
        let question = Question::about(up.rule.span_of(up.epoch));
        let told = estimate(pair, &question).unwrap();
        let of_all = told.iter().find(|told| told.scope == Scope::All).unwrap();
        all.merge(of_all.sample.as_ref().unwrap());
    }
    all
}

fn row(document: &Value) -> &Value {
    let rows = document["estimates"].as_array().unwrap();
    rows.iter().max_by_key(|row| row["epochs"].as_u64()).unwrap()
}

#[test]
fn percentiles_of_an_hour_are_those_of_all_samples() {
    let folder = tempfile::tempdir().unwrap();
    let collector = patient(folder.path());
    // All within one hour, however late it is.
    let hour = 3_600_000_000_000 / EPOCH_NS;
    let first = (epoch_now() / hour - 1) * hour + 10;
    let [up, down] = [Agent::at("up"), Agent::at("down").after(DELAY_NS).spread(SPREAD_NS)]
        .map(|agent| agent.sampling().seal(first, EPOCHS));
    for (one, other) in up.chunks(TURN).zip(down.chunks(TURN)) {
        collector.send(&body(one)).counts();
        collector.send(&body(other)).counts();
    }
    let is_there = |document: &Value| document["completeness"]["epochs"].as_i64() == Some(EPOCHS);
    let hours = ask_until(&collector, "/v1/estimates?segment=up:down&step=hour", is_there);
    let hour = row(&hours);
    let all = merged(&up, &down);
    println!("{} sampled packets", all.packets().len());
    for (name, share) in [("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("p999", 0.999)] {
        let expected = all.percentile(share).unwrap();
        let [value, low, high] = ["ns", "low_ns", "high_ns"]
            .map(|end| hour[format!("{name}_{end}")].as_i64().unwrap_or_else(|| panic!("{hour}")));
        println!("{name}: {value} in {low}..{high}; merged: {expected:?}");
        // A bucket of the hour is 2.2 % wide.
        let off = value as f64 / expected.time_ns as f64 - 1.0;
        assert!(off.abs() < 0.03, "{name}: {value} for {}", expected.time_ns);
        assert!((low..=high).contains(&expected.time_ns), "{name}: {low}..{high}");
    }
    let jitter = hour["jitter_ns"].as_f64().unwrap();
    let off = jitter / all.jitter_ns().unwrap() - 1.0;
    assert!(off.abs() < 0.03, "{jitter} for {:?}", all.jitter_ns());
    // Minutes add up to the hour.
    let minutes = ask_well(&collector, "/v1/estimates?segment=up:down&step=minute");
    let minutes = minutes["estimates"].as_array().unwrap();
    let sum = |key: &str| minutes.iter().filter_map(|row| row[key].as_u64()).sum::<u64>();
    for key in ["epochs", "packets", "used"] {
        assert_eq!(Some(sum(key)), hour[key].as_u64(), "{key}");
    }
    let spread = Delay::from_nanos(SPREAD_NS).as_nanos();
    assert!(minutes.iter().all(|row| row["p95_ns"].as_i64() < Some(DELAY_NS + spread)));
}

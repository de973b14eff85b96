//! Errors by estimator and size of the flow.

use twixt_sim::Config;
use twixt_sim::quantity::Nanoseconds;
use twixt_synopsis::ColateConfig;

use crate::traffic::{Class, config, show, traffic};

fn colate(counters: u32) -> ColateConfig {
    ColateConfig::new(counters, 20, &[1.0]).unwrap()
}

/// All seeds together, by estimator.
fn run(seeds: u64, packets: u64, counters: u32, propagation_ns: i64) -> [[Class; 3]; 3] {
    let mut sums: [[Class; 3]; 3] = Default::default();
    for seed in 1..=seeds {
        let propagation = Nanoseconds(propagation_ns);
        let traffic = traffic(&Config { propagation, ..config(seed, packets) });
        let ends = traffic.ends(&colate(counters));
        for (estimator, sums) in ["joint", "median", "paper"].into_iter().zip(&mut sums) {
            let scores = traffic.scores(&traffic.ask(&ends, estimator, true));
            show(&format!("seed {seed}, {counters}, {estimator}"), &scores);
            sums.iter_mut().zip(&scores).for_each(|(sum, score)| sum.add(score));
        }
    }
    for (estimator, sums) in ["joint", "median", "paper"].into_iter().zip(&sums) {
        show(&format!("{packets} packets, {counters}, {estimator}"), sums);
    }
    sums
}

#[test]
#[ignore = "takes minutes"]
fn a_million_packets_and_six_seeds() {
    for propagation_ns in [0, 20_000_000] {
        for counters in [45_533, 455_334] {
            run(6, 1_000_000, counters, propagation_ns);
        }
    }
}

#[test]
fn half_a_million_packets() {
    run(2, 500_000, 22_766, 20_000_000);
    run(1, 500_000, 227_667, 0);
}

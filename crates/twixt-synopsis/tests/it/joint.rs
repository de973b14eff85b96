//! `joint` where flows are few, or few are different: its intervals hold, no other estimator of the
//! same algorithm is nearer, and all flows are answered.

mod hostile;
mod partly_listed;
mod score;
mod traffic;

use score::{Score, ask};
use traffic::{Delays, Sizes, Traffic, Workload};
use twixt_synopsis::{Colate, ColateConfig, Lds, LdsConfig, TwoPoint};
use twixt_testing::{check_coverage, seed};

/// Classes of fewer flows say nothing.
const FLOWS_MIN: u64 = 90;
/// At most so many times the error of the best other estimator ...
const ERROR_RATIO_MAX: f64 = 1.1;
/// ... or this part of the delay, which is far below what any other estimator reaches where cells
/// determine the flows.
const EXACT: f64 = 1e-5;

#[track_caller]
fn check<S: TwoPoint>(workload: Workload, config: &S::Config) {
    let workload = Workload { seed: seed(workload.seed), ..workload };
    println!("{} {workload:?}", S::NAME);
    let traffic = Traffic::new(&workload);
    let ends = traffic.ends::<S>(config);
    let flows: Vec<usize> = (0..workload.flows).collect();
    let joint = ask(&traffic, &ends, "joint", &flows, true);
    let others: Vec<[Score; 4]> = S::ESTIMATORS
        .iter()
        .filter(|&&estimator| estimator == "median" || estimator == "paper")
        .map(|estimator| ask(&traffic, &ends, estimator, &flows, true))
        .collect();
    for (class, score) in joint.iter().enumerate().filter(|(_, score)| score.flows >= FLOWS_MIN) {
        let best = others.iter().map(|scores| scores[class].median_error());
        let (error, best) = (score.median_error(), best.fold(f64::INFINITY, f64::min));
        let width = score.median_half_width();
        println!("10^{class} packets: {} flows, off by {error:.6} (others {best:.6})", score.flows);
        println!("half of the intervals reach {width:.6} or less");
        assert_eq!((score.errors.len() as u64, score.silent), (score.flows, 0), "answered");
        assert!(error <= ERROR_RATIO_MAX * best + EXACT, "{error} against {best}");
        assert!(score.intervals * 100 >= score.flows * 90, "{} intervals", score.intervals);
        let what = format!("10^{class} packets");
        check_coverage(&what, score.held, score.intervals, 0.95);
    }
}

const EQUAL: Sizes = Sizes::Equal(1000);
const LARGE: Sizes = Sizes::Pareto(1000.0);
const MIXED: Sizes = Sizes::Pareto(10.0);

fn workload(flows: usize, sizes: Sizes, delays: Delays) -> Workload {
    Workload { seed: 1, flows, sizes, delays, loss: 0.0, repeats: 0.0 }
}

/// The default memory: so many counters that most flows have theirs to themselves.
#[test]
fn four_hundred_flows_in_many_counters() {
    for delays in [Delays::Exponential, Delays::Queue, Delays::RouteChange] {
        check::<Colate>(workload(400, EQUAL, delays), &ColateConfig::default());
    }
}

/// So many counters that some of a flow's are empty: those are no sign of flows that are not listed.
#[test]
fn empty_counters_are_no_sign_of_unlisted_flows() {
    let config = ColateConfig::new(163_840, 20, &[1.0]).unwrap();
    check::<Colate>(workload(400, Sizes::Equal(75), Delays::Exponential), &config);
}

#[test]
fn few_large_flows_in_few_counters() {
    for counters in [2560, 5120] {
        let config = ColateConfig::new(counters, 20, &[1.0]).unwrap();
        for delays in [Delays::ByFlow, Delays::Bimodal, Delays::FiveBroken] {
            check::<Colate>(workload(247, LARGE, delays), &config);
        }
    }
}

#[test]
fn few_large_flows_in_five_cells_of_each_row() {
    let config = LdsConfig::new(500, 5, &[1.0; 4]).unwrap();
    for delays in [Delays::Bimodal, Delays::Queue, Delays::FiveBroken] {
        check::<Lds>(workload(247, LARGE, delays), &config);
    }
}

#[test]
fn five_flows_at_half_a_second_among_thousands() {
    let broken = workload(4000, MIXED, Delays::FiveBroken);
    check::<Colate>(broken, &ColateConfig::new(40_960, 20, &[1.0]).unwrap());
    for (columns, cells) in [(128, 1), (500, 1), (2000, 1), (2000, 5)] {
        check::<Lds>(broken, &LdsConfig::new(columns, cells, &[1.0; 4]).unwrap());
    }
}

#[test]
fn lost_packets_leave_fewer_cells() {
    let broken = Workload { loss: 0.002, ..workload(4000, MIXED, Delays::FiveBroken) };
    check::<Colate>(broken, &ColateConfig::new(40_960, 20, &[1.0]).unwrap());
    check::<Lds>(broken, &LdsConfig::new(2000, 5, &[1.0; 4]).unwrap());
}

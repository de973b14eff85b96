//! Every estimator with sizes estimated, as `delay` has them, on traffic that no paper has: identical
//! packets, heavy tails, loss, and flows of few packets. Every mean has an interval, which holds.

use twixt_model::{Span, Timestamp};
use twixt_synopsis::{
    By, Colate, ColateConfig, KnownFlow, Lds, LdsConfig, Listing, PRINTED_ESTIMATOR, Pair,
    Question, TwoPoint,
};
use twixt_testing::{check_coverage, seed};

use super::traffic::{Delays, Sizes, Traffic, Workload};
use super::workload;

/// Intervals hold at least so often: the 95 % that they claim, less what approximations may cost.
const HELD_MIN: f64 = 0.93;
/// Means of flows that are asked for.
const ANSWERED_MIN: f64 = 0.9;

#[track_caller]
fn check<S: TwoPoint>(workload: Workload, config: &S::Config) {
    let workload = Workload { seed: seed(workload.seed), ..workload };
    println!("{} {workload:?}", S::NAME);
    let traffic = Traffic::new(&workload);
    let (upstream, downstream) = &traffic.ends::<S>(config);
    let flows: Vec<KnownFlow> =
        (0..workload.flows).map(|flow| traffic.listed(flow, false)).collect();
    for estimator in S::ESTIMATORS.iter().filter(|&&name| name != PRINTED_ESTIMATOR) {
        let question = Question {
            by: By::Flow,
            estimator: Some(estimator),
            flows: &flows,
            listing: Listing::Passing,
            ..Question::about(Span::at(Timestamp::from_nanos(0)))
        };
        let estimates = S::estimate(Pair { upstream, downstream }, &question);
        let (mut asked, mut intervals, mut held, mut bare) = (0, 0, 0, 0);
        for (estimate, truth) in estimates.iter().zip(&traffic.truth) {
            let Some(mean_ns) = truth.mean_ns() else { continue };
            asked += 1;
            let Some(delay) = estimate.delay else { continue };
            let off_ns = (delay.mean_ns() - mean_ns).abs();
            bare += u64::from(delay.half_width_ns.is_none());
            let Some(half_width_ns) = delay.half_width_ns else { continue };
            intervals += 1;
            held += u64::from(off_ns <= half_width_ns + 1.0);
        }
        println!("{estimator}: {held} of {intervals} hold, {asked} asked");
        check_coverage(&format!("{estimator}, intervals"), held, intervals, HELD_MIN);
        assert_eq!(bare, 0, "means without an interval");
        let answered = intervals as f64 / f64::from(asked);
        assert!(answered >= ANSWERED_MIN, "{estimator} answers for {answered}");
    }
}

fn counters(counters: u32) -> ColateConfig {
    ColateConfig::new(counters, 20, &[1.0]).unwrap()
}

/// The largest delays may be in counters that lost a packet.
#[test]
fn delays_without_a_variance_under_loss() {
    let heavy = workload(400, Sizes::Equal(75), Delays::Pareto);
    check::<Colate>(Workload { loss: 0.02, ..heavy }, &counters(40_960));
    check::<Colate>(Workload { loss: 0.1, repeats: 0.1, ..heavy }, &counters(10_240));
}

/// Half of a flow is in one counter, which others share.
#[test]
fn flows_that_repeat_half_of_their_packets() {
    for delays in [Delays::Bimodal, Delays::FiveBroken, Delays::Queue] {
        let repeating = Workload { repeats: 0.5, ..workload(400, Sizes::Pareto(15.0), delays) };
        check::<Colate>(repeating, &counters(10_240));
    }
}

/// Of a few packets, counters hold as many of other flows; equal ones do not show it.
#[test]
fn many_flows_of_few_packets() {
    for delays in [Delays::ByFlow, Delays::Bimodal] {
        let small = workload(3000, Sizes::Pareto(1.0), delays);
        check::<Colate>(small, &counters(12_288));
        check::<Lds>(small, &LdsConfig::new(600, 1, &[1.0; 4]).unwrap());
    }
}

//! The ways that the paper compares with, on the same traffic: flow records of sampled packets
//! (Multiflow, which it calls MPE), reference packets (RLI), and one mean for all.

use std::collections::BTreeMap;

use twixt_model::{Estimate, FlowKey, Scope, Span, Timestamp};
use twixt_sim::Side;
use twixt_synopsis::cnf::rivals::{ReferenceRate, mean_of_all, reference_interpolation};
use twixt_synopsis::cnf::unjudged;
use twixt_synopsis::{By, Cnf, CnfConfig, Pair, Question, Synopsis};

use super::RATE;
use crate::experiment::Trial;
use crate::experiments::segment::{Answers, TestSegment, crossed};

pub(super) const NAMES: [&str; 4] = ["Multiflow 10 %", "Multiflow 1 %", "RLI 1 kHz", "mean of all"];
const SAMPLING: [(&str, f64); 2] = [(NAMES[0], 0.1), (NAMES[1], 0.01)];
/// Packets in a millisecond.
const RLI_SPACING: usize = (RATE / 1000) as usize;

/// What each of them says of flows, and which share of flows has records.
pub(super) fn answers(segment: &TestSegment, trial: &mut Trial) -> Vec<(&'static str, Answers)> {
    let packets = crossed(&segment.simulation);
    let of_all_ns = mean_of_all(&packets).expect("packets crossed");
    let mut answers = Vec::new();
    for (name, sampling) in SAMPLING {
        let means = multiflow(segment, sampling);
        trial.value(
            format!("{name}, flows with records"),
            means.len() as f64 / segment.flows.len() as f64,
        );
        answers.push((name, segment.judge(&means, of_all_ns)));
    }
    let rate = ReferenceRate::Static(RLI_SPACING);
    let interpolated = segment.named(&reference_interpolation(&packets, rate));
    answers.push((NAMES[2], segment.judge(&interpolated, of_all_ns)));
    answers.push((NAMES[3], segment.judge(&BTreeMap::new(), of_all_ns)));
    answers
}

/// The estimator of Lee, Duffield and Kompella on flow records of sampled packets. Flows without
/// a record are left out.
fn multiflow(segment: &TestSegment, sampling: f64) -> BTreeMap<FlowKey, f64> {
    let config: CnfConfig =
        toml::from_str(&format!("sampling = {sampling}")).expect("settings are well-formed");
    let meter = |point| {
        let mut cnf = Cnf::new(&config);
        let simulation = &segment.simulation;
        for (packet, sighting) in simulation.observations(point).zip(simulation.sightings(point)) {
            cnf.update_detailed(&packet, &simulation.detail(sighting));
        }
        cnf
    };
    let (upstream, downstream) = (meter(Side::Upstream), meter(Side::Downstream));
    let about = Question::about(Span::at(Timestamp::from_nanos(0)));
    let question = Question { by: By::Flow, estimator: Some("multiflow"), ..about };
    let pair = Pair { upstream: &upstream, downstream: &downstream };
    let mean = |found: &Estimate| match found.scope {
        Scope::Flow(key) => Some((key, found.delay?.mean_ns())),
        _ => None,
    };
    unjudged(pair, &question).iter().filter_map(mean).collect()
}

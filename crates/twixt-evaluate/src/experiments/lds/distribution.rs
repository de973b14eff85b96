//! Distributions of the error, beside other ways to measure flows.

use std::collections::BTreeMap;

use twixt_model::{Estimate, FlowHash, FlowKey, Scope, Span, Timestamp};
use twixt_sim::{Loss, Side};
use twixt_synopsis::cnf::rivals::{
    Crossed, Means, ReferenceRate, mean_of_all, reference_interpolation,
};
use twixt_synopsis::cnf::unjudged;
use twixt_synopsis::{By, Cnf, CnfConfig, Pair, Question, Synopsis};

use super::{COLUMNS, ask, note_distribution, scaled, segment, whole_rows};
use crate::claim::{Holds, claim};
use crate::experiment::{Experiment, Seeds, Setting, Trial};
use crate::experiments::segment::{Answers, Packets, Sizes, TestSegment};
use crate::figure::{Axis, Curve, Figure};
use crate::summary::Summary;

const FEW_PACKETS: &str = "three quarters of our flows have fewer than 10 packets, and share \
                           even their emptiest cell; a record of sampled packets holds delays of \
                           the flow itself";

pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "lds-distribution",
    algorithm: "LDS",
    paper: "Sketching the delay, section 5.1, Fig. 9",
    about: "146 000 flows in 4 rows of 17 500 cells, no loss, compared with Multiflow on 1 and 10 \
         % of packets, RLI at 1 kHz, and the mean of all packets for every flow: distribution of \
         the error of the mean delay over flows of more than 1000, of more than 100 packets, and \
         all.",
    seeds: Seeds { quick: 1, full: 3 },
    trial,
    claims: &[
        claim(
            "paper over Multiflow 10 %, above 1000 packets",
            "greatly outperforms",
            "LDS, paper, >1000 / Multiflow 10 %, >1000",
            Holds::AtMost(0.2),
        ),
        claim(
            "paper over Multiflow 1 %, above 1000 packets",
            "greatly outperforms",
            "LDS, paper, >1000 / Multiflow 1 %, >1000",
            Holds::AtMost(0.2),
        ),
        claim(
            "paper over RLI, above 1000 packets",
            "greatly outperforms",
            "LDS, paper, >1000 / RLI 1 kHz, >1000",
            Holds::AtMost(0.2),
        ),
        claim(
            "paper over RLI, above 100 packets",
            "outperforms",
            "LDS, paper, >100 / RLI 1 kHz, >100",
            Holds::AtMost(0.5),
        ),
        claim(
            "paper over RLI, all flows",
            "consistently above the state of the art",
            "LDS, paper, all / RLI 1 kHz, all",
            Holds::AtMost(1.0),
        )
        .noting(FEW_PACKETS),
        claim(
            "paper over Multiflow 10 %, all flows",
            "consistently above the state of the art",
            "LDS, paper, all / Multiflow 10 %, all",
            Holds::AtMost(1.0),
        )
        .noting(FEW_PACKETS),
        claim(
            "paper over the mean of all, all flows",
            "better than the mean of all",
            "LDS, paper, all / mean of all, all",
            Holds::AtMost(1.0),
        ),
        claim(
            "joint over the mean of all, all flows",
            "–",
            "LDS, joint, all / mean of all, all",
            Holds::AtMost(1.0),
        ),
    ],
    figures,
};

const METHODS: [&str; 6] =
    ["LDS, joint", "LDS, paper", "Multiflow 10 %", "Multiflow 1 %", "RLI 1 kHz", "mean of all"];
const CLASSES: [(&str, Packets); 3] =
    [(">1000", 1001..=u64::MAX), (">100", 101..=u64::MAX), ("all", 1..=u64::MAX)];
/// Our traffic has 500 packets in a millisecond.
const RLI_SPACING: usize = 500;

fn trial(setting: Setting) -> Trial {
    let segment = segment(setting, Loss::None);
    let ends = segment.ends(&whole_rows(scaled(COLUMNS, setting)));
    let mut trial = Trial::default();
    for estimator in ["joint", "paper"] {
        let answers = ask(&segment, &ends, estimator, Sizes::Known);
        note(&mut trial, &format!("LDS, {estimator}"), &answers);
    }
    drop(ends);
    let packets = crossed(&segment);
    let of_all_ns = mean_of_all(&packets).expect("packets crossed");
    let keys: BTreeMap<FlowHash, FlowKey> =
        segment.flows.iter().map(|flow| (flow.hash, flow.key)).collect();
    let named = |means: Means| -> BTreeMap<FlowKey, f64> {
        means.into_iter().filter_map(|(hash, mean_ns)| Some((*keys.get(&hash)?, mean_ns))).collect()
    };
    note(&mut trial, "mean of all", &segment.judge(&BTreeMap::new(), of_all_ns));
    let rate = ReferenceRate::Static(RLI_SPACING);
    let interpolated = named(reference_interpolation(&packets, rate));
    note(&mut trial, "RLI 1 kHz", &segment.judge(&interpolated, of_all_ns));
    for (name, sampling) in [("Multiflow 10 %", 0.1), ("Multiflow 1 %", 0.01)] {
        note(&mut trial, name, &segment.judge(&multiflow(&segment, sampling), of_all_ns));
    }
    trial
}

fn note(trial: &mut Trial, method: &str, answers: &Answers) {
    for (class, packets) in CLASSES {
        note_distribution(trial, &format!("{method}, {class}"), answers.errors(packets));
    }
}

fn crossed(segment: &TestSegment) -> Vec<Crossed> {
    let simulation = &segment.simulation;
    let seen = simulation.observations(Side::Upstream).zip(simulation.sightings(Side::Upstream));
    let crossed = seen.filter_map(|(packet, sighting)| {
        let delay = simulation.observed_delay(&simulation.packets()[sighting.packet as usize])?;
        let (flow, digest, length) = (packet.flow, packet.digest, packet.length);
        Some(Crossed { sent: packet.time, delay, flow, digest, length })
    });
    crossed.collect()
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

fn figures(summary: &Summary) -> Vec<Figure> {
    let figure = |(class, _): (&str, Packets), name: &str, title: &str| Figure {
        name: format!("lds-distribution-{name}"),
        title: format!("Flows whose mean is off by at most so much: {title}"),
        x: Axis::logarithmic("relative error of the mean"),
        y: Axis::linear("share of flows"),
        series: METHODS
            .map(|method| Curve::of_trials(summary, &format!("{method}, {class}"), method))
            .into(),
    };
    let [large, medium, all] = CLASSES;
    vec![
        figure(large, "1000", "more than 1000 packets"),
        figure(medium, "100", "more than 100 packets"),
        figure(all, "all", "all flows"),
    ]
}

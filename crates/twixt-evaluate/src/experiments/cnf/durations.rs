//! Error by how long flows last.

use std::collections::BTreeMap;

use twixt_model::{FlowHash, Timestamp};
use twixt_synopsis::cnf::rivals::Means;

use super::{DROPTAIL, Run, config, median, queue};
use crate::claim::{Holds, claim};
use crate::experiment::{Experiment, Seeds, Setting, Trial};
use crate::figure::{Axis, Curve, Figure};
use crate::summary::Summary;

pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "cnf-durations",
    algorithm: "Consistent NetFlow",
    paper: "Consistent NetFlow, section IV-C, Fig. 7",
    about: "A drop-tail queue at 85 % load, 1 % of packets or of flows metered: median error of the mean delay \
            of flows by their duration, from below 1/128 to above half of the time of all traffic (12 s; \
            quick: 2.4 s; published: 60 s, in seconds). Flows with two or more metered packets; with flows metered whole, of two packets \
            or more.",
    seeds: Seeds { quick: 2, full: 5 },
    trial,
    claims: &[
        claim(
            "packets metered: Multiflow over Endpoint, largest of all durations",
            "much smaller than 1",
            "packet, worst",
            Holds::AtMost(0.8),
        ),
        claim(
            "packets metered: Multiflow, longest over shortest flows",
            "falls with duration",
            "packet, multiflow@7 / packet, multiflow@0",
            Holds::AtMost(0.7),
        ),
        claim(
            "flows metered: Multiflow, share of durations with a median error above 50 %",
            "almost all",
            "flow, above half",
            Holds::AtLeast(0.8),
        )
        .noting(
            "our queue moves so slowly that delays of others at the time of a flow tell much of its own; how \
             fast that of the paper moved is not published, and it gives no figure of flows that are metered whole",
        ),
    ],
    figures,
};

/// Groups of flows by duration.
const GROUPS: usize = 8;
const SELECTIONS: [(&str, &str); 2] =
    [("packet", "sampling = 0.01"), ("flow", "sampling = 0.01\nselect = \"flow\"")];
const ESTIMATORS: [&str; 2] = ["endpoint", "multiflow"];

fn trial(setting: Setting) -> Trial {
    let simulation = queue(setting, DROPTAIL, 0.85);
    let mut trial = Trial::default();
    for (selection, settings) in SELECTIONS {
        let run = Run::new(&simulation, &config(settings));
        let groups = groups(&run);
        let [endpoint, multiflow] =
            ESTIMATORS.map(|estimator| by_group(&run, &run.means(estimator), &groups));
        for (estimator, errors) in ESTIMATORS.iter().zip([&endpoint, &multiflow]) {
            for (group, error) in errors.iter().enumerate() {
                trial.value(format!("{selection}, {estimator}@{group}"), *error);
                let middle = 0.75 / f64::from(1_u32 << (GROUPS - 1 - group));
                trial.point(&format!("{selection}, {estimator}"), middle, *error);
            }
        }
        let known = |errors: &[Option<f64>]| errors.iter().flatten().copied().collect::<Vec<_>>();
        let above = known(&multiflow).iter().filter(|error| **error > 0.5).count();
        trial.value(
            format!("{selection}, above half"),
            above as f64 / known(&multiflow).len() as f64,
        );
        let ratios =
            multiflow.iter().zip(&endpoint).filter_map(|(own, other)| Some((*own)? / (*other)?));
        trial.value(format!("{selection}, worst"), ratios.reduce(f64::max));
    }
    trial
}

/// The group of each flow.
fn groups(run: &Run) -> BTreeMap<FlowHash, usize> {
    let mut spans: BTreeMap<FlowHash, (Timestamp, Timestamp)> = BTreeMap::new();
    for packet in &run.packets {
        let span = spans.entry(packet.flow).or_insert((packet.sent, packet.sent));
        *span = (span.0.min(packet.sent), span.1.max(packet.sent));
    }
    let lasts_ns = |(first, last): (Timestamp, Timestamp)| (last - first).as_nanos() as f64;
    let all = spans.values().copied().reduce(|all, one| (all.0.min(one.0), all.1.max(one.1)));
    let all_ns = lasts_ns(all.expect("packets crossed"));
    // Each twice as long as the one before; the last is from a half on.
    let group = |span| {
        let halvings = (all_ns / lasts_ns(span).max(1.0)).log2().ceil() as usize;
        GROUPS - halvings.clamp(1, GROUPS)
    };
    spans.into_iter().map(|(flow, span)| (flow, group(span))).collect()
}

/// Median error of each group.
fn by_group(run: &Run, means: &Means, groups: &BTreeMap<FlowHash, usize>) -> Vec<Option<f64>> {
    let mut errors = vec![Vec::new(); GROUPS];
    for (flow, mean) in means {
        let (Some(truth), Some(&group)) = (run.truth.get(flow), groups.get(flow)) else { continue };
        if run.counted[flow].metered >= 2 {
            errors[group].push((mean / truth - 1.0).abs());
        }
    }
    errors.into_iter().map(median).collect()
}

fn figures(summary: &Summary) -> Vec<Figure> {
    let curve = |selection: &str, estimator: &str| {
        let label = format!("{estimator}, 1 % of {selection}s");
        Curve::of_trials(summary, &format!("{selection}, {estimator}"), label)
    };
    let series =
        SELECTIONS.iter().flat_map(|(selection, _)| ESTIMATORS.map(|one| curve(selection, one)));
    vec![Figure {
        name: "cnf-durations".to_owned(),
        title: "Error by duration of the flow, drop-tail at 85 % load".to_owned(),
        x: Axis::logarithmic("duration of the flow over that of the traffic"),
        y: Axis::logarithmic("median relative error"),
        series: series.collect(),
    }]
}

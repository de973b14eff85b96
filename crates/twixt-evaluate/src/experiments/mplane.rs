//! Which routers to upgrade first: probe hops and granularity on real topologies.

use twixt_network::{ShortestPaths, Strategy, UpgradePlan, import};

use crate::claim::{Holds, claim};
use crate::experiment::{Experiment, Seeds, Setting, Trial};
use crate::figure::{Axis, Curve, Figure};
use crate::summary::Summary;

pub(super) static EXPERIMENT: Experiment = Experiment {
    name: "mplane-upgrade",
    algorithm: "mPlane",
    paper: "LDA and mPlane, section VII, Fig. 9",
    about: "Routers of the Sprint network (Rocketfuel 1239) are upgraded one by one, greedily and \
            at random: hops that test packets must cover, and hops between measurement points. \
            Every seed is another random order.",
    seeds: Seeds { quick: 2, full: 10 },
    trial,
    claims: &[
        claim("hops before any upgrade", "10⁶", "greedy, hops@0", Holds::Between(5e5, 2e6)),
        claim("hops after 45 greedy upgrades", "10⁴", "greedy, hops@45", Holds::AtMost(1e4)),
        claim("mean granularity before", "4", "greedy, granularity@0", Holds::AtLeast(4.0)),
        claim(
            "mean granularity after 50 greedy upgrades",
            "1.5",
            "greedy, granularity@50",
            Holds::Between(1.3, 1.7),
        ),
        claim(
            "hops after 45 random upgrades, over those before",
            "near the start",
            "random, hops@45 / random, hops@0",
            Holds::AtLeast(0.1),
        ),
        claim(
            "line of five routers, after three upgrades",
            "–",
            "line, hops@3",
            Holds::Between(8.0, 8.0),
        ),
    ],
    figures,
};

/// Paths of topologies in the folder of others' files, and their names here.
const TOPOLOGIES: [(&str, &str); 4] = [
    ("greedy", "topologies/rocketfuel/1239/weights.intra"),
    ("Telstra", "topologies/rocketfuel/1221/weights.intra"),
    ("Tiscali", "topologies/rocketfuel/3257/weights.intra"),
    ("Cogent", "topologies/zoo/Cogentco.gml"),
];
const LINE: &[u8] = br#"{"routers": ["0", "1", "2", "3", "4"], "links": [
    {"from": "0", "to": "1"}, {"from": "1", "to": "2"},
    {"from": "2", "to": "3"}, {"from": "3", "to": "4"}]}"#;
const UPGRADES: usize = 60;

fn trial(setting: Setting) -> Trial {
    let mut trial = Trial::default();
    note(&mut trial, "line", LINE, Strategy::Greedy);
    for (name, path) in TOPOLOGIES {
        let Some(bytes) = (setting.foreign)(path) else { continue };
        note(&mut trial, name, &bytes, Strategy::Greedy);
        if name == "greedy" {
            note(&mut trial, "random", &bytes, Strategy::Random { seed: setting.seed });
        }
    }
    trial
}

fn note(trial: &mut Trial, name: &str, bytes: &[u8], strategy: Strategy) {
    let Ok(topology) = import(bytes) else { return };
    let Ok(paths) = ShortestPaths::of(&topology) else { return };
    for step in UpgradePlan::new(&paths, strategy, UPGRADES).steps() {
        let (upgraded, hops) = (step.upgraded as f64, step.segments.hops as f64);
        let granularity = step.segments.mean_hops();
        trial.value(format!("{name}, hops@{}", step.upgraded), hops);
        trial.value(format!("{name}, granularity@{}", step.upgraded), granularity);
        trial.point(&format!("{name}, hops"), upgraded, hops);
        trial.point(&format!("{name}, granularity"), upgraded, granularity);
    }
}

fn figures(summary: &Summary) -> Vec<Figure> {
    let names = [("greedy", "Sprint, greedy"), ("random", "Sprint, random")]
        .into_iter()
        .chain(TOPOLOGIES[1..].iter().map(|(name, _)| (*name, *name)));
    let series = |what: &str| -> Vec<Curve> {
        names
            .clone()
            .map(|(name, label)| Curve::of_trials(summary, &format!("{name}, {what}"), label))
            .collect()
    };
    let mut hops = series("hops");
    hops.push(Curve::published("published: Sprint", &[(0.0, 1e6), (45.0, 1e4)]));
    let mut granularity = series("granularity");
    granularity.push(Curve::published("published: Sprint", &[(0.0, 4.0), (50.0, 1.5)]));
    vec![
        Figure {
            name: "mplane-hops".to_owned(),
            title: "Hops that test packets must cover, by upgraded routers".to_owned(),
            x: Axis::linear("upgraded routers"),
            y: Axis::logarithmic("hops"),
            series: hops,
        },
        Figure {
            name: "mplane-granularity".to_owned(),
            title: "Hops between measurement points, by upgraded routers".to_owned(),
            x: Axis::linear("upgraded routers"),
            y: Axis::linear("hops (mean)"),
            series: granularity,
        },
    ]
}

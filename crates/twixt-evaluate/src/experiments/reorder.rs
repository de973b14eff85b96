//! Which prefixes with much reordering are found with how many records.

mod traffic;

use std::collections::BTreeSet;

use twixt_model::{Batch, Prefix, ReorderEstimate, ReorderVerdict, Span, Timestamp};
use twixt_synopsis::{Estimator, Purpose, Question};

use self::traffic::Traffic;
use crate::claim::{Claim, Holds};
use crate::experiment::{Experiment, Seeds, Setting, Size, Trial};
use crate::figure::{Axis, Curve, Figure};
use crate::summary::Summary;

pub(super) static EXPERIMENT: Experiment = Experiment {
    name: "reorder-memory",
    algorithm: "Reordering",
    paper: "Detecting TCP packet reordering in the data plane, chapter 3",
    about: "3000 prefixes, 75 000 flows, about a million packets in 30 s. A prefix is heavy if it \
         has at least 128 packets, more than 2 % of them truly out of order; it is reported if \
         more than 2 % of at least 32 judged packets were out of order. Recall and precision by \
         records of flows.",
    seeds: Seeds { quick: 3, full: 8 },
    trial,
    claims: &[
        claim("sampled, 1024 records: recall", "80 %", "sampled, recall@1024", 0.85, ""),
        claim("hybrid, 1024 records: recall", "80 %", "hybrid, recall@1024", 0.85, ""),
        claim(
            "sampled, 1024 records: precision",
            "high",
            "sampled, precision@1024",
            0.70,
            PRECISION_NOTE,
        ),
        claim(
            "hybrid, 1024 records: precision",
            "high",
            "hybrid, precision@1024",
            0.70,
            PRECISION_NOTE,
        ),
        claim(
            "sampled, 1024 records: of all reported, truly above the threshold",
            "–",
            "sampled, above@1024",
            0.70,
            "prefixes of any size",
        ),
        Claim {
            claim: "sampled, 1024 records: of all reported, heavy",
            published: "–",
            value: "sampled, strict@1024",
            holds: Holds::Differs,
            note: "small prefixes count as wrong here even if they are above the threshold, and \
                   most prefixes are small; `sampled` cannot know how many packets it did not see",
        },
        claim(
            "sampled, 1024 records, verdict `above`: of all reported, truly above the threshold",
            "–",
            "sampled, sure above@1024",
            0.98,
            "",
        ),
        Claim {
            claim: "hybrid, 1024 records: recall over that of sampled",
            published: "higher",
            value: "hybrid, recall@1024 / sampled, recall@1024",
            holds: Holds::Differs,
            note: "on this traffic all flows of a prefix are equally late, so tracking the large \
                 ones longer gains nothing; the published traces are not public",
        },
    ],
    figures,
};

const PRECISION_NOTE: &str = "of the reported prefixes with at least 128 packets, those that are \
     truly above the threshold";

const fn claim(
    claim: &'static str,
    published: &'static str,
    value: &'static str,
    least: f64,
    note: &'static str,
) -> Claim {
    Claim { claim, published, value, holds: Holds::AtLeast(least), note }
}

/// More of a prefix's packets out of order than this is too much ...
const THRESHOLD: f64 = 0.02;
/// ... if it has at least so many packets.
const PACKETS_MIN: u64 = 128;
/// Fewer judged packets than this say nothing.
const JUDGED_MIN: u64 = 32;
const RECORDS: [u32; 3] = [256, 1024, 4096];
const STALE_DEFAULT_MS: u64 = 50;
const ALGORITHMS: [&str; 2] = ["sampled", "hybrid"];

fn trial(setting: Setting) -> Trial {
    let traffic = Traffic::new(setting.seed);
    let truth = Truth::of(&concluded(&traffic, "exact", ""));
    let stales_ms: &[u64] = match setting.size {
        Size::Quick => &[STALE_DEFAULT_MS],
        Size::Full => &[20, STALE_DEFAULT_MS, 500],
    };
    let mut trial = Trial::default();
    trial.value("large prefixes", truth.large.len() as f64);
    trial.value("heavy prefixes", truth.heavy.len() as f64);
    for &stale_ms in stales_ms {
        for name in ALGORITHMS {
            let label = match stale_ms {
                STALE_DEFAULT_MS => name.to_owned(),
                _ => format!("{name}, stale {stale_ms} ms"),
            };
            for records in RECORDS {
                let settings = format!("records = {records}\nstale = {}", stale_ms * 1_000_000);
                let estimates = concluded(&traffic, name, &settings);
                note(&mut trial, &label, records, &truth, &estimates);
            }
        }
    }
    trial
}

fn concluded(traffic: &Traffic, name: &str, settings: &str) -> Vec<ReorderEstimate> {
    let algorithm = twixt_synopsis::find(Purpose::Reorder, name).expect("it is registered");
    let settings = settings.parse().expect("settings are well-formed");
    let mut synopsis = (algorithm.start)(&settings).expect("settings are in range");
    let Traffic { observations, details } = traffic;
    synopsis.update_batch(Batch { observations, details });
    let Estimator::Reorder(estimator) = &algorithm.estimator else {
        unreachable!("algorithms for reordering conclude about reordering")
    };
    let question = Question::about(Span::at(Timestamp::from_nanos(0)));
    (estimator.conclude)(synopsis.as_ref(), &question).expect("the synopsis is the algorithm's")
}

/// What the referee says.
struct Truth {
    /// Prefixes that are large enough to be judged at all.
    large: BTreeSet<Prefix>,
    /// Those of them above the threshold.
    heavy: BTreeSet<Prefix>,
    /// All above the threshold, of any size.
    above: BTreeSet<Prefix>,
}

impl Truth {
    fn of(estimates: &[ReorderEstimate]) -> Self {
        let large = |estimate: &ReorderEstimate| estimate.packets >= PACKETS_MIN;
        Self {
            large: chosen(estimates, large),
            heavy: chosen(estimates, |estimate| large(estimate) && is_above(estimate)),
            above: chosen(estimates, is_above),
        }
    }
}

fn is_above(estimate: &ReorderEstimate) -> bool {
    estimate.fraction() > Some(THRESHOLD)
}

fn chosen(
    estimates: &[ReorderEstimate],
    is_chosen: impl Fn(&ReorderEstimate) -> bool,
) -> BTreeSet<Prefix> {
    estimates.iter().filter(|it| is_chosen(it)).map(|estimate| estimate.prefix).collect()
}

fn note(
    trial: &mut Trial,
    label: &str,
    records: u32,
    truth: &Truth,
    estimates: &[ReorderEstimate],
) {
    let by_share =
        chosen(estimates, |estimate| is_above(estimate) && estimate.packets >= JUDGED_MIN);
    let surely = chosen(estimates, |it| it.verdict(THRESHOLD) == ReorderVerdict::Above);
    for (prefix, reported) in [("", by_share), ("sure ", surely)] {
        let [heavy, large, above] = [&truth.heavy, &truth.large, &truth.above]
            .map(|prefixes| prefixes.intersection(&reported).count() as f64);
        let all = reported.len() as f64;
        for (what, share) in [
            ("recall", heavy / truth.heavy.len() as f64),
            ("precision", heavy / large),
            ("above", above / all),
            ("strict", heavy / all),
        ] {
            trial.value(format!("{label}, {prefix}{what}@{records}"), share);
            trial.point(&format!("{label}, {prefix}{what}"), f64::from(records), share);
        }
    }
}

fn figures(summary: &Summary) -> Vec<Figure> {
    let series = ["recall", "precision", "sure recall"]
        .into_iter()
        .flat_map(|what| ALGORITHMS.map(|name| format!("{name}, {what}")))
        .map(|name| Curve::of_trials(summary, &name, name.replace("sure", "verdict above:")));
    vec![Figure {
        name: "reorder-memory".to_owned(),
        title: "Much reordering: recall and precision by memory".to_owned(),
        x: Axis::logarithmic("records of flows"),
        y: Axis::linear("share of prefixes"),
        series: series.collect(),
    }]
}

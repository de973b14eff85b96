//! Sketches of three sizes beside other ways to measure flows: distributions of the error, and errors
//! by size of flows.

use twixt_synopsis::encode;

use super::rivals::{self, NAMES};
use super::{COLUMNS, ROWS, ask, bins, note_distribution, paced_segment, scaled, whole_rows};
use crate::claim::{Holds, claim};
use crate::experiment::{Experiment, Seeds, Setting, Trial};
use crate::experiments::segment::{Answers, Packets, Sizes};
use crate::figure::{Axis, Curve, Figure};
use crate::summary::Summary;

const FEW_PACKETS: &str = "three quarters of our flows have fewer than 10 packets, and share \
                           even their emptiest cell; a record of sampled packets holds delays of \
                           the flow itself";

const NO_CORRELATION: &str = "here delays of packets that pass together are not alike at all: each flow \
     has its own, so that neither way has anything to interpolate; how alike they were in the trace is not \
     published";
const LARGER_BINS: &str =
    "the paper does not give the border of its two bins above 1000 packets; here it is 10 000";

pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "lds-distribution",
    algorithm: "LDS",
    paper: "Sketching the delay, section 5.1, Fig. 9 and 10",
    about: "146 000 flows in 4 rows of 1750, 17 500 and 175 000 cells (7000, 70 000 and 700 000), no loss, \
         compared with Multiflow (MPE) on 1 and 10 % of packets, RLI at 1 kHz, and the mean of all packets \
         for every flow: distribution of the error of the mean delay over flows of more than 1000, of more \
         than 100 packets, and all; median and 95th percentile by size of the flow, and by size and delay.",
    seeds: Seeds { quick: 2, full: 3 },
    trial,
    claims: &[
        claim(
            "70 000 cells over Multiflow 10 %, above 1000 packets",
            "greatly outperforms",
            "LDS 70 000, >1000 / Multiflow 10 %, >1000",
            Holds::AtMost(0.2),
        ),
        claim(
            "70 000 cells over Multiflow 1 %, above 1000 packets",
            "greatly outperforms",
            "LDS 70 000, >1000 / Multiflow 1 %, >1000",
            Holds::AtMost(0.2),
        ),
        claim(
            "70 000 cells over RLI, above 1000 packets",
            "greatly outperforms",
            "LDS 70 000, >1000 / RLI 1 kHz, >1000",
            Holds::AtMost(0.2),
        ),
        claim(
            "70 000 cells over RLI, above 100 packets",
            "outperforms",
            "LDS 70 000, >100 / RLI 1 kHz, >100",
            Holds::AtMost(0.5),
        ),
        claim(
            "70 000 cells over RLI, all flows",
            "consistently above the state of the art",
            "LDS 70 000, all / RLI 1 kHz, all",
            Holds::AtMost(1.0),
        )
        .noting(FEW_PACKETS),
        claim(
            "70 000 cells over Multiflow 10 %, all flows",
            "consistently above the state of the art",
            "LDS 70 000, all / Multiflow 10 %, all",
            Holds::AtMost(1.0),
        )
        .noting(FEW_PACKETS),
        claim(
            "70 000 cells over the mean of all, all flows",
            "better than the mean of all",
            "LDS 70 000, all / mean of all, all",
            Holds::AtMost(1.0),
        ),
        claim(
            "the same, joint",
            "–",
            "LDS 70 000, joint, all / mean of all, all",
            Holds::AtMost(1.0),
        ),
        claim(
            "RLI over Multiflow 10 %, above 1000 packets",
            "RLI outperforms MPE",
            "RLI 1 kHz, >1000 / Multiflow 10 %, >1000",
            Holds::AtMost(1.0),
        )
        .noting(NO_CORRELATION),
        claim(
            "flows with a record, Multiflow 10 %",
            "70 000 of 146 000: 48 %",
            "Multiflow 10 %, flows with records",
            Holds::Between(0.35, 0.6),
        )
        .noting("sizes of small flows are not published; it is their share that decides"),
        claim(
            "7000 cells over Multiflow 10 %, above 1000 packets",
            "significantly higher accuracy",
            "LDS 7 000, >1000 / Multiflow 10 %, >1000",
            Holds::AtMost(0.7),
        ),
        claim(
            "7000 cells over Multiflow 10 %, above 100 packets",
            "significantly higher accuracy",
            "LDS 7 000, >100 / Multiflow 10 %, >100",
            Holds::AtMost(0.7),
        ),
        claim(
            "7000 cells over RLI, above 1000 packets",
            "significant improvements",
            "LDS 7 000, >1000 / RLI 1 kHz, >1000",
            Holds::AtMost(0.7),
        ),
        claim(
            "700 000 over 70 000 cells, above 100 packets",
            "–",
            "LDS 700 000, >100 / LDS 70 000, >100",
            Holds::AtMost(0.5),
        ),
        claim(
            "70 000 cells, 500 to 999 packets: median error",
            "1.2 %",
            "LDS 70 000, median, 500-999",
            Holds::AtMost(0.0125),
        ),
        claim(
            "70 000 cells, 1000 to 9999 packets: median error",
            "0.4 %",
            "LDS 70 000, median, 1000-9999",
            Holds::AtMost(0.0045),
        )
        .noting(LARGER_BINS),
        claim(
            "70 000 cells, 10 000 packets and more: median error",
            "0.06 %",
            "LDS 70 000, median, 10000+",
            Holds::AtMost(0.00065),
        )
        .noting(LARGER_BINS),
        claim(
            "70 000 cells as written at one point: megabytes",
            "about 1",
            "megabytes",
            Holds::AtMost(1.1),
        ),
        claim(
            "70 000 cells, 500 to 999 packets: 95th percentile over that of RLI",
            "compares extremely favourably",
            "LDS 70 000, p95, 500-999 / RLI 1 kHz, p95, 500-999",
            Holds::AtMost(0.5),
        ),
        claim(
            "70 000 cells, 1000 to 9999 packets: 95th percentile over that of Multiflow 10 %",
            "compares extremely favourably",
            "LDS 70 000, p95, 1000-9999 / Multiflow 10 %, p95, 1000-9999",
            Holds::AtMost(0.5),
        ),
        claim(
            "7000 cells, 1000 to 9999 packets: 95th percentile over that of RLI",
            "significant improvements",
            "LDS 7 000, p95, 1000-9999 / RLI 1 kHz, p95, 1000-9999",
            Holds::AtMost(1.0),
        ),
        claim(
            "70 000 cells, 100 to 499 packets: error at extreme delays over that at others",
            "slightly larger",
            "extreme delays, 100-499 / other delays, 100-499",
            Holds::AtLeast(1.0),
        ),
        claim(
            "70 000 cells, 10 to 99 packets: error at extreme delays over that at others",
            "slightly larger",
            "extreme delays, 10-99 / other delays, 10-99",
            Holds::AtLeast(1.0),
        ),
    ],
    figures,
};

/// Of the paper's middle sketch.
const CELLS: f64 = 70_000.0;
/// Sketches, by their name.
const SKETCHES: [(&str, u32); 3] =
    [("LDS 7 000", COLUMNS / 10), ("LDS 70 000", COLUMNS), ("LDS 700 000", COLUMNS * 10)];
/// What is drawn, in the order of legends.
pub(super) const DRAWN: [&str; 7] =
    [SKETCHES[0].0, SKETCHES[1].0, SKETCHES[2].0, NAMES[0], NAMES[1], NAMES[2], NAMES[3]];
const CLASSES: [(&str, Packets); 3] =
    [(">1000", 1001..=u64::MAX), (">100", 101..=u64::MAX), ("all", 1..=u64::MAX)];

fn trial(setting: Setting) -> Trial {
    let segment = paced_segment(setting);
    let mut trial = Trial::default();
    for (name, columns) in SKETCHES {
        let ends = segment.ends(&whole_rows(scaled(columns, setting)));
        let answers = ask(&segment, &ends, "paper", Sizes::Known);
        note(&mut trial, name, &answers);
        if columns == COLUMNS {
            let cells = (ROWS * scaled(columns, setting) as usize) as f64;
            trial.value("megabytes", encode(&ends.0).len() as f64 / cells * CELLS / 1e6);
            bins::note_delays(&mut trial, &answers);
            let joint = ask(&segment, &ends, "joint", Sizes::Known);
            note(&mut trial, &format!("{name}, joint"), &joint);
        }
    }
    for (name, answers) in rivals::answers(&segment, &mut trial) {
        note(&mut trial, name, &answers);
    }
    trial
}

fn note(trial: &mut Trial, way: &str, answers: &Answers) {
    for (class, packets) in CLASSES {
        note_distribution(trial, &format!("{way}, {class}"), answers.errors(packets));
    }
    bins::note(trial, way, answers);
}

fn figures(summary: &Summary) -> Vec<Figure> {
    let figure = |(class, _): (&str, Packets), name: &str, title: &str| Figure {
        name: format!("lds-distribution-{name}"),
        title: format!("Flows whose mean is off by at most so much: {title}"),
        x: Axis::logarithmic("relative error of the mean"),
        y: Axis::linear("share of flows"),
        series: DRAWN.map(|way| Curve::of_trials(summary, &format!("{way}, {class}"), way)).into(),
    };
    let [large, medium, all] = CLASSES;
    let mut figures = vec![
        figure(large, "1000", "more than 1000 packets"),
        figure(medium, "100", "more than 100 packets"),
        figure(all, "all", "all flows"),
    ];
    figures.extend(bins::figures(summary));
    figures
}

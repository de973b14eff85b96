//! Error by flow size with twice as many flows as cells.

use super::{COLUMNS, by_class, by_size};
use crate::claim::{Holds, claim};
use crate::experiment::{Experiment, Seeds, Setting, Trial};
use crate::figure::{Curve, Figure};
use crate::summary::Summary;

const TRACE: &str = "on a trace that is not available; where fewer flows are drawn, fewer of them are \
     very large";

/// Of nominally 95 %.
const COVERED: Holds = Holds::Between(0.9, 0.99);

pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "lds-flow-size",
    algorithm: "LDS",
    paper: "Sketching the delay, section 5.1, Fig. 10",
    about: "146 000 flows in 4 rows of 17 500 cells, no loss: median error of the mean delay by \
            size of the flow; the paper's estimator, and all flows at once (joint) with their \
            sizes known and estimated.",
    seeds: Seeds { quick: 2, full: 3 },
    trial,
    claims: &[
        claim(
            "packets in flows below 100 packets",
            "20 %",
            "packets of small flows",
            Holds::Between(0.15, 0.25),
        )
        .noting(TRACE),
        claim(
            "paper, 500 to 999 packets: mean off by",
            "1.2 %",
            "paper, 500-999",
            Holds::AtMost(0.0125),
        )
        .noting(TRACE),
        claim(
            "paper, 1000 packets and more: mean off by",
            "0.4 % and less",
            "paper, 1000+",
            Holds::AtMost(0.0045),
        )
        .noting(TRACE),
        claim(
            "paper: 500 to 999 over 100 to 499",
            "falls with size",
            "paper, 500-999 / paper, 100-499",
            Holds::AtMost(0.6),
        ),
        claim(
            "paper: 1000 and more over 500 to 999",
            "falls with size: 0.33",
            "paper, 1000+ / paper, 500-999",
            Holds::AtMost(0.6),
        ),
        claim("paper, 500 to 999: our bound", "–", "paper, 500-999", Holds::AtMost(0.06)),
        claim("paper, 1000 and more: our bound", "–", "paper, 1000+", Holds::AtMost(0.02)),
        claim(
            "joint over paper, 100 to 499, sizes known",
            "–",
            "joint, 100-499 / paper, 100-499",
            Holds::AtMost(0.3),
        ),
        claim(
            "joint over paper, 500 to 999, sizes known",
            "–",
            "joint, 500-999 / paper, 500-999",
            Holds::AtMost(0.3),
        ),
        claim(
            "joint over paper, 1000 and more, sizes known",
            "–",
            "joint, 1000+ / paper, 1000+",
            Holds::AtMost(0.3),
        ),
        claim(
            "joint over paper, 10 to 99, sizes estimated",
            "–",
            "joint, sizes estimated, 10-99 / paper, 10-99",
            Holds::AtMost(1.0),
        ),
        claim(
            "joint over paper, 100 to 499, sizes estimated",
            "–",
            "joint, sizes estimated, 100-499 / paper, 100-499",
            Holds::AtMost(1.0),
        ),
        claim(
            "joint over paper, 1000 and more, sizes estimated",
            "–",
            "joint, sizes estimated, 1000+ / paper, 1000+",
            Holds::AtMost(1.0),
        ),
        claim("joint, 1 to 9: 95 % intervals that hold", "–", "joint, 1-9, covered", COVERED),
        claim("joint, 10 to 99: 95 % intervals that hold", "–", "joint, 10-99, covered", COVERED),
        claim(
            "joint, 100 to 499: 95 % intervals that hold",
            "–",
            "joint, 100-499, covered",
            COVERED,
        ),
        claim(
            "joint, 500 to 999: 95 % intervals that hold",
            "–",
            "joint, 500-999, covered",
            COVERED,
        )
        .noting("few flows: one interval is a percent or two"),
        claim(
            "joint, 1000 and more: 95 % intervals that hold",
            "–",
            "joint, 1000+, covered",
            COVERED,
        )
        .noting("few flows: one interval is a percent or two"),
        claim(
            "joint, sizes estimated, 1 to 9: 95 % intervals that hold",
            "–",
            "joint, sizes estimated, 1-9, covered",
            COVERED,
        ),
        claim(
            "joint, sizes estimated, 10 to 99: 95 % intervals that hold",
            "–",
            "joint, sizes estimated, 10-99, covered",
            COVERED,
        ),
        claim(
            "joint, sizes estimated, 100 to 499: 95 % intervals that hold",
            "–",
            "joint, sizes estimated, 100-499, covered",
            COVERED,
        ),
        claim(
            "joint, sizes estimated, 500 to 999: 95 % intervals that hold",
            "–",
            "joint, sizes estimated, 500-999, covered",
            COVERED,
        )
        .noting("few flows: one interval is a percent or two"),
        claim(
            "joint, sizes estimated, 1000 and more: 95 % intervals that hold",
            "–",
            "joint, sizes estimated, 1000+, covered",
            COVERED,
        )
        .noting("few flows: one interval is a percent or two"),
    ],
    figures,
};

fn trial(setting: Setting) -> Trial {
    by_class(setting, COLUMNS)
}

fn figures(summary: &Summary) -> Vec<Figure> {
    let title = "LDS, twice as many flows as cells: error of the mean by flow size";
    let mut figure = by_size(summary, "lds-flow-size", title);
    figure.series.push(Curve::published("published", &[(700.0, 0.012), (3000.0, 0.004)]));
    vec![figure]
}

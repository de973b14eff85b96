//! With twenty times as many flows as cells.

use super::{COLUMNS, by_class, by_size};
use crate::claim::{Holds, claim};
use crate::experiment::{Experiment, Seeds, Setting, Trial};
use crate::figure::Figure;
use crate::summary::Summary;

pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "lds-few-cells",
    algorithm: "LDS",
    paper: "Sketching the delay, section 5.1, Fig. 9 and 10 (7000 counters)",
    about: "146 000 flows in 4 rows of 1750 cells, no loss: median error of the mean delay by \
            size of the flow, sizes known and estimated.",
    seeds: Seeds { quick: 4, full: 6 },
    trial,
    claims: &[
        claim(
            "joint over paper, 100 to 499, sizes known",
            "–",
            "joint, 100-499 / paper, 100-499",
            Holds::AtMost(0.5),
        ),
        claim(
            "joint over paper, 1000 and more, sizes known",
            "–",
            "joint, 1000+ / paper, 1000+",
            Holds::AtMost(0.5),
        ),
        claim(
            "joint, 1000 and more, sizes known: 95 % intervals that hold",
            "–",
            "joint, 1000+, covered",
            Holds::AtLeast(0.9),
        ),
        claim(
            "joint over paper, 1000 and more, sizes estimated",
            "–",
            "joint, sizes estimated, 1000+ / paper, 1000+",
            Holds::AtMost(1.0),
        )
        .noting("counts do not determine sizes here: most flows are answered as by the paper"),
    ],
    figures,
};

fn trial(setting: Setting) -> Trial {
    by_class(setting, COLUMNS / 10)
}

fn figures(summary: &Summary) -> Vec<Figure> {
    let title = "LDS, twenty times as many flows as cells: error of the mean by flow size";
    vec![by_size(summary, "lds-few-cells", title)]
}

//! With more cells than flows, all flows at once are exact.

use super::{by_class, by_size};
use crate::claim::{Holds, claim};
use crate::experiment::{Experiment, Seeds, Setting, Trial};
use crate::figure::Figure;
use crate::summary::Summary;

pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "lds-more-cells",
    algorithm: "LDS",
    paper: "Sketching the delay, section 5.1 (between its 70 000 and 700 000 cells)",
    about: "146 000 flows in 4 rows of 70 000 cells, no loss: median error of the mean delay by \
            size of the flow, sizes known and estimated.",
    seeds: Seeds { quick: 1, full: 3 },
    trial,
    claims: &[
        claim("joint, 10 to 99 packets: mean off by", "–", "joint, 10-99", Holds::AtMost(0.001)),
        claim("joint, 1000 and more: mean off by", "–", "joint, 1000+", Holds::AtMost(0.001)),
        claim(
            "joint, sizes estimated, 10 to 99: mean off by",
            "–",
            "joint, sizes estimated, 10-99",
            Holds::AtMost(0.001),
        ),
        claim(
            "joint, sizes estimated, 1000 and more: mean off by",
            "–",
            "joint, sizes estimated, 1000+",
            Holds::AtMost(0.001),
        ),
        claim("paper, 10 to 99: mean off by", "–", "paper, 10-99", Holds::AtMost(0.1))
            .noting("the same memory, and the emptiest cell of each flow"),
    ],
    figures,
};

const COLUMNS: u32 = 70_000;

fn trial(setting: Setting) -> Trial {
    by_class(setting, COLUMNS)
}

fn figures(summary: &Summary) -> Vec<Figure> {
    let title = "LDS, more cells than flows: error of the mean by flow size";
    vec![by_size(summary, "lds-more-cells", title)]
}

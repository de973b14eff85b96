//! The example of the analysis, by the corrected formula.

use twixt_model::mix;
use twixt_synopsis::RowPlan;

use crate::claim::{Holds, claim};
use crate::experiment::{Experiment, Seeds, Setting, Trial};
use crate::figure::{Axis, Curve, Figure};
use crate::summary::Summary;

pub(in crate::experiments) static EXPERIMENT: Experiment = Experiment {
    name: "lds-sizing",
    algorithm: "LDS",
    paper: "Sketching the delay, section 3",
    about: "How many rows to make of a given number of cells: by formula, and by throwing flows \
         into cells. A large flow survives if it shares no cell with another large flow in some \
         row.",
    seeds: Seeds { quick: 2, full: 10 },
    trial,
    claims: &[
        claim("z = 0.0875: best number of rows", "4.2", "rows", Holds::Between(4.203, 4.205)),
        claim(
            "z = 0.0875: surviving with 4 rows",
            "0.985",
            "survival",
            Holds::Between(0.984_9, 0.985_1),
        ),
        claim(
            "z = 0.0875: surviving with 1 row",
            "0.9125",
            "survival of one",
            Holds::Between(0.912_4, 0.912_6),
        ),
        claim(
            "z = 0.0875: surviving with 4 rows, thrown",
            "0.985",
            "thrown@4",
            Holds::Between(0.98, 0.995),
        )
        .noting(
            "the formula uses nP R / C as the probability to meet another large flow, which is a \
             bound: 1 - exp(-nP R / C)",
        ),
        claim("5 % missed: rows", "3.0", "rows for 5 %", Holds::Between(2.99, 3.01)),
        claim(
            "5 % missed: largest load",
            "0.1228",
            "load for 5 %",
            Holds::Between(0.122_7, 0.122_9),
        ),
        claim("5 % missed: gain over one row", "2.46", "gain for 5 %", Holds::Between(2.45, 2.46)),
    ],
    figures,
};

const LOAD: f64 = 0.0875;
const MISSED: f64 = 0.05;

fn trial(setting: Setting) -> Trial {
    let mut trial = Trial::default();
    let best = RowPlan::for_load(LOAD);
    trial.value("rows", best.ideal_rows);
    trial.value("survival", best.survival);
    trial.value("survival of one", 1.0 - LOAD);
    let (plan, load) = RowPlan::for_survival(MISSED);
    trial.value("rows for 5 %", plan.ideal_rows);
    trial.value("load for 5 %", load);
    trial.value("gain for 5 %", load / MISSED);
    for rows in 1..=8_u32 {
        let share = thrown(rows, setting);
        trial.value(format!("thrown@{rows}"), share);
        trial.point("thrown", f64::from(rows), share);
        let formula = 1.0 - (LOAD * f64::from(rows)).powi(rows as i32);
        trial.point("formula", f64::from(rows), formula);
    }
    trial
}

/// The share of large flows that have a cell to themselves in some row.
fn thrown(rows: u32, setting: Setting) -> f64 {
    let cells = setting.size.pick(40_000, 400_000);
    let large = (cells as f64 * LOAD) as u64;
    let columns = cells / u64::from(rows);
    let column = |flow: u64, row: u32| {
        let bits = mix(mix(flow << 8 | u64::from(row)).wrapping_add(mix(setting.seed)));
        ((u128::from(bits) * u128::from(columns)) >> 64) as usize
    };
    let mut alone = vec![false; large as usize];
    for row in 0..rows {
        let mut counts = vec![0_u32; columns as usize];
        (0..large).for_each(|flow| counts[column(flow, row)] += 1);
        for flow in 0..large {
            alone[flow as usize] |= counts[column(flow, row)] == 1;
        }
    }
    alone.iter().filter(|alone| **alone).count() as f64 / large as f64
}

fn figures(summary: &Summary) -> Vec<Figure> {
    let mut series = vec![
        Curve::of_trials(summary, "thrown", "flows thrown into cells"),
        Curve::of_trials(summary, "formula", "1 - (zR)^R"),
    ];
    series.push(Curve::published("published", &[(1.0, 0.9125), (4.0, 0.985)]));
    vec![Figure {
        name: "lds-sizing".to_owned(),
        title: "LDS, load 0.0875: large flows that meet no other in some row".to_owned(),
        x: Axis::linear("rows"),
        y: Axis::linear("share of large flows"),
        series,
    }]
}

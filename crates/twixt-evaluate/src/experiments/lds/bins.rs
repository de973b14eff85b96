//! Fig. 10: median and 95th percentile of the error by size of flows, and by size and delay.

use super::distribution::DRAWN;
use crate::experiment::Trial;
use crate::experiments::segment::{Answers, Packets, median};
use crate::figure::{Axis, Curve, Figure};
use crate::summary::Summary;

/// Bins of packets, with a packet number to draw them at. The paper names that of 500 to 999, and
/// two for larger flows, whose border it does not give.
const SIZES: [(&str, Packets, f64); 6] = [
    ("1-9", 1..=9, 3.0),
    ("10-99", 10..=99, 30.0),
    ("100-499", 100..=499, 220.0),
    ("500-999", 500..=999, 700.0),
    ("1000-9999", 1000..=9999, 3000.0),
    ("10000+", 10_000..=u64::MAX, 30_000.0),
];
/// Edges of bins of delay, over the mean of all flows' means: around the two modes of delay, and
/// between and beyond them.
const DELAYS: [f64; 6] = [0.0, 0.75, 0.9, 1.1, 1.35, f64::INFINITY];
/// Where the bins of delay are drawn.
const DELAYS_DRAWN: [f64; 5] = [0.7, 0.83, 1.0, 1.25, 1.4];
/// The bins of delay that hold extreme values, and those of the two modes.
const EXTREME: [usize; 2] = [0, 4];

/// Errors of one way by size.
pub(super) fn note(trial: &mut Trial, way: &str, answers: &Answers) {
    for (name, packets, at) in SIZES {
        for (what, share) in [("median", 0.5), ("p95", 0.95)] {
            let error = answers.error_of(packets.clone(), share);
            trial.value(format!("{way}, {what}, {name}"), error);
            trial.point(&format!("{way}, {what}"), at, error);
        }
    }
}

/// Errors by size and delay.
pub(super) fn note_delays(trial: &mut Trial, answers: &Answers) {
    for (name, packets, _) in &SIZES[1..5] {
        let (mut extreme, mut other) = (Vec::new(), Vec::new());
        for (bin, at) in DELAYS_DRAWN.into_iter().enumerate() {
            let errors = answers.errors_at(packets.clone(), DELAYS[bin]..DELAYS[bin + 1]);
            let kind = if EXTREME.contains(&bin) { &mut extreme } else { &mut other };
            kind.extend(&errors);
            trial.point(&format!("by delay, {name}"), at, median(errors));
        }
        trial.value(format!("extreme delays, {name}"), median(extreme));
        trial.value(format!("other delays, {name}"), median(other));
    }
}

pub(super) fn figures(summary: &Summary) -> Vec<Figure> {
    let by_size = |what: &str, label, published: &[(f64, f64)]| {
        let curve = |way: &str| Curve::of_trials(summary, &format!("{way}, {what}"), way);
        let mut series: Vec<Curve> = DRAWN[..6].iter().map(|way| curve(way)).collect();
        series.push(Curve::published("published: LDS, 70 000 cells", published));
        Figure {
            name: format!("lds-bins-{what}"),
            title: format!("LDS and other ways: {label} by flow size"),
            x: Axis::logarithmic("packets of the flow"),
            y: Axis::logarithmic("relative error"),
            series,
        }
    };
    let by_delay = SIZES[1..5].iter().map(|(name, ..)| {
        Curve::of_trials(summary, &format!("by delay, {name}"), format!("{name} packets"))
    });
    vec![
        by_size("median", "median error", &[(700.0, 0.012), (3000.0, 0.004), (30_000.0, 0.0006)]),
        by_size("p95", "95 % of errors", &[]),
        Figure {
            name: "lds-bins-delay".to_owned(),
            title: "LDS, 70 000 cells: median error by mean delay".to_owned(),
            x: Axis::linear("mean delay of the flow over the mean of all flows"),
            y: Axis::logarithmic("median relative error"),
            series: by_delay.collect(),
        },
    ]
}

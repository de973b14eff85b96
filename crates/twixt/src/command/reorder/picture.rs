//! Reordering as a picture: the share out of order of each prefix.

use twixt_model::ReorderEstimate;

use crate::output::units;
use crate::plot::{Axis, Bar, Colour, Layer, Panel, Picture, Quantity, Shape};

/// Prefixes that are drawn.
const PREFIXES_MAX: usize = 30;

/// The worst prefixes, in the order of the table; `None` if there is none.
pub(super) fn picture(name: &str, prefixes: &[ReorderEstimate], threshold: f64) -> Option<Picture> {
    let shown = &prefixes[..prefixes.len().min(PREFIXES_MAX)];
    let largest = shown.iter().filter_map(ReorderEstimate::fraction_max).reduce(f64::max)?;
    let bars = |from: fn(&ReorderEstimate) -> Option<f64>,
                to: fn(&ReorderEstimate) -> Option<f64>| {
        let bar = |(line, one): (usize, &ReorderEstimate)| {
            let (from, to) = (from(one)?, to(one).filter(|&share| share > 0.0)?);
            let middle = line as f64 + 0.5;
            (to > from).then_some(Bar { x: (from, to), y: (middle - 0.35, middle + 0.35) })
        };
        Shape::Bars(shown.iter().enumerate().filter_map(bar).collect())
    };
    let nothing = |_: &ReorderEstimate| Some(0.0);
    let layers = vec![
        Layer::new(
            "undecided",
            Colour::Grey,
            bars(ReorderEstimate::fraction, ReorderEstimate::fraction_max),
        ),
        Layer::new("out of order", Colour::Series(0), bars(nothing, ReorderEstimate::fraction)),
        Layer::new(
            format!("threshold {}", units::percent(threshold)),
            Colour::Loss,
            Shape::Upright(threshold),
        ),
    ];
    let names = shown.iter().map(|one| one.prefix.to_string()).collect();
    let title = match prefixes.len() > shown.len() {
        true => format!("Worst {PREFIXES_MAX} of {} prefixes", units::count(prefixes.len() as u64)),
        false => "By source prefix".to_owned(),
    };
    let packets: u64 = prefixes.iter().map(|one| one.packets).sum();
    Some(Picture {
        title: format!("Packets out of order at {name}"),
        subtitle: format!("{} packets with data", units::count(packets)),
        panels: vec![Panel {
            title,
            height: 18.0 * shown.len() as f64 + 10.0,
            x: Axis::new("packets", Quantity::Share, 0.0, largest.max(threshold) * 1.05),
            y: Axis::names("", names),
            layers,
        }],
    })
}

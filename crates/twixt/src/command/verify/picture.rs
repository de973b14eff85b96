//! Errors of an algorithm as a picture, by flow size.

use super::{SizeErrors, VerifyDocument};
use crate::output::units;
use crate::plot::{Axis, Bar, Colour, Layer, Panel, Picture, Quantity, Shape};

const LINE: f64 = 34.0;

/// `None` if no flow was answered.
pub(super) fn picture(document: &VerifyDocument) -> Option<Picture> {
    let sizes: Vec<&SizeErrors> =
        document.by_size.iter().filter(|size| size.answered > 0).collect();
    let names: Vec<String> = sizes
        .iter()
        .map(|size| format!("{} packets ({} flows)", size.range(), units::count(size.flows)))
        .collect();
    let panels: Vec<Panel> =
        [errors(&sizes, &names), coverage(&sizes, &names)].into_iter().flatten().collect();
    (!panels.is_empty()).then(|| Picture {
        title: format!("Error of {} by flow size, against the exact referee", document.algorithm),
        subtitle: format!(
            "{} of state per point; {} of {} flows answered",
            units::bytes(document.synopsis_bytes),
            units::count(document.answered),
            units::count(document.flows)
        ),
        panels,
    })
}

fn errors(sizes: &[&SizeErrors], names: &[String]) -> Option<Panel> {
    let all = sizes.iter().flat_map(|size| [size.median_relative_error, size.p95_relative_error]);
    let largest = all.flatten().reduce(f64::max)?.max(0.001);
    let bars = of_lines(sizes, |line, size| {
        Some(Bar { x: (0.0, size.median_relative_error?), y: (line - 0.3, line + 0.3) })
    });
    let dots = of_lines(sizes, |line, size| Some((size.p95_relative_error?, line)));
    Some(Panel {
        title: "Relative error of the mean of a flow".to_owned(),
        height: LINE * names.len() as f64,
        x: Axis::new("error", Quantity::Share, 0.0, largest * 1.05),
        y: Axis::names("", names.to_vec()),
        layers: vec![
            Layer::new("median", Colour::Series(0), Shape::Bars(bars)),
            Layer::new("p95", Colour::Series(1), Shape::Dots(dots)),
        ],
    })
}

fn coverage(sizes: &[&SizeErrors], names: &[String]) -> Option<Panel> {
    let bars = of_lines(sizes, |line, size| {
        Some(Bar { x: (0.0, size.ci95_coverage?), y: (line - 0.3, line + 0.3) })
    });
    (!bars.is_empty()).then(|| Panel {
        title: "95 % intervals that hold the referee's mean".to_owned(),
        height: LINE * names.len() as f64,
        x: Axis::new("intervals", Quantity::Share, 0.0, 1.0),
        y: Axis::names("", names.to_vec()),
        layers: vec![
            Layer::new("", Colour::Series(2), Shape::Bars(bars)),
            Layer::new("95 %", Colour::Loss, Shape::Upright(0.95)),
        ],
    })
}

fn of_lines<T>(sizes: &[&SizeErrors], of: impl Fn(f64, &SizeErrors) -> Option<T>) -> Vec<T> {
    let lines = sizes.iter().enumerate();
    lines.filter_map(|(line, size)| of(line as f64 + 0.5, size)).collect()
}

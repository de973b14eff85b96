//! What is expected of a plan, as a picture.

use crate::plot::{Axis, Colour, Layer, Panel, Picture, Quantity, Shape};

/// The expected error by something: one line with a dot for each row of the table.
pub(super) fn expected_error_picture(
    title: &str,
    x: (&str, Quantity),
    points: Vec<(f64, f64)>,
) -> Option<Picture> {
    let fits = |&(x, y): &(f64, f64)| x.is_finite() && y.is_finite() && y > 0.0;
    let points: Vec<(f64, f64)> = points.into_iter().filter(fits).collect();
    let ends = |of: fn(&(f64, f64)) -> f64| {
        let values = points.iter().map(of);
        Some((values.clone().reduce(f64::min)?, values.reduce(f64::max)?))
    };
    let ((left, right), (low, high)) = (ends(|point| point.0)?, ends(|point| point.1)?);
    let layers = vec![
        Layer::new("", Colour::Series(0), Shape::Line(points.clone())),
        Layer::new("", Colour::Series(0), Shape::Dots(points)),
    ];
    let y = Axis::new("relative error", Quantity::Share, low * 0.8, high * 1.2);
    let y = y.logarithmic_if_wide();
    Some(Picture {
        title: title.to_owned(),
        subtitle: String::new(),
        panels: vec![Panel {
            title: "Expected error".to_owned(),
            height: 280.0,
            x: Axis::new(x.0, x.1, left, right).logarithmic_if_wide(),
            y: if y.logarithmic { y } else { Axis { low: 0.0, ..y } },
            layers,
        }],
    })
}

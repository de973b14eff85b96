//! Draws figures and pictures. The only place that knows the drawing library.

mod axis;
mod draw;
mod file;
mod picture;

pub(crate) use file::PlotFile;
pub(crate) use picture::{Axis, Bar, Colour, Layer, Panel, Picture, Quantity, Shape};

use kuva::plot::{LinePlot, MarkerShape, ScatterPlot};
use kuva::render::layout::Layout;
use kuva::render::plots::Plot;
use kuva::render::render::{Scene, render_multiple};
use twixt_evaluate::{Curve, Figure, Mark};

/// Colours that people with any kind of sight distinguish (Okabe and Ito), the darker ones first.
const COLOURS: [&str; 7] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"];
/// What papers give is grey, whatever the number of series.
const PUBLISHED_COLOUR: &str = "#767676";
const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 440.0;

/// As SVG, light or dark as the reader likes it.
pub(crate) fn svg(figure: &Figure) -> String {
    file::svg(&scene(figure))
}

/// As PNG, at twice the size for sharp screens.
pub(crate) fn png(figure: &Figure) -> anyhow::Result<Vec<u8>> {
    file::png(&scene(figure))
        .map_err(|problem| anyhow::anyhow!("cannot plot {}: {problem}", figure.name))
}

fn scene(figure: &Figure) -> Scene {
    let shown = figure.series.iter().map(|series| drawable(figure, series));
    let shown: Vec<(Curve, usize)> =
        shown.filter(|series| !series.points.is_empty()).zip(0..).collect();
    let plots: Vec<Plot> = shown.iter().map(|(series, index)| plot(series, *index)).collect();
    let layout = Layout::auto_from_plots(&plots)
        .with_width(WIDTH)
        .with_height(HEIGHT)
        .with_title(figure.title.as_str())
        .with_title_wrap(70)
        .with_x_label(figure.x.label)
        .with_y_label(figure.y.label);
    let layout = if figure.x.logarithmic { layout.with_log_x() } else { layout };
    let layout = if figure.y.logarithmic { layout.with_log_y() } else { layout };
    render_multiple(plots, layout)
}

/// What an axis can show: no zero by powers of ten.
fn drawable(figure: &Figure, series: &Curve) -> Curve {
    let fits = |value: f64, logarithmic: bool| value.is_finite() && (!logarithmic || value > 0.0);
    let points = series.points.iter().copied();
    let points = points
        .filter(|&(x, y, _)| fits(x, figure.x.logarithmic) && fits(y, figure.y.logarithmic))
        // A band must not reach below zero where there is no zero.
        .map(|(x, y, half)| (x, y, if figure.y.logarithmic { half.min(0.9 * y) } else { half }));
    Curve { points: points.collect(), ..series.clone() }
}

fn plot(series: &Curve, index: usize) -> Plot {
    let colour = COLOURS[index % COLOURS.len()];
    let points: Vec<(f64, f64)> = series.points.iter().map(|&(x, y, _)| (x, y)).collect();
    match series.mark {
        Mark::Line => {
            let line = LinePlot::new()
                .with_data(points)
                .with_color(colour)
                .with_stroke_width(2.0)
                .with_legend(series.label.as_str());
            let spread = series.points.iter().any(|&(_, _, half)| half > 0.0);
            Plot::Line(match spread {
                true => line.with_band(
                    series.points.iter().map(|&(_, y, half)| y - half),
                    series.points.iter().map(|&(_, y, half)| y + half),
                ),
                false => line,
            })
        }
        Mark::Points => Plot::Scatter(
            ScatterPlot::new()
                .with_data(points)
                .with_color(colour)
                .with_size(2.0)
                .with_marker_opacity(0.5)
                .with_legend(series.label.as_str()),
        ),
        Mark::Published => Plot::Scatter(
            ScatterPlot::new()
                .with_data(points)
                .with_color(PUBLISHED_COLOUR)
                .with_size(6.0)
                .with_marker(MarkerShape::Diamond)
                .with_legend(series.label.as_str()),
        ),
    }
}

#[cfg(test)]
mod tests {
    use twixt_evaluate::Axis;

    use super::*;

    fn figure() -> Figure {
        let series = |label: &str, mark, points: &[(f64, f64, f64)]| Curve {
            label: label.to_owned(),
            mark,
            points: points.to_vec(),
        };
        Figure {
            name: "error".to_owned(),
            title: "Error by loss".to_owned(),
            x: Axis::logarithmic("loss (share of packets)"),
            y: Axis::logarithmic("relative error"),
            series: vec![
                series("ours", Mark::Line, &[(0.001, 0.002, 0.01), (0.1, 0.03, 0.01)]),
                series("theirs", Mark::Published, &[(0.001, 0.003, 0.0), (0.0, 1.0, 0.0)]),
                series("nothing", Mark::Points, &[]),
            ],
        }
    }

    #[test]
    fn a_figure_is_drawn_with_its_words_and_turns_dark() {
        let svg = svg(&figure());
        for word in ["Error by loss", "loss (share of packets)", "relative error", "ours", "theirs"]
        {
            assert!(svg.contains(word), "{word}");
        }
        assert!(svg.contains("prefers-color-scheme"));
        assert!(!svg.contains("nothing") && !svg.contains("NaN") && !svg.contains("inf"));
    }

    #[test]
    fn the_same_figure_is_a_picture_of_pixels() {
        assert!(png(&figure()).unwrap().starts_with(b"\x89PNG"));
    }
}

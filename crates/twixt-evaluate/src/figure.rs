//! What is drawn, without saying how.

use crate::summary::Summary;

/// A plot.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Its file's name, without extension.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// To the right.
    pub x: Axis,
    /// Upwards.
    pub y: Axis,
    /// What is drawn, in the order of the legend.
    pub series: Vec<Curve>,
}

/// An axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axis {
    /// With its unit.
    pub label: &'static str,
    /// By powers of ten.
    pub logarithmic: bool,
}

impl Axis {
    /// In equal steps.
    #[must_use]
    pub const fn linear(label: &'static str) -> Self {
        Self { label, logarithmic: false }
    }

    /// By powers of ten.
    #[must_use]
    pub const fn logarithmic(label: &'static str) -> Self {
        Self { label, logarithmic: true }
    }
}

/// Points of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// In the legend.
    pub label: String,
    /// How it is drawn.
    pub mark: Mark,
    /// (x, y, half of the spread over trials, or 0).
    pub points: Vec<(f64, f64, f64)>,
}

/// How a series is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A line through all points, with a band of the spread.
    Line,
    /// Points alone.
    Points,
    /// Points that a paper gives, set apart from what we measured.
    Published,
}

impl Curve {
    /// A curve of the trials.
    #[must_use]
    pub fn of_trials(summary: &Summary, name: &str, label: impl Into<String>) -> Self {
        let points =
            summary.curve(name).iter().map(|point| (point.x, point.y.mean, point.y.spread));
        Self { label: label.into(), mark: Mark::Line, points: points.collect() }
    }

    /// A curve of the first trial alone: a distribution, whose x differ from trial to trial.
    #[must_use]
    pub fn first_trial(summary: &Summary, name: &str, label: impl Into<String>) -> Self {
        let points = summary.first_curve(name).iter().map(|&(x, y)| (x, y, 0.0)).collect();
        Self { label: label.into(), mark: Mark::Line, points }
    }

    /// Points that a paper gives.
    #[must_use]
    pub fn published(label: impl Into<String>, points: &[(f64, f64)]) -> Self {
        let points = points.iter().map(|&(x, y)| (x, y, 0.0)).collect();
        Self { label: label.into(), mark: Mark::Published, points }
    }
}

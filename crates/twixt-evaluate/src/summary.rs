//! The trials of one experiment, brought together.

use std::collections::BTreeMap;

use crate::experiment::Trial;

/// Means over trials, and how much these differ.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// How many trials.
    pub trials: usize,
    values: BTreeMap<String, Value>,
    curves: BTreeMap<String, Vec<CurvePoint>>,
    first_curves: BTreeMap<String, Vec<(f64, f64)>>,
}

/// One number over several trials.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Value {
    /// Their mean.
    pub mean: f64,
    /// Their deviation; 0 for a single one.
    pub spread: f64,
    /// In how many trials it could be measured.
    pub trials: usize,
}

/// One point of a curve over several trials.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CurvePoint {
    /// Where.
    pub x: f64,
    /// What was measured there.
    pub y: Value,
}

impl Summary {
    /// Of all trials of one experiment.
    #[must_use]
    pub fn of(trials: &[Trial]) -> Self {
        let mut values: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        let mut curves: BTreeMap<String, BTreeMap<Ordered, Vec<f64>>> = BTreeMap::new();
        for trial in trials {
            for (name, &value) in &trial.values {
                values.entry(name.clone()).or_default().push(value);
            }
            for (name, points) in &trial.curves {
                let curve = curves.entry(name.clone()).or_default();
                for &(x, y) in points {
                    curve.entry(Ordered(x)).or_default().push(y);
                }
            }
        }
        let point = |(Ordered(x), ys): (Ordered, Vec<f64>)| CurvePoint { x, y: Value::of(&ys) };
        Self {
            trials: trials.len(),
            values: values.into_iter().map(|(name, all)| (name, Value::of(&all))).collect(),
            curves: curves
                .into_iter()
                .map(|(name, points)| (name, points.into_iter().map(point).collect()))
                .collect(),
            first_curves: trials.first().map(|trial| trial.curves.clone()).unwrap_or_default(),
        }
    }

    /// The number of that name; of a name such as `a / b`, how many times `a` is `b` in the mean
    /// (the ratios of single trials have no mean where a denominator may come near zero).
    #[must_use]
    pub fn value(&self, name: &str) -> Option<Value> {
        match name.split_once(" / ") {
            Some((over, under)) => Some(self.value(over)?.over(self.value(under)?)),
            None => self.values.get(name).copied(),
        }
    }

    /// All numbers.
    pub fn values(&self) -> impl Iterator<Item = (&str, Value)> {
        self.values.iter().map(|(name, value)| (name.as_str(), *value))
    }

    /// The curve of that name; empty if there is none.
    #[must_use]
    pub fn curve(&self, name: &str) -> &[CurvePoint] {
        self.curves.get(name).map_or(&[], Vec::as_slice)
    }

    /// The curve of that name in the first trial alone: distributions and scatters have other x
    /// in every trial, and nothing to average. Empty if there is none.
    #[must_use]
    pub fn first_curve(&self, name: &str) -> &[(f64, f64)] {
        self.first_curves.get(name).map_or(&[], Vec::as_slice)
    }
}

impl Value {
    /// How far the mean may be off by chance: the deviation of the mean of so many trials.
    #[must_use]
    pub fn standard_error(self) -> f64 {
        self.spread / (self.trials.max(1) as f64).sqrt()
    }

    fn of(all: &[f64]) -> Self {
        let count = all.len() as f64;
        let mean = all.iter().sum::<f64>() / count;
        let squares: f64 = all.iter().map(|value| (value - mean).powi(2)).sum();
        let spread = if all.len() > 1 { (squares / (count - 1.0)).sqrt() } else { 0.0 };
        Self { mean, spread, trials: all.len() }
    }

    /// The ratio of two means. Its spread is that of the ratio of single trials to first order,
    /// as if the two were independent.
    fn over(self, under: Self) -> Self {
        let mean = self.mean / under.mean;
        let relative = (self.spread / self.mean).hypot(under.spread / under.mean);
        let spread = if relative.is_finite() { (mean * relative).abs() } else { 0.0 };
        Self { mean, spread, trials: self.trials.min(under.trials) }
    }
}

/// Floats by their total order; trials leave out what is not a number.
#[derive(Clone, Copy, Debug)]
struct Ordered(f64);

impl Ord for Ordered {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Ordered {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ordered {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Ordered {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_points_are_averaged_over_trials() {
        let trials = [1.0, 3.0].map(|number| {
            let mut trial = Trial::default();
            trial.value("a", number);
            trial.value("never", f64::NAN);
            trial.point("curve", 0.1, number * 10.0);
            trial
        });
        let summary = Summary::of(&trials);
        let value = summary.value("a").unwrap();
        assert_eq!((value.mean, value.trials), (2.0, 2));
        assert!((value.spread - 2.0_f64.sqrt()).abs() < 1e-12);
        assert_eq!(summary.curve("curve")[0].y.mean, 20.0);
        assert_eq!(summary.first_curve("curve"), [(0.1, 10.0)]);
        assert!(summary.value("never").is_none() && summary.curve("none").is_empty());
        assert_eq!(summary.value("a / a").unwrap().mean, 1.0);
        assert!(summary.value("a / never").is_none());
    }
}

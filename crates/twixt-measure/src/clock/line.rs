//! Straight lines through points, and how sure they are.

/// A line through points, by least squares.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fit {
    #[cfg_attr(not(test), expect(dead_code, reason = "the hull knows a better one"))]
    pub(super) slope: f64,
    /// Standard error of the slope, from how far the points lie off the line.
    pub(super) slope_error: f64,
    /// Points less the two that a line takes.
    pub(super) freedom: usize,
}

/// Fits a line; `None` with fewer than three points, or all at one time.
pub(super) fn fit(points: &[(f64, f64)]) -> Option<Fit> {
    let freedom = points.len().checked_sub(2).filter(|&freedom| freedom > 0)?;
    let count = points.len() as f64;
    let mean = |pick: fn(&(f64, f64)) -> f64| points.iter().map(pick).sum::<f64>() / count;
    let (time, height) = (mean(|point| point.0), mean(|point| point.1));
    let spread: f64 = points.iter().map(|point| (point.0 - time).powi(2)).sum();
    if spread <= 0.0 {
        return None;
    }
    let together: f64 = points.iter().map(|point| (point.0 - time) * (point.1 - height)).sum();
    let slope = together / spread;
    let off = |point: &(f64, f64)| point.1 - height - slope * (point.0 - time);
    let squares: f64 = points.iter().map(|point| off(point).powi(2)).sum();
    Some(Fit { slope, slope_error: (squares / freedom as f64 / spread).sqrt(), freedom })
}

/// Quantile of Student's t for a two-sided 99 % interval, within 2 % from four degrees of freedom
/// on (the first terms of Fisher's expansion around the normal one).
pub(super) fn t99(freedom: usize) -> f64 {
    let freedom = freedom.max(1) as f64;
    2.576 + 4.92 / freedom + 8.84 / (freedom * freedom) + 12.15 / freedom.powi(3)
}

/// The middle of values; `None` without any.
pub(super) fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    let middle = values.len() / 2;
    (!values.is_empty()).then(|| *values.select_nth_unstable_by(middle, f64::total_cmp).1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_through_points_knows_its_error() {
        let exact = fit(&[(0.0, 1.0), (1.0, 3.0), (2.0, 5.0)]).unwrap();
        assert!((exact.slope - 2.0).abs() < 1e-12 && exact.slope_error < 1e-9);
        // Residuals -1/6, 1/3, -1/6 around slope 1/2: squares 1/6, over 1 degree and spread 2.
        let rough = fit(&[(0.0, 0.0), (1.0, 1.0), (2.0, 1.0)]).unwrap();
        assert!((rough.slope - 0.5).abs() < 1e-12);
        assert!((rough.slope_error - (1.0_f64 / 12.0).sqrt()).abs() < 1e-12);
        assert!(fit(&[(0.0, 1.0), (1.0, 2.0)]).is_none());
        assert!(fit(&[(1.0, 1.0), (1.0, 2.0), (1.0, 3.0)]).is_none());
    }

    #[test]
    fn quantiles_of_student_are_near_the_tables() {
        for (freedom, table) in [(4, 4.604), (10, 3.169), (30, 2.750), (1000, 2.581)] {
            assert!((t99(freedom) / table - 1.0).abs() < 0.02, "{freedom}");
        }
    }

    #[test]
    fn the_middle_is_one_of_the_values() {
        assert_eq!(median([3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median([]), None);
    }
}

//! Quantiles that intervals are made of.

/// Quantile of the normal distribution for a two-sided 95 % interval.
pub(crate) const Z95: f64 = 1.959_963_984_540_054;

/// Quantile of Student's distribution for a two-sided 95 % interval, by its expansion around the
/// normal one (Abramowitz, Stegun 26.7.5): right to 1 % from three degrees of freedom on. With fewer it
/// is that of two, or of one.
pub(crate) fn student95(freedom: f64) -> f64 {
    if freedom < 3.0 {
        return if freedom < 2.0 { 12.706_204_7 } else { 4.302_652_7 };
    }
    let square = Z95 * Z95;
    let first = (square + 1.0) / 4.0;
    let second = ((5.0 * square + 16.0) * square + 3.0) / 96.0;
    let third = (((3.0 * square + 19.0) * square + 17.0) * square - 15.0) / 384.0;
    Z95 * (1.0 + (first + (second + third / freedom) / freedom) / freedom)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From tables.
    #[test]
    fn quantiles_of_student() {
        for (freedom, expected) in
            [(1.0, 12.706), (2.0, 4.303), (3.0, 3.182), (5.0, 2.571), (10.0, 2.228), (19.0, 2.093)]
        {
            assert!((student95(freedom) - expected).abs() < 0.03, "{freedom}");
        }
        assert!((student95(1e9) - Z95).abs() < 1e-6);
    }
}

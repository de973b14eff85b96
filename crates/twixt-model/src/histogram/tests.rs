use super::*;
use crate::Percentile;

/// Log-spaced values from 1 µs on, each with a weight.
fn filled(buckets_max: usize, values: usize, ratio: f64, weight: f64) -> (Histogram, Vec<i64>) {
    let mut histogram = Histogram::new(buckets_max);
    let values: Vec<i64> = (0..values).map(|n| (1e3 * ratio.powi(n as i32)) as i64).collect();
    for &value in &values {
        histogram.add(value, weight);
    }
    (histogram, values)
}

#[track_caller]
fn check_percentiles(histogram: &Histogram, sorted: &[i64], fraction: f64) {
    for share in [0.01, 0.1, 0.5, 0.9, 0.99, 0.999] {
        let exact = sorted[((share * sorted.len() as f64) as usize).min(sorted.len() - 1)] as f64;
        let found = histogram.percentile(share).unwrap() as f64;
        assert!((found / exact - 1.0).abs() < fraction, "{share}: {found} for {exact}");
    }
}

/// One bucket is 1.09 % wide; the 13 bits that count add 0.02 %.
#[test]
fn percentiles_are_within_one_per_cent() {
    let (histogram, values) = filled(Histogram::BUCKETS_DEFAULT, 20_000, 1.0008, 1.0);
    assert_eq!(histogram.scale(), Histogram::SCALE_MAX);
    check_percentiles(&histogram, &values, 0.0112);
}

#[test]
fn too_wide_a_range_costs_resolution_and_nothing_else() {
    let (histogram, values) = filled(128, 20_000, 1.0008, 1.0);
    assert!(histogram.scale() < Histogram::SCALE_MAX);
    check_percentiles(&histogram, &values, 2_f64.powf(1.0 / 4.0) - 1.0);
    let exact = values.iter().sum::<i64>() as f64 / values.len() as f64;
    let times = histogram.times().unwrap();
    assert!((times.mean_ns / exact - 1.0).abs() < 1e-9);
    let mut widest = Histogram::new(0);
    for value in [i64::MIN, -1, 0, 1, i64::MAX] {
        widest.add(value, 1.0);
    }
    assert_eq!(widest.times().unwrap().max_ns, i64::MAX);
    assert_eq!(widest.count(), 5);
}

#[test]
fn merged_histograms_equal_that_of_all_values() {
    let (mut one, _) = filled(Histogram::BUCKETS_DEFAULT, 500, 1.01, 2.0);
    let (two, _) = filled(Histogram::BUCKETS_DEFAULT, 900, 1.02, 2.0);
    let (coarse, _) = filled(64, 900, 1.02, 2.0);
    let mut all = one.clone();
    for n in 0..900 {
        all.add((1e3 * 1.02_f64.powi(n)) as i64, 2.0);
    }
    one.merge(&two);
    assert_eq!(one.buckets().collect::<Vec<_>>(), all.buckets().collect::<Vec<_>>());
    assert_eq!((one.count(), one.weight()), (1400, 2800.0));
    one.merge(&coarse);
    assert_eq!(one.scale(), coarse.scale());
    assert_eq!(one.weight(), 4600.0);
}

#[test]
fn weights_carry_their_doubt_and_certainty_has_none() {
    let (certain, _) = filled(Histogram::BUCKETS_DEFAULT, 1000, 1.01, 1.0);
    let times = certain.times().unwrap();
    assert_eq!(times.half_width_ns, Some(0.0));
    assert!(times.percentiles.iter().all(|p| p.low_ns == p.time_ns && p.high_ns == p.time_ns));
    let (thin, _) = filled(Histogram::BUCKETS_DEFAULT, 1000, 1.01, 16.0);
    let times = thin.times().unwrap();
    assert!(times.half_width_ns > Some(0.0));
    assert!(times.percentiles.iter().all(|p| p.low_ns < p.time_ns && p.time_ns <= p.high_ns));
    // Every value has the weight 16: the share p has variance p (1-p) 16*15*1000 / (16*1000)^2,
    // and the values of neighbouring ranks differ by 1 %.
    let ranks = 1.96 * (0.25 * 240.0 / 256_000.0_f64).sqrt() * 1000.0;
    let Percentile { time_ns, high_ns, .. } = times.percentiles[0];
    assert!((high_ns as f64 / time_ns as f64 / 1.01_f64.powf(ranks) - 1.0).abs() < 0.02);
}

#[test]
fn the_distribution_function_climbs_to_one() {
    let (histogram, _) = filled(Histogram::BUCKETS_DEFAULT, 1000, 1.01, 3.0);
    let cdf = histogram.times().unwrap().cdf;
    assert!(cdf.len() <= 101 && cdf.is_sorted_by(|a, b| a.0 < b.0 && a.1 < b.1));
    assert!((cdf.last().unwrap().1 - 1.0).abs() < 1e-12);
    assert!((histogram.share_up_to(cdf[50].0 + 1) - cdf[50].1).abs() < 0.02);
    assert!(Histogram::new(100).times().is_none());
}

#[test]
fn parts_go_together_again_unless_they_are_nonsense() {
    let (histogram, _) = filled(200, 1000, 1.02, 3.0);
    let state = histogram.state();
    assert_eq!(Histogram::from_state(state.clone()), Ok(histogram));
    let nan = Bucket { weight: f64::NAN, variance: 0.0 };
    for wrong in [
        HistogramState { scale: 7, ..state.clone() },
        HistogramState { first: -1, ..state.clone() },
        HistogramState { min: 2, max: 1, ..state.clone() },
        HistogramState { scale: 0, first: 900, ..state.clone() },
        HistogramState { first: i32::MAX, ..state.clone() },
        HistogramState { buckets_max: 64, buckets: vec![Bucket::default(); 65], ..state.clone() },
        HistogramState { nothing: nan, ..state.clone() },
        HistogramState { sums: [nan; 3], ..state },
    ] {
        assert!(Histogram::from_state(wrong).is_err());
    }
}

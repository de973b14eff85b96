//! Virtual repetitions: their closed form, their floor, and what de-noising does to them.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use rand_distr::{Distribution, StandardNormal};

use super::*;

/// The sum of squared differences of one pairing, over all pairings: value and number.
fn pairings(each: &[f64]) -> (f64, u64) {
    let Some((first, rest)) = each.split_first() else { return (0.0, 1) };
    let (mut sum, mut number) = (0.0, 0);
    for partner in 0..rest.len() {
        let mut left = rest.to_vec();
        let square = (first - left.remove(partner)).powi(2);
        let (below, ways) = pairings(&left);
        sum += below + square * ways as f64;
        number += ways;
    }
    (sum, number)
}

#[track_caller]
fn check_closed_form(each: &[f64], expected: &str) {
    let (sum, number) = pairings(each);
    assert_eq!(format!("{:.4}", sum / number as f64), expected);
    assert_eq!(format!("{:.4}", all_pairings(each)), expected);
}

#[test]
fn all_pairings_have_a_closed_form() {
    check_closed_form(&[10.0, 14.0, 9.0, 19.0], "82.6667");
    check_closed_form(&[1.0, 2.0], "1.0000");
    let six = [3.0, -1.0, 4.0, 1.0, -5.0, 9.0];
    check_closed_form(&six, &format!("{:.4}", all_pairings(&six)));
    // (m - 1)!!, since the order of pairs does not matter.
    assert_eq!(pairings(&[0.0; 8]).1, 7 * 5 * 3);
}

/// With 20 counters the sum of squares is off by a third, however often it is repeated: in theory
/// by the square root of 2/19, 0.324.
#[test]
fn no_repetition_gets_below_the_error_of_twenty_counters() {
    let mut rng = ChaCha8Rng::seed_from_u64(28);
    let runs = 4000;
    let draw = |rng: &mut ChaCha8Rng| {
        let each: [f64; 20] = std::array::from_fn(|_| StandardNormal.sample(rng));
        all_pairings(&each) / 20.0
    };
    let squares: f64 = (0..runs).map(|_| (draw(&mut rng) - 1.0).powi(2)).sum();
    let deviation = (squares / f64::from(runs)).sqrt();
    // Four standard errors of a deviation from so many runs of a skewed distribution.
    assert!((deviation - 0.324).abs() < 0.02, "{deviation}");
}

/// Theorem 3 of the paper: ln(n - 1) = psi(tau - xi + 1) - psi(xi + 1), and psi(x + 1) is close to
/// ln(x + 1/2). It depends on what others put into a counter only, so it takes the same from all.
#[test]
fn the_papers_denoising_takes_the_same_from_every_counter() {
    let (counters, tau) = (1000.0_f64, 5e6_f64);
    // tau - xi + 1/2 = (n - 1)(xi + 1/2)
    let xi = (tau + 1.0) / counters - 0.5;
    let left = (counters - 1.0).ln();
    assert!((left - ((tau - xi + 0.5).ln() - (xi + 0.5).ln())).abs() < 1e-12);
    assert_eq!(format!("{xi:.2}"), "4999.50");
    let each = [5010.0, 5200.0, 4990.0, 5003.0];
    assert!((all_pairings(&each) - all_pairings(&each.map(|value| value - xi))).abs() < 1e-6);
}

#[test]
fn the_variance_of_most_values_ignores_the_rest() {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let mut values: Vec<f64> = (0..2000)
        .map(|_| {
            let value: f64 = StandardNormal.sample(&mut rng);
            3.0 * value
        })
        .collect();
    values.extend([1e9; 100]);
    let variance = robust_variance(values);
    // 5 % of outliers shift the quartiles a little; four standard errors besides.
    assert!((variance / 9.0 - 1.0).abs() < 0.3, "{variance}");
    assert_eq!(robust_variance(vec![]), 0.0);
}

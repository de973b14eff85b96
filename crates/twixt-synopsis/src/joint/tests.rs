mod dense;
mod simulator;

use proptest::prelude::*;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use rand_distr::{Distribution, StandardNormal};
use simulator::{Row, Score, Traffic};

use super::*;

/// Four rows that count every packet.
fn rows(cells: usize, spread: usize) -> [Row; 4] {
    [Row { cells, spread, percent: 100 }; 4]
}

/// A class with fewer flows says little: a dozen elephants may be lucky.
const FEW: usize = 100;

/// Scores per class of sizes, over a few seeds.
fn scores(rows: &[Row], solve: impl Fn(&Traffic) -> Vec<Option<Solution>>) -> [Score; 4] {
    const SEEDS: u64 = 3;
    let mut means = [Score::default(); 4];
    for seed in 0..SEEDS {
        // Twice as many as cells in a row of 10 000, eight times as many as in one of 2500; half of
        // that is enough where each flow has five cells per row.
        let flows = if rows[0].spread == 1 { 20_000 } else { 10_000 };
        let traffic = Traffic::new(flows, rows, seed);
        for (mean, score) in means.iter_mut().zip(traffic.scores(&solve(&traffic))) {
            mean.add(score);
        }
    }
    println!("{means:.5?}");
    means
}

#[track_caller]
fn check_errors(scores: [Score; 4], limits: [f64; 4]) {
    for (score, limit) in scores.iter().zip(limits) {
        assert!(score.median_error <= limit, "{scores:.5?} against {limits:?}");
    }
}

/// Nominally 95 %. More is not a fault if errors are too small to matter; a flow with few cells has Student's quantiles.
#[track_caller]
fn check_coverage(scores: [Score; 4]) {
    for score in scores.iter().filter(|score| score.flows > FEW) {
        assert!(score.coverage >= 0.9, "{scores:.4?}");
        assert!(score.coverage <= 0.995 || score.median_error < 1e-3, "{scores:.4?}");
    }
}

/// Means of all flows by the joint solution, and by the smallest cell of each.
#[track_caller]
fn check_better_than_smallest_cell(rows: &[Row], limits: [f64; 4]) {
    let joint = scores(rows, Traffic::solve);
    check_errors(joint, limits);
    check_coverage(joint);
    let alone = scores(rows, |traffic| {
        (0..traffic.sizes.len()).map(|flow| traffic.smallest_cell(flow)).collect()
    });
    for (joint, alone) in joint.iter().zip(alone).filter(|(joint, _)| joint.flows > 2 * FEW) {
        assert!(joint.rms_error_ns <= alone.rms_error_ns, "{joint:.5?} against {alone:.5?}");
    }
}

#[test]
fn more_equations_than_flows_are_exact() {
    check_better_than_smallest_cell(&rows(10_000, 1), [1e-5; 4]);
}

#[test]
fn fewer_equations_than_flows_tell_of_large_ones() {
    check_better_than_smallest_cell(&rows(2500, 1), [0.65, 0.25, 0.03, 0.004]);
}

#[test]
fn rows_that_spread_flows() {
    check_better_than_smallest_cell(&rows(5000, 5), [0.65, 0.25, 0.04, 0.006]);
}

#[test]
fn one_row_alone() {
    check_better_than_smallest_cell(&rows(10_000, 1)[..1], [0.55, 0.3, 0.05, 0.01]);
}

/// Rows that count fewer and fewer packets, and spread them.
fn sampling_rows() -> [Row; 4] {
    [100, 50, 10, 1].map(|percent| Row { cells: 2500, spread: 5, percent })
}

#[test]
fn rows_that_sample() {
    check_better_than_smallest_cell(&sampling_rows(), [0.8, 0.55, 0.12, 0.02]);
}

/// Solves with sizes times shares, whatever cells counted.
fn solve_unconditionally(traffic: &Traffic) -> Vec<Option<Solution>> {
    let system = traffic.system();
    let cells = system.cells.len();
    let mut packets = Vec::new();
    let mut uncertainty = vec![0.0; cells];
    for (flow, size) in traffic.sizes.iter().enumerate() {
        for member in &system.members[system.members_of(flow)] {
            packets.push(size * member.share);
            uncertainty[member.cell as usize] += size * member.share * (1.0 - member.share);
        }
    }
    let none = vec![0.0; cells];
    let chance = vec![0.0; packets.len()];
    let shares = Shares {
        packets,
        stray: none.clone(),
        uncertainty,
        loose: none.clone(),
        chance,
        chance_of_cells: none,
    };
    let variances = Variances::fit(&system, &shares);
    system.solve_with(&shares, variances, &Options::default())
}

#[test]
fn counts_make_shares_better() {
    for rows in [rows(5000, 5), sampling_rows()] {
        let with = scores(&rows, Traffic::solve);
        let without = scores(&rows, solve_unconditionally);
        for class in 0..3 {
            let [with, without] = [with, without].map(|scores| scores[class].median_error);
            // Of flows of a few packets, sampled cells tell hardly anything: there it is all the same.
            assert!(with < 1.001 * without, "{with} {without}");
        }
    }
}

/// Sizes off by a tenth of themselves, with that error stated.
fn guess(flow: usize, packets: f64) -> Size {
    let noise: f64 = StandardNormal.sample(&mut ChaCha8Rng::seed_from_u64(flow as u64));
    let error = 0.1 * packets;
    Size { packets: (packets + error * noise).max(1.0), error, doubt: error }
}

#[test]
fn guessed_sizes() {
    for rows in [rows(2500, 1), rows(10_000, 1), rows(5000, 5)] {
        let scores = scores(&rows, |traffic| {
            let system = traffic.system_with(&|flow, packets| Some(guess(flow, packets)));
            system.solve(&Options::default())
        });
        // Counts make sizes better than their stated error.
        assert!(scores.iter().all(|score| score.coverage >= 0.9), "{scores:.4?}");
        check_errors(scores, [0.7, 0.5, 0.1, 0.03]);
    }
}

#[test]
fn flows_that_nobody_listed() {
    for rows in [rows(10_000, 1), rows(5000, 5)] {
        let scores = scores(&rows, |traffic| {
            let listed = |flow: usize| !flow.is_multiple_of(3);
            let known = |flow, packets| listed(flow).then_some(Size::known(packets));
            let system = traffic.system_with(&known);
            let mut solutions = system.solve(&Options::default()).into_iter();
            let flows = (0..traffic.sizes.len()).map(listed);
            flows.map(|listed| if listed { solutions.next().flatten() } else { None }).collect()
        });
        check_coverage(scores);
        check_errors(scores, [0.7, 0.5, 0.15, 0.05]);
    }
}

#[test]
fn cells_that_lost_packets_are_left_out() {
    for rows in [rows(10_000, 1), rows(5000, 5)] {
        let scores = scores(&rows, |traffic| {
            let mut system = System::new(traffic.cells.clone());
            for cell in system.cells.iter_mut().step_by(3) {
                *cell = None;
            }
            for (flow, &packets) in traffic.sizes.iter().enumerate() {
                system.add_flow(Size::known(packets), traffic.places(flow));
            }
            let solutions = system.solve(&Options::default());
            let unseen = solutions.iter().filter(|solution| solution.is_none()).count();
            assert_eq!(unseen > 0, rows[0].spread == 1, "{unseen} flows have no cell left");
            solutions
        });
        check_coverage(scores);
        check_errors(scores, [0.7, 0.4, 0.1, 0.05]);
    }
}

#[test]
fn equal_systems_have_equal_solutions() {
    let traffic = Traffic::new(500, &rows(100, 2), 1);
    assert_eq!(traffic.solve(), traffic.solve());
    let other = traffic.system().solve(&Options { seed: 7, ..Options::default() });
    let means = |solutions: &[Option<Solution>]| -> Vec<f64> {
        solutions.iter().flatten().map(|solution| solution.mean_offset_ns).collect()
    };
    assert_eq!(means(&traffic.solve()), means(&other));
    assert_ne!(traffic.solve(), other);
}

fn cell(row: u32, packets: f64, delay_sum_ns: f64) -> Option<Cell> {
    Some(Cell { row, packets, delay_sum_ns })
}

#[test]
fn flows_alone_in_their_cells_are_exact() {
    let mut system = System::new(vec![cell(0, 4.0, 400.0), cell(0, 2.0, -60.0), None]);
    system.add_flow(Size::known(4.0), [(0, 1.0)]);
    system.add_flow(Size::known(2.0), [(1, 1.0)]);
    system.add_flow(Size::known(2.0), [(2, 1.0)]);
    let solutions = system.solve(&Options::default());
    for (solution, mean_ns) in solutions.iter().zip([Some(100.0), Some(-30.0), None]) {
        assert_eq!(solution.map(|solution| solution.mean_offset_ns.round()), mean_ns);
        assert!(solution.is_none_or(|solution| solution.half_width_ns < 0.01), "{solution:?}");
    }
}

#[test]
fn two_flows_in_one_cell_are_uncertain() {
    let mut system = System::new(vec![cell(0, 8.0, 800.0)]);
    for _ in 0..2 {
        system.add_flow(Size::known(4.0), [(0, 1.0)]);
    }
    for solution in system.solve(&Options::default()).into_iter().flatten() {
        assert!((solution.mean_offset_ns - 100.0).abs() < 0.01, "{solution:?}");
        assert!(solution.half_width_ns > 50.0, "{solution:?}");
    }
}

#[test]
fn nothing_gives_nothing() {
    assert_eq!(System::new(vec![]).solve(&Options::default()), vec![]);
    let mut system = System::new(vec![cell(0, 3.0, 0.0)]);
    system.add_flow(Size::known(3.0), [(0, 1.0), (9, 1.0)]);
    let still = Solution {
        mean_offset_ns: 0.0,
        half_width_ns: 0.0,
        unknown: 0.0,
        sharpened: false,
        misfit: 1.0,
        within: 0.0,
    };
    assert_eq!(system.solve(&Options::default()), vec![Some(still)]);
}

/// Ordinary numbers, and hostile ones.
fn number() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => 0.0..100.0,
        2 => -1e6..1e6,
        1 => prop::sample::select(vec![0.0, 1.0, u64::MAX as f64, i64::MIN as f64, 1e-300, 1e-9]),
        1 => any::<f64>(),
    ]
}

proptest! {
    #![proptest_config(twixt_testing::cases(1000))]

    #[test]
    fn hostile_numbers_stay_numbers(
        cells in prop::collection::vec((0_u32..3, number(), number()), 0..12),
        flows in prop::collection::vec(
            (number(), number(), prop::collection::vec((0_usize..14, number()), 0..6)), 0..12,
        ),
    ) {
        let cells = cells.into_iter().map(|(row, packets, sum)| cell(row, packets, sum)).collect();
        let mut system = System::new(cells);
        for (packets, error, cells) in &flows {
            let shares = cells.iter().map(|&(cell, share)| (cell, share / 50.0));
            system.add_flow(Size { packets: *packets, error: *error, doubt: *error }, shares);
        }
        let solutions = system.solve(&Options::default());
        prop_assert_eq!(solutions.len(), flows.len());
        for solution in solutions.into_iter().flatten() {
            prop_assert!(solution.mean_offset_ns.is_finite(), "{:?}", solution);
            prop_assert!(solution.half_width_ns.is_finite(), "{:?}", solution);
        }
    }
}

#[test]
fn sizes_that_are_slightly_wrong_do_little_harm() {
    let scores = scores(&rows(10_000, 1), |traffic| {
        let wrong = |flow: usize| if flow.is_multiple_of(20) { 1.0 } else { 0.0 };
        let seem = |flow, packets| Some(Size::known(packets + wrong(flow)));
        traffic.system_with(&seem).solve(&Options::default())
    });
    check_errors(scores, [0.02, 0.01, 0.005, 0.001]);
}

//! Which cells are chosen, and what comes of them.

use twixt_model::{FlowHash, GroupId};

use super::*;
use crate::lds::LdsConfig;
use crate::synopsis::{Pair, Synopsis};

const FLOW: FlowHash = FlowHash(42);
const PLACE: Place = Place { flow: FLOW, group: GroupId(0) };

/// Both ends of a sketch in which the flow's cells hold (row, offset, packets, total delay).
fn ends(config: &LdsConfig, cells: &[(usize, usize, u64, i64)]) -> (Lds, Lds) {
    let (mut upstream, mut downstream) = (Lds::new(config), Lds::new(config));
    for &(row, offset, packets, delay_ns) in cells {
        let index = config.cells_of(FLOW, row).nth(offset).unwrap();
        let times = delay_ns as u64;
        upstream.change_sums(index, |sums| sums.packets = packets);
        downstream.change_sums(index, |sums| (sums.packets, sums.times) = (packets, times));
    }
    (upstream, downstream)
}

#[track_caller]
fn check(config: &LdsConfig, cells: &[(usize, usize, u64, i64)], expected: Option<(u64, i128)>) {
    let (upstream, downstream) = ends(config, cells);
    let table = Table::new(Pair { upstream: &upstream, downstream: &downstream }, 0);
    let sum = emptiest(&table, PLACE).map(|sum| (sum.packets, sum.delay_sum_ns));
    assert_eq!(sum, expected);
}

fn config(virtual_cells: u32, sampling: &[f64]) -> LdsConfig {
    LdsConfig::new(16, virtual_cells, sampling).unwrap()
}

#[test]
fn without_tolerance_the_emptiest_cell_is_chosen() {
    let config = config(1, &[1.0; 3]);
    check(&config, &[(0, 0, 9, 90), (1, 0, 7, 70), (2, 0, 8, 80)], Some((7, 70)));
    // A list, not a set: two equal cells count twice.
    check(&config, &[(0, 0, 7, 70), (1, 0, 7, 70), (2, 0, 8, 80)], Some((14, 140)));
}

#[test]
fn with_tolerance_those_almost_as_empty_are_added() {
    let cells = [(0, 0, 10, 1), (0, 1, 11, 2), (0, 4, 12, 4), (1, 2, 30, 8)];
    let at = |alpha| config(5, &[1.0; 2]).with_alpha(alpha).unwrap();
    check(&at(0.0), &cells, Some((10, 1)));
    check(&at(0.1), &cells, Some((21, 3)));
    check(&at(2.0), &cells, Some((63, 15)));
}

#[test]
fn empty_cells_are_no_choice() {
    check(&config(5, &[1.0; 2]), &[(1, 3, 1000, -5)], Some((1000, -5)));
    check(&config(5, &[1.0; 2]), &[], None);
}

#[test]
fn cells_that_lost_a_packet_are_no_choice() {
    let config = config(1, &[1.0; 2]);
    let (upstream, mut downstream) = ends(&config, &[(0, 0, 5, 50), (1, 0, 9, 90)]);
    let index = config.cells_of(FLOW, 0).next().unwrap();
    downstream.change_sums(index, |sums| sums.digests = 1); // as many, but others
    let table = Table::new(Pair { upstream: &upstream, downstream: &downstream }, 0);
    assert_eq!(emptiest(&table, PLACE), Some(Sum { packets: 9, delay_sum_ns: 90 }));
}

/// A flow of 1000 packets: 8 of them were counted in a row that samples one in a hundred. Scaled
/// up these are 800, but they may well be 1500; the row that counts all is emptier than that.
/// Sums are added as they are.
#[test]
fn a_sampled_row_is_chosen_only_if_it_is_surely_emptier() {
    let config = config(1, &[0.01, 1.0]);
    check(&config, &[(0, 0, 8, 80), (1, 0, 1000, 9000)], Some((1000, 9000)));
    check(&config, &[(0, 0, 8, 80), (1, 0, 1501, 9000)], Some((8, 80)));
}

//! When loss is known, and how much.

use twixt_model::{ClassId, FlowHash, FlowKey, GroupId};

use super::*;
use crate::lds::{Lds, LdsConfig};
use crate::synopsis::{Pair, Synopsis};

const FLOW: FlowHash = FlowHash(42);

fn flow(packets: Option<u64>) -> KnownFlow {
    KnownFlow {
        hash: FLOW,
        key: FlowKey::default(),
        group: GroupId::default(),
        packets,
        class: ClassId(1),
    }
}

/// Rows are (packets upstream, packets downstream) in the flow's one cell there.
#[track_caller]
fn check(sampling: &[f64], rows: &[(u64, u64)], size: Option<u64>, expected: Result<u64, &str>) {
    check_with(&LdsConfig::new(16, 1, sampling).unwrap(), rows, size, expected);
}

#[track_caller]
fn check_with(
    config: &LdsConfig,
    rows: &[(u64, u64)],
    size: Option<u64>,
    expected: Result<u64, &str>,
) {
    let (mut upstream, mut downstream) = (Lds::new(config), Lds::new(config));
    for (row, &(sent, received)) in rows.iter().enumerate() {
        let index = config.cells_of(FLOW, row).next().unwrap();
        let digests = u64::from(sent != received);
        upstream.change_sums(index, |sums| sums.packets = sent);
        downstream.change_sums(index, |sums| (sums.packets, sums.digests) = (received, digests));
    }
    let table = Table::new(Pair { upstream: &upstream, downstream: &downstream }, 0);
    let found = lost(&table, &flow(size), size, 0.5);
    match (&found, expected) {
        (Ok(lost), Ok(expected)) => assert_eq!(*lost, expected),
        (Err(reason), Err(part)) => assert!(reason.contains(part), "{reason}"),
        _ => panic!("{found:?} is not {expected:?}"),
    }
}

#[test]
fn the_row_that_lost_least_counts() {
    check(&[1.0; 3], &[(1000, 950), (1100, 1090), (1010, 990)], Some(1000), Ok(10));
}

#[test]
fn a_row_without_loss_proves_that_there_was_none() {
    check(&[1.0; 2], &[(1000, 950), (5000, 5000)], None, Ok(0));
}

#[test]
fn loss_among_many_other_packets_is_not_pinned_on_the_flow() {
    check(&[1.0; 2], &[(1000, 950), (2000, 1990)], Some(100), Err("lost at most 10"));
    check(&[1.0; 2], &[(1000, 950), (2000, 1990)], None, Err("lost at most 10"));
}

#[test]
fn strays_make_loss_unknown() {
    check(&[1.0], &[(100, 101)], Some(100), Err("more packets downstream"));
}

#[test]
fn sampled_rows_are_scaled_and_prove_nothing_by_silence() {
    check(&[0.01, 0.1], &[(10, 9), (100, 95)], Some(1000), Ok(50));
    check(&[0.1], &[(100, 100)], Some(1000), Err("none of the sampled packets"));
    check(&[0.1, 1.0], &[(100, 95), (1000, 960)], Some(1000), Ok(40));
}

#[test]
fn no_flow_loses_more_than_it_sent() {
    check(&[1.0], &[(100, 20)], Some(60), Ok(60));
}

#[test]
fn losses_of_a_weighted_flow_are_divided_by_its_weight() {
    let config = LdsConfig::new(16, 1, &[1.0; 2]).unwrap().with_weights(&[1, 25]).unwrap();
    check_with(&config, &[(2500, 2250), (2600, 2300)], Some(100), Ok(10));
}

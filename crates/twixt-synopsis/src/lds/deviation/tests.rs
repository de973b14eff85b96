//! Deviations of flows that are alone in their cells, and of those that are not.

use twixt_model::{ClassId, FlowHash, FlowKey, GroupId};

use super::*;
use crate::lds::{Lds, LdsConfig};
use crate::synopsis::{Pair, Synopsis};

const FLOW: FlowHash = FlowHash(42);

fn flow() -> KnownFlow {
    KnownFlow {
        hash: FLOW,
        key: FlowKey::default(),
        group: GroupId::default(),
        packets: None,
        class: ClassId(0),
    }
}

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

#[test]
fn the_deviation_comes_from_rows_where_the_flow_is_alone() {
    let config = LdsConfig::new(16, 3, &[1.0; 2]).unwrap();
    // Cells of single packets with delays 2, 4, 6 have the variance 4; the other row is shared.
    let cells = [(0, 0, 1, 2), (0, 1, 1, 4), (0, 2, 1, 6), (1, 0, 50, 900), (1, 1, 9, 0)];
    let (upstream, downstream) = ends(&config, &cells);
    let table = Table::new(Pair { upstream: &upstream, downstream: &downstream }, 0);
    assert!((alone(&table, &flow(), 3).unwrap() - 2.0).abs() < 1e-12);
    assert_eq!(alone(&table, &flow(), 4), None);
}

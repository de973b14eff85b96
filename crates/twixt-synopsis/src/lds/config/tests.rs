//! Ranges, and where packets and flows are counted.

use std::collections::BTreeSet;

use twixt_model::mix;

use super::*;
use crate::sketch::Layout;

fn read(text: &str) -> Result<LdsConfig, String> {
    toml::from_str(text).map_err(|error| error.message().to_owned())
}

#[track_caller]
fn check_refused(text: &str, expected: &str) {
    let problem = read(text).unwrap_err();
    assert!(problem.contains(expected), "{problem}");
}

#[test]
fn settings_are_checked() {
    check_refused("rows = 0", "rows must be between 1 and 16, not 0");
    check_refused("rows = 99", "rows must be between");
    check_refused("columns = 0", "columns must be between");
    check_refused("virtual_cells = 0", "virtual_cells must be between");
    check_refused("columns = 4\nvirtual_cells = 5", "between 1 and 4 with 4 columns, not 5");
    check_refused("sampling = [0.5, 0.0]", "above 0");
    check_refused("sampling = [nan]", "above 0");
    check_refused("sampling = []", "rows must be between");
    check_refused("rows = 3\nsampling = [0.5]", "3 rows, but 1 sampling rates");
    check_refused("alpha = -0.1", "alpha must be between");
    check_refused("alpha = nan", "alpha must be between");
}

#[test]
fn what_is_left_out_has_its_default() {
    let default = LdsConfig::default();
    assert_eq!(read("").unwrap(), default);
    assert_eq!(LdsConfig::within(DEFAULT_MEMORY_BYTES).unwrap(), default);
    assert_eq!((default.rows(), default.virtual_cells, default.alpha), (4, 1, 0.0));
    assert_eq!(read("sampling = [0.01, 0.1, 1]\nalpha = 1").unwrap().rows(), 3);
    // More rows are shorter: the memory stays.
    assert_eq!(read("rows = 8").unwrap().columns, 6432);
    let text = toml::to_string(&default).unwrap();
    assert_eq!(read(&text).unwrap(), default);
}

#[test]
fn sizing_keeps_within_memory() {
    for memory_bytes in [76, 100, 5_000, 1 << 20, 1 << 30] {
        let config = LdsConfig::within(memory_bytes).unwrap();
        assert!(config.state_bytes() <= memory_bytes);
    }
    assert_eq!(LdsConfig::within(75), None);
}

/// The printed loop from first to (first + k) mod C visits none after the end of a row, and
/// k + 1 before it.
#[test]
fn a_flow_has_exactly_its_cells_also_around_the_end_of_a_row() {
    let config = LdsConfig::new(8, 5, &[1.0, 1.0]).unwrap();
    let mut wrapped = 0;
    for flow in (0..64).map(|flow| FlowHash(mix(flow))) {
        for row in 0..2 {
            let cells: Vec<usize> = config.cells_of(flow, row).collect();
            assert_eq!(cells.iter().collect::<BTreeSet<_>>().len(), 5, "{cells:?}");
            assert!(cells.iter().all(|cell| (row * 8..row * 8 + 8).contains(cell)), "{cells:?}");
            let used: BTreeSet<usize> = (0..500)
                .flat_map(|packet| config.cells_for(flow, PacketDigest(mix(packet))))
                .filter(|cell| cell / 8 == row)
                .collect();
            assert_eq!(used, cells.iter().copied().collect(), "packets are where they are sought");
            wrapped += usize::from(cells.windows(2).any(|pair| pair[1] < pair[0]));
        }
    }
    assert!(wrapped > 0, "no flow of this test wraps around");
}

/// Of packets that share a cell in one row, a fifth do in another.
#[test]
fn rows_spread_a_flows_packets_independently() {
    let config = LdsConfig::new(1000, 5, &[1.0, 1.0]).unwrap();
    let flow = FlowHash(42);
    let first: Vec<usize> = (0..2).map(|row| config.cells_of(flow, row).next().unwrap()).collect();
    let mut joint = [[0_u32; 5]; 5];
    for packet in 0..25_000 {
        let cells: Vec<usize> = config.cells_for(flow, PacketDigest(mix(packet))).collect();
        joint[cells[0] - first[0]][cells[1] - first[1]] += 1;
    }
    // 1000 each; five standard deviations.
    assert!(joint.iter().flatten().all(|&count| count.abs_diff(1000) < 158), "{joint:?}");
}

/// Of flows that share a cell in one row, one in a hundred does in another.
#[test]
fn rows_spread_flows_independently() {
    let config = LdsConfig::new(100, 1, &[1.0, 1.0]).unwrap();
    let cells = |flow: u64| -> Vec<usize> {
        (0..2).flat_map(|row| config.cells_of(FlowHash(mix(flow)), row)).collect()
    };
    let mut second = vec![0_u32; 100];
    let mut in_first = 0_u32;
    for flow in (0..1_000_000).map(cells).filter(|cells| cells[0] == 7) {
        in_first += 1;
        second[flow[1] - 100] += 1;
    }
    assert!(in_first.abs_diff(10_000) < 500, "{in_first}");
    assert!(second.iter().all(|&count| count.abs_diff(100) < 50), "{second:?}");
}

#[test]
fn rows_sample_their_share_independently_and_use_all_cells() {
    let config = LdsConfig::new(50, 5, &[0.01, 0.1, 0.5, 1.0]).unwrap();
    let flow = FlowHash(7);
    let (mut counts, mut both, mut used) = ([0_u32; 4], 0_u32, BTreeSet::new());
    for packet in 0..100_000 {
        let cells: Vec<usize> = config.cells_for(flow, PacketDigest(mix(packet))).collect();
        let rows: Vec<usize> = cells.iter().map(|cell| cell / 50).collect();
        rows.iter().for_each(|&row| counts[row] += 1);
        both += u32::from(rows.contains(&1) && rows.contains(&2));
        used.extend(cells);
    }
    // Five standard deviations of binomial counts.
    for (count, (expected, slack)) in
        counts.into_iter().zip([(1_000, 158), (10_000, 475), (50_000, 791), (100_000, 1)])
    {
        assert!(count.abs_diff(expected) < slack, "{counts:?}");
    }
    assert!(both.abs_diff(5_000) < 345, "{both} packets in both rows");
    assert_eq!(used.len(), 20);
}

#[test]
fn a_sampled_count_stands_for_its_upper_bound() {
    let config = LdsConfig::new(50, 5, &[0.01, 1.0]).unwrap();
    assert_eq!(config.at_most(1, 8), 8.0);
    assert!((config.at_most(0, 8) - 1500.0).abs() < 1e-9);
    assert!((config.at_most(0, 0) - 300.0).abs() < 1e-9);
}

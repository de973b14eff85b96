//! The paper's Fig. 6 to the letter, so that the difference can be shown.
//!
//! It starts from a smallest count of `alpha`, visits cells from the flow's first up to and with
//! the one `k` further on (none at all where that wraps around), counts empty cells as usable,
//! keeps cells of equal content once, and keeps those strictly below `1 + alpha` times the
//! smallest. With the alpha of 0.1 that the paper recommends no cell with a packet in it is left,
//! and the answer is 0/0. Sampled counts are scaled up as they are.

use std::borrow::Cow;

use twixt_model::FlowHash;

use super::Lds;
use crate::sketch::{Sketch, Sum, Table};
use crate::sums::Usable;

/// What the flow's mean rests on, or why there is none.
pub(super) fn sum(table: &Table<'_, Lds>, flow: FlowHash) -> Result<Sum, Cow<'static, str>> {
    let alpha = table.config().alpha();
    let valid = valid_cells(table, flow);
    let scaled = |(row, packets, _): &Valid| *packets as f64 / table.config().sampling()[*row];
    let smallest = valid.iter().map(scaled).fold(alpha, f64::min);
    let mut sum = Sum::default();
    for cell in valid.iter().filter(|cell| scaled(cell) < (1.0 + alpha) * smallest) {
        let (_, packets, delay_sum_ns) = *cell;
        sum.add(Usable { packets, delay_sum_ns });
    }
    match sum.packets {
        0 => Err("0/0: as printed, no cell with packets is below (1 + alpha) times the smallest \
                  count, which starts at alpha; use estimator paper"
            .into()),
        _ => Ok(sum),
    }
}

/// Row, packets and sum of delays.
type Valid = (usize, u64, i64);

fn valid_cells(table: &Table<'_, Lds>, flow: FlowHash) -> Vec<Valid> {
    let config = table.config();
    let columns = config.columns() as usize;
    let mut valid = Vec::new();
    for row in 0..config.rows() {
        let first = config.cells_of(flow, row).next().expect("a flow has a cell");
        let last = row * columns + (first % columns + config.virtual_cells() as usize) % columns;
        for index in first..=last {
            let packets = table.upstream.sums(index).packets;
            let usable = match packets {
                0 if Lds::agree(table.upstream, table.downstream, index) => {
                    Some(Usable { packets: 0, delay_sum_ns: 0 })
                }
                _ => table.cells[index],
            };
            let cell = usable.map(|cell| (row, cell.packets, cell.delay_sum_ns));
            valid.extend(cell.filter(|cell| !valid.contains(cell)));
        }
    }
    valid
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lds::LdsConfig;
    use crate::synopsis::{Pair, Synopsis};

    const FLOW: FlowHash = FlowHash(42);

    /// The flow's one cell in each row holds (packets, total delay).
    #[track_caller]
    fn check(alpha: f64, rows: &[(u64, i64)], expected: Option<(u64, i128)>) {
        let config = LdsConfig::new(4096, 1, &vec![1.0; rows.len()]).unwrap();
        let config = config.with_alpha(alpha).unwrap();
        let (mut upstream, mut downstream) = (Lds::new(&config), Lds::new(&config));
        for (row, &(packets, delay_ns)) in rows.iter().enumerate() {
            let index = config.cells_of(FLOW, row).next().unwrap();
            let times = delay_ns as u64;
            upstream.change_sums(index, |sums| sums.packets = packets);
            downstream.change_sums(index, |sums| (sums.packets, sums.times) = (packets, times));
            // The cell that is visited though it is not the flow's, so that it is not empty.
            upstream.change_sums(index + 1, |sums| sums.packets = 1);
        }
        let table = Table::new(Pair { upstream: &upstream, downstream: &downstream }, 0);
        let found = sum(&table, FLOW).ok().map(|sum| (sum.packets, sum.delay_sum_ns));
        assert_eq!(found, expected);
    }

    #[test]
    fn with_the_papers_alpha_nothing_is_left() {
        check(0.0, &[(9, 90), (7, 70)], None);
        check(0.1, &[(9, 90), (7, 70)], None);
    }

    #[test]
    fn with_an_alpha_beyond_the_counts_it_runs() {
        check(10.0, &[(9, 90), (7, 70)], Some((16, 160)));
        // A set: what two rows agree on counts in both, what one row holds twice would not.
        check(10.0, &[(7, 70), (700, 70)], Some((7, 70)));
    }
}

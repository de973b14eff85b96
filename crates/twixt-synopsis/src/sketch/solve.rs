//! The mean delays of all listed flows at once, from the cells of a [`Table`].

use super::{Layout, Place, Size, Sketch, Table};
use crate::joint::{self, Cell, Options, Solution, System};
use crate::question::KnownFlow;

/// Relative errors of sizes are cut to this: the equations are linear in them.
const ERROR_MAX: f64 = 1.0;
/// The same where rows sample, or spread flows over several cells. There equations are never
/// quite true, and errors of sizes must not be taken for the cause of all of it.
const SPREAD_ERROR_MAX: f64 = 0.1;

/// What the cells tell about flows.
pub(crate) struct Solved {
    /// What solutions are relative to, itself relative to the reference.
    pub(crate) common_ns: f64,
    /// In the order of flows; `None` without a usable cell.
    pub(crate) solutions: Vec<Option<Solution>>,
}

/// Every usable cell is one equation in the means of flows.
pub(crate) fn solve<S: Sketch>(
    table: &Table<'_, S>,
    flows: &[KnownFlow],
    sizes: &[Size],
    options: &Options,
) -> Solved {
    let common_ns = common_mean(table, flows);
    let solutions = system(table, flows, sizes, common_ns).solve(options);
    Solved { common_ns, solutions }
}

/// Mean delay in the flows' usable cells, relative to the reference. Any number would do: near
/// the mean the equations lose nothing to rounding.
fn common_mean<S: Sketch>(table: &Table<'_, S>, flows: &[KnownFlow]) -> f64 {
    let (mut packets, mut delay_sum_ns) = (0.0, 0.0);
    for place in flows.iter().map(Place::of) {
        for cell in (0..table.config().rows()).flat_map(|row| table.usable_of(place, row)) {
            packets += cell.packets as f64;
            delay_sum_ns += cell.delay_sum_ns as f64;
        }
    }
    if packets > 0.0 { delay_sum_ns / packets } else { 0.0 }
}

/// The equations, in what delays exceed `common_ns`.
fn system<S: Sketch>(
    table: &Table<'_, S>,
    flows: &[KnownFlow],
    sizes: &[Size],
    common_ns: f64,
) -> System {
    let config = table.config();
    let region = config.region_cells();
    let cells = table.cells.iter().enumerate().map(|(index, cell)| {
        cell.map(|cell| {
            let packets = cell.packets as f64;
            let delay_sum_ns = cell.delay_sum_ns as f64 - common_ns * packets;
            Cell { row: (index / region) as u32, packets, delay_sum_ns }
        })
    });
    let mut system = System::new(cells.collect());
    let error_max = if config.is_spread() { SPREAD_ERROR_MAX } else { ERROR_MAX };
    for (flow, size) in flows.iter().zip(sizes) {
        let error = size.error.min(error_max * size.load);
        let size = joint::Size { packets: size.load, error };
        system.add_flow(size, config.shares_of(Place::of(flow)));
    }
    system
}

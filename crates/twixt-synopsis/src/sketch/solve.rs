//! The mean delays of all listed flows at once, from the cells of a [`Table`].

use super::{Layout, Place, Size, Sketch, Table};
use crate::joint::{self, Cell, Options, Solution, System};
use crate::question::KnownFlow;
use crate::sums::Usable;

/// Relative errors of sizes are cut to this: the equations are linear in them.
const ERROR_MAX: f64 = 1.0;
/// The same where rows sample, or spread flows over several cells. There equations are never
/// quite true, and errors of sizes must not be taken for the cause of all of it.
const SPREAD_ERROR_MAX: f64 = 0.1;

/// What a cell says that counted nothing. Where a flow has one cell per row, it is no flow's.
const NOTHING: Usable = Usable { packets: 0, delay_sum_ns: 0 };

/// What the cells tell about flows.
pub(crate) struct Solved {
    /// What solutions are relative to, itself relative to the reference.
    pub(crate) common_ns: f64,
    /// In the order of flows; `None` without a usable cell.
    pub(crate) solutions: Vec<Option<Solution>>,
    /// How unevenly flows spread over their cells beyond chance.
    pub(crate) clumping: f64,
}

/// Every usable cell is one equation in the means of flows, which clump by so much.
pub(crate) fn solve<S: Sketch>(
    table: &Table<'_, S>,
    flows: &[KnownFlow],
    sizes: &[Size],
    clumping: f64,
    options: &Options,
) -> Solved {
    let common_ns = common_mean(table, flows);
    let solutions = system(table, flows, sizes, clumping, common_ns).solve(options);
    Solved { common_ns, solutions, clumping }
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
    clumping: f64,
    common_ns: f64,
) -> System {
    let config = table.config();
    let region = config.region_cells();
    let cells = table.cells.iter().enumerate().map(|(index, cell)| {
        let row = (index / region) as u32;
        let is_vacant = || config.is_spread() && table.is_vacant(index);
        let cell = cell.or_else(|| is_vacant().then_some(NOTHING))?;
        let packets = cell.packets as f64;
        Some(Cell { row, packets, delay_sum_ns: cell.delay_sum_ns as f64 - common_ns * packets })
    });
    let mut system = System::new(cells.collect()).with_clumping(clumping);
    let error_max = if config.is_spread() { SPREAD_ERROR_MAX } else { ERROR_MAX };
    for (flow, size) in flows.iter().zip(sizes) {
        let error = size.error.min(error_max * size.load);
        let size = joint::Size { packets: size.load, error, doubt: size.error };
        system.add_flow(size, config.shares_of(Place::of(flow)));
    }
    system
}

//! How many packets flows sent, if that is not given.
//!
//! Every row counts all of a flow's packets in cells that it shares. What a cell counted is
//! split among its flows in proportion to what is believed of their sizes, and sizes are
//! believed again to be the mean over the rows of what they got: expectation maximisation for
//! counts. A size is never believed to be more than what the emptiest row allows.
//!
//! Where a list may not be complete, how far off that is, and whether a flow was seen at all, is found with
//! flows that are implanted.

mod clumps;
mod doubt;
mod implants;
mod unlisted;

pub(crate) use self::doubt::{CLASSES, class, quantiles};
pub(crate) use self::implants::{CELLS_MAX, Implants, SILENT_WANTED, least_seen, without_others};
use self::unlisted::Unlisted;
use super::{Layout, Place};
use crate::joint::{self, Cell, Options, System};
use crate::question::{KnownFlow, Listing};

/// How many packets a flow sent times how often each counts, or a guess at it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Size {
    pub(crate) load: f64,
    /// Standard error; 0 where the size is known.
    pub(crate) error: f64,
    pub(crate) known: bool,
    /// Whether the flow sent anything, as far as one can tell.
    pub(crate) seen: bool,
    /// How many times each packet counts.
    pub(crate) weight: f64,
}

impl Size {
    /// How many packets the flow sent.
    fn packets(&self) -> f64 {
        self.load / self.weight
    }
}

/// So many bring large flows close to where they settle; the equations do the rest. More would
/// make small flows explain what is chance where a row spreads flows over several cells.
const ITERATIONS: usize = 30;
/// Few flows have most of the packets. Beliefs start from this power of the upper bounds, so that
/// a cell's packets go to the flow that can be large, not to the many that hardly are.
const BOLDNESS: i32 = 3;
/// Half of the steps that equations get. Thrice as many made the error of large flows 1.4 % smaller.
const REFINING: usize = 50;

/// The sizes of all flows: as given, or estimated from what cells counted upstream.
pub(crate) fn sizes<L: Layout>(config: &L, counts: &[f64], flows: &[KnownFlow]) -> Vec<Size> {
    sizes_of(config, counts, flows, Listing::Passing).sizes
}

/// Sizes, and how they were judged.
pub(crate) struct Estimated {
    pub(crate) sizes: Vec<Size>,
    /// Flows of known sizes that they were judged with, batch by batch; none where sizes are known, or those of
    /// all flows are estimated.
    pub(crate) implants: Vec<Implants>,
    /// How unevenly flows spread over their cells beyond chance.
    pub(crate) clumping: f64,
}

/// The sizes of listed flows.
pub(crate) fn sizes_of<L: Layout>(
    config: &L,
    counts: &[f64],
    flows: &[KnownFlow],
    listing: Listing,
) -> Estimated {
    let given = |flow: &KnownFlow| {
        let weight = config.weight_of(flow.class) as f64;
        let load = flow.packets.map_or(0.0, |packets| packets as f64 * weight);
        Size { load, error: 0.0, known: flow.packets.is_some(), seen: true, weight }
    };
    let mut sizes: Vec<Size> = flows.iter().map(given).collect();
    let mut implants = Vec::new();
    let is_known = sizes.iter().all(|size| size.known);
    if is_known && config.spread() == 1 {
        return Estimated { sizes, implants, clumping: 0.0 };
    }
    let members = Members::new(config, flows.iter().map(Place::of), counts.len());
    let unlisted = Unlisted::of(&members, counts);
    let kept: Vec<f64> = members.kept.iter().map(|&cell| counts[cell as usize]).collect();
    if is_known {
        let clumping = members.clumping(&kept, &unlisted, &sizes);
        return Estimated { sizes, implants, clumping };
    }
    // A flow that passed has sent something, if its cells allow.
    let least = |size: &Size| if listing == Listing::Named { 0.0 } else { size.weight };
    members.believe(&kept, &unlisted, &mut sizes, least);
    let clumping = members.clumping(&kept, &unlisted, &sizes);
    if clumping > 0.0 {
        members.believe_clumped(&kept, &unlisted, &mut sizes, clumping, least);
    }
    if listing == Listing::Passing || config.is_partial() {
        doubt::doubt(&members, &kept, &unlisted, clumping, &mut sizes);
    } else {
        implants = implants::judge(&members, flows, counts, &unlisted, &mut sizes);
    }
    if listing != Listing::Named {
        sizes.iter_mut().for_each(|size| size.seen = true);
    }
    Estimated { sizes, implants, clumping }
}

/// Which cells the flows fall into. Only those are looked at: for few flows that is a small part
/// of all.
struct Members<'a, L> {
    config: &'a L,
    /// All cells of any flow, in order.
    kept: Vec<u32>,
    /// Those of each flow, row by row, as places among all that are kept.
    cells: Vec<u32>,
}

impl<'a, L: Layout> Members<'a, L> {
    fn new(config: &'a L, places: impl Iterator<Item = Place>, cell_count: usize) -> Self {
        let cells = places
            .flat_map(|place| (0..config.rows()).flat_map(move |row| config.cells_of(place, row)));
        let mut cells: Vec<u32> = cells.map(|index| index as u32).collect();
        let mut places = vec![None; cell_count];
        cells.iter().for_each(|&cell| places[cell as usize] = Some(0));
        let mut kept = Vec::new();
        for (place, cell) in places.iter_mut().zip(0..).filter(|(place, _)| place.is_some()) {
            *place = Some(kept.len() as u32);
            kept.push(cell);
        }
        for cell in &mut cells {
            *cell = places[*cell as usize].expect("cells of flows are kept");
        }
        Self { config, kept, cells }
    }

    /// Each flow's cells, all rows in one slice.
    fn flows(&self) -> impl Iterator<Item = &[u32]> {
        self.cells.chunks_exact(self.config.rows() * self.config.spread() as usize)
    }

    /// A flow's cells row by row, with the row's sampling rate.
    fn rows<'b>(&self, cells: &'b [u32]) -> impl Iterator<Item = (&'b [u32], f64)> {
        let rows = cells.chunks_exact(self.config.spread() as usize);
        rows.zip(self.config.sampling().iter().copied())
    }

    /// Fills in the sizes that are not known, none below `least`.
    fn believe(
        &self,
        counts: &[f64],
        unlisted: &Unlisted,
        sizes: &mut [Size],
        least: impl Fn(&Size) -> f64,
    ) {
        let most: Vec<f64> = self.flows().map(|cells| self.most(cells, counts)).collect();
        for (size, most) in sizes.iter_mut().zip(&most).filter(|(size, _)| !size.known) {
            size.load = most.powi(BOLDNESS);
        }
        for _ in 0..ITERATIONS {
            let expected = self.expected(unlisted, sizes);
            self.share_out(counts, &expected, sizes, &most, &least);
        }
        let expected = self.expected(unlisted, sizes);
        self.refine(counts, &expected, sizes, &most, &least);
    }

    /// What the emptiest row allows.
    fn most(&self, cells: &[u32], counts: &[f64]) -> f64 {
        let rows = self.rows(cells).enumerate().map(|(row, (cells, _))| {
            let counted: f64 = cells.iter().map(|&cell| counts[cell as usize]).sum();
            self.config.at_most(row, counted as u64)
        });
        rows.fold(f64::INFINITY, f64::min)
    }

    /// What each cell should have counted.
    fn expected(&self, unlisted: &Unlisted, sizes: &[Size]) -> Vec<f64> {
        let mut sums = unlisted.expected(&self.kept);
        let spread = 1.0 / f64::from(self.config.spread());
        for (size, cells) in sizes.iter().zip(self.flows()) {
            for (cells, rate) in self.rows(cells) {
                cells.iter().for_each(|&cell| sums[cell as usize] += size.load * rate * spread);
            }
        }
        sums
    }

    /// One step of expectation maximisation. Rows count for as much as they sample.
    fn share_out(
        &self,
        counts: &[f64],
        expected: &[f64],
        sizes: &mut [Size],
        most: &[f64],
        least: impl Fn(&Size) -> f64,
    ) {
        let cells = counts.iter().zip(expected);
        let ratios: Vec<f64> = cells.map(|(count, sum)| count / sum.max(1e-9)).collect();
        let rates: f64 = self.config.sampling().iter().sum();
        let whole = rates * f64::from(self.config.spread());
        for ((size, cells), &most) in sizes.iter_mut().zip(self.flows()).zip(most) {
            if size.known {
                continue;
            }
            let of_row =
                |cells: &[u32]| cells.iter().map(|&cell| ratios[cell as usize]).sum::<f64>();
            let ratio: f64 = self.rows(cells).map(|(cells, rate)| rate * of_row(cells)).sum();
            size.load = (size.load * ratio / whole).max(least(size)).min(most);
        }
    }

    /// Solves the cells' counts as equations in what flows sent more than believed, relative to
    /// what was believed: the same kind of equations as those of delays, with counts in place of
    /// sums of delays, and chance in place of jitter.
    fn refine(
        &self,
        counts: &[f64],
        expected: &[f64],
        sizes: &mut [Size],
        most: &[f64],
        least: impl Fn(&Size) -> f64,
    ) {
        let region = self.config.region_cells();
        let cells = counts.iter().zip(expected).zip(&self.kept);
        let cells = cells.map(|((count, &packets), &cell)| {
            let (row, delay_sum_ns) = (cell / region as u32, count - packets);
            (packets > 0.0).then_some(Cell { row, packets, delay_sum_ns })
        });
        let mut system = System::new(cells.collect());
        let spread = 1.0 / f64::from(self.config.spread());
        for (size, cells) in sizes.iter().zip(self.flows()) {
            let cells = self.rows(cells).flat_map(|(cells, rate)| {
                cells.iter().map(move |&cell| (cell as usize, rate * spread))
            });
            system.add_flow(joint::Size::known(size.load), cells);
        }
        // Without intervals: they would know nothing of what beliefs started from.
        let offsets =
            system.mean_offsets_ns(&Options { iterations: REFINING, ..Options::default() });
        for ((size, offset), &most) in sizes.iter_mut().zip(offsets).zip(most) {
            if let Some(offset) = offset.filter(|_| !size.known) {
                size.load = (size.load * (1.0 + offset)).max(least(size)).min(most);
            }
        }
    }
}

#[cfg(test)]
mod tests;

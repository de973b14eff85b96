//! Those counters that it takes to answer for a few flows: theirs, and enough of others to know
//! what is usual.

use std::collections::BTreeMap;
use std::ops::Range;

use super::ColateConfig;
use crate::question::KnownFlow;
use crate::sketch::{Layout, Place};

/// Counters that no flow asked for falls into, for each bank of a vector. What is usual is known
/// from them with an error; for a flow with m counters it adds m / 1024 to the variance that other
/// flows in its own counters cause, 2 % for the default of 20.
const OTHERS: usize = 1024;
/// An excerpt has at most this part of all counters. Beyond, little is saved.
const PART_MAX: usize = 4;

/// A choice of counters: as many of each bank in which flows are asked for, and of no other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Excerpt {
    /// As numbered in whole vectors, in order.
    cells: Vec<u32>,
    region_cells: usize,
}

impl Excerpt {
    /// What it takes to answer for some flows; `None` if there are none, or it is too much.
    pub(super) fn new(config: &ColateConfig, flows: &[KnownFlow]) -> Option<Self> {
        let first = flows.first()?;
        let regions = regions(config, flows);
        let most = regions.values().map(Vec::len).max()?;
        let region_cells = most + OTHERS;
        if region_cells * regions.len() > config.cells() / PART_MAX
            || region_cells > config.region_cells()
        {
            return None;
        }
        let mut cells = Vec::with_capacity(region_cells * regions.len());
        for (region, own) in regions {
            let start = region as usize * config.region_cells();
            let region = start as u32..(start + config.region_cells()) as u32;
            fill(&own, &region, first.hash.0, region_cells, &mut cells);
        }
        Some(Self { cells, region_cells })
    }

    /// As numbered in whole vectors, in order.
    pub(super) fn cells(&self) -> &[u32] {
        &self.cells
    }

    /// Counters of each bank that is left.
    pub(super) const fn region_cells(&self) -> usize {
        self.region_cells
    }

    /// Where a counter of whole vectors is now.
    pub(super) fn place(&self, cell: usize) -> Option<usize> {
        self.cells.binary_search(&(cell as u32)).ok()
    }
}

/// The counters of flows, each once, by bank and vector.
fn regions(config: &ColateConfig, flows: &[KnownFlow]) -> BTreeMap<u32, Vec<u32>> {
    let mut regions = BTreeMap::<u32, Vec<u32>>::new();
    for place in flows.iter().map(Place::of) {
        for cell in (0..config.rows()).flat_map(|row| config.cells_of(place, row)) {
            let region = cell / config.region_cells();
            regions.entry(region as u32).or_default().push(cell as u32);
        }
    }
    for cells in regions.values_mut() {
        cells.sort_unstable();
        cells.dedup();
    }
    regions
}

/// Appends the counters of a bank: its flows' own, and a run of others. Hashes spread flows over
/// counters, so that a run is as good a choice as any. Where it begins is different for different
/// flows, so that their errors have nothing in common.
fn fill(own: &[u32], region: &Range<u32>, seed: u64, count: usize, cells: &mut Vec<u32>) {
    let whole = region.len() as u64;
    let begin = region.start + (twixt_model::mix(seed ^ u64::from(region.start)) % whole) as u32;
    let start = cells.len();
    let run = (begin..region.end).chain(region.start..begin);
    let others = run.filter(|cell| own.binary_search(cell).is_err());
    cells.extend(others.take(count - own.len()));
    cells.extend_from_slice(own);
    cells[start..].sort_unstable();
}

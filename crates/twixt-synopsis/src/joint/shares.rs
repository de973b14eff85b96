//! How many packets of each flow a cell holds, given how many it counted.

use std::collections::BTreeMap;

use super::variance::Variances;
use super::{Cell, Member, Size, System};

/// Fewer unknown packets than this part of all of them are taken for chance.
const LISTED_ENOUGH: f64 = 0.005;

/// What each cell holds of each flow, and how sure that is.
pub(super) struct Shares {
    /// Packets of each member, expected given what the cell counted.
    pub(super) packets: Vec<f64>,
    /// What the cell counted beyond its members.
    pub(super) stray: Vec<f64>,
    /// Per cell, in squared packets: weighs the variance between flows where members may have put
    /// more or fewer packets into the cell than expected, or flows are not known.
    pub(super) uncertainty: Vec<f64>,
    /// The part of it that is not about members.
    pub(super) loose: Vec<f64>,
    /// Variance of each member's packets, as far as not even what the cell counted is known.
    pub(super) chance: Vec<f64>,
    /// Per cell, the sum of these, with that of flows that are not known.
    pub(super) chance_of_cells: Vec<f64>,
}

impl Shares {
    /// Expected packets are size times share. Where they do not add up to what a cell counted,
    /// the rest goes to members in proportion to the variances of their counts (which makes it
    /// the expectation given the total, and for equal shares scales all of them alike), and never
    /// to members that are known to have all packets there.
    pub(super) fn of(system: &System) -> Self {
        let expected = expected(system);
        let unlisted = unlisted(system, &expected);
        let mut packets = Vec::with_capacity(system.members.len());
        let mut chance = Vec::with_capacity(system.members.len());
        let mut uncertainty = vec![0.0; system.cells.len()];
        for (size, member) in members(system) {
            let cell = member.cell as usize;
            let unknown = unlisted[cell];
            let rest = counted(system, cell) - expected[cell].packets - unknown.packets;
            let own = variance_of(size, member, system.clumping);
            let part = ratio(own, expected[cell].variance + unknown.variance);
            packets.push((size.packets * member.share + rest * part).max(0.0));
            uncertainty[cell] += own * (1.0 - part);
            chance.push(own);
        }
        let cells = expected.iter().zip(&unlisted);
        let mut chance_of_cells: Vec<f64> =
            cells.map(|(own, unknown)| own.variance + unknown.variance).collect();
        if system.clumping > 0.0 {
            bound(system, &mut chance, &mut chance_of_cells);
        }
        let none = vec![0.0; system.cells.len()];
        let (stray, loose) = (none.clone(), none);
        let mut shares = Self { packets, stray, uncertainty, loose, chance, chance_of_cells };
        shares.reconcile(system);
        shares
    }

    /// What a packet finds of its flow in its cell.
    pub(super) fn typical_packets(&self) -> f64 {
        let squares: f64 = self.packets.iter().map(|packets| packets * packets).sum();
        ratio(squares, self.packets.iter().sum())
    }

    /// The same with these cells alone, which hold all members.
    pub(super) fn of_cells(&self, cells: &[usize]) -> Self {
        let pick = |values: &[f64]| cells.iter().map(|&cell| values[cell]).collect();
        Self {
            packets: self.packets.clone(),
            stray: pick(&self.stray),
            uncertainty: pick(&self.uncertainty),
            loose: pick(&self.loose),
            chance: self.chance.clone(),
            chance_of_cells: pick(&self.chance_of_cells),
        }
    }

    /// Per cell, the variance that its members' means do not explain, nor how a row spreads them.
    pub(super) fn own_variances(&self, variances: Variances) -> impl Iterator<Item = f64> {
        let cells = self.stray.iter().zip(&self.uncertainty);
        cells.map(move |(stray, flows)| variances.within * stray + variances.between * flows)
    }

    /// Scales cells down that would hold more than they counted, and takes what is missing for
    /// packets of flows that are not known.
    fn reconcile(&mut self, system: &System) {
        let held = held(system, &self.packets);
        let typical = self.typical_packets();
        for (member, packets) in system.members.iter().zip(&mut self.packets) {
            let cell = member.cell as usize;
            *packets *= (counted(system, cell) / held[cell]).min(1.0);
        }
        for (cell, held) in held.into_iter().enumerate() {
            let missing = counted(system, cell) - held;
            // Rounding is no sign of another flow.
            if missing.abs() > 1e-9 * held {
                self.stray[cell] = missing.max(0.0);
                self.loose[cell] = missing.abs() * missing.abs().min(typical);
                self.uncertainty[cell] += self.loose[cell];
            }
        }
    }
}

/// Of clumps: no flow has more packets in a cell than it counted.
fn bound(system: &System, chance: &mut [f64], chance_of_cells: &mut [f64]) {
    for (member, chance) in system.members.iter().zip(chance) {
        let cell = member.cell as usize;
        let most = counted(system, cell).powi(2) / 4.0;
        if *chance > most {
            chance_of_cells[cell] -= *chance - most;
            *chance = most;
        }
    }
}

/// What the members of each cell add up to.
fn held(system: &System, packets: &[f64]) -> Vec<f64> {
    let mut held = vec![0.0; system.cells.len()];
    for (member, packets) in system.members.iter().zip(packets) {
        held[member.cell as usize] += packets;
    }
    held
}

/// Packets of some flows in a cell: what to expect.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Expected {
    packets: f64,
    variance: f64,
}

impl Expected {
    /// Adds those of a flow.
    pub(super) fn add(&mut self, size: Size, member: &Member, clumping: f64) {
        self.packets += size.packets * member.share;
        self.variance += variance_of(size, member, clumping);
    }
}

/// What the members of each cell, and the flows of those that counted nothing, are expected to add up to.
fn expected(system: &System) -> Vec<Expected> {
    let mut cells = system.vacant.clone();
    for (size, member) in members(system) {
        cells[member.cell as usize].add(size, member, system.clumping);
    }
    cells
}

/// Of a member's packets: they are there by chance, possibly in clumps, and its size may be a guess.
fn variance_of(size: Size, member: &Member, clumping: f64) -> f64 {
    let guess = size.error * member.share;
    let packets = size.packets * member.share;
    packets * (1.0 - member.share) * (1.0 + clumping * packets) + guess * guess
}

/// Per cell, what is expected of flows that were not added: what the cells of its row counted
/// beyond their members on average, and how much more than by chance that varies.
fn unlisted(system: &System, members: &[Expected]) -> Vec<Expected> {
    let mut rows = BTreeMap::<u32, Beyond>::new();
    for (cell, members) in system.cells.iter().zip(members) {
        if let Some(cell) = cell {
            rows.entry(cell.row).or_default().add(cell.packets, *members);
        }
    }
    let rows: BTreeMap<u32, Expected> =
        rows.into_iter().map(|(row, beyond)| (row, beyond.per_cell())).collect();
    let none = Expected::default();
    let of_row = |cell: &Cell| rows.get(&cell.row).copied().unwrap_or(none);
    system.cells.iter().map(|cell| cell.as_ref().map_or(none, of_row)).collect()
}

/// Sums over the cells of a row.
#[derive(Default)]
struct Beyond {
    cells: f64,
    counted: f64,
    beyond: f64,
    square: f64,
    by_chance: f64,
}

impl Beyond {
    fn add(&mut self, counted: f64, members: Expected) {
        let beyond = counted - members.packets;
        self.cells += 1.0;
        self.counted += counted;
        self.beyond += beyond;
        self.square += beyond * beyond;
        self.by_chance += members.variance;
    }

    fn per_cell(&self) -> Expected {
        if self.beyond <= LISTED_ENOUGH * self.counted {
            return Expected::default();
        }
        let packets = self.beyond / self.cells;
        let variance = (self.square - self.by_chance) / self.cells - packets * packets;
        Expected { packets, variance: variance.max(packets) }
    }
}

fn counted(system: &System, cell: usize) -> f64 {
    system.cells[cell].map_or(0.0, |cell| cell.packets)
}

/// 0 instead of a division by zero.
pub(super) fn ratio(number: f64, whole: f64) -> f64 {
    if whole > 0.0 { number / whole } else { 0.0 }
}

/// Each member with the size of its flow.
fn members(system: &System) -> impl Iterator<Item = (Size, &Member)> {
    let flows = system.sizes.iter().enumerate();
    flows.flat_map(|(flow, size)| {
        system.members[system.members_of(flow)].iter().map(move |member| (*size, member))
    })
}

//! How much delays differ between flows and within them, as far as the cells tell.

use std::collections::BTreeSet;

use super::model::Model;
use super::shares::{Shares, ratio};
use super::{Cell, System};

/// Rounds of the fit; it settles within about ten.
const ROUNDS: usize = 30;
/// A squared sum counts for at most this many times its expectation, so that one absurd cell does
/// not swamp the rest.
const SURPRISE_LIMIT: f64 = 30.0;
/// In square nanoseconds. What is below is rounding.
const SMALLEST: f64 = 1e-24;
/// Packets of a flow vary by at least this part of what flows do, where that decides on weights.
const WITHIN_MIN: f64 = 0.1;
/// With fewer cells that hold no flow unlike the others, what was found before stands.
const CELLS_MIN: usize = 20;
/// Median of the square of a standard normal variable.
const MEDIAN_SQUARE: f64 = 0.454_936;

/// What is common to all flows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Variances {
    /// Mean delay of a flow, relative to the reference. Not that of a packet: one large flow far
    /// off would drag the rest with it.
    pub(super) mean_ns: f64,
    /// Variance of the mean delays of flows.
    pub(super) between: f64,
    /// Variance of the delays of one flow's packets.
    pub(super) within: f64,
}

/// A cell's expected squared sum is `between * flows + within * jitter + known`.
struct Moment {
    sum: f64,
    packets: f64,
    flows: f64,
    jitter: f64,
    known: f64,
}

impl Variances {
    /// Maximises the likelihood of the cells' sums as if they were normal and independent, by
    /// Fisher scoring: a fit of squares to their expectation, weighted by its inverse square.
    pub(super) fn fit(system: &System, shares: &Shares) -> Self {
        Self::of(&moments(system, shares))
    }

    fn of(moments: &[Moment]) -> Self {
        Self::start(moments).settled(moments)
    }

    fn settled(self, moments: &[Moment]) -> Self {
        let mut fit = self;
        for _ in 0..ROUNDS {
            let next = fit.improve(moments);
            let change = |old: f64, new: f64| (new - old).abs() <= 1e-4 * old;
            let settled = change(fit.between, next.between) && change(fit.within, next.within);
            fit = next;
            if settled {
                break;
            }
        }
        let vanish = |variance: f64| if variance > SMALLEST { variance } else { 0.0 };
        Self { between: vanish(fit.between), within: vanish(fit.within), ..fit }
    }

    /// Fitted again where flows are alike, if enough cells are left that hold no others.
    pub(super) fn refitted(self, system: &System, shares: &Shares, model: &Model) -> Self {
        let moments = common_moments(system, shares, model);
        if moments.len() < CELLS_MIN { self } else { self.settled(&moments) }
    }

    /// Equal variances that half of the cells exceed.
    fn start(moments: &[Moment]) -> Self {
        let mut ratios: Vec<f64> =
            moments.iter().map(|cell| cell.sum * cell.sum / (cell.flows + cell.jitter)).collect();
        ratios.sort_by(f64::total_cmp);
        let median = ratios.get(ratios.len() / 2).copied().unwrap_or(0.0) / MEDIAN_SQUARE;
        let mean = ratios.iter().sum::<f64>() / ratios.len().max(1) as f64;
        let variance = if median > 0.0 { median } else { mean };
        Self { mean_ns: 0.0, between: variance, within: variance }
    }

    fn improve(self, moments: &[Moment]) -> Self {
        let expected =
            |cell: &Moment| self.between * cell.flows + self.within * cell.jitter + cell.known;
        let (mut covered, mut weight) = (0.0, 0.0);
        for cell in moments.iter().filter(|cell| expected(cell) > 0.0) {
            covered += cell.sum * cell.packets / expected(cell);
            weight += cell.packets * cell.packets / expected(cell);
        }
        // A single cell cannot tell the mean from the deviation of its flows.
        let freedom = moments.len() as f64 - 1.0;
        let fits = weight > 0.0 && freedom > 0.0;
        // Where nothing varies any more, what was found of the mean still stands.
        let (mean_ns, loss) =
            if fits { (covered / weight, 1.0 + freedom.recip()) } else { (self.mean_ns, 1.0) };
        let mut normal = Normal::default();
        for cell in moments.iter().filter(|cell| expected(cell) > 0.0) {
            let expected = expected(cell);
            let rest = cell.sum - mean_ns * cell.packets;
            let surprise = (loss * rest * rest / expected).min(SURPRISE_LIMIT);
            let unexplained = surprise - cell.known / expected;
            normal.add(cell.flows / expected, cell.jitter / expected, unexplained);
        }
        let (between, within) = normal.solve(self.between, self.within);
        Self { mean_ns, between, within }
    }
}

/// How far the delays in cells stray from what is common to all, where it is not known which flows
/// are in them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Noise {
    between: f64,
    within: f64,
}

impl Noise {
    /// In square nanoseconds, of the sum of delays of so many packets of unknown flows and so many of
    /// a known one.
    pub(crate) fn variance(self, strange: f64, known: f64) -> f64 {
        // Where cells hold few packets of one flow each, they do not tell what packets vary by.
        let within = self.within.max(WITHIN_MIN * self.between);
        match self.between * strange * strange + within * (strange + known) {
            variance if variance > SMALLEST => variance,
            _ => SMALLEST,
        }
    }
}

/// Fits it to packets and sums of delays of cells: as if each held one flow, which is so where it
/// matters, and single packets.
pub(crate) fn fit_noise(cells: impl Iterator<Item = (f64, f64)>) -> Noise {
    let moment = |(packets, sum): (f64, f64)| {
        let (flows, jitter) = (packets * packets, packets);
        Moment { sum, packets, flows, jitter, known: 0.0 }
    };
    let moments: Vec<Moment> = cells.map(moment).collect();
    let (packets, sum) = moments
        .iter()
        .fold((0.0, 0.0), |(packets, sum), cell| (packets + cell.packets, sum + cell.sum));
    let mean_ns = if packets > 0.0 { sum / packets } else { 0.0 };
    let centred = |cell: Moment| Moment { sum: cell.sum - mean_ns * cell.packets, ..cell };
    let moments: Vec<Moment> = moments.into_iter().map(centred).collect();
    let Variances { between, within, .. } = Variances::of(&moments);
    Noise { between, within }
}

/// Normal equations of a fit with two coefficients, neither below zero.
#[derive(Default)]
struct Normal {
    flows_flows: f64,
    flows_packets: f64,
    packets_packets: f64,
    flows_square: f64,
    packets_square: f64,
}

impl Normal {
    fn add(&mut self, flows: f64, packets: f64, square: f64) {
        self.flows_flows += flows * flows;
        self.flows_packets += flows * packets;
        self.packets_packets += packets * packets;
        self.flows_square += flows * square;
        self.packets_square += packets * square;
    }

    /// Keeps the proportion of the two before where the cells cannot distinguish them.
    fn solve(&self, between: f64, within: f64) -> (f64, f64) {
        if self.packets_packets <= 0.0 {
            let alone = ratio(self.flows_square, self.flows_flows);
            return (alone.max(0.0), within);
        }
        let product = self.flows_flows * self.packets_packets;
        let determinant = product - self.flows_packets * self.flows_packets;
        if determinant <= 1e-9 * product {
            let expected = between * self.flows_packets + within * self.packets_packets;
            let factor = if expected > 0.0 { self.packets_square / expected } else { 0.0 };
            return (between * factor, within * factor);
        }
        let first = self.flows_square * self.packets_packets;
        let first = (first - self.packets_square * self.flows_packets) / determinant;
        let second = self.packets_square * self.flows_flows;
        let second = (second - self.flows_square * self.flows_packets) / determinant;
        match (first < 0.0, second < 0.0) {
            (true, _) => (0.0, ratio(self.packets_square, self.packets_packets).max(0.0)),
            (_, true) => (ratio(self.flows_square, self.flows_flows).max(0.0), 0.0),
            _ => (first, second),
        }
    }
}

/// Of cells with members none of which is unlike the others. What is already known of a cell's
/// variance is what only the cell sees, and jitter where chance parts flows: there it shows in each
/// flow by itself.
fn common_moments(system: &System, shares: &Shares, model: &Model) -> Vec<Moment> {
    let spreads = system.spreads();
    let cells = system.cells.iter().zip(&model.own).map(|(cell, &known)| {
        let (packets, sum) = cell.map_or((0.0, 0.0), |cell| (cell.packets, cell.delay_sum_ns));
        Moment { sum, packets, flows: 0.0, jitter: 0.0, known }
    });
    let mut moments: Vec<Moment> = cells.collect();
    for flow in 0..system.sizes.len() {
        let guess = system.sizes[flow].relative_error();
        for index in system.members_of(flow) {
            let packets = shares.packets[index];
            let cell = &mut moments[system.members[index].cell as usize];
            cell.flows += packets * packets * (1.0 + guess * guess);
            match spreads {
                _ if model.is_unlike(flow) && packets > 0.0 => cell.known = f64::INFINITY,
                true => cell.known += model.within[flow] * packets,
                false => cell.jitter += packets,
            }
        }
    }
    moments.retain(|cell| cell.flows > 0.0 && cell.known.is_finite());
    moments
}

/// Of usable cells in the rows that flows fall into, those without members included: where few flows
/// were added, the packets of all others are what tells how flows differ. Other rows may hold
/// traffic of another kind.
fn moments(system: &System, shares: &Shares) -> Vec<Moment> {
    let mut flows = vec![0.0; system.cells.len()];
    for flow in 0..system.sizes.len() {
        let guess = system.sizes[flow].relative_error();
        for index in system.members_of(flow) {
            let packets = shares.packets[index];
            flows[system.members[index].cell as usize] += packets * packets * (1.0 + guess * guess);
        }
    }
    let rows: BTreeSet<u32> = system.members.iter().map(|member| member.row).collect();
    let cells = system.cells.iter().zip(flows).zip(&shares.uncertainty);
    let moment = |((cell, flows), uncertainty): ((&Option<_>, f64), &f64)| {
        let flows = flows + uncertainty;
        let cell: Cell = cell.filter(|cell: &Cell| flows > 0.0 && rows.contains(&cell.row))?;
        let Cell { packets, delay_sum_ns: sum, .. } = cell;
        Some(Moment { sum, packets, flows, jitter: packets, known: 0.0 })
    };
    cells.filter_map(moment).collect()
}

//! How much delays differ, flow by flow, as far as the cells tell.
//!
//! One variance between flows and one within them are fitted to all cells first. That fails where
//! few flows are unlike the rest: five flows at half a second make all others seem to differ by
//! milliseconds. So the equations are solved, every flow gets its own variances, and the equations are
//! solved again.
//!
//! - *Between.* Means of flows are taken for draws from Student's distribution, a normal one whose
//!   variance is itself drawn anew for each flow. Given what a flow's mean seems to be, `m` with
//!   an error of variance `V`, that variance is expected to be (ν τ² + m² + V) / (ν + 1): about τ²
//!   for most, and as large as it must be for those far off.
//! - *Within.* With `K` the covariance of the cells' sums `d` and `u` = `K`⁻¹ `d`, the prediction
//!   of a cell from all others is off by u_c / (K⁻¹)_cc, and z_c² = u_c² / (K⁻¹)_cc is 1 on
//!   average. Where the cells of a flow have larger z², its packets vary more than supposed: the likelihood
//!   is largest where the mean of z² over them, weighted by how much of each cell's variance is
//!   the flow's jitter, is 1. Flows with few cells are drawn to the variance of all.
//! - *Counts.* How many packets of each flow a cell holds is known in part only. Counts that are
//!   off by variances v_f, with a known sum, make the cell's sum off by Σ v_f (m_f - m̄)², m̄ the
//!   mean weighted by v: nothing where flows are alike, much beside a flow that is far off.

use super::certainty::Certainty;
use super::shares::Shares;
use super::variance::Variances;
use super::{Member, System};

/// Degrees of freedom of the distribution of means: tails far heavier than normal, with a variance.
const TAIL_FREEDOM: f64 = 4.0;
/// The variance of all flows' packets counts for so many cells of each flow.
pub(super) const POOLED_CELLS: f64 = 4.0;
/// One cell's square counts for at most this in what is common to all.
const SURPRISE_MAX: f64 = 10.0;
/// Variances within flows change by at most the root of this factor at once. The root is taken of all
/// changes: whole ones overshoot, and the next round would undo them.
const STEP_MAX: f64 = 10.0;
/// With fewer cells in which chance spreads a flow's packets, jitter is fitted to all cells' sums.
pub(super) const REPLICATES_MIN: f64 = 20.0;
/// A flow is unlike the others if its mean varies by so many times more than theirs.
const UNLIKE: f64 = 5.0;
/// Means vary by at least this part of what packets do: else nothing could be learnt of them.
const BETWEEN_MIN: f64 = 1e-3;

/// Variances that change by at most this part of them have settled.
const SETTLED: f64 = 0.02;

/// What the equations suppose.
#[derive(Clone, Debug)]
pub(super) struct Model {
    /// What is common to all flows.
    pub(super) common: Variances,
    /// Variance of each flow's mean.
    pub(super) between: Vec<f64>,
    /// Variance of each flow's packets.
    pub(super) within: Vec<f64>,
    /// Square of each flow's mean, relative to the common one: what an error of its size is multiplied with.
    pub(super) squares: Vec<f64>,
    /// What only the cell itself sees: packets of flows that are not known, and counts that are
    /// not.
    pub(super) own: Vec<f64>,
}

impl Model {
    /// All flows alike.
    pub(super) fn common(system: &System, shares: &Shares, common: Variances) -> Self {
        let flows = system.sizes.len();
        Self {
            common,
            between: vec![common.between; flows],
            within: vec![common.within; flows],
            squares: vec![common.between; flows],
            own: shares.own_variances(common).collect(),
        }
    }

    /// Where to start from if variances are to be found flow by flow.
    pub(super) fn start(system: &System, shares: &Shares, fitted: Variances) -> Self {
        let between = fitted.between.max(BETWEEN_MIN * fitted.within);
        let within = match system.spreads() {
            true => fitted.within.max(BETWEEN_MIN * fitted.between),
            false => fitted.within,
        };
        Self::common(system, shares, Variances { between, within, ..fitted })
    }

    /// Variance of the mean of a flow's packets.
    pub(super) fn of_mean(&self, flow: usize, packets: f64) -> f64 {
        self.between[flow] + self.within[flow] / packets.max(1.0)
    }

    /// Variance, in one cell, of what a flow's packets there deviate from the mean of all its
    /// packets; `held` is how many the cells of the row hold.
    pub(super) fn jitter(&self, flow: usize, packets: f64, held: f64) -> f64 {
        self.within[flow] * packets * (1.0 - packets / held.max(1.0)).max(0.0)
    }

    /// Whether another round would change little.
    pub(super) fn is_close_to(&self, other: &Self) -> bool {
        let is_close = |one: f64, other: f64| (one - other).abs() <= SETTLED * one.max(other);
        is_close(self.common.between, other.common.between)
            && is_close(self.common.within, other.common.within)
            && moved(&self.between, &other.between) <= SETTLED
            && moved(&self.within, &other.within) <= SETTLED
    }

    /// The next guess, given the flows' means relative to the common one, and `K`⁻¹ times the
    /// cells' sums.
    pub(super) fn reweighted(
        &self,
        system: &System,
        shares: &Shares,
        means_ns: &[f64],
        inverted: &[[f64; 1]],
    ) -> Self {
        let certainty = Certainty::of(system, shares, self);
        let mut next = self.clone();
        if system.spreads() {
            next.fit_within(system, shares, &certainty, inverted);
        }
        next.fit_own(system, shares, means_ns, &certainty);
        next.fit_between(system, shares);
        let common = next.common.between;
        for (flow, between) in next.between.iter_mut().enumerate() {
            // Of the level: means of few packets vary more.
            let jitter = self.within[flow] / system.sizes[flow].packets.max(1.0);
            let part = *between / (*between + jitter).max(f64::MIN_POSITIVE);
            let square = means_ns[flow].powi(2) + certainty.of_flows[flow];
            next.squares[flow] = square;
            let square = part * (part * square + jitter);
            *between = (TAIL_FREEDOM * common + square) / (TAIL_FREEDOM + 1.0);
        }
        if !system.spreads() {
            // There a mean that is far off may be that of a flow whose size is.
            next.squares.clone_from(&next.between);
        }
        next
    }

    fn fit_within(
        &mut self,
        system: &System,
        shares: &Shares,
        certainty: &Certainty,
        inverted: &[[f64; 1]],
    ) {
        let flows = system.sizes.len();
        let (mut weights, mut squares) = (vec![0.0; flows], vec![0.0; flows]);
        let (mut pooled_weight, mut pooled_square) = (0.0, 0.0);
        for flow in 0..flows {
            for (member, packets, held) in spread_members(system, shares, flow) {
                let cell = member.cell as usize;
                let variance = certainty.of_cells[cell];
                if variance <= 0.0 {
                    continue;
                }
                let weight = self.jitter(flow, packets, held) / variance;
                let surprise = inverted[cell][0].powi(2) * variance;
                weights[flow] += weight;
                squares[flow] += weight * surprise;
                pooled_weight += weight;
                pooled_square += weight * surprise.min(SURPRISE_MAX);
            }
        }
        if pooled_weight < REPLICATES_MIN {
            return;
        }
        let step = |ratio: f64| ratio.clamp(1.0 / STEP_MAX, STEP_MAX);
        self.common.within *= step(pooled_square / pooled_weight).sqrt();
        for (flow, within) in self.within.iter_mut().enumerate() {
            let (weight, square) = (weights[flow], squares[flow]);
            let sum = POOLED_CELLS * self.common.within + *within * square;
            let next = sum / (POOLED_CELLS + weight);
            *within *= step(next / within.max(f64::MIN_POSITIVE)).sqrt();
        }
    }

    fn fit_own(
        &mut self,
        system: &System,
        shares: &Shares,
        means_ns: &[f64],
        certainty: &Certainty,
    ) {
        let cells = system.cells.len();
        let (mut own, mut first) = (vec![0.0; cells], vec![0.0; cells]);
        for (flow, (mean_ns, variance)) in means_ns.iter().zip(&certainty.of_flows).enumerate() {
            for index in system.members_of(flow) {
                let cell = system.members[index].cell as usize;
                let chance = shares.chance[index];
                let rest = 1.0 - chance / shares.chance_of_cells[cell].max(f64::MIN_POSITIVE);
                first[cell] += chance * mean_ns;
                own[cell] += chance * mean_ns.powi(2) + chance * rest.max(0.0) * variance;
            }
        }
        for cell in 0..cells {
            let chance = shares.chance_of_cells[cell];
            let explained = if chance > 0.0 { first[cell] * first[cell] / chance } else { 0.0 };
            own[cell] = (own[cell] - explained).max(0.0);
            own[cell] += self.common.within * shares.stray[cell];
            own[cell] += self.common.between * shares.loose[cell];
        }
        self.own = own;
    }

    /// Whether a flow is far from what is common to all.
    pub(super) fn is_unlike(&self, flow: usize) -> bool {
        self.between[flow] > UNLIKE * self.common.between
    }

    /// Fits what is common to all again, without the flows that have turned out to be unlike.
    fn fit_between(&mut self, system: &System, shares: &Shares) {
        self.common = self.common.refitted(system, shares, self);
        self.common.between = self.common.between.max(BETWEEN_MIN * self.common.within);
        if !system.spreads() {
            // There nothing but the size of a cell's sum tells jitter, and that of no single flow.
            self.within.fill(self.common.within);
        }
    }
}

/// How far apart two lists of variances are, relative to the first.
fn moved(one: &[f64], other: &[f64]) -> f64 {
    let apart: f64 = one.iter().zip(other).map(|(one, other)| (one - other).abs()).sum();
    apart / one.iter().sum::<f64>().max(f64::MIN_POSITIVE)
}

/// The members of a flow in rows where chance decides which of its packets a cell holds, with
/// their packets, and those of all cells of the row.
pub(super) fn spread_members<'a>(
    system: &'a System,
    shares: &'a Shares,
    flow: usize,
) -> impl Iterator<Item = (&'a Member, f64, f64)> {
    let size = system.sizes[flow].packets;
    let rows = system.rows_of(flow).filter(move |row| !system.is_whole(row));
    rows.flat_map(move |row| {
        let held: f64 = shares.packets[row.clone()].iter().sum();
        row.map(move |index| (&system.members[index], shares.packets[index], held.max(size)))
    })
}

//! How large a sketch must be, by section 3 of the paper as corrected.
//!
//! A large flow is measured well if in some row no other large flow falls into its cell. With n
//! flows of which the share P is large and C cells in all, z = nP/C is the load, and with R rows
//! of C/R cells each the flow survives with probability 1 - (zR)^R. (In the paper's first
//! formula R stands below the fraction's line; its later ones are right.)

use std::f64::consts::E;

use twixt_model::mix;

use super::LdsConfig;

/// How many rows to make of a given number of cells, and what comes of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RowPlan {
    /// The best number of rows before rounding: 1 / (e z), and at least 1.
    pub ideal_rows: f64,
    /// Rounded.
    pub rows: u32,
    /// Probability that a large flow meets no other large flow in some row.
    pub survival: f64,
}

impl RowPlan {
    /// The best for a load of `load` large flows per cell.
    #[must_use]
    pub fn for_load(load: f64) -> Self {
        let ideal_rows = (1.0 / (E * load)).max(1.0);
        let rows = ideal_rows.round() as u32;
        Self { ideal_rows, rows, survival: survival(load, f64::from(rows)) }
    }

    /// The number of rows and the largest load for which all but the share `missed` of large
    /// flows survive. Below 1/e of them several rows are better than one.
    #[must_use]
    pub fn for_survival(missed: f64) -> (Self, f64) {
        let ideal_rows = (-missed.ln()).max(1.0);
        let largest_load = if missed < 1.0 / E { 1.0 / (E * ideal_rows) } else { missed };
        let rows = ideal_rows.round() as u32;
        let plan = Self { ideal_rows, rows, survival: survival(largest_load, f64::from(rows)) };
        (plan, largest_load)
    }
}

fn survival(load: f64, rows: f64) -> f64 {
    1.0 - (load * rows).powf(rows).min(1.0)
}

/// The sampling rate for each row so that a flow that loses as many packets as given there keeps
/// usable cells: about one lost packet per cell, min(1, k / L). (Printed upside down.)
#[must_use]
pub fn sampling_for_losses(virtual_cells: u32, losses: &[u64]) -> Vec<f64> {
    let rate = |&lost: &u64| (f64::from(virtual_cells) / lost.max(1) as f64).min(1.0);
    losses.iter().map(rate).collect()
}

/// Sizes of flows: the share of flows that send more than x packets is (least / x)^shape.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pareto {
    /// The smaller, the more of the packets are in few flows.
    pub shape: f64,
    /// Packets of the smallest flow.
    pub least: f64,
}

impl Pareto {
    /// The share of flows that send more than so many packets.
    #[must_use]
    pub fn share_above(&self, packets: f64) -> f64 {
        (self.least / packets).powf(self.shape).min(1.0)
    }

    /// Fits the larger half of some flows, since these are what others collide with: its share of
    /// all flows exactly, its slope by maximum likelihood (Hill's estimator; half a packet is
    /// taken off, as sizes are whole numbers). `None` if there are too few, or all are alike.
    #[must_use]
    pub fn fit(sizes: &[u64]) -> Option<Self> {
        const FLOWS_MIN: usize = 20;
        let mut sorted = sizes.to_vec();
        sorted.sort_unstable();
        let from = *sorted.get(sorted.len() / 2)?;
        let larger = &sorted[sorted.partition_point(|&size| size < from)..];
        let least = from as f64 - 0.5;
        let logarithms: f64 = larger.iter().map(|&size| (size as f64 / least).ln()).sum();
        let alike = from == *sorted.last()?;
        if larger.len() < FLOWS_MIN || alike || least <= 0.0 {
            return None;
        }
        let shape = larger.len() as f64 / logarithms;
        let share = larger.len() as f64 / sorted.len() as f64;
        Some(Self { shape, least: least * share.powf(1.0 / shape) })
    }

    fn draw(&self, bits: u64) -> f64 {
        let uniform = ((bits >> 11) as f64 + 0.5) / 2_f64.powi(53);
        self.least * uniform.powf(-1.0 / self.shape)
    }
}

/// How far off the mean of a flow of so many packets is likely to be, by the emptiest of its cells
/// (the paper's estimator): the median share of other flows' packets there, times how much the
/// means of flows vary relative to their own mean. Estimating all flows at once does better.
#[must_use]
pub fn expected_error(
    flows: u64,
    sizes: &Pareto,
    config: &LdsConfig,
    packets: f64,
    variation: f64,
) -> f64 {
    let mut shares = drawn_shares(flows, sizes, config, packets);
    shares.sort_by(f64::total_cmp);
    shares[shares.len() / 2] * variation
}

/// The share of flows of so many packets of whose emptiest cell others have at most the share
/// `tolerable`. The paper's formula asks for no single flow that large; several smaller ones
/// together are as bad.
#[must_use]
pub fn expected_survival(
    flows: u64,
    sizes: &Pareto,
    config: &LdsConfig,
    packets: f64,
    tolerable: f64,
) -> f64 {
    let shares = drawn_shares(flows, sizes, config, packets);
    shares.iter().filter(|share| **share <= tolerable).count() as f64 / shares.len() as f64
}

/// The share of other flows' packets in the emptiest cell of a flow, for some flows. Collisions are
/// drawn rather than added up by formula: that of the paper counts large ones only.
fn drawn_shares(flows: u64, sizes: &Pareto, config: &LdsConfig, packets: f64) -> Vec<f64> {
    const DRAWS: u64 = 2_000;
    let spread = f64::from(config.virtual_cells());
    let meetings = flows as f64 * spread / f64::from(config.columns());
    let share = |draw: u64| {
        let cell = |(rate, cell): (&f64, u64)| {
            let others = drawn_packets(sizes, meetings, mix(draw << 16 | cell)) / spread;
            // A row that samples little is chosen if it surely has little in it.
            let all = others + packets / spread;
            (all + 2.0 * (all * (1.0 - rate) / rate).sqrt(), others / all)
        };
        let rates = config.sampling().iter();
        let rates =
            rates.flat_map(|rate| std::iter::repeat_n(rate, config.virtual_cells() as usize));
        let emptiest = rates.zip(0..).map(cell).min_by(|one, other| one.0.total_cmp(&other.0));
        emptiest.expect("there is a cell").1
    };
    (0..DRAWS).map(share).collect()
}

/// Packets of a Poisson number of flows.
fn drawn_packets(sizes: &Pareto, mean_flows: f64, seed: u64) -> f64 {
    /// Beyond this many, a few more or less make no difference.
    const FLOWS_MAX: f64 = 500.0;
    let (mut time, mut sum) = (0.0, 0.0);
    for number in 0_u64.. {
        let bits = mix(seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let uniform = ((bits >> 11) as f64 + 0.5) / 2_f64.powi(53);
        time -= uniform.ln();
        if time > mean_flows.min(FLOWS_MAX) {
            break;
        }
        sum += sizes.draw(mix(bits));
    }
    sum * (mean_flows / FLOWS_MAX).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sampling_rates_are_those_that_the_paper_uses() {
        assert_eq!(sampling_for_losses(5, &[500, 50, 10, 5]), [0.01, 0.1, 0.5, 1.0]);
        assert_eq!(sampling_for_losses(5, &[0, 2]), [1.0, 1.0]);
    }

    #[test]
    fn the_papers_example_of_sizing() {
        let plan = RowPlan::for_load(0.0875);
        assert_eq!(format!("{:.3}", plan.ideal_rows), "4.204");
        assert_eq!((plan.rows, format!("{:.4}", plan.survival)), (4, "0.9850".to_owned()));
        assert_eq!(format!("{:.4}", survival(0.0875, 1.0)), "0.9125");
        let crowded = RowPlan::for_load(0.5);
        assert_eq!((crowded.rows, crowded.survival), (1, 0.5));
    }

    #[test]
    fn a_wanted_survival_gives_rows_and_load() {
        let (plan, load) = RowPlan::for_survival(0.05);
        assert_eq!((plan.rows, format!("{load:.4}")), (3, "0.1228".to_owned()));
        assert_eq!(format!("{:.2}", load / 0.05), "2.46");
        assert!((1.0 - plan.survival - 0.05).abs() < 1e-3);
    }

    #[test]
    fn a_pareto_distribution_is_found_again() {
        let sizes = Pareto { shape: 1.05, least: 2.53 };
        let drawn: Vec<u64> = (0..20_000).map(|n| sizes.draw(mix(n)).round() as u64).collect();
        let fitted = Pareto::fit(&drawn).unwrap();
        assert!((fitted.shape - 1.05).abs() < 0.05, "{fitted:?}");
        // What sizing asks for: 4.36 % of flows send more than 50 packets.
        assert!((fitted.share_above(50.0) - 0.0436).abs() < 0.005, "{fitted:?}");
        assert_eq!(Pareto::fit(&[3; 100]), None);
        assert_eq!(Pareto::fit(&[1, 2, 3]), None);
    }

    /// Flows thrown into the cells of a sketch by other means than those of the plan: what others have
    /// in the emptiest cell of flows of 1000 packets.
    #[test]
    fn as_many_flows_survive_as_when_they_are_thrown() {
        let sizes = Pareto { shape: 1.05, least: 2.53 };
        for (columns, tolerable) in [(4_000, 0.05), (2_000, 0.1), (1_000, 0.2)] {
            let config = LdsConfig::new(columns, 1, &[1.0; 3]).unwrap();
            let planned = expected_survival(20_000, &sizes, &config, 1_000.0, tolerable);
            let (mut survived, mut thrown) = (0, 0);
            for round in 0..4_u64 {
                let bits = |number: u64| mix(mix(round << 40 | number));
                let mut cells = vec![[0.0; 3]; columns as usize];
                for flow in 0..20_000_u64 {
                    let size = sizes.draw(bits(flow << 8));
                    (0..3).for_each(|row| {
                        let place = bits(flow << 8 | (row as u64 + 1)) % u64::from(columns);
                        cells[place as usize][row] += size;
                    });
                }
                for flow in 0..500_u64 {
                    let in_row = |row: usize| {
                        let place = bits(1 << 36 | flow << 8 | row as u64) % u64::from(columns);
                        cells[place as usize][row]
                    };
                    let others = (0..3).map(in_row).fold(f64::INFINITY, f64::min);
                    survived += u32::from(others / (others + 1_000.0) <= tolerable);
                    thrown += 1;
                }
            }
            let share = f64::from(survived) / f64::from(thrown);
            println!("{columns} columns, {tolerable}: {planned:.3} planned, {share:.3} thrown");
            // Four standard errors of 2000 draws each, at a share of one half.
            assert!((planned - share).abs() < 4.0 * (0.5 / 2_000_f64).sqrt(), "{planned} {share}");
        }
    }

    #[test]
    fn errors_fall_with_flow_size_and_with_memory() {
        let sizes = Pareto { shape: 1.05, least: 2.53 };
        let error = |columns: u32, packets: f64| {
            let config = LdsConfig::new(columns, 1, &[1.0; 4]).unwrap();
            expected_error(146_000, &sizes, &config, packets, 1.0)
        };
        assert!(error(17_500, 100.0) > error(17_500, 1000.0));
        assert!(error(17_500, 1000.0) > error(35_000, 1000.0));
        assert_eq!(error(1_000_000, 1000.0), 0.0);
    }
}

//! Traffic of which everything is known, and the cells that it fills.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use rand_distr::{Bernoulli, Distribution, LogNormal, Pareto, Uniform};

use crate::joint::{Cell, Options, Size, Solution, System};

/// Flows by size: packets from `.0` up to but without `.1`.
pub(super) const CLASSES: [(f64, f64); 4] =
    [(1.0, 10.0), (10.0, 100.0), (100.0, 1000.0), (1000.0, f64::INFINITY)];

/// A row of cells: how many, over how many a flow's packets are spread, and how many packets of
/// a hundred are counted.
#[derive(Clone, Copy)]
pub(super) struct Row {
    pub(super) cells: usize,
    pub(super) spread: usize,
    pub(super) percent: u32,
}

impl Row {
    pub(super) fn share(self) -> f64 {
        f64::from(self.percent) / 100.0 / self.spread as f64
    }
}

/// Flows, and the cells that counted their packets.
pub(super) struct Traffic {
    pub(super) sizes: Vec<f64>,
    pub(super) means_ns: Vec<f64>,
    pub(super) cells: Vec<Option<Cell>>,
    rows: Vec<Row>,
    /// Per flow and row, the first of its cells.
    homes: Vec<Vec<usize>>,
}

const REFERENCE_NS: f64 = 500_000.0;

impl Traffic {
    /// Heavy-tailed sizes; mean delays around 200 us and 1500 us; packets vary by about half of
    /// the mean of their flow.
    pub(super) fn new(flows: usize, rows: &[Row], seed: u64) -> Self {
        println!("seed {seed}");
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut traffic = Self::empty(rows);
        let sizes = Pareto::new(2.53, 1.05).unwrap();
        let (slow, level) = (Bernoulli::new(0.5).unwrap(), LogNormal::new(0.0, 0.3).unwrap());
        for _ in 0..flows {
            let size = f64::min(sizes.sample(&mut rng), 200_000.0).floor();
            let middle_ns = if slow.sample(&mut rng) { 1_500_000.0 } else { 200_000.0 };
            traffic.send(size, middle_ns * level.sample(&mut rng), &mut rng);
        }
        for cell in traffic.cells.iter_mut().flatten() {
            cell.delay_sum_ns -= REFERENCE_NS * cell.packets;
        }
        traffic
    }

    fn empty(rows: &[Row]) -> Self {
        let cells = rows.iter().enumerate().flat_map(|(index, row)| {
            let cell = Cell { row: index as u32, packets: 0.0, delay_sum_ns: 0.0 };
            std::iter::repeat_n(Some(cell), row.cells)
        });
        let cells = cells.collect();
        Self { sizes: vec![], means_ns: vec![], cells, rows: rows.to_vec(), homes: vec![] }
    }

    fn send(&mut self, size: f64, level_ns: f64, rng: &mut ChaCha8Rng) {
        let homes: Vec<usize> =
            self.rows.iter().map(|row| Uniform::new(0, row.cells).unwrap().sample(rng)).collect();
        let jitter = LogNormal::new(-0.125 * 0.893, 0.4724).unwrap();
        let percent = Uniform::new(0, 100).unwrap();
        let mut sum_ns = 0.0;
        for _ in 0..size as u64 {
            let delay_ns: f64 = (level_ns * jitter.sample(rng)).round();
            sum_ns += delay_ns;
            let mut start = 0;
            for (row, &home) in self.rows.iter().zip(&homes) {
                let offset = Uniform::new(0, row.spread).unwrap().sample(rng);
                if percent.sample(rng) < row.percent {
                    let cell = &mut self.cells[start + (home + offset) % row.cells];
                    let cell = cell.as_mut().expect("all cells are usable while they fill");
                    cell.packets += 1.0;
                    cell.delay_sum_ns += delay_ns;
                }
                start += row.cells;
            }
        }
        self.sizes.push(size);
        self.means_ns.push(sum_ns / size);
        self.homes.push(homes);
    }

    /// Where a flow's packets may be, with their shares.
    pub(super) fn places(&self, flow: usize) -> Vec<(usize, f64)> {
        let mut places = Vec::new();
        let mut start = 0;
        for (row, home) in self.rows.iter().zip(&self.homes[flow]) {
            let cells = (0..row.spread).map(|offset| start + (home + offset) % row.cells);
            places.extend(cells.map(|cell| (cell, row.share())));
            start += row.cells;
        }
        places
    }

    /// With all sizes known.
    pub(super) fn system(&self) -> System {
        self.system_with(&|_, packets| Some(Size::known(packets)))
    }

    /// With sizes as they seem to the caller; flows that it does not know are left out.
    pub(super) fn system_with(&self, seem: &dyn Fn(usize, f64) -> Option<Size>) -> System {
        let mut system = System::new(self.cells.clone());
        for (flow, &packets) in self.sizes.iter().enumerate() {
            if let Some(size) = seem(flow, packets) {
                system.add_flow(size, self.places(flow));
            }
        }
        system
    }

    pub(super) fn solve(&self) -> Vec<Option<Solution>> {
        self.system().solve(&Options::default())
    }

    /// The mean of the cell that counted least: the best that one flow alone can do.
    pub(super) fn smallest_cell(&self, flow: usize) -> Option<Solution> {
        let places = self.places(flow);
        let cells = places.iter().filter_map(|&(cell, _)| self.cells[cell]);
        let cells = cells.filter(|cell| cell.packets > 0.0);
        let cell = cells.min_by(|one, other| one.packets.total_cmp(&other.packets))?;
        let mean_offset_ns = cell.delay_sum_ns / cell.packets;
        Some(Solution {
            mean_offset_ns,
            half_width_ns: 0.0,
            unknown: 0.0,
            sharpened: false,
            misfit: 1.0,
            within: 0.0,
        })
    }

    /// Per class of sizes.
    pub(super) fn scores(&self, solutions: &[Option<Solution>]) -> Vec<Score> {
        let class = |&(from, to): &(f64, f64)| {
            let flows =
                (0..self.sizes.len()).filter(|&flow| (from..to).contains(&self.sizes[flow]));
            let answered = flows.filter_map(|flow| Some((flow, solutions[flow]?)));
            self.score(&answered.collect::<Vec<_>>())
        };
        CLASSES.iter().map(class).collect()
    }

    fn score(&self, answered: &[(usize, Solution)]) -> Score {
        let miss = |&(flow, solution): &(usize, Solution)| {
            (solution.mean_offset_ns + REFERENCE_NS - self.means_ns[flow]).abs()
        };
        let mut errors: Vec<f64> =
            answered.iter().map(|answer| miss(answer) / self.means_ns[answer.0]).collect();
        errors.sort_by(f64::total_cmp);
        let covered = answered.iter().filter(|answer| miss(answer) <= answer.1.half_width_ns);
        let square_sum: f64 = answered.iter().map(|answer| miss(answer).powi(2)).sum();
        Score {
            flows: answered.len(),
            rms_error_ns: (square_sum / answered.len().max(1) as f64).sqrt(),
            median_error: errors.get(errors.len() / 2).copied().unwrap_or(0.0),
            coverage: covered.count() as f64 / answered.len().max(1) as f64,
        }
    }
}

/// How good the answers for a class of flows are.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Score {
    pub(super) flows: usize,
    /// Relative to the flow's mean delay.
    pub(super) median_error: f64,
    /// Root of the mean square.
    pub(super) rms_error_ns: f64,
    /// Part of the flows whose interval holds the truth.
    pub(super) coverage: f64,
}

impl Score {
    /// Means of both, weighted by flows.
    pub(super) fn add(&mut self, other: Self) {
        let part = other.flows as f64 / (self.flows + other.flows).max(1) as f64;
        self.flows += other.flows;
        self.median_error += part * (other.median_error - self.median_error);
        self.rms_error_ns += part * (other.rms_error_ns - self.rms_error_ns);
        self.coverage += part * (other.coverage - self.coverage);
    }
}

//! Intervals that hold although sizes are estimated, and nobody knows which other flows there are.
//!
//! Flows that were implanted to judge sizes are given delays too: means as listed flows have them, as far
//! as those are known, and jitter. All flows are solved again with them. How far off their means are, relative
//! to the intervals, is how far off those of listed flows of such sizes are.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use rand_distr::{Distribution, StandardNormal};

use super::sizes::{CLASSES, class, quantiles};
use super::solve::{Solved, solve};
use super::{Implants, Layout, Sketch, Table};
use crate::interval::Z95;
use crate::joint::Options;
use crate::question::KnownFlow;
use crate::sums::Usable;

const SEED: u64 = 0x6361_7574_696f_6e00;

/// With fewer implants that are found again there is no telling.
const JUDGED_MIN: usize = 20;

/// This part of the implants is held by intervals: more than is promised, since flows that are listed are
/// not quite like implants.
const HELD: f64 = 0.97;

/// How long intervals must be.
pub(crate) struct Caution {
    /// Half of that at least, by class of sizes.
    half_widths_ns: Vec<f64>,
}

impl Caution {
    /// What implants among these flows show; `None` without any.
    pub(crate) fn of<S: Sketch>(
        table: &Table<'_, S>,
        flows: &[KnownFlow],
        solved: &Solved,
        batches: &[Implants],
        options: &Options,
    ) -> Option<Self> {
        let mut classes: Vec<Vec<(f64, f64)>> = vec![Vec::new(); CLASSES];
        for implants in batches {
            let (cells, means) = implanted(table, solved, implants);
            let Table { upstream, downstream, reference_ns, .. } = *table;
            let table = &Table { upstream, downstream, reference_ns, cells };
            let all = all_flows(flows, implants);
            let again = solve(table, &all, &implants.sizes, solved.clumping, options);
            let found = again.solutions[flows.len()..].iter().zip(&implants.sizes[flows.len()..]);
            for ((implant, mean_ns), (solution, size)) in
                implants.flows.iter().zip(means).zip(found)
            {
                let solution =
                    solution.filter(|found| size.seen && found.fits() && implant.load > 0.0);
                let (Some(solution), Some(mean_ns)) = (solution, mean_ns) else { continue };
                let off_ns = (again.common_ns + solution.mean_offset_ns - mean_ns).abs();
                let is_held = off_ns <= solution.half_width_ns;
                let missing_ns = if is_held { 0.0 } else { off_ns };
                classes[class(size.load)].push((missing_ns, implant.stands_for));
            }
        }
        let judged = classes.iter().map(Vec::len).sum::<usize>();
        let half_widths_ns = quantiles(&mut classes, HELD).into_iter().map(|width| match judged {
            // Nobody knows how long intervals must be.
            0..JUDGED_MIN => f64::INFINITY,
            _ => width,
        });
        let half_widths_ns = half_widths_ns.collect();
        (!batches.is_empty()).then_some(Self { half_widths_ns })
    }

    /// Half the interval of a flow that seems to have sent so much, which the equations say is so long; `None` if there
    /// is no telling.
    pub(crate) fn half_width_ns(&self, load: f64, stated_ns: f64) -> Option<f64> {
        Some(stated_ns.max(self.half_widths_ns[class(load)])).filter(|width| width.is_finite())
    }
}

fn all_flows(listed: &[KnownFlow], implants: &Implants) -> Vec<KnownFlow> {
    let implants = implants
        .flows
        .iter()
        .map(|implant| KnownFlow { hash: implant.place.flow, ..listed[implant.like] });
    listed.iter().copied().chain(implants).collect()
}

/// The cells with the implants' packets in them, and the mean delays of these.
fn implanted<S: Sketch>(
    table: &Table<'_, S>,
    solved: &Solved,
    implants: &Implants,
) -> (Vec<Option<Usable>>, Vec<Option<f64>>) {
    let config = table.config();
    let mut rng = ChaCha8Rng::seed_from_u64(SEED);
    let mut normal = move || -> f64 { StandardNormal.sample(&mut rng) };
    let mut cells = table.cells.clone();
    let means = implants.flows.iter().map(|implant| {
        let like = solved.solutions[implant.like]?;
        // What the equations leave unknown of the other flow, this one has.
        let offset_ns = like.mean_offset_ns + normal() * like.half_width_ns / Z95;
        let mean_ns = solved.common_ns + offset_ns;
        let mut counts = implant.counts.chunks_exact(config.spread() as usize);
        for row in 0..config.rows() {
            let counts = counts.next()?;
            let deviations: Vec<f64> =
                counts.iter().map(|packets| (like.within * packets).sqrt() * normal()).collect();
            // Together they deviate by nothing from the mean of all.
            let (all, held) = (deviations.iter().sum::<f64>(), counts.iter().sum::<f64>());
            let places = config.cells_of(implant.place, row).zip(counts).zip(deviations);
            for ((cell, &packets), deviation_ns) in
                places.filter(|((_, packets), _)| **packets > 0.0)
            {
                let Some(cell) = &mut cells[cell] else { continue };
                let sum_ns = mean_ns * packets + deviation_ns - all * packets / held;
                cell.packets = cell.packets.saturating_add(packets as u64);
                cell.delay_sum_ns = cell.delay_sum_ns.saturating_add(sum_ns as i64);
            }
        }
        Some(mean_ns)
    });
    let means = means.collect();
    (cells, means)
}

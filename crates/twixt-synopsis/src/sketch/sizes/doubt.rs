//! How far off estimated sizes are.
//!
//! That they explain all counts says little: many sizes do. So the estimate is made again for
//! flows whose sizes are known: the same sizes, dealt out among the flows again, and counted as a
//! sketch would have. How far off it is there, relative to the packets of other flows in a flow's
//! cells, it is here too.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use rand_distr::{Binomial, Distribution};
use twixt_model::mix;

use super::unlisted::Unlisted;
use super::{Layout, Members, Size};

const SEED: u64 = 0x646f_7562_7400;
/// Quantile of the normal distribution for a two-sided 95 % interval.
const Z95: f64 = 1.959_963_984_540_054;
/// Fewer flows of a size say nothing about its error.
const FLOWS_MIN: usize = 20;
const CLASSES: usize = 32;

/// Fills in the errors of sizes that are not known.
pub(super) fn doubt<L: Layout>(
    members: &Members<'_, L>,
    counts: &[f64],
    unlisted: &Unlisted,
    sizes: &mut [Size],
) {
    let dealt = dealt(sizes);
    let made_up = counted(members, &dealt, sizes, unlisted.made_up(&members.kept, SEED));
    let mut found: Vec<Size> = sizes.to_vec();
    members.believe(&made_up, unlisted, &mut found);
    let ratios = ratios(members, &made_up, &dealt, &found);
    for (size, cells) in sizes.iter_mut().zip(members.flows()).filter(|(size, _)| !size.known) {
        size.error = ratios[class(size.load)] * others(members, cells, counts, size.load);
    }
}

/// The sizes that are not known, dealt out again.
fn dealt(sizes: &[Size]) -> Vec<f64> {
    let unknown: Vec<usize> = (0..sizes.len()).filter(|&flow| !sizes[flow].known).collect();
    let mut order = unknown.clone();
    order.sort_by_key(|&flow| mix(flow as u64 ^ SEED));
    let mut dealt: Vec<f64> = sizes.iter().map(|size| size.load.round()).collect();
    for (&to, &from) in unknown.iter().zip(&order) {
        dealt[to] = sizes[from].load.round();
    }
    dealt
}

/// What the cells count of flows of such sizes, besides `counts` of unlisted flows.
fn counted<L: Layout>(
    members: &Members<'_, L>,
    dealt: &[f64],
    sizes: &[Size],
    mut counts: Vec<f64>,
) -> Vec<f64> {
    let mut rng = ChaCha8Rng::seed_from_u64(SEED);
    for ((&load, size), cells) in dealt.iter().zip(sizes).zip(members.flows()) {
        for (cells, rate) in members.rows(cells) {
            let mut left = draw(load / size.weight, rate, &mut rng);
            for (done, &cell) in cells.iter().enumerate() {
                let here = draw(left, 1.0 / (cells.len() - done) as f64, &mut rng);
                counts[cell as usize] += here * size.weight;
                left -= here;
            }
        }
    }
    counts
}

/// How many of so many packets meet a chance.
fn draw(packets: f64, chance: f64, rng: &mut ChaCha8Rng) -> f64 {
    match Binomial::new(packets as u64, chance) {
        Ok(binomial) if chance < 1.0 => binomial.sample(rng) as f64,
        _ => packets,
    }
}

/// Packets of other flows in a flow's cells, in the row that has the fewest of them, and chance.
fn others<L: Layout>(members: &Members<'_, L>, cells: &[u32], counts: &[f64], packets: f64) -> f64 {
    let rows = members.rows(cells).map(|(cells, rate)| {
        let counted: f64 = cells.iter().map(|&cell| counts[cell as usize]).sum();
        (counted / rate - packets).max(0.0).hypot((packets * (1.0 - rate) / rate).sqrt())
    });
    rows.fold(f64::INFINITY, f64::min)
}

fn class(packets: f64) -> usize {
    (packets.max(1.0).log2() as usize / 2).min(CLASSES - 1)
}

/// For each class of sizes: standard error over packets of others, so that 95 % are within.
fn ratios<L: Layout>(
    members: &Members<'_, L>,
    counts: &[f64],
    dealt: &[f64],
    found: &[Size],
) -> Vec<f64> {
    let mut classes: Vec<Vec<f64>> = vec![Vec::new(); CLASSES];
    let flows = found.iter().zip(dealt).zip(members.flows());
    for ((size, &packets), cells) in flows.filter(|((size, _), _)| !size.known) {
        let others = others(members, cells, counts, size.load).max(1e-9);
        let off = (size.load - packets).abs();
        // Sizes are whole numbers: what rounding takes away is not an error.
        classes[class(size.load)].push((off - 0.5 * size.weight).max(0.0) / others);
    }
    let mut ratio = 1.0;
    let ratios = classes.iter_mut().map(|offs| {
        offs.sort_by(f64::total_cmp);
        if offs.len() >= FLOWS_MIN {
            ratio = offs[offs.len() * 95 / 100] / Z95;
        }
        ratio
    });
    ratios.collect()
}

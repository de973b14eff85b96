//! How far off estimated sizes are.
//!
//! That they explain all counts says little: many sizes do. So the estimate is made again for
//! flows whose sizes are known: the same sizes, dealt out among the flows again, and counted as a
//! sketch would have. How far off it is there, relative to the packets of other flows in a flow's
//! cells, it is here too.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use rand_distr::{Binomial, Distribution, Gamma};
use twixt_model::mix;

use super::unlisted::Unlisted;
use super::{Layout, Members, Size};

const SEED: u64 = 0x646f_7562_7400;
/// Quantile of the normal distribution for a two-sided 95 % interval.
const Z95: f64 = 1.959_963_984_540_054;
/// Fewer flows of a size say nothing about its error.
const FLOWS_MIN: usize = 20;
pub(crate) const CLASSES: usize = 32;

/// Fills in the errors of sizes that are not known.
pub(super) fn doubt<L: Layout>(
    members: &Members<'_, L>,
    counts: &[f64],
    unlisted: &Unlisted,
    clumping: f64,
    sizes: &mut [Size],
) {
    let dealt = dealt(sizes);
    let made_up = unlisted.made_up(&members.kept, SEED);
    let made_up = counted(members, &dealt, sizes, clumping, made_up);
    let mut found: Vec<Size> = sizes.to_vec();
    members.believe(&made_up, unlisted, &mut found, |size| size.weight);
    if clumping > 0.0 {
        members.believe_clumped(&made_up, unlisted, &mut found, clumping, |size| size.weight);
    }
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
    clumping: f64,
    mut counts: Vec<f64>,
) -> Vec<f64> {
    let mut rng = ChaCha8Rng::seed_from_u64(SEED);
    for ((&load, size), cells) in dealt.iter().zip(sizes).zip(members.flows()) {
        let drawn = drawn(members, cells, load / size.weight, clumping, &mut rng);
        for (&cell, packets) in cells.iter().zip(drawn) {
            counts[cell as usize] += packets * size.weight;
        }
    }
    counts
}

/// How many of a flow's packets chance puts into each of its cells, row by row.
pub(super) fn drawn<L: Layout>(
    members: &Members<'_, L>,
    cells: &[u32],
    packets: f64,
    clumping: f64,
    rng: &mut ChaCha8Rng,
) -> Vec<f64> {
    let mut drawn = Vec::with_capacity(cells.len());
    for (cells, rate) in members.rows(cells) {
        let mut left = draw(packets, rate, rng);
        let weights = weights(cells.len(), clumping, rng);
        let mut rest: f64 = weights.iter().sum();
        for weight in weights {
            let here = draw(left, (weight / rest).min(1.0), rng);
            drawn.push(here);
            (left, rest) = (left - here, rest - weight);
        }
    }
    drawn
}

/// How a flow's packets are spread over so many cells: evenly, or in clumps.
fn weights(cells: usize, clumping: f64, rng: &mut ChaCha8Rng) -> Vec<f64> {
    match Gamma::new(clumping.recip(), 1.0) {
        Ok(gamma) if clumping > 0.0 => {
            (0..cells).map(|_| gamma.sample(rng).max(f64::MIN_POSITIVE)).collect()
        }
        _ => vec![1.0; cells],
    }
}

/// How many of so many packets meet a chance.
fn draw(packets: f64, chance: f64, rng: &mut ChaCha8Rng) -> f64 {
    match Binomial::new(packets as u64, chance) {
        Ok(binomial) if chance < 1.0 => binomial.sample(rng) as f64,
        _ => packets,
    }
}

/// Packets of other flows in a flow's cells, in the row that has the fewest of them, and chance.
pub(super) fn others<L: Layout>(
    members: &Members<'_, L>,
    cells: &[u32],
    counts: &[f64],
    packets: f64,
) -> f64 {
    let rows = members.rows(cells).map(|(cells, rate)| {
        let counted: f64 = cells.iter().map(|&cell| counts[cell as usize]).sum();
        (counted / rate - packets).max(0.0).hypot((packets * (1.0 - rate) / rate).sqrt())
    });
    rows.fold(f64::INFINITY, f64::min)
}

pub(crate) fn class(packets: f64) -> usize {
    (packets.max(1.0).log2() as usize / 2).min(CLASSES - 1)
}

/// For each class of sizes: standard error over packets of others, so that 95 % are within.
fn ratios<L: Layout>(
    members: &Members<'_, L>,
    counts: &[f64],
    dealt: &[f64],
    found: &[Size],
) -> Vec<f64> {
    let mut classes: Vec<Vec<(f64, f64)>> = vec![Vec::new(); CLASSES];
    let flows = found.iter().zip(dealt).zip(members.flows());
    for ((size, &packets), cells) in flows.filter(|((size, _), _)| !size.known) {
        let others = others(members, cells, counts, size.load);
        classes[class(size.load)].push((ratio(size, packets, others), 1.0));
    }
    quantiles(&mut classes, 0.95).into_iter().map(|ratio| ratio / Z95).collect()
}

/// How far a size is from what it should be, over packets of others.
pub(super) fn ratio(size: &Size, load: f64, others: f64) -> f64 {
    // Sizes are whole numbers: what rounding takes away is not an error.
    ((size.load - load).abs() - 0.5 * size.weight).max(0.0) / others.max(1e-9)
}

/// Of values, each with what it counts for, class by class: what this share of them stays below. Where a class
/// has few, that of the next smaller one that has enough, or of all classes together; and
/// [`UNTOLD`] times the quantile of a normal distribution if those are few as well.
pub(crate) fn quantiles(classes: &mut [Vec<(f64, f64)>], share: f64) -> Vec<f64> {
    let mut all: Vec<(f64, f64)> = classes.iter().flatten().copied().collect();
    let mut last = quantile(&mut all, share).unwrap_or(UNTOLD * Z95);
    let quantiles = classes.iter_mut().map(|values| {
        last = quantile(values, share).unwrap_or(last);
        last
    });
    quantiles.collect()
}

/// An error that nothing is known of is as large as all packets of others.
const UNTOLD: f64 = 1.0;

fn quantile(values: &mut [(f64, f64)], share: f64) -> Option<f64> {
    values.sort_by(|one, other| one.0.total_cmp(&other.0));
    let all: f64 = values.iter().map(|(_, weight)| weight).sum();
    let mut below = 0.0;
    let reaches = |&&(_, weight): &&(f64, f64)| {
        below += weight;
        below > share * all
    };
    let found = values.iter().find(reaches).map(|(value, _)| *value);
    found.filter(|_| values.len() >= FLOWS_MIN)
}

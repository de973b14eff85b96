//! Flows of known sizes among those that are not known.
//!
//! Where a list may leave flows out, or name some that sent nothing, there is no telling what else is in
//! the cells. So flows are implanted: names that no flow has, whose packets are added to what the cells
//! counted. Hashes deal them out as they deal out real flows, so that their sizes are estimated as well,
//! or as badly, as those of listed flows, whatever else is in the cells. Those that are implanted
//! without a packet show how many a flow seems to have sent that sent none.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use twixt_model::{FlowHash, mix};

use super::doubt::{self, CLASSES, class, others};
use super::unlisted::Unlisted;
use super::{Layout, Members, Place, Size};
use crate::interval::Z95;
use crate::question::KnownFlow;

const SEED: u64 = 0x696d_706c_616e_7400;
/// At a time, this part of the listed flows is implanted, so that they are hardly more crowded, ...
const PART: usize = 8;
/// ... and these at least, ...
const FLOWS_MIN: usize = 16;
/// ... until there were so many, ...
const FLOWS_WANTED: usize = 200;
/// ... or so many batches, ...
const BATCHES_MAX: usize = 16;
/// ... each of which takes as long as all listed flows, of which so many are looked at.
const MEMBERS_MAX: usize = 20_000;
/// First, these are implanted without a packet.
pub(crate) const SILENT_WANTED: usize = 160;
/// Of the flows that are taken for seen, at most this part may have sent nothing.
const MISTAKEN_MAX: f64 = 0.05;
/// Other flows may share several of a flow's cells: so many are taken for independent at most.
pub(crate) const CELLS_MAX: i32 = 3;
/// Implants have at most this part of all packets, ...
const PACKETS_MAX: f64 = 0.1;
/// ... and one of them so much smaller a part of that.
const LARGE: usize = 4;

/// Flows that are implanted at a time.
pub(crate) struct Implants {
    pub(crate) flows: Vec<Implant>,
    /// Sizes of listed flows, and then of these, as they are estimated if these are in the cells.
    pub(crate) sizes: Vec<Size>,
    /// Of each implant, how far off its size is, over packets of others.
    ratios: Vec<f64>,
    /// Of all of them, packets of others in their cells.
    others: Vec<f64>,
}

/// A flow that is implanted.
pub(crate) struct Implant {
    pub(crate) place: Place,
    /// The listed flow that it is like.
    pub(crate) like: usize,
    /// Packets that it sent, times its weight.
    pub(crate) load: f64,
    weight: f64,
    /// Listed flows that it stands for.
    pub(crate) stands_for: f64,
    /// What each of its cells counted of it, row by row.
    pub(crate) counts: Vec<f64>,
}

/// Implants flows, fills in the errors of sizes that are not known, and which flows were seen. `counts`
/// are those of all cells.
pub(super) fn judge<L: Layout>(
    members: &Members<'_, L>,
    flows: &[KnownFlow],
    counts: &[f64],
    unlisted: &Unlisted,
    sizes: &mut [Size],
) -> Vec<Implants> {
    let before = sizes.to_vec();
    let mut templates = Templates::of(members.config, counts, &before);
    let batches_max = (MEMBERS_MAX / flows.len().max(1)).clamp(2, BATCHES_MAX);
    let batches = |templates: &Templates<'_>, at_once: usize, wanted: usize| {
        let (mut batches, mut implanted) = (Vec::new(), 0);
        for number in 0..batches_max {
            if implanted >= wanted {
                break;
            }
            let mut implants = Implants::new(templates, flows, number * at_once, at_once);
            if implants.flows.is_empty() {
                break;
            }
            implanted += implants.flows.len();
            implants.estimate(members.config, flows, counts, unlisted, templates);
            batches.push(implants);
        }
        batches
    };
    let at_once = (flows.len() / PART).max(FLOWS_MIN);
    let silent = batches(&templates, at_once.min(SILENT_WANTED), SILENT_WANTED);
    templates.silent = silent_loads(&silent, flows.len());
    let kept: Vec<f64> = members.kept.iter().map(|&cell| counts[cell as usize]).collect();
    // Where no silent flow seems to have sent anything, no other flow is in the way, listed or not.
    if templates.silent.last().is_none_or(|&most| most < 0.5) {
        doubt::doubt(members, &kept, unlisted, 0.0, sizes);
        let unknown = sizes.iter_mut().filter(|size| !size.known);
        unknown.for_each(|size| size.seen = size.packets() >= 0.5);
        return Vec::new();
    }
    let Templates { listed, silent, cells, .. } = &templates;
    templates.least = least_seen(listed, silent, *cells).max(0.5);
    templates.keep_seen();
    let wanted = if templates.classes.is_empty() { 0 } else { FLOWS_WANTED };
    let mut batches = batches(&templates, at_once, wanted);
    let ratios = ratios(&batches, flows.len());
    for Implants { sizes, others, .. } in &mut batches {
        let sizes = sizes.iter_mut().zip(others).filter(|(size, _)| !size.known);
        sizes.for_each(|(size, others)| size.error = ratios[class(size.load)] * *others);
    }
    templates.correct(sizes.iter_mut());
    for (size, cells) in sizes.iter_mut().zip(members.flows()).filter(|(size, _)| !size.known) {
        size.error = ratios[class(size.load)] * others(members, cells, &kept, size.load);
    }
    batches
}

/// Listed flows to make implants like, by class of size.
struct Templates<'a> {
    sizes: &'a [Size],
    classes: Vec<Vec<usize>>,
    /// What a batch may have in packets, times their weights.
    load_max: f64,
    /// Cells of a flow that are taken for independent.
    cells: i32,
    /// Packets that listed flows seem to have sent, in order.
    listed: Vec<f64>,
    /// Packets that silent flows seem to have sent, in order; none as long as that is not known.
    silent: Vec<f64>,
    /// A flow that was seen seems to have sent as much as this at least.
    least: f64,
}

impl<'a> Templates<'a> {
    fn of<L: Layout>(config: &L, counts: &[f64], sizes: &'a [Size]) -> Self {
        let mut classes: Vec<Vec<usize>> = vec![Vec::new(); CLASSES];
        for (flow, size) in sizes.iter().enumerate().filter(|(_, size)| !size.known) {
            classes[class(size.load)].push(flow);
        }
        classes.retain(|class| !class.is_empty());
        let rates: f64 = config.sampling().iter().sum();
        let all = counts.iter().sum::<f64>() / rates.max(f64::MIN_POSITIVE);
        let cells = (config.rows() as i32).saturating_mul(config.spread() as i32).min(CELLS_MAX);
        let listed = sizes.iter().filter(|size| !size.known).map(Size::packets);
        let mut listed: Vec<f64> = listed.collect();
        listed.sort_by(f64::total_cmp);
        Self {
            sizes,
            classes,
            load_max: PACKETS_MAX * all,
            cells,
            listed,
            silent: Vec::new(),
            least: 0.0,
        }
    }

    /// From here on, only flows that were seen are templates.
    fn keep_seen(&mut self) {
        for class in &mut self.classes {
            class.retain(|&flow| self.sizes[flow].packets() >= self.least);
        }
        self.classes.retain(|class| !class.is_empty());
    }

    /// Makes sizes that are not known right, and says which flows were seen.
    fn correct<'s>(&self, sizes: impl Iterator<Item = &'s mut Size>) {
        for size in sizes.filter(|size| !size.known) {
            let packets = without_others(&self.listed, &self.silent, size.packets());
            size.seen = size.packets() >= self.least && packets >= 0.5;
            size.load = packets.max(1.0) * size.weight;
        }
    }
}

impl Implants {
    /// So many, numbered from `first` on, of all classes in turn; silent ones first.
    fn new(templates: &Templates<'_>, flows: &[KnownFlow], first: usize, count: usize) -> Self {
        let mut left = templates.load_max;
        let is_silent = templates.silent.is_empty();
        let implant = |number: usize| {
            let class = &templates.classes[number % templates.classes.len()];
            let chance = mix(SEED + number as u64);
            let like = class[(chance % class.len() as u64) as usize];
            let weight = templates.sizes[like].weight;
            let load = match is_silent {
                true => 0.0,
                false => {
                    let packets = templates.sizes[like].packets();
                    without_others(&templates.listed, &templates.silent, packets).round() * weight
                }
            };
            // Smaller ones are harder to find.
            let load = load.min((templates.load_max / LARGE as f64).floor()).min(left);
            left -= load;
            let hash = FlowHash(mix(SEED ^ mix(2 * number as u64 + u64::from(is_silent))));
            let place = Place { flow: hash, ..Place::of(&flows[like]) };
            let stands_for = class.len() as f64;
            Implant { place, like, load, weight, stands_for, counts: Vec::new() }
        };
        let flows = (first..first + count).map(implant);
        let flows = flows.filter(|implant| is_silent || implant.load > 0.0).collect();
        Self { flows, sizes: Vec::new(), ratios: Vec::new(), others: Vec::new() }
    }

    /// Estimates all sizes with these in the cells.
    fn estimate<L: Layout>(
        &mut self,
        config: &L,
        flows: &[KnownFlow],
        counts: &[f64],
        unlisted: &Unlisted,
        templates: &Templates<'_>,
    ) {
        let places = self.flows.iter().map(|implant| implant.place);
        let places = flows.iter().map(Place::of).chain(places);
        let among = Members::new(config, places, counts.len());
        let mut counted: Vec<f64> = among.kept.iter().map(|&cell| counts[cell as usize]).collect();
        self.put(&among, flows.len(), &mut counted);
        self.sizes = templates.sizes.to_vec();
        self.sizes.extend(self.flows.iter().map(|implant| Size {
            load: 0.0,
            error: 0.0,
            known: false,
            seen: true,
            weight: implant.weight,
        }));
        among.believe(&counted, unlisted, &mut self.sizes, |_| 0.0);
        if let Some(&most) = templates.silent.last() {
            let found: Vec<f64> = self.sizes[flows.len()..].iter().map(Size::packets).collect();
            templates.correct(self.sizes.iter_mut());
            // They may be smaller than all flows that were seen.
            for (size, found) in self.sizes[flows.len()..].iter_mut().zip(found) {
                size.seen |= found > most;
            }
        }
        let all = self.sizes.iter().zip(among.flows());
        self.others = all.map(|(size, cells)| others(&among, cells, &counted, size.load)).collect();
        let found = self.flows.iter().zip(&self.sizes[flows.len()..]);
        let found = found.zip(&self.others[flows.len()..]);
        self.ratios = found
            .map(|((implant, size), others)| doubt::ratio(size, implant.load, *others))
            .collect();
    }

    /// Adds their packets to what the cells counted.
    fn put<L: Layout>(&mut self, among: &Members<'_, L>, flows: usize, counted: &mut [f64]) {
        let mut rng = ChaCha8Rng::seed_from_u64(SEED ^ self.flows[0].place.flow.0);
        for (implant, cells) in self.flows.iter_mut().zip(among.flows().skip(flows)) {
            implant.counts =
                doubt::drawn(among, cells, implant.load / implant.weight, 0.0, &mut rng);
            for (&cell, packets) in cells.iter().zip(&mut implant.counts) {
                *packets *= implant.weight;
                counted[cell as usize] += *packets;
            }
        }
    }
}

/// A flow that was seen seems to have sent as much as this at least, given what listed flows and silent ones
/// seem to have sent, in order. `cells` of a flow are taken for independent. (Benjamini, Hochberg:
/// "Controlling the False Discovery Rate", 1995, with silent flows in place of a distribution.)
pub(crate) fn least_seen(listed: &[f64], silent: &[f64], cells: i32) -> f64 {
    let all = listed.len() as f64;
    let is_enough = |(place, packets): &(usize, f64)| {
        chance_of_silent(silent, *packets, cells) * all <= MISTAKEN_MAX * (place + 1) as f64
    };
    let mut largest_first = listed.iter().rev().copied().enumerate();
    let seen = largest_first.rfind(is_enough);
    seen.map_or(f64::INFINITY, |(_, packets)| packets)
}

/// What a flow sent that seems to have sent so much: less by what a silent flow seems to have sent that has the
/// same place among its like. If all flows sent the same, the largest is the one that got most of others'.
pub(crate) fn without_others(listed: &[f64], silent: &[f64], packets: f64) -> f64 {
    let below = listed.partition_point(|&one| one < packets);
    let equal = listed.partition_point(|&one| one <= packets) - below;
    let place = (below as f64 + equal as f64 / 2.0) / listed.len().max(1) as f64;
    let at = (place * silent.len() as f64) as usize;
    let others = silent.get(at).or(silent.last()).copied().unwrap_or(0.0);
    (packets - others).max(0.0)
}

/// How likely it is that a silent flow seems to have sent so much. Few flows have most of the packets: beyond
/// all that were tried, that so large a flow is in a cell is as likely as it is small, inversely; and one
/// must be in each cell.
fn chance_of_silent(silent: &[f64], packets: f64, cells: i32) -> f64 {
    let tried = silent.len() as f64 + 1.0;
    let below = silent.partition_point(|&one| one < packets);
    let most = silent.last().copied().unwrap_or(0.0);
    match silent.len() - below {
        0 => (most / packets.max(f64::MIN_POSITIVE)).min(1.0).powi(cells) / tried,
        above => (above as f64 + 1.0) / tried,
    }
}

/// Packets that silent implants seem to have sent, in order.
fn silent_loads(batches: &[Implants], flows: usize) -> Vec<f64> {
    let found = batches.iter().flat_map(|batch| &batch.sizes[flows..]);
    let mut loads: Vec<f64> = found.map(Size::packets).collect();
    loads.sort_by(f64::total_cmp);
    loads
}

/// For each class of sizes: standard error over packets of others, so that 95 % are within.
fn ratios(batches: &[Implants], flows: usize) -> Vec<f64> {
    let mut classes: Vec<Vec<(f64, f64)>> = vec![Vec::new(); CLASSES];
    for batch in batches {
        let found = batch.flows.iter().zip(&batch.sizes[flows..]).zip(&batch.ratios);
        for ((implant, size), ratio) in found.filter(|((implant, _), _)| implant.load > 0.0) {
            classes[class(size.load)].push((*ratio, implant.stands_for));
        }
    }
    doubt::quantiles(&mut classes, 0.95).into_iter().map(|ratio| ratio / Z95).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn up_to(most: u32) -> Vec<f64> {
        (0..most).map(f64::from).collect()
    }

    #[test]
    fn flows_are_seen_that_sent_more_than_silent_ones_seem_to() {
        assert_eq!(least_seen(&[1.0, 2.0, 3.0], &[0.0; 160], 3), 1.0);
        assert_eq!(least_seen(&up_to(160), &up_to(160), 3), f64::INFINITY);
        // One large flow among many that may as well be silent.
        let mut listed = up_to(100);
        listed.push(100_000.0);
        assert_eq!(least_seen(&listed, &up_to(160), 3), 100_000.0);
    }

    #[test]
    fn what_silent_flows_seem_to_have_sent_is_taken_out_of_sizes() {
        let silent = up_to(100);
        let listed: Vec<f64> = silent.iter().map(|others| others + 40.0).collect();
        assert_eq!(without_others(&listed, &silent, 40.0), 40.0);
        assert_eq!(without_others(&listed, &silent, 90.0), 40.0);
        assert_eq!(without_others(&[1000.0], &silent, 1000.0), 950.0);
    }
}

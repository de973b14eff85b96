//! Flows whose counters hold mostly packets of unlisted flows.
//!
//! Solving for all flows at once needs all of them: of unlisted flows only their presence is known,
//! and their delay is mistaken for that of the flow. Other counters show what unlisted flows are
//! like, since hashes deal them out alike: their mean delay, and how far a counter with so many of
//! their packets strays from it. With that, each counter of a flow is an equation in its mean delay
//! alone, and counts for as much as the unlisted packets in it allow.

use std::collections::BTreeMap;

use twixt_model::mix;

use super::Colate;
use super::estimate::FlowMean;
use crate::interval::{Z95, student95};
use crate::joint::{Noise, fit_noise};
use crate::question::KnownFlow;
use crate::sketch::{
    CELLS_MAX, Layout, Place, SILENT_WANTED, Size, Sketch, Table, least_seen, without_others,
};
use crate::sums::Usable;

/// Listed flows are taken for all there are if others have at most this part of the packets.
const UNLISTED_MAX: f64 = 0.1;
/// The standard error of a median, relative to that of a mean.
const MEDIAN_ERROR: f64 = 1.253_314;
/// With fewer counters there is no telling how much they vary.
const COUNTERS_MIN: f64 = 3.0;

/// Standard deviations by which a flow's packets in a counter may be more or fewer than expected.
const CHANCE_MAX: f64 = 4.0;
/// Counters that are looked at to learn how much they vary.
const FITTED_MAX: usize = 256;

/// What else there is beside a flow, bank by bank, vector by vector.
pub(super) struct Unlisted<'a> {
    table: &'a Table<'a, Colate>,
    regions: Vec<Region>,
    /// Packets of unlisted flows, as a part of all.
    share: f64,
}

/// Counters of one bank.
struct Region {
    cells: Vec<Usable>,
    /// Of all of them, intact or not, upstream.
    counts: Vec<f64>,
}

impl<'a> Unlisted<'a> {
    /// What there is besides these flows.
    pub(super) fn of(table: &'a Table<'a, Colate>, flows: &[KnownFlow]) -> Self {
        let config = table.config();
        let mut is_listed = vec![false; table.cells.len()];
        let shares = flows.iter().flat_map(|flow| config.shares_of(Place::of(flow)));
        shares.for_each(|(cell, _)| is_listed[cell] = true);
        let columns = config.region_cells();
        let (mut unlisted, mut all) = (0.0, 0.0);
        let count = |cell| table.upstream.sums(cell).packets as f64;
        let starts = (0..table.cells.len()).step_by(columns);
        let regions = starts.map(|start| {
            let bank = start..start + columns;
            let others: Vec<usize> = bank.clone().filter(|&cell| !is_listed[cell]).collect();
            let sum = |cells: &mut dyn Iterator<Item = usize>| cells.map(count).sum::<f64>();
            // Where no counter is theirs alone, flows are listed by the thousand.
            let mean = sum(&mut others.iter().copied()) / others.len().max(1) as f64;
            if others.len() < columns {
                unlisted += mean * columns as f64;
                all += sum(&mut bank.clone());
            }
            // Other listed flows are strange to a flow as well: counters without any listed flow say what is
            // usual only if those with one are few.
            match others.len() >= columns / 2 {
                true => Region::of(table, others.into_iter()),
                false => Region::of(table, bank),
            }
        });
        let regions = regions.collect();
        let share = if all > 0.0 { unlisted / all } else { 0.0 };
        Self { table, regions, share }
    }

    /// Whether they have so many packets that flows are better off alone.
    pub(super) fn prevail(&self) -> bool {
        self.share > UNLISTED_MAX
    }

    /// How many packets a flow sent: as given, or what half of its counters exceed, less what half
    /// of others' do. A counter with a large unlisted flow does not matter.
    pub(super) fn size(&self, flow: &KnownFlow) -> Size {
        if let Some(packets) = flow.packets {
            return Size { load: packets as f64, error: 0.0, known: true, seen: true, weight: 1.0 };
        }
        let config = self.table.config();
        let cells = config.cells_of(Place::of(flow), self.vector());
        let cells: Vec<usize> = cells.collect();
        let count = |&cell: &usize| self.table.upstream.sums(cell).packets as f64;
        let rate = config.sampling()[self.vector()];
        self.region_of(&cells).size(cells.iter().map(count).collect(), rate)
    }

    /// Says which flows were seen, of those whose sizes are not known: those that seem to have sent more than flows do
    /// that sent nothing. Those are made up of counters that chance chooses. Takes what they seem to have sent out of the
    /// sizes of the others.
    pub(super) fn tell_seen(&self, flows: &[KnownFlow], sizes: &mut [Size]) {
        let mut banks: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (flow, _) in sizes.iter().enumerate().filter(|(_, size)| !size.known) {
            let mut cells = self.table.config().cells_of(Place::of(&flows[flow]), self.vector());
            let cell = cells.next().expect("a flow has a counter");
            banks.entry(cell / self.table.config().region_cells()).or_default().push(flow);
        }
        for (bank, flows) in banks {
            let silent = self.silent_loads(bank);
            let mut listed: Vec<f64> = flows.iter().map(|&flow| sizes[flow].load).collect();
            listed.sort_by(f64::total_cmp);
            let least = least_seen(&listed, &silent, CELLS_MAX);
            for flow in flows {
                let size = &mut sizes[flow];
                size.seen = size.load >= least;
                size.load = without_others(&listed, &silent, size.load).max(1.0);
            }
        }
    }

    /// Packets that flows seem to have sent that sent none, in order.
    fn silent_loads(&self, bank: usize) -> Vec<f64> {
        let config = self.table.config();
        let (region, rate) = (config.region_cells(), config.sampling()[self.vector()]);
        let count = |seed: u64| {
            let cell = bank * region + (mix(seed) % region as u64) as usize;
            self.table.upstream.sums(cell).packets as f64
        };
        let load = |number: usize| {
            let seeds =
                (0..config.per_flow()).map(|counter| mix(number as u64) ^ u64::from(counter));
            self.regions[bank].size(seeds.map(count).collect(), rate).load
        };
        let mut loads: Vec<f64> = (0..SILENT_WANTED).map(load).collect();
        loads.sort_by(f64::total_cmp);
        loads
    }

    /// The mean delay of a flow, relative to the reference; `None` if its packets may as well be
    /// others'.
    pub(super) fn solve(&self, flow: &KnownFlow, size: &Size) -> Option<FlowMean> {
        if size.load <= Z95 * size.error {
            return None;
        }
        let config = self.table.config();
        let vectors = (0..config.rows()).map(|vector| self.own(Place::of(flow), vector));
        let share = |own: &[Own]| own.iter().map(|own| own.share).sum::<f64>();
        let (region, own) = vectors
            .max_by(|one, other| share(&one.1).total_cmp(&share(&other.1)))
            .filter(|(_, own)| !own.is_empty())?;
        region.solve(&own, size)
    }

    /// The vector that counts most packets.
    fn vector(&self) -> usize {
        let rate = |vector: usize| self.table.config().sampling()[vector];
        let vectors = 0..self.table.config().rows();
        let best = vectors.max_by(|&one, &other| rate(one).total_cmp(&rate(other)));
        best.expect("there is a vector")
    }

    fn region_of(&self, cells: &[usize]) -> &Region {
        &self.regions[cells[0] / self.table.config().region_cells()]
    }

    /// The usable counters of a flow in one vector, each once.
    fn own(&self, place: Place, vector: usize) -> (&Region, Vec<Own>) {
        let config = self.table.config();
        let mut cells: Vec<usize> = config.cells_of(place, vector).collect();
        cells.sort_unstable();
        let share = config.sampling()[vector] / f64::from(config.per_flow());
        let own = cells.chunk_by(|one, other| one == other).filter_map(|same| {
            let share = share * same.len() as f64;
            let Usable { packets, delay_sum_ns } = self.table.cells[same[0]]?;
            Some(Own { share, packets: packets as f64, delay_sum_ns: delay_sum_ns as f64 })
        });
        (self.region_of(&cells), own.collect())
    }
}

/// A counter of the flow.
struct Own {
    /// Part of the flow's packets that is expected here.
    share: f64,
    packets: f64,
    delay_sum_ns: f64,
}

impl Region {
    fn of(table: &Table<'_, Colate>, cells: impl Iterator<Item = usize> + Clone) -> Self {
        let counts = cells.clone().map(|cell| table.upstream.sums(cell).packets as f64).collect();
        Self { counts, cells: cells.filter_map(|cell| table.cells[cell]).collect() }
    }

    /// The size of a flow whose counters have these counts, in a vector that counts this share of packets.
    fn size(&self, mut counts: Vec<f64>, rate: f64) -> Size {
        counts.sort_by(f64::total_cmp);
        let whole = counts.len() as f64 / rate;
        // The 95 % interval of a median, by order.
        let spread = 0.5 * Z95 / (counts.len() as f64).sqrt();
        let (low, high) = (quantile(&counts, 0.5 - spread), quantile(&counts, 0.5 + spread));
        let most = counts.iter().sum::<f64>() / rate;
        let load = (quantile(&counts, 0.5) - self.usual_count()) * whole;
        let load = load.max(1.0).min(most);
        // Counts are whole numbers: equal ones are no sign that nothing varies.
        let chance = MEDIAN_ERROR * (most / rate).sqrt();
        let error = ((high - low) / 2.0 / Z95 * whole).max(chance);
        Size { load, error, known: false, seen: true, weight: 1.0 }
    }

    /// Half of the counters have more.
    fn usual_count(&self) -> f64 {
        let mut counts = self.counts.clone();
        let half = counts.len() / 2;
        match counts.is_empty() {
            true => 0.0,
            false => *counts.select_nth_unstable_by(half, f64::total_cmp).1,
        }
    }

    /// What a counter of theirs strays by. It decides on weights only, and need not be exact.
    fn noise(&self) -> Noise {
        let cells = self.cells.iter().take(FITTED_MAX);
        fit_noise(cells.map(|cell| (cell.packets as f64, cell.delay_sum_ns as f64)))
    }

    fn solve(&self, own: &[Own], size: &Size) -> Option<FlowMean> {
        let usual = own.iter().map(|own| own.share * size.load).sum::<f64>() / own.len() as f64;
        let noise = self.noise();
        let weight = |strange: f64| noise.variance(strange, usual).recip();
        let unlisted = self.mean(weight);
        let count = Count::of(&self.counts);
        let (mut square, mut product, mut strange, mut squares) = (0.0, 0.0, 0.0, 0.0);
        let mut rests = Vec::with_capacity(own.len());
        for cell in own {
            let packets = count.own(cell, size);
            let weight = weight((cell.packets - packets).max(0.0));
            let beyond_ns = cell.delay_sum_ns - unlisted.mean_ns * cell.packets;
            let here = weight * packets * packets;
            square += here;
            squares += here * here;
            product += weight * packets * beyond_ns;
            strange += weight * packets * (cell.packets - packets).max(0.0);
            rests.push((weight * packets, packets, beyond_ns));
        }
        let offset_ns = product / square;
        let rest = |&(weight, packets, beyond_ns): &(f64, f64, f64)| {
            (weight * (beyond_ns - packets * offset_ns)).powi(2)
        };
        // As many equal counters would tell as much.
        let counters = square * square / squares;
        let chance =
            rests.iter().map(rest).sum::<f64>() / (square * square) * counters / (counters - 1.0);
        let of_unlisted = (strange / square).powi(2) * unlisted.variance;
        let of_size = (offset_ns * size.error / size.load).powi(2);
        let error_ns = (chance + of_unlisted + of_size).sqrt();
        let half_width_ns = error_ns * student95(counters - 1.0);
        let is_known = counters >= COUNTERS_MIN && half_width_ns.is_finite();
        offset_ns.is_finite().then(|| FlowMean {
            mean_ns: unlisted.mean_ns + offset_ns,
            half_width_ns: is_known.then_some(half_width_ns),
        })
    }

    /// The mean delay of unlisted flows, each counter weighing as those of the flow will.
    fn mean(&self, weight: impl Fn(f64) -> f64) -> Mean {
        let (mut packets, mut delay_sum_ns) = (0.0, 0.0);
        for cell in &self.cells {
            let weight = weight(cell.packets as f64);
            packets += weight * cell.packets as f64;
            delay_sum_ns += weight * cell.delay_sum_ns as f64;
        }
        if packets <= 0.0 {
            return Mean { mean_ns: 0.0, variance: 0.0 };
        }
        let mean_ns = delay_sum_ns / packets;
        let square = |cell: &Usable| {
            let beyond_ns = cell.delay_sum_ns as f64 - mean_ns * cell.packets as f64;
            (weight(cell.packets as f64) * beyond_ns).powi(2)
        };
        let variance = self.cells.iter().map(square).sum::<f64>() / (packets * packets);
        Mean { mean_ns, variance }
    }
}

/// Relative to the reference, and how sure it is.
struct Mean {
    mean_ns: f64,
    variance: f64,
}

/// Packets of unlisted flows in a counter.
struct Count {
    mean: f64,
    variance: f64,
}

impl Count {
    fn of(counts: &[f64]) -> Self {
        let number = counts.len().max(1) as f64;
        let mean = counts.iter().sum::<f64>() / number;
        let variance = counts.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / number;
        Self { mean, variance }
    }

    /// The flow's packets in one of its counters, given how many that counted. More than chance
    /// puts there are others', however few of those there are elsewhere.
    fn own(&self, cell: &Own, size: &Size) -> f64 {
        let expected = cell.share * size.load;
        let guess = cell.share * size.error;
        let by_chance = expected * (1.0 - cell.share) + guess * guess;
        let all = by_chance + self.variance;
        let part = if all > 0.0 { by_chance / all } else { 0.0 };
        let most = CHANCE_MAX * by_chance.sqrt();
        let more = (cell.packets - expected - self.mean) * part;
        (expected + more.clamp(-most, most)).clamp(f64::MIN_POSITIVE, cell.packets.max(1.0))
    }
}

/// Of values in order; 0 of none.
fn quantile(values: &[f64], share: f64) -> f64 {
    let place = share.clamp(0.0, 1.0) * values.len().saturating_sub(1) as f64;
    let (below, above) = (place.floor() as usize, place.ceil() as usize);
    let at = |index: usize| values.get(index).copied().unwrap_or(0.0);
    at(below) + (at(above) - at(below)) * place.fract()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counters of unlisted flows with these packets and delays, and five of a flow of 500 packets.
    #[track_caller]
    fn check(unlisted: &[(u64, i64)], own: &[(f64, f64)], mean_ns: f64, within_ns: f64) {
        let usable = |&(packets, delay_sum_ns)| Usable { packets, delay_sum_ns };
        let cells = unlisted.iter().map(usable).collect();
        let counts = unlisted.iter().map(|&(packets, _)| packets as f64).collect();
        let of_flow =
            |&(packets, delay_sum_ns): &(f64, f64)| Own { share: 0.2, packets, delay_sum_ns };
        let own: Vec<Own> = own.iter().map(of_flow).collect();
        let size = Size { load: 500.0, error: 0.0, known: true, seen: true, weight: 1.0 };
        let found = Region { cells, counts }.solve(&own, &size).expect("there are counters");
        assert!((found.mean_ns - mean_ns).abs() <= within_ns, "{found:?}");
        assert!(found.half_width_ns.is_some_and(f64::is_finite), "{found:?}");
    }

    #[test]
    fn a_flow_is_distinguished_from_unlisted_ones_however_little_they_vary() {
        let own = [(100.0, 100_000.0); 5];
        check(&[], &own, 1000.0, 0.1);
        check(&[(0, 0); 40], &own, 1000.0, 0.1);
        // One packet each: that packets vary, and flows do, is the same.
        let single: Vec<(u64, i64)> = (0..40).map(|number| (1, 100 * number)).collect();
        check(&single, &own, 1000.0, 30.0);
        // All alike.
        check(&[(10, 20_000); 40], &[(110.0, 120_000.0); 5], 1000.0, 0.1);
        // A large unlisted flow in one counter does not matter.
        let varied: Vec<(u64, i64)> = (0..40).map(|number| (10, 20_000 + 50 * number)).collect();
        let mut shared = [(110.0, 121_000.0); 5];
        shared[3] = (5110.0, 9e6);
        check(&varied, &shared, 1000.0, 10.0);
    }

    #[test]
    fn quantiles_lie_between_values() {
        assert_eq!(quantile(&[1.0, 2.0, 4.0], 0.5), 2.0);
        assert_eq!(quantile(&[1.0, 2.0, 4.0], 0.75), 3.0);
        assert_eq!(quantile(&[], 0.5), 0.0);
    }
}

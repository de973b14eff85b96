//! Flows whose counters hold mostly packets of unlisted flows.
//!
//! Solving for all flows at once needs all of them: of unlisted flows only their presence is known,
//! and their delay is mistaken for that of the flow. Other counters show what unlisted flows are
//! like, since hashes deal them out alike: their mean delay, and how far a counter with so many of
//! their packets strays from it. With that, each counter of a flow is an equation in its mean delay
//! alone, and counts for as much as the unlisted packets in it allow.

use super::Colate;
use super::estimate::Found;
use crate::interval::{Z95, student95};
use crate::joint::{Noise, fit_noise};
use crate::question::KnownFlow;
use crate::sketch::{Layout, Place, Size, Sketch, Table};
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

/// Counters that no listed flow falls into, bank by bank, vector by vector.
pub(super) struct Unlisted<'a> {
    table: &'a Table<'a, Colate>,
    regions: Vec<Region>,
}

/// Those of one bank.
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
        let starts = (0..table.cells.len()).step_by(columns);
        let regions = starts.map(|start| {
            let others = (start..start + columns).filter(|&cell| !is_listed[cell]);
            let count = |cell| table.upstream.sums(cell).packets as f64;
            let counts = others.clone().map(count).collect();
            Region { counts, cells: others.filter_map(|cell| table.cells[cell]).collect() }
        });
        Self { table, regions: regions.collect() }
    }

    /// Whether they have so many packets that flows are better off alone.
    pub(super) fn prevail(&self, flows: &[KnownFlow], sizes: &[Size]) -> bool {
        let config = self.table.config();
        let mut in_bank = vec![0.0; self.regions.len()];
        for (flow, size) in flows.iter().zip(sizes) {
            for (cell, share) in config.shares_of(Place::of(flow)) {
                in_bank[cell / config.region_cells()] += size.load * share;
            }
        }
        let banks = self.regions.iter().zip(in_bank).filter(|(_, listed)| *listed > 0.0);
        let (mut strange, mut listed) = (0.0, 0.0);
        for (region, in_bank) in banks {
            // Where no counter is theirs alone, flows are listed by the thousand.
            let mean = region.counts.iter().sum::<f64>() / region.counts.len().max(1) as f64;
            strange += mean * f64::from(config.bank_counters());
            listed += in_bank;
        }
        strange > UNLISTED_MAX * (strange + listed)
    }

    /// How many packets a flow sent: as given, or what half of its counters exceed, less what half
    /// of others' do. A counter with a large unlisted flow does not matter.
    pub(super) fn size(&self, flow: &KnownFlow) -> Size {
        let config = self.table.config();
        if let Some(packets) = flow.packets {
            return Size { load: packets as f64, error: 0.0, known: true, weight: 1.0 };
        }
        let rate = |vector: usize| config.sampling()[vector];
        let vector = (0..config.rows()).max_by(|&one, &other| rate(one).total_cmp(&rate(other)));
        let vector = vector.expect("there is a vector");
        let cells: Vec<usize> = config.cells_of(Place::of(flow), vector).collect();
        let region = &self.regions[cells[0] / config.region_cells()];
        let count = |&cell: &usize| self.table.upstream.sums(cell).packets as f64;
        let mut counts: Vec<f64> = cells.iter().map(count).collect();
        counts.sort_by(f64::total_cmp);
        let whole = cells.len() as f64 / rate(vector);
        // The 95 % interval of a median, by order.
        let spread = 0.5 * Z95 / (counts.len() as f64).sqrt();
        let (low, high) = (quantile(&counts, 0.5 - spread), quantile(&counts, 0.5 + spread));
        let most = counts.iter().sum::<f64>() / rate(vector);
        let load = (quantile(&counts, 0.5) - region.usual_count()) * whole;
        let load = load.max(1.0).min(most);
        // Counts are whole numbers: equal ones are no sign that nothing varies.
        let chance = MEDIAN_ERROR * (most / rate(vector)).sqrt();
        let error = ((high - low) / 2.0 / Z95 * whole).max(chance);
        Size { load, error, known: false, weight: 1.0 }
    }

    /// The mean delay of a flow, relative to the reference; `None` if its packets may as well be
    /// others'.
    pub(super) fn solve(&self, flow: &KnownFlow, size: &Size) -> Option<Found> {
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
        (&self.regions[cells[0] / config.region_cells()], own.collect())
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

    fn solve(&self, own: &[Own], size: &Size) -> Option<Found> {
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
        offset_ns.is_finite().then(|| Found {
            mean_ns: unlisted.mean_ns + offset_ns,
            half_width_ns: is_known.then_some(half_width_ns),
            is_fallback: false,
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
        let size = Size { load: 500.0, error: 0.0, known: true, weight: 1.0 };
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

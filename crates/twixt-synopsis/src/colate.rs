//! COLATE: the delay of flows long past, between any two points, from one vector of counters each.
//!
//! Every packet adds its time to one of a few counters that its flow shares with others. No flow
//! is stored and none is chosen beforehand; a later query for a named flow asks two vectors of
//! one epoch what they tell about it together.
//!
//! Shahzad, Liu: "Noise Can Help: Accurate and Efficient Per-flow Latency Measurement without
//! Packet Probing and Time Stamping", SIGMETRICS 2014. As printed it cannot work: each point adds
//! a packet's time to a counter drawn at random, so that the two vectors have nothing to do with
//! each other and whole time stamps of other flows are left over. Here the packet itself decides
//! on its counter, equally at both points; counters also count, so that those which saw other
//! packets at one end are left out; and everything is taken relative to the mean delay.

mod alone;
mod bits;
mod config;
mod deviation;
mod estimate;
mod packing;
mod printed;
mod single;
mod sizing;

pub use config::{ColateConfig, Stored};
pub use printed::PrintedColate;
pub use sizing::{
    ColateGoal, ColatePlan, ColateTraffic, PlannedEstimator, Reliability, binomial_interval,
    noise_variance, two_sided_quantile,
};

use twixt_model::{BatchBuffer, Delay, Estimate, Observation};

use self::bits::low_mask;
use crate::codec::{DecodeError, Reader, Writer};
use crate::question::{KnownFlow, Question};
use crate::sketch::{Layout, NOWHERE, Sketch};
use crate::sums::{Sums, Usable};
use crate::synopsis::{ConfigOption, Needs, OptionKind, Pair, Reading, Synopsis, TwoPoint};
use crate::totals::Totals;

/// Vectors of counters, as COLATE keeps them at one point for one epoch.
#[derive(Clone, Debug, PartialEq)]
pub struct Colate {
    config: ColateConfig,
    totals: Totals,
    /// Vector by vector, in each bank by bank.
    cells: Vec<Sums>,
}

impl Colate {
    /// Every counter: sum of times, packets, sum of digests.
    pub fn counters(&self) -> impl ExactSizeIterator<Item = [u64; 3]> + '_ {
        self.cells.iter().map(|cell| [cell.times, cell.packets, cell.digests])
    }

    /// What would have been recorded had every packet come so much later, for making long
    /// recordings out of short ones; `None` unless it is a multiple of the resolution.
    #[must_use]
    pub fn postponed(&self, delay: Delay) -> Option<Self> {
        let unit_ns = i64::from(self.config.stored().resolution_ns);
        let units = (delay.as_nanos() % unit_ns == 0).then(|| delay.as_nanos() / unit_ns)? as u64;
        let kept = Kept::of(&self.config);
        let mut later = self.clone();
        for cell in &mut later.cells {
            cell.times = cell.times.wrapping_add(units.wrapping_mul(cell.packets));
            kept.trim(cell);
        }
        Some(later)
    }

    /// Those counters only that are needed to answer for some flows; `None` where that is most of
    /// them. It can be asked about these flows and about no others.
    #[must_use]
    pub fn about(&self, flows: &[KnownFlow]) -> Option<Self> {
        let config = self.config.about(flows)?;
        let wanted = config.excerpt()?;
        let cells = wanted.iter().map(|&cell| self.cells[cell as usize]).collect();
        Some(Self { config, totals: self.totals, cells })
    }
}

impl Synopsis for Colate {
    const NAME: &'static str = "colate";
    const TAG: u16 = 4;
    const SUMMARY: &'static str =
        "delay of any flow between any two points, queried later, from few bits per packet";
    const NEEDS: Needs = Needs { digest: true, flow: true, detail: false, group: false };
    const OPTIONS: &'static [ConfigOption] = &[
        ConfigOption { name: "counters", kind: OptionKind::Integer, help: "counters per vector" },
        ConfigOption {
            name: "per_flow",
            kind: OptionKind::Integer,
            help: "counters of a vector that a flow's packets spread over",
        },
        ConfigOption {
            name: "banks",
            kind: OptionKind::Integer,
            help: "parts of a vector, by source and destination prefix, to separate other traffic",
        },
        ConfigOption {
            name: "sampling",
            kind: OptionKind::Numbers,
            help: "share of packets that each vector counts, such as 1,0.1",
        },
        ConfigOption {
            name: "resolution",
            kind: OptionKind::Duration,
            help: "round times down to multiples of this, such as 1us",
        },
        ConfigOption {
            name: "time_bits",
            kind: OptionKind::Integer,
            help: "bits of a sum of times to store, out of 64",
        },
        ConfigOption {
            name: "digest_bits",
            kind: OptionKind::Integer,
            help: "bits of a sum of digests to store, out of 64",
        },
    ];
    /// The first had no lengths of blocks.
    const VERSION: u8 = 2;
    type Config = ColateConfig;

    fn sized(memory_bytes: u64) -> Option<ColateConfig> {
        ColateConfig::within(memory_bytes)
    }

    fn new(config: &ColateConfig) -> Self {
        let cells = vec![Sums::default(); config.cells()];
        Self { config: config.clone(), totals: Totals::default(), cells }
    }

    fn config(&self) -> &ColateConfig {
        &self.config
    }

    fn needs(&self) -> Needs {
        Needs { group: self.config.banks() > 1, ..Self::NEEDS }
    }

    #[inline]
    fn update(&mut self, observation: &Observation) {
        self.totals.add(observation.length);
        let Self { config, cells, .. } = self;
        let kept = Kept::of(config);
        let packet = kept.sums_of(observation);
        for index in config.placing().cells_for(observation) {
            cells[index].add(&packet);
            kept.trim(&mut cells[index]);
        }
    }

    /// First where all packets of a batch are counted, then the counting, in which the processor
    /// waits for many counters at once.
    fn update_all(&mut self, observations: &[Observation]) {
        let Self { config, totals, cells } = self;
        let (placing, kept) = (config.placing(), Kept::of(config));
        for batch in observations.chunks(BatchBuffer::MAX) {
            batch.iter().for_each(|observation| totals.add(observation.length));
            for vector in 0..placing.vectors() {
                let mut places = [NOWHERE; BatchBuffer::MAX];
                for (place, observation) in places.iter_mut().zip(batch) {
                    *place = placing.cell_for(vector, observation).unwrap_or(NOWHERE);
                }
                for (&place, observation) in places.iter().zip(batch) {
                    if let Some(cell) = cells.get_mut(place) {
                        cell.add(&kept.sums_of(observation));
                        kept.trim(cell);
                    }
                }
            }
        }
    }

    fn merge(&mut self, other: &Self) {
        self.totals.merge(other.totals);
        let kept = Kept::of(&self.config);
        for (cell, other) in self.cells.iter_mut().zip(&other.cells) {
            cell.add(other);
            kept.trim(cell);
        }
    }

    fn totals(&self) -> Totals {
        self.totals
    }

    fn state_bytes(&self) -> u64 {
        self.config.state_bytes()
    }

    fn encode(&self, out: &mut Writer) {
        debug_assert!(self.config.excerpt().is_none(), "excerpts are for asking, not for keeping");
        self.config.encode(out);
        self.totals.encode(out);
        for vector in self.cells.chunks_exact(self.config.counters() as usize) {
            packing::encode(vector, self.config.stored(), out);
        }
    }

    /// A counter without packets takes one bit of the bytes.
    fn decoded_bytes(input: &mut Reader<'_>) -> Result<u64, DecodeError> {
        let encoded = input.left() as u64;
        let config = ColateConfig::decode(input)?;
        // Vectors are read one after the other, and the cells so far are moved for each.
        let copies = if config.cells() > config.counters() as usize { 2 } else { 1 };
        Ok(copies * config.state_bytes() + encoded)
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Self::decode_for(input, Reading { version: Self::VERSION, flows: None })
    }

    fn decode_for(input: &mut Reader<'_>, reading: Reading<'_>) -> Result<Self, DecodeError> {
        let config = ColateConfig::decode(input)?;
        let totals = Totals::decode(input)?;
        let counters = config.counters() as usize;
        let vectors = config.cells() / counters;
        let mut cells = Vec::new();
        let about = reading.flows.and_then(|flows| config.about(flows));
        if let Some(config) = about.filter(|_| reading.version > 1) {
            let wanted = config.excerpt().expect("that is what was made");
            for vector in 0..vectors {
                let wanted = excerpt_of_vector(wanted, vector, counters);
                packing::decode_some(counters, &wanted, config.stored(), input, &mut cells)?;
            }
            return Ok(Self { config, totals, cells });
        }
        let decode = if reading.version > 1 { packing::decode } else { packing::decode_first };
        for _ in 0..vectors {
            decode(counters, config.stored(), input, &mut cells)?;
        }
        let whole = Self { config, totals, cells };
        Ok(reading.flows.and_then(|flows| whole.about(flows)).unwrap_or(whole))
    }
}

/// The counters of an excerpt that are in one vector, as numbered there.
fn excerpt_of_vector(cells: &[u32], vector: usize, counters: usize) -> Vec<u32> {
    let start = (vector * counters) as u32;
    let end = start + counters as u32;
    let (from, to) =
        (cells.partition_point(|&cell| cell < start), cells.partition_point(|&cell| cell < end));
    cells[from..to].iter().map(|cell| cell - start).collect()
}

/// What of a counter's sums is kept.
#[derive(Clone, Copy)]
struct Kept {
    resolution_ns: u32,
    times: u64,
    digests: u64,
}

impl Kept {
    #[inline]
    const fn of(config: &ColateConfig) -> Self {
        let Stored { resolution_ns, time_bits, digest_bits } = config.stored();
        let (times, digests) = (low_mask(time_bits as u32), low_mask(digest_bits as u32));
        Self { resolution_ns, times, digests }
    }

    /// What a packet adds to its counters.
    #[inline]
    fn sums_of(self, observation: &Observation) -> Sums {
        let mut sums = Sums::of(observation);
        if self.resolution_ns > 1 {
            let units = observation.time.as_nanos().div_euclid(i64::from(self.resolution_ns));
            sums.times = units as u64;
        }
        sums
    }

    #[inline]
    const fn trim(self, cell: &mut Sums) {
        cell.times &= self.times;
        cell.digests &= self.digests;
    }
}

impl Sketch for Colate {
    fn cell_count(&self) -> usize {
        self.cells.len()
    }

    fn sums(&self, cell: usize) -> &Sums {
        &self.cells[cell]
    }

    /// Differences are taken in units of the resolution and with as many bits as there are.
    fn usable(
        upstream: &Self,
        downstream: &Self,
        cell: usize,
        reference_ns: i64,
    ) -> Option<Usable> {
        let (up, down) = (upstream.cells[cell], downstream.cells[cell]);
        let Stored { resolution_ns, time_bits, .. } = upstream.config.stored();
        let unit_ns = i64::from(resolution_ns);
        let reference = reference_ns.div_euclid(unit_ns);
        let mean = (reference as u64).wrapping_mul(up.packets);
        let unused = 64 - u32::from(time_bits);
        let difference = down.times.wrapping_sub(up.times).wrapping_sub(mean) << unused;
        let difference = i128::from(difference as i64 >> unused) * i128::from(unit_ns);
        // The reference was rounded down, too.
        let rounded_ns = i128::from(reference_ns.rem_euclid(unit_ns)) * i128::from(up.packets);
        let delay_sum_ns = difference.saturating_sub(rounded_ns);
        let delay_sum_ns = delay_sum_ns.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
        (up.packets > 0 && up.agrees_with(&down))
            .then_some(Usable { packets: up.packets, delay_sum_ns })
    }
}

impl TwoPoint for Colate {
    const ESTIMATORS: &'static [&'static str] = &["joint", "median", "paper"];
    const PER_FLOW: bool = true;

    fn remove(&mut self, observation: &Observation) {
        self.totals.subtract(observation.length);
        let Self { config, cells, .. } = self;
        let kept = Kept::of(config);
        let packet = kept.sums_of(observation);
        for index in config.placing().cells_for(observation) {
            cells[index].subtract(&packet);
            kept.trim(&mut cells[index]);
        }
    }

    fn fold_to(&self, config: &ColateConfig) -> Option<Self> {
        let (banks, counters) = self.config.finer_than(config)?;
        let mut folded = Self { totals: self.totals, ..Self::new(config) };
        let kept = Kept::of(config);
        let (fine, coarse) = (self.config.region_cells(), config.region_cells());
        for (index, cell) in self.cells.iter().enumerate() {
            let (bank, in_bank) = (index / fine, index % fine);
            let target = bank / banks as usize * coarse + in_bank / counters as usize;
            folded.cells[target].add(cell);
            kept.trim(&mut folded.cells[target]);
        }
        Some(folded)
    }

    fn estimate(pair: Pair<'_, Self>, question: &Question<'_>) -> Vec<Estimate> {
        estimate::estimate(pair, question)
    }
}

#[cfg(test)]
mod tests;

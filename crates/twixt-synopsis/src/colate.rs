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
mod config;
mod deviation;
mod estimate;
mod left_out;
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

use crate::cells::{Added, Cells, Wide, Widths, packing};
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
    /// Vector by vector, in each bank by bank, as wide as is configured.
    cells: Cells<Widths>,
}

impl Colate {
    /// Every counter: sum of times, packets, sum of digests.
    pub fn counters(&self) -> impl ExactSizeIterator<Item = [u64; 3]> + '_ {
        self.cells.iter().map(|cell| [cell.sums.times, cell.sums.packets, cell.sums.digests])
    }

    /// What would have been recorded had every packet come so much later, for making long
    /// recordings out of short ones; `None` unless it is a multiple of the resolution.
    #[must_use]
    pub fn postponed(&self, delay: Delay) -> Option<Self> {
        let unit_ns = i64::from(self.config.stored().resolution_ns);
        let units = (delay.as_nanos() % unit_ns == 0).then(|| delay.as_nanos() / unit_ns)? as u64;
        let mut later = self.clone();
        for cell in 0..later.cells.len() {
            later.cells.change(cell, |Wide { sums, .. }| {
                sums.times = sums.times.wrapping_add(units.wrapping_mul(sums.packets));
            });
        }
        Some(later)
    }

    /// Those counters only that are needed to answer for some flows; `None` where that is most of
    /// them. It can be asked about these flows and about no others.
    #[must_use]
    pub fn about(&self, flows: &[KnownFlow]) -> Option<Self> {
        let config = self.config.about(flows)?;
        let wanted = config.excerpt()?;
        let mut cells =
            Cells::with_escapes(self.cells.widths(), wanted.len(), config.escapes_max());
        for (index, &cell) in wanted.iter().enumerate() {
            cells.set(index, &self.cells.wide(cell as usize));
        }
        cells.lose_counts(self.cells.counts_lost());
        Some(Self { config, totals: self.totals, cells })
    }
}

impl Synopsis for Colate {
    const NAME: &'static str = "colate";
    const TAG: u16 = 4;
    const SUMMARY: &'static str =
        "delay of any flow between any two points, queried later, from few bits per packet";
    const NEEDS: Needs =
        Needs { digest: true, flow: true, detail: false, group: false, exchange: false };
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
    /// The first had no lengths of blocks, the second did not say whether counts were lost.
    const VERSION: u8 = 3;
    type Config = ColateConfig;

    fn sized(memory_bytes: u64) -> Option<ColateConfig> {
        ColateConfig::within(memory_bytes)
    }

    fn new(config: &ColateConfig) -> Self {
        let widths = config.stored().widths();
        let cells = Cells::with_escapes(widths, config.cells(), config.escapes_max());
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
        let packet = config.stored().added(observation);
        for index in config.placing().cells_for(observation) {
            cells.add(index, &packet);
        }
    }

    /// First where all packets of a batch are counted, then the counting, in which the processor
    /// waits for many counters at once.
    fn update_all(&mut self, observations: &[Observation]) {
        let Self { config, totals, cells } = self;
        let (placing, stored) = (config.placing(), config.stored());
        for batch in observations.chunks(BatchBuffer::MAX) {
            batch.iter().for_each(|observation| totals.add(observation.length));
            for vector in 0..placing.vectors() {
                let mut places = [NOWHERE; BatchBuffer::MAX];
                for (place, observation) in places.iter_mut().zip(batch) {
                    *place = placing.cell_for(vector, observation).unwrap_or(NOWHERE);
                }
                let counted = || places.iter().zip(batch).filter(|(place, _)| **place != NOWHERE);
                if cells.add_all(counted().map(|(&place, packet)| (place, stored.added(packet)))) {
                    cells.relieve(counted().map(|(&place, _)| place));
                }
            }
        }
    }

    fn merge(&mut self, other: &Self) {
        self.totals.merge(other.totals);
        self.cells.merge(&other.cells);
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
        packing::encode_cells(&self.cells, self.config.counters() as usize, out);
    }

    /// A counter without packets takes one bit of the bytes.
    fn decoded_bytes(input: &mut Reader<'_>) -> Result<u64, DecodeError> {
        let encoded = input.left() as u64;
        Ok(ColateConfig::decode(input)?.state_bytes() + encoded)
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Self::decode_for(input, Reading { version: Self::VERSION, flows: None })
    }

    fn decode_for(input: &mut Reader<'_>, reading: Reading<'_>) -> Result<Self, DecodeError> {
        let config = ColateConfig::decode(input)?;
        let totals = Totals::decode(input)?;
        let counters = config.counters() as usize;
        let about = reading.flows.and_then(|flows| config.about(flows));
        if let Some(config) = about.filter(|_| reading.version > 1) {
            return Self::decode_excerpt(&config, totals, input, reading.version);
        }
        packing::check_count(config.cells(), input.left())?;
        let mut whole = Self { totals, ..Self::new(&config) };
        match reading.version {
            3.. => packing::decode_cells(&mut whole.cells, counters, input)?,
            2 => packing::decode_vectors(&mut whole.cells, counters, input)?,
            _ => packing::decode_first(&mut whole.cells, counters, input)?,
        }
        Ok(reading.flows.and_then(|flows| whole.about(flows)).unwrap_or(whole))
    }
}

impl Colate {
    fn decode_excerpt(
        config: &ColateConfig,
        totals: Totals,
        input: &mut Reader<'_>,
        version: u8,
    ) -> Result<Self, DecodeError> {
        let counts_lost = if version > 2 { input.u64("lost counts")? } else { 0 };
        let counters = config.counters() as usize;
        let mut excerpt = Self { totals, ..Self::new(config) };
        let Self { cells, .. } = &mut excerpt;
        let (widths, wanted) = (cells.widths(), config.excerpt().expect("that is what it is"));
        let mut next = 0;
        for vector in 0..config.sampling().len() {
            let wanted = excerpt_of_vector(wanted, vector, counters);
            packing::decode_some(counters, &wanted, widths, input, |cell| {
                cells.set(next, &cell);
                next += 1;
            })?;
        }
        cells.lose_counts(counts_lost);
        Ok(excerpt)
    }
}

impl Stored {
    /// How wide counters are.
    const fn widths(self) -> Widths {
        let Self { time_bits, digest_bits, .. } = self;
        Widths { time_bits, digest_bits, has_bytes: false }
    }

    /// What a packet adds to its counters.
    #[inline]
    fn sums_of(self, observation: &Observation) -> Wide {
        let mut sums = Sums::of(observation);
        if self.resolution_ns > 1 {
            let units = observation.time.as_nanos().div_euclid(i64::from(self.resolution_ns));
            sums.times = units as u64;
        }
        sums.into()
    }

    #[inline]
    fn added(self, observation: &Observation) -> Added {
        Added::of(self.widths(), &self.sums_of(observation)).expect("a counter counts one packet")
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

impl Sketch for Colate {
    fn cell_count(&self) -> usize {
        self.cells.len()
    }

    fn sums(&self, cell: usize) -> Sums {
        self.cells.wide(cell).sums
    }

    fn counts_lost(&self) -> u64 {
        self.cells.counts_lost()
    }

    /// Differences are taken in units of the resolution and with as many bits as there are.
    fn usable(
        upstream: &Self,
        downstream: &Self,
        cell: usize,
        reference_ns: i64,
    ) -> Option<Usable> {
        let (up, down) = (upstream.sums(cell), downstream.sums(cell));
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
        let packet = config.stored().sums_of(observation);
        for index in config.placing().cells_for(observation) {
            cells.subtract(index, &packet);
        }
    }

    fn fold_to(&self, config: &ColateConfig) -> Option<Self> {
        let (banks, counters) = self.config.finer_than(config)?;
        let mut folded = Self { totals: self.totals, ..Self::new(config) };
        folded.cells.lose_counts(self.cells.counts_lost());
        let (fine, coarse) = (self.config.region_cells(), config.region_cells());
        for (index, cell) in self.cells.iter().enumerate() {
            let (bank, in_bank) = (index / fine, index % fine);
            let target = bank / banks as usize * coarse + in_bank / counters as usize;
            folded.cells.add_wide(target, &cell);
        }
        Some(folded)
    }

    fn estimate(pair: Pair<'_, Self>, question: &Question<'_>) -> Vec<Estimate> {
        estimate::estimate(pair, question)
    }
}

#[cfg(test)]
mod tests;

//! Sizes, banks, widths and sampling rates of COLATE.

mod excerpt;
mod placing;
mod settings;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use twixt_model::{FlowHash, GroupId, PacketDigest};

use self::excerpt::Excerpt;
pub(super) use self::placing::Placing;
use crate::cells::escapes_for;
use crate::codec::{DecodeError, Reader, Writer};
use crate::question::KnownFlow;
use crate::sketch::{Layout, Place};

/// Sizes and sampling rates of COLATE. The default takes 1 MiB and counts every packet once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "settings::Settings", into = "settings::Settings")]
pub struct ColateConfig {
    counters: u32,      // in [1, COUNTERS_MAX], a multiple of banks
    per_flow: u32,      // in [1, min(counters / banks, PER_FLOW_MAX)]
    banks: u32,         // in [1, BANKS_MAX]
    sampling: Vec<f64>, // in (0, 1], one per vector, at least one and at most VECTORS_MAX
    stored: Stored,
    /// `sampling` in units of 2^-32, as the update compares it.
    thresholds: Vec<u64>,
    /// Which counters there are, where some flows are asked about and nothing else.
    excerpt: Option<Arc<Excerpt>>,
}

/// How much of its sums a counter keeps. Less takes less room where counters are stored for long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Times are rounded down to a multiple of this before they are added up.
    pub resolution_ns: u32, // in [1, RESOLUTION_NS_MAX]
    /// Bits that sums of times have. They wrap around: only their difference matters, and that
    /// is right while it stays below half of what so many bits hold, in units of the resolution.
    pub time_bits: u8, // in [8, 64]
    /// Bits that sums of digests have. A counter that lost one packet and gained another passes
    /// for intact once in 2 to the power of this.
    pub digest_bits: u8, // in [0, 64]
}

impl Default for Stored {
    fn default() -> Self {
        Self { resolution_ns: 1, time_bits: 64, digest_bits: 64 }
    }
}

const VECTORS_MAX: usize = 16;
/// All vectors together: 310 MiB where sums are whole.
const COUNTERS_MAX: u32 = 1 << 24;
const PER_FLOW_MAX: u32 = 1024;
const BANKS_MAX: u32 = 1 << 12;
const RESOLUTION_NS_MAX: u32 = 1_000_000_000;
const TIME_BITS_MIN: u8 = 8;
const DEFAULT_PER_FLOW: u32 = 20;
const DEFAULT_MEMORY_BYTES: u64 = 1 << 20;

impl Default for ColateConfig {
    fn default() -> Self {
        Self::within(DEFAULT_MEMORY_BYTES).expect("that is enough for the defaults")
    }
}

impl ColateConfig {
    /// As many vectors of `counters` counters as there are sampling rates; in each vector a
    /// flow's packets spread over `per_flow` of them.
    ///
    /// # Errors
    /// When a number is out of its range; the text says which.
    pub fn new(counters: u32, per_flow: u32, sampling: &[f64]) -> Result<Self, String> {
        let vectors = sampling.len();
        if vectors == 0 || vectors > VECTORS_MAX {
            return Err(format!("sampling needs 1 to {VECTORS_MAX} rates, not {vectors}"));
        }
        let most = COUNTERS_MAX / vectors as u32;
        if !(1..=most).contains(&counters) {
            return Err(format!("counters must be between 1 and {most}, not {counters}"));
        }
        if let Some(rate) = sampling.iter().find(|&&rate| !(rate > 0.0 && rate <= 1.0)) {
            return Err(format!("a sampling rate must be above 0 and at most 1, not {rate}"));
        }
        let thresholds = sampling.iter().map(|rate| (rate * 2_f64.powi(32)).round() as u64);
        let config = Self {
            counters,
            per_flow,
            banks: 1,
            sampling: sampling.to_vec(),
            stored: Stored::default(),
            thresholds: thresholds.collect(),
            excerpt: None,
        };
        config.with_banks(1)
    }

    /// The same counters, in so many banks: flows of one pair of prefixes share a bank, and those
    /// of most other pairs are in others.
    ///
    /// # Errors
    /// When banks are too many, or not all alike.
    pub fn with_banks(self, banks: u32) -> Result<Self, String> {
        let counters = self.counters;
        if !(1..=BANKS_MAX).contains(&banks) {
            return Err(format!("banks must be between 1 and {BANKS_MAX}, not {banks}"));
        }
        if !counters.is_multiple_of(banks) {
            return Err(format!("{counters} counters cannot be split into {banks} equal banks"));
        }
        let most = (counters / banks).min(PER_FLOW_MAX);
        let per_flow = self.per_flow;
        if !(1..=most).contains(&per_flow) {
            return Err(format!(
                "per_flow must be between 1 and {most} with {} counters per bank, not {per_flow}",
                counters / banks
            ));
        }
        Ok(Self { banks, ..self })
    }

    /// The same, keeping less of sums.
    ///
    /// # Errors
    /// When a number is out of its range; the text says which.
    pub fn with_stored(self, stored: Stored) -> Result<Self, String> {
        let Stored { resolution_ns, time_bits, digest_bits } = stored;
        if !(1..=RESOLUTION_NS_MAX).contains(&resolution_ns) {
            return Err(format!("resolution must be between 1 ns and 1 s, not {resolution_ns} ns"));
        }
        if !(TIME_BITS_MIN..=64).contains(&time_bits) {
            return Err(format!("time_bits must be between 8 and 64, not {time_bits}"));
        }
        if digest_bits > 64 {
            return Err(format!("digest_bits must be at most 64, not {digest_bits}"));
        }
        Ok(Self { stored, ..self })
    }

    /// One vector of as many counters as `memory_bytes` hold, rounded down to four binary digits
    /// and zeros after them, so that points with twice the memory have twice the counters and
    /// theirs can be folded.
    pub(super) fn within(memory_bytes: u64) -> Option<Self> {
        let counters = Stored::default().widths().cells_within(memory_bytes);
        let counters = counters.min(u64::from(COUNTERS_MAX)) as u32;
        let zeros = counters.checked_ilog2()?.saturating_sub(3);
        let counters = counters >> zeros << zeros;
        Self::new(counters, DEFAULT_PER_FLOW.min(counters), &[1.0]).ok()
    }

    /// Counters per vector.
    #[must_use]
    pub const fn counters(&self) -> u32 {
        self.counters
    }

    /// Counters of a vector that a flow's packets spread over.
    #[must_use]
    pub const fn per_flow(&self) -> u32 {
        self.per_flow
    }

    /// Parts of a vector, one of which a flow's counters are in.
    #[must_use]
    pub const fn banks(&self) -> u32 {
        self.banks
    }

    /// How much of its sums a counter keeps.
    #[must_use]
    pub const fn stored(&self) -> Stored {
        self.stored
    }

    /// Bytes of state that counters take at one point.
    #[must_use]
    pub fn state_bytes(&self) -> u64 {
        self.stored.widths().state_bytes(self.sampling.len() * self.counters as usize)
    }

    /// Counters that may count more packets than a counter can, of an excerpt as of the whole.
    pub(super) fn escapes_max(&self) -> usize {
        escapes_for(self.sampling.len() * self.counters as usize)
    }

    pub(super) fn cells(&self) -> usize {
        match &self.excerpt {
            None => self.sampling.len() * self.counters as usize,
            Some(excerpt) => excerpt.cells().len(),
        }
    }

    /// The same with those counters only that are needed to answer for some flows; `None` where that
    /// is most of them.
    pub(super) fn about(&self, flows: &[KnownFlow]) -> Option<Self> {
        let excerpt = Excerpt::new(self, flows)?;
        Some(Self { excerpt: Some(Arc::new(excerpt)), ..self.clone() })
    }

    /// The counters that are left, in order, as numbered in whole vectors; `None` for all of them.
    pub(super) fn excerpt(&self) -> Option<&[u32]> {
        self.excerpt.as_deref().map(Excerpt::cells)
    }

    /// What decides where packets are counted.
    #[inline]
    pub(super) fn placing(&self) -> Placing<'_> {
        Placing {
            thresholds: &self.thresholds,
            counters: self.counters,
            per_flow: self.per_flow,
            banks: self.banks,
            bank_counters: self.bank_counters(),
            excerpt: self.excerpt.as_deref(),
        }
    }

    pub(super) const fn bank_counters(&self) -> u32 {
        self.counters / self.banks
    }

    /// How many times as many banks, and as many counters to a bank, this has as `coarser`, if
    /// both are powers of two and all else is equal. Excerpts cannot be folded.
    pub(super) fn finer_than(&self, coarser: &Self) -> Option<(u32, u32)> {
        let factor = |fine: u32, coarse: u32| {
            let factor = fine / coarse;
            (fine.is_multiple_of(coarse) && factor.is_power_of_two()).then_some(factor)
        };
        let banks = factor(self.banks, coarser.banks)?;
        let counters = factor(self.bank_counters(), coarser.bank_counters())?;
        let like = Self { counters: self.counters, banks: self.banks, ..coarser.clone() };
        (self.excerpt.is_none() && *self == like).then_some((banks, counters))
    }

    pub(super) fn encode(&self, out: &mut Writer) {
        out.u32(self.counters);
        out.u32(self.per_flow);
        out.u32(self.banks);
        out.u32(self.stored.resolution_ns);
        out.u8(self.stored.time_bits);
        out.u8(self.stored.digest_bits);
        out.u8(self.sampling.len() as u8);
        for &rate in &self.sampling {
            out.f64(rate);
        }
    }

    pub(super) fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let counters = input.u32("counters")?;
        let per_flow = input.u32("counters per flow")?;
        let banks = input.u32("banks")?;
        let stored = Stored {
            resolution_ns: input.u32("resolution")?,
            time_bits: input.u8("time bits")?,
            digest_bits: input.u8("digest bits")?,
        };
        let vectors = input.u8("vectors")?;
        let sampling =
            (0..vectors).map(|_| input.f64("sampling")).collect::<Result<Vec<_>, _>>()?;
        Self::new(counters, per_flow, &sampling)
            .and_then(|config| config.with_banks(banks))
            .and_then(|config| config.with_stored(stored))
            .map_err(|problem| DecodeError::invalid("configuration", problem))
    }
}

impl Layout for ColateConfig {
    fn sampling(&self) -> &[f64] {
        &self.sampling
    }

    fn spread(&self) -> u32 {
        self.per_flow
    }

    fn is_partial(&self) -> bool {
        self.excerpt.is_some()
    }

    fn region_cells(&self) -> usize {
        self.excerpt
            .as_ref()
            .map_or(self.bank_counters() as usize, |excerpt| excerpt.region_cells())
    }

    fn cells_counting(
        &self,
        flow: FlowHash,
        group: Option<GroupId>,
        digest: PacketDigest,
    ) -> Vec<usize> {
        let placing = self.placing();
        let banks = match group.map(|group| placing.bank_of(group)) {
            Some(bank) => bank..bank + 1,
            None => 0..self.banks,
        };
        let numbers = (0..self.rows())
            .filter_map(|vector| Some((vector, placing.number_for(vector, digest)?)));
        let cells = numbers.flat_map(|(vector, number)| {
            banks
                .clone()
                .filter_map(move |bank| placing.place(placing.cell(vector, bank, flow, number)))
        });
        cells.collect()
    }

    fn cells_of(&self, place: Place, row: usize) -> impl ExactSizeIterator<Item = usize> {
        let placing = self.placing();
        let bank = placing.bank_of(place.group);
        (0..self.per_flow).map(move |number| {
            let cell = placing.cell(row, bank, place.flow, number);
            placing.place(cell).expect("an excerpt is asked about the flows it was made for")
        })
    }
}

#[cfg(test)]
mod tests;

//! A coordinated sample: packets that both points choose alike, each with its time.
//!
//! A packet's digest gives it a rank that has nothing to do with its delay, and that both points
//! agree on without talking. A point keeps the packets of lowest ranks that its budget holds: when
//! it is full it goes to the next [level](SampleLevel) and drops what that does not keep. Levels
//! are nested, so points that had to choose different ones meet at the higher. The packets of that
//! level are a fair sample of all, and of each the exact delay is known: percentiles, jitter, and
//! what clocks do, where sketches know means only.
//!
//! Coordinated (hash-based) selection as in N. Duffield, M. Grossglauser: "Trajectory Sampling for
//! Direct Traffic Observation", IEEE/ACM Transactions on Networking 9(3), 2001; the same idea is
//! RFC 5475, section 6.2. How many packets make an interval is the business of the model.

mod config;
mod entries;
mod estimate;
mod mean;
mod parts;
#[cfg(test)]
mod tests;

pub use config::SampleConfig;

use twixt_model::{Estimate, FlowHash, Observation, PacketDigest, SampleLevel};

use crate::codec::{DecodeError, Reader, Writer};
use crate::question::Question;
use crate::sums::Sums;
use crate::synopsis::{
    ConfigOption, FlowNames, Needs, OptionKind, Pair, Reading, Synopsis, TwoPoint,
};
use crate::totals::Totals;
use config::KEPT;
use entries::{Entries, Entry};
use parts::PartCounts;

/// A bounded sample of packets, chosen by digest.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    config: SampleConfig,
    totals: Totals,
    level: SampleLevel,
    /// All packets of this level; never more than the configuration allows.
    entries: Entries,
    /// `None` if a part of it was recorded before these were counted.
    parts: Option<PartCounts>,
    /// Those of all packets, sampled or not: where none was lost, they know the mean. `None` if a part was recorded
    /// before they were kept.
    sums: Option<Sums>,
}

/// Keeps ranks apart from what else is derived from digests: the sample must know nothing of
/// which cell of another synopsis a packet falls into.
const RANK_SALT: u64 = 0x7361_6d70_6c65_0001;
/// The same for flows.
const FLOW_SALT: u64 = 0x7361_6d70_6c65_0002;

impl Sample {
    /// Keeps a packet if the level does, going to higher levels while there is no room.
    fn keep(&mut self, entry: Entry) {
        while self.level.keeps(entry.rank) && self.entries.len() >= self.config.packets() {
            // Only packets of the two lowest ranks of all are left: they are as good as identical.
            let Some(next) = self.level.next() else { return };
            self.raise(next);
        }
        if self.level.keeps(entry.rank) {
            self.entries.push(entry);
        }
    }

    fn raise(&mut self, level: SampleLevel) {
        self.level = level;
        self.entries.retain(|rank| level.keeps(rank));
    }

    fn entry(&self, observation: &Observation) -> Entry {
        Entry {
            rank: rank_of(observation.digest),
            time_ns: observation.time.as_nanos(),
            flow: self.config.keeps_flows().then(|| tag_of(observation.flow)),
        }
    }
}

/// What decides whether a packet is kept.
#[inline]
const fn rank_of(digest: PacketDigest) -> u64 {
    digest.derive(RANK_SALT)
}

/// What a packet adds to the sums of all. Ranks stand for digests, as they do in the sample.
#[inline]
const fn sums_of(rank: u64, time_ns: i64) -> Sums {
    Sums { times: time_ns as u64, packets: 1, digests: rank }
}

/// Those of a sample that has every packet.
fn sums_of_all(entries: &Entries) -> Sums {
    let mut sums = Sums::default();
    entries.iter().for_each(|entry| sums.add(&sums_of(entry.rank, entry.time_ns)));
    sums
}

/// What is kept of a flow: enough to distinguish flows, and not to name one.
const fn tag_of(flow: FlowHash) -> u32 {
    (flow.derive(FLOW_SALT) >> 32) as u32
}

impl Synopsis for Sample {
    const NAME: &'static str = "sample";
    const TAG: u16 = 7;
    /// The first had no counts by part, the second those of 64 parts and no sums.
    const VERSION: u8 = 3;
    const SUMMARY: &'static str =
        "percentiles, from a bounded sample of packets seen at both points";
    const NEEDS: Needs =
        Needs { digest: true, flow: false, detail: false, group: false, exchange: false };
    const OPTIONS: &'static [ConfigOption] = &[
        ConfigOption {
            name: "budget_bytes",
            kind: OptionKind::Integer,
            help: "bytes for the sampled packets of an epoch",
        },
        ConfigOption {
            name: "keep",
            kind: OptionKind::Choice(KEPT),
            help: "what to keep of a packet's flow: a hash, for --by, or nothing, for more packets",
        },
        ConfigOption {
            name: "parts",
            kind: OptionKind::Integer,
            help: "parts of all digests whose packets are counted, a power of two: more notice fewer identical packets",
        },
    ];
    type Config = SampleConfig;

    fn sized(memory_bytes: u64) -> Option<SampleConfig> {
        SampleConfig::within(memory_bytes)
    }

    fn new(config: &SampleConfig) -> Self {
        Self {
            config: config.clone(),
            totals: Totals::default(),
            level: SampleLevel::ALL,
            entries: Entries::with_room(config),
            parts: Some(PartCounts::new(config.parts())),
            sums: Some(Sums::default()),
        }
    }

    fn config(&self) -> &SampleConfig {
        &self.config
    }

    fn needs(&self) -> Needs {
        Needs { flow: self.config.keeps_flows(), ..Self::NEEDS }
    }

    fn flow_names(&self) -> FlowNames {
        FlowNames::None
    }

    #[inline]
    fn update(&mut self, observation: &Observation) {
        self.totals.add(observation.length);
        let rank = rank_of(observation.digest);
        if let Some(parts) = &mut self.parts {
            parts.add(rank);
        }
        if let Some(sums) = &mut self.sums {
            sums.add(&sums_of(rank, observation.time.as_nanos()));
        }
        if self.level.keeps(rank) {
            self.keep(self.entry(observation));
        }
    }

    fn merge(&mut self, other: &Self) {
        self.totals.merge(other.totals);
        self.parts = self.parts.take().zip(other.parts.as_ref()).map(|(mut parts, others)| {
            parts.merge(others);
            parts
        });
        self.sums = self.sums.zip(other.sums).map(|(mut sums, others)| {
            sums.add(&others);
            sums
        });
        if other.level > self.level {
            self.raise(other.level);
        }
        for entry in other.entries.iter() {
            self.keep(entry);
        }
    }

    fn totals(&self) -> Totals {
        self.totals
    }

    fn state_bytes(&self) -> u64 {
        self.config.state_bytes()
    }

    fn encode(&self, out: &mut Writer) {
        self.config.encode(out);
        self.totals.encode(out);
        out.u16(self.level.number());
        self.entries.encode(out);
        out.u8(u8::from(self.parts.is_some()));
        if let Some(parts) = &self.parts {
            parts.encode(out);
        }
        out.u8(u8::from(self.sums.is_some()));
        if let Some(sums) = &self.sums {
            out.u64(sums.times);
            out.u64(sums.digests);
        }
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Self::decode_for(input, Reading { version: Self::VERSION, flows: None })
    }

    fn decode_for(input: &mut Reader<'_>, reading: Reading<'_>) -> Result<Self, DecodeError> {
        let config = SampleConfig::decode(input)?;
        let totals = Totals::decode(input)?;
        let level = input.u16("sample level")?;
        let level = SampleLevel::from_number(level)
            .ok_or_else(|| DecodeError::invalid("sample level", format!("{level} is too high")))?;
        let entries = Entries::decode(input, &config, level)?;
        let is_counted = reading.version > 1 && input.flag("whether parts are counted")?;
        let mut parts = match reading.version {
            _ if !is_counted => None,
            2 => Some(PartCounts::decode_first(input)?),
            _ => Some(PartCounts::decode(input)?),
        };
        let has_sums = reading.version > 2 && input.flag("whether there are sums")?;
        let mut sums = if has_sums { Some(decode_sums(totals, input)?) } else { None };
        // Earlier versions lack some of it; where every packet was kept, it can be made up for.
        if reading.version < Self::VERSION && level == SampleLevel::ALL {
            parts = Some(PartCounts::of(&entries, config.parts()));
            sums = Some(sums_of_all(&entries));
        }
        Ok(Self { config, totals, level, entries, parts, sums })
    }
}

fn decode_sums(totals: Totals, input: &mut Reader<'_>) -> Result<Sums, DecodeError> {
    let times = input.u64("time sum")?;
    Ok(Sums { times, packets: totals.packets, digests: input.u64("sum of ranks")? })
}

impl TwoPoint for Sample {
    const ESTIMATORS: &'static [&'static str] = &[];
    const PER_FLOW: bool = true;

    /// The exact inverse of an update that did not raise the level. After one that did, the level
    /// stays where it is: what it dropped is gone, and the sample is as fair as before.
    fn remove(&mut self, observation: &Observation) {
        self.totals.subtract(observation.length);
        let entry = self.entry(observation);
        if let Some(parts) = &mut self.parts {
            parts.remove(entry.rank);
        }
        if let Some(sums) = &mut self.sums {
            sums.subtract(&sums_of(entry.rank, entry.time_ns));
        }
        if self.level.keeps(entry.rank) {
            self.entries.remove(entry);
        }
    }

    fn fold_to(&self, config: &SampleConfig) -> Option<Self> {
        if !self.config.holds(config) {
            return None;
        }
        let parts = self.parts.as_ref().map(|parts| parts.folded(config.parts()));
        let (totals, level, sums) = (self.totals, self.level, self.sums);
        let mut folded = Self { totals, level, parts, sums, ..Self::new(config) };
        for entry in self.entries.iter() {
            let flow = entry.flow.filter(|_| config.keeps_flows());
            folded.keep(Entry { flow, ..entry });
        }
        Some(folded)
    }

    fn estimate(pair: Pair<'_, Self>, question: &Question<'_>) -> Vec<Estimate> {
        estimate::estimate(pair, question)
    }
}

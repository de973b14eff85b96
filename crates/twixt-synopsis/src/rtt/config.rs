//! Settings that algorithms for round trips share, and how users write them.

use serde::{Deserialize, Serialize};
use twixt_model::Histogram;

use super::connection::Connection;
use super::grouping::Grouping;
use super::kinds::KindSet;
use crate::codec::{DecodeError, Reader, Writer};
use crate::flow_table::FlowTable;
use crate::synopsis::{ConfigOption, OptionKind};

/// What is watched, and with how much state besides the table of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watch {
    /// Kinds of round trip.
    pub kinds: KindSet,
    /// How round trips are grouped.
    pub by: Grouping,
    /// Flows for which sequence numbers and spin bits are followed at once; 0 for none.
    pub flows: u32, // in [0, FLOWS_MAX]
    /// Buckets of a histogram at most.
    pub buckets: u32, // in [Histogram::BUCKETS_MIN, BUCKETS_MAX]
    /// Of the hash that names exchanges.
    pub seed: u32,
}

const FLOWS_MAX: u32 = 1 << 20;
const FLOWS_DEFAULT: u32 = 1024;
const BUCKETS_MAX: u32 = 4096;
/// Entries of a table of requests at most.
pub(super) const ENTRIES_MAX: u32 = 1 << 24;

impl Default for Watch {
    fn default() -> Self {
        Self {
            kinds: KindSet::default(),
            by: Grouping::default(),
            flows: FLOWS_DEFAULT,
            buckets: Histogram::BUCKETS_DEFAULT as u32,
            seed: 1,
        }
    }
}

/// Settings as users write them, of all algorithms for round trips. Everything has a default.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Settings {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) entries: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) entry_probability: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) longest: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) expire: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) fridges: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) flows: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) buckets: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) seed: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) kind: Option<KindSet>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) by: Option<Grouping>,
}

/// Which kinds, and whose: options of every algorithm.
pub(super) const KIND: ConfigOption = ConfigOption {
    name: "kind",
    kind: OptionKind::Text("KINDS"),
    help: "kinds of round trip to measure, comma separated",
};
pub(super) const BY: ConfigOption = ConfigOption {
    name: "by",
    kind: OptionKind::Text("SCOPE"),
    help: "group round trips by all, flow, host, prefix/24, port, dscp or class",
};
pub(super) const FLOWS: ConfigOption = ConfigOption {
    name: "flows",
    kind: OptionKind::Integer,
    help: "flows whose sequence numbers and spin bits are tracked at once; 0 for none",
};
pub(super) const BUCKETS: ConfigOption = ConfigOption {
    name: "buckets",
    kind: OptionKind::Integer,
    help: "maximum number of buckets of a histogram, 1 % wide as long as they are enough",
};
pub(super) const SEED: ConfigOption = ConfigOption {
    name: "seed",
    kind: OptionKind::Integer,
    help: "seed of the hash that selects requests and entries [default: 1]",
};

impl Settings {
    /// Refuses settings that are not among these options.
    pub(super) fn only(self, options: &[ConfigOption]) -> Result<Self, String> {
        let given = [
            ("entries", self.entries.is_some()),
            ("entry_probability", self.entry_probability.is_some()),
            ("longest", self.longest.is_some()),
            ("expire", self.expire.is_some()),
            ("fridges", self.fridges.is_some()),
            ("flows", self.flows.is_some()),
            ("buckets", self.buckets.is_some()),
            ("seed", self.seed.is_some()),
        ];
        let known = |name: &str| options.iter().any(|option| option.name == name);
        match given.into_iter().find(|&(name, given)| given && !known(name)) {
            Some((name, _)) => Err(format!("unknown setting {name}")),
            None => Ok(self),
        }
    }

    /// The part that all share.
    pub(super) fn watch(&self) -> Result<Watch, String> {
        let default = Watch::default();
        let watch = Watch {
            kinds: self.kind.unwrap_or_default(),
            by: self.by.unwrap_or_default(),
            flows: self.flows.unwrap_or(default.flows),
            buckets: self.buckets.unwrap_or(default.buckets),
            seed: self.seed.unwrap_or(default.seed),
        };
        watch.checked()
    }
}

impl Watch {
    /// As settings; what has nothing to do with size only if it is not the default, so that it can
    /// be given beside a size.
    pub(super) fn settings(&self) -> Settings {
        Settings {
            flows: Some(self.flows),
            buckets: Some(self.buckets),
            seed: (self.seed != Self::default().seed).then_some(self.seed),
            ..self.bare_settings()
        }
    }

    /// As settings of an algorithm that is not bounded.
    pub(super) fn bare_settings(&self) -> Settings {
        Settings {
            kind: (self.kinds != KindSet::default()).then_some(self.kinds),
            by: (self.by != Grouping::default()).then_some(self.by),
            ..Settings::default()
        }
    }

    fn checked(self) -> Result<Self, String> {
        let buckets = Histogram::BUCKETS_MIN as u32..=BUCKETS_MAX;
        if self.flows > FLOWS_MAX {
            return Err(format!("flows must be at most {FLOWS_MAX}, not {}", self.flows));
        }
        if !buckets.contains(&self.buckets) {
            let (least, most) = (buckets.start(), buckets.end());
            return Err(format!(
                "buckets must be between {least} and {most}, not {}",
                self.buckets
            ));
        }
        Ok(self)
    }

    pub(super) fn encode(&self, out: &mut Writer) {
        out.u16(self.kinds.bits());
        self.by.encode(out);
        out.u32(self.flows);
        out.u32(self.buckets);
        out.u32(self.seed);
    }

    pub(super) fn decode(input: &mut Reader<'_>, version: u8) -> Result<Self, DecodeError> {
        let bits = input.u16("kinds")?;
        let kinds = KindSet::from_bits_of(bits, version)
            .ok_or_else(|| DecodeError::invalid("kinds", "are unknown"))?;
        let watch = Self {
            kinds,
            by: Grouping::decode(input)?,
            flows: input.u32("flows")?,
            buckets: input.u32("buckets")?,
            seed: input.u32("seed")?,
        };
        watch.checked().map_err(|problem| DecodeError::invalid("configuration", problem))
    }
}

/// Checks the size of a table of requests.
pub(super) fn checked_entries(entries: u32) -> Result<u32, String> {
    match entries {
        2..=ENTRIES_MAX => Ok(entries),
        _ => Err(format!("entries must be between 2 and {ENTRIES_MAX}, not {entries}")),
    }
}

/// Checks a share of requests.
pub(super) fn checked_probability(probability: f64) -> Result<f64, String> {
    match probability > 0.0 && probability <= 1.0 {
        true => Ok(probability),
        false => Err(format!("a probability must be above 0 and at most 1, not {probability}")),
    }
}

/// Bytes of state of a table of so many entries, with a histogram for one kind of round trip.
pub(super) fn bytes_of(entries: u32, watch: &Watch) -> u64 {
    OVERHEAD_BYTES
        + u64::from(entries) * ENTRY_BYTES
        + u64::from(watch.flows) * FLOW_BYTES
        + u64::from(watch.buckets) * BUCKET_BYTES
}

const ENTRY_BYTES: u64 = 24;
/// A range of sequence numbers, and half of a connection.
const FLOW_BYTES: u64 = 24 + CONNECTION_BYTES / 2;
/// Of two histograms: most kinds have two parts, toward servers and toward clients.
const BUCKET_BYTES: u64 = 2 * 16;
const CONNECTION_BYTES: u64 = FlowTable::<Connection>::PLACE_BYTES as u64;
/// Counts and sums of one kind.
const OVERHEAD_BYTES: u64 = 512;

/// How memory is shared out: entries of the table, and the rest of the state, for one kind of
/// round trip. Half goes to the table; flows and buckets get a quarter each, up to their defaults.
pub(super) fn within(memory_bytes: u64) -> Option<(u32, Watch)> {
    const ENTRIES_WORTH_IT: u64 = 16;
    let left = memory_bytes.checked_sub(OVERHEAD_BYTES)?;
    let default = Watch::default();
    let flows = (left / 4 / FLOW_BYTES).min(u64::from(default.flows));
    let buckets =
        (left / 4 / BUCKET_BYTES).clamp(Histogram::BUCKETS_MIN as u64, u64::from(default.buckets));
    let left = left.checked_sub(flows * FLOW_BYTES + buckets * BUCKET_BYTES)?;
    let entries = (left / ENTRY_BYTES).min(u64::from(ENTRIES_MAX));
    let watch = Watch { flows: flows as u32, buckets: buckets as u32, ..default };
    (entries >= ENTRIES_WORTH_IT).then_some((entries as u32, watch))
}

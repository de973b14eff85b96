//! Several fridges side by side: some for short round trips, some for long ones.
//!
//! A fridge that admits many requests measures short round trips precisely and loses the long
//! ones; one that admits few does the opposite. Each request goes to one of them at most. A round
//! trip found in any of them counts by its chance to be found in all of them together, which is
//! unbiased, and as good as weighing each fridge by its true variance. (Weighing them by variances
//! estimated from what they found, as printed, loses most of the long round trips.)
//!
//! Zheng, Chen, Braverman, Rexford: "Unbiased delay measurement in the data plane", APOCS 2022;
//! the weights are the balance heuristic of Veach and Guibas: "Optimally combining sampling
//! techniques", SIGGRAPH 1995.

use serde::{Deserialize, Serialize};
use twixt_model::Timestamp;

use super::config::{
    BUCKETS, BY, FLOWS, KIND, SEED, Settings, Watch, checked_entries, checked_probability, within,
};
use super::entry::{Answer, Asked, Entry, Request};
use super::table::{Table, admission_bits, threshold};
use super::watcher::{Pace, Store, Watcher};
use super::weights::{Compartment, fridges_weight, horizon_lifetimes};
use crate::codec::{DecodeError, Reader, Writer};
use crate::synopsis::{ConfigOption, OptionKind};

/// Round trips by several fridges.
pub type Fridges = Watcher<FridgesStore>;

/// Sizes of several fridges. The default has one of 2048 entries for a sixteenth of all requests,
/// and one for a 512th.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Settings", into = "Settings")]
pub struct FridgesConfig {
    watch: Watch,
    fridges: Vec<Compartment>, // in [1, FRIDGES_MAX] of them, probabilities sum to 1 at most
}

const FRIDGES_MAX: usize = 16;
const PROBABILITIES_DEFAULT: [f64; 2] = [1.0 / 16.0, 1.0 / 512.0];
const ENTRIES_DEFAULT: u32 = 2048;

impl FridgesConfig {
    /// These fridges.
    ///
    /// # Errors
    /// When a number is out of its range; the text says which.
    pub fn new(watch: Watch, fridges: &[Compartment]) -> Result<Self, String> {
        if fridges.is_empty() || fridges.len() > FRIDGES_MAX {
            return Err(format!("fridges must be 1 to {FRIDGES_MAX}, not {}", fridges.len()));
        }
        for fridge in fridges {
            checked_entries(fridge.entries)?;
            checked_probability(fridge.probability)?;
        }
        if fridges.iter().map(|fridge| fridge.probability).sum::<f64>() > 1.0 {
            return Err("probabilities of fridges must not sum to more than 1: a request goes to \
                        one of them"
                .to_owned());
        }
        Ok(Self { watch, fridges: fridges.to_vec() })
    }

    fn equal(watch: Watch, entries: u32) -> Self {
        let fridge = |probability: f64| Compartment { entries, probability };
        Self { watch, fridges: PROBABILITIES_DEFAULT.map(fridge).to_vec() }
    }
}

/// Reads `1024:0.0625,1024:0.002`: entries and probability of each.
fn read_fridges(text: &str) -> Result<Vec<Compartment>, String> {
    let wrong = || "write entries:probability for each, such as 1024:0.0625,1024:0.002".to_owned();
    let fridge = |part: &str| {
        let (entries, probability) = part.trim().split_once(':')?;
        Some(Compartment { entries: entries.parse().ok()?, probability: probability.parse().ok()? })
    };
    text.split(',').map(|part| fridge(part).ok_or_else(wrong)).collect()
}

impl Default for FridgesConfig {
    fn default() -> Self {
        Self::equal(Watch::default(), ENTRIES_DEFAULT)
    }
}

impl TryFrom<Settings> for FridgesConfig {
    type Error = String;

    fn try_from(settings: Settings) -> Result<Self, String> {
        let settings = settings.only(FridgesStore::OPTIONS)?;
        let watch = settings.watch()?;
        match &settings.fridges {
            Some(text) => Self::new(watch, &read_fridges(text)?),
            None => Ok(Self::equal(watch, ENTRIES_DEFAULT)),
        }
    }
}

impl From<FridgesConfig> for Settings {
    fn from(config: FridgesConfig) -> Self {
        let fridges: Vec<String> = config
            .fridges
            .iter()
            .map(|fridge| format!("{}:{}", fridge.entries, fridge.probability))
            .collect();
        Self { fridges: Some(fridges.join(",")), ..config.watch.settings() }
    }
}

/// The fridges, with one count of requests for all of them.
#[derive(Clone, Debug, PartialEq)]
pub struct FridgesStore {
    fridges: Vec<Compartment>,
    tables: Vec<Table>,
    /// A request goes to the first whose limit lies above its bits.
    limits: Vec<u64>,
    /// New requests so far; wraps, and only differences mean anything.
    requests: u32,
}

impl FridgesStore {
    #[inline]
    fn table_for(&mut self, id: u64) -> Option<&mut Table> {
        let bits = admission_bits(id);
        let index = self.limits.iter().position(|&limit| bits < limit)?;
        Some(&mut self.tables[index])
    }
}

impl Store for FridgesStore {
    const NAME: &'static str = "fridges";
    const TAG: u16 = 19;
    const SUMMARY: &'static str = "several fridges, for short and for long round trips";
    const OPTIONS: &'static [ConfigOption] = &[
        KIND,
        BY,
        ConfigOption {
            name: "fridges",
            kind: OptionKind::Text("LIST"),
            help: "entries and entry probability of each, such as 1024:0.0625,1024:0.002",
        },
        FLOWS,
        BUCKETS,
        SEED,
    ];
    const BOUNDED: bool = true;
    type Config = FridgesConfig;

    fn new(config: &FridgesConfig) -> Self {
        let limits = config.fridges.iter().scan(0, |sum, fridge| {
            *sum += threshold(fridge.probability);
            Some(*sum)
        });
        Self {
            limits: limits.collect(),
            tables: config.fridges.iter().map(|fridge| Table::new(fridge.entries)).collect(),
            fridges: config.fridges.clone(),
            requests: 0,
        }
    }

    fn sized(memory_bytes: u64) -> Option<FridgesConfig> {
        let (entries, watch) = within(memory_bytes)?;
        Some(FridgesConfig::equal(watch, entries / PROBABILITIES_DEFAULT.len() as u32))
    }

    fn watch(config: &FridgesConfig) -> &Watch {
        &config.watch
    }

    fn encode_config(config: &FridgesConfig, out: &mut Writer) {
        config.watch.encode(out);
        out.u8(config.fridges.len() as u8);
        for fridge in &config.fridges {
            out.u32(fridge.entries);
            out.f64(fridge.probability);
        }
    }

    fn decode_config(input: &mut Reader<'_>, version: u8) -> Result<FridgesConfig, DecodeError> {
        let (watch, count) = (Watch::decode(input, version)?, input.u8("fridges")?);
        let mut fridge = || {
            let (entries, probability) = (input.u32("entries")?, input.f64("entry probability")?);
            Ok(Compartment { entries, probability })
        };
        let fridges = (0..count).map(|_| fridge()).collect::<Result<Vec<_>, _>>()?;
        FridgesConfig::new(watch, &fridges)
            .map_err(|problem| DecodeError::invalid("configuration", problem))
    }

    #[inline]
    fn ask(&mut self, request: &Request) -> Asked {
        let requests = self.requests;
        if let Some(table) = self.table_for(request.id) {
            let entry = table.place(request.id);
            if entry.is(request.id) {
                return entry.meet(request, requests, 0);
            }
            *entry = Entry::new(request, requests.wrapping_add(1), 0);
            self.requests = requests.wrapping_add(1);
            return Asked::Kept;
        }
        self.requests = requests.wrapping_add(1);
        Asked::Refused
    }

    #[inline]
    fn answer(&mut self, id: u64, _: Timestamp) -> Option<Answer> {
        let requests = self.requests;
        let stamp = self.find(id)?.stamp;
        let weight = fridges_weight(&self.fridges, requests.wrapping_sub(stamp));
        self.find(id)?.answer(weight)
    }

    #[inline]
    fn find(&mut self, id: u64) -> Option<&mut Entry> {
        self.table_for(id)?.find(id)
    }

    fn horizon(config: &FridgesConfig, pace: &Pace, matched: u64) -> Option<i64> {
        let longest = config.fridges.iter().map(Compartment::lifetime_requests);
        let lifetime = longest.fold(0.0, f64::max);
        pace.time_of(lifetime * horizon_lifetimes(matched), pace.requests)
    }

    fn state_bytes(&self) -> u64 {
        self.tables.iter().map(Table::state_bytes).sum()
    }
}

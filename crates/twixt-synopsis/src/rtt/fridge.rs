//! Fridge: a small table of requests that knows how much it has lost.
//!
//! A share of all requests is admitted; each replaces the request at its place. Beside a request
//! stands how many had been admitted before it, as one writes the date on what goes into a fridge.
//! When the response comes, the difference tells how likely the request was to be still there,
//! and the round trip counts as often as that is unlikely. So short and long round trips are
//! represented alike, up to a horizon beyond which nothing survives to be seen.
//!
//! Zheng, Chen, Braverman, Rexford: "Unbiased delay measurement in the data plane", APOCS 2022.

use serde::{Deserialize, Serialize};
use twixt_model::Timestamp;

use super::config::{
    BUCKETS, BY, FLOWS, KIND, SEED, Settings, Watch, checked_entries, checked_probability, within,
};
use super::entry::{Answer, Asked, Entry, Request};
use super::simple::{ENTRIES, ENTRIES_DEFAULT};
use super::table::{Table, admission_bits, threshold};
use super::watcher::{Pace, Store, Watcher};
use super::weights::{fridge_weight, halvings_for, horizon_lifetimes};
use crate::codec::{DecodeError, Reader, Writer};
use crate::synopsis::{ConfigOption, OptionKind};

/// Round trips by a fridge.
pub type Fridge = Watcher<FridgeStore>;

/// Sizes of a fridge. The default has 4096 entries and tunes itself for round trips up to 2 s.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Settings", into = "Settings")]
pub struct FridgeConfig {
    watch: Watch,
    entries: u32,             // in [2, ENTRIES_MAX]
    probability: Option<f64>, // in (0, 1]
    longest_ns: u64,          // not 0
}

const LONGEST_DEFAULT_NS: u64 = 2_000_000_000;

impl FridgeConfig {
    /// A fridge of `entries` that admits requests with `probability`; if `None`, with one that
    /// suits the pace of requests and round trips up to `longest_ns`.
    ///
    /// # Errors
    /// When a number is out of its range; the text says which.
    pub fn new(
        watch: Watch,
        entries: u32,
        probability: Option<f64>,
        longest_ns: u64,
    ) -> Result<Self, String> {
        if longest_ns == 0 {
            return Err("longest must be more than 0".to_owned());
        }
        let probability = probability.map(checked_probability).transpose()?;
        Ok(Self { watch, entries: checked_entries(entries)?, probability, longest_ns })
    }

    /// Requests that can wait at once.
    #[must_use]
    pub const fn entries(&self) -> u32 {
        self.entries
    }
}

impl Default for FridgeConfig {
    fn default() -> Self {
        Self {
            watch: Watch::default(),
            entries: ENTRIES_DEFAULT,
            probability: None,
            longest_ns: LONGEST_DEFAULT_NS,
        }
    }
}

impl TryFrom<Settings> for FridgeConfig {
    type Error = String;

    fn try_from(settings: Settings) -> Result<Self, String> {
        let settings = settings.only(FridgeStore::OPTIONS)?;
        Self::new(
            settings.watch()?,
            settings.entries.unwrap_or(ENTRIES_DEFAULT),
            settings.entry_probability,
            settings.longest.unwrap_or(LONGEST_DEFAULT_NS),
        )
    }
}

impl From<FridgeConfig> for Settings {
    fn from(config: FridgeConfig) -> Self {
        Self {
            entries: Some(config.entries),
            entry_probability: config.probability,
            longest: (config.longest_ns != LONGEST_DEFAULT_NS).then_some(config.longest_ns),
            ..config.watch.settings()
        }
    }
}

/// Requests with the count of insertions when they came in.
#[derive(Clone, Debug, PartialEq)]
pub struct FridgeStore {
    table: Table,
    /// Insertions so far; wraps, and only differences mean anything.
    insertions: u32,
    /// The entry probability before it is halved, in units of 2^-32.
    threshold: u64,
    /// How often it is halved now. Each entry notes how often it was when it came in.
    halvings: u8,
    /// Fewest halvings under which an entry that is still there may have come in.
    loosest: u8,
    tuning: Option<Tuning>,
}

/// What the entry probability is set by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tuning {
    longest_ns: u64,
    /// Requests since `since`.
    requests: u32,
    since: Option<Timestamp>,
    /// Insertions when the probability last changed.
    changed_at: u32,
}

/// Requests by whose pace the entry probability is set.
const TUNING_REQUESTS: u32 = 1024;
/// After so many lifetimes e^-8 of the entries are left: a loss that no percentile shows.
const LIFETIMES_FORGOTTEN: u32 = 8;

impl FridgeStore {
    /// Sets the entry probability by the pace of the last requests. The weights of those that
    /// wait stay right, since each notes its own.
    #[inline]
    fn tune(&mut self, now: Timestamp) {
        let Some(tuning) = &mut self.tuning else { return };
        let since = *tuning.since.get_or_insert(now);
        tuning.requests += 1;
        let elapsed_ns = (now - since).as_nanos();
        if tuning.requests <= TUNING_REQUESTS || elapsed_ns <= 0 {
            return;
        }
        let rate = f64::from(tuning.requests - 1) * 1e9 / elapsed_ns as f64;
        (tuning.requests, tuning.since) = (1, Some(now));
        let halvings = halvings_for(self.table.entries(), rate, tuning.longest_ns);
        if halvings != self.halvings {
            self.halvings = halvings;
            self.loosest = self.loosest.min(halvings);
            tuning.changed_at = self.insertions;
        } else if self.insertions.wrapping_sub(tuning.changed_at)
            > self.table.entries().saturating_mul(LIFETIMES_FORGOTTEN)
        {
            self.loosest = halvings;
        }
    }

    #[inline]
    const fn admits(&self, bits: u64, halvings: u8) -> bool {
        bits < self.threshold >> halvings
    }
}

impl Store for FridgeStore {
    const NAME: &'static str = "fridge";
    const TAG: u16 = 18;
    const SUMMARY: &'static str = "a small table that corrects for what it loses, so that long round trips are represented \
         too";
    const OPTIONS: &'static [ConfigOption] = &[
        KIND,
        BY,
        ENTRIES,
        ConfigOption {
            name: "entry_probability",
            kind: OptionKind::Number,
            help: "share of requests to admit [default: from their rate and --longest]",
        },
        ConfigOption {
            name: "longest",
            kind: OptionKind::Duration,
            help: "longest round trip of interest [default: 2s]",
        },
        FLOWS,
        BUCKETS,
        SEED,
    ];
    const BOUNDED: bool = true;
    type Config = FridgeConfig;

    fn new(config: &FridgeConfig) -> Self {
        let tuning =
            Tuning { longest_ns: config.longest_ns, requests: 0, since: None, changed_at: 0 };
        Self {
            table: Table::new(config.entries),
            insertions: 0,
            threshold: threshold(config.probability.unwrap_or(1.0)),
            halvings: 0,
            loosest: 0,
            tuning: config.probability.is_none().then_some(tuning),
        }
    }

    fn sized(memory_bytes: u64) -> Option<FridgeConfig> {
        let (entries, watch) = within(memory_bytes)?;
        Some(FridgeConfig { watch, entries, ..FridgeConfig::default() })
    }

    fn watch(config: &FridgeConfig) -> &Watch {
        &config.watch
    }

    fn encode_config(config: &FridgeConfig, out: &mut Writer) {
        config.watch.encode(out);
        out.u32(config.entries);
        out.f64(config.probability.unwrap_or(0.0));
        out.u64(config.longest_ns);
    }

    fn decode_config(input: &mut Reader<'_>, version: u8) -> Result<FridgeConfig, DecodeError> {
        let (watch, entries) = (Watch::decode(input, version)?, input.u32("entries")?);
        let probability = Some(input.f64("entry probability")?).filter(|&given| given != 0.0);
        FridgeConfig::new(watch, entries, probability, input.u64("longest")?)
            .map_err(|problem| DecodeError::invalid("configuration", problem))
    }

    #[inline]
    fn ask(&mut self, request: &Request) -> Asked {
        self.tune(request.time);
        let bits = admission_bits(request.id);
        if !self.admits(bits, self.loosest) {
            return Asked::Refused;
        }
        let admitted = self.admits(bits, self.halvings);
        let entry = self.table.place(request.id);
        if entry.is(request.id) && (admitted || !entry.is_idle()) {
            return entry.meet(request, self.insertions, self.halvings);
        }
        if !admitted {
            return Asked::Refused;
        }
        self.insertions = self.insertions.wrapping_add(1);
        *entry = Entry::new(request, self.insertions, self.halvings);
        Asked::Kept
    }

    #[inline]
    fn find(&mut self, id: u64) -> Option<&mut Entry> {
        if !self.admits(admission_bits(id), self.loosest) {
            return None;
        }
        self.table.find(id)
    }

    #[inline]
    fn answer(&mut self, id: u64, _: Timestamp) -> Option<Answer> {
        let (entries, insertions) = (self.table.entries(), self.insertions);
        let threshold = self.threshold;
        let entry = self.find(id)?;
        let survived = insertions.wrapping_sub(entry.stamp);
        let probability = (threshold >> entry.note()) as f64 / 2_f64.powi(32);
        entry.answer(fridge_weight(entries, probability, survived))
    }

    /// The pace of the epoch that ends says nothing of a pause that may follow.
    fn end_epoch(&mut self) {
        if let Some(tuning) = &mut self.tuning {
            (tuning.requests, tuning.since) = (0, None);
        }
    }

    fn horizon(config: &FridgeConfig, pace: &Pace, matched: u64) -> Option<i64> {
        let insertions = f64::from(config.entries) * horizon_lifetimes(matched);
        pace.time_of(insertions, pace.kept)
    }

    fn state_bytes(&self) -> u64 {
        self.table.state_bytes()
    }
}

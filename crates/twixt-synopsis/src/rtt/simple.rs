//! A plain table, as most tools have: the newest request has the place.
//!
//! Biased towards short round trips when the table is small: long ones are overwritten before
//! they are answered. With a limit of age (`expire`) the older request keeps its place until it
//! is as old as that; then long round trips are cut off at the limit instead, or the table fills
//! with requests that are never answered. Nothing is corrected here: it is what `fridge` is
//! compared with, and its error is unknown.
//!
//! Chen, Kim, Aiken, Rexford: "Measuring TCP round-trip time in the data plane", SPIN 2020.

use serde::{Deserialize, Serialize};
use twixt_model::Timestamp;

use super::config::{BUCKETS, BY, FLOWS, KIND, SEED, Settings, Watch, checked_entries, within};
use super::entry::{Answer, Asked, Entry, Request};
use super::table::Table;
use super::watcher::{Pace, Store, Watcher};
use crate::codec::{DecodeError, Reader, Writer};
use crate::synopsis::{ConfigOption, OptionKind};

/// Round trips by a plain table.
pub type SimpleRoundTrips = Watcher<NewestRequests>;

/// Sizes of a plain table. The default has 4096 entries, and no limit of age.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Settings", into = "Settings")]
pub struct SimpleConfig {
    watch: Watch,
    entries: u32, // in [2, ENTRIES_MAX]
    expire_ns: Option<u64>,
}

/// Requests, where the newest has the place.
#[derive(Clone, Debug, PartialEq)]
pub struct NewestRequests {
    table: Table,
    expire_ns: Option<u64>,
}

/// Default number of entries.
pub(super) const ENTRIES_DEFAULT: u32 = 4096;

pub(super) const ENTRIES: ConfigOption = ConfigOption {
    name: "entries",
    kind: OptionKind::Integer,
    help: "requests that can wait at once",
};

impl SimpleConfig {
    /// A table of `entries`, where a request of less than `expire_ns` keeps its place.
    ///
    /// # Errors
    /// When a number is out of its range; the text says which.
    pub fn new(watch: Watch, entries: u32, expire_ns: Option<u64>) -> Result<Self, String> {
        Ok(Self { watch, entries: checked_entries(entries)?, expire_ns })
    }
}

impl Default for SimpleConfig {
    fn default() -> Self {
        Self { watch: Watch::default(), entries: ENTRIES_DEFAULT, expire_ns: None }
    }
}

impl TryFrom<Settings> for SimpleConfig {
    type Error = String;

    fn try_from(settings: Settings) -> Result<Self, String> {
        let settings = settings.only(NewestRequests::OPTIONS)?;
        let entries = settings.entries.unwrap_or(ENTRIES_DEFAULT);
        Self::new(settings.watch()?, entries, settings.expire)
    }
}

impl From<SimpleConfig> for Settings {
    fn from(config: SimpleConfig) -> Self {
        Self { entries: Some(config.entries), expire: config.expire_ns, ..config.watch.settings() }
    }
}

impl Store for NewestRequests {
    const NAME: &'static str = "simple";
    const TAG: u16 = 17;
    const SUMMARY: &'static str =
        "a plain table in which new requests replace old ones; biased if it is small";
    const OPTIONS: &'static [ConfigOption] = &[
        KIND,
        BY,
        ENTRIES,
        ConfigOption {
            name: "expire",
            kind: OptionKind::Duration,
            help: "how long a request keeps its entry against newer ones [default: not at all]",
        },
        FLOWS,
        BUCKETS,
        SEED,
    ];
    const BOUNDED: bool = true;
    const BIASED: bool = true;
    type Config = SimpleConfig;

    fn new(config: &SimpleConfig) -> Self {
        Self { table: Table::new(config.entries), expire_ns: config.expire_ns }
    }

    fn sized(memory_bytes: u64) -> Option<SimpleConfig> {
        let (entries, watch) = within(memory_bytes)?;
        Some(SimpleConfig { watch, entries, expire_ns: None })
    }

    fn watch(config: &SimpleConfig) -> &Watch {
        &config.watch
    }

    fn encode_config(config: &SimpleConfig, out: &mut Writer) {
        config.watch.encode(out);
        out.u32(config.entries);
        out.u8(config.expire_ns.is_some().into());
        out.u64(config.expire_ns.unwrap_or(0));
    }

    fn decode_config(input: &mut Reader<'_>, version: u8) -> Result<SimpleConfig, DecodeError> {
        let (watch, entries) = (Watch::decode(input, version)?, input.u32("entries")?);
        let expires = input.u8("expires")? != 0;
        let expire_ns = input.u64("expire")?;
        SimpleConfig::new(watch, entries, expires.then_some(expire_ns))
            .map_err(|problem| DecodeError::invalid("configuration", problem))
    }

    #[inline]
    fn ask(&mut self, request: &Request) -> Asked {
        let expire_ns = self.expire_ns;
        let entry = self.table.place(request.id);
        if entry.is(request.id) {
            return entry.meet(request, 0, 0);
        }
        let young = |expire_ns: u64| {
            !entry.is_idle() && entry.age_ns(request.time).max(0) as u64 <= expire_ns
        };
        if expire_ns.is_some_and(young) {
            return Asked::Refused;
        }
        *entry = Entry::new(request, 0, 0);
        Asked::Kept
    }

    #[inline]
    fn answer(&mut self, id: u64, _: Timestamp) -> Option<Answer> {
        self.table.find(id)?.answer(1.0)
    }

    #[inline]
    fn find(&mut self, id: u64) -> Option<&mut Entry> {
        self.table.find(id)
    }

    /// Without a limit of age: as long as 95 % survive. With one: the limit.
    fn horizon(config: &SimpleConfig, pace: &Pace, _: u64) -> Option<i64> {
        match config.expire_ns {
            Some(expire_ns) => Some(i64::try_from(expire_ns).unwrap_or(i64::MAX)),
            None => pace.time_of(-0.95_f64.ln() * f64::from(config.entries), pace.kept),
        }
    }

    fn state_bytes(&self) -> u64 {
        self.table.state_bytes()
    }
}

//! Sizes of tables of large flows.

use serde::{Deserialize, Serialize};

use crate::codec::{DecodeError, Reader, Writer};
use crate::synopsis::{ConfigOption, OptionKind};

/// Counters of any table at most: about 100 MB.
pub(super) const ENTRIES_MAX: u32 = 1 << 20;
/// Counters that a flow may choose from at most.
const WAYS_MAX: u32 = 64;
const ENTRIES_DEFAULT: u32 = 1024;

pub(super) const ENTRIES_OPTION: ConfigOption =
    ConfigOption { name: "entries", kind: OptionKind::Integer, help: "flows counted at a time" };

/// How many counters a table has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "EntriesSettings", into = "EntriesSettings")]
pub struct EntriesConfig {
    entries: u32, // in [1, ENTRIES_MAX]
}

/// What users write. Everything has a default.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct EntriesSettings {
    entries: Option<u32>,
}

impl TryFrom<EntriesSettings> for EntriesConfig {
    type Error = String;

    fn try_from(settings: EntriesSettings) -> Result<Self, String> {
        Self::new(settings.entries.unwrap_or(ENTRIES_DEFAULT))
    }
}

impl From<EntriesConfig> for EntriesSettings {
    fn from(config: EntriesConfig) -> Self {
        Self { entries: Some(config.entries) }
    }
}

impl Default for EntriesConfig {
    fn default() -> Self {
        Self { entries: ENTRIES_DEFAULT }
    }
}

impl EntriesConfig {
    /// A table of so many counters.
    ///
    /// # Errors
    /// When there are none, or more than a million; the text says so.
    pub fn new(entries: u32) -> Result<Self, String> {
        if !(1..=ENTRIES_MAX).contains(&entries) {
            return Err(format!("entries must be between 1 and {ENTRIES_MAX}, not {entries}"));
        }
        Ok(Self { entries })
    }

    /// As many counters as fit, when `bytes_for` tells how large a table is.
    pub(super) fn within(memory_bytes: u64, bytes_for: impl Fn(usize) -> u64) -> Option<Self> {
        Self::new(largest(memory_bytes, bytes_for)).ok()
    }

    /// Counters.
    #[must_use]
    pub const fn entries(&self) -> u32 {
        self.entries
    }

    pub(super) fn encode(&self, out: &mut Writer) {
        out.u32(self.entries);
    }

    pub(super) fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let entries = input.u32("entries")?;
        Self::new(entries).map_err(|problem| DecodeError::invalid("entries", problem))
    }
}

/// How many counters a table has, and how many of them a flow may choose from; `WAYS` is the
/// default of that.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "WaysSettings", into = "WaysSettings")]
pub struct WaysConfig<const WAYS: u32> {
    entries: u32, // a multiple of `ways`, in [ways, ENTRIES_MAX]
    ways: u32,    // in [1, WAYS_MAX]
}

/// What users write. Everything has a default.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct WaysSettings {
    entries: Option<u32>,
    ways: Option<u32>,
}

impl<const WAYS: u32> TryFrom<WaysSettings> for WaysConfig<WAYS> {
    type Error = String;

    fn try_from(settings: WaysSettings) -> Result<Self, String> {
        let ways = settings.ways.unwrap_or(WAYS);
        Self::new(settings.entries.unwrap_or(ENTRIES_DEFAULT), ways)
    }
}

impl<const WAYS: u32> From<WaysConfig<WAYS>> for WaysSettings {
    fn from(config: WaysConfig<WAYS>) -> Self {
        Self { entries: Some(config.entries), ways: Some(config.ways) }
    }
}

impl<const WAYS: u32> Default for WaysConfig<WAYS> {
    fn default() -> Self {
        Self::new(ENTRIES_DEFAULT, WAYS).expect("the defaults are valid")
    }
}

impl<const WAYS: u32> WaysConfig<WAYS> {
    /// A table of so many counters, rounded down to a multiple of `ways`.
    ///
    /// # Errors
    /// When a number is out of its range; the text says which.
    pub fn new(entries: u32, ways: u32) -> Result<Self, String> {
        if !(1..=WAYS_MAX).contains(&ways) {
            return Err(format!("ways must be between 1 and {WAYS_MAX}, not {ways}"));
        }
        if !(ways..=ENTRIES_MAX).contains(&entries) {
            return Err(format!("entries must be between {ways} and {ENTRIES_MAX}, not {entries}"));
        }
        Ok(Self { entries: entries - entries % ways, ways })
    }

    /// As many counters as fit, when `bytes_for` tells how large a table is.
    pub(super) fn within(memory_bytes: u64, bytes_for: impl Fn(usize) -> u64) -> Option<Self> {
        Self::new(largest(memory_bytes, bytes_for), WAYS).ok()
    }

    /// Counters.
    #[must_use]
    pub const fn entries(&self) -> u32 {
        self.entries
    }

    /// Counters that a flow may choose from.
    #[must_use]
    pub const fn ways(&self) -> u32 {
        self.ways
    }

    /// Counters per way.
    pub(super) const fn slots(&self) -> usize {
        (self.entries / self.ways) as usize
    }

    pub(super) fn encode(&self, out: &mut Writer) {
        out.u32(self.entries);
        out.u32(self.ways);
    }

    pub(super) fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (entries, ways) = (input.u32("entries")?, input.u32("ways")?);
        let config = Self::new(entries, ways);
        let config = config.map_err(|problem| DecodeError::invalid("entries", problem))?;
        if config.entries != entries {
            let problem = format!("{entries} is not a multiple of {ways}");
            return Err(DecodeError::invalid("entries", problem));
        }
        Ok(config)
    }
}

/// The most entries whose table is within the memory; 0 if not even one is.
fn largest(memory_bytes: u64, bytes_for: impl Fn(usize) -> u64) -> u32 {
    let (mut fits, mut too_many) = (0, ENTRIES_MAX + 1);
    while too_many - fits > 1 {
        let middle = fits + (too_many - fits) / 2;
        match bytes_for(middle as usize) <= memory_bytes {
            true => fits = middle,
            false => too_many = middle,
        }
    }
    fits
}

//! What became of the epochs of a request, as JSON.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What became of every epoch of a request. What is stored is durable.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// Epochs that are stored now.
    #[serde(default)]
    pub stored: u64,
    /// Epochs that were stored already.
    #[serde(default)]
    pub duplicates: u64,
    /// Epochs that were not stored.
    #[serde(default)]
    pub refused: Vec<RefusedEpoch>,
}

/// An epoch that was not stored. What is not known is left out: agents of earlier releases cannot
/// read `null`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedEpoch {
    /// Its place in the request, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<usize>,
    /// Its point, if the record could be read so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub point: Option<String>,
    /// Its number, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<i64>,
    /// Why, for programs; `None` in receipts of earlier releases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<RefusalCode>,
    /// Why, for people.
    #[serde(default)]
    pub reason: String,
}

/// Why nothing of a request was stored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestError {
    /// For people.
    #[serde(default)]
    pub error: String,
}

/// Why an epoch was not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalCode {
    /// The record is not a sealed epoch.
    Undecodable,
    /// The record is of a format or algorithm that a newer collector can read.
    NewerFormat,
    /// The epoch belongs to another domain.
    Domain,
    /// The name of its domain, point or class is not a valid name.
    InvalidName,
    /// One epoch for all time.
    Endless,
    /// The epoch is older than what the collector keeps.
    TooOld,
    /// The epoch lies too far ahead of the collector's clock.
    Future,
    /// A newer run reports as the same point.
    SecondAgent,
    /// The collector has as many points as it may have.
    TooManyPoints,
    /// The decoded epoch needs more memory than the collector has for one agent.
    TooLarge,
    /// The collector's log cannot hold the record.
    Log,
    /// A code of a newer release.
    Unknown,
}

impl Receipt {
    /// Epochs that it accounts for.
    #[must_use]
    pub const fn epochs(&self) -> u64 {
        let refused = self.refused.len() as u64;
        self.stored.saturating_add(self.duplicates).saturating_add(refused)
    }

    /// Whether it says, of the so many epochs of a request, which ones the agent must keep.
    pub(crate) fn names_unsettled(&self, epochs: usize) -> bool {
        let mut unsettled = self.refused.iter().filter(|refused| !refused.is_final());
        unsettled.all(|refused| refused.index.is_some_and(|index| index < epochs))
    }
}

impl RefusedEpoch {
    /// Whether the collector will never store it, so that the agent need not keep it.
    #[must_use]
    pub fn is_final(&self) -> bool {
        // Collectors that sent no code refused for good only.
        self.code.is_none_or(RefusalCode::is_final)
    }
}

impl RefusalCode {
    const NAMES: [(Self, &'static str); 12] = [
        (Self::Undecodable, "undecodable"),
        (Self::NewerFormat, "newer-format"),
        (Self::Domain, "domain"),
        (Self::InvalidName, "invalid-name"),
        (Self::Endless, "endless"),
        (Self::TooOld, "too-old"),
        (Self::Future, "future"),
        (Self::SecondAgent, "second-agent"),
        (Self::TooManyPoints, "too-many-points"),
        (Self::TooLarge, "too-large"),
        (Self::Log, "log"),
        (Self::Unknown, "unknown"),
    ];

    /// The name in receipts and metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        let named = Self::NAMES.iter().find(|(code, _)| *code == self);
        named.expect("every code has a name").1
    }

    /// Whether neither time nor an upgrade of the collector makes the epoch acceptable. A newer
    /// collector may know better than to refuse for good, so an unknown code is not final.
    #[must_use]
    pub const fn is_final(self) -> bool {
        !matches!(self, Self::NewerFormat | Self::Future | Self::Unknown)
    }
}

impl fmt::Display for RefusalCode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl Serialize for RefusalCode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for RefusalCode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let named = Self::NAMES.iter().find(|(_, known)| *known == name);
        Ok(named.map_or(Self::Unknown, |(code, _)| *code))
    }
}

#[cfg(test)]
mod tests;

//! How large a sample may grow, and what it keeps of a packet.

use serde::{Deserialize, Serialize};

use super::parts::PartCounts;
use crate::codec::{DecodeError, Reader, Writer};

/// Budget of a sample for one epoch. The default is 4 KiB with hashes of flows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Settings", into = "Settings")]
pub struct SampleConfig {
    budget_bytes: u32, // in [BUDGET_MIN, BUDGET_MAX]
    keeps_flows: bool,
}

/// What may be kept of a packet's flow.
pub(super) const KEPT: &[&str] = &["flow", "none"];
/// Totals and level.
const FIXED_BYTES: u32 = 16 + 2;
/// What is kept beside the sampled packets, and is no part of their budget.
const BESIDE_BYTES: u32 = PartCounts::BYTES;
/// Rank and time.
const PACKET_BYTES: u32 = 8 + 8;
const FLOW_BYTES: u32 = 4;
const BUDGET_DEFAULT: u32 = 4096;
/// A sample of a handful of packets says nothing.
const BUDGET_MIN: u32 = 256;
const BUDGET_MAX: u32 = 1 << 28;

/// What users write. Everything has a default.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    budget_bytes: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    keep: Option<String>,
}

impl TryFrom<Settings> for SampleConfig {
    type Error = String;

    fn try_from(settings: Settings) -> Result<Self, String> {
        let keeps_flows = match settings.keep.as_deref() {
            None | Some("flow") => true,
            Some("none") => false,
            Some(other) => {
                return Err(format!("keep is one of {}, not {other:?}", KEPT.join(", ")));
            }
        };
        Self::new(settings.budget_bytes.unwrap_or(BUDGET_DEFAULT), keeps_flows)
    }
}

impl From<SampleConfig> for Settings {
    fn from(config: SampleConfig) -> Self {
        let keep = if config.keeps_flows { "flow" } else { "none" };
        Self { budget_bytes: Some(config.budget_bytes), keep: Some(keep.to_owned()) }
    }
}

impl Default for SampleConfig {
    fn default() -> Self {
        Self { budget_bytes: BUDGET_DEFAULT, keeps_flows: true }
    }
}

impl SampleConfig {
    /// A budget for one epoch, with or without a hash of each packet's flow.
    ///
    /// # Errors
    /// When the budget is out of its range.
    pub fn new(budget_bytes: u32, keeps_flows: bool) -> Result<Self, String> {
        if !(BUDGET_MIN..=BUDGET_MAX).contains(&budget_bytes) {
            return Err(format!(
                "budget_bytes must be between {BUDGET_MIN} and {BUDGET_MAX}, not {budget_bytes}"
            ));
        }
        Ok(Self { budget_bytes, keeps_flows })
    }

    /// As large as `memory_bytes` allow.
    pub(super) fn within(memory_bytes: u64) -> Option<Self> {
        let budget = memory_bytes.checked_sub(BESIDE_BYTES.into())?.min(BUDGET_MAX.into());
        Self::new(u32::try_from(budget).ok()?, true).ok()
    }

    /// Packets that the budget holds.
    #[must_use]
    pub const fn packets(&self) -> usize {
        ((self.budget_bytes - FIXED_BYTES) / self.packet_bytes()) as usize
    }

    /// Whether a hash of each packet's flow is kept.
    #[must_use]
    pub const fn keeps_flows(&self) -> bool {
        self.keeps_flows
    }

    /// Whether a sample of this kind could have been one of the other.
    pub(super) const fn holds(&self, smaller: &Self) -> bool {
        self.packets() >= smaller.packets() && (self.keeps_flows || !smaller.keeps_flows)
    }

    pub(super) const fn packet_bytes(&self) -> u32 {
        PACKET_BYTES + if self.keeps_flows { FLOW_BYTES } else { 0 }
    }

    pub(super) fn state_bytes(&self) -> u64 {
        u64::from(FIXED_BYTES + BESIDE_BYTES)
            + self.packets() as u64 * u64::from(self.packet_bytes())
    }

    pub(super) fn encode(&self, out: &mut Writer) {
        out.u32(self.budget_bytes);
        out.u8(u8::from(self.keeps_flows));
    }

    pub(super) fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let budget_bytes = input.u32("sample budget")?;
        let keeps_flows = input.flag("what to keep of flows")?;
        Self::new(budget_bytes, keeps_flows)
            .map_err(|problem| DecodeError::invalid("sample budget", problem))
    }
}

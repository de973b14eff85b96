//! How large a sample may grow, and what it keeps of a packet.

use serde::{Deserialize, Serialize};

use super::parts::PARTS_MAX;
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
/// Sums of all packets: of their times, and of their digests.
const SUMS_BYTES: u32 = 8 + 8;
/// A part of all digests is counted for so many bytes of the budget, with [`PART_BYTES`]. With 256 parts, a digest is
/// noticed that has 1.2 % of 3 000 packets, or 0.06 % of a million.
const BUDGET_PER_PART: u32 = 16;
const PART_BYTES: u32 = 4;
const PARTS_MIN: usize = 16;
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
        let (mut least, mut most) = (0, memory_bytes.min(BUDGET_MAX.into()) as u32);
        // More of it needs more beside it: the largest that fits, by halves.
        while least < most {
            let middle = most - (most - least) / 2;
            match u64::from(middle + beside_bytes(middle)) <= memory_bytes {
                true => least = middle,
                false => most = middle - 1,
            }
        }
        Self::new(least, true).ok()
    }

    /// Packets that the budget holds.
    #[must_use]
    pub const fn packets(&self) -> usize {
        ((self.budget_bytes - FIXED_BYTES) / self.packet_bytes()) as usize
    }

    /// Parts of all digests whose packets are counted.
    pub(super) const fn parts(&self) -> usize {
        parts_beside(self.budget_bytes)
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
        u64::from(FIXED_BYTES + beside_bytes(self.budget_bytes))
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

/// How many parts of all digests are counted beside a budget: a power of two.
const fn parts_beside(budget_bytes: u32) -> usize {
    let parts = (budget_bytes / BUDGET_PER_PART) as usize;
    // The largest power of two that is no more.
    let parts = if parts < PARTS_MIN { PARTS_MIN } else { 1 << parts.ilog2() };
    if parts > PARTS_MAX { PARTS_MAX } else { parts }
}

/// What is kept beside the sampled packets, and is no part of their budget.
const fn beside_bytes(budget_bytes: u32) -> u32 {
    SUMS_BYTES + PART_BYTES * parts_beside(budget_bytes) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_for_everything() {
        for memory in [400, 1_000, 4_096, 5_136, 5_137, 65_536, 1 << 20] {
            let config = SampleConfig::within(memory).unwrap();
            let more = SampleConfig::new(config.budget_bytes + 1, true).unwrap();
            let used = |config: &SampleConfig| {
                u64::from(config.budget_bytes + beside_bytes(config.budget_bytes))
            };
            assert!(used(&config) <= memory && memory < used(&more), "{memory}: {config:?}");
        }
        assert_eq!(SampleConfig::default().parts(), 256);
        assert_eq!(SampleConfig::within(300), None);
    }
}

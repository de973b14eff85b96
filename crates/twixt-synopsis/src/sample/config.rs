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
    parts: u16, // a power of two in [PARTS_MIN, PARTS_MAX]
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
const PARTS_MIN: u16 = 16;
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parts: Option<u16>,
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
        let config = Self::new(settings.budget_bytes.unwrap_or(BUDGET_DEFAULT), keeps_flows)?;
        settings.parts.map_or(Ok(config.clone()), |parts| config.with_parts(parts))
    }
}

impl From<SampleConfig> for Settings {
    fn from(config: SampleConfig) -> Self {
        let keep = if config.keeps_flows { "flow" } else { "none" };
        let parts = (!config.has_usual_parts()).then_some(config.parts);
        Self { budget_bytes: Some(config.budget_bytes), keep: Some(keep.to_owned()), parts }
    }
}

impl Default for SampleConfig {
    fn default() -> Self {
        Self {
            budget_bytes: BUDGET_DEFAULT,
            keeps_flows: true,
            parts: parts_beside(BUDGET_DEFAULT),
        }
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
        Ok(Self { budget_bytes, keeps_flows, parts: parts_beside(budget_bytes) })
    }

    /// The same with so many parts of all digests whose packets are counted.
    fn with_parts(self, parts: u16) -> Result<Self, String> {
        match parts.is_power_of_two() && (PARTS_MIN..=PARTS_MAX).contains(&parts) {
            true => Ok(Self { parts, ..self }),
            false => Err(format!(
                "parts must be a power of two between {PARTS_MIN} and {PARTS_MAX}, not {parts}"
            )),
        }
    }

    /// As large as `memory_bytes` allow: no more parts than are usual, and packets for the rest.
    pub(super) fn within(memory_bytes: u64) -> Option<Self> {
        let memory_bytes = memory_bytes.min((BUDGET_MAX + beside_bytes(PARTS_MAX)).into()) as u32;
        // Each part has its own bytes, and those of the budget that it is usual for.
        let share = BUDGET_PER_PART + PART_BYTES;
        let parts = parts_for(memory_bytes.saturating_sub(SUMS_BYTES) / share);
        let budget_bytes = memory_bytes.checked_sub(beside_bytes(parts))?;
        Self::new(budget_bytes, true).and_then(|config| config.with_parts(parts)).ok()
    }

    /// Packets that the budget holds.
    #[must_use]
    pub const fn packets(&self) -> usize {
        ((self.budget_bytes - FIXED_BYTES) / self.packet_bytes()) as usize
    }

    /// Parts of all digests whose packets are counted.
    pub(super) const fn parts(&self) -> usize {
        self.parts as usize
    }

    const fn has_usual_parts(&self) -> bool {
        self.parts == parts_beside(self.budget_bytes)
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
        u64::from(FIXED_BYTES + beside_bytes(self.parts))
            + self.packets() as u64 * u64::from(self.packet_bytes())
    }

    pub(super) fn encode(&self, out: &mut Writer) {
        out.u32(self.budget_bytes);
        // The usual number of parts is 0: earlier versions had no other.
        let parts = if self.has_usual_parts() { 0 } else { self.parts.ilog2() as u8 };
        out.u8(u8::from(self.keeps_flows) | parts << 1);
    }

    pub(super) fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let budget_bytes = input.u32("sample budget")?;
        let kept = input.u8("what to keep of flows")?;
        let config = Self::new(budget_bytes, kept & 1 == 1)
            .map_err(|problem| DecodeError::invalid("sample budget", problem))?;
        match kept >> 1 {
            0 => Ok(config),
            parts => config
                .with_parts(1_u16.checked_shl(parts.into()).unwrap_or(0))
                .map_err(|problem| DecodeError::invalid("number of parts", problem)),
        }
    }
}

/// How many parts of all digests are usually counted beside a budget.
const fn parts_beside(budget_bytes: u32) -> u16 {
    parts_for(budget_bytes / BUDGET_PER_PART)
}

/// The largest number of parts that is no more than that, as far as there may be so many: a power of two.
const fn parts_for(most: u32) -> u16 {
    if most < PARTS_MIN as u32 {
        return PARTS_MIN;
    }
    let parts = 1 << most.ilog2();
    if parts > PARTS_MAX as u32 { PARTS_MAX } else { parts as u16 }
}

/// What is kept beside the sampled packets, and is no part of their budget.
const fn beside_bytes(parts: u16) -> u32 {
    SUMS_BYTES + PART_BYTES * parts as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_for_everything() {
        for memory in [400, 1_000, 4_096, 5_136, 5_137, 65_536, 1 << 20] {
            let config = SampleConfig::within(memory).unwrap();
            let used = u64::from(config.budget_bytes + beside_bytes(config.parts));
            assert_eq!(used, memory, "{config:?}");
        }
        assert_eq!(SampleConfig::default().parts(), 256);
        assert_eq!(SampleConfig::within(300), None);
    }

    #[test]
    fn a_number_of_parts_reads_back() {
        let sizes = [500, 4_096, 5_136, 40_955, 65_536, 1 << 29];
        for config in sizes.map(|memory| SampleConfig::within(memory).unwrap()) {
            let mut out = Writer::default();
            config.encode(&mut out);
            let bytes = out.into_bytes();
            let mut input = Reader::new(&bytes);
            assert_eq!(SampleConfig::decode(&mut input).as_ref(), Ok(&config));
            assert_eq!(SampleConfig::try_from(Settings::from(config.clone())), Ok(config));
        }
        for parts in [0, 8, 48, 8_192] {
            let settings = Settings { parts: Some(parts), ..Settings::default() };
            assert!(SampleConfig::try_from(settings).is_err(), "{parts}");
        }
        // 2 parts, 2^40 parts.
        for kept in [2, 80] {
            let bytes = [0, 16, 0, 0, kept];
            assert!(SampleConfig::decode(&mut Reader::new(&bytes)).is_err(), "{kept}");
        }
    }
}

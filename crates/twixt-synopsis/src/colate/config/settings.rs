//! What users write. Everything has a default.

use serde::{Deserialize, Serialize};

use super::{ColateConfig, DEFAULT_MEMORY_BYTES, DEFAULT_PER_FLOW, Stored};

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Settings {
    #[serde(skip_serializing_if = "Option::is_none")]
    counters: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    per_flow: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    banks: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sampling: Option<Vec<f64>>,
    /// In nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    resolution: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    time_bits: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    digest_bits: Option<u8>,
}

impl TryFrom<Settings> for ColateConfig {
    type Error = String;

    fn try_from(settings: Settings) -> Result<Self, String> {
        let banks = settings.banks.unwrap_or(1);
        let sampling = settings.sampling.unwrap_or_else(|| vec![1.0]);
        let counters = settings.counters.unwrap_or_else(|| {
            let memory_bytes = DEFAULT_MEMORY_BYTES / sampling.len().max(1) as u64;
            let counters = Self::within(memory_bytes).map_or(1, |config| config.counters);
            // As many as fill the banks.
            counters / banks.max(1) * banks.max(1)
        });
        let in_bank = counters / banks.max(1);
        let per_flow = settings.per_flow.unwrap_or(DEFAULT_PER_FLOW.min(in_bank.max(1)));
        let usual = Stored::default();
        Self::new(counters, per_flow, &sampling)?.with_banks(banks)?.with_stored(Stored {
            resolution_ns: settings.resolution.unwrap_or(usual.resolution_ns),
            time_bits: settings.time_bits.unwrap_or(usual.time_bits),
            digest_bits: settings.digest_bits.unwrap_or(usual.digest_bits),
        })
    }
}

impl From<ColateConfig> for Settings {
    fn from(config: ColateConfig) -> Self {
        Self {
            counters: Some(config.counters),
            per_flow: Some(config.per_flow),
            banks: Some(config.banks),
            sampling: Some(config.sampling),
            resolution: Some(config.stored.resolution_ns),
            time_bits: Some(config.stored.time_bits),
            digest_bits: Some(config.stored.digest_bits),
        }
    }
}

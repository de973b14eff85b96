//! Size of SDS.

use serde::{Deserialize, Serialize};
use twixt_model::{Observation, Timestamp};

use super::cell::Cell;
use crate::codec::{DecodeError, Reader, Writer};
use crate::lds::LdsConfig;

/// Size of SDS, and weights of classes. The default takes 1 MiB and counts every packet in 4 rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Settings", into = "Settings")]
pub struct SdsConfig {
    /// Where flows are counted: one cell in each row, and every packet.
    sketch: LdsConfig,
}

const DEFAULT_ROWS: u32 = 4;
const DEFAULT_MEMORY_BYTES: u64 = 1 << 20;
/// Rows with fewer columns than this are not worth their memory.
const COLUMNS_WORTH_A_ROW: u64 = 16;
/// More rows are not read from bytes.
const ROWS_MAX: u32 = 16;

/// What users write. Everything has a default.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rows: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    columns: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    weights: Option<Vec<u32>>,
}

impl TryFrom<Settings> for SdsConfig {
    type Error = String;

    fn try_from(settings: Settings) -> Result<Self, String> {
        let rows = settings.rows.unwrap_or(DEFAULT_ROWS);
        let fitting = columns_within(DEFAULT_MEMORY_BYTES, rows.max(1));
        let config = Self::new(rows, settings.columns.unwrap_or(fitting))?;
        config.with_weights(&settings.weights.unwrap_or_default())
    }
}

impl From<SdsConfig> for Settings {
    fn from(SdsConfig { sketch }: SdsConfig) -> Self {
        let weights = sketch.weights();
        Self {
            rows: Some(sketch.rows() as u32),
            columns: Some(sketch.columns()),
            weights: (!weights.is_empty()).then(|| weights.to_vec()),
        }
    }
}

fn columns_within(memory_bytes: u64, rows: u32) -> u32 {
    let cells = memory_bytes.saturating_sub(16) / Cell::BYTES as u64;
    (cells / u64::from(rows)).min(1 << 24) as u32
}

impl Default for SdsConfig {
    fn default() -> Self {
        Self::try_from(Settings::default()).expect("the defaults are valid")
    }
}

impl SdsConfig {
    /// So many rows of `columns` cells.
    ///
    /// # Errors
    /// When a number is out of its range; the text says which.
    pub fn new(rows: u32, columns: u32) -> Result<Self, String> {
        let rates = vec![1.0; rows.min(ROWS_MAX + 1) as usize];
        Ok(Self { sketch: LdsConfig::new(columns, 1, &rates)? })
    }

    /// The same, with packets of class 0, 1, 2, ... counted so many times.
    ///
    /// # Errors
    /// When a weight is out of its range, or there are more than classes can be.
    pub fn with_weights(self, weights: &[u32]) -> Result<Self, String> {
        Ok(Self { sketch: self.sketch.with_weights(weights)? })
    }

    pub(super) fn within(memory_bytes: u64) -> Option<Self> {
        let cells = memory_bytes / Cell::BYTES as u64;
        let rows = (cells / COLUMNS_WORTH_A_ROW).clamp(1, u64::from(DEFAULT_ROWS)) as u32;
        Self::new(rows, columns_within(memory_bytes, rows)).ok()
    }

    pub(super) const fn sketch(&self) -> &LdsConfig {
        &self.sketch
    }

    #[inline]
    pub(super) fn cell_of(&self, observation: &Observation, sent: Option<Timestamp>) -> Cell {
        let cell = Cell::of(observation, sent);
        match self.sketch.weights() {
            [] => cell,
            _ => cell.weighted(self.sketch.weight_of(observation.class)),
        }
    }

    pub(super) fn encode(&self, out: &mut Writer) {
        out.u32(self.sketch.columns());
        out.u8(self.sketch.rows() as u8);
        out.u16(self.sketch.weights().len() as u16);
        self.sketch.weights().iter().for_each(|&weight| out.u32(weight));
    }

    pub(super) fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let columns = input.u32("columns")?;
        let rows = input.u8("rows")?;
        let count = input.u16("weights")?;
        let weights = (0..count).map(|_| input.u32("weight")).collect::<Result<Vec<_>, _>>()?;
        Self::new(u32::from(rows), columns)
            .and_then(|config| config.with_weights(&weights))
            .map_err(|problem| DecodeError::invalid("configuration", problem))
    }
}

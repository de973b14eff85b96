//! Sizes and sampling rates of LDS, and where packets and flows are counted.

use serde::{Deserialize, Serialize};
use twixt_model::{ClassId, FlowHash, PacketDigest};

use super::LdsShape;
use crate::cells::Shape;
use crate::codec::{DecodeError, Reader, Writer};
use crate::heavy::EntriesConfig;

/// Sizes and sampling rates of LDS. The default takes 1 MiB and counts every packet in 4 rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Settings", into = "Settings")]
pub struct LdsConfig {
    columns: u32,       // in [1, COLUMNS_MAX]
    virtual_cells: u32, // in [1, min(columns, VIRTUAL_CELLS_MAX)]
    sampling: Vec<f64>, // in (0, 1], one per row, at least one and at most ROWS_MAX
    alpha: f64,         // in [0, ALPHA_MAX]
    /// `sampling` in units of 2^-32, as the update compares it.
    thresholds: Vec<u64>,
    /// Whether a packet's digest decides anything: rows sample, or flows have several cells.
    reads_digest: bool,
    /// How many times a packet counts, by class; 1 in classes beyond the last.
    weights: Vec<u32>, // each in [1, WEIGHT_MAX], at most CLASSES_MAX
    /// Size of the table of large flows. Not with weights: the table does not know classes.
    heavy: Option<EntriesConfig>,
}

/// Keep the derived bits apart from those of every other algorithm; the row is added.
const FLOW_SALT: u64 = 0x4c44_532d_666c_6f00;
const PACKET_SALT: u64 = 0x4c44_532d_7061_6300;
const ROWS_MAX: usize = 16;
const COLUMNS_MAX: u32 = 1 << 24;
const VIRTUAL_CELLS_MAX: u32 = 1024;
const ALPHA_MAX: f64 = 1000.0;
const HEAVY_WITH_WEIGHTS: &str =
    "heavy_entries cannot be combined with weights: the table does not know classes";
const WEIGHT_MAX: u32 = 1 << 16;
/// As many as there can be classes, and one for what is in none.
const CLASSES_MAX: usize = 257;
/// Marks, in the byte for the number of rows, that weights follow the sampling rates.
const HAS_WEIGHTS: u8 = 0x80;
/// The same, that a table of large flows follows.
const HAS_TABLE: u8 = 0x40;
const DEFAULT_ROWS: usize = 4;
const DEFAULT_MEMORY_BYTES: u64 = 1 << 20;

/// What users write. Everything has a default.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rows: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    columns: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    virtual_cells: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sampling: Option<Vec<f64>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    alpha: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    weights: Option<Vec<u32>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    heavy_entries: Option<u32>,
}

impl TryFrom<Settings> for LdsConfig {
    type Error = String;

    fn try_from(settings: Settings) -> Result<Self, String> {
        let sampling = match (settings.rows, settings.sampling) {
            (Some(rows), Some(sampling)) if rows as usize != sampling.len() => {
                return Err(format!("{rows} rows, but {} sampling rates", sampling.len()));
            }
            (_, Some(sampling)) => sampling,
            (Some(rows), None) => vec![1.0; (rows as usize).min(ROWS_MAX + 1)],
            (None, None) => vec![1.0; DEFAULT_ROWS],
        };
        let default_columns = columns_within(DEFAULT_MEMORY_BYTES, sampling.len().max(1));
        let columns = settings.columns.unwrap_or(default_columns);
        let config = Self::new(columns, settings.virtual_cells.unwrap_or(1), &sampling)?;
        config
            .with_alpha(settings.alpha.unwrap_or(0.0))?
            .with_weights(&settings.weights.unwrap_or_default())?
            .with_heavy_entries(settings.heavy_entries.unwrap_or(0))
    }
}

impl From<LdsConfig> for Settings {
    fn from(config: LdsConfig) -> Self {
        Self {
            rows: Some(config.sampling.len() as u32),
            columns: Some(config.columns),
            virtual_cells: Some(config.virtual_cells),
            sampling: Some(config.sampling),
            alpha: Some(config.alpha),
            weights: (!config.weights.is_empty()).then_some(config.weights),
            heavy_entries: config.heavy.map(|heavy| heavy.entries()),
        }
    }
}

fn columns_within(memory_bytes: u64, rows: usize) -> u32 {
    let cells = LdsShape.widths().cells_within(memory_bytes);
    (cells / rows as u64).min(u64::from(COLUMNS_MAX)) as u32
}

impl Default for LdsConfig {
    fn default() -> Self {
        Self::try_from(Settings::default()).expect("the defaults are valid")
    }
}

impl LdsConfig {
    /// As many rows of `columns` cells as there are sampling rates; in each row a flow's packets
    /// spread over `virtual_cells` neighbouring cells.
    ///
    /// # Errors
    /// When a number is out of its range; the text says which.
    pub fn new(columns: u32, virtual_cells: u32, sampling: &[f64]) -> Result<Self, String> {
        if sampling.is_empty() || sampling.len() > ROWS_MAX {
            return Err(format!("rows must be between 1 and {ROWS_MAX}, not {}", sampling.len()));
        }
        if !(1..=COLUMNS_MAX).contains(&columns) {
            return Err(format!("columns must be between 1 and {COLUMNS_MAX}, not {columns}"));
        }
        let most = columns.min(VIRTUAL_CELLS_MAX);
        if !(1..=most).contains(&virtual_cells) {
            return Err(format!(
                "virtual_cells must be between 1 and {most} with {columns} columns, \
                 not {virtual_cells}"
            ));
        }
        if let Some(rate) = sampling.iter().find(|&&rate| !(rate > 0.0 && rate <= 1.0)) {
            return Err(format!("a sampling rate must be above 0 and at most 1, not {rate}"));
        }
        let thresholds =
            sampling.iter().map(|rate| (rate * 2_f64.powi(32)).round() as u64).collect();
        let reads_digest = virtual_cells > 1 || sampling.iter().any(|&rate| rate < 1.0);
        let sampling = sampling.to_vec();
        Ok(Self {
            columns,
            virtual_cells,
            sampling,
            alpha: 0.0,
            thresholds,
            reads_digest,
            weights: Vec::new(),
            heavy: None,
        })
    }

    /// The same, with the paper's tolerance: cells that hold up to (1 + `alpha`) times as many
    /// packets as the emptiest are used too.
    ///
    /// # Errors
    /// When it is out of its range.
    pub fn with_alpha(self, alpha: f64) -> Result<Self, String> {
        match (0.0..=ALPHA_MAX).contains(&alpha) {
            true => Ok(Self { alpha, ..self }),
            false => Err(format!("alpha must be between 0 and {ALPHA_MAX}, not {alpha}")),
        }
    }

    /// The same, with packets of class 0, 1, 2, ... counted so many times: their flows are then
    /// measured better, and all others worse. Classes beyond count once.
    ///
    /// # Errors
    /// When a weight is out of its range, or there are more than classes can be.
    pub fn with_weights(self, weights: &[u32]) -> Result<Self, String> {
        if weights.len() > CLASSES_MAX {
            return Err(format!("{} weights, at most {CLASSES_MAX} are supported", weights.len()));
        }
        if self.heavy.is_some() && !weights.is_empty() {
            return Err(HEAVY_WITH_WEIGHTS.to_owned());
        }
        match weights.iter().find(|weight| !(1..=WEIGHT_MAX).contains(*weight)) {
            Some(weight) => {
                Err(format!("a weight must be between 1 and {WEIGHT_MAX}, not {weight}"))
            }
            None => Ok(Self { weights: weights.to_vec(), ..self }),
        }
    }

    /// The same, with a table beside the sketch that keeps the names of so many large flows;
    /// without one for 0.
    ///
    /// # Errors
    /// When there are more than the table can hold, or packets are weighted.
    pub fn with_heavy_entries(self, entries: u32) -> Result<Self, String> {
        let heavy = match entries {
            0 => None,
            _ if !self.weights.is_empty() => return Err(HEAVY_WITH_WEIGHTS.to_owned()),
            _ => Some(EntriesConfig::new(entries).map_err(|problem| format!("heavy_{problem}"))?),
        };
        Ok(Self { heavy, ..self })
    }

    /// As many columns as `memory_bytes` hold in the default number of rows; in fewer rows if
    /// that is so little that they would have no columns to speak of.
    pub(super) fn within(memory_bytes: u64) -> Option<Self> {
        const COLUMNS_WORTH_A_ROW: u32 = 16;
        let rows = columns_within(memory_bytes, 1) / COLUMNS_WORTH_A_ROW;
        let rows = (rows as usize).clamp(1, DEFAULT_ROWS);
        Self::new(columns_within(memory_bytes, rows), 1, &vec![1.0; rows]).ok()
    }

    /// How many rows.
    #[must_use]
    pub const fn rows(&self) -> usize {
        self.sampling.len()
    }

    /// Cells per row.
    #[must_use]
    pub const fn columns(&self) -> u32 {
        self.columns
    }

    /// Cells of a row that a flow's packets spread over.
    #[must_use]
    pub const fn virtual_cells(&self) -> u32 {
        self.virtual_cells
    }

    /// The share of packets that each row counts.
    #[must_use]
    pub fn sampling(&self) -> &[f64] {
        &self.sampling
    }

    /// The paper's tolerance.
    #[must_use]
    pub const fn alpha(&self) -> f64 {
        self.alpha
    }

    /// How many times packets of each class count; empty if all count once.
    #[must_use]
    pub fn weights(&self) -> &[u32] {
        &self.weights
    }

    /// Size of the table of large flows, if there is one.
    pub(super) const fn heavy(&self) -> Option<&EntriesConfig> {
        self.heavy.as_ref()
    }

    /// How many times packets of a class count.
    #[inline]
    pub(crate) fn weight_of(&self, class: ClassId) -> u64 {
        self.weights.get(usize::from(class.0)).map_or(1, |&weight| u64::from(weight))
    }

    pub(crate) fn cells(&self) -> usize {
        self.rows() * self.columns as usize
    }

    /// Bytes of state at one point, without a table of large flows.
    pub(super) fn state_bytes(&self) -> u64 {
        LdsShape.widths().state_bytes(self.cells())
    }

    /// Where a packet is counted: one cell in each row that samples it.
    #[inline]
    pub(crate) fn cells_for(
        &self,
        flow: FlowHash,
        digest: PacketDigest,
    ) -> impl Iterator<Item = usize> {
        let rows = self.thresholds.iter().enumerate();
        rows.filter_map(move |(row, &threshold)| {
            let offset = if self.reads_digest { self.offset(digest, row, threshold)? } else { 0 };
            Some(self.index(row, self.first_column(flow, row), offset))
        })
    }

    /// The same where digests decide nothing, and so every packet of a flow has the same cells.
    #[inline]
    pub(super) fn whole_cells_for(&self, flow: FlowHash) -> impl Iterator<Item = usize> {
        let columns = self.columns as usize;
        (0..self.rows()).map(move |row| row * columns + self.first_column(flow, row) as usize)
    }

    /// Whether digests decide where packets are counted.
    #[inline]
    pub(super) const fn reads_digest(&self) -> bool {
        self.reads_digest
    }

    /// The cells that share a flow's packets in one row.
    pub(crate) fn cells_of(
        &self,
        flow: FlowHash,
        row: usize,
    ) -> impl ExactSizeIterator<Item = usize> {
        let first = self.first_column(flow, row);
        (0..self.virtual_cells).map(move |offset| self.index(row, first, offset))
    }

    #[inline]
    fn first_column(&self, flow: FlowHash, row: usize) -> u32 {
        scaled(flow.derive(FLOW_SALT + row as u64), self.columns)
    }

    /// Which of a flow's cells in a row counts a packet; `None` if the row does not sample it.
    /// Every row draws its own: with one offset for all of them, as in the paper's Fig. 5, packets
    /// that share a cell with a lost one would do so in every row. The high half of the bits
    /// decides on the sample and the low half on the cell: a row that samples little would
    /// otherwise use few of its cells.
    #[inline]
    fn offset(&self, digest: PacketDigest, row: usize, threshold: u64) -> Option<u32> {
        let bits = digest.derive(PACKET_SALT + row as u64);
        (bits >> 32 < threshold).then(|| scaled(bits << 32, self.virtual_cells))
    }

    #[inline]
    fn index(&self, row: usize, first: u32, offset: u32) -> usize {
        // Both are below the number of columns: one subtraction wraps around.
        let column = first + offset;
        let column = if column >= self.columns { column - self.columns } else { column };
        row * self.columns as usize + column as usize
    }

    pub(super) fn encode(&self, out: &mut Writer) {
        out.u32(self.columns);
        out.u32(self.virtual_cells);
        out.f64(self.alpha);
        let has_weights = if self.weights.is_empty() { 0 } else { HAS_WEIGHTS };
        let has_table = if self.heavy.is_some() { HAS_TABLE } else { 0 };
        out.u8(self.sampling.len() as u8 | has_weights | has_table);
        for &rate in &self.sampling {
            out.f64(rate);
        }
        if !self.weights.is_empty() {
            out.u16(self.weights.len() as u16);
            self.weights.iter().for_each(|&weight| out.u32(weight));
        }
        if let Some(heavy) = &self.heavy {
            out.u32(heavy.entries());
        }
    }

    pub(super) fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let columns = input.u32("columns")?;
        let virtual_cells = input.u32("virtual cells")?;
        let alpha = input.f64("alpha")?;
        let marked = input.u8("rows")?;
        let rows = marked & !(HAS_WEIGHTS | HAS_TABLE);
        let sampling = (0..rows).map(|_| input.f64("sampling")).collect::<Result<Vec<_>, _>>()?;
        let count = if marked & HAS_WEIGHTS == 0 { 0 } else { input.u16("weights")?.max(1) };
        let weights = (0..count).map(|_| input.u32("weight")).collect::<Result<Vec<_>, _>>()?;
        let entries = if marked & HAS_TABLE == 0 { 0 } else { input.u32("entries")?.max(1) };
        Self::new(columns, virtual_cells, &sampling)
            .and_then(|config| config.with_alpha(alpha))
            .and_then(|config| config.with_heavy_entries(entries))
            .and_then(|config| config.with_weights(&weights))
            .map_err(|problem| DecodeError::invalid("configuration", problem))
    }
}

/// The high half of evenly spread bits, scaled to [0, `limit`) without a division.
#[inline]
const fn scaled(bits: u64, limit: u32) -> u32 {
    (((bits >> 32) * limit as u64) >> 32) as u32
}

#[cfg(test)]
mod tests;

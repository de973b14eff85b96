//! What users see: tables for people, JSON and CSV for programs.
//!
//! The types here are the formats' own: what they are called and how they are rounded is decided
//! here and nowhere else.

mod clock_lines;
mod document;
mod human;
mod order;
mod packets;
mod parquet;
mod round_trip;
mod rows;
mod scope_columns;
mod shape;
mod table;
pub(crate) mod units;

pub(crate) use clock_lines::clock_lines;
pub(crate) use document::{
    DelayDocument, EstimateRow, SegmentDocument, SegmentsDocument, estimate_rows,
};
pub(crate) use human::{
    ROWS_DEFAULT, UNKNOWN, counts, delay_report, delays, direction_report, total_report,
};
pub(crate) use order::{RowsShown, SortKey, sort_by_value};
pub(crate) use packets::packet_rows;
pub(crate) use round_trip::{
    RoundTripDocument, SampleRow, round_trip_report, round_trip_rows, round_trip_table,
};
pub(crate) use rows::{RowFormat, RowWriter};
pub(crate) use scope_columns::ScopeColumns;
pub(crate) use table::Table;

use std::io::{self, Write};

use clap::ValueEnum;
use serde::Serialize;

/// `-F`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A human-readable table
    #[default]
    Human,
    /// One JSON document
    Json,
    /// One JSON object per line
    Jsonl,
    /// Comma-separated values
    Csv,
}

/// `-F` where the answer is a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum TableFormat {
    /// A human-readable table
    #[default]
    Human,
    /// One JSON document
    Json,
    /// One JSON object per line
    Jsonl,
    /// Comma-separated values
    Csv,
    /// A Parquet file
    Parquet,
}

impl TableFormat {
    /// For programs that read row by row; `None` for one document or text.
    pub(crate) const fn rows(self) -> Option<RowFormat> {
        match self {
            Self::Human | Self::Json => None,
            Self::Jsonl => Some(RowFormat::Jsonl),
            Self::Csv => Some(RowFormat::Csv),
            Self::Parquet => Some(RowFormat::Parquet),
        }
    }
}

/// Writes one JSON document.
pub(crate) fn json(document: &impl Serialize) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    serde_json::to_writer_pretty(&mut out, document).map_err(io::Error::from)?;
    writeln!(out)?;
    Ok(())
}

/// Writes one JSON object per line.
pub(crate) fn jsonl<T: Serialize>(rows: impl IntoIterator<Item = T>) -> anyhow::Result<()> {
    self::rows(RowFormat::Jsonl, rows)
}

/// Writes rows as comma-separated values, with their keys as the header. Rows are flat objects.
pub(crate) fn csv<T: Serialize>(rows: impl IntoIterator<Item = T>) -> anyhow::Result<()> {
    self::rows(RowFormat::Csv, rows)
}

/// Writes rows, which are flat objects with the same keys.
pub(crate) fn rows<T: Serialize>(
    format: RowFormat,
    rows: impl IntoIterator<Item = T>,
) -> anyhow::Result<()> {
    let mut writer = RowWriter::new(format);
    for row in rows {
        writer.write(&row)?;
    }
    writer.finish()
}

/// Writes bytes, for programs.
pub(crate) fn bytes(bytes: &[u8]) -> anyhow::Result<()> {
    io::stdout().lock().write_all(bytes)?;
    Ok(())
}

/// Writes text for people.
pub(crate) fn text(text: &str) -> anyhow::Result<()> {
    io::stdout().lock().write_all(text.as_bytes())?;
    Ok(())
}

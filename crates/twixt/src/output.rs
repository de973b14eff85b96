//! What users see: tables for people, JSON and CSV for programs.
//!
//! The types here are the formats' own: what they are called and how they are rounded is decided
//! here and nowhere else.

mod clock_lines;
mod document;
mod human;
mod round_trip;
mod rows;
pub(crate) mod units;

pub(crate) use document::{
    DelayDocument, EstimateRow, SegmentDocument, SegmentsDocument, estimate_rows,
};
pub(crate) use human::{ROWS_DEFAULT, Table, UNKNOWN, counts, delay_report, delays, total_report};
pub(crate) use round_trip::{
    RoundTripDocument, SampleRow, round_trip_report, round_trip_rows, round_trip_table,
};
pub(crate) use rows::RowWriter;

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

/// Writes one JSON document.
pub(crate) fn json(document: &impl Serialize) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    serde_json::to_writer_pretty(&mut out, document).map_err(io::Error::from)?;
    writeln!(out)?;
    Ok(())
}

/// Writes one JSON object per line.
pub(crate) fn jsonl<T: Serialize>(rows: impl IntoIterator<Item = T>) -> anyhow::Result<()> {
    write_rows(Format::Jsonl, rows)
}

/// Writes rows as comma-separated values, with their keys as the header. Rows are flat objects.
pub(crate) fn csv<T: Serialize>(rows: impl IntoIterator<Item = T>) -> anyhow::Result<()> {
    write_rows(Format::Csv, rows)
}

fn write_rows<T: Serialize>(
    format: Format,
    rows: impl IntoIterator<Item = T>,
) -> anyhow::Result<()> {
    let mut writer = RowWriter::new(format);
    for row in rows {
        writer.write(&row)?;
    }
    writer.flush()
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

//! What users see: tables for people, JSON and CSV for programs.
//!
//! The types here are the formats' own: what they are called and how they are rounded is decided
//! here and nowhere else.

mod document;
mod human;
pub(crate) mod units;

pub(crate) use document::{DelayDocument, SegmentDocument, SegmentsDocument, estimate_rows};
pub(crate) use human::{ROWS_DEFAULT, Table, delay_report};

use std::io::{self, Write};

use clap::ValueEnum;
use serde::Serialize;

/// `-F`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A table for people
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
    let mut out = io::BufWriter::new(io::stdout().lock());
    for row in rows {
        serde_json::to_writer(&mut out, &row).map_err(io::Error::from)?;
        writeln!(out)?;
    }
    out.flush()?;
    Ok(())
}

/// Writes rows as comma-separated values, with their keys as the header. Rows are flat objects.
pub(crate) fn csv<T: Serialize>(rows: impl IntoIterator<Item = T>) -> anyhow::Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    for (index, row) in rows.into_iter().enumerate() {
        csv_row(&mut out, &row, index == 0)?;
    }
    out.flush()?;
    Ok(())
}

/// Writes one row as comma-separated values, after the header if it is the first.
pub(crate) fn csv_row(
    out: &mut impl Write,
    row: &impl Serialize,
    is_first: bool,
) -> anyhow::Result<()> {
    let serde_json::Value::Object(fields) = serde_json::to_value(row)? else { return Ok(()) };
    if is_first {
        let keys: Vec<&str> = fields.keys().map(String::as_str).collect();
        writeln!(out, "{}", keys.join(","))?;
    }
    let values: Vec<String> = fields.values().map(csv_field).collect();
    writeln!(out, "{}", values.join(","))?;
    Ok(())
}

/// A value that is not known is an empty field.
fn csv_field(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::Null => String::new(),
        serde_json::Value::String(text) if text.contains([',', '"', '\n']) => {
            format!("\"{}\"", text.replace('"', "\"\""))
        }
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Writes text for people.
pub(crate) fn text(text: &str) -> anyhow::Result<()> {
    io::stdout().lock().write_all(text.as_bytes())?;
    Ok(())
}

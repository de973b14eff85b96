//! Rows for programs, one by one: JSON lines, comma-separated values, or Parquet.

use std::io::{self, BufWriter, Stdout, Write};

use serde::Serialize;
use serde_json::{Map, Value};

use super::Format;
use super::parquet::ParquetRows;

/// How rows are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowFormat {
    Jsonl,
    Csv,
    Parquet,
}

impl From<Format> for RowFormat {
    /// As comma-separated values, or else as JSON lines.
    fn from(format: Format) -> Self {
        if format == Format::Csv { Self::Csv } else { Self::Jsonl }
    }
}

/// Writes rows, all of one kind, to standard output.
pub(crate) struct RowWriter {
    format: RowFormat,
    out: BufWriter<Stdout>,
    is_first: bool,
    parquet: Option<ParquetRows<Stdout>>,
}

impl RowWriter {
    /// No row yet.
    pub(crate) fn new(format: impl Into<RowFormat>) -> Self {
        let out = BufWriter::new(io::stdout());
        Self { format: format.into(), out, is_first: true, parquet: None }
    }

    /// Writes a row, which is a flat object. Its keys are the header of comma-separated values, and
    /// the columns of Parquet.
    pub(crate) fn write(&mut self, row: &impl Serialize) -> anyhow::Result<()> {
        match self.format {
            RowFormat::Csv => self.write_csv(row)?,
            RowFormat::Jsonl => {
                serde_json::to_writer(&mut self.out, row).map_err(io::Error::from)?;
                writeln!(self.out)?;
            }
            RowFormat::Parquet => {
                let Some(fields) = fields(row)? else { return Ok(()) };
                let parquet = match &mut self.parquet {
                    Some(parquet) => parquet,
                    empty => empty.insert(ParquetRows::new(io::stdout(), &fields)?),
                };
                parquet.write(&fields)?;
            }
        }
        self.is_first = false;
        Ok(())
    }

    /// Lets those who read along see what was written. A file of Parquet is read when it is whole.
    pub(crate) fn flush(&mut self) -> anyhow::Result<()> {
        Ok(self.out.flush()?)
    }

    /// Writes what is left after the last row.
    pub(crate) fn finish(mut self) -> anyhow::Result<()> {
        if let Some(parquet) = self.parquet.take() {
            parquet.finish()?;
        }
        self.flush()
    }

    fn write_csv(&mut self, row: &impl Serialize) -> anyhow::Result<()> {
        let Some(fields) = fields(row)? else { return Ok(()) };
        if self.is_first {
            let keys: Vec<&str> = fields.keys().map(String::as_str).collect();
            writeln!(self.out, "{}", keys.join(","))?;
        }
        let values: Vec<String> = fields.values().map(csv_field).collect();
        writeln!(self.out, "{}", values.join(","))?;
        Ok(())
    }
}

fn fields(row: &impl Serialize) -> anyhow::Result<Option<Map<String, Value>>> {
    Ok(match serde_json::to_value(row)? {
        Value::Object(fields) => Some(fields),
        _ => None,
    })
}

/// A value that is not known is an empty field.
fn csv_field(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) if text.contains([',', '"', '\n']) => {
            format!("\"{}\"", text.replace('"', "\"\""))
        }
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

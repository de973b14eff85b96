//! Rows for programs, one by one: JSON lines, or comma-separated values.

use std::io::{self, BufWriter, Stdout, Write};

use serde::Serialize;
use serde_json::Value;

use super::Format;

/// Writes rows, all of one kind, to standard output.
pub(crate) struct RowWriter {
    format: Format,
    out: BufWriter<Stdout>,
    is_first: bool,
}

impl RowWriter {
    /// As comma-separated values, or else as JSON lines.
    pub(crate) fn new(format: Format) -> Self {
        Self { format, out: BufWriter::new(io::stdout()), is_first: true }
    }

    /// Writes a row, which is a flat object. Its keys are the header of comma-separated values.
    pub(crate) fn write(&mut self, row: &impl Serialize) -> anyhow::Result<()> {
        match self.format {
            Format::Csv => self.write_csv(row)?,
            _ => {
                serde_json::to_writer(&mut self.out, row).map_err(io::Error::from)?;
                writeln!(self.out)?;
            }
        }
        self.is_first = false;
        Ok(())
    }

    /// Lets those who read along see what was written.
    pub(crate) fn flush(&mut self) -> anyhow::Result<()> {
        Ok(self.out.flush()?)
    }

    fn write_csv(&mut self, row: &impl Serialize) -> anyhow::Result<()> {
        let Value::Object(fields) = serde_json::to_value(row)? else { return Ok(()) };
        if self.is_first {
            let keys: Vec<&str> = fields.keys().map(String::as_str).collect();
            writeln!(self.out, "{}", keys.join(","))?;
        }
        let values: Vec<String> = fields.values().map(csv_field).collect();
        writeln!(self.out, "{}", values.join(","))?;
        Ok(())
    }
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

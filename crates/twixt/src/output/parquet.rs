//! Rows as a Parquet file, a row group at a time.

use std::io::Write;
use std::sync::Arc;

use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::Result;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use serde_json::{Map, Value};

/// Rows of a row group: what is held in memory before it is written.
const GROUP_ROWS: usize = 1 << 16;
/// Level of zstd: half of what level 6 takes, for a few per cent more bytes.
const LEVEL: i32 = 3;

/// Keys of rows whose values are text, and may be unknown in the first row.
const TEXT_KEYS: [&str; 8] =
    ["scope", "source", "destination", "protocol", "reason", "prefix", "kind", "verdict"];
/// Keys of rows whose values are fractions, and may be unknown in the first row.
const REAL_KEYS: [&str; 4] = ["fraction", "fraction_max", "extent_mean", "r_factor"];

/// A Parquet file that is being written. Every column may have unknown values.
pub(super) struct ParquetRows<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    columns: Vec<Column>,
    rows: usize,
}

/// A column, and its values in the row group that is open.
struct Column {
    name: String,
    values: Values,
}

enum Values {
    Integers(Vec<Option<i64>>),
    Reals(Vec<Option<f64>>),
    Flags(Vec<Option<bool>>),
    Texts(Vec<Option<ByteArray>>),
}

impl<W: Write + Send> ParquetRows<W> {
    /// With the columns of the first row.
    pub(super) fn new(out: W, first: &Map<String, Value>) -> Result<Self> {
        let columns: Vec<Column> =
            first.iter().map(|(name, value)| Column::new(name, value)).collect();
        let fields: String = columns.iter().map(Column::field).collect();
        let schema = parse_message_type(&format!("message rows {{ {fields} }}"))?;
        let level = ZstdLevel::try_new(LEVEL).expect("a level of zstd");
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(level))
            .set_created_by("twixt".to_owned())
            .build();
        let writer = SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties))?;
        Ok(Self { writer, columns, rows: 0 })
    }

    /// Adds a row, with the keys of the first.
    pub(super) fn write(&mut self, row: &Map<String, Value>) -> Result<()> {
        for column in &mut self.columns {
            column.values.push(row.get(&column.name).unwrap_or(&Value::Null));
        }
        self.rows += 1;
        if self.rows == GROUP_ROWS { self.end_group() } else { Ok(()) }
    }

    /// Writes the rest, and the footer without which nothing can be read.
    pub(super) fn finish(mut self) -> Result<()> {
        if self.rows > 0 {
            self.end_group()?;
        }
        self.writer.into_inner()?.flush()?;
        Ok(())
    }

    fn end_group(&mut self) -> Result<()> {
        let mut group = self.writer.next_row_group()?;
        for column in &mut self.columns {
            match &mut column.values {
                Values::Integers(values) => write_column::<Int64Type, W>(&mut group, values)?,
                Values::Reals(values) => write_column::<DoubleType, W>(&mut group, values)?,
                Values::Flags(values) => write_column::<BoolType, W>(&mut group, values)?,
                Values::Texts(values) => write_column::<ByteArrayType, W>(&mut group, values)?,
            }
        }
        group.close()?;
        self.rows = 0;
        Ok(())
    }
}

impl Column {
    /// A value tells the type of all; an unknown one does not, then the key does.
    fn new(name: &str, first: &Value) -> Self {
        let values = match first {
            Value::String(_) => Values::Texts(Vec::new()),
            Value::Bool(_) => Values::Flags(Vec::new()),
            Value::Number(number) if number.is_f64() => Values::Reals(Vec::new()),
            Value::Null if TEXT_KEYS.contains(&name) => Values::Texts(Vec::new()),
            Value::Null if REAL_KEYS.contains(&name) => Values::Reals(Vec::new()),
            _ => Values::Integers(Vec::new()),
        };
        Self { name: name.to_owned(), values }
    }

    /// As the schema writes it.
    fn field(&self) -> String {
        let name = &self.name;
        match self.values {
            Values::Integers(_) => format!("optional int64 {name}; "),
            Values::Reals(_) => format!("optional double {name}; "),
            Values::Flags(_) => format!("optional boolean {name}; "),
            Values::Texts(_) => format!("optional binary {name} (UTF8); "),
        }
    }
}

impl Values {
    fn push(&mut self, value: &Value) {
        match self {
            Self::Integers(values) => values.push(value.as_i64()),
            Self::Reals(values) => values.push(value.as_f64()),
            Self::Flags(values) => values.push(value.as_bool()),
            Self::Texts(values) => values.push(value.as_str().map(ByteArray::from)),
        }
    }
}

/// Writes the next column and empties it.
fn write_column<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: &mut Vec<Option<T::T>>,
) -> Result<()> {
    let levels: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
    let known: Vec<T::T> = values.drain(..).flatten().collect();
    let mut column = group.next_column()?.expect("there are as many columns as in the schema");
    column.typed::<T>().write_batch(&known, Some(&levels), None)?;
    column.close()
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> Map<String, Value> {
        let Value::Object(fields) = value else { unreachable!("it is an object") };
        fields
    }

    #[test]
    fn what_is_written_reads_back_and_unknown_values_are_null() {
        let rows = [
            json!({"scope": "all", "delay_ns": null, "fraction": null, "lost": true, "reason": null}),
            json!({"scope": "a > b", "delay_ns": -5, "fraction": 0.5, "lost": false, "reason": "why"}),
        ];
        let rows: Vec<Map<String, Value>> = rows.into_iter().map(object).collect();
        let mut written = ParquetRows::new(Vec::new(), &rows[0]).unwrap();
        rows.iter().for_each(|row| written.write(row).unwrap());
        written.end_group().unwrap();
        let bytes = bytes::Bytes::from(written.writer.into_inner().unwrap());
        let reader = SerializedFileReader::new(bytes).unwrap();
        let fields = |row: parquet::record::Row| -> Vec<String> {
            row.get_column_iter().map(|(name, field)| format!("{name} {field}")).collect()
        };
        let read: Vec<Vec<String>> =
            reader.get_row_iter(None).unwrap().map(|row| fields(row.unwrap())).collect();
        let expected = [
            ["scope \"all\"", "delay_ns null", "fraction null", "lost true", "reason null"],
            ["scope \"a > b\"", "delay_ns -5", "fraction 0.5", "lost false", "reason \"why\""],
        ];
        assert_eq!(read, expected);
    }
}

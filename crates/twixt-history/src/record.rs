//! Rows as records of the log, one record per event of a series.
//!
//! | at | bytes | field |
//! |---|---|---|
//! | 0 | 1 | version: 1 |
//! | 1 | 1 | zero |
//! | 2 | 2 | how many columns a row has |
//! | 4 | 4 | how many rows follow |
//!
//! A row is the values of the columns of its table, in their order, without those that are derived:
//! a byte 0 for none, or a byte 1 and the value: integers and floats as 8 bytes, wide integers as
//! 16, texts and bytes as a length of 4 bytes and themselves. All little-endian. A newer release
//! may add columns at the end; what a record does not have is not known.

use crate::column::{Cell, Column, Kind};
use crate::row::Row;
use crate::table::Table;

const VERSION: u8 = 1;
const HEAD_BYTES: usize = 8;

/// Why a record cannot be read. It is damaged, or of a newer release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a record of estimates: {0}")]
pub struct RecordError(&'static str);

fn stored(table: Table) -> impl Iterator<Item = &'static Column> {
    table.columns().iter().filter(|column| column.set.is_some())
}

/// Rows of estimates as the bytes of a record.
#[must_use]
pub fn rows_to_bytes(rows: &[Row]) -> Vec<u8> {
    encode(Table::Estimates, rows)
}

/// Rows of estimates from the bytes of a record. They may be hostile.
///
/// # Errors
/// When the bytes are no record, or one of a newer release.
pub fn rows_from_bytes(bytes: &[u8]) -> Result<Vec<Row>, RecordError> {
    decode(Table::Estimates, bytes)
}

/// Writes rows.
pub(crate) fn encode(table: Table, rows: &[Row]) -> Vec<u8> {
    let mut bytes = vec![VERSION, 0];
    bytes.extend_from_slice(&(stored(table).count() as u16).to_le_bytes());
    bytes.extend_from_slice(&(rows.len() as u32).to_le_bytes());
    for row in rows {
        for column in stored(table) {
            write((column.get)(row), &mut bytes);
        }
    }
    bytes
}

fn write(cell: Cell<'_>, bytes: &mut Vec<u8>) {
    bytes.push(u8::from(cell != Cell::Null));
    match cell {
        Cell::Null => {}
        Cell::Integer(value) => bytes.extend_from_slice(&value.to_le_bytes()),
        Cell::Real(value) => bytes.extend_from_slice(&value.to_le_bytes()),
        Cell::Wide(value) => bytes.extend_from_slice(&value.to_le_bytes()),
        Cell::Text(text) => write_bytes(text.as_bytes(), bytes),
        Cell::Bytes(value) => write_bytes(value, bytes),
    }
}

fn write_bytes(value: &[u8], bytes: &mut Vec<u8>) {
    bytes.extend_from_slice(&(value.len() as u32).to_le_bytes());
    bytes.extend_from_slice(value);
}

/// Reads rows.
pub(crate) fn decode(table: Table, bytes: &[u8]) -> Result<Vec<Row>, RecordError> {
    let (head, mut rest) =
        bytes.split_at_checked(HEAD_BYTES).ok_or(RecordError("it is too short"))?;
    if head[0] != VERSION {
        return Err(RecordError("unknown version"));
    }
    let columns = usize::from(u16::from_le_bytes([head[2], head[3]]));
    let count = u32::from_le_bytes([head[4], head[5], head[6], head[7]]) as usize;
    if columns == 0 || columns > stored(table).count() {
        return Err(RecordError("its columns are those of a newer release"));
    }
    // Every column of a row takes a byte at least.
    if count > rest.len() / columns {
        return Err(RecordError("it ends early"));
    }
    let mut rows = Vec::with_capacity(count);
    for _ in 0..count {
        let mut row = Row::default();
        for column in stored(table).take(columns) {
            let set = column.set.expect("only those that can be set are stored");
            set(&mut row, read(column, &mut rest)?);
        }
        rows.push(row);
    }
    Ok(rows)
}

fn read<'a>(column: &Column, rest: &mut &'a [u8]) -> Result<Cell<'a>, RecordError> {
    match take(rest, 1)?[0] {
        0 if column.required => return Err(RecordError("a value is missing")),
        0 => return Ok(Cell::Null),
        1 => {}
        _ => return Err(RecordError("it is damaged")),
    }
    Ok(match column.kind {
        Kind::Integer => Cell::Integer(i64::from_le_bytes(array(rest)?)),
        Kind::Real => Cell::Real(f64::from_le_bytes(array(rest)?)),
        Kind::Wide => Cell::Wide(i128::from_le_bytes(array(rest)?)),
        Kind::Bytes => Cell::Bytes(sized(rest)?),
        Kind::Text => {
            let text = std::str::from_utf8(sized(rest)?);
            Cell::Text(text.map_err(|_| RecordError("a text is not UTF-8"))?)
        }
    })
}

fn sized<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], RecordError> {
    let length = u32::from_le_bytes(array(rest)?);
    take(rest, length as usize)
}

fn array<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], RecordError> {
    Ok(*take(rest, N)?.first_chunk().expect("so many were taken"))
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Result<&'a [u8], RecordError> {
    let (taken, left) = rest.split_at_checked(length).ok_or(RecordError("it ends early"))?;
    *rest = left;
    Ok(taken)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{gap, row};

    #[test]
    fn what_is_written_reads_back() {
        let rows = [row("a", "b", 7), gap("a", "b", 8), Row::default()];
        assert_eq!(decode(Table::Estimates, &encode(Table::Estimates, &rows)).unwrap(), rows);
        assert_eq!(decode(Table::Estimates, &encode(Table::Estimates, &[])).unwrap(), []);
    }

    #[test]
    fn records_that_end_early_are_refused() {
        let bytes = encode(Table::Estimates, &[row("a", "b", 7)]);
        for length in 0..bytes.len() {
            assert!(decode(Table::Estimates, &bytes[..length]).is_err(), "{length}");
        }
    }

    #[test]
    fn columns_that_were_added_later_are_not_known() {
        let whole = row("a", "b", 7);
        let mut bytes = encode(Table::Estimates, std::slice::from_ref(&whole));
        // The last column has no value: one byte.
        bytes[2] -= 1;
        bytes.pop();
        assert_eq!(decode(Table::Estimates, &bytes).unwrap(), [whole]);
    }

    proptest! {
        #[test]
        fn strangers_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut bytes = bytes;
            let _ = decode(Table::Estimates, &bytes);
            if bytes.len() > HEAD_BYTES {
                bytes[..4].copy_from_slice(&[VERSION, 0, 5, 0]);
                let _ = decode(Table::Estimates, &bytes);
            }
        }
    }
}

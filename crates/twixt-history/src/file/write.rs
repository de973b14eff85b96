//! Writes a sealed file.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::data_type::{
    ByteArray, ByteArrayType, DataType, DoubleType, FixedLenByteArray, FixedLenByteArrayType,
    Int64Type,
};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::SortingColumn;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::ColumnPath;
use twixt_store::{Access, Replacement, SharedDisk, make_folders};
use xxhash_rust::xxh3::Xxh3;

use super::name::{FileName, Folder};
use super::schema;
use crate::column::{Cell, Kind};
use crate::error::HistoryError;
use crate::row::Row;
use crate::step::Hour;
use crate::table::Table;

/// Rows of a page. A query for one segment reads at least this many rows: a minute's roll-ups
/// of an hour are 60. Shorter pages would make the page index larger than what it saves.
const PAGE_ROWS: usize = 512;
/// Level of zstd. Files are written once and kept for long.
const LEVEL: i32 = 6;

/// A file that is being written, beside its place.
pub(crate) struct FileWriter {
    folder: Folder,
    path: PathBuf,
    writer: SerializedFileWriter<BufWriter<Replacement>>,
}

impl FileWriter {
    /// Begins a file of an hour. What an earlier writer left unfinished is overwritten.
    pub(crate) fn new(folder: &Folder, hour: Hour, part: u32) -> Result<Self, HistoryError> {
        let day = folder.day_path(hour.day());
        make_folders(folder.disk().as_ref(), &day).map_err(HistoryError::file("create", &day))?;
        let path = day.join(format!("{:02}-{part}", hour.of_day()));
        let beside = Replacement::beside(folder.disk(), &path);
        let beside = beside.map_err(HistoryError::file("create", &path))?;
        let writer = SerializedFileWriter::new(
            BufWriter::new(beside),
            schema::parsed(folder.table()),
            Arc::new(properties(folder.table(), Sorted::Yes)),
        )
        .map_err(problem(&path))?;
        Ok(Self { folder: folder.clone(), path, writer })
    }

    /// Appends rows, which are in order, as a row group.
    pub(crate) fn write(&mut self, rows: &[Row]) -> Result<(), HistoryError> {
        if rows.is_empty() {
            return Ok(());
        }
        let table = self.folder.table();
        let group = self.writer.next_row_group();
        let written = group.and_then(|group| write_group(group, table, rows));
        written.map_err(problem(&self.path))
    }

    /// Makes it durable, and puts it in its place.
    pub(crate) fn finish(self, hour: Hour, part: u32) -> Result<FileName, HistoryError> {
        let Self { folder, path, writer } = self;
        let buffered = writer.into_inner().map_err(problem(&path))?;
        let finish = || {
            let mut beside = buffered.into_inner().map_err(io::IntoInnerError::into_error)?;
            beside.sync()?;
            let checksum = checksum(folder.disk(), beside.path())?;
            let name = FileName { hour, part, checksum };
            beside.take_place(&folder.file_path(name))?;
            Ok(name)
        };
        finish().map_err(HistoryError::file("write", &path))
    }
}

/// Rows of a table as the bytes of a file, for the answer to a query.
///
/// # Errors
/// When a column cannot be written, which would be a bug.
pub fn to_parquet(table: Table, rows: &[Row]) -> Result<Vec<u8>, HistoryError> {
    let write = || {
        let properties = Arc::new(properties(table, Sorted::No));
        let mut writer = SerializedFileWriter::new(Vec::new(), schema::parsed(table), properties)?;
        if !rows.is_empty() {
            write_group(writer.next_row_group()?, table, rows)?;
        }
        writer.into_inner()
    };
    write().map_err(problem(Path::new("rows")))
}

/// Of a file's bytes.
pub(super) fn checksum(disk: &SharedDisk, path: &Path) -> io::Result<u64> {
    let mut hasher = Xxh3::new();
    let file = disk.open(path, Access::Read)?;
    let mut piece = vec![0; 1 << 16];
    let mut place = 0;
    loop {
        match file.read_at(&mut piece, place)? {
            0 => return Ok(hasher.digest()),
            length => {
                hasher.update(&piece[..length]);
                place += length as u64;
            }
        }
    }
}

fn problem(path: &Path) -> impl FnOnce(ParquetError) -> HistoryError {
    move |error| HistoryError::Parquet { path: path.to_owned(), problem: error.to_string() }
}

/// Whether rows are in the order of files.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sorted {
    Yes,
    No,
}

fn properties(table: Table, sorted: Sorted) -> WriterProperties {
    let places = 0..table.sorted_columns() as i32;
    let by = places.map(|column_idx| SortingColumn {
        column_idx,
        descending: false,
        nulls_first: false,
    });
    let mut builder = WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_1_0)
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(LEVEL).expect("a level of zstd")))
        .set_created_by("twixt".to_owned())
        .set_data_page_row_count_limit(PAGE_ROWS)
        .set_write_batch_size(PAGE_ROWS)
        .set_sorting_columns((sorted == Sorted::Yes).then(|| by.collect()))
        .set_statistics_enabled(EnabledStatistics::Page);
    for column in table.columns() {
        let path = ColumnPath::from(column.name);
        if matches!(column.kind, Kind::Integer | Kind::Real | Kind::Wide) {
            builder = builder.set_column_dictionary_enabled(path.clone(), false);
        }
        if column.kind == Kind::Integer {
            // Neighbours are near each other: their differences have few bits.
            builder = builder.set_column_encoding(path.clone(), Encoding::DELTA_BINARY_PACKED);
        }
        // Histograms: to compare them is no use.
        if column.kind == Kind::Bytes {
            builder = builder
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_statistics_enabled(path, EnabledStatistics::None);
        }
    }
    builder.build()
}

fn write_group<W: Write + Send>(
    mut group: SerializedRowGroupWriter<'_, W>,
    table: Table,
    rows: &[Row],
) -> Result<()> {
    for column in table.columns() {
        let cells = rows.iter().map(column.get);
        let required = column.required;
        match column.kind {
            Kind::Text => {
                write_column::<ByteArrayType, W>(&mut group, cells, required, |cell| match cell {
                    Cell::Text(text) => Some(ByteArray::from(text)),
                    _ => None,
                })
            }
            Kind::Bytes => {
                write_column::<ByteArrayType, W>(&mut group, cells, required, |cell| match cell {
                    Cell::Bytes(bytes) => Some(ByteArray::from(bytes.to_vec())),
                    _ => None,
                })
            }
            Kind::Integer => {
                write_column::<Int64Type, W>(&mut group, cells, required, |cell| match cell {
                    Cell::Integer(value) => Some(value),
                    _ => None,
                })
            }
            Kind::Real => {
                write_column::<DoubleType, W>(&mut group, cells, required, |cell| match cell {
                    Cell::Real(value) => Some(value),
                    _ => None,
                })
            }
            Kind::Wide => {
                write_column::<FixedLenByteArrayType, W>(&mut group, cells, required, |cell| {
                    match cell {
                        Cell::Wide(value) => {
                            let bytes = ByteArray::from(value.to_be_bytes().to_vec());
                            Some(FixedLenByteArray::from(bytes))
                        }
                        _ => None,
                    }
                })
            }
        }?;
    }
    group.close().map(drop)
}

/// Writes the next column, a page at a time: its values are copied for it. `value` is `None` for
/// what is not known.
fn write_column<'a, T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    cells: impl Iterator<Item = Cell<'a>>,
    required: bool,
    value: impl Fn(Cell<'a>) -> Option<T::T>,
) -> Result<()> {
    let next = group.next_column()?;
    let mut column = next.ok_or_else(|| ParquetError::General("no more columns".to_owned()))?;
    let mut cells = cells.peekable();
    while cells.peek().is_some() {
        let known: Vec<Option<T::T>> = cells.by_ref().take(PAGE_ROWS).map(&value).collect();
        let levels: Vec<i16> = known.iter().map(|value| i16::from(value.is_some())).collect();
        let values: Vec<T::T> = known.into_iter().flatten().collect();
        let levels = (!required).then_some(levels.as_slice());
        column.typed::<T>().write_batch(&values, levels, None)?;
    }
    column.close()
}

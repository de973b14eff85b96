//! Reads rows of a sealed file: only the pages that may have what is asked for, and only the
//! columns that are needed.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use parquet::column::reader::get_typed_column_reader;
use parquet::data_type::{ByteArrayType, DataType, DoubleType, FixedLenByteArrayType, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader};
use parquet::file::properties::ReaderProperties;
use parquet::file::reader::RowGroupReader;
use parquet::file::serialized_reader::SerializedRowGroupReader;
use twixt_model::{Segment, Span};
use twixt_store::{About, Access};

use super::name::{FileName, Folder};
use super::pruning::{Pages, Rows, common, kept};
use super::schema::WIDE_BYTES;
use super::source::Source;
use super::write::checksum;
use crate::column::{Cell, Column, Kind};
use crate::error::Unreadable;
use crate::row::Row;
use crate::step::Step;
use crate::table::Table;

/// Files that are remembered to be sound. A day has 24 of each kind.
const SOUND_MAX: usize = 256;
/// Bytes of footers that are remembered. They have the index of all pages, and grow with the series of
/// an hour, so that their number would not bound them.
const FOOTER_BYTES_MAX: usize = 8 << 20;

/// Which rows are asked for, and what of them.
#[derive(Clone, Debug)]
pub(crate) struct Wanted<'a> {
    /// All when `None`.
    pub(crate) segment: Option<&'a Segment>,
    pub(crate) step: Step,
    /// Rows that start within.
    pub(crate) span: Span,
    pub(crate) columns: Columns,
}

/// What of a row is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Columns {
    /// Which series, and when.
    Keys,
    /// All but histograms.
    Plain,
    /// All.
    All,
}

impl Columns {
    fn has(self, column: &Column) -> bool {
        match self {
            Self::Keys => KEYS.contains(&column.name),
            Self::Plain => column.kind != Kind::Bytes,
            Self::All => true,
        }
    }
}

/// What says which series a row is of, and when it is.
const KEYS: [&str; 14] = [
    "step",
    "upstream",
    "downstream",
    "point",
    "class",
    "algorithm",
    "domain",
    "epoch_ns",
    "start_ns",
    "end_ns",
    "epoch",
    "run",
    "epochs",
    "gaps",
];

/// Files that were found sound, so that they are checked once, and the footers that were read last.
#[derive(Debug, Default)]
pub(crate) struct Footers {
    known: Mutex<KnownFiles>,
}

#[derive(Debug, Default)]
struct KnownFiles {
    files: HashMap<PathBuf, KnownFile>, // at most SOUND_MAX
    footer_bytes: usize,                // at most FOOTER_BYTES_MAX, or one footer
}

/// A file that was found sound.
#[derive(Debug)]
struct KnownFile {
    /// With its size in memory.
    footer: Option<(Arc<ParquetMetaData>, usize)>,
    /// A file that was touched since is checked again.
    bytes: u64,
    changed: Option<SystemTime>,
    used: SystemTime,
}

/// Rows of a file.
pub(crate) fn read(
    folder: &Folder,
    name: FileName,
    wanted: &Wanted<'_>,
    footers: &Footers,
) -> Result<Vec<Row>, Unreadable> {
    let mut found = Vec::new();
    read_groups(folder, name, wanted, footers, |rows| found.extend(rows))?;
    Ok(found)
}

/// Hands over rows of a file, a row group at a time: all of them need not fit into memory. Of a file that
/// cannot be read to its end, those before it have been handed over.
pub(crate) fn read_groups(
    folder: &Folder,
    name: FileName,
    wanted: &Wanted<'_>,
    footers: &Footers,
    take: impl FnMut(Vec<Row>),
) -> Result<(), Unreadable> {
    let path = folder.file_path(name);
    let table = folder.table();
    let read = footers.open(folder, &path, name).and_then(|(file, metadata)| {
        let opened = Opened { table, file: Arc::new(file), metadata };
        Ok(opened.rows(wanted, take)?)
    });
    read.map_err(|cause| Unreadable {
        path,
        is_disk_error: matches!(cause, Cause::Disk(_)),
        text: cause.to_string(),
    })
}

/// Why a file cannot be read.
#[derive(Debug, thiserror::Error)]
enum Cause {
    #[error("{0}")]
    Disk(#[from] io::Error),
    #[error("{0}")]
    Content(String),
}

impl From<ParquetError> for Cause {
    fn from(error: ParquetError) -> Self {
        match error {
            ParquetError::External(source) => match source.downcast::<io::Error>() {
                Ok(failed) => Self::Disk(*failed),
                Err(other) => Self::Content(other.to_string()),
            },
            other => Self::Content(other.to_string()),
        }
    }
}

impl Footers {
    /// Opens a file. Checks it, unless that was done already.
    fn open(
        &self,
        folder: &Folder,
        path: &Path,
        name: FileName,
    ) -> Result<(Source, Arc<ParquetMetaData>), Cause> {
        let disk = folder.disk();
        let file = disk.open(path, Access::Read)?;
        let About { bytes, changed, .. } = file.about()?;
        let file = Source::new(file, bytes);
        let is_sound = match self.known().find(path, bytes, changed) {
            Some(Some(footer)) => return Ok((file, footer)),
            known => known.is_some(),
        };
        if !is_sound && checksum(disk, path)? != name.checksum {
            let problem = "damaged: the checksum does not match; delete it, or restore a copy";
            return Err(Cause::Content(problem.to_owned()));
        }
        let metadata = ParquetMetaDataReader::new()
            .with_page_index_policy(PageIndexPolicy::Optional)
            .parse_and_finish(&file)?;
        check_columns(folder.table(), &metadata).map_err(Cause::Content)?;
        let metadata = Arc::new(metadata);
        let footer = Some((Arc::clone(&metadata), metadata.memory_size()));
        let found = KnownFile { footer, bytes, changed, used: SystemTime::now() };
        self.known().add(path, found);
        Ok((file, metadata))
    }

    fn known(&self) -> MutexGuard<'_, KnownFiles> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KnownFiles {
    /// A file that was found sound, and is as it was; its footer, if that is remembered.
    fn find(
        &mut self,
        path: &Path,
        bytes: u64,
        changed: Option<SystemTime>,
    ) -> Option<Option<Arc<ParquetMetaData>>> {
        let same = |file: &&mut KnownFile| (file.bytes, file.changed) == (bytes, changed);
        let file = self.files.get_mut(path).filter(same)?;
        file.used = SystemTime::now();
        Some(file.footer.as_ref().map(|(footer, _)| Arc::clone(footer)))
    }

    /// Remembers a file, and forgets what was used least recently.
    fn add(&mut self, path: &Path, file: KnownFile) {
        self.footer_bytes += file.footer_bytes();
        let before = self.files.insert(path.to_owned(), file);
        self.footer_bytes -= before.map_or(0, |before| before.footer_bytes());
        while self.footer_bytes > FOOTER_BYTES_MAX {
            let others =
                self.files.iter_mut().filter(|(of, file)| *of != path && file.footer.is_some());
            let Some((_, oldest)) = others.min_by_key(|(_, file)| file.used) else { break };
            self.footer_bytes -= oldest.footer_bytes();
            oldest.footer = None;
        }
        if self.files.len() > SOUND_MAX
            && let Some((oldest, _)) = self.files.iter().min_by_key(|(_, file)| file.used)
        {
            let oldest = oldest.clone();
            let forgotten = self.files.remove(&oldest);
            self.footer_bytes -= forgotten.map_or(0, |forgotten| forgotten.footer_bytes());
        }
    }
}

impl KnownFile {
    fn footer_bytes(&self) -> usize {
        self.footer.as_ref().map_or(0, |(_, bytes)| *bytes)
    }
}

/// Columns may be missing that an earlier release did not know, but none without which a row says
/// nothing.
fn check_columns(table: Table, metadata: &ParquetMetaData) -> Result<(), String> {
    let found = metadata.file_metadata().schema_descr();
    let is_there = |name: &str| found.columns().iter().any(|column| column.name() == name);
    let missing = table.columns().iter().find(|column| column.required && !is_there(column.name));
    match missing {
        Some(column) => {
            Err(format!("not a file of {}: it has no column {}", table.name(), column.name))
        }
        None => Ok(()),
    }
}

/// A file that was found sound.
struct Opened {
    table: Table,
    file: Arc<Source>,
    metadata: Arc<ParquetMetaData>,
}

impl Opened {
    fn rows(&self, wanted: &Wanted<'_>, mut take: impl FnMut(Vec<Row>)) -> Result<()> {
        for group in 0..self.metadata.num_row_groups() {
            let selected = self.selected(group, wanted);
            if selected.is_empty() {
                continue;
            }
            let reader = self.group_reader(group)?;
            let selected = self.narrowed(&reader, group, selected, wanted)?;
            if selected.is_empty() {
                continue;
            }
            let mut rows = self.read_group(&reader, group, &selected, wanted)?;
            rows.retain(|row| wanted.is_met_by(row));
            take(rows);
        }
        Ok(())
    }

    /// Rows that may be wanted.
    fn selected(&self, group: usize, wanted: &Wanted<'_>) -> Rows {
        let pages = Pages { metadata: &self.metadata, group };
        let mut rows = pages.all();
        let mut narrow = |name: &str, find: &dyn Fn(usize) -> Rows| {
            if let Some(column) = self.place(group, name) {
                rows = common(&rows, &find(column));
            }
        };
        narrow("step", &|column| pages.with_text(column, wanted.step.name()));
        if let Some(Segment { upstream, downstream }) = wanted.segment {
            let [first, second] = self.table.ends();
            narrow(first, &|column| pages.with_text(column, &upstream.0));
            narrow(second, &|column| pages.with_text(column, &downstream.0));
        }
        let (from, to) = (wanted.span.start.as_nanos(), wanted.span.end.as_nanos());
        narrow("start_ns", &|column| pages.with_integers(column, from, to));
        rows
    }

    fn group_reader(&self, group: usize) -> Result<SerializedRowGroupReader<'_, Source>> {
        let offsets = self.metadata.offset_index().map(|index| index[group].as_slice());
        SerializedRowGroupReader::new(
            Arc::clone(&self.file),
            self.metadata.row_group(group),
            offsets,
            Arc::new(ReaderProperties::builder().build()),
        )
    }

    /// Those of some rows that are of the segment: a page has rows of several, and to make rows
    /// that is not needed costs more than checking first.
    fn narrowed(
        &self,
        reader: &impl RowGroupReader,
        group: usize,
        selected: Rows,
        wanted: &Wanted<'_>,
    ) -> Result<Rows> {
        let Some(Segment { upstream, downstream }) = wanted.segment else { return Ok(selected) };
        let mut is_wanted = vec![true; selected.iter().map(ExactSizeIterator::len).sum()];
        let [first, second] = self.table.ends();
        let texts = [("step", wanted.step.name()), (first, &upstream.0), (second, &downstream.0)];
        for (name, text) in texts {
            let Some(place) = self.place(group, name) else { continue };
            typed::<ByteArrayType>(reader, place, &selected, |row, value| {
                is_wanted[row] &= value.data() == text.as_bytes();
                Ok(())
            })?;
        }
        Ok(kept(&selected, &is_wanted))
    }

    fn read_group(
        &self,
        reader: &impl RowGroupReader,
        group: usize,
        selected: &Rows,
        wanted: &Wanted<'_>,
    ) -> Result<Vec<Row>> {
        let count = selected.iter().map(ExactSizeIterator::len).sum();
        let mut rows = vec![Row::default(); count];
        let pages = Pages { metadata: &self.metadata, group };
        for column in self.table.columns() {
            let Some(set) = column.set else { continue };
            if !wanted.columns.has(column) {
                continue;
            }
            // A file of an earlier release has fewer columns.
            let Some(place) = self.place(group, column.name) else { continue };
            // To open a column costs more than to read a page of it.
            if !column.required && pages.is_null(place, selected) {
                continue;
            }
            read_column(reader, place, column, selected, |row, cell| set(&mut rows[row], cell))?;
        }
        Ok(rows)
    }

    fn place(&self, group: usize, name: &str) -> Option<usize> {
        let columns = self.metadata.row_group(group).columns();
        columns.iter().position(|column| column.column_path().parts() == [name])
    }
}

impl Wanted<'_> {
    fn is_met_by(&self, row: &Row) -> bool {
        row.step == self.step
            && self.span.contains(row.span().start)
            && self.segment.is_none_or(|segment| row.series.is_of(segment))
    }
}

/// Hands over the values of the selected rows, by their places among those.
fn read_column(
    reader: &impl RowGroupReader,
    place: usize,
    column: &Column,
    selected: &Rows,
    mut take: impl FnMut(usize, Cell<'_>),
) -> Result<()> {
    match column.kind {
        Kind::Integer => typed::<Int64Type>(reader, place, selected, |row, value| {
            take(row, Cell::Integer(*value));
            Ok(())
        }),
        Kind::Real => typed::<DoubleType>(reader, place, selected, |row, value| {
            take(row, Cell::Real(*value));
            Ok(())
        }),
        Kind::Bytes => typed::<ByteArrayType>(reader, place, selected, |row, value| {
            take(row, Cell::Bytes(value.data()));
            Ok(())
        }),
        Kind::Text => typed::<ByteArrayType>(reader, place, selected, |row, value| {
            take(row, Cell::Text(value.as_utf8()?));
            Ok(())
        }),
        Kind::Wide => typed::<FixedLenByteArrayType>(reader, place, selected, |row, value| {
            let bytes = value.data().first_chunk::<WIDE_BYTES>();
            let bytes = bytes.ok_or_else(|| wrong("a decimal is too short"))?;
            take(row, Cell::Wide(i128::from_be_bytes(*bytes)));
            Ok(())
        }),
    }
}

fn typed<T: DataType>(
    reader: &impl RowGroupReader,
    place: usize,
    selected: &Rows,
    mut take: impl FnMut(usize, &T::T) -> Result<()>,
) -> Result<()> {
    let kind = reader.metadata().column(place).column_type();
    if kind != T::get_physical_type() {
        return Err(wrong("a column has an unexpected type"));
    }
    let is_optional = reader.metadata().column(place).column_descr().max_def_level() > 0;
    let mut column = get_typed_column_reader::<T>(reader.get_column_reader(place)?);
    let (mut at, mut row) = (0, 0);
    for range in selected {
        if column.skip_records(range.start - at)? != range.start - at {
            return Err(wrong("a column ends early"));
        }
        let (mut values, mut levels) = (Vec::new(), Vec::new());
        let (records, _, _) =
            column.read_records(range.len(), Some(&mut levels), None, &mut values)?;
        if records != range.len() {
            return Err(wrong("a column ends early"));
        }
        let mut known = values.iter();
        for index in 0..records {
            let is_known = !is_optional || levels.get(index).is_some_and(|level| *level > 0);
            if is_known && let Some(value) = known.next() {
                take(row + index, value)?;
            }
        }
        (at, row) = (range.end, row + records);
    }
    Ok(())
}

fn wrong(text: &str) -> ParquetError {
    ParquetError::General(text.to_owned())
}

#[cfg(test)]
mod tests {
    use twixt_model::Timestamp;
    use twixt_store::real_disk;

    use super::*;

    #[test]
    fn files_of_earlier_releases_are_read() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/golden");
        let path = Path::new(path).join("estimates-v1.parquet");
        let file = real_disk().open(&path, Access::Read).unwrap();
        let bytes = file.about().unwrap().bytes;
        let file = Source::new(file, bytes);
        let metadata = ParquetMetaDataReader::new().parse_and_finish(&file).unwrap();
        let (file, metadata) = (Arc::new(file), Arc::new(metadata));
        let opened = Opened { table: Table::Estimates, file, metadata };
        let wanted = Wanted {
            segment: None,
            step: Step::Epoch,
            span: Span { start: Timestamp::MIN, end: Timestamp::MAX },
            columns: Columns::All,
        };
        let mut rows = Vec::new();
        opened.rows(&wanted, |found| rows.extend(found)).unwrap();
        let packets: Vec<Option<u64>> = rows.iter().map(|row| row.packets).collect();
        assert_eq!(packets, [Some(1012), Some(988)]);
        for part in rows.iter().map(|row| row.delay.as_ref().unwrap()) {
            assert!(part.quantiles[1].value_ns.is_some() && part.histogram().is_some());
            assert_eq!((part.steps, part.jitter_ns()), (None, None), "it was not stored then");
        }
    }
}

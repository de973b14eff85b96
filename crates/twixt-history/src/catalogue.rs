//! Which series there are, and from when to when.
//!
//! A file beside the sealed hours, replaced as a whole when one is sealed. It is a hint: without it
//! the sealed hours tell. Whatever the table, it has columns of estimates: those of a series.

use std::collections::BTreeMap;
use std::path::Path;

use twixt_model::{Span, Timestamp};
use twixt_store::{SharedDisk, read_file, replace_file};
use xxhash_rust::xxh3::xxh3_64;

use crate::error::HistoryError;
use crate::record;
use crate::row::{Row, SeriesKey};
use crate::table::Table;

/// A longer file was not written by twixt.
const BYTES_MAX: u64 = 64 << 20;
const CHECKSUM_BYTES: usize = 8;

/// Series, and from the first to the last moment of which there is something.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Catalogue {
    series: BTreeMap<SeriesKey, Span>,
}

impl Catalogue {
    /// All series.
    pub fn series(&self) -> impl Iterator<Item = (&SeriesKey, Span)> {
        self.series.iter().map(|(series, span)| (series, *span))
    }

    /// From when to when there is something of a series.
    #[must_use]
    pub fn span_of(&self, series: &SeriesKey) -> Option<Span> {
        self.series.get(series).copied()
    }

    pub(crate) fn note(&mut self, series: &SeriesKey, span: Span) {
        match self.series.get_mut(series) {
            Some(known) => *known = known.union(span),
            None => {
                self.series.insert(series.clone(), span);
            }
        }
    }

    pub(crate) fn note_rows<'a>(&mut self, rows: impl IntoIterator<Item = &'a Row>) {
        for row in rows {
            self.note(&row.series, row.span());
        }
    }

    /// As far as minutes tell: those at the ends need not be whole.
    pub(crate) fn note_minutes<'a>(&mut self, rows: impl IntoIterator<Item = &'a Row>) {
        for row in rows {
            let epoch_ns = row.series.epoch_ns;
            let start_ns = row.epoch.map_or(row.start_ns, |epoch| epoch.saturating_mul(epoch_ns));
            let epochs = i64::try_from(row.epochs.saturating_add(row.gaps)).unwrap_or(i64::MAX);
            let told_ns = epochs.max(1).saturating_mul(epoch_ns).saturating_sub(1);
            let end_ns = start_ns.saturating_add(told_ns).min(row.end_ns);
            let [start, end] = [start_ns, end_ns.max(start_ns)].map(Timestamp::from_nanos);
            self.note(&row.series, Span { start, end });
        }
    }

    /// Forgets what ended before a moment, and beginnings before it.
    pub(crate) fn expire(&mut self, before: Timestamp) {
        self.series.retain(|_, span| span.end >= before);
        for span in self.series.values_mut() {
            span.start = span.start.max(before);
        }
    }

    /// `None` if the file is not there, or cannot be used.
    pub(crate) fn read(disk: &SharedDisk, path: &Path) -> Option<Self> {
        let bytes = read_file(disk.as_ref(), path, BYTES_MAX).ok()?;
        let (checksum, record) = bytes.split_at_checked(CHECKSUM_BYTES)?;
        if checksum != xxh3_64(record).to_le_bytes() {
            return None;
        }
        let mut catalogue = Self::default();
        catalogue.note_rows(&record::decode(Table::Estimates, record).ok()?);
        Some(catalogue)
    }

    /// Replaces the file, durably.
    pub(crate) fn write(&self, disk: &SharedDisk, path: &Path) -> Result<(), HistoryError> {
        let row = |(series, span): (&SeriesKey, &Span)| Row {
            series: series.clone(),
            start_ns: span.start.as_nanos(),
            end_ns: span.end.as_nanos(),
            ..Row::default()
        };
        let rows: Vec<Row> = self.series.iter().map(row).collect();
        let record = record::encode(Table::Estimates, &rows);
        let bytes = [xxh3_64(&record).to_le_bytes().as_slice(), &record].concat();
        replace_file(disk, path, &bytes).map_err(HistoryError::file("write", path))
    }
}

#[cfg(test)]
mod tests {
    use twixt_store::SimulatedDisk;

    use super::*;
    use crate::testing::row;

    #[test]
    fn it_reads_back_unless_it_is_damaged() {
        let simulated = SimulatedDisk::new(1);
        let (disk, path) = (simulated.mount(), Path::new("/series"));
        assert_eq!(Catalogue::read(&disk, path), None);
        let mut catalogue = Catalogue::default();
        catalogue.note_rows(&[row("a", "b", 3), row("a", "b", 1), row("c", "d", 2)]);
        catalogue.write(&disk, path).unwrap();
        simulated.crash();
        let disk = simulated.mount();
        assert_eq!(Catalogue::read(&disk, path), Some(catalogue));
        simulated.flip_bit(path, 100);
        assert_eq!(Catalogue::read(&disk, path), None);
    }
}

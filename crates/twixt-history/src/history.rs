//! A history that is being written.
//!
//! Rows are appended to the log of their hour, and made durable when asked to. When an hour is
//! over, and nothing came for it for a while, it is sealed. Minutes and hours of what is not sealed
//! are kept up to date in memory, since most questions are about now; the log can tell them too.

mod open_sums;

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::slice::from_ref;
use std::sync::{Mutex, MutexGuard, PoisonError};

use twixt_model::{Span, Timestamp};
use twixt_store::{Depth, SharedDisk, make_folders, real_disk};

use crate::catalogue::Catalogue;
use crate::error::{HistoryError, Unreadable};
use crate::file::{Columns, Wanted, read_groups};
use crate::open::{Appended, HourPart, OpenWanted, PartWriter, identity, identity_of};
use crate::question::{RowAnswer, RowQuestion};
use crate::reader::{ExcerptAsked, ExcerptPart, ExcerptSummary, HistoryReader};
use crate::retention::{HistoryRetention, RemovedFiles, expire};
use crate::rollup::{pieces, rolled_up};
use crate::row::{Row, SeriesKey};
use crate::seal::seal;
use crate::step::{HOUR_NS, Hour, Step};
use crate::table::Table;
use open_sums::OpenSums;

/// Hours whose files are kept open; each has two for every shard. Those of others are opened when
/// they are needed.
const WRITERS_MAX: usize = 4;
/// Roll-ups of hours that are not sealed that are kept in memory. Beyond this the logs are read.
const ROLLUP_BYTES_MAX: usize = 256 << 20;
/// Hours at either end of a gap that it is stored in. Between them nothing is stored, which an
/// answer says as well.
const GAP_HOURS: usize = 2;

/// How a history is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryConfig {
    /// How long after its end an hour is sealed. Must cover how long epochs are waited for.
    pub seal_wait_ns: i64,
    /// How long nothing must have come for it.
    pub seal_idle_ns: i64,
    /// What is forgotten, and when.
    pub retention: HistoryRetention,
}

impl Default for HistoryConfig {
    /// Ten minutes, one minute, nothing.
    fn default() -> Self {
        let seconds = |seconds: i64| seconds * 1_000_000_000;
        Self {
            seal_wait_ns: seconds(600),
            seal_idle_ns: seconds(60),
            retention: HistoryRetention::default(),
        }
    }
}

/// A history that is being written. There can be only one for a directory: the caller ensures
/// that.
#[derive(Debug)]
pub struct History {
    reader: HistoryReader,
    config: HistoryConfig,
    /// Held while the disk is written, which may take long: questions do without it. Locked before
    /// `state`, never the other way round.
    writers: Mutex<BTreeMap<HourPart, OpenWriter>>,
    state: Mutex<State>,
}

/// The files of an hour that is not sealed, and is not being sealed.
#[derive(Debug)]
struct OpenWriter {
    writer: PartWriter,
    /// When something was appended last.
    touched: Timestamp,
}

/// What questions need.
#[derive(Debug)]
struct State {
    parts: BTreeMap<HourPart, OpenSums>,
    catalogue: Catalogue,
    counts: Counts,
}

/// What happened so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Rows stored.
    pub rows: u64,
    /// Rows that were there already.
    pub repeated: u64,
    /// Hours, or parts of them, that were sealed.
    pub sealed: u64,
    /// Times that roll-ups were not kept in memory because there are too many.
    pub rollups_refused: u64,
    /// Times that the smaller scopes of one point became one.
    pub folded: u64,
}

/// What became of hours that were due.
#[derive(Debug, Default)]
pub struct UpkeepDone {
    /// Hours that were sealed.
    pub sealed: Vec<Hour>,
    /// What could not be read when they were.
    pub problems: Vec<Unreadable>,
    /// Why hours that were due are not sealed: a full disk, as a rule. They are as they were, and
    /// are tried again the next time.
    pub unsealed: Vec<HistoryError>,
    /// What was deleted.
    pub removed: RemovedFiles,
}

impl History {
    /// Opens the history of estimates in a folder, and takes up the hours that are not sealed.
    ///
    /// # Errors
    /// When folders cannot be made or listed.
    pub fn open(folder: &Path, config: HistoryConfig) -> Result<Self, HistoryError> {
        Self::open_table(real_disk(), folder, Table::Estimates, config)
    }

    /// The same of a table, on a given disk.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_table(
        disk: SharedDisk,
        folder: &Path,
        table: Table,
        config: HistoryConfig,
    ) -> Result<Self, HistoryError> {
        let reader = HistoryReader::open_table(disk, folder, table);
        let open = &reader.folders.open;
        make_folders(reader.folders.disk.as_ref(), open.path())
            .map_err(HistoryError::file("create", open.path()))?;
        open.clean()?;
        let catalogue = reader.sealed_catalogue()?;
        let mut state = State { parts: BTreeMap::new(), catalogue, counts: Counts::default() };
        let mut writers = BTreeMap::new();
        for part in open.parts()? {
            let mut scan = open.scan(part, &OpenWanted::all(part.hour), Depth::Payloads)?;
            while let Some(rows) = scan.next_rows() {
                state.add(part, &rows);
            }
            scan.finish()?;
            let writer = open.writer(part, sealed_before(&reader, part)?);
            writers.insert(part, OpenWriter { writer, touched: Timestamp::MIN });
        }
        let (writers, state) = (Mutex::new(writers), Mutex::new(state));
        Ok(Self { reader, config, writers, state })
    }

    /// Stores one event of a series: rows of one interval of time.
    ///
    /// # Errors
    /// When the disk is full or broken. What was not stored may be tried again.
    pub fn append(&self, rows: &[Row], now: Timestamp) -> Result<(), HistoryError> {
        let Some(first) = rows.first() else { return Ok(()) };
        let mut writers = lock(&self.writers);
        if !first.is_gap() || Hour::of(first.span().start) == Hour::of(first.span().end) {
            return self.append_to(&mut writers, rows, now);
        }
        for row in rows {
            let hours: Vec<Row> = pieces(row, Some(HOUR_NS)).take(GAP_HOURS).collect();
            let last = Hour::of(row.span().end).span().start.as_nanos() - HOUR_NS;
            let ending = Row { start_ns: row.start_ns.max(last), ..row.clone() };
            let late = pieces(&ending, Some(HOUR_NS))
                .filter(|piece| hours.iter().all(|hour| hour.start_ns != piece.start_ns));
            let late: Vec<Row> = late.collect();
            for piece in hours.into_iter().chain(late) {
                self.append_to(&mut writers, &[piece], now)?;
            }
        }
        Ok(())
    }

    fn append_to(
        &self,
        writers: &mut BTreeMap<HourPart, OpenWriter>,
        rows: &[Row],
        now: Timestamp,
    ) -> Result<(), HistoryError> {
        let Some(first) = rows.first() else { return Ok(()) };
        let part = self.part_for(writers, Hour::of(first.span().start), now)?;
        close_others(writers, part)?;
        let open = writers.get_mut(&part).expect("it was found or made just now");
        if first.is_gap() {
            let left = open.writer.unestimated(first)?;
            return left
                .iter()
                .try_for_each(|gap| self.append_event(part, open, from_ref(gap), now));
        }
        self.append_event(part, open, rows, now)
    }

    fn append_event(
        &self,
        part: HourPart,
        open: &mut OpenWriter,
        rows: &[Row],
        now: Timestamp,
    ) -> Result<(), HistoryError> {
        let appended = open.writer.append(rows)?;
        let mut state = self.state();
        match appended {
            Appended::AlreadyThere => state.counts.repeated += rows.len() as u64,
            Appended::Stored => {
                open.touched = now;
                state.counts.rows += rows.len() as u64;
                state.add(part, rows);
            }
        }
        Ok(())
    }

    /// Makes all that was appended survive the death of the machine.
    ///
    /// # Errors
    /// When the disk is full or broken.
    pub fn sync(&self) -> Result<(), HistoryError> {
        lock(&self.writers).values_mut().try_for_each(|open| open.writer.sync())
    }

    /// Seals hours that are over, and deletes what is old. To be called now and then, when all that
    /// was appended is known not to be appended again.
    ///
    /// # Errors
    /// When files cannot be listed or deleted. It may be tried again.
    pub fn keep(&self, now: Timestamp) -> Result<UpkeepDone, HistoryError> {
        self.keep_by(now, now)
    }

    /// As [`keep`](Self::keep), with ages that count from another time than now: a caller that
    /// doubts the clock need not have it delete things.
    ///
    /// # Errors
    /// As [`keep`](Self::keep).
    pub fn keep_by(&self, now: Timestamp, old_by: Timestamp) -> Result<UpkeepDone, HistoryError> {
        self.keep_beside(now, old_by, 0)
    }

    /// As [`keep_by`](Self::keep_by), where other tables take so many of the bytes that all of them
    /// may have together.
    ///
    /// # Errors
    /// As [`keep`](Self::keep).
    pub fn keep_beside(
        &self,
        now: Timestamp,
        old_by: Timestamp,
        beside_bytes: u64,
    ) -> Result<UpkeepDone, HistoryError> {
        // Before anything is written: where the disk is full, that makes room.
        let removed = self.forget(old_by, beside_bytes)?;
        let mut kept = UpkeepDone { removed, ..UpkeepDone::default() };
        for part in self.due(now) {
            match self.seal(part) {
                Ok(problems) => {
                    kept.problems.extend(problems);
                    kept.sealed.push(part.hour);
                }
                Err(error) => kept.unsealed.push(error),
            }
        }
        if !kept.sealed.is_empty() {
            kept.removed = kept.removed.and_then(self.forget(old_by, beside_bytes)?);
        }
        Ok(kept)
    }

    /// Deletes what is old, or too much.
    fn forget(&self, now: Timestamp, beside_bytes: u64) -> Result<RemovedFiles, HistoryError> {
        let HistoryRetention { bytes_max, .. } = self.config.retention;
        let bytes_max = bytes_max.map(|bytes_max| bytes_max.saturating_sub(beside_bytes));
        let retention = HistoryRetention { bytes_max, ..self.config.retention };
        let removed = expire(&self.reader.folders, &retention, now)?;
        if let Some(before) = removed.oldest_left {
            let mut state = self.state();
            state.catalogue.expire(before);
            let folders = &self.reader.folders;
            state.catalogue.write(&folders.disk, &folders.catalogue)?;
        }
        Ok(removed)
    }

    /// Seals all hours, whether or not they are over. What comes for them later begins a new part.
    ///
    /// # Errors
    /// As [`keep`](Self::keep).
    pub fn seal_all(&self) -> Result<Vec<Unreadable>, HistoryError> {
        let parts: Vec<HourPart> = lock(&self.writers).keys().copied().collect();
        let mut problems = Vec::new();
        for part in parts {
            problems.extend(self.seal(part)?);
        }
        Ok(problems)
    }

    /// Answers a question.
    ///
    /// # Errors
    /// When folders cannot be listed. Problems of files are listed in the answer.
    pub fn answer(&self, question: &RowQuestion) -> Result<RowAnswer, HistoryError> {
        let catalogue = self.catalogue();
        self.reader.answer_with(question, &catalogue, Some(self))
    }

    /// Hands over all that is stored of a segment in an interval of time, hour by hour.
    ///
    /// # Errors
    /// As [`HistoryReader::excerpt`].
    pub fn excerpt<E: From<HistoryError>>(
        &self,
        asked: &ExcerptAsked,
        take: impl FnMut(ExcerptPart) -> Result<(), E>,
    ) -> Result<ExcerptSummary, E> {
        let catalogue = self.catalogue();
        self.reader.excerpt_with(asked, &catalogue, Some(self), take)
    }

    /// What a minute of a series comes to, a row for each scope, while its hour is not sealed.
    #[must_use]
    pub fn minute(&self, series: &SeriesKey, start: Timestamp) -> Vec<Row> {
        let hour = Hour::of(start);
        let parts = HourPart { hour, number: 0 }..=HourPart { hour, number: u32::MAX };
        let state = self.state();
        let sums = state.parts.range(parts).filter_map(|(_, sums)| sums.of(Step::Minute));
        let mut minutes: Vec<Vec<Row>> =
            sums.map(|minutes| minutes.rows_at(series, start).collect()).collect();
        let mut rows = match minutes.len() {
            0 | 1 => minutes.pop().unwrap_or_default(),
            _ => rolled_up(minutes.iter().flatten(), Step::Minute),
        };
        rows.iter_mut().for_each(Row::close_late_gaps);
        rows
    }

    /// Which series there are.
    #[must_use]
    pub fn catalogue(&self) -> Catalogue {
        self.state().catalogue.clone()
    }

    /// The last moment of which there is something.
    #[must_use]
    pub fn newest(&self) -> Option<Timestamp> {
        self.state().catalogue.series().map(|(_, span)| span.end).max()
    }

    /// What happened so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.state().counts
    }

    /// What minutes and hours that are not sealed take in memory.
    #[must_use]
    pub fn rollup_bytes(&self) -> usize {
        self.state().rollup_bytes()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn due(&self, now: Timestamp) -> Vec<HourPart> {
        let config = &self.config;
        let is_due = |part: &HourPart, open: &OpenWriter| {
            let over_ns = now.as_nanos().saturating_sub(part.hour.span().end.as_nanos());
            let idle_ns = now.as_nanos().saturating_sub(open.touched.as_nanos());
            // A clock that was set back tells nothing of how long nothing came.
            over_ns >= config.seal_wait_ns && (idle_ns >= config.seal_idle_ns || idle_ns < 0)
        };
        let writers = lock(&self.writers);
        writers.iter().filter(|(part, open)| is_due(part, open)).map(|(part, _)| *part).collect()
    }

    /// The part that rows of an hour are appended to.
    fn part_for(
        &self,
        writers: &mut BTreeMap<HourPart, OpenWriter>,
        hour: Hour,
        now: Timestamp,
    ) -> Result<HourPart, HistoryError> {
        let of_hour = HourPart { hour, number: 0 }..=HourPart { hour, number: u32::MAX };
        if let Some((part, _)) = writers.range(of_hour).next_back() {
            return Ok(*part);
        }
        let folders = &self.reader.folders;
        // One that is being sealed may be there too.
        let open = folders.open.parts()?.into_iter().filter(|part| part.hour == hour);
        let epochs = folders.epochs.files_of(hour.day())?;
        let rollups = folders.rollups.files_of(hour.day())?;
        let sealed = epochs.iter().chain(&rollups).filter(|name| name.hour == hour);
        let numbers = open.map(|part| part.number).chain(sealed.map(|name| name.part));
        let part = HourPart { hour, number: numbers.max().map_or(0, |last| last + 1) };
        let writer = folders.open.writer(part, sealed_before(&self.reader, part)?);
        writers.insert(part, OpenWriter { writer, touched: now });
        Ok(part)
    }

    /// Seals a part. What comes for its hour meanwhile begins a new one.
    fn seal(&self, part: HourPart) -> Result<Vec<Unreadable>, HistoryError> {
        let Some(mut open) = lock(&self.writers).remove(&part) else { return Ok(Vec::new()) };
        let folders = &self.reader.folders;
        let sealed = open.writer.close().and_then(|()| seal(folders, part)).and_then(|problems| {
            // Written before the log is deleted: what it says is there, or was.
            let catalogue = self.catalogue();
            catalogue.write(&folders.disk, &folders.catalogue)?;
            folders.open.delete(part)?;
            Ok(problems)
        });
        if sealed.is_err() {
            // It goes on as it was.
            lock(&self.writers).insert(part, open);
            return sealed;
        }
        let mut state = self.state();
        state.parts.remove(&part);
        state.counts.sealed += 1;
        sealed
    }
}

impl State {
    /// Keeps minutes and hours up to date.
    fn add(&mut self, part: HourPart, rows: &[Row]) {
        let sums = self.parts.entry(part).or_default();
        let before = sums.folded();
        rows.iter().for_each(|row| sums.add(row));
        self.counts.folded += sums.folded().saturating_sub(before);
        self.catalogue.note_rows(rows);
        self.bound_rollups();
    }

    fn rollup_bytes(&self) -> usize {
        self.parts.values().map(OpenSums::memory_bytes).sum()
    }

    /// Forgets roll-ups of the largest hours if there are too many.
    fn bound_rollups(&mut self) {
        while self.rollup_bytes() > ROLLUP_BYTES_MAX {
            let largest = self.parts.values_mut().max_by_key(|sums| sums.memory_bytes());
            let Some(largest) = largest else { return };
            largest.forget();
            self.counts.rollups_refused += 1;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Closes the files of hours that were used least recently.
fn close_others(
    writers: &mut BTreeMap<HourPart, OpenWriter>,
    keep: HourPart,
) -> Result<(), HistoryError> {
    while writers.values().filter(|open| !open.writer.is_closed()).count() > WRITERS_MAX {
        let others =
            writers.iter_mut().filter(|(part, open)| **part != keep && !open.writer.is_closed());
        let Some((_, oldest)) = others.min_by_key(|(_, open)| open.touched) else { return Ok(()) };
        oldest.writer.close()?;
    }
    Ok(())
}

/// What earlier parts of an hour have: it is not stored again.
fn sealed_before(reader: &HistoryReader, part: HourPart) -> Result<HashSet<u64>, HistoryError> {
    let mut known = HashSet::new();
    if part.number == 0 {
        return Ok(known);
    }
    let folders = &reader.folders;
    for earlier in folders.open.parts()?.into_iter().filter(|open| open.hour == part.hour) {
        if earlier.number < part.number {
            let wanted = OpenWanted::all(part.hour);
            // What is damaged may come again.
            let mut scan = folders.open.scan(earlier, &wanted, Depth::Checks)?;
            known.extend(scan.by_ref().map(|found| identity_of(&found.stream, found.epoch)));
            scan.finish()?;
        }
    }
    let span: Span = part.hour.span();
    let wanted = Wanted { segment: None, step: Step::Epoch, span, columns: Columns::Keys };
    for name in folders.epochs.files_of(part.hour.day())? {
        if name.hour == part.hour && name.part < part.number {
            let note = |rows: Vec<Row>| known.extend(rows.iter().map(identity));
            match read_groups(&folders.epochs, name, &wanted, &reader.footers, note) {
                Ok(()) => {}
                // What it has would be stored again.
                Err(Unreadable { path, text, is_disk_error: true }) => {
                    return Err(HistoryError::file("read", &path)(std::io::Error::other(text)));
                }
                // What is damaged is not repeated either.
                Err(_) => {}
            }
        }
    }
    Ok(known)
}

//! Appends rows to a part of an hour, and names their streams: a series, and whether the record is
//! a gap.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashSet};

use twixt_model::Epoch;
use twixt_store::{Durability, EpochEntry, Log, PointWriter};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::SHARDS;
use crate::error::HistoryError;
use crate::holes::left_of;
use crate::record;
use crate::row::{Row, SeriesKey};
use crate::table::Table;

/// What became of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Appended {
    /// They were stored.
    Stored,
    /// They are already stored: the same was published before a crash.
    AlreadyThere,
}

/// Appends to a part.
#[derive(Debug)]
pub(crate) struct PartWriter {
    log: Log,
    table: Table,
    shards: BTreeMap<u64, PointWriter>, // at most SHARDS
    unsynced: BTreeSet<u64>,
    /// What earlier parts of the hour have.
    sealed: HashSet<u64>,
}

impl PartWriter {
    pub(super) fn new(log: Log, table: Table, sealed: HashSet<u64>) -> Self {
        Self { log, table, shards: BTreeMap::new(), unsynced: BTreeSet::new(), sealed }
    }

    /// Appends one event of a series: rows of one interval of time.
    pub(crate) fn append(&mut self, rows: &[Row]) -> Result<Appended, HistoryError> {
        let Some(first) = rows.first() else { return Ok(Appended::AlreadyThere) };
        if self.sealed.contains(&identity(first)) {
            return Ok(Appended::AlreadyThere);
        }
        let stream = stream_of(first);
        let entry = EpochEntry { stream: &stream, span: first.span(), epoch: epoch_of(first) };
        self.unsynced.insert(shard_of_row(first));
        let record = record::encode(self.table, rows);
        let writer = self.writer_of(first)?;
        match writer.append_once(&entry, &record, Durability::Written)? {
            twixt_store::Appended::Stored => Ok(Appended::Stored),
            twixt_store::Appended::AlreadyThere => Ok(Appended::AlreadyThere),
        }
    }

    /// What is left of a gap without epochs of which an estimate is stored. After a crash, what was
    /// estimated may be estimated again; where a half was damaged meanwhile, that gives a gap.
    pub(crate) fn unestimated(&mut self, gap: &Row) -> Result<Vec<Row>, HistoryError> {
        let Some(first) = gap.epoch else { return Ok(vec![gap.clone()]) };
        if self.holds(gap)? {
            return Ok(vec![gap.clone()]);
        }
        let mut estimated = BTreeSet::new();
        for epoch in first..first.saturating_add_unsigned(gap.gaps) {
            if self.holds(&Row::untold(gap.series.clone(), epoch))? {
                estimated.insert(epoch);
            }
        }
        Ok(left_of(gap, &estimated))
    }

    fn holds(&mut self, row: &Row) -> Result<bool, HistoryError> {
        let stream = stream_of(row);
        let entry = EpochEntry { stream: &stream, span: row.span(), epoch: epoch_of(row) };
        Ok(self.sealed.contains(&identity(row)) || self.writer_of(row)?.holds(&entry)?)
    }

    fn writer_of(&mut self, row: &Row) -> Result<&mut PointWriter, HistoryError> {
        let shard = shard_of_row(row);
        match self.shards.entry(shard) {
            Entry::Occupied(entry) => Ok(entry.into_mut()),
            Entry::Vacant(entry) => Ok(entry.insert(self.log.writer(&shard.to_string())?)),
        }
    }

    /// Makes all that was appended survive the death of the machine.
    pub(crate) fn sync(&mut self) -> Result<(), HistoryError> {
        while let Some(shard) = self.unsynced.first().copied() {
            if let Some(writer) = self.shards.get_mut(&shard) {
                writer.sync()?;
            }
            self.unsynced.remove(&shard);
        }
        Ok(())
    }

    /// Closes all files. They are opened again when they are needed.
    pub(crate) fn close(&mut self) -> Result<(), HistoryError> {
        self.sync()?;
        self.shards.clear();
        Ok(())
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.shards.is_empty()
    }
}

/// What tells the rows of one event from others.
pub(crate) fn identity(row: &Row) -> u64 {
    identity_of(&stream_of(row), epoch_of(row))
}

fn epoch_of(row: &Row) -> Epoch {
    Epoch(row.epoch.unwrap_or(row.start_ns))
}

fn shard_of_row(row: &Row) -> u64 {
    shard_of(&row.series.upstream, &row.series.downstream)
}

/// The same of a record.
pub(crate) fn identity_of(stream: &str, epoch: Epoch) -> u64 {
    xxh3_64_with_seed(stream.as_bytes(), epoch.0 as u64)
}

/// The shard of a segment.
pub(crate) fn shard_of(upstream: &str, downstream: &str) -> u64 {
    xxh3_64(format!("{}:{upstream}{downstream}", upstream.len()).as_bytes()) % SHARDS
}

/// The stream of a row: each part of the series behind its length, behind what it is. After a restart
/// of an agent two runs have a part of one epoch each: both are kept.
fn stream_of(row: &Row) -> String {
    let series = &row.series;
    let kind = match row.run {
        _ if row.is_gap() => "gap".to_owned(),
        Some(run) => format!("run {run}"),
        None => "estimate".to_owned(),
    };
    let epoch_ns = series.epoch_ns.to_string();
    let parts = [
        &kind,
        &series.domain,
        &series.upstream,
        &series.downstream,
        &series.class,
        &series.algorithm,
        &epoch_ns,
    ];
    parts.iter().map(|part| format!("{}:{part}", part.len())).collect()
}

/// The series of a stream; `None` if twixt did not name it.
pub(crate) fn series_of(stream: &str) -> Option<SeriesKey> {
    let mut rest = stream;
    let mut next = || {
        let (length, behind) = rest.split_once(':')?;
        let (part, left) = behind.split_at_checked(length.parse().ok()?)?;
        rest = left;
        Some(part.to_owned())
    };
    let _kind = next()?;
    let (domain, upstream, downstream) = (next()?, next()?, next()?);
    let (class, algorithm) = (next()?, next()?);
    let epoch_ns = next()?.parse().ok()?;
    let series = SeriesKey { upstream, downstream, class, algorithm, domain, epoch_ns };
    rest.is_empty().then_some(series)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{gap, row};

    #[test]
    fn series_have_names_of_their_own() {
        for (upstream, downstream) in [("a", "b"), ("a:", "1:b"), ("", ""), ("zürich", "→")] {
            let row = row(upstream, downstream, 0);
            assert_eq!(series_of(&stream_of(&row)), Some(row.series));
        }
        assert_ne!(stream_of(&row("ab", "c", 0)), stream_of(&row("a", "bc", 0)));
        assert_ne!(stream_of(&row("a", "b", 0)), stream_of(&gap("a", "b", 0)));
        let runs = [1, 2].map(|run| Row { run: Some(run), ..row("a", "a", 0) });
        assert_ne!(stream_of(&runs[0]), stream_of(&runs[1]));
        assert_eq!(series_of(&stream_of(&runs[0])), Some(runs[0].series.clone()));
        for other in ["", "3:lab", "99:x", "estimate", "8:estimate1:a1:b1:c1:d1:e1:f"] {
            assert_eq!(series_of(other), None, "{other}");
        }
    }
}

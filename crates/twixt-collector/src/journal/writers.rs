//! The open files of the log, one writer for each point.

use std::collections::{BTreeMap, BTreeSet};

use twixt_store::{Appended, Durability, EpochEntry, Log, PointWriter, StoreError};

/// Appends to the log, and makes it durable when asked to.
#[derive(Debug)]
pub(super) struct Writers {
    log: Log,
    open: BTreeMap<String, (u64, PointWriter)>, // at most `open_max`, and those that are being written
    /// The one that was used least recently is closed for another.
    open_max: usize,
    unsynced: BTreeSet<String>,
    /// Points whose file failed since the last sync: what was appended to it may not be durable.
    broken: BTreeMap<String, String>,
    clock: u64,
}

impl Writers {
    pub(super) fn new(log: Log, open_max: usize) -> Self {
        let (open, unsynced, broken) = (BTreeMap::new(), BTreeSet::new(), BTreeMap::new());
        Self { log, open, open_max, unsynced, broken, clock: 0 }
    }

    pub(super) fn log(&self) -> &Log {
        &self.log
    }

    /// Appends, unless it is there. It is not durable yet.
    pub(super) fn append(
        &mut self,
        point: &str,
        entry: &EpochEntry<'_>,
        payload: &[u8],
    ) -> Result<Appended, StoreError> {
        self.clock += 1;
        if !self.open.contains_key(point) {
            self.close_one();
            self.open.insert(point.to_owned(), (0, self.log.writer(point)?));
        }
        let (used, writer) = self.open.get_mut(point).expect("it was opened just now");
        *used = self.clock;
        // Even one that is there already may not be durable yet.
        self.unsynced.insert(point.to_owned());
        let appended = writer.append_once(entry, payload, Durability::Written);
        if let Err(error) = &appended
            && !is_final(error)
        {
            self.broken.insert(point.to_owned(), error.with_cause());
        }
        appended
    }

    /// Makes all that was appended durable; the points for which that failed, and why.
    pub(super) fn sync(&mut self) -> BTreeMap<String, String> {
        let mut failed = std::mem::take(&mut self.broken);
        for point in std::mem::take(&mut self.unsynced) {
            let Some((_, writer)) = self.open.get_mut(&point) else { continue };
            if let Err(error) = writer.sync() {
                failed.insert(point, error.with_cause());
            }
        }
        failed
    }

    /// Closes all files, so that old days can be deleted.
    pub(super) fn close(&mut self) {
        self.open.clear();
    }

    fn close_one(&mut self) {
        if self.open.len() < self.open_max {
            return;
        }
        let idle = self.open.iter().filter(|(point, _)| !self.unsynced.contains(*point));
        let oldest = idle.min_by_key(|(_, (used, _))| *used).map(|(point, _)| point.clone());
        if let Some(point) = oldest {
            self.open.remove(&point);
        }
    }
}

/// Whether the record itself is at fault, and not the disk.
pub(super) const fn is_final(error: &StoreError) -> bool {
    matches!(
        error,
        StoreError::PointName { .. }
            | StoreError::StreamName { .. }
            | StoreError::TooLong { .. }
            | StoreError::Span
    )
}

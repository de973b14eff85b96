//! The histories of single points: a table for each of what can be measured at one point.

use std::path::Path;
use std::sync::Arc;

use twixt_history::{History, HistoryConfig, HistoryError, HistoryRetention, Table};
use twixt_store::SharedDisk;

/// Each table of one point has one part in so many of the bytes that all may have, at most.
const BYTES_SHARE: u64 = 8;

/// The tables of one point.
#[derive(Clone, Debug)]
pub(crate) struct PointHistories {
    round_trips: Arc<History>,
    reordering: Arc<History>,
    heavy: Arc<History>,
}

impl PointHistories {
    /// Opens them in the collector's directory.
    pub(crate) fn open(
        disk: &SharedDisk,
        directory: &Path,
        config: &HistoryConfig,
    ) -> Result<Self, HistoryError> {
        let bytes_max = config.retention.bytes_max.map(|bytes_max| bytes_max / BYTES_SHARE);
        let retention = HistoryRetention { bytes_max, ..config.retention };
        let config = HistoryConfig { retention, ..*config };
        let open = |table: Table| {
            let folder = directory.join(table.name());
            History::open_table(disk.clone(), &folder, table, config).map(Arc::new)
        };
        Ok(Self {
            round_trips: open(Table::RoundTrips)?,
            reordering: open(Table::Reordering)?,
            heavy: open(Table::Heavy)?,
        })
    }

    /// That of a table; `None` for estimates.
    pub(crate) const fn of(&self, table: Table) -> Option<&Arc<History>> {
        match table {
            Table::Estimates => None,
            Table::RoundTrips => Some(&self.round_trips),
            Table::Reordering => Some(&self.reordering),
            Table::Heavy => Some(&self.heavy),
        }
    }

    /// All of them.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<History>> {
        [&self.round_trips, &self.reordering, &self.heavy].into_iter()
    }
}

//! How much of a store a query read.

use serde::Serialize;
use twixt_store::{Found, Report};

use crate::output::units;

/// What was read: `read` of the document.
#[derive(Clone, Copy, Default, Serialize)]
pub(super) struct Touched {
    /// Epochs of either point that were read whole; one more than there are for a first look.
    records: u64,
    /// Bytes of data files, heads of records included.
    data_bytes: u64,
    index_bytes: u64,
}

impl Touched {
    pub(super) const fn add(&mut self, other: Self) {
        self.records += other.records;
        self.data_bytes += other.data_bytes;
        self.index_bytes += other.index_bytes;
    }

    /// What a search for records read.
    pub(super) const fn add_heads(&mut self, report: &Report) {
        self.data_bytes += report.data_bytes;
        self.index_bytes += report.index_bytes;
    }

    pub(super) const fn add_record(&mut self, found: &Found) {
        self.records += 1;
        self.data_bytes += found.stored_bytes;
    }

    /// A line for people.
    pub(super) fn report(self) -> String {
        let bytes = units::bytes(self.data_bytes.saturating_add(self.index_bytes));
        format!("read       {} epochs, {bytes} of the store\n", units::count(self.records))
    }
}

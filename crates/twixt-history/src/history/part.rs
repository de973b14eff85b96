//! An hour that is not sealed, in memory.

use twixt_model::Timestamp;

use crate::open::PartWriter;
use crate::rollup::RollUps;
use crate::row::Row;
use crate::step::Step;

/// A part of an hour that is not sealed.
#[derive(Debug)]
pub(super) struct OpenPart {
    /// `None` while it is being sealed.
    pub(super) writer: Option<PartWriter>,
    /// When something was appended last.
    pub(super) touched: Timestamp,
    /// Minutes and hours; `None` when there are too many.
    pub(super) sums: Option<[RollUps; 2]>,
}

impl OpenPart {
    pub(super) fn new(writer: PartWriter, touched: Timestamp) -> Self {
        let sums = Some([Step::Minute, Step::Hour].map(RollUps::new));
        Self { writer: Some(writer), touched, sums }
    }

    pub(super) fn add(&mut self, row: &Row) {
        self.sums.iter_mut().flatten().for_each(|sums| sums.add(row));
    }

    pub(super) fn rollups(&self) -> usize {
        self.sums.iter().flatten().map(RollUps::len).sum()
    }

    pub(super) fn forget_rollups(&mut self) {
        self.sums = None;
    }
}

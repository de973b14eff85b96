//! Minutes and hours of what is not sealed, in memory.

use super::History;
use crate::open::HourPart;
use crate::question::RowQuestion;
use crate::reader::Live;
use crate::rollup::RollUps;
use crate::row::Row;
use crate::step::Step;

/// Minutes and hours of a part; nothing when there are too many.
#[derive(Debug)]
pub(super) struct OpenSums {
    sums: Option<[RollUps; 2]>,
}

impl Default for OpenSums {
    fn default() -> Self {
        Self { sums: Some([Step::Minute, Step::Hour].map(RollUps::new)) }
    }
}

impl OpenSums {
    pub(super) fn add(&mut self, row: &Row) {
        self.sums.iter_mut().flatten().for_each(|sums| sums.add(row));
    }

    /// Minutes or hours; `None` where the log must be read.
    pub(super) fn of(&self, step: Step) -> Option<&RollUps> {
        let [minutes, hours] = self.sums.as_ref()?;
        match step {
            Step::Epoch => None,
            Step::Minute => Some(minutes),
            Step::Hour => Some(hours),
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.sums.iter().flatten().map(RollUps::memory_bytes).sum()
    }

    /// How often scopes gave way to others.
    pub(super) fn folded(&self) -> u64 {
        self.sums.iter().flatten().map(RollUps::folded).sum()
    }

    pub(super) fn forget(&mut self) {
        self.sums = None;
    }
}

impl Live for History {
    fn rolled_up(&self, part: HourPart, question: &RowQuestion) -> Option<Vec<Row>> {
        let state = self.state();
        let sums = state.parts.get(&part)?.of(question.step)?;
        Some(sums.rows_of(|series| question.wants_series(series)).collect())
    }
}

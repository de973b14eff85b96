//! Minutes and hours of what is not sealed, from memory.

use super::History;
use crate::open::HourPart;
use crate::question::Question;
use crate::reader::Live;
use crate::row::Row;

impl Live for History {
    fn rolled_up(&self, part: HourPart, question: &Question) -> Option<Vec<Row>> {
        let state = self.state();
        let sums = state.parts.get(&part)?.of(question.step)?;
        Some(sums.rows_of(|series| question.wants_series(series)).collect())
    }
}

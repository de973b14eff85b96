//! Minutes and hours of what is not sealed, from memory.

use super::History;
use crate::open::Part;
use crate::question::Question;
use crate::reader::Live;
use crate::row::Row;
use crate::step::Step;

impl Live for History {
    fn rolled_up(&self, part: Part, question: &Question) -> Option<Vec<Row>> {
        let state = self.state();
        let [minutes, hours] = state.parts.get(&part)?.sums.as_ref()?;
        let sums = match question.step {
            Step::Epoch => return None,
            Step::Minute => minutes,
            Step::Hour => hours,
        };
        Some(sums.rows_of(|series| question.wants_series(series)).collect())
    }
}

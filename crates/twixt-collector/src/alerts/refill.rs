//! Refills windows that a restart interrupted, from the history, so that
//! half a window is not mistaken for a whole one.

use tracing::warn;
use twixt_history::{History, HistoryError, Row, RowQuestion, Step};
use twixt_model::{Delay, Scope, Span, Timestamp};

use super::Alerting;
use crate::history::series_of;

/// Rows that are read at a start. Where there are more, windows may lack their first epochs.
const ROWS_MAX: usize = 500_000;
/// Rows that are read at a time.
const PAGE_ROWS: usize = 20_000;

impl Alerting {
    /// Reads from the history the epochs of windows that may not be over, and of the one
    /// before. Windows that ended without a check are checked now.
    pub(crate) fn refill(&mut self, history: &History) {
        let Some(longest_ns) = self.alerts.iter().map(super::AlertConfig::window_ns).max() else {
            return;
        };
        if let Err(problem) = self.try_refill(history, longest_ns) {
            warn!(%problem, "cannot read stored estimates: alert windows start empty");
        }
    }

    fn try_refill(&mut self, history: &History, longest_ns: i64) -> Result<(), HistoryError> {
        let mut question = RowQuestion {
            scope: Some(Scope::All.to_string()),
            histograms: true,
            limit: 1,
            ..RowQuestion::all(Step::Epoch)
        };
        let Some(stored) = history.answer(&question)?.stored else { return Ok(()) };
        let start = stored.end - Delay::from_nanos(longest_ns.saturating_mul(2));
        // A window that began before is not whole, and must not be checked.
        question.span = Span { start, end: Timestamp::MAX };
        question.limit = PAGE_ROWS;
        let mut rows = 0;
        loop {
            let answer = history.answer(&question)?;
            rows += answer.rows.len();
            answer.rows.iter().for_each(|row| self.take_stored(row, start));
            question.after = answer.next;
            if question.after.is_none() || rows >= ROWS_MAX {
                return Ok(());
            }
        }
    }

    fn take_stored(&mut self, row: &Row, start: Timestamp) {
        let Some(series) = series_of(&row.series) else { return };
        self.on_each(&series, |alert, window| {
            let mut ended = window.add_stored(row, alert.minimum_packets);
            ended.retain(|reading| reading.span.start >= start);
            ended
        });
    }
}

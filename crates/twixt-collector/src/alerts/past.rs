//! Windows that were over when an epoch in them was estimated late: they are checked once more, from
//! the history. An alert that was due then is reported as a late one; how alerts stand now does not
//! change.

use std::collections::BTreeMap;
use std::sync::Arc;

use tracing::warn;
use twixt_engine::Series;
use twixt_history::{History, HistoryError, Row, RowQuestion, Step};
use twixt_model::{Scope, Span, Timestamp};

use super::config::AlertConfig;
use super::machine::{AlertState, Transition};
use super::measure::Measure;
use super::window::{Reading, Window};
use crate::history::series_key;

/// Windows that wait for their check; epochs of further ones are counted.
const WINDOWS_MAX: usize = 20_000;

/// Windows to check once more.
#[derive(Debug, Default)]
pub(super) struct PastWindows {
    history: Option<Arc<History>>,
    /// And whether an epoch of theirs came since they were looked at last: more may come.
    waiting: BTreeMap<PastWindow, bool>, // at most WINDOWS_MAX
}

/// A window of an alert on a series.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PastWindow {
    /// Which of the alerts.
    pub(super) alert: usize,
    pub(super) series: Series,
    number: i64,
}

impl PastWindows {
    /// Where estimates are stored.
    pub(super) fn read_from(&mut self, history: Arc<History>) {
        self.history = Some(history);
    }

    /// An epoch of a window that is over was estimated. Whether there is room for it.
    pub(super) fn note(
        &mut self,
        alert: usize,
        of: &AlertConfig,
        series: &Series,
        span: Span,
    ) -> bool {
        if of.measure == Measure::Gaps {
            // There are fewer gaps than were reported.
            return true;
        }
        let number = span.start.as_nanos().div_euclid(of.window_ns().max(1));
        let window = PastWindow { alert, series: series.clone(), number };
        let has_room = self.waiting.len() < WINDOWS_MAX || self.waiting.contains_key(&window);
        if has_room {
            self.waiting.insert(window, true);
        }
        has_room
    }

    /// Windows of which no more epochs came since this was asked last.
    pub(super) fn settled(&mut self) -> Vec<PastWindow> {
        let settled = self.waiting.extract_if(.., |_, came| !std::mem::take(came));
        settled.map(|(window, _)| window).collect()
    }

    /// What a window comes to with late epochs, if it is above the threshold and was not without
    /// them.
    pub(super) fn check(
        &self,
        alert: &AlertConfig,
        window: &PastWindow,
    ) -> Option<(Reading, Transition)> {
        let rows = self.rows(alert, window).inspect_err(|problem| {
            warn!(%problem, alert = alert.name, "cannot read stored estimates of a late window");
        });
        let rows = rows.ok()?;
        let in_time = reading(alert, window, rows.iter().filter(|row| row.late_epochs == 0));
        let with_late = reading(alert, window, rows.iter())?;
        let is_above = |reading: &Reading| {
            reading.value.as_ref().is_ok_and(|value| *value > alert.thresholds.above)
        };
        let was_above = in_time.as_ref().is_some_and(is_above);
        let is_known = in_time.is_some_and(|reading| reading.value.is_ok());
        let from = if is_known { AlertState::Clear } else { AlertState::Unknown };
        let transition = Transition { from, to: AlertState::Raised };
        (is_above(&with_late) && !was_above).then_some((with_late, transition))
    }

    fn rows(&self, alert: &AlertConfig, window: &PastWindow) -> Result<Vec<Row>, HistoryError> {
        let Some(history) = &self.history else { return Ok(Vec::new()) };
        let key = series_key(&window.series);
        let question = RowQuestion {
            segment: Some(window.series.segment.clone()),
            class: Some(key.class.clone()),
            algorithm: Some(key.algorithm.clone()),
            scope: Some(Scope::All.to_string()),
            span: window.span(alert),
            histograms: true,
            ..RowQuestion::all(Step::Epoch)
        };
        let mut rows = history.answer(&question)?.rows;
        rows.retain(|row| row.series == key);
        Ok(rows)
    }
}

impl PastWindow {
    fn span(&self, alert: &AlertConfig) -> Span {
        let length_ns = alert.window_ns().max(1);
        let start_ns = self.number.saturating_mul(length_ns);
        let moment = Timestamp::from_nanos;
        Span { start: moment(start_ns), end: moment(start_ns.saturating_add(length_ns - 1)) }
    }
}

/// What a window comes to with these rows.
fn reading<'a>(
    alert: &AlertConfig,
    of: &PastWindow,
    rows: impl Iterator<Item = &'a Row>,
) -> Option<Reading> {
    let mut window = Window::new(alert.window_ns(), alert.measure, alert.thresholds);
    let mut readings: Vec<Reading> =
        rows.flat_map(|row| window.add_stored(row, alert.minimum_packets)).collect();
    readings.extend(window.close(alert.minimum_packets));
    let span = of.span(alert);
    readings.into_iter().find(|reading| reading.span == span)
}

//! Windows that were over when an epoch in them was estimated late: they are checked once more, from
//! the history. An alert that was due then is reported as a late one; how alerts stand now does not
//! change.

use std::collections::BTreeMap;
use std::sync::Arc;

use tracing::warn;
use twixt_engine::Series;
use twixt_history::{History, HistoryError, Row, RowQuestion, Step};
use twixt_model::{Scope, Span};

use super::config::AlertConfig;
use super::machine::{AlertState, Transition};
use super::measure::Measure;
use super::window::{Reading, Window};
use crate::history::series_key;

/// Windows that wait for their check; epochs of further ones are counted.
const WINDOWS_MAX: usize = 20_000;
/// Windows that are checked at a time: estimates of the present must not wait for long.
const CHECKED_MAX: usize = 32;

/// Windows to check once more.
#[derive(Debug)]
pub(super) struct PastWindows {
    history: Arc<History>,
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
    pub(super) const fn new(history: Arc<History>) -> Self {
        Self { history, waiting: BTreeMap::new() }
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
        let number = empty_window(of).number_of(span.start);
        let window = PastWindow { alert, series: series.clone(), number };
        let has_room = self.waiting.len() < WINDOWS_MAX || self.waiting.contains_key(&window);
        if has_room {
            self.waiting.insert(window, true);
        }
        has_room
    }

    /// Some of the windows of which no more epochs came since this was asked last.
    pub(super) fn settled(&mut self) -> Vec<PastWindow> {
        let mut settled = 0;
        let mut is_next = |came: &mut bool| {
            let is_settled = !std::mem::take(came) && settled < CHECKED_MAX;
            settled += usize::from(is_settled);
            is_settled
        };
        let found = self.waiting.extract_if(.., |_, came| is_next(came));
        found.map(|(window, _)| window).collect()
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
        let key = series_key(&window.series);
        let question = RowQuestion {
            segment: Some(window.series.segment.clone()),
            class: Some(key.class.clone()),
            algorithm: Some(key.algorithm.clone()),
            scope: Some(Scope::All.to_string()),
            span: empty_window(alert).span_of(window.number),
            histograms: true,
            ..RowQuestion::all(Step::Epoch)
        };
        let mut rows = self.history.answer(&question)?.rows;
        rows.retain(|row| row.series == key);
        Ok(rows)
    }
}

fn empty_window(alert: &AlertConfig) -> Window {
    Window::new(alert.window_ns(), alert.measure, alert.thresholds)
}

/// What a window comes to with these rows.
fn reading<'a>(
    alert: &AlertConfig,
    of: &PastWindow,
    rows: impl Iterator<Item = &'a Row>,
) -> Option<Reading> {
    let mut window = empty_window(alert);
    let span = window.span_of(of.number);
    let mut readings: Vec<Reading> =
        rows.flat_map(|row| window.add_stored(row, alert.minimum_packets)).collect();
    readings.extend(window.close(alert.minimum_packets));
    readings.into_iter().find(|reading| reading.span == span)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use twixt_history::HistoryConfig;
    use twixt_model::{PointId, Segment, Timestamp};

    use super::*;
    use crate::alerts::{SegmentPattern, Thresholds};

    const SECOND: i64 = 1_000_000_000;

    fn alert(measure: Measure) -> AlertConfig {
        AlertConfig {
            name: "slow".to_owned(),
            segment: SegmentPattern::all(),
            round_trips: None,
            class: None,
            algorithm: None,
            measure,
            thresholds: Thresholds { above: 1.0, clear_below: None },
            window: Duration::from_secs(10),
            minimum_packets: 1,
            webhook: None,
        }
    }

    fn series() -> Series {
        let point = |name: &str| PointId(name.to_owned());
        Series {
            domain: String::new(),
            segment: Segment { upstream: point("up"), downstream: point("down") },
            class: String::new(),
            algorithm: "lda",
            tag: 1,
            epoch_ns: Some(SECOND),
        }
    }

    fn nothing_waits() -> PastWindows {
        let folder = tempfile::tempdir().unwrap();
        PastWindows::new(Arc::new(History::open(folder.path(), HistoryConfig::default()).unwrap()))
    }

    fn note(past: &mut PastWindows, measure: Measure, second: i64) -> bool {
        let at = Timestamp::from_nanos(second * SECOND);
        past.note(0, &alert(measure), &series(), Span { start: at, end: at })
    }

    #[test]
    fn a_window_is_settled_when_no_more_epochs_come_and_few_are_at_a_time() {
        let mut past = nothing_waits();
        assert!(note(&mut past, Measure::Mean, 5) && note(&mut past, Measure::Mean, 12));
        assert_eq!(past.settled().len(), 0);
        assert!(note(&mut past, Measure::Mean, 15));
        let numbers: Vec<i64> = past.settled().iter().map(|window| window.number).collect();
        assert_eq!(numbers, [0]);
        assert_eq!(past.settled().len(), 1);
        (0..100).for_each(|window| assert!(note(&mut past, Measure::Mean, window * 10)));
        assert_eq!(past.settled().len(), 0);
        let lengths = [0; 5].map(|_| past.settled().len());
        assert_eq!(lengths, [32, 32, 32, 4, 0]);
    }

    #[test]
    fn windows_too_many_are_refused_and_fewer_gaps_raise_nothing() {
        let mut past = nothing_waits();
        let has_room: Vec<bool> = (0..=WINDOWS_MAX as i64)
            .map(|window| note(&mut past, Measure::Mean, window * 10))
            .collect();
        assert_eq!(has_room.iter().filter(|has_room| !**has_room).count(), 1);
        let mut past = nothing_waits();
        assert!(note(&mut past, Measure::Gaps, 5));
        assert!(past.settled().is_empty() && past.settled().is_empty());
    }
}

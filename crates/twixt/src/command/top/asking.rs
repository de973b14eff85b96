//! Asks a collector again and again, and for more of what the user looks at.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};

use twixt_collector::api::{
    EstimatesDocument, FlowsDocument, HeatmapDocument, SegmentsDocument, TotalsDocument,
};
use twixt_history::{ROWS_MAX, moment_text};
use twixt_model::Timestamp;
use twixt_model::quantity::Nanoseconds;
use twixt_top::{CellName, Courses, News, TopEstimate, Wanted};

use super::super::query::estimates::{Collector, CollectorArgs};
use super::{answers, now_ns, reason};

/// How long an answer may take: the view is old meanwhile.
const PATIENCE: Duration = Duration::from_secs(10);
/// Flows are paired again for every question: they are asked for less often.
const FLOWS_EVERY: Duration = Duration::from_secs(10);
/// Flows of an answer.
const FLOWS_MAX: usize = 500;
/// Epochs of the time that is shown, unless the user chose it.
const EPOCHS_SHOWN: i64 = 60;
const MINUTE_NS: i64 = 60_000_000_000;
/// Rows of a time that is longer than this many epochs are minutes, or hours.
const ROWS_SHOWN_MAX: i64 = 240;
/// Epochs of a course that are asked for again: most that are late are late by less.
const EPOCHS_AGAIN: i64 = 5;
/// How often whole courses are asked for again: epochs can be estimated hours late.
const WHOLE_EVERY: Duration = Duration::from_secs(60);
/// Epochs of which flows are paired again; a collector refuses more than 600 of all classes and algorithms.
const FLOW_EPOCHS: i64 = 20;

/// Asks.
pub(super) struct Asking {
    collector: Collector,
    window_ns: Option<i64>,
    courses: Courses,
    /// Length of the rows of courses; the time that is shown.
    step: &'static str,
    shown_ns: i64,
    epoch_ns: i64,
    wanted: Wanted,
    /// When all was asked for, when flows were, and when whole courses were.
    asked: Option<Instant>,
    flows_asked: Option<Instant>,
    courses_asked: Option<Instant>,
}

impl Asking {
    pub(super) fn new(
        url: &str,
        args: &CollectorArgs,
        window: Option<Nanoseconds>,
    ) -> anyhow::Result<Self> {
        Ok(Self {
            collector: Collector::patient(url, args, PATIENCE)?,
            window_ns: window.map(|window| window.0),
            courses: Courses::default(),
            step: "epoch",
            shown_ns: MINUTE_NS,
            epoch_ns: 0,
            wanted: Wanted::default(),
            asked: None,
            flows_asked: None,
            courses_asked: None,
        })
    }

    /// Asks until nobody takes the answers.
    pub(super) fn run(
        &mut self,
        interval: Duration,
        news: &SyncSender<News>,
        wanted: &Receiver<Wanted>,
    ) {
        loop {
            let is_due = self.asked.is_none_or(|asked| asked.elapsed() >= interval);
            let answers = self.ask(is_due);
            for answer in answers.unwrap_or_else(|error| vec![News::Failed(reason(&error))]) {
                if news.send(answer).is_err() {
                    return;
                }
            }
            let left = self.asked.map(|asked| interval.saturating_sub(asked.elapsed()));
            match wanted.recv_timeout(left.unwrap_or_default()) {
                Ok(new) => self.want(wanted.try_iter().last().unwrap_or(new)),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Takes a wish: it is asked for next, and all is if the user wants that.
    fn want(&mut self, new: Wanted) {
        if new.asked != self.wanted.asked {
            (self.asked, self.flows_asked, self.courses_asked) = (None, None, None);
        }
        if new.flows != self.wanted.flows || new.by_loss != self.wanted.by_loss {
            self.flows_asked = None;
        }
        self.wanted = new;
    }

    fn ask(&mut self, is_all: bool) -> anyhow::Result<Vec<News>> {
        let mut news = Vec::new();
        if is_all {
            self.asked = Some(Instant::now());
            news.push(self.segments()?);
        }
        if let Some(cell) = self.wanted.heat.clone() {
            news.push(self.heat(cell));
        }
        let is_due = self.flows_asked.is_none_or(|asked| asked.elapsed() >= FLOWS_EVERY);
        if let Some(cell) = self.wanted.flows.clone()
            && is_due
        {
            self.flows_asked = Some(Instant::now());
            news.push(self.flows(cell));
        }
        Ok(news)
    }

    fn segments(&mut self) -> anyhow::Result<News> {
        let known: SegmentsDocument = self.collector.document("segments", &[])?;
        self.choose_time(&known);
        let now = now_ns();
        let span_ns = (now.saturating_sub(self.shown_ns), now);
        let totals: TotalsDocument =
            self.collector.document("totals", &within(span_ns, Some(self.step)))?;
        let mut estimates: Vec<TopEstimate> = totals.totals.iter().map(answers::total).collect();
        // What is known of nothing in this time has a line as well.
        for segment in &known.segments {
            let cell = CellName {
                upstream: segment.upstream.clone(),
                downstream: segment.downstream.clone(),
                class: segment.class.clone(),
            };
            if !estimates.iter().any(|of| of.cell == cell) {
                estimates.push(silent(cell, segment.stored.end.as_str()));
            }
        }
        let is_whole = self.add_courses(span_ns)?;
        let remark = match (is_whole, totals.reason) {
            (_, Some(reason)) => Some(reason),
            (false, None) => {
                Some("not all of the course over time: use a shorter --window".to_owned())
            }
            (true, None) => None,
        };
        Ok(News::Segments { totals: estimates, courses: self.courses.clone(), span_ns, remark })
    }

    /// As many epochs as a course has letters, in rows that are not too many.
    fn choose_time(&mut self, known: &SegmentsDocument) {
        let longest = known.segments.iter().map(|of| of.epoch_ns);
        self.epoch_ns = longest.max().unwrap_or(0);
        let chosen = self.epoch_ns.saturating_mul(EPOCHS_SHOWN).max(MINUTE_NS);
        self.shown_ns = self.window_ns.unwrap_or(chosen);
        let step = match self.shown_ns {
            length if length / self.epoch_ns.max(1) <= ROWS_SHOWN_MAX => "epoch",
            length if length / MINUTE_NS <= ROWS_SHOWN_MAX => "minute",
            _ => "hour",
        };
        if step != self.step {
            // Rows of two lengths make no course.
            (self.step, self.courses_asked) = (step, None);
        }
    }

    /// Adds what is new to the courses, or asks for all of them; whether all of it came.
    fn add_courses(&mut self, span_ns: (i64, i64)) -> anyhow::Result<bool> {
        if self.courses_asked.is_none_or(|asked| asked.elapsed() >= WHOLE_EVERY) {
            self.courses = Courses::default();
        }
        self.courses.forget_before(span_ns.0);
        let known = self.courses.newest_ns();
        let again_ns = self.row_ns().saturating_mul(EPOCHS_AGAIN);
        let from = known.map_or(span_ns.0, |start| start.saturating_sub(again_ns).max(span_ns.0));
        let mut parameters = within((from, span_ns.1), Some(self.step));
        parameters.push(("limit", ROWS_MAX.to_string()));
        let answer: EstimatesDocument = self.collector.document("estimates", &parameters)?;
        if known.is_none() {
            self.courses_asked = Some(Instant::now());
        }
        for row in &answer.estimates {
            self.courses.add(row.start_ns, &answers::estimate(row));
        }
        Ok(answer.next.is_none() && !self.courses.is_cut())
    }

    fn row_ns(&self) -> i64 {
        match self.step {
            "epoch" => self.epoch_ns,
            "minute" => MINUTE_NS,
            _ => 60 * MINUTE_NS,
        }
    }

    fn heat(&self, cell: CellName) -> News {
        let now = now_ns();
        let span_ns = (now.saturating_sub(self.shown_ns), now);
        let mut parameters = within(span_ns, Some(self.step));
        parameters.extend(of_cell(&cell));
        let answer = self.collector.document::<HeatmapDocument>("heatmap", &parameters);
        let answer = answer.map_err(|error| reason(&error));
        News::Heat { cell, answer: answer.and_then(|answer| answers::heat(&answer, span_ns)) }
    }

    /// A question that the collector refuses is an answer: the others go on.
    fn flows(&self, cell: CellName) -> News {
        let now = now_ns();
        let length = self.epoch_ns.saturating_mul(FLOW_EPOCHS).min(self.shown_ns);
        let mut parameters = within((now.saturating_sub(length), now), None);
        parameters.extend(of_cell(&cell));
        parameters.push(("limit", FLOWS_MAX.to_string()));
        let order = if self.wanted.by_loss { "loss" } else { "delay" };
        parameters.push(("order", order.to_owned()));
        match self.collector.document::<FlowsDocument>("flows", &parameters) {
            Ok(answer) => {
                let flows = answer.flows.iter().map(answers::estimate).collect();
                News::Flows { cell, flows, remark: answer.reason }
            }
            Err(error) => News::Flows { cell, flows: Vec::new(), remark: Some(reason(&error)) },
        }
    }
}

/// A cell without any epoch in the time that is shown.
fn silent(cell: CellName, stored_until: &str) -> TopEstimate {
    let reason = format!("nothing is stored of this time; stored until {stored_until}");
    TopEstimate { cell, scope: "all".to_owned(), reason: Some(reason), ..TopEstimate::default() }
}

fn within(span_ns: (i64, i64), step: Option<&str>) -> Vec<(&'static str, String)> {
    let moment = |ns| moment_text(Timestamp::from_nanos(ns));
    let mut parameters = vec![("start", moment(span_ns.0)), ("end", moment(span_ns.1))];
    parameters.extend(step.map(|step| ("step", step.to_owned())));
    parameters
}

fn of_cell(cell: &CellName) -> Vec<(&'static str, String)> {
    let mut parameters = vec![("segment", format!("{}:{}", cell.upstream, cell.downstream))];
    if !cell.class.is_empty() {
        parameters.push(("class", cell.class.clone()));
    }
    parameters
}

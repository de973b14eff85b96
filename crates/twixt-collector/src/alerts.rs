//! Compares estimates with thresholds, and reports changes to the log and to webhooks.
//!
//! It sits before all other consumers of the engine's events. Whether an alert is raised is decided
//! by `machine` alone, from the values of `window`; nothing here asks a clock, so that the same
//! epochs always raise the same alerts, also when they come late or again.

mod board;
mod config;
mod machine;
mod marks;
mod measure;
mod message;
mod metrics;
mod past;
mod refill;
mod remembered;
mod webhook;
mod window;

pub(crate) use board::AlertBoard;
pub use config::{ALERTS_MAX, AlertConfig, SegmentPattern, SlowRoundTrips};
pub use machine::{AlertState, Thresholds, Transition};
pub use marks::{Acknowledgement, AlertTarget, Silence};
pub(crate) use marks::{MarkError, Marks};
pub use measure::{Measure, ParseMeasureError};
pub use message::AlertMessage;
pub(crate) use metrics::AlertMetrics;
pub(crate) use remembered::AlertsFile;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use tracing::{info, warn};
use twixt_engine::{Conclusions, EngineEvent, Gap, PairEstimate, PointEstimate, Series};
use twixt_history::{History, Row};
use twixt_model::{Estimate, Scope, Segment};
use twixt_supervise::Supervisor;
use twixt_synopsis::{Purpose, find};

use crate::estimating::EventSink;
use crate::stop::StopRequest;
use machine::Alarm;
use past::PastWindows;
use remembered::{Stood, WatchName};
use webhook::Webhooks;
use window::{Reading, Window};

/// Alerts on series that are followed; epochs of further ones are counted, and not looked at.
const WATCHES_MAX: usize = 20_000;

/// Takes events, compares them, and hands them on.
pub(crate) struct Alerting {
    alerts: Vec<AlertConfig>,
    watches: Vec<BTreeMap<Series, Watch>>, // one for each alert; at most WATCHES_MAX together
    /// How alerts stood that changed, now or before a restart.
    stood: BTreeMap<WatchName, Stood>, // at most WATCHES_MAX
    file: AlertsFile,
    /// Whether the file is behind.
    is_unwritten: bool,
    past: PastWindows,
    webhooks: Webhooks,
    board: AlertBoard,
    metrics: AlertMetrics,
    next: Box<dyn EventSink>,
}

/// An alert on one series.
struct Watch {
    window: Window,
    alarm: Alarm,
    /// Windows up to here were checked before a restart.
    through_ns: Option<i64>,
}

impl Alerting {
    /// Starts the threads of webhooks. Alerts stand as the file says.
    pub(crate) fn new(
        alerts: Vec<AlertConfig>,
        (file, marks): (AlertsFile, Marks),
        metrics: AlertMetrics,
        stop: &StopRequest,
        supervisor: &Supervisor,
        history: Arc<History>,
        next: Box<dyn EventSink>,
    ) -> io::Result<Self> {
        let addresses = alerts.iter().filter_map(|alert| alert.webhook.as_ref());
        let webhooks = Webhooks::start(addresses, &metrics, stop, supervisor)?;
        let watches = alerts.iter().map(|_| BTreeMap::new()).collect();
        let mut stood = file.read();
        stood.retain(|name, _| alerts.iter().any(|alert| alert.name == name.alert()));
        let (past, is_unwritten) = (PastWindows::new(history), false);
        let board = AlertBoard::new(&alerts, marks);
        Ok(Self {
            alerts,
            watches,
            stood,
            file,
            is_unwritten,
            past,
            webhooks,
            board,
            metrics,
            next,
        })
    }

    /// Where others see how alerts stand.
    pub(crate) fn board(&self) -> AlertBoard {
        self.board.clone()
    }

    fn note_pair(&mut self, pair: &PairEstimate) {
        let of_all = pair.estimates.iter().find(|estimate| estimate.scope == Scope::All);
        let Some(estimate) = of_all else { return };
        if pair.is_late {
            return self.note_late(pair, estimate);
        }
        self.on_each(&pair.series, |alert, window| {
            window.add(pair.span, estimate, alert.minimum_packets).into_iter().collect()
        });
    }

    /// Round trips at a point: of a kind that an epoch lacks, there were none.
    fn note_point(&mut self, point: &PointEstimate) {
        let Conclusions::RoundTrips(estimates) = &point.conclusions else { return };
        let Some(algorithm) = find(Purpose::RoundTrip, point.algorithm) else { return };
        let ends = || point.point.clone();
        let series = Series {
            domain: point.domain.clone(),
            segment: Segment { upstream: ends(), downstream: ends() },
            class: point.class.clone(),
            algorithm: algorithm.name,
            tag: algorithm.tag,
            epoch_ns: point.epoch_ns,
        };
        self.on_each(&series, |alert, window| {
            let Some(slow) = alert.round_trips else { return Vec::new() };
            let found = estimates.iter().find(|of| of.is_whole() && of.kind == slow.kind);
            window.add_round_trips(point.span, found, alert.minimum_packets).into_iter().collect()
        });
    }

    /// An epoch that was a gap before counts in its window, which may be over.
    fn note_late(&mut self, pair: &PairEstimate, estimate: &Estimate) {
        let PairEstimate { series, span, .. } = pair;
        let watched = self.alerts.iter().zip(&mut self.watches).enumerate();
        for (number, (alert, watches)) in watched.filter(|(_, (alert, _))| alert.is_on(series)) {
            let window = watches.get_mut(series).map(|watch| &mut watch.window);
            let is_open = window.is_some_and(|window| window.add_late(*span, estimate));
            if !is_open && !self.past.note(number, alert, series, *span) {
                self.metrics.refused.inc();
            }
        }
    }

    /// Reports alerts that were due in windows that are over, by epochs that were estimated late.
    fn check_past(&mut self) {
        for window in self.past.settled() {
            let Some(alert) = self.alerts.get(window.alert) else { continue };
            self.metrics.checked_late();
            if let Some((reading, transition)) = self.past.check(alert, &window) {
                let news = News { reading: &reading, transition, is_late: true };
                report(alert, &window.series, &news, &self.webhooks, &self.board);
            }
        }
    }

    fn note_gap(&mut self, gap: &Gap) {
        self.on_each(&gap.series, |alert, window| {
            window.add_gap(gap.span, gap.epochs(), alert.minimum_packets)
        });
    }

    /// Lets every alert on a series check, and reports what changed.
    fn on_each(
        &mut self,
        series: &Series,
        look: impl Fn(&AlertConfig, &mut Window) -> Vec<Reading>,
    ) {
        let mut followed: usize = self.watches.iter().map(BTreeMap::len).sum();
        let watched = self.alerts.iter().zip(&mut self.watches).enumerate();
        for (number, (alert, watches)) in watched {
            if !alert.is_on(series) {
                continue;
            }
            if !watches.contains_key(series) {
                if followed >= WATCHES_MAX {
                    self.metrics.refused.inc();
                    continue;
                }
                followed += 1;
                let stood = self.stood.get(&WatchName::new(&alert.name, series));
                let watch = Watch::new(alert, stood);
                self.metrics.stands(None, watch.alarm.state());
                watches.insert(series.clone(), watch);
            }
            let Some(watch) = watches.get_mut(series) else { continue };
            for reading in look(alert, &mut watch.window) {
                let before = watch.alarm;
                let transition = watch.judge(alert, &reading);
                if watch.alarm != before {
                    let stood = Stood { alarm: watch.alarm, through_ns: reading.end_ns() };
                    self.stood.insert(WatchName::new(&alert.name, series), stood);
                    self.is_unwritten = true;
                }
                self.metrics.stands(Some(before.state()), watch.alarm.state());
                let stands = Transition { from: before.state(), to: watch.alarm.state() };
                let news = News { reading: &reading, transition: stands, is_late: false };
                self.board.stands(number, series, AlertMessage::new(alert, series, &news));
                if let Some(transition) = transition {
                    self.metrics.changed(transition);
                    let news = News { reading: &reading, transition, is_late: false };
                    report(alert, series, &news, &self.webhooks, &self.board);
                }
            }
        }
    }

    /// Saves the state of alerts. If that fails, some are reported again after a restart.
    fn remember(&mut self) {
        // Names of series that are gone make room for others.
        while self.stood.len() > WATCHES_MAX && self.stood.pop_first().is_some() {}
        match self.file.write(self.stood.iter()) {
            Ok(()) => self.is_unwritten = false,
            Err(problem) => warn!(%problem, "cannot save the state of alerts"),
        }
    }
}

impl Watch {
    fn new(alert: &AlertConfig, stood: Option<&Stood>) -> Self {
        Self {
            window: Window::new(alert.window_ns(), alert.measure, alert.thresholds)
                .longer_than(alert.longer_than_ns().unwrap_or(0)),
            alarm: stood.map(|stood| stood.alarm).unwrap_or_default(),
            through_ns: stood.map(|stood| stood.through_ns),
        }
    }

    /// Checks a window that is over, unless that was done before a restart.
    fn judge(&mut self, alert: &AlertConfig, reading: &Reading) -> Option<Transition> {
        let is_new = Some(reading.end_ns()) > self.through_ns;
        let value = reading.value.as_ref().ok().copied();
        is_new.then(|| self.alarm.take(&alert.thresholds, value)).flatten()
    }
}

impl EventSink for Alerting {
    fn take(&mut self, event: &EngineEvent) -> io::Result<()> {
        match event {
            EngineEvent::Estimated(pair) => self.note_pair(pair),
            EngineEvent::Gap(gap) => self.note_gap(gap),
            EngineEvent::Observed(point) => self.note_point(point),
            _ => {}
        }
        self.next.take(event)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.check_past();
        if self.is_unwritten {
            self.remember();
        }
        self.next.flush()
    }

    fn take_minute(&mut self, rows: &[Row]) -> io::Result<()> {
        self.next.take_minute(rows)
    }
}

/// A change of an alert.
struct News<'a> {
    reading: &'a Reading,
    transition: Transition,
    /// Its window was over long ago.
    is_late: bool,
}

/// Logs a change, shows it, and sends it to the webhook if there is one and the alert is not silent.
fn report(
    alert: &AlertConfig,
    series: &Series,
    news: &News<'_>,
    webhooks: &Webhooks,
    board: &AlertBoard,
) {
    let message = AlertMessage::new(alert, series, news);
    let message = board.changed(message);
    let is_silent = message.silenced.is_some();
    let message = message.to_json();
    let (name, state) = (alert.name.as_str(), news.transition.to.name());
    let segment = format!("{}:{}", series.segment.upstream, series.segment.downstream);
    let late = news.is_late;
    match news.transition.to {
        AlertState::Clear => info!(alert = name, %segment, state, late, %message, "alert"),
        _ => warn!(alert = name, %segment, state, late, %message, "alert"),
    }
    if let Some(address) = alert.webhook.as_ref().filter(|_| !is_silent) {
        webhooks.send(address, &Arc::from(message));
    }
}

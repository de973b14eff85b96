//! The same at the pace of the clock: a collector as it is, with its API on a loopback address.
//!
//! The network has been running for a minute when the demo starts: that minute is simulated as fast as it can
//! be, so that there is something to see and to compare with at once. From then on simulated time is
//! the clock's. All files lie in a temporary directory, which is removed at the end.

use std::io;
use std::net::SocketAddr;
use std::sync::mpsc::{RecvError, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime};

use tempfile::TempDir;
use twixt_collector::alerts::{AlertConfig, Measure, SegmentPattern, Thresholds};
use twixt_collector::{
    Addresses, Collector, CollectorConfig, CollectorError, ESTIMATES_FOLDER, StopRequest,
};
use twixt_delivery::{
    COLLECTOR_HEADER, ResponseParts, UPLOAD_ENCODING, UPLOAD_MEDIA_TYPE, UPLOAD_PATH,
};
use twixt_detect::Incident;
use twixt_engine::EngineConfig;
use twixt_history::HistoryReader;
use twixt_model::{Delay, Timestamp};
use twixt_sim::Network;

use crate::error::DemoError;
use crate::points::{MEANS_FROM, PERCENTILES_FROM, Points};
use crate::scenario::{CYCLE_S, InjectedIncidents, Scenario, segment_configs};
use crate::summary::{DemoSummary, FoundIncident, TrafficCount, question, summarise};
use crate::upload::{Upload, UploadOutcome, uploads};
use crate::watching::Watching;
use crate::{EPOCH_NS, LEAD_SECONDS, SUMMARY_SECONDS};

/// Incidents are planned for so many seconds; after that the network is calm.
const PLANNED_S: i64 = 24 * 3_600;
/// How long the collector waits for the other half of an epoch: all halves come, but those of the past
/// minute come as long after their time.
const PATIENCE: Delay = Delay::from_nanos(2 * (LEAD_SECONDS + SUMMARY_SECONDS) * EPOCH_NS);
/// How often time is advanced.
const STEP: Duration = Duration::from_millis(200);
/// What is behind the clock is simulated and sent by so much at a time.
const CATCH_UP_NS: i64 = 3 * EPOCH_NS;
/// How long to wait when the collector is busy, and how often at most.
const RETRY: Duration = Duration::from_millis(200);
const RETRIES_MAX: usize = 50;
/// The time that an alert sums up.
const ALERT_WINDOW: Duration = Duration::from_secs(5);
/// How long the collector may take for a response.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(20);
/// Bytes of a response that are read at most.
const RESPONSE_BYTES_MAX: u64 = 1 << 20;
/// An incident is reported when so many further epochs are judged: then it is known whether it
/// concerns one class or all.
const REPORT_AFTER_EPOCHS: i64 = 2;

/// A demo that runs until it is stopped.
pub struct LiveDemo {
    scenario: Scenario,
    network: Network,
    /// What the network begins with, and what the summary begins with.
    network_start: Timestamp,
    start: Timestamp,
    points: Points,
    watching: Watching,
    traffic: TrafficCount,
    now_ns: i64,
    collector: RunningCollector,
    client: ureq::Agent,
    /// Incidents that were reported: as many as the detector remembers.
    reported: Vec<Incident>,
    is_summarised: bool,
}

/// What there is to tell meanwhile.
#[derive(Clone, Debug, PartialEq)]
pub enum LiveNews {
    /// The first minute.
    Summary(Box<DemoSummary>),
    /// An incident after that.
    Incident(FoundIncident),
}

/// A collector in a thread of its own.
struct RunningCollector {
    address: SocketAddr,
    stop: StopRequest,
    thread: Option<JoinHandle<Result<(), CollectorError>>>,
    /// Removed when this is dropped, after the thread has ended.
    directory: TempDir,
}

impl LiveDemo {
    /// Starts the collector; `listen` is a loopback address, and port 0 any that is free.
    ///
    /// # Errors
    ///
    /// If it cannot start.
    pub fn start(
        seed: u64,
        incidents: InjectedIncidents,
        listen: SocketAddr,
        stop: &StopRequest,
    ) -> Result<Self, DemoError> {
        let cycles = (PLANNED_S / CYCLE_S) as u32;
        let scenario = Scenario::new(seed, incidents, cycles);
        let past_ns = (LEAD_SECONDS + SUMMARY_SECONDS) * EPOCH_NS;
        let network_start_ns = (now_ns() - past_ns).div_euclid(EPOCH_NS) * EPOCH_NS;
        let network_start = Timestamp::from_nanos(network_start_ns);
        let watching = Watching::new(PLANNED_S as u64);
        let collector = RunningCollector::start(listen, &watching, stop)?;
        let settings = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .proxy(None)
            .timeout_global(Some(RESPONSE_TIMEOUT))
            .build();
        Ok(Self {
            network: Network::new(&scenario.network)?,
            points: Points::new(seed, network_start)?,
            scenario,
            network_start,
            start: network_start + Delay::from_nanos(LEAD_SECONDS * EPOCH_NS),
            watching,
            traffic: TrafficCount::default(),
            now_ns: 0,
            collector,
            client: ureq::Agent::new_with_config(settings),
            reported: Vec::new(),
            is_summarised: false,
        })
    }

    /// Where the API is.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.collector.address
    }

    /// What the summary begins with, and incidents count from.
    #[must_use]
    pub const fn started(&self) -> Timestamp {
        self.start
    }

    /// Keeps pace with the clock until it is stopped, and reports what there is to tell.
    ///
    /// # Errors
    ///
    /// If the collector cannot go on, or `tell` fails.
    pub fn run(mut self, tell: impl FnMut(LiveNews) -> io::Result<()>) -> Result<(), DemoError> {
        let ended = self.keep_pace(tell);
        // In any case, so that nothing is left behind.
        let stopped = self.collector.stop();
        ended.and(stopped)
    }

    fn keep_pace(
        &mut self,
        mut tell: impl FnMut(LiveNews) -> io::Result<()>,
    ) -> Result<(), DemoError> {
        while !self.collector.stop.is_requested() {
            let due_ns = now_ns() - self.network_start.as_nanos();
            let is_behind = due_ns - self.now_ns > CATCH_UP_NS;
            self.advance(if is_behind { self.now_ns + CATCH_UP_NS } else { due_ns })?;
            for news in self.news()? {
                tell(news).map_err(DemoError::Shown)?;
            }
            if !is_behind {
                thread::sleep(STEP);
            }
        }
        Ok(())
    }

    /// Simulates and observes until a time, and sends what is sealed.
    fn advance(&mut self, until_ns: i64) -> Result<(), DemoError> {
        let steps = self.network.advance(until_ns)?;
        self.traffic.add(&steps);
        let sealed = self.points.observe(&steps, until_ns);
        self.now_ns = self.now_ns.max(until_ns);
        uploads(&sealed)?.iter().try_for_each(|upload| self.send(upload))
    }

    fn send(&self, upload: &Upload) -> Result<(), DemoError> {
        for _ in 0..RETRIES_MAX {
            if self.collector.stop.is_requested() || self.post(upload)? == UploadOutcome::Stored {
                return Ok(());
            }
            thread::sleep(RETRY);
        }
        Err(DemoError::Upload("it is busy".to_owned()))
    }

    fn post(&self, upload: &Upload) -> Result<UploadOutcome, DemoError> {
        let url = format!("http://{}{UPLOAD_PATH}", self.collector.address);
        let failed = |error: ureq::Error| DemoError::Upload(error.to_string());
        let response = self
            .client
            .post(&url)
            .header("User-Agent", concat!("twixt-agent/", env!("CARGO_PKG_VERSION")))
            .header("Content-Type", UPLOAD_MEDIA_TYPE)
            .header("Content-Encoding", UPLOAD_ENCODING)
            .send(&upload.body[..]);
        let (head, mut body) = response.map_err(failed)?.into_parts();
        let body = body.with_config().limit(RESPONSE_BYTES_MAX).read_to_string().map_err(failed)?;
        let header = |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok());
        upload.read(ResponseParts {
            status: head.status.as_u16(),
            is_marked: header(COLLECTOR_HEADER).is_some(),
            retry_after: header("retry-after"),
            body: &body,
        })
    }

    /// The summary of the first minute, once that is estimated; after that, incidents.
    fn news(&mut self) -> Result<Vec<LiveNews>, DemoError> {
        let watched = self.watching.lock();
        let Some(through) = watched.stored_through() else { return Ok(Vec::new()) };
        let last = self.start.as_nanos().div_euclid(EPOCH_NS) + SUMMARY_SECONDS - 1;
        if through.0 < last {
            return Ok(Vec::new());
        }
        let settled = |incident: &Incident| incident.since.0 + REPORT_AFTER_EPOCHS <= through.0;
        let mut news = Vec::new();
        if !self.is_summarised {
            let folder = self.collector.directory.path().join(ESTIMATES_FOLDER);
            let answer = HistoryReader::open(&folder).answer(&question(self.start))?;
            let summary =
                summarise(&answer.rows, &watched, &self.scenario, self.traffic, self.start);
            news.push(LiveNews::Summary(Box::new(summary)));
            self.is_summarised = true;
        }
        let known: Vec<Incident> = watched.incidents().into_iter().filter(settled).collect();
        let is_news = |incident: &&Incident| {
            // Those of the first minute are part of the summary.
            incident.since.0 > last && !self.reported.iter().any(|of| is_same(of, incident))
        };
        let found = known.iter().filter(is_news);
        news.extend(found.map(|of| LiveNews::Incident(FoundIncident::of(of, self.start))));
        self.reported = known;
        Ok(news)
    }
}

impl RunningCollector {
    fn start(
        listen: SocketAddr,
        watching: &Watching,
        stop: &StopRequest,
    ) -> Result<Self, DemoError> {
        let directory =
            tempfile::Builder::new().prefix("twixt-demo-").tempdir().map_err(DemoError::Start)?;
        let config = CollectorConfig::new(listen, directory.path().to_owned());
        let engine = EngineConfig {
            segments: segment_configs(),
            patience: PATIENCE,
            ..config.engine.clone()
        };
        let collector = Collector::new(CollectorConfig { engine, alerts: alerts(), ..config });
        let collector = collector.map_err(CollectorError::from)?;
        let (ready, is_ready) = channel();
        let (sink, stopping) = (Box::new(watching.clone()), stop.clone());
        let thread = thread::Builder::new().name("collector".to_owned()).spawn(move || {
            collector.run(sink, &stopping, |addresses: Addresses| {
                // Whoever asked may have given up.
                let _ = ready.send(addresses.listen);
            })
        });
        let thread = Some(thread.map_err(DemoError::Start)?);
        let unknown = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut running = Self { address: unknown, stop: stop.clone(), thread, directory };
        match is_ready.recv() {
            Ok(address) => running.address = address,
            Err(RecvError) => running.stop()?,
        }
        Ok(running)
    }

    /// Ends the thread, and returns why it ended if it did so by itself.
    fn stop(&mut self) -> Result<(), DemoError> {
        self.stop.request();
        let ended = self.thread.take().map(JoinHandle::join);
        match ended {
            Some(Ok(ended)) => Ok(ended?),
            Some(Err(_)) => Err(DemoError::Upload("it panicked".to_owned())),
            None => Ok(()),
        }
    }
}

/// Alerts as an operator sets them, without knowing what will go wrong: delays that calls do not tolerate, and
/// loss that is felt.
fn alerts() -> Vec<AlertConfig> {
    let alert = |name: &str, algorithm: &str, measure, above, clear_below| AlertConfig {
        name: name.to_owned(),
        segment: SegmentPattern::all(),
        round_trips: None,
        class: None,
        algorithm: Some(algorithm.to_owned()),
        measure,
        thresholds: Thresholds { above, clear_below: Some(clear_below) },
        window: ALERT_WINDOW,
        minimum_packets: 100,
        webhook: None,
    };
    vec![
        alert("slow", PERCENTILES_FROM, Measure::P95, 20e6, 15e6),
        alert("lossy", MEANS_FROM, Measure::Loss, 0.02, 0.01),
    ]
}

impl Drop for RunningCollector {
    fn drop(&mut self) {
        // The directory is removed after this: no one may write to it any more.
        let _ = self.stop();
    }
}

/// Whether two reports are of one incident, which may have ended between them.
fn is_same(one: &Incident, other: &Incident) -> bool {
    (&one.segment, &one.class, one.since) == (&other.segment, &other.class, other.since)
}

fn now_ns() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

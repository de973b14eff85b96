//! The agent as a whole: opens everything, gives up what rights it can, and runs the threads.
//!
//! | thread | does |
//! |---|---|
//! | one for each thread of each point | interface to sealed epochs; never blocks |
//! | sealing | puts threads' parts together, encodes, writes to the spool |
//! | sending, one for each point | spool to collector, one request at a time |
//! | clock, metrics | ask and answer now and then |

use std::net::TcpListener;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use twixt_capture::{
    LiveError, LiveOptions, LiveSource, PrivilegeError, Stop, become_user, find_user,
};
use twixt_measure::MeterError;
use twixt_model::{Delay, Needs, PointId, TimeSource, Timestamp};
use twixt_observe::{LATENESS, MetersConfig, PointShare};
use twixt_store::{SharedDisk, raise_open_files_max, real_disk};
use twixt_supervise::{Supervisor, ThreadFailure};
use twixt_synopsis::AnySynopsis;
use twixt_wire::{Observer, ObserverError, ObserverOptions};

use crate::clock::{ASK_EVERY, ClockQuality};
use crate::config::{AgentConfig, PointConfig};
use crate::frames::LiveFrames;
use crate::metrics::{Metrics, Page, PointMetrics, serve};
use crate::sealing::Sealing;
use crate::sender::{Sender, SenderError};
use crate::spool::{self, SpoolError, Spools};
use crate::steps::PointClock;
use crate::watch::{ReportedSoFar, Watch};

/// Parts of epochs on their way from the packet threads to the disk. Beyond, they are lost and
/// counted, rather than packets.
pub const PARTS_MAX: usize = 256;
/// How often threads look whether all is over.
const LOOK: Duration = Duration::from_millis(100);

/// Why an agent does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// The configuration makes no sense. The text says where.
    #[error("{problem}")]
    Config {
        /// What is wrong.
        problem: String,
    },
    /// A point cannot be set up so.
    #[error(transparent)]
    Meter(#[from] MeterError),
    /// Packets cannot be observed so.
    #[error(transparent)]
    Observer(#[from] ObserverError),
    /// An interface cannot be captured.
    #[error("point {point}")]
    Capture {
        /// The name of the point.
        point: String,
        /// Why not.
        source: LiveError,
    },
    /// There is no spool.
    #[error(transparent)]
    Spool(#[from] SpoolError),
    /// Nothing can be sent so.
    #[error(transparent)]
    Sender(#[from] SenderError),
    /// The address for metrics cannot be bound. Choose another.
    #[error("metrics: cannot listen on {address}")]
    Metrics {
        /// As configured.
        address: std::net::SocketAddr,
        /// The system error.
        source: std::io::Error,
    },
    /// The rights could not be given up.
    #[error(transparent)]
    Privileges(#[from] PrivilegeError),
    /// A thread ended that must not. What is in the spool stays there for the next start.
    #[error(transparent)]
    Thread(#[from] ThreadFailure),
}

/// An agent with its sockets open.
#[derive(Debug)]
pub struct Agent {
    config: AgentConfig,
    points: Vec<OpenPoint<LiveSource>>,
    listener: Option<TcpListener>,
    spools: Spools,
    sender: Sender,
    stop: Stop,
}

#[derive(Debug)]
struct OpenPoint<S> {
    clock: PointClock,
    shares: Vec<(S, PointShare)>,
}

impl Agent {
    /// Checks a configuration as far as that is possible without any rights.
    ///
    /// # Errors
    /// When it makes no sense.
    pub fn check(config: &AgentConfig) -> Result<(), AgentError> {
        config.check()?;
        for point in &config.points {
            let (clock, observer) = (PointClock::after(0), observer(config, point)?);
            let meters = meters(config, point, &observer, TimeSource::Kernel);
            let (synopses, era) = (copies(&config.synopses), clock.era());
            PointShare::new(0, meters, synopses, observer, era, Timestamp::MIN)?;
        }
        if let Some(user) = &config.user {
            find_user(user)?;
        }
        Sender::new(&config.delivery, 0)?;
        Ok(())
    }

    /// Opens sockets, gives up rights, and opens the spool. Frames count from now on. Call it before
    /// any thread is started.
    ///
    /// # Errors
    /// When something of it is not possible.
    pub fn open(config: AgentConfig, stop: &Stop) -> Result<Self, AgentError> {
        Self::check(&config)?;
        // Every point has sockets, a spool and a connection.
        raise_open_files_max();
        let points = config.points.iter().map(|point| open_point(&config, point, stop));
        let points = points.collect::<Result<Vec<_>, _>>()?;
        let listen = |address| {
            TcpListener::bind(address).map_err(|source| AgentError::Metrics { address, source })
        };
        let listener = config.metrics.map(listen).transpose()?;
        if let Some(user) = &config.user {
            give_spool_to(&config, user)?;
            become_user(user)?;
        }
        let names = config.points.iter().map(|point| point.name.as_str());
        let spools = Spools::open(&config.spool.folder, names, config.spool.bytes_max)?;
        let seed = points.first().map_or(0, |point| point.clock.era().run);
        let sender = Sender::new(&config.delivery, seed)?;
        Ok(Self { config, points, listener, spools, sender, stop: stop.clone() })
    }

    /// The names of the points that are captured now.
    pub fn points(&self) -> impl Iterator<Item = &str> {
        self.config.points.iter().map(|point| point.name.as_str())
    }

    /// Where metrics are, if anywhere.
    #[must_use]
    pub fn metrics_address(&self) -> Option<std::net::SocketAddr> {
        self.listener.as_ref()?.local_addr().ok()
    }

    /// Epochs in the spool.
    #[must_use]
    pub fn waiting_epochs(&self) -> u64 {
        self.spools.counts().epochs
    }

    /// Runs until asked to stop; then seals what is open, and sends what can be sent at once.
    /// Returns how many epochs are left in the spool.
    ///
    /// # Errors
    /// When a thread panicked or ended early. All others have then ended as after a stop.
    pub fn run(self) -> Result<u64, AgentError> {
        let Self { config, points, listener, spools, sender, stop } = self;
        run_threads(&config, points, listener.as_ref(), &spools, &sender, &stop)?;
        Ok(spools.counts().epochs)
    }
}

/// Runs all threads until the agent is asked to stop, or one of them fails.
fn run_threads<S: LiveFrames + Send>(
    config: &AgentConfig,
    points: Vec<OpenPoint<S>>,
    listener: Option<&TcpListener>,
    spools: &Spools,
    sender: &Sender,
    stop: &Stop,
) -> Result<(), ThreadFailure> {
    let supervisor = supervisor_of(stop);
    let metrics = Metrics::new();
    let quality = Mutex::new(ClockQuality::ask());
    let point_metrics: Vec<PointMetrics> =
        config.points.iter().map(|point| metrics.point(&point.name, point.threads)).collect();
    let (out, parts) = sync_channel(PARTS_MAX);
    let (clocks, shares): (Vec<_>, Vec<_>) =
        points.into_iter().map(|point| (Arc::new(point.clock), point.shares)).unzip();
    thread::scope(|scope| {
        let (metrics, quality, supervisor) = (&metrics, &quality, &supervisor);
        scope.spawn(move || supervisor.run("clock", || keep_asking(quality, stop)));
        if let Some(listener) = listener {
            let page = move |path: &str| page(path, metrics, spools, quality, supervisor);
            scope.spawn(move || supervisor.run("metrics", || serve(listener, stop, &page)));
        }
        let sealing = Sealing::new(config, point_metrics.clone());
        scope.spawn(move || {
            let sealed = supervisor.run("sealing", || sealing.run(&parts, spools, quality));
            // However it ended: senders wait for it.
            spools.close();
            sealed
        });
        for (name, spool) in spools.iter() {
            let send = move || sender.run(name, spool, &metrics.sender);
            scope.spawn(move || supervisor.run("sending", send));
        }
        for (point, shares) in shares.into_iter().enumerate() {
            for (source, share) in shares {
                let seen = ReportedSoFar::nothing(source.time_source());
                let (name, clock) = (config.points[point].name.clone(), clocks[point].clone());
                let (stop, out, metrics) =
                    (stop.clone(), out.clone(), point_metrics[point].clone());
                let watch = Watch { point, name, source, share, clock, stop, out, metrics, seen };
                let held = watch.out.clone();
                scope.spawn(move || {
                    let ended = supervisor.run("packets", || watch.run());
                    // Only now: sealing ends with the last sender, and would fail before a panic
                    // here is noted.
                    drop(held);
                    ended
                });
            }
        }
        // The sealing thread ends with the last of them.
        drop(out);
    });
    supervisor.failure().map_or(Ok(()), Err)
}

/// Threads end only when the agent is asked to stop.
fn supervisor_of(stop: &Stop) -> Supervisor {
    let (stop, stopping) = (stop.clone(), stop.clone());
    Supervisor::new(move || stop.set(), move || stopping.is_set())
}

fn open_point(
    config: &AgentConfig,
    point: &PointConfig,
    stop: &Stop,
) -> Result<OpenPoint<LiveSource>, AgentError> {
    let options = LiveOptions { stop: stop.clone(), ..point.options.clone() };
    let clock = PointClock::after(newest_run(&real_disk(), config, point)?);
    let sources = match point.threads {
        1 => LiveSource::open(&point.interface, &options).map(|source| vec![source]),
        threads => LiveSource::open_group(&point.interface, &options, threads),
    };
    let sources =
        sources.map_err(|source| AgentError::Capture { point: point.name.clone(), source })?;
    let observer = observer(config, point)?;
    let mut shares = Vec::new();
    for (thread, source) in sources.into_iter().enumerate() {
        // Another clock than the system's cannot be read: its first frame tells the time.
        let began = match source.time_source() {
            TimeSource::Kernel => clock.now(),
            _ => Timestamp::MAX,
        };
        let meters = meters(config, point, &observer, source.time_source());
        let (synopses, era) = (copies(&config.synopses), clock.era());
        shares.push((
            source,
            PointShare::new(thread, meters, synopses, observer.clone(), era, began)?,
        ));
    }
    Ok(OpenPoint { clock, shares })
}

/// The number of the last run of a point.
pub(crate) fn newest_run(
    disk: &SharedDisk,
    config: &AgentConfig,
    point: &PointConfig,
) -> Result<u64, SpoolError> {
    let folder = &config.spool.folder;
    spool::newest_run(disk, folder, &point.name).map_err(|source| SpoolError::Folder {
        folder: folder.clone(),
        action: "reading the number of the newest run",
        source,
    })
}

pub(crate) fn observer(
    config: &AgentConfig,
    point: &PointConfig,
) -> Result<Observer, ObserverError> {
    let needs = config.synopses.iter().map(|synopsis| synopsis.needs());
    Observer::new(ObserverOptions {
        needs: needs.fold(Needs::default(), Needs::or),
        outer: point.outer,
        filter: point.filter.clone(),
        classes: config.classes.clone(),
        digester: config.digester.clone(),
    })
}

pub(crate) fn meters(
    config: &AgentConfig,
    point: &PointConfig,
    observer: &Observer,
    time_source: TimeSource,
) -> MetersConfig {
    let length_ns = config.rule.length_ns().unwrap_or(0);
    let guard = config.guard.unwrap_or(Delay::from_nanos(length_ns / 10));
    MetersConfig {
        domain: config.domain.clone(),
        guard: config.guard,
        // An epoch is whole only if the point observed for the guard after it.
        lateness: LATENESS.max(guard.min(Delay::from_nanos(length_ns / 2))),
        time_source,
        classes: match config.classes.is_empty() {
            true => Vec::new(),
            false => observer.class_names().map(str::to_owned).collect(),
        },
        ..MetersConfig::new(
            PointId(point.name.clone()),
            config.rule,
            observer.digester().identity(),
        )
    }
}

pub(crate) fn copies(synopses: &[Box<dyn AnySynopsis>]) -> Vec<Box<dyn AnySynopsis>> {
    synopses.iter().map(|synopsis| synopsis.fresh()).collect()
}

/// Creates the spool directory for a user who may not.
fn give_spool_to(config: &AgentConfig, user: &str) -> Result<(), AgentError> {
    let folder = &config.spool.folder;
    if folder.exists() {
        return Ok(());
    }
    let user = find_user(user)?;
    let made = std::fs::create_dir_all(folder)
        .and_then(|()| std::os::unix::fs::chown(folder, Some(user.user), Some(user.group)));
    made.map_err(|source| {
        SpoolError::Folder { folder: folder.clone(), action: "creating it", source }.into()
    })
}

fn keep_asking(quality: &Mutex<ClockQuality>, stop: &Stop) {
    let mut asked = Instant::now();
    while !stop.is_set() {
        thread::sleep(LOOK);
        if asked.elapsed() >= ASK_EVERY {
            let answer = ClockQuality::ask();
            *quality.lock().unwrap_or_else(PoisonError::into_inner) = answer;
            asked = Instant::now();
        }
    }
}

fn page(
    path: &str,
    metrics: &Metrics,
    spools: &Spools,
    quality: &Mutex<ClockQuality>,
    supervisor: &Supervisor,
) -> Option<Page> {
    match path {
        "/metrics" => {
            let quality = *quality.lock().unwrap_or_else(PoisonError::into_inner);
            let text = metrics.render(&spools.counts(), &quality);
            let content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            Some(Page { status: "200 OK", content_type, text })
        }
        "/healthz" => {
            let (is_capturing, mut text) = metrics.health();
            let failure = supervisor.failure();
            text.extend(failure.iter().map(|failure| format!("{failure}\n")));
            let status = match is_capturing && failure.is_none() {
                true => "200 OK",
                false => "503 Service Unavailable",
            };
            Some(Page { status, content_type: "text/plain", text })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;

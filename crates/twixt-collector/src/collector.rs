//! The collector as a whole: opens what it needs, starts its threads, and ends them in an order in
//! which nothing is lost.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use axum::Router;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tracing::{info, warn};
use twixt_engine::EngineConfig;
use twixt_history::{History, HistoryError, Table};
use twixt_store::{
    FolderLock, LockError, Log, Options, SharedDisk, StoreError, raise_open_files_max, real_disk,
};
use twixt_supervise::{Supervisor, ThreadFailure};

use crate::access::{Caller, Tokens};
use crate::alerts::{AlertBoard, Alerting, AlertsFile, Marks};
use crate::api::{self, Api, ApiAbout};
use crate::budget::{ByteBudget, HeldBytes};
use crate::config::{CollectorConfig, CollectorConfigError};
use crate::dashboard;
use crate::estimating::{
    EPOCHS_WAITING_MAX, Estimating, EstimatingConfig, EventSink, ProgressFile,
};
use crate::history::{Estimates, HistorySink, LatestStates, PointHistories, Upkeep};
use crate::ingest::Ingest;
use crate::journal::{self, Journal, JournalConfig, StoredEpoch};
use crate::server::{Limits, Server, ServerMetrics, TlsError, WithoutCertificate, acceptor};
use crate::stop::StopRequest;
use crate::telemetry::Telemetry;

/// Raw epochs, in the collector's directory. `twixt query` reads them.
pub const EPOCHS_FOLDER: &str = "epochs";
/// Estimates, in the collector's directory. `twixt query` reads them too.
pub const ESTIMATES_FOLDER: &str = Table::Estimates.name();
/// How far estimates came, in the collector's directory.
const PROGRESS_FILE: &str = "concluded.json";
/// How alerts stood, in the collector's directory.
const ALERTS_FILE: &str = "alerts.json";
/// Which of them are acknowledged or silenced.
const MARKS_FILE: &str = "alert-marks.json";
/// Epochs that wait for their other half have one part in so many of the memory.
const WAITING_SHARE: u64 = 4;
/// Threads that serve connections.
const SERVER_THREADS: usize = 2;
/// Threads that decode epochs and answer questions: more than questions may take, so that epochs never
/// wait for these.
const WORKING_THREADS_MAX: usize = api::WORKING_MAX + 3;
/// How long such a thread waits for more work. The allocator keeps memory for each thread that runs, as
/// much as its largest job took: one that ends gives it back, and to start another costs little.
const WORKING_THREAD_IDLE: Duration = Duration::from_millis(100);
/// Connections for metrics and health at a time.
const TELLING_CONNECTIONS_MAX: usize = 64;

/// Takes epochs, stores them, pairs them.
#[derive(Debug)]
pub struct Collector {
    config: CollectorConfig,
}

/// Why a collector cannot start, or go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CollectorError {
    /// The configuration makes no sense.
    #[error(transparent)]
    Config(#[from] CollectorConfigError),
    /// Keys or certificates cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The directory cannot be made or written, or another collector uses it.
    #[error(transparent)]
    Directory(#[from] LockError),
    /// The log cannot be read.
    #[error(transparent)]
    Log(#[from] StoreError),
    /// Stored estimates cannot be read.
    #[error(transparent)]
    History(#[from] HistoryError),
    /// The address is in use, or not one of this machine.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
    /// The system has no threads to give.
    #[error("cannot start: {0}")]
    Start(io::Error),
    /// The sink of the estimates failed.
    #[error("cannot pass on estimates")]
    Sink(#[source] io::Error),
    /// A thread ended that must not. What is stored stays; the next start goes on from it.
    #[error(transparent)]
    Thread(#[from] ThreadFailure),
}

/// Where a collector can be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// By agents.
    pub listen: SocketAddr,
    /// For metrics and health.
    pub metrics: Option<SocketAddr>,
}

impl Collector {
    /// Checks the configuration, and touches nothing.
    ///
    /// # Errors
    /// When it makes no sense.
    pub fn new(config: CollectorConfig) -> Result<Self, CollectorConfigError> {
        config.check()?;
        Ok(Self { config })
    }

    /// Whether keys can be read and the directory can be used: what `--check` asks for.
    ///
    /// # Errors
    /// When they cannot.
    pub fn check(&self) -> Result<(), CollectorError> {
        self.acceptor()?;
        FolderLock::acquire(&real_disk(), &self.config.directory)?;
        Ok(())
    }

    /// Serves until asked to stop. `ready` is called when agents can connect.
    ///
    /// # Errors
    /// When it cannot start, or the sink takes no more.
    pub fn run(
        self,
        sink: Box<dyn EventSink>,
        stop: &StopRequest,
        ready: impl FnOnce(Addresses),
    ) -> Result<(), CollectorError> {
        let tls = self.acceptor()?;
        let _lock = FolderLock::acquire(&real_disk(), &self.config.directory)?;
        let supervisor = supervisor_of(stop);
        let descriptors = raise_open_files_max();
        let (limits, warning) = self.config.limits.within(descriptors);
        if let Some(warning) = warning {
            warn!("{warning}");
        }
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(SERVER_THREADS)
            .max_blocking_threads(WORKING_THREADS_MAX)
            .thread_keep_alive(WORKING_THREAD_IDLE)
            .enable_all()
            .build()
            .map_err(CollectorError::Start)?;
        let telemetry = Telemetry::new();
        let (journal, submissions) = journal::channel();
        let (disk, writers_max) = (real_disk(), limits.writers_max(descriptors));
        let (writing, receiver) = self.journal(&disk, &telemetry, writers_max)?;
        let estimates = self.estimates(&disk)?;
        let history = Arc::clone(&estimates.history);
        let mut sink = self.alerting(&telemetry, stop, &supervisor, history, sink)?;
        sink.refill(&estimates.history);
        let board = sink.board();
        let estimating = self.estimating(&disk, &telemetry, &estimates, Box::new(sink));
        let listeners = runtime.block_on(self.bind())?;
        let writing = spawn(&supervisor, "journal", move || writing.run(&submissions))?;
        let ending = stop.clone();
        let estimating = spawn(&supervisor, "estimating", move || {
            let ended = estimating.run(&receiver, &ending);
            // A sink that takes no more, such as a closed pipe, ends the collector in good order.
            ending.request();
            ended
        })?;
        let upkeep = Upkeep::new(estimates.clone(), telemetry.history.clone());
        let ending = stop.clone();
        let upkeep = spawn(&supervisor, "upkeep", move || upkeep.run(&ending))?;
        ready(listeners.addresses);
        let (memory, _waiting) = self.memory(&telemetry);
        let latest = Arc::clone(&estimates.latest);
        let ingest = self.ingest(memory, journal, &telemetry, latest);
        let router = dashboard::router(&self.api(estimates, board, stop).router(ingest.router()));
        let metrics_server = telemetry.server.clone();
        let health = telemetry.router(supervisor.clone());
        runtime.block_on(listeners.serve(tls, limits, router, metrics_server, health, stop));
        // The last senders are gone with the server: the journal ends, and then the estimates.
        runtime.shutdown_timeout(crate::server::LAST_WORDS_TIME);
        let _ = (join(writing), join(upkeep));
        let estimated = join(estimating);
        supervisor.failure().map_or(Ok(()), Err)?;
        estimated?.map_err(CollectorError::Sink)
    }

    fn acceptor(&self) -> Result<Option<TlsAcceptor>, TlsError> {
        let has_tokens = !self.config.tokens.is_empty() || !self.config.readers.is_empty();
        let others = match has_tokens {
            true => WithoutCertificate::Welcome,
            false => WithoutCertificate::Refused,
        };
        self.config.tls.as_ref().map(|tls| acceptor(tls, others)).transpose()
    }

    fn ingest(
        &self,
        memory: ByteBudget,
        journal: journal::JournalSender,
        telemetry: &Telemetry,
        latest: Arc<LatestStates>,
    ) -> Ingest {
        let tokens = Tokens::new(&self.config.tokens);
        let anonymous = self.config.allows_anonymous().then(|| Arc::new(Caller::anonymous()));
        let metrics = telemetry.ingest.clone();
        Ingest::new(tokens, anonymous, self.config.limits, memory, journal, metrics, latest)
    }

    /// The memory of all that waits. What waits in the engine has its part of it for good.
    pub(crate) fn memory(&self, telemetry: &Telemetry) -> (ByteBudget, HeldBytes) {
        let bytes_max = self.config.limits.memory_bytes_max;
        let memory = ByteBudget::new(bytes_max, telemetry.budget.clone());
        let mut waiting = memory.nothing("engine");
        let _ = waiting.try_grow_to(bytes_max / WAITING_SHARE);
        (memory, waiting)
    }

    /// Estimates, as far as they are stored.
    pub(crate) fn estimates(&self, disk: &SharedDisk) -> Result<Estimates, HistoryError> {
        let directory = &self.config.directory;
        let (table, folder) = (Table::Estimates, directory.join(ESTIMATES_FOLDER));
        let history = History::open_table(disk.clone(), &folder, table, self.config.history)?;
        let points = PointHistories::open(disk, directory, &self.config.history)?;
        Ok(Estimates::new(history, points, self.config.clock.clone()))
    }

    fn log(&self, disk: &SharedDisk) -> Log {
        Log::on(disk.clone(), self.config.directory.join(EPOCHS_FOLDER), Options::default())
    }

    fn api(&self, estimates: Estimates, alerts: AlertBoard, stop: &StopRequest) -> Api {
        let directory = self.config.directory.clone();
        let epochs = self.log(&real_disk());
        let readers = &self.config.readers;
        let is_open = readers.is_empty() && self.config.allows_anonymous();
        let stored = (estimates, epochs, directory);
        let about = ApiAbout { configuration: Some((&self.config).into()), bundle: None };
        Api::new(stored, about, alerts, readers, is_open, self.config.limits, stop.clone())
    }

    /// The journal, and where it hands on what it stored.
    pub(crate) fn journal(
        &self,
        disk: &SharedDisk,
        telemetry: &Telemetry,
        writers_max: usize,
    ) -> Result<(Journal, Receiver<StoredEpoch>), StoreError> {
        let config = JournalConfig {
            domain: self.config.domain.clone(),
            retention: self.config.retention,
            points_max: self.config.limits.points_max,
            writers_max,
            clock: self.config.clock.clone(),
        };
        let (stored, receiver) = sync_channel(EPOCHS_WAITING_MAX);
        let journal = Journal::open(self.log(disk), &config, stored, telemetry.journal.clone())?;
        Ok((journal, receiver))
    }

    /// What estimates from stored epochs, stores that, and then hands it to `next`.
    pub(crate) fn estimating(
        &self,
        disk: &SharedDisk,
        telemetry: &Telemetry,
        estimates: &Estimates,
        next: Box<dyn EventSink>,
    ) -> Estimating {
        let file = self.config.directory.join(PROGRESS_FILE);
        let config = EstimatingConfig {
            engine: EngineConfig {
                waiting_bytes_max: self.config.limits.memory_bytes_max / WAITING_SHARE,
                ..self.config.engine.clone()
            },
            log: self.log(disk),
            file: ProgressFile::new(disk.clone(), file),
            resume_wait: self.config.resume_wait,
            clock: self.config.clock.clone(),
        };
        let sink = HistorySink::new(estimates.clone(), next, telemetry.history.clone());
        Estimating::new(config, telemetry.estimating.clone(), sink)
    }

    fn alerting(
        &self,
        telemetry: &Telemetry,
        stop: &StopRequest,
        supervisor: &Supervisor,
        history: Arc<History>,
        next: Box<dyn EventSink>,
    ) -> Result<Alerting, CollectorError> {
        let alerts = self.config.alerts.clone();
        let file = AlertsFile::new(real_disk(), self.config.directory.join(ALERTS_FILE));
        let marks = Marks::open(real_disk(), self.config.directory.join(MARKS_FILE));
        let metrics = telemetry.alerts.clone();
        let alerting =
            Alerting::new(alerts, (file, marks), metrics, stop, supervisor, history, next);
        alerting.map_err(CollectorError::Start)
    }

    async fn bind(&self) -> Result<Listeners, CollectorError> {
        let agents = bind(self.config.listen).await?;
        let metrics = match self.config.metrics {
            Some(address) => Some(bind(address).await?),
            None => None,
        };
        let addresses = Addresses {
            listen: agents.local_addr().map_err(CollectorError::Start)?,
            metrics: metrics.as_ref().and_then(|metrics| metrics.local_addr().ok()),
        };
        Ok(Listeners { agents, metrics, addresses })
    }
}

/// Where connections come in.
struct Listeners {
    agents: TcpListener,
    metrics: Option<TcpListener>,
    addresses: Addresses,
}

impl Listeners {
    async fn serve(
        self,
        tls: Option<TlsAcceptor>,
        limits: Limits,
        router: Router,
        metrics: ServerMetrics,
        health: Router,
        stop: &StopRequest,
    ) {
        let beside = metrics.beside();
        let agents = Server { listener: self.agents, tls, limits, router, metrics };
        let connections_max = limits.connections_max.min(TELLING_CONNECTIONS_MAX);
        let metrics_server = self.metrics.map(|listener| Server {
            listener,
            tls: None,
            limits: Limits { connections_max, ..limits },
            router: health,
            metrics: beside,
        });
        info!(address = %self.addresses.listen, "listening");
        let metrics = async {
            if let Some(metrics_server) = metrics_server {
                metrics_server.run(stop.clone()).await;
            }
        };
        tokio::join!(agents.run(stop.clone()), metrics);
        info!("stopping");
    }
}

async fn bind(address: SocketAddr) -> Result<TcpListener, CollectorError> {
    let listener = TcpListener::bind(address).await;
    listener.map_err(|source| CollectorError::Listen { address, source })
}

/// Threads end only when the collector is asked to stop.
fn supervisor_of(stop: &StopRequest) -> Supervisor {
    let (stop, stopping) = (stop.clone(), stop.clone());
    Supervisor::new(move || stop.request(), move || stopping.is_requested())
}

type SupervisedThread<T> = JoinHandle<Result<T, ThreadFailure>>;

fn spawn<T: Send + 'static>(
    supervisor: &Supervisor,
    name: &'static str,
    run: impl FnOnce() -> T + Send + 'static,
) -> Result<SupervisedThread<T>, CollectorError> {
    let supervisor = supervisor.clone();
    let builder = thread::Builder::new().name(name.to_owned());
    builder.spawn(move || supervisor.run(name, run)).map_err(CollectorError::Start)
}

fn join<T>(thread: SupervisedThread<T>) -> Result<T, ThreadFailure> {
    thread.join().expect("a supervised thread does not panic")
}

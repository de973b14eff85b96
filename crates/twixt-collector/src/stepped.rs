//! A collector that is stepped from outside: bodies, disk and clock are handed in, and nothing happens
//! by itself. The parts are those of [`Collector`]; only its threads and connections are missing. For
//! simulations.

use std::io;
use std::sync::mpsc::Receiver;

use axum::http::header;
use axum::response::Response;
use futures_util::FutureExt;
use tokio::sync::oneshot;
use twixt_delivery::{COLLECTOR_HEADER, Receipt};
use twixt_history::{HistoryError, RowAnswer, RowQuestion, Table};
use twixt_store::{FolderLock, SharedDisk};

use crate::access::Caller;
use crate::budget::{ByteBudget, HeldBytes};
use crate::collector::{Collector, CollectorError};
use crate::config::CollectorConfig;
use crate::estimating::{Estimating, EventSink};
use crate::history::{Estimates, Upkeep};
use crate::ingest::{BodyReader, Epochs, Problem, accepted, read_epochs};
use crate::journal::{Journal, StoredEpoch, Submission, Unavailable};
use crate::telemetry::Telemetry;

/// Logs of points that stay open.
const WRITERS_MAX: usize = 4;
/// Of a response, no more is read.
const RESPONSE_BYTES_MAX: usize = 1 << 20;

/// A collector without threads and connections.
pub struct SteppedCollector {
    caller: Caller,
    body_bytes_max: usize,
    memory: ByteBudget,
    _waiting: HeldBytes,
    journal: Journal,
    submissions: Vec<Submission>,
    /// Where the answers to the submissions will be, with the numbers of the requests.
    answers: Vec<(u64, oneshot::Receiver<Result<Receipt, Unavailable>>)>,
    stored: Receiver<StoredEpoch>,
    estimating: Estimating,
    upkeep: Upkeep,
    estimates: Estimates,
    _lock: FolderLock,
}

/// What is sent back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SteppedResponse {
    /// The status code.
    pub status: u16,
    /// Whether it has the header by which agents know a collector.
    pub is_marked: bool,
    /// `Retry-After`.
    pub retry_after: Option<String>,
    /// The body.
    pub body: String,
}

impl SteppedCollector {
    /// Opens all that lies in the directory.
    ///
    /// # Errors
    /// When something of it cannot be read, or the disk refuses.
    pub fn open(
        config: CollectorConfig,
        disk: &SharedDisk,
        sink: Box<dyn EventSink>,
    ) -> Result<Self, CollectorError> {
        let (directory, body_bytes_max) = (config.directory.clone(), config.limits.body_bytes_max);
        let collector = Collector::new(config)?;
        let lock = FolderLock::acquire(disk, &directory)?;
        let telemetry = Telemetry::new();
        let (journal, stored) = collector.journal(disk, &telemetry, WRITERS_MAX)?;
        let estimates = collector.estimates(disk)?;
        let estimating = collector.estimating(disk, &telemetry, &estimates, sink);
        let (memory, waiting) = collector.memory(&telemetry);
        Ok(Self {
            caller: Caller::anonymous(),
            body_bytes_max,
            memory,
            _waiting: waiting,
            journal,
            submissions: Vec::new(),
            answers: Vec::new(),
            stored,
            estimating,
            upkeep: Upkeep::new(estimates.clone(), telemetry.history.clone()),
            estimates,
            _lock: lock,
        })
    }

    /// A request comes in; `is_whole` unless the connection was cut before the end of the body. What is
    /// answered at once, if anything: otherwise the request waits for [`commit`](Self::commit).
    pub fn receive(
        &mut self,
        request: u64,
        body: &[u8],
        is_whole: bool,
    ) -> Option<SteppedResponse> {
        match self.read(body, is_whole) {
            Ok(Epochs { arrived, refused }) => {
                let (answer, answered) = oneshot::channel();
                self.submissions.push(Submission { epochs: arrived, refused, answer });
                self.answers.push((request, answered));
                None
            }
            Err(problem) => Some(SteppedResponse::of(problem.into_response())),
        }
    }

    fn read(&self, body: &[u8], is_whole: bool) -> Result<Epochs, Problem> {
        let memory = self.memory.nothing(&self.caller.name);
        let mut reader = BodyReader::new(true, self.body_bytes_max, memory)?;
        reader.push(body)?;
        if !is_whole {
            return Err(Problem::Cut);
        }
        let (bytes, memory) = reader.finish();
        let epochs = read_epochs(&bytes.into(), memory)?;
        epochs.check(&self.caller)?;
        Ok(epochs)
    }

    /// The journal stores what all requests brought, and answers them.
    pub fn commit(&mut self) -> Vec<(u64, SteppedResponse)> {
        if self.submissions.is_empty() {
            return Vec::new();
        }
        self.journal.commit(std::mem::take(&mut self.submissions));
        let answers = std::mem::take(&mut self.answers);
        let answer = |(request, mut answered): (u64, oneshot::Receiver<_>)| {
            let answer = answered.try_recv().unwrap_or(Err(Unavailable::Stopping));
            let response = match answer {
                Ok(receipt) => accepted(&receipt),
                Err(unavailable) => Problem::from(unavailable).into_response(),
            };
            (request, SteppedResponse::of(response))
        };
        answers.into_iter().map(answer).collect()
    }

    /// The thread that estimates does what is due.
    ///
    /// # Errors
    /// When the collector would end.
    pub fn estimate(&mut self) -> io::Result<()> {
        match self.estimating.takes_epochs() {
            true => self.estimating.step(self.stored.try_iter()),
            false => self.estimating.step(std::iter::empty()),
        }
    }

    /// Old days and hours are sealed and deleted, if that is due.
    pub fn keep(&mut self) {
        self.journal.forget_when_due();
        self.upkeep.run_once();
    }

    /// Asks for estimates.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn answer(&self, question: &RowQuestion) -> Result<RowAnswer, HistoryError> {
        self.answer_table(Table::Estimates, question)
    }

    /// Asks for rows of a table.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn answer_table(
        &self,
        table: Table,
        question: &RowQuestion,
    ) -> Result<RowAnswer, HistoryError> {
        self.estimates.table(table).answer(question)
    }

    /// Memory that is held by what waits, and how much may be.
    #[must_use]
    pub fn held_bytes(&self) -> (u64, u64) {
        self.memory.held()
    }
}

impl SteppedResponse {
    fn of(response: Response) -> Self {
        let (head, body) = response.into_parts();
        let header = |name: &str| head.headers.get(name)?.to_str().ok().map(str::to_owned);
        let body = axum::body::to_bytes(body, RESPONSE_BYTES_MAX).now_or_never();
        let body = body.and_then(Result::ok).unwrap_or_default();
        Self {
            status: head.status.as_u16(),
            is_marked: header(COLLECTOR_HEADER).is_some(),
            retry_after: header(header::RETRY_AFTER.as_str()),
            body: String::from_utf8_lossy(&body).into_owned(),
        }
    }
}

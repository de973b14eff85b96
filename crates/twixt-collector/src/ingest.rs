//! `POST /v1/epochs`: who asks, whether they may, what they bring, and what became of it.
//!
//! The order is that of cost: unauthenticated requests are refused before a byte of their body is
//! read, and those who ask too much before anything is unpacked.

mod answer;
mod body;
mod limits;
mod metrics;

pub(crate) use answer::{Problem, accepted};
pub(crate) use body::BodyReader;
pub(crate) use metrics::IngestMetrics;

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Extension, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use tracing::warn;
use twixt_delivery::{
    Receipt, RefusalCode, RefusedEpoch, SPOOL_HEADER, UPLOAD_ENCODING, UPLOAD_PATH, agent_version,
    read_upload,
};
use twixt_measure::Sealed;
use twixt_synopsis::DecodeError;

use crate::access::{Caller, Tokens};
use crate::budget::{ByteBudget, HeldBytes};
use crate::history::{AgentState, LatestStates};
use crate::journal::{Arrived, JournalSender, Refusal};
use crate::server::{Limits, Peer};
use limits::CallerLimits;

/// Days of points that one request may have epochs of. An agent with more sends fewer at a time.
pub(crate) const FILES_MAX: usize = 64;

/// Memory for an epoch that is refused, with its line in the receipt.
const REFUSED_BYTES: u64 = 512;

/// Answers requests.
#[derive(Debug)]
pub(crate) struct Ingest {
    tokens: Tokens,
    /// The sender, where no authentication is required.
    anonymous: Option<Arc<Caller>>,
    limits: Limits,
    callers: CallerLimits,
    memory: ByteBudget,
    journal: JournalSender,
    metrics: IngestMetrics,
    /// Where it is kept what agents say of themselves.
    latest: Arc<LatestStates>,
}

impl Ingest {
    pub(crate) fn new(
        tokens: Tokens,
        anonymous: Option<Arc<Caller>>,
        limits: Limits,
        memory: ByteBudget,
        journal: JournalSender,
        metrics: IngestMetrics,
        latest: Arc<LatestStates>,
    ) -> Self {
        let callers = CallerLimits::new(limits);
        Self { tokens, anonymous, limits, callers, memory, journal, metrics, latest }
    }

    /// Everything that can be asked for.
    pub(crate) fn router(self) -> Router {
        Router::new().fallback(answer_request).with_state(Arc::new(self))
    }

    async fn answer(&self, peer: &Peer, request: Request) -> Result<Receipt, Problem> {
        let caller = self.caller(peer, request.headers()).ok_or(Problem::Unauthenticated)?;
        if request.uri().path() != UPLOAD_PATH {
            return Err(Problem::NoSuchPath);
        }
        if request.method() != Method::POST {
            return Err(Problem::Method);
        }
        let (parts, mut body) = request.into_parts();
        let answered = self.take(&caller, &parts.headers, &mut body).await;
        if answered.is_err() {
            // Who is still sending would not read the answer.
            let rest = body::discard(&mut body, self.limits.body_bytes_max);
            let _ = tokio::time::timeout(self.limits.header_time, rest).await;
        }
        answered
    }

    /// Takes the epochs of a request, as far as its caller may send any.
    async fn take(
        &self,
        caller: &Caller,
        headers: &HeaderMap,
        body: &mut Body,
    ) -> Result<Receipt, Problem> {
        let request = self.callers.admit(&caller.name)?;
        let reader = self.body_reader(caller, headers)?;
        let reading = tokio::time::timeout(self.limits.body_time, reader.read(body));
        let (bytes, memory) = reading.await.map_err(|_| Problem::Slow)??;
        self.metrics.body_bytes.inc_by(bytes.len() as u64);
        // Decoding takes long enough to keep others waiting.
        let read = tokio::task::spawn_blocking(move || read_epochs(&bytes.into(), memory));
        let epochs = read.await.map_err(|_| Problem::Failed)??;
        request.charge(epochs.arrived.len() + epochs.refused.len());
        epochs.check(caller)?;
        let is_undecodable = |refused: &&RefusedEpoch| refused.code != Some(RefusalCode::TooLarge);
        let undecodable = epochs.refused.iter().filter(is_undecodable).count();
        self.metrics.undecodable.inc_by(undecodable as u64);
        let (points, agent) = (epochs.points(), agent_of(headers));
        let receipt = self.journal.store(epochs.arrived, epochs.refused).await?;
        if receipt.refused.is_empty() {
            self.latest.note_agent(points, &agent);
        }
        Ok(receipt)
    }

    fn caller(&self, peer: &Peer, headers: &HeaderMap) -> Option<Arc<Caller>> {
        let by_token = || self.tokens.caller(headers.get(header::AUTHORIZATION)?.as_bytes());
        peer.certified.clone().or_else(by_token).or_else(|| self.anonymous.clone())
    }

    /// Knows how the body is packed, and refuses it where its length says that it is too long.
    fn body_reader(&self, caller: &Caller, headers: &HeaderMap) -> Result<BodyReader, Problem> {
        let is_packed = match headers.get(header::CONTENT_ENCODING).map(HeaderValue::as_bytes) {
            None | Some(b"identity") => false,
            Some(packed) if packed == UPLOAD_ENCODING.as_bytes() => true,
            Some(_) => return Err(Problem::Encoding),
        };
        let length = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok());
        let length = length.and_then(|length| length.parse::<u64>().ok());
        if length.is_some_and(|length| length > self.limits.body_bytes_max as u64) {
            return Err(Problem::TooLarge { bytes_max: self.limits.body_bytes_max });
        }
        let memory = self.memory.nothing(&caller.name);
        BodyReader::new(is_packed, self.limits.body_bytes_max, memory)
    }
}

/// What the agent says of itself.
fn agent_of(headers: &HeaderMap) -> AgentState {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    AgentState {
        version: text(header::USER_AGENT.as_str()).and_then(agent_version).map(str::to_owned),
        spool: text(SPOOL_HEADER).and_then(|spool| spool.parse().ok()),
    }
}

/// All of the points must be the caller's own.
fn check_points(caller: &Caller, arrived: &[Arrived]) -> Result<(), Problem> {
    let mut points = arrived.iter().map(|arrived| &arrived.sealed.point.0);
    let Some(point) = points.find(|point| !caller.may_write(point)) else { return Ok(()) };
    warn!(caller = caller.name, point, "may not write this point");
    Err(Problem::Forbidden { point: point.clone() })
}

/// Every day of a point is a file, and files that are opened and synced keep others waiting.
fn check_files(arrived: &[Arrived]) -> Result<(), Problem> {
    const DAY_NS: i64 = 24 * 3_600 * 1_000_000_000;
    let file = |Arrived { sealed, .. }: &Arrived| {
        let start = sealed.rule.span_of(sealed.epoch).start.as_nanos();
        (sealed.point.0.clone(), start.div_euclid(DAY_NS))
    };
    let files: HashSet<_> = arrived.iter().map(file).collect();
    match files.len() > FILES_MAX {
        true => Err(Problem::TooWide),
        false => Ok(()),
    }
}

async fn answer_request(
    State(ingest): State<Arc<Ingest>>,
    Extension(peer): Extension<Peer>,
    request: Request<Body>,
) -> Response {
    let answered = ingest.answer(&peer, request).await;
    let status = answered.as_ref().map_or_else(Problem::status, |_| StatusCode::OK);
    ingest.metrics.count(status);
    match answered {
        Ok(receipt) => accepted(&receipt),
        Err(problem) => problem.into_response(),
    }
}

/// The epochs of a body.
#[derive(Debug, Default)]
pub(crate) struct Epochs {
    pub(crate) arrived: Vec<Arrived>,
    /// Records that are not epochs, or too large ones.
    pub(crate) refused: Vec<RefusedEpoch>,
}

impl Epochs {
    /// Domains and names of the points.
    fn points(&self) -> BTreeSet<(String, String)> {
        let sealed = self.arrived.iter().map(|arrived| &arrived.sealed);
        sealed.map(|sealed| (sealed.domain.clone(), sealed.point.0.clone())).collect()
    }

    /// Whether the caller may send all of them at once.
    pub(crate) fn check(&self, caller: &Caller) -> Result<(), Problem> {
        check_points(caller, &self.arrived)?;
        check_files(&self.arrived)
    }
}

/// Decodes the epochs of a body. Blank cells take next to nothing in a body, so the memory that they
/// will take is held before the first is decoded.
pub(crate) fn read_epochs(body: &Bytes, mut memory: HeldBytes) -> Result<Epochs, Problem> {
    let records = read_upload(body).map_err(|error| Problem::Malformed(error.to_string()))?;
    let bytes_max = memory.holder_bytes_max();
    let mut epochs = Epochs::default();
    let mut decodable = Vec::new();
    for (index, record) in records.into_iter().enumerate() {
        match decoded_bytes(record, bytes_max) {
            Ok(bytes) => decodable.push((index, record, bytes + record.len() as u64)),
            Err(reason) => epochs.refused.push(reason.of_record(index)),
        }
    }
    let decoded: u64 = decodable.iter().map(|(.., bytes)| bytes).sum();
    let needed_bytes = decoded + REFUSED_BYTES * epochs.refused.len() as u64;
    if needed_bytes > bytes_max {
        return Err(Problem::TooMuchMemory { needed_bytes, bytes_max });
    }
    if !memory.try_grow_to(needed_bytes) {
        return Err(Problem::Crowded);
    }
    for (index, record, bytes) in decodable {
        match Sealed::from_bytes(record) {
            Ok(sealed) => {
                let (bytes, memory) = (body.slice_ref(record), memory.split(bytes));
                epochs.arrived.push(Arrived { index, sealed, bytes, memory });
            }
            Err(error) => epochs.refused.push(undecodable(&error).of_record(index)),
        }
    }
    Ok(epochs)
}

/// Memory that a record takes once it is decoded.
fn decoded_bytes(record: &[u8], bytes_max: u64) -> Result<u64, Refusal> {
    match Sealed::decoded_bytes(record) {
        Ok(bytes) if bytes.saturating_add(record.len() as u64) <= bytes_max => Ok(bytes),
        Ok(bytes) => Err(Refusal::TooLarge { bytes, bytes_max }),
        Err(error) => Err(undecodable(&error)),
    }
}

fn undecodable(error: &DecodeError) -> Refusal {
    match error {
        DecodeError::NewerVersion { .. } | DecodeError::UnknownAlgorithm { .. } => {
            Refusal::NewerFormat(error.to_string())
        }
        _ => Refusal::Undecodable(error.to_string()),
    }
}

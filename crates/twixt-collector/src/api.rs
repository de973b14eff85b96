//! `/v1/…`: what may be asked, by whom, and what is answered.
//!
//! Requests and answers have types of their own, from which the description of the interface
//! ([`openapi`]) is made. Reading needs its own token: an agent that may write a point may not see
//! what others see, and a dashboard may not write.

mod access;
mod alerts;
mod bundle;
mod documents;
mod estimates;
mod evidence;
mod flows;
mod heatmap;
mod histogram;
mod live;
mod now;
mod one_point;
mod openapi;
mod parameters;
mod problem;
mod totals;

pub use documents::{
    AcknowledgeDocument, AlertRuleDocument, AlertsDocument, BucketDocument, ClockDocument,
    ClocksDocument, CompletenessDocument, EndDocument, EpochDocument, EstimateDocument,
    EstimatesDocument, EvidenceDocument, FlowDocument, FlowOrder, FlowSelection, FlowsDocument,
    GapDocument, GapsDocument, HeatmapColumn, HeatmapDocument, HeavyDocument, HeavyFlowDocument,
    HistogramDocument, KnownLossDocument, MomentRange, ObservedDocument, PointDocument,
    PointsDocument, PrefixDocument, ReorderingDocument, RoundTripDocument, RoundTripsDocument,
    SegmentDocument, SegmentsDocument, SilenceDocument, SourceDocument, SourceKind, TimeRange,
    TotalDocument, TotalsDocument,
};
pub use estimates::{COMPLETE_HEADER, NEXT_HEADER};
pub use openapi::openapi;
pub use problem::ErrorDocument;

use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::extract::State;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use tokio::sync::Semaphore;
use twixt_history::{HistoryError, RowAnswer, RowQuestion};
use twixt_store::Log;

use crate::alerts::AlertBoard;
use crate::bundle::{ConfigurationDocument, ManifestDocument};
use crate::history::Estimates;
use crate::server::Limits;
use crate::stop::StopRequest;
use access::Readers;
use problem::Problem;

/// Questions that are being answered at a time. They read files, and more of them at once would
/// not be faster.
const ANSWERING_MAX: usize = 4;
/// Questions about flows that are being answered at a time. They compare epochs, which takes a
/// processor for seconds, and have a turn of their own so that others need not wait for them.
const COMPARING_MAX: usize = 1;
/// Questions that are being worked at.
pub(crate) const WORKING_MAX: usize = ANSWERING_MAX + COMPARING_MAX;
/// Requests that wait for their turn. Further ones are asked to retry.
const WAITING_MAX: usize = 64;

/// Answers questions.
#[derive(Debug)]
pub(crate) struct Api {
    estimates: Estimates,
    /// Raw epochs.
    epochs: Log,
    /// What paths in messages need not show.
    directory: PathBuf,
    about: ApiAbout,
    readers: Readers,
    alerts: AlertBoard,
    /// Turns, waiting included.
    waiting: Arc<Semaphore>,
    answering: Arc<Semaphore>,
    comparing: Arc<Semaphore>,
    stop: StopRequest,
}

/// What is known of whose data it is.
#[derive(Clone, Debug, Default)]
pub(crate) struct ApiAbout {
    /// How the collector is configured, without secrets.
    pub(crate) configuration: Option<ConfigurationDocument>,
    /// The bundle that answers come from.
    pub(crate) bundle: Option<ManifestDocument>,
}

impl Api {
    /// Reads what is stored below `directory`; `is_open`: everybody may ask.
    pub(crate) fn new(
        stored: (Estimates, Log, PathBuf),
        about: ApiAbout,
        alerts: AlertBoard,
        readers: &[crate::access::ReaderConfig],
        is_open: bool,
        limits: Limits,
        stop: StopRequest,
    ) -> Self {
        let (estimates, epochs, directory) = stored;
        Self {
            alerts,
            estimates,
            epochs,
            directory,
            about,
            readers: Readers::new(readers, is_open, limits),
            waiting: Arc::new(Semaphore::new(ANSWERING_MAX + WAITING_MAX)),
            answering: Arc::new(Semaphore::new(ANSWERING_MAX)),
            comparing: Arc::new(Semaphore::new(COMPARING_MAX)),
            stop,
        }
    }

    /// All that may be asked. Other paths are for `others`.
    pub(crate) fn router(self, others: Router) -> Router {
        let api = Arc::new(self);
        let guarded = Router::new()
            .route("/v1/points", get(now::points))
            .route("/v1/segments", get(now::segments))
            .route("/v1/clocks", get(now::clocks))
            .route("/v1/estimates", get(estimates::estimates))
            .route("/v1/alerts", get(alerts::alerts))
            .route("/v1/alerts/acknowledge", post(alerts::acknowledge))
            .route("/v1/alerts/silence", post(alerts::silence))
            .route("/v1/gaps", get(estimates::gaps))
            .route("/v1/totals", get(totals::totals))
            .route("/v1/flows", get(flows::flows))
            .route("/v1/flow", get(flows::flow))
            .route("/v1/heatmap", get(heatmap::heatmap))
            .route("/v1/histogram", get(histogram::histogram))
            .route("/v1/evidence", get(evidence::evidence))
            .route("/v1/round-trips", get(one_point::round_trips))
            .route("/v1/reordering", get(one_point::reordering))
            .route("/v1/heavy", get(one_point::heavy))
            .route("/v1/live", get(live::live))
            .route("/v1/bundle", get(bundle::bundle))
            .route("/v1/source", get(bundle::source))
            .route("/v1/openapi.json", get(openapi::serve))
            .layer(middleware::from_fn_with_state(Arc::clone(&api), guard));
        guarded.with_state(api).fallback_service(others)
    }

    /// Answers a question to the history, when its turn comes.
    async fn ask(&self, question: RowQuestion) -> Result<RowAnswer, Problem> {
        let history = Arc::clone(&self.estimates.history);
        self.read(move || history.answer(&question)).await?.map_err(|error| self.failed(&error))
    }

    /// Reads files, when its turn comes.
    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Problem> {
        self.take_turn(&self.answering, read).await
    }

    /// Compares epochs, when its turn comes.
    async fn compare<T: Send + 'static>(
        &self,
        compare: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Problem> {
        self.take_turn(&self.comparing, compare).await
    }

    async fn take_turn<T: Send + 'static>(
        &self,
        turns: &Arc<Semaphore>,
        read: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let _waiting = self.waiting.try_acquire().map_err(|_| Problem::Crowded)?;
        let turn = Arc::clone(turns).acquire_owned().await;
        let turn = turn.map_err(|_| Problem::Crowded)?;
        let read = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            read()
        });
        read.await.map_err(|_| Problem::Failed("the request could not be handled".to_owned()))
    }

    fn failed(&self, error: &HistoryError) -> Problem {
        Problem::Failed(self.hidden(&error.to_string()))
    }

    /// A message without the path of the collector's directory.
    fn hidden(&self, message: &str) -> String {
        let directory = self.directory.display().to_string();
        message.replace(&format!("{directory}/"), "")
    }
}

/// Lets readers pass, as often as they may ask.
async fn guard(State(api): State<Arc<Api>>, request: Request, next: Next) -> Response {
    match api.readers.admit(request.headers()) {
        Ok(_turn) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

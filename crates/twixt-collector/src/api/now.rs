//! `/v1/points`, `/v1/segments` and `/v1/clocks`: what there is, and how it is.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use twixt_model::Span;

use super::documents::{
    ClockDocument, ClocksDocument, PointDocument, PointsDocument, SegmentDocument,
    SegmentsDocument, TimeRange,
};
use super::parameters::{Asked, NoParameters};
use super::problem::Problem;
use super::{Api, ErrorDocument};
use crate::history::{AgentState, PointState};

/// All points.
#[utoipa::path(
    get,
    path = "/v1/points",
    responses(
        (status = 200, description = "The answer", body = PointsDocument),
        (status = 400, description = "This request has no parameters", body = ErrorDocument),
        (status = 401, description = "No valid reader token", body = ErrorDocument),
        (status = 429, description = "Too many requests", body = ErrorDocument),
    ),
    security(("reader" = []))
)]
pub(super) async fn points(
    State(api): State<Arc<Api>>,
    Asked(NoParameters {}): Asked<NoParameters>,
) -> Result<Json<PointsDocument>, Problem> {
    let catalogue = api.estimates.history.catalogue();
    let mut points: BTreeMap<(String, String), Known> = BTreeMap::new();
    for (series, span) in catalogue.series() {
        for point in [&series.upstream, &series.downstream] {
            let known = points.entry((series.domain.clone(), point.clone())).or_default();
            known.segments.push((&series.upstream, &series.downstream));
            known.stored = Some(known.stored.map_or(span, |stored| stored.union(span)));
        }
    }
    for history in api.estimates.points.all() {
        let catalogue = history.catalogue();
        for (series, span) in catalogue.series() {
            let key = (series.domain.clone(), series.upstream.clone());
            let known = points.entry(key).or_default();
            known.stored = Some(known.stored.map_or(span, |stored| stored.union(span)));
        }
    }
    for (key, state) in api.estimates.latest.points() {
        points.entry(key).or_default().state = Some(state);
    }
    for (key, agent) in api.estimates.latest.agents() {
        // What is of no segment is not known as a point.
        points.entry(key).and_modify(|known| known.agent = agent);
    }
    let range = range(points.values().filter_map(|known| known.stored));
    let points = points.into_iter().map(|(key, known)| known.document(key)).collect();
    Ok(Json(PointsDocument { range, points }))
}

/// All segments, by class and algorithm.
#[utoipa::path(
    get,
    path = "/v1/segments",
    responses(
        (status = 200, description = "The answer", body = SegmentsDocument),
        (status = 400, description = "This request has no parameters", body = ErrorDocument),
        (status = 401, description = "No valid reader token", body = ErrorDocument),
        (status = 429, description = "Too many requests", body = ErrorDocument),
    ),
    security(("reader" = []))
)]
pub(super) async fn segments(
    State(api): State<Arc<Api>>,
    Asked(NoParameters {}): Asked<NoParameters>,
) -> Result<Json<SegmentsDocument>, Problem> {
    let catalogue = api.estimates.history.catalogue();
    let segments = catalogue.series().map(|(series, span)| SegmentDocument::of(series, span));
    let range = range(catalogue.series().map(|(_, span)| span));
    Ok(Json(SegmentsDocument { range, segments: segments.collect() }))
}

/// The last known state of the clocks of segments, since the collector's start.
#[utoipa::path(
    get,
    path = "/v1/clocks",
    responses(
        (status = 200, description = "The answer", body = ClocksDocument),
        (status = 400, description = "This request has no parameters", body = ErrorDocument),
        (status = 401, description = "No valid reader token", body = ErrorDocument),
        (status = 429, description = "Too many requests", body = ErrorDocument),
    ),
    security(("reader" = []))
)]
pub(super) async fn clocks(
    State(api): State<Arc<Api>>,
    Asked(NoParameters {}): Asked<NoParameters>,
) -> Result<Json<ClocksDocument>, Problem> {
    let clocks = match &api.about.bundle {
        Some(bundle) => bundle.clocks.clone(),
        None => {
            let latest = api.estimates.latest.clocks();
            latest.iter().map(|(series, state)| ClockDocument::of(series, state)).collect()
        }
    };
    let range = range(clocks.iter().map(|clock| clock.range.span()));
    Ok(Json(ClocksDocument { range, clocks }))
}

/// What is known of a point.
#[derive(Default)]
struct Known<'a> {
    segments: Vec<(&'a String, &'a String)>,
    stored: Option<Span>,
    state: Option<PointState>,
    agent: AgentState,
}

impl Known<'_> {
    fn document(mut self, (domain, name): (String, String)) -> PointDocument {
        self.segments.sort_unstable();
        self.segments.dedup();
        let state = self.state.as_ref();
        PointDocument {
            domain,
            name,
            segments: self.segments.len() as u64,
            stored: self.stored.map(Into::into),
            last_ns: state.map(|state| state.last_ns),
            packets: state.map(|state| state.packets),
            skipped: state.map(|state| state.skipped),
            dropped: state.map(|state| state.dropped),
            late: state.map(|state| state.late),
            agent_version: self.agent.version,
            spool_epochs: self.agent.spool.map(|spool| spool.epochs),
            spool_bytes: self.agent.spool.map(|spool| spool.bytes),
            spool_discarded: self.agent.spool.map(|spool| spool.discarded),
        }
    }
}

/// From the first to the last.
fn range(spans: impl Iterator<Item = Span>) -> TimeRange {
    spans.reduce(Span::union).map(TimeRange::from).unwrap_or_default()
}

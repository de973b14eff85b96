//! `/v1/evidence`: the epochs that estimates rest on, as the points sealed them.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use twixt_measure::{Sealed, Stream};
use twixt_model::{Delay, Span};
use twixt_store::{Depth, Found, Log, Query};

use super::documents::{CompletenessDocument, EpochDocument, EvidenceDocument};
use super::parameters::{Asked, EvidenceParameters};
use super::problem::Problem;
use super::{Api, ErrorDocument};

/// The epochs of both points of a segment.
#[utoipa::path(
    get,
    path = "/v1/evidence",
    params(EvidenceParameters),
    responses(
        (status = 200, description = "The answer", body = EvidenceDocument),
        (status = 400, description = "Invalid request", body = ErrorDocument),
        (status = 401, description = "No valid reader token", body = ErrorDocument),
        (status = 429, description = "Too many requests", body = ErrorDocument),
        (status = 503, description = "Too many requests are waiting", body = ErrorDocument),
    ),
    security(("reader" = []))
)]
pub(super) async fn evidence(
    State(api): State<Arc<Api>>,
    Asked(asked): Asked<EvidenceParameters>,
) -> Result<Json<EvidenceDocument>, Problem> {
    let wanted = asked.segment_range(api.estimates.clock.now())?;
    let range = wanted.span.into();
    let log = api.epochs.clone();
    let [upstream, downstream] = api
        .read(move || {
            let segment = &wanted.segment;
            [&segment.upstream, &segment.downstream]
                .map(|point| epochs(&log, &point.0, wanted.span, wanted.limit))
        })
        .await?;
    let both = [&upstream, &downstream];
    let spans = both.iter().flat_map(|found| &found.spans).copied();
    let problems: Vec<String> = both.iter().flat_map(|found| found.problems.clone()).collect();
    let is_whole = both.iter().all(|found| !found.has_more) && problems.is_empty();
    let completeness = CompletenessDocument {
        complete: is_whole,
        epochs: both.iter().map(|found| found.epochs.len() as u64).sum(),
        gaps: 0,
        stored: spans.reduce(Span::union).map(Into::into),
        problems: problems.iter().map(|problem| api.hidden(problem)).collect(),
    };
    let (upstream, downstream) = (upstream.epochs, downstream.epochs);
    Ok(Json(EvidenceDocument { range, completeness, upstream, downstream }))
}

/// Epochs of a point.
#[derive(Default)]
struct PointEpochs {
    epochs: Vec<EpochDocument>,
    spans: Vec<Span>,
    has_more: bool,
    problems: Vec<String>,
}

fn epochs(log: &Log, point: &str, span: Span, limit: usize) -> PointEpochs {
    let mut found = PointEpochs::default();
    let query = Query::between(span).at_point(point).to_depth(Depth::Heads);
    let mut scan = match log.scan(query) {
        Ok(scan) => scan,
        Err(error) => {
            found.problems.push(error.to_string());
            return found;
        }
    };
    let mut heads: Vec<Found> = scan.by_ref().take(limit + 1).collect();
    found.has_more = heads.len() > limit;
    heads.truncate(limit);
    heads.sort_by_key(|head| (head.span.start, head.epoch));
    for head in heads {
        let payload = log.payload(&head).map_err(|damage| damage.to_string());
        let sealed = payload
            .and_then(|payload| Sealed::from_bytes(&payload).map_err(|error| error.to_string()));
        match sealed {
            Ok(sealed) => {
                found.spans.push(head.span);
                found.epochs.push(document(&head, &sealed));
            }
            Err(problem) => found.problems.push(problem),
        }
    }
    found.problems.extend(scan.report().damages.iter().map(ToString::to_string));
    found
}

fn document(head: &Found, sealed: &Sealed) -> EpochDocument {
    EpochDocument {
        domain: sealed.domain.clone(),
        point: sealed.point.0.clone(),
        class: sealed.class.clone(),
        algorithm: Stream::of(sealed).algorithm,
        settings: sealed.synopsis.config().to_string(),
        epoch: sealed.epoch.0,
        range: sealed.rule.span_of(sealed.epoch).into(),
        run: format!("{:x}", sealed.run),
        packets: sealed.packets,
        skipped: sealed.tally.skipped_total(),
        dropped: sealed.tally.dropped,
        late: sealed.tally.late,
        missing_max: sealed.tally.missing_max,
        torn: sealed.torn,
        time_source: sealed.time_source.name().to_owned(),
        clock_bound_ns: sealed.clock_bound.map(Delay::as_nanos),
        seen: sealed.seen.map(Into::into),
        stored_bytes: head.stored_bytes,
    }
}

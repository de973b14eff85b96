//! `/v1/flows` and `/v1/histogram`: rows of a stretch of time, put together.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use twixt_history::{DelayPart, Row, totals};
use twixt_model::Histogram;

use super::documents::{BucketDocument, EstimateDocument, FlowsDocument, HistogramDocument};
use super::parameters::{Asked, FlowParameters, HistogramParameters, Order};
use super::problem::Problem;
use super::{Api, ErrorDocument};

/// The flows with the largest delay, deviation or loss.
#[utoipa::path(
    get,
    path = "/v1/flows",
    params(FlowParameters),
    responses(
        (status = 200, description = "What there is", body = FlowsDocument),
        (status = 400, description = "The question makes no sense", body = ErrorDocument),
        (status = 401, description = "Not a reader", body = ErrorDocument),
        (status = 429, description = "Too many questions", body = ErrorDocument),
        (status = 503, description = "Too many questions of all", body = ErrorDocument),
    ),
    security(("reader" = []))
)]
pub(super) async fn flows(
    State(api): State<Arc<Api>>,
    Asked(asked): Asked<FlowParameters>,
) -> Result<Json<FlowsDocument>, Problem> {
    let (question, order, limit) = asked.question(api.recorded.clock.now())?;
    let range = question.span.into();
    let answer = api.ask(question).await?;
    let mut completeness = api.completeness(&answer);
    completeness.complete &= answer.next.is_none();
    let mut flows = totals(answer.rows.iter().filter(|row| !row.is_gap()));
    flows.sort_by(|one, other| rank(other, order).total_cmp(&rank(one, order)));
    flows.truncate(limit);
    let reason = flows.is_empty().then(|| {
        "no estimates of single flows are stored: the algorithm keeps none, or none were asked for"
            .to_owned()
    });
    let flows = flows.iter().map(EstimateDocument::from).collect();
    Ok(Json(FlowsDocument { range, completeness, flows, reason }))
}

/// All delays of a stretch of time, by buckets, and their percentiles.
#[utoipa::path(
    get,
    path = "/v1/histogram",
    params(HistogramParameters),
    responses(
        (status = 200, description = "What there is", body = HistogramDocument),
        (status = 400, description = "The question makes no sense", body = ErrorDocument),
        (status = 401, description = "Not a reader", body = ErrorDocument),
        (status = 429, description = "Too many questions", body = ErrorDocument),
        (status = 503, description = "Too many questions of all", body = ErrorDocument),
    ),
    security(("reader" = []))
)]
pub(super) async fn histogram(
    State(api): State<Arc<Api>>,
    Asked(asked): Asked<HistogramParameters>,
) -> Result<Json<HistogramDocument>, Problem> {
    let question = asked.question(api.recorded.clock.now())?;
    let range = question.span.into();
    let answer = api.ask(question).await?;
    let mut completeness = api.completeness(&answer);
    completeness.complete &= answer.next.is_none();
    let total = totals(answer.rows.iter().filter(|row| !row.is_gap()));
    let kept: Vec<Histogram> =
        total.iter().filter_map(|row| row.delay.as_ref()?.histogram()).collect();
    let mut kept = kept.into_iter();
    let buckets = kept.next().map(|mut all| {
        kept.for_each(|other| all.merge(&other));
        buckets(&all)
    });
    let reason = buckets.is_none().then(|| match total.is_empty() {
        true => "no estimate is stored".to_owned(),
        false => "the algorithm keeps no delays of single packets".to_owned(),
    });
    let total = total.iter().map(EstimateDocument::from).collect();
    Ok(Json(HistogramDocument { range, completeness, total, buckets, reason }))
}

/// What is not known ranks last.
fn rank(row: &Row, order: Order) -> f64 {
    let delay = row.delay.as_ref();
    let known = match order {
        Order::Delay => delay.map(|delay| delay.mean_ns() as f64),
        Order::Deviation => delay.and_then(DelayPart::deviation_ns),
        Order::Loss => {
            let packets = row.packets.filter(|packets| *packets > 0);
            row.lost.zip(packets).map(|(lost, packets)| lost as f64 / packets as f64)
        }
    };
    known.unwrap_or(f64::NEG_INFINITY)
}

fn buckets(histogram: &Histogram) -> Vec<BucketDocument> {
    let base = 2_f64.powf(2_f64.powi(-i32::from(histogram.scale())));
    let numbered = histogram.buckets().map(|(number, bucket)| BucketDocument {
        from_ns: Some(base.powi(number)),
        to_ns: base.powi(number + 1),
        packets: bucket.weight,
    });
    let inside: f64 = histogram.buckets().map(|(_, bucket)| bucket.weight).sum();
    let below = histogram.weight() - inside;
    // What is left is rounding, unless it is a packet.
    let not_positive =
        (below > 0.5).then_some(BucketDocument { from_ns: None, to_ns: 1.0, packets: below });
    not_positive.into_iter().chain(numbered).collect()
}

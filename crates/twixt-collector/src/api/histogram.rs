//! `/v1/histogram`: all delays of an interval of time.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use twixt_history::totals;
use twixt_model::Histogram;

use super::documents::{BucketDocument, EstimateDocument, HistogramDocument};
use super::parameters::{Asked, HistogramParameters};
use super::problem::Problem;
use super::{Api, ErrorDocument};

/// All delays of an interval of time, by buckets, and their percentiles.
#[utoipa::path(
    get,
    path = "/v1/histogram",
    params(HistogramParameters),
    responses(
        (status = 200, description = "The answer", body = HistogramDocument),
        (status = 400, description = "Invalid request", body = ErrorDocument),
        (status = 401, description = "No valid reader token", body = ErrorDocument),
        (status = 429, description = "Too many requests", body = ErrorDocument),
        (status = 503, description = "Too many requests are waiting", body = ErrorDocument),
    ),
    security(("reader" = []))
)]
pub(super) async fn histogram(
    State(api): State<Arc<Api>>,
    Asked(asked): Asked<HistogramParameters>,
) -> Result<Json<HistogramDocument>, Problem> {
    let question = asked.question(api.estimates.clock.now())?;
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

//! `/v1/totals`: what an interval of time comes to.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use twixt_history::{Row, SeriesKey, totals as total_rows};

use super::documents::{EstimateDocument, KnownLossDocument, TotalDocument, TotalsDocument};
use super::parameters::{Asked, TotalParameters};
use super::problem::Problem;
use super::{Api, ErrorDocument};

/// What an interval of time comes to: one estimate for each segment, class and algorithm.
#[utoipa::path(
    get,
    path = "/v1/totals",
    params(TotalParameters),
    responses(
        (status = 200, description = "The answer", body = TotalsDocument),
        (status = 400, description = "Invalid request", body = ErrorDocument),
        (status = 401, description = "No valid reader token", body = ErrorDocument),
        (status = 429, description = "Too many requests", body = ErrorDocument),
        (status = 503, description = "Too many requests are waiting", body = ErrorDocument),
    ),
    security(("reader" = []))
)]
pub(super) async fn totals(
    State(api): State<Arc<Api>>,
    Asked(asked): Asked<TotalParameters>,
) -> Result<Json<TotalsDocument>, Problem> {
    let question = asked.question(api.estimates.clock.now())?;
    let (range, step) = (question.span.into(), question.step.name().to_owned());
    let answer = api.ask(question).await?;
    let mut completeness = api.completeness(&answer);
    completeness.complete &= answer.next.is_none();
    let reason = answer.next.map(|_| {
        "there are more rows than one answer sums up: request a \
                                      shorter time, or a longer step"
            .to_owned()
    });
    let totals = api.read(move || totals_of(&answer.rows)).await?;
    Ok(Json(TotalsDocument { range, step, completeness, totals, reason }))
}

fn totals_of(rows: &[Row]) -> Vec<TotalDocument> {
    let mut known: BTreeMap<&SeriesKey, KnownLossDocument> = BTreeMap::new();
    for row in rows {
        if let (Some(packets), Some(range)) = (row.packets, row.loss_range()) {
            let sum = known.entry(&row.series).or_default();
            sum.packets = sum.packets.saturating_add(packets);
            sum.lost_min = sum.lost_min.saturating_add(range.min);
            sum.lost_max = sum.lost_max.saturating_add(range.max);
        }
    }
    let document = |row: &Row| TotalDocument {
        estimate: EstimateDocument::from(row),
        loss_known: known.get(&row.series).cloned(),
    };
    total_rows(rows).iter().map(document).collect()
}

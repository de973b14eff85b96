//! `/v1/heatmap`: how delays are distributed, epoch by epoch.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use twixt_history::{Row, RowAnswer};
use twixt_model::Histogram;

use super::documents::{HeatmapColumn, HeatmapDocument};
use super::parameters::{Asked, HeatmapParameters};
use super::problem::Problem;
use super::{Api, ErrorDocument};

/// Finest resolution of an answer: buckets are 2^(1/8) = 9 % wide, which is more than a picture shows.
const SCALE_MAX: u8 = 3;

/// How delays are distributed over time, by buckets.
#[utoipa::path(
    get,
    path = "/v1/heatmap",
    params(HeatmapParameters),
    responses(
        (status = 200, description = "The answer", body = HeatmapDocument),
        (status = 400, description = "Invalid request", body = ErrorDocument),
        (status = 401, description = "No valid reader token", body = ErrorDocument),
        (status = 429, description = "Too many requests", body = ErrorDocument),
        (status = 503, description = "Too many requests are waiting", body = ErrorDocument),
    ),
    security(("reader" = []))
)]
pub(super) async fn heatmap(
    State(api): State<Arc<Api>>,
    Asked(asked): Asked<HeatmapParameters>,
) -> Result<Json<HeatmapDocument>, Problem> {
    let question = asked.question(api.estimates.clock.now())?;
    let (range, step) = (question.span.into(), question.step.name().to_owned());
    let answer = api.ask(question).await?;
    let (scale, columns) = columns(&answer);
    let reason = columns.is_empty().then(|| match answer.rows.iter().all(Row::is_gap) {
        true => "no estimate is stored".to_owned(),
        false => "the algorithm keeps no delays of single packets".to_owned(),
    });
    Ok(Json(HeatmapDocument {
        range,
        step,
        completeness: api.completeness(&answer),
        scale,
        columns,
        reason,
        next: answer.next.map(|next| next.to_string()),
    }))
}

/// The columns, at one resolution for all of them.
fn columns(answer: &RowAnswer) -> (u8, Vec<HeatmapColumn>) {
    let histogram = |row: &Row| row.delay.as_ref()?.histogram();
    let kept: Vec<(&Row, Histogram)> =
        answer.rows.iter().filter_map(|row| Some((row, histogram(row)?))).collect();
    let finest = kept.iter().map(|(_, histogram)| histogram.scale()).min();
    let scale = finest.unwrap_or(SCALE_MAX).min(SCALE_MAX);
    (scale, kept.iter().map(|(row, histogram)| column(row, histogram, scale)).collect())
}

fn column(row: &Row, histogram: &Histogram, scale: u8) -> HeatmapColumn {
    let shift = histogram.scale() - scale;
    let mut first = 0;
    let mut packets: Vec<f64> = Vec::new(); // 64 doublings at most
    for (number, bucket) in histogram.buckets() {
        let number = number >> shift;
        if packets.is_empty() {
            first = number;
        }
        let place = usize::try_from(number - first).expect("buckets are in ascending order");
        packets.resize(packets.len().max(place + 1), 0.0);
        packets[place] += bucket.weight;
    }
    let inside: f64 = packets.iter().sum();
    HeatmapColumn {
        algorithm: row.series.algorithm.clone(),
        start_ns: row.start_ns,
        end_ns: row.end_ns,
        // What is left of a packet is rounding.
        not_positive: (histogram.weight() - inside).max(0.0).round(),
        first,
        packets: packets.iter().map(|packets| (packets * 10.0).round() / 10.0).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_merged_and_none_is_lost() {
        let mut histogram = Histogram::new(2_000);
        for value in [-5, 1_000, 1_001, 2_000, 1_000_000] {
            histogram.add(value, 2.0);
        }
        let column = column(&Row::default(), &histogram, SCALE_MAX);
        assert_eq!(column.not_positive, 2.0);
        assert_eq!(column.packets.iter().sum::<f64>(), 8.0);
        let bound = |number: i32| 2_f64.powf(f64::from(column.first + number) / 8.0);
        for (number, packets) in (0..).zip(&column.packets).filter(|(_, packets)| **packets > 0.0) {
            let values = [1_000.0, 1_001.0, 2_000.0, 1_000_000.0];
            // A bound of the histogram is off by up to 0.02 %.
            let (from, to) = (bound(number) * 0.999_8, bound(number + 1) * 1.000_2);
            let inside = values.iter().filter(|value| (from..to).contains(*value)).count();
            assert!(inside as f64 * 2.0 >= *packets, "{packets} packets from {from} to {to}");
        }
    }
}

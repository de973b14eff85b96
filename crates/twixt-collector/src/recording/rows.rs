//! What the engine tells, as rows.

use twixt_engine::{EngineEvent, Gap, PairEstimate, Series};
use twixt_history::{Row, SeriesKey};
use twixt_model::Span;

/// The rows of an event; none of those that are no news of a segment. Minutes are put together
/// from epochs, so the engine's own are not stored.
pub(super) fn of(event: &EngineEvent) -> Vec<Row> {
    match event {
        EngineEvent::Estimated(pair) => of_pair(pair),
        EngineEvent::Gap(gap) => vec![of_gap(gap)],
        _ => Vec::new(),
    }
}

fn of_pair(pair: &PairEstimate) -> Vec<Row> {
    let series = key(&pair.series);
    let row = |estimate| Row {
        realigned_epochs: Some(pair.realigned_epochs),
        moved: Some(pair.moved),
        ..Row::of_epoch(series.clone(), pair.epoch.0, pair.span, estimate)
    };
    pair.estimates.iter().map(row).collect()
}

fn of_gap(gap: &Gap) -> Row {
    let reason = match &gap.point {
        Some(point) => format!("{point}: {}", gap.reason),
        None => gap.reason.to_string(),
    };
    let Span { start, end } = gap.span;
    Row::of_gap(key(&gap.series), gap.first.0, Span { start, end }, gap.epochs(), reason)
}

/// A series as the history knows it.
pub(super) fn key(series: &Series) -> SeriesKey {
    SeriesKey {
        upstream: series.segment.upstream.0.clone(),
        downstream: series.segment.downstream.0.clone(),
        class: series.class.clone(),
        algorithm: series.algorithm.to_owned(),
        domain: series.domain.clone(),
        epoch_ns: series.epoch_ns.unwrap_or(0),
    }
}

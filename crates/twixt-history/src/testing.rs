//! Rows for tests.

use crate::row::{DelayPart, Quantile, Row, SeriesKey};

/// Epochs of a second, from this moment on: 2024-01-31T10:00:00Z.
pub(crate) const START_NS: i64 = 1_706_695_200_000_000_000;
pub(crate) const SECOND_NS: i64 = 1_000_000_000;

pub(crate) fn series(upstream: &str, downstream: &str) -> SeriesKey {
    SeriesKey {
        upstream: upstream.to_owned(),
        downstream: downstream.to_owned(),
        class: String::new(),
        algorithm: "lda".to_owned(),
        domain: "lab".to_owned(),
        epoch_ns: SECOND_NS,
    }
}

/// The row of the n-th epoch: 10 packets, of which one was lost, with delays around n µs.
pub(crate) fn row(upstream: &str, downstream: &str, number: i64) -> Row {
    let start_ns = START_NS + number * SECOND_NS;
    let series = series(upstream, downstream);
    Row {
        packets: Some(10),
        used: Some(9),
        lost: Some(1),
        delay: Some(DelayPart {
            count: 9,
            sum_ns: 9_000 * i128::from(number),
            squares_ns2: Some(900.0),
            half_width_ns: Some(3.0),
            min_ns: Some(1_000 * number - 20),
            quantiles: [Quantile::of(1_000 * number); 4],
            max_ns: Some(1_000 * number + 20),
            histogram: None,
            steps: None,
        }),
        clock_error_ns: Some(500),
        realigned_epochs: Some(0),
        moved: Some(2),
        ..Row::untold(series, start_ns / SECOND_NS)
    }
}

/// The n-th epoch, of which nothing is known.
pub(crate) fn gap(upstream: &str, downstream: &str, number: i64) -> Row {
    let row = row(upstream, downstream, number);
    let (first, span) = (row.epoch.unwrap_or(0), row.span());
    Row::of_gap(row.series, first, span, 1, "nobody knows".to_owned())
}

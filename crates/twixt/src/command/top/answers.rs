//! Documents of the query API, as the view takes them.

use std::collections::BTreeSet;

use twixt_collector::api::{EstimateDocument, HeatmapColumn, HeatmapDocument, TotalDocument};
use twixt_top::{CellName, HeatColumn, HeatMap, TopDelay, TopEstimate};

pub(super) fn total(document: &TotalDocument) -> TopEstimate {
    let mut estimate = estimate(&document.estimate);
    // Where one epoch does not know its loss, that of the others is shown.
    if let (None, Some(known)) = (document.estimate.lost, &document.loss_known) {
        estimate.packets = Some(known.packets);
        estimate.lost = Some((known.lost_min, known.lost_max));
    }
    estimate
}

pub(super) fn estimate(document: &EstimateDocument) -> TopEstimate {
    let of = document;
    let delay = |value_ns, low_ns, high_ns| TopDelay { value_ns, low_ns, high_ns };
    TopEstimate {
        cell: cell(of),
        scope: of.scope.clone(),
        algorithm: of.algorithm.clone(),
        used: of.used,
        packets: of.packets,
        lost: of.lost.zip(of.lost).or(of.lost_min.zip(of.lost_max)),
        mean: delay(of.mean_ns, of.ci95_low_ns, of.ci95_high_ns),
        p50: delay(of.p50_ns, of.p50_low_ns, of.p50_high_ns),
        p95: delay(of.p95_ns, of.p95_low_ns, of.p95_high_ns),
        p99: delay(of.p99_ns, of.p99_low_ns, of.p99_high_ns),
        reason: of.reason.clone(),
    }
}

fn cell(of: &EstimateDocument) -> CellName {
    CellName {
        upstream: of.upstream.clone(),
        downstream: of.downstream.clone(),
        class: of.class.clone(),
    }
}

/// The columns of the algorithm that has most of them: those of several would hide each other.
pub(super) fn heat(document: &HeatmapDocument, span_ns: (i64, i64)) -> Result<HeatMap, String> {
    let count = |name: &str| document.columns.iter().filter(|of| of.algorithm == name).count();
    let names = document.columns.iter().map(|column| column.algorithm.as_str());
    let Some(best) = names.collect::<BTreeSet<_>>().into_iter().max_by_key(|name| count(name))
    else {
        let reason = document.reason.clone();
        return Err(reason.unwrap_or_else(|| "no estimate is stored for this time".to_owned()));
    };
    let column = |column: &HeatmapColumn| HeatColumn {
        start_ns: column.start_ns,
        end_ns: column.end_ns,
        first: column.first,
        packets: column.packets.clone(),
    };
    let best_columns = document.columns.iter().filter(|of| of.algorithm == best);
    Ok(HeatMap { span_ns, scale: document.scale, columns: best_columns.map(column).collect() })
}

#[cfg(test)]
mod tests {
    use twixt_collector::api::KnownLossDocument;

    use super::*;

    #[test]
    fn the_loss_that_is_known_counts_where_that_of_all_is_not() {
        let known = KnownLossDocument { packets: 80, lost_min: 2, lost_max: 3 };
        let check = |lost, expected| {
            let packets = Some(100);
            let document = TotalDocument {
                estimate: EstimateDocument { packets, lost, ..EstimateDocument::default() },
                loss_known: Some(known.clone()),
            };
            let total = total(&document);
            assert_eq!((total.packets.unwrap(), total.lost.unwrap()), expected);
        };
        check(Some(7), (100, (7, 7)));
        check(None, (80, (2, 3)));
    }

    #[test]
    fn a_heat_map_is_of_one_algorithm() {
        let column = |algorithm: &str, start_ns| HeatmapColumn {
            algorithm: algorithm.to_owned(),
            start_ns,
            ..HeatmapColumn::default()
        };
        let columns = vec![column("sample", 1), column("exact", 1), column("sample", 2)];
        let document = HeatmapDocument { columns, ..HeatmapDocument::default() };
        let map = heat(&document, (0, 9)).unwrap();
        assert_eq!(map.columns.iter().map(|column| column.start_ns).collect::<Vec<_>>(), [1, 2]);
        assert!(heat(&HeatmapDocument::default(), (0, 9)).is_err());
    }
}

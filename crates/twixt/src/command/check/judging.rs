//! What was remembered, beside thresholds.

use std::collections::BTreeSet;

use serde::Serialize;
use twixt_collector::alerts::{Measure, Thresholds};
use twixt_collector::api::{EstimateDocument, HistogramDocument};

use crate::args::Threshold;

/// How it stands; the worst is the largest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum State {
    Ok,
    Unknown,
    Critical,
}

/// A measure of a class, beside its threshold.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Finding {
    pub(super) state: State,
    pub(super) class: String,
    /// Of a point.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) kind: Option<String>,
    pub(super) algorithm: Option<String>,
    pub(super) measure: String,
    /// `ns` or `share`: what `value` and `fail_above` are.
    pub(super) unit: &'static str,
    pub(super) value: Option<f64>,
    /// The ends of its 95 % interval, of a point.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) interval: Option<(f64, f64)>,
    pub(super) fail_above: f64,
    pub(super) packets: Option<u64>,
    pub(super) reason: Option<String>,
}

/// Every threshold, for every class that there is. Of several algorithms that know, the one that
/// says the most speaks.
pub(super) fn judge(
    document: &HistogramDocument,
    thresholds: &[Threshold],
    minimum_packets: u64,
) -> Vec<Finding> {
    let classes: BTreeSet<&str> = document.total.iter().map(|row| row.class.as_str()).collect();
    let classes = if classes.is_empty() { BTreeSet::from([""]) } else { classes };
    let mut findings = Vec::new();
    for class in classes {
        let rows: Vec<&EstimateDocument> =
            document.total.iter().filter(|row| row.class == class).collect();
        for threshold in thresholds {
            findings.push(match threshold.measure {
                Measure::Gaps => of_gaps(document, class, *threshold),
                _ => of_rows(&rows, class, *threshold, minimum_packets),
            });
        }
    }
    findings
}

fn of_rows(
    rows: &[&EstimateDocument],
    class: &str,
    threshold: Threshold,
    minimum_packets: u64,
) -> Finding {
    let measure = threshold.measure;
    let is_enough = |row: &&&EstimateDocument| evidence(row, measure) >= minimum_packets;
    let known =
        rows.iter().filter(is_enough).filter_map(|row| Some((value(row, threshold)?, *row)));
    let largest = known.max_by(|(one, _), (other, _)| one.total_cmp(other));
    let mut finding = Finding::new(class, threshold, largest.map(|(value, _)| value));
    finding.packets = rows.iter().filter_map(|row| row.packets).max();
    finding.algorithm = largest.map(|(_, row)| row.algorithm.clone());
    if largest.is_none() {
        let reason = rows.iter().find_map(|row| row.reason.clone());
        finding.reason = Some(match rows.iter().find(|row| evidence(row, measure) > 0) {
            None => "no estimate stored for that time".to_owned(),
            Some(row) if evidence(row, measure) < minimum_packets => "too few packets".to_owned(),
            Some(_) => reason.unwrap_or_else(|| format!("{measure} is unknown")),
        });
    }
    finding
}

/// A time of which nothing is stored at all is unknown: the name may be wrong.
fn of_gaps(document: &HistogramDocument, class: &str, threshold: Threshold) -> Finding {
    let (epochs, gaps) = (document.completeness.epochs, document.completeness.gaps);
    let all = epochs.saturating_add(gaps);
    let value = (all > 0).then(|| gaps as f64 / all as f64);
    let mut finding = Finding::new(class, threshold, value);
    finding.reason = value.is_none().then(|| "no estimate stored for that time".to_owned());
    finding
}

impl Finding {
    fn new(class: &str, threshold: Threshold, value: Option<f64>) -> Self {
        let Threshold { measure, above } = threshold;
        Self {
            state: match value {
                None => State::Unknown,
                Some(value) if value > above => State::Critical,
                Some(_) => State::Ok,
            },
            class: class.to_owned(),
            kind: None,
            algorithm: None,
            measure: measure.name().to_owned(),
            unit: if measure.is_time() { "ns" } else { "share" },
            value,
            interval: None,
            fail_above: above,
            packets: None,
            reason: None,
        }
    }
}

/// Packets that a measure rests on.
fn evidence(row: &EstimateDocument, measure: Measure) -> u64 {
    let packets = if measure == Measure::Loss { row.packets } else { row.used };
    packets.unwrap_or(0)
}

fn value(row: &EstimateDocument, threshold: Threshold) -> Option<f64> {
    let time = |time_ns: Option<i64>| time_ns.map(|time_ns| time_ns as f64);
    match threshold.measure {
        Measure::Mean => time(row.mean_ns),
        Measure::Deviation => time(row.stddev_ns),
        Measure::P50 => time(row.p50_ns),
        Measure::P95 => time(row.p95_ns),
        Measure::P99 => time(row.p99_ns),
        Measure::P999 => time(row.p999_ns),
        Measure::Jitter => time(row.jitter_ns),
        Measure::Loss => {
            let packets = row.packets.filter(|packets| *packets > 0)?;
            let share = |lost: u64| lost as f64 / packets as f64;
            let thresholds = Thresholds { above: threshold.above, clear_below: None };
            match row.lost {
                Some(lost) => Some(share(lost)),
                None => thresholds.decided_by(share(row.lost_min?), share(row.lost_max?)),
            }
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(class: &str, algorithm: &str, used: u64, mean_ns: Option<i64>) -> EstimateDocument {
        EstimateDocument {
            class: class.to_owned(),
            algorithm: algorithm.to_owned(),
            epochs: 1,
            packets: Some(used + 1),
            used: Some(used),
            lost: Some(1),
            mean_ns,
            ..EstimateDocument::default()
        }
    }

    #[track_caller]
    fn check(rows: Vec<EstimateDocument>, threshold: &str, expected: &[(State, &str)]) {
        let mut document = HistogramDocument {
            range: Default::default(),
            completeness: Default::default(),
            total: rows,
            buckets: None,
            reason: None,
        };
        document.completeness.epochs = 3;
        document.completeness.gaps = 1;
        let findings = judge(&document, &[threshold.parse().unwrap()], 10);
        let found: Vec<(State, &str)> =
            findings.iter().map(|finding| (finding.state, finding.class.as_str())).collect();
        assert_eq!(found, expected, "{findings:?}");
    }

    #[test]
    fn the_worst_that_is_known_counts() {
        let rows = || vec![row("a", "lda", 50, Some(5_000_001)), row("b", "lda", 50, Some(1))];
        check(rows(), "mean=5ms", &[(State::Critical, "a"), (State::Ok, "b")]);
        let rows = vec![row("", "lda", 50, Some(1)), row("", "sample", 50, None)];
        check(rows, "mean=5ms", &[(State::Ok, "")]);
        check(vec![row("", "lda", 9, Some(6_000_000))], "mean=5ms", &[(State::Unknown, "")]);
        check(vec![row("", "lda", 49, None)], "p99=5ms", &[(State::Unknown, "")]);
        check(vec![row("", "lda", 49, None)], "loss=2%", &[(State::Ok, "")]);
        check(vec![row("", "lda", 48, None)], "loss=2%", &[(State::Critical, "")]);
        check(vec![], "mean=5ms", &[(State::Unknown, "")]);
        let between = |lost_min, lost_max| EstimateDocument {
            lost: None,
            lost_min: Some(lost_min),
            lost_max: Some(lost_max),
            ..row("", "lda", 99, None)
        };
        check(vec![between(0, 2)], "loss=2%", &[(State::Ok, "")]);
        check(vec![between(1, 3)], "loss=2%", &[(State::Unknown, "")]);
        check(vec![between(3, 9)], "loss=2%", &[(State::Critical, "")]);
        check(vec![], "gaps=24%", &[(State::Critical, "")]);
    }
}

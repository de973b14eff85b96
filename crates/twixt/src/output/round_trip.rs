//! Round trips: the JSON document and the table for people.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};
use twixt_model::{Percentile, RoundTripEstimate, RoundTripSample, Scope, Span};

use super::human::{Table, UNKNOWN};
use super::units;
use crate::args::Chosen;
use crate::command::Watched;

/// `twixt rtt -F json`.
#[derive(Serialize)]
pub(crate) struct RoundTripDocument {
    algorithm: &'static str,
    config: toml::Table,
    synopsis_bytes: u64,
    packets: u64,
    skipped: BTreeMap<String, u64>,
    dropped: Option<u64>,
    start_ns: Option<i64>,
    end_ns: Option<i64>,
    kinds: Vec<KindDocument>,
    /// Where time was cut.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    epochs: Vec<EpochDocument>,
}

#[derive(Serialize)]
struct EpochDocument {
    start_ns: i64,
    end_ns: i64,
    kinds: Vec<KindDocument>,
}

/// Round trips of one kind.
#[derive(Clone, Debug, Serialize)]
struct KindDocument {
    kind: &'static str,
    requests: Option<u64>,
    responses: Option<u64>,
    #[serde(flatten)]
    times: TimesDocument,
    ambiguous: Option<u64>,
    population: &'static str,
    cdf: Vec<(i64, f64)>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    groups: Vec<GroupDocument>,
}

/// Round trips of one kind and group.
#[derive(Clone, Debug, Serialize)]
struct GroupDocument {
    scope: String,
    #[serde(flatten)]
    times: TimesDocument,
}

/// How long they took.
#[derive(Clone, Debug, Serialize)]
struct TimesDocument {
    matched: u64,
    weighted: f64,
    mean_ns: Option<i64>,
    stddev_ns: Option<i64>,
    ci95_low_ns: Option<i64>,
    ci95_high_ns: Option<i64>,
    min_ns: Option<i64>,
    max_ns: Option<i64>,
    /// `p50_ns` and so on.
    percentiles: Map<String, Value>,
    /// Lower and upper end of the 95 % interval of each.
    percentiles_ci95: Map<String, Value>,
    horizon_ns: Option<i64>,
    reason: Option<&'static str>,
}

impl RoundTripDocument {
    /// Of what was concluded at a point.
    pub(crate) fn new(algorithm: &'static str, chosen: &Chosen, watched: &Watched) -> Self {
        Self {
            algorithm,
            config: chosen.prototype.config(),
            synopsis_bytes: watched.synopsis_bytes.max(chosen.prototype.state_bytes()),
            packets: watched.counts.packets,
            skipped: watched.counts.skipped.clone(),
            dropped: watched.counts.dropped,
            start_ns: watched.span.map(|span| span.start.as_nanos()),
            end_ns: watched.span.map(|span| span.end.as_nanos()),
            kinds: kinds(&watched.whole),
            epochs: watched
                .epochs
                .iter()
                .map(|epoch| EpochDocument {
                    start_ns: epoch.span.start.as_nanos(),
                    end_ns: epoch.span.end.as_nanos(),
                    kinds: kinds(&epoch.estimates),
                })
                .collect(),
        }
    }

    /// Whether any was found.
    pub(crate) fn has_round_trips(&self) -> bool {
        self.kinds.iter().any(|kind| kind.times.matched > 0)
    }

    /// What the user should know before believing the numbers.
    pub(crate) fn warnings(&self) -> impl Iterator<Item = String> {
        self.kinds.iter().filter_map(|kind| {
            let (horizon_ns, p99_ns) = (kind.times.horizon_ns?, kind.times.percentile_ns(0.99)?);
            (p99_ns > horizon_ns).then(|| {
                format!(
                    "{}: p99 lies beyond the horizon of {}: give more --memory",
                    kind.kind,
                    units::duration(horizon_ns as f64)
                )
            })
        })
    }

    /// One row for each epoch, kind and group.
    pub(crate) fn rows(&self) -> impl Iterator<Item = Row> {
        let whole = (self.start_ns.unwrap_or(0), self.end_ns.unwrap_or(0), &self.kinds);
        let epochs = self.epochs.iter().map(|epoch| (epoch.start_ns, epoch.end_ns, &epoch.kinds));
        let whole = self.epochs.is_empty().then_some(whole);
        epochs.chain(whole).flat_map(|(start_ns, end_ns, kinds)| {
            let span = Span {
                start: twixt_model::Timestamp::from_nanos(start_ns),
                end: twixt_model::Timestamp::from_nanos(end_ns),
            };
            kinds.iter().flat_map(move |kind| Row::of(kind, span))
        })
    }
}

/// Estimates as the algorithm gives them: each kind, followed by its groups.
fn kinds(estimates: &[RoundTripEstimate]) -> Vec<KindDocument> {
    let mut kinds: Vec<KindDocument> = Vec::new();
    for estimate in estimates {
        match (&estimate.scope, kinds.last_mut()) {
            (Scope::All, _) => kinds.push(KindDocument::new(estimate)),
            (scope, Some(kind)) => kind.groups.push(GroupDocument {
                scope: scope.to_string(),
                times: TimesDocument::new(estimate),
            }),
            (_, None) => {}
        }
    }
    kinds
}

impl KindDocument {
    fn new(estimate: &RoundTripEstimate) -> Self {
        Self {
            kind: estimate.kind.name(),
            requests: estimate.requests,
            responses: estimate.responses,
            times: TimesDocument::new(estimate),
            ambiguous: estimate.ambiguous,
            population: estimate.kind.population(),
            cdf: estimate.times.as_ref().map(|times| times.cdf.clone()).unwrap_or_default(),
            groups: Vec::new(),
        }
    }
}

impl TimesDocument {
    fn new(estimate: &RoundTripEstimate) -> Self {
        let times = estimate.times.as_ref();
        let round = |value: f64| value.round() as i64;
        let key = |share: f64| format!("p{}_ns", share.to_string().trim_start_matches("0."));
        let each = |value: &dyn Fn(&Percentile) -> Value| {
            let unknown = || Percentile::SHARES.map(|share| (key(share), Value::Null)).to_vec();
            let known = |times: &twixt_model::RoundTripTimes| -> Vec<(String, Value)> {
                times.percentiles.iter().map(|found| (key(found.share), value(found))).collect()
            };
            times.map_or_else(unknown, known).into_iter().map(p50_not_p5).collect()
        };
        Self {
            matched: estimate.matched,
            weighted: estimate.weighted,
            mean_ns: times.map(|times| round(times.mean_ns)),
            stddev_ns: times.map(|times| round(times.deviation_ns)),
            ci95_low_ns: times.map(|times| round(times.mean_ns - times.half_width_ns)),
            ci95_high_ns: times.map(|times| round(times.mean_ns + times.half_width_ns)),
            min_ns: times.map(|times| times.min_ns),
            max_ns: times.map(|times| times.max_ns),
            percentiles: each(&|found| found.time_ns.into()),
            percentiles_ci95: each(&|found| vec![found.low_ns, found.high_ns].into()),
            horizon_ns: estimate.horizon_ns,
            reason: times.is_none().then_some("no request met its response"),
        }
    }

    fn percentile_ns(&self, share: f64) -> Option<i64> {
        let at = Percentile::SHARES.iter().position(|&known| known == share)?;
        self.percentiles.values().nth(at)?.as_i64()
    }
}

/// Shares are written without trailing zeros: 0.5 is p50, 0.9 is p90.
fn p50_not_p5((key, value): (String, Value)) -> (String, Value) {
    match key.as_str() {
        "p5_ns" => ("p50_ns".to_owned(), value),
        "p9_ns" => ("p90_ns".to_owned(), value),
        _ => (key, value),
    }
}

/// A flat row: one kind of one group in one epoch.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    scope: String,
    kind: &'static str,
    requests: Option<u64>,
    responses: Option<u64>,
    matched: u64,
    weighted: f64,
    mean_ns: Option<i64>,
    stddev_ns: Option<i64>,
    ci95_low_ns: Option<i64>,
    ci95_high_ns: Option<i64>,
    min_ns: Option<i64>,
    max_ns: Option<i64>,
    #[serde(flatten)]
    percentiles: Map<String, Value>,
    horizon_ns: Option<i64>,
    start_ns: i64,
    end_ns: i64,
    reason: Option<&'static str>,
}

impl Row {
    fn of(kind: &KindDocument, span: Span) -> Vec<Self> {
        let row = |scope: &str, times: &TimesDocument| Self {
            scope: scope.to_owned(),
            kind: kind.kind,
            requests: None,
            responses: None,
            matched: times.matched,
            weighted: times.weighted,
            mean_ns: times.mean_ns,
            stddev_ns: times.stddev_ns,
            ci95_low_ns: times.ci95_low_ns,
            ci95_high_ns: times.ci95_high_ns,
            min_ns: times.min_ns,
            max_ns: times.max_ns,
            percentiles: times.percentiles.clone(),
            horizon_ns: times.horizon_ns,
            start_ns: span.start.as_nanos(),
            end_ns: span.end.as_nanos(),
            reason: times.reason,
        };
        let (requests, responses) = (kind.requests, kind.responses);
        let all = Self { requests, responses, ..row("all", &kind.times) };
        let groups = kind.groups.iter().map(|group| row(&group.scope, &group.times));
        [all].into_iter().chain(groups).collect()
    }
}

/// One round trip, as it was found.
#[derive(Debug, Serialize)]
pub(crate) struct SampleRow {
    time_ns: i64,
    scope: String,
    kind: &'static str,
    rtt_ns: i64,
    weight: f64,
}

impl SampleRow {
    /// First line of comma-separated values.
    pub(crate) const HEADER: &'static str = "time_ns,scope,kind,rtt_ns,weight";

    pub(crate) fn new(sample: &RoundTripSample) -> Self {
        Self {
            time_ns: sample.time.as_nanos(),
            scope: sample.key.to_string(),
            kind: sample.kind.name(),
            rtt_ns: sample.rtt_ns,
            weight: sample.weight,
        }
    }
}

/// A table for people: kinds, then groups of each, largest first.
pub(crate) fn round_trip_report(name: &str, document: &RoundTripDocument, rows: usize) -> String {
    let mut report =
        format!("{name}   ({}, {})\n\n", document.algorithm, units::bytes(document.synopsis_bytes));
    let series = document.epochs.iter().flat_map(|epoch| {
        epoch.kinds.iter().map(|kind| {
            let start = twixt_model::Timestamp::from_nanos(epoch.start_ns);
            (format!("{}  {}", kind.kind, units::moment(start)), &kind.times)
        })
    });
    let kinds = document.kinds.iter().map(|kind| (kind.kind.to_owned(), &kind.times));
    let groups = document.kinds.iter().flat_map(|kind| {
        kind.groups.iter().map(|group| (format!("{}  {}", kind.kind, group.scope), &group.times))
    });
    report += &table(kinds).to_string();
    let more: Vec<(String, &TimesDocument)> = series.chain(groups).collect();
    if !more.is_empty() {
        report += &format!("\n{}", table(more.iter().take(rows).cloned()));
    }
    if more.len() > rows {
        let left = units::count((more.len() - rows) as u64);
        report += &format!("… and {left} more; --rows-shown shows more, -F csv all\n");
    }
    report + "\n" + &shapes(document) + &footer(document)
}

fn table<'a>(rows: impl Iterator<Item = (String, &'a TimesDocument)>) -> Table {
    let mut table = Table::new(&[
        "kind",
        "measured",
        "of about",
        "mean ± 95 %",
        "deviation",
        "p50",
        "p95",
        "p99",
        "p99.9",
    ]);
    for (name, times) in rows {
        let shown = |value: Option<i64>| {
            value.map_or_else(|| UNKNOWN.to_owned(), |ns| units::duration(ns as f64))
        };
        let mean = match (times.mean_ns, times.ci95_high_ns) {
            (Some(mean), Some(high)) if high > mean => {
                format!("{} ± {}", shown(Some(mean)), shown(Some(high - mean)))
            }
            (mean, _) => shown(mean),
        };
        let mut cells = vec![
            name,
            units::count(times.matched),
            units::count(times.weighted.round() as u64),
            mean,
            shown(times.stddev_ns),
        ];
        cells.extend([0.5, 0.95, 0.99, 0.999].map(|share| shown(times.percentile_ns(share))));
        table.row(cells);
    }
    table
}

/// Where round trips lie, between the shortest and the longest, on a scale of equal ratios.
fn shapes(document: &RoundTripDocument) -> String {
    let known = document.kinds.iter().filter(|kind| kind.cdf.len() > 1);
    let lines: Vec<String> =
        known.filter_map(|kind| Some(format!("{:<15}{}\n", kind.kind, shape(kind)?))).collect();
    if lines.is_empty() { String::new() } else { lines.concat() + "\n" }
}

fn shape(kind: &KindDocument) -> Option<String> {
    const COLUMNS: usize = 40;
    const BARS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let (low, high) = (kind.times.min_ns?.max(1) as f64, kind.times.max_ns?.max(1) as f64);
    if high <= low {
        return None;
    }
    let column = |ns: i64| {
        let position = (ns.max(1) as f64 / low).ln() / (high / low).ln();
        ((position * COLUMNS as f64) as usize).min(COLUMNS - 1)
    };
    let mut shares = [0.0; COLUMNS];
    let mut before = 0.0;
    for &(ns, up_to) in &kind.cdf {
        shares[column(ns)] += up_to - before;
        before = up_to;
    }
    let most = shares.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let bar = |share: &f64| BARS[(share / most * 8.0).ceil().min(8.0) as usize];
    let (low, high) = (units::duration(low), units::duration(high));
    Some(format!("{low:>10} {} {high}", shares.iter().map(bar).collect::<String>()))
}

fn footer(document: &RoundTripDocument) -> String {
    let mut footer = String::new();
    let horizons =
        document.kinds.iter().filter_map(|kind| Some((kind.kind, kind.times.horizon_ns?)));
    if let Some((kind, horizon_ns)) = horizons.min_by_key(|(_, horizon_ns)| *horizon_ns) {
        let horizon = units::duration(horizon_ns as f64);
        footer += &format!("horizon    nothing beyond {horizon} is to be trusted ({kind})\n");
    }
    for kind in &document.kinds {
        if let Some(ambiguous) = kind.ambiguous.filter(|&ambiguous| ambiguous > 0) {
            let ambiguous = units::count(ambiguous);
            footer += &format!("ambiguous  {ambiguous} packets of {} were not used\n", kind.kind);
        }
    }
    let skipped: Vec<String> = document
        .skipped
        .iter()
        .map(|(reason, frames)| format!("{} {reason}", units::count(*frames)))
        .collect();
    if !skipped.is_empty() {
        footer += &format!("skipped    {}\n", skipped.join(", "));
    }
    footer
}

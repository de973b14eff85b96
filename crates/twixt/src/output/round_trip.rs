//! Round trips: the JSON document and its rows.

mod report;

pub(crate) use report::{round_trip_report, round_trip_table};

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};
use twixt_model::{
    FirstByteWait, Percentile, RoundTripEstimate, RoundTripPart, RoundTripSample, RoundTripTimes,
    Scope, Span, SpinUse, WaitedFor,
};
use twixt_offline::ChosenAlgorithm;

use super::{ScopeColumns, units};
use crate::command::{Watched, WatchedEpoch};

/// Why there is a mean without an interval.
const NO_INTERVAL: &str =
    "no interval: a plain table loses long round trips, and does not know how many";

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
    forgotten_flows: Option<u64>,
    population: &'static str,
    cdf: Vec<(i64, f64)>,
    /// Toward servers and clients, or by protocol.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parts: Vec<PartDocument>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    groups: Vec<GroupDocument>,
    /// What clients waited for until a response began.
    #[serde(skip_serializing_if = "Option::is_none")]
    first_byte: Option<FirstByteDocument>,
    /// Connections by what their spin bit does.
    #[serde(skip_serializing_if = "Option::is_none")]
    spin_use: Option<SpinUseDocument>,
}

/// Round trips of one part of a kind.
#[derive(Clone, Debug, Serialize)]
struct PartDocument {
    part: &'static str,
    #[serde(flatten)]
    times: TimesDocument,
}

/// Means over responses of connections of which both legs are known.
#[derive(Clone, Debug, Serialize)]
struct FirstByteDocument {
    responses: u64,
    wait_mean_ns: u64,
    toward_clients_at_least_ns: u64,
    toward_servers_at_least_ns: u64,
    server_at_least_ns: u64,
    server_at_most_ns: u64,
    /// `null` if neither took more than half of the wait for certain.
    mostly: Option<&'static str>,
}

#[derive(Clone, Debug, Serialize)]
struct SpinUseDocument {
    connections: u64,
    usable: u64,
    constant: u64,
    random: u64,
    undecided: u64,
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
    pub(crate) fn new(
        chosen: &ChosenAlgorithm,
        watched: &Watched,
        epochs: &[WatchedEpoch],
    ) -> Self {
        Self {
            algorithm: chosen.algorithm.name,
            config: chosen.prototype.config(),
            synopsis_bytes: watched.synopsis_bytes.max(chosen.prototype.state_bytes()),
            packets: watched.counts.packets,
            skipped: watched.counts.skipped.clone(),
            dropped: watched.counts.dropped,
            start_ns: watched.span.map(|span| span.start.as_nanos()),
            end_ns: watched.span.map(|span| span.end.as_nanos()),
            kinds: kinds(&watched.whole),
            epochs: epochs.iter().map(EpochDocument::new).collect(),
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
                    "{}: p99 lies beyond the horizon of {}: use more --memory",
                    kind.kind,
                    units::duration(horizon_ns as f64)
                )
            })
        })
    }
}

impl EpochDocument {
    fn new(epoch: &WatchedEpoch) -> Self {
        Self {
            start_ns: epoch.span.start.as_nanos(),
            end_ns: epoch.span.end.as_nanos(),
            kinds: kinds(&epoch.estimates),
        }
    }
}

/// One row for each kind and group of an epoch, or of the whole.
pub(crate) fn round_trip_rows(
    span: Span,
    estimates: &[RoundTripEstimate],
) -> impl Iterator<Item = Row> {
    kinds(estimates).into_iter().flat_map(move |kind| Row::of(&kind, span))
}

/// Estimates as the algorithm gives them: each kind, followed by its groups.
fn kinds(estimates: &[RoundTripEstimate]) -> Vec<KindDocument> {
    let mut kinds: Vec<KindDocument> = Vec::new();
    for estimate in estimates {
        match (&estimate.scope, kinds.last_mut()) {
            (Scope::All, Some(kind)) if estimate.part.is_some() => {
                let part = estimate.part.map_or("", RoundTripPart::name);
                kind.parts.push(PartDocument { part, times: TimesDocument::new(estimate) });
            }
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
            forgotten_flows: estimate.forgotten_flows,
            population: estimate.kind.population(),
            cdf: estimate.times.as_ref().map(|times| times.cdf.clone()).unwrap_or_default(),
            parts: Vec::new(),
            groups: Vec::new(),
            first_byte: estimate.first_byte.map(|wait| FirstByteDocument::new(&wait)),
            spin_use: estimate.spin_use.map(SpinUseDocument::new),
        }
    }
}

impl FirstByteDocument {
    fn new(wait: &FirstByteWait) -> Self {
        let mean = |sum_ns: u64| sum_ns / wait.responses.max(1);
        Self {
            responses: wait.responses,
            wait_mean_ns: mean(wait.total_ns()),
            toward_clients_at_least_ns: mean(wait.toward_clients_ns),
            toward_servers_at_least_ns: mean(wait.toward_servers_ns),
            server_at_least_ns: mean(wait.server_ns_min),
            server_at_most_ns: mean(wait.server_ns_max()),
            mostly: wait.mostly().map(|who| match who {
                WaitedFor::Network => "network",
                WaitedFor::Server => "server",
            }),
        }
    }
}

impl SpinUseDocument {
    fn new(uses: SpinUse) -> Self {
        let SpinUse { usable, constant, random, undecided } = uses;
        Self { connections: uses.connections(), usable, constant, random, undecided }
    }
}

impl TimesDocument {
    fn new(estimate: &RoundTripEstimate) -> Self {
        let times = estimate.times.as_ref();
        let round = |value: f64| value.round() as i64;
        let half_width_ns = times.and_then(|times| times.half_width_ns);
        let mean_plus = |half_ns: f64| times.map(|times| round(times.mean_ns + half_ns));
        Self {
            matched: estimate.matched,
            weighted: estimate.weighted,
            mean_ns: times.map(|times| round(times.mean_ns)),
            stddev_ns: times.map(|times| round(times.deviation_ns)),
            ci95_low_ns: half_width_ns.and_then(|half_ns| mean_plus(-half_ns)),
            ci95_high_ns: half_width_ns.and_then(mean_plus),
            min_ns: times.map(|times| times.min_ns),
            max_ns: times.map(|times| times.max_ns),
            percentiles: percentiles(times, |found| found.time_ns.into()),
            percentiles_ci95: percentiles(times.filter(|_| half_width_ns.is_some()), |found| {
                vec![found.low_ns, found.high_ns].into()
            }),
            horizon_ns: estimate.horizon_ns,
            reason: match (times, half_width_ns) {
                (None, _) => Some("no request was matched with a response"),
                (Some(_), None) => Some(NO_INTERVAL),
                (Some(_), Some(_)) => None,
            },
        }
    }

    fn percentile_ns(&self, share: f64) -> Option<i64> {
        let at = Percentile::SHARES.iter().position(|&known| known == share)?;
        self.percentiles.values().nth(at)?.as_i64()
    }
}

/// Keys of [`Percentile::SHARES`].
const PERCENTILE_KEYS: [&str; 5] = ["p50_ns", "p90_ns", "p95_ns", "p99_ns", "p999_ns"];

fn percentiles(
    times: Option<&RoundTripTimes>,
    value: impl Fn(&Percentile) -> Value,
) -> Map<String, Value> {
    let known = |at: usize| times.and_then(|times| times.percentiles.get(at)).map(&value);
    let numbered = PERCENTILE_KEYS.iter().enumerate();
    numbered.map(|(at, key)| ((*key).to_owned(), known(at).unwrap_or(Value::Null))).collect()
}

/// A flat row: one kind of one group in one epoch.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    /// A part of a kind has its name as scope too: `all` stands once for each kind.
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
    part: Option<&'static str>,
    #[serde(flatten)]
    columns: ScopeColumns,
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
            part: None,
            columns: ScopeColumns::of_text(scope),
        };
        let (requests, responses) = (kind.requests, kind.responses);
        let all = Self { requests, responses, ..row("all", &kind.times) };
        let parts = kind.parts.iter();
        let parts = parts.map(|of| Self { part: Some(of.part), ..row(of.part, &of.times) });
        let groups = kind.groups.iter().map(|group| row(&group.scope, &group.times));
        [all].into_iter().chain(parts).chain(groups).collect()
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
    part: Option<&'static str>,
    #[serde(flatten)]
    columns: ScopeColumns,
}

impl SampleRow {
    pub(crate) fn new(sample: &RoundTripSample) -> Self {
        Self {
            time_ns: sample.time.as_nanos(),
            scope: sample.key.to_string(),
            kind: sample.kind.name(),
            rtt_ns: sample.rtt_ns,
            weight: sample.weight,
            part: sample.part.map(RoundTripPart::name),
            columns: (&sample.key).into(),
        }
    }
}

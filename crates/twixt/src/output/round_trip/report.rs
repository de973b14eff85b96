//! Round trips as a table for people, with the shape of each distribution.

use twixt_model::{RoundTripKind, RoundTripPart, Timestamp};

use super::{
    EpochDocument, FirstByteDocument, KindDocument, RoundTripDocument, SpinUseDocument,
    TimesDocument,
};
use crate::command::WatchedEpoch;
use crate::output::human::UNKNOWN;
use crate::output::shape::distribution;
use crate::output::table::Table;
use crate::output::units;

/// A table for people: kinds, then groups of each, largest first.
pub(crate) fn round_trip_report(name: &str, document: &RoundTripDocument, rows: usize) -> String {
    let mut report =
        format!("{name}   ({}, {})\n\n", document.algorithm, units::bytes(document.synopsis_bytes));
    let kinds = document.kinds.iter().flat_map(|kind| {
        let parts = kind.parts.iter().map(|of| (format!("  {}", of.part), &of.times));
        [(kind.kind.to_owned(), &kind.times)].into_iter().chain(parts)
    });
    report += &table(kinds).to_string();
    let series = document.epochs.iter().flat_map(series);
    let more: Vec<(String, &TimesDocument)> = series.chain(groups(&document.kinds)).collect();
    if !more.is_empty() {
        report += &format!("\n{}", first_rows(&more, rows));
    }
    report + "\n" + &shapes(document) + &footer(document)
}

/// A table of one epoch for people: kinds, then groups of each, largest first.
pub(crate) fn round_trip_table(epoch: &WatchedEpoch, rows: usize) -> String {
    let epoch = EpochDocument::new(epoch);
    let all: Vec<(String, &TimesDocument)> = series(&epoch).chain(groups(&epoch.kinds)).collect();
    first_rows(&all, rows) + "\n"
}

fn series(epoch: &EpochDocument) -> impl Iterator<Item = (String, &TimesDocument)> {
    let start = units::moment(Timestamp::from_nanos(epoch.start_ns));
    epoch.kinds.iter().map(move |kind| (format!("{}  {start}", kind.kind), &kind.times))
}

fn groups(kinds: &[KindDocument]) -> impl Iterator<Item = (String, &TimesDocument)> {
    kinds.iter().flat_map(|kind| {
        kind.groups.iter().map(|group| (format!("{}  {}", kind.kind, group.scope), &group.times))
    })
}

fn first_rows(all: &[(String, &TimesDocument)], rows: usize) -> String {
    let mut shown = table(all.iter().take(rows).cloned()).to_string();
    if all.len() > rows {
        let left = units::count((all.len() - rows) as u64);
        shown += &format!("… and {left} more; --rows-shown shows more, -F csv all\n");
    }
    shown
}

fn table<'a>(rows: impl Iterator<Item = (String, &'a TimesDocument)>) -> Table {
    let mut table = Table::new(&[
        "kind",
        "measured",
        "of about",
        "mean ± 95 %",
        "deviation",
        "min",
        "p50",
        "p95",
        "p99",
        "p99.9",
    ])
    .expending(&["p99.9", "deviation", "of about", "p99", "min"]);
    for (name, times) in rows {
        let shown = |value: Option<i64>| {
            value.map_or_else(|| UNKNOWN.to_owned(), |ns| units::duration(ns as f64))
        };
        let mean = match (times.mean_ns, times.ci95_high_ns) {
            (Some(mean), Some(high)) if high > mean => {
                format!("{} ± {}", shown(Some(mean)), shown(Some(high - mean)))
            }
            (Some(mean), None) => format!("{} ± {UNKNOWN}", shown(Some(mean))),
            (mean, _) => shown(mean),
        };
        let mut cells = vec![
            name,
            units::count(times.matched),
            units::count(times.weighted.round() as u64),
            mean,
            shown(times.stddev_ns),
            shown(times.min_ns),
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
        known.filter_map(|kind| Some(format!("{:<21}{}\n", kind.kind, shape(kind)?))).collect();
    if lines.is_empty() { String::new() } else { lines.concat() + "\n" }
}

fn shape(kind: &KindDocument) -> Option<String> {
    let (low, high) = (kind.times.min_ns?.max(1), kind.times.max_ns?.max(1));
    distribution(&kind.cdf, low, high)
}

/// Who waits for whom, in one line.
fn waiting(kinds: &[KindDocument]) -> String {
    let Some(kind) = kinds.iter().find(|kind| kind.kind == RoundTripKind::ServerResponse.name())
    else {
        return String::new();
    };
    match &kind.first_byte {
        Some(wait) => first_byte(wait),
        None if kind.parts.iter().any(|of| of.part != RoundTripPart::Dns.name()) => {
            "waiting    for network or server: unknown, no handshake of a connection with responses was \
             captured\n"
                .to_owned()
        }
        None => String::new(),
    }
}

fn first_byte(wait: &FirstByteDocument) -> String {
    let shown = |ns: u64| units::duration(ns as f64);
    let verdict = match wait.mostly {
        Some("server") => "mostly for the server",
        Some(_) => "mostly for the network",
        None => "for network or server, unclear which",
    };
    let between =
        |least_ns: u64, most_ns: u64| format!("{} to {}", shown(least_ns), shown(most_ns));
    let (least_ns, most_ns) = (wait.server_at_least_ns, wait.server_at_most_ns);
    let rest = |server_ns: u64| wait.wait_mean_ns.saturating_sub(server_ns);
    format!(
        "waiting    {verdict}: {} to the first byte of {}, on average; server {}, network {}\n",
        shown(wait.wait_mean_ns),
        units::counted(wait.responses, "response", "responses"),
        between(least_ns, most_ns),
        between(rest(most_ns), rest(least_ns)),
    )
}

fn spin_use(uses: &SpinUseDocument) -> String {
    let all = units::counted(uses.connections, "connection", "connections");
    let others = [
        (uses.constant, "constant"),
        (uses.random, "random"),
        (uses.undecided, "too few packets to tell"),
    ];
    let others: Vec<String> = others
        .into_iter()
        .filter(|&(connections, _)| connections > 0)
        .map(|(connections, what)| format!("{} {what}", units::count(connections)))
        .collect();
    let share = 100.0 * uses.usable as f64 / uses.connections.max(1) as f64;
    let others = if others.is_empty() { String::new() } else { format!(": {}", others.join(", ")) };
    format!("spin bit   usable in {} of {all} ({share:.0} %){others}\n", units::count(uses.usable))
}

fn footer(document: &RoundTripDocument) -> String {
    let mut footer = waiting(&document.kinds);
    let spins = document.kinds.iter().filter_map(|kind| kind.spin_use.as_ref());
    footer.extend(spins.map(spin_use));
    let horizons =
        document.kinds.iter().filter_map(|kind| Some((kind.kind, kind.times.horizon_ns?)));
    if let Some((kind, horizon_ns)) = horizons.min_by_key(|(_, horizon_ns)| *horizon_ns) {
        let horizon = units::duration(horizon_ns as f64);
        footer += &format!("horizon    times beyond {horizon} are not reliable ({kind})\n");
    }
    let mut measured = document.kinds.iter().filter(|kind| kind.times.mean_ns.is_some());
    if let Some(reason) = measured.find_map(|kind| kind.times.reason) {
        footer += &format!("{reason}\n");
    }
    for kind in &document.kinds {
        if let Some(ambiguous) = kind.ambiguous.filter(|&ambiguous| ambiguous > 0) {
            let ambiguous = units::count(ambiguous);
            footer += &format!("ambiguous  {ambiguous} packets of {} were not used\n", kind.kind);
        }
    }
    for kind in &document.kinds {
        if let Some(flows) = kind.forgotten_flows.filter(|&flows| flows > 0) {
            let (flows, kind) = (units::count(flows), kind.kind);
            footer += &format!(
                "forgotten  {flows} flows of {kind} were evicted by others: raise \
                     --flows\n"
            );
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
    if let Some(dropped @ 1..) = document.dropped {
        footer += &format!("dropped    {} by the capturing kernel\n", units::count(dropped));
    }
    footer
}

//! What is known of points, as tables for people: all of the time together, and step by step where steps
//! were asked for.

use twixt_collector::api::{
    CompletenessDocument, HeavyDocument, HeavyFlowDocument, PrefixDocument, ReorderingDocument,
    RoundTripDocument, RoundTripsDocument,
};

use super::super::Args;
use super::super::estimates::{footer, moment};
use crate::output::{Table, UNKNOWN, units};

pub(super) fn round_trips(args: &Args, document: &RoundTripsDocument) -> String {
    let above = document.above_ns.map(|above_ns| {
        let above = units::round_duration(above_ns as f64);
        format!("above {above}")
    });
    let table = |rows: &[RoundTripDocument], timed: bool| {
        let mut headings: Vec<&str> =
            if timed { vec!["start (UTC)", "kind"] } else { vec!["kind"] };
        headings.extend(["scope", "found", "mean ± 95 %", "p50", "p95", "p99"]);
        headings.extend(above.as_deref());
        let mut table = Table::new(&headings);
        for row in rows {
            let mut cells = if timed { vec![moment(row.start_ns)] } else { Vec::new() };
            cells.extend([kind(row), row.scope.clone(), units::count(row.matched), mean(row)]);
            cells.extend([row.p50_ns, row.p95_ns, row.p99_ns].map(time));
            cells.extend(above.is_some().then(|| share(row)));
            table.row(cells);
        }
        table.to_string()
    };
    let mut report = table(&document.total, false);
    if args.estimates.step.is_some() {
        let shown = last(&document.round_trips, args.rows_shown);
        report += &format!("\n{}", table(shown, true));
    }
    let reasons = document.total.iter().filter_map(|row| {
        Some(format!("{UNKNOWN} {} {}: {}\n", kind(row), row.scope, row.reason.as_deref()?))
    });
    let reasons: String = reasons.collect();
    report + &reasons + &end(&document.completeness)
}

pub(super) fn reordering(args: &Args, document: &ReorderingDocument) -> String {
    let table = |rows: &[PrefixDocument], timed: bool| {
        let mut headings: Vec<&str> =
            if timed { vec!["start (UTC)", "prefix"] } else { vec!["prefix"] };
        headings.extend(["packets", "out of order", "undecided", "share", "verdict"]);
        let mut table = Table::new(&headings);
        for row in rows {
            let mut cells = if timed { vec![moment(row.start_ns)] } else { Vec::new() };
            let percent =
                |share: Option<f64>| share.map_or_else(|| UNKNOWN.to_owned(), units::percent);
            cells.extend([
                row.scope.clone(),
                units::count(row.packets),
                units::count(row.out_of_order),
                units::count(row.undecided),
                match row.undecided {
                    0 => percent(row.fraction),
                    _ => format!("{} to {}", percent(row.fraction), percent(row.fraction_max)),
                },
                row.verdict.clone().unwrap_or_else(|| UNKNOWN.to_owned()),
            ]);
            table.row(cells);
        }
        table.to_string()
    };
    let first = &document.total[..document.total.len().min(args.rows_shown)];
    let mut report = table(first, false);
    if args.estimates.step.is_some() {
        report += &format!("\n{}", table(last(&document.prefixes, args.rows_shown), true));
    }
    report + &more(first.len(), document.total.len(), "prefixes") + &end(&document.completeness)
}

pub(super) fn heavy(args: &Args, document: &HeavyDocument) -> String {
    let table = |rows: &[HeavyFlowDocument], timed: bool| {
        let mut headings: Vec<&str> =
            if timed { vec!["start (UTC)", "flow"] } else { vec!["flow"] };
        headings.extend(["epochs", "packets", "certainly", "bytes"]);
        let mut table = Table::new(&headings);
        for row in rows {
            let mut cells = if timed { vec![moment(row.start_ns)] } else { Vec::new() };
            let certainly = match row.packets_max {
                Some(most) => units::range(row.packets_min, most),
                None => format!("at least {}", units::count(row.packets_min)),
            };
            cells.extend([
                row.scope.clone(),
                units::count(row.epochs),
                units::count(row.packets),
                certainly,
                units::bytes(row.bytes),
            ]);
            table.row(cells);
        }
        table.to_string()
    };
    let first = &document.total[..document.total.len().min(args.rows_shown)];
    let mut report = table(first, false);
    if args.estimates.step.is_some() {
        report += &format!("\n{}", table(last(&document.flows, args.rows_shown), true));
    }
    report + &more(first.len(), document.total.len(), "flows") + &end(&document.completeness)
}

/// The last rows, if there are too many.
fn last<T>(rows: &[T], shown: usize) -> &[T] {
    &rows[rows.len().saturating_sub(shown)..]
}

fn more(shown: usize, all: usize, what: &str) -> String {
    match all > shown {
        true => {
            let (shown, all) = (units::count(shown as u64), units::count(all as u64));
            format!("\n{shown} of {all} {what}; --rows-shown shows more\n")
        }
        false => String::new(),
    }
}

/// What is missing: gaps are not recorded.
fn end(completeness: &CompletenessDocument) -> String {
    footer(completeness).replace("without an estimate", "not recorded")
}

fn kind(row: &RoundTripDocument) -> String {
    match row.part.as_str() {
        "" => row.kind.clone(),
        part => format!("{} {part}", row.kind),
    }
}

fn mean(row: &RoundTripDocument) -> String {
    let Some(mean_ns) = row.mean_ns else { return UNKNOWN.to_owned() };
    let mean = units::duration(mean_ns as f64);
    match row.ci95_high_ns {
        Some(high_ns) => {
            format!("{mean} ± {}", units::duration(high_ns.saturating_sub(mean_ns) as f64))
        }
        None => mean,
    }
}

fn time(nanos: Option<i64>) -> String {
    nanos.map_or_else(|| UNKNOWN.to_owned(), |nanos| units::duration(nanos as f64))
}

/// The share above the limit, and its interval.
fn share(row: &RoundTripDocument) -> String {
    let known = row.share_above.zip(row.share_above_low.zip(row.share_above_high));
    known.map_or_else(
        || UNKNOWN.to_owned(),
        |(share, (low, high))| {
            let [share, low, high] = [share, low, high].map(units::percent);
            format!("{share} ({low} to {high})")
        },
    )
}

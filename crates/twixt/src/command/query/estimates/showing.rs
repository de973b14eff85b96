//! Estimates over time as a table for people.

use twixt_collector::api::{
    CompletenessDocument, EstimateDocument, EstimatesDocument, FlowsDocument,
};
use twixt_history::moment_text;
use twixt_model::Timestamp;

use crate::output::{Table, UNKNOWN, units};

/// The rows, the last of them if there are too many, and what is missing.
pub(super) fn report(document: &EstimatesDocument, rows_shown: usize) -> String {
    let rows = joined(&document.estimates);
    let hidden = rows.len().saturating_sub(rows_shown);
    let shown = &rows[hidden..];
    let mut report = String::new();
    if hidden > 0 {
        let hidden = units::count(hidden as u64);
        report += &format!("{hidden} earlier rows; --rows-shown shows more, -F csv all\n\n");
    }
    report += &table(shown).to_string();
    let reasons = shown.iter().filter_map(|row| {
        let reason = row.reason.as_deref()?;
        Some(format!("{UNKNOWN} {}: {reason}\n", moment(row.start_ns)))
    });
    let reasons: Vec<String> = reasons.collect();
    if !reasons.is_empty() {
        report += "\n";
        const REASONS_SHOWN: usize = 10;
        report.extend(reasons.iter().take(REASONS_SHOWN).map(String::as_str));
        if reasons.len() > REASONS_SHOWN {
            let more = units::count((reasons.len() - REASONS_SHOWN) as u64);
            report += &format!("… and {more} more\n");
        }
    }
    report + &footer(&document.completeness)
}

/// Flows, the first of them if there are too many.
pub(super) fn flow_report(document: &FlowsDocument, rows_shown: usize) -> String {
    let shown = &document.flows[..document.flows.len().min(rows_shown)];
    let is_one = shown.windows(2).all(|pair| pair[0].algorithm == pair[1].algorithm);
    let mut headings = vec!["flow"];
    headings.extend((!is_one).then_some("algorithm"));
    headings.extend(["epochs", "packets", "lost", "mean ± 95 %", "deviation"]);
    let mut table = Table::new(&headings);
    for flow in shown {
        let mut cells = vec![flow.scope.clone()];
        cells.extend((!is_one).then(|| flow.algorithm.clone()));
        cells.extend([
            flow.epochs.to_string(),
            flow.packets.map_or_else(|| UNKNOWN.to_owned(), units::count),
            lost(flow),
            mean(flow),
            delay(flow.stddev_ns),
        ]);
        table.row(cells);
    }
    let (shown, found) = (units::count(shown.len() as u64), units::count(document.found));
    format!("{table}\n{shown} of {found} flows\n{}", footer(&document.completeness))
}

/// Gaps that follow each other, for one reason, are one row.
fn joined(rows: &[EstimateDocument]) -> Vec<EstimateDocument> {
    let mut joined: Vec<EstimateDocument> = Vec::new();
    for row in rows {
        let same = joined.iter_mut().rev().find(|last| series(last) == series(row));
        match same {
            Some(last)
                if last.epochs == 0
                    && row.epochs == 0
                    && last.end_ns.saturating_add(1) == row.start_ns
                    && last.reason == row.reason =>
            {
                last.end_ns = row.end_ns;
                last.gaps = last.gaps.saturating_add(row.gaps);
            }
            _ => joined.push(row.clone()),
        }
    }
    joined
}

fn series(row: &EstimateDocument) -> [&str; 6] {
    [&row.domain, &row.upstream, &row.downstream, &row.class, &row.algorithm, &row.scope]
}

fn table(rows: &[EstimateDocument]) -> Table {
    let is_one = rows.windows(2).all(|pair| series(&pair[0]) == series(&pair[1]));
    let has_percentiles = rows.iter().any(|row| row.p50_ns.is_some());
    let mut headings = vec!["start (UTC)"];
    if !is_one {
        headings.extend(["segment", "scope"]);
    }
    let has_strays = rows.iter().any(|row| row.strays_min.is_some_and(|strays| strays > 0));
    headings.extend(["epochs", "packets", "lost"]);
    headings.extend(has_strays.then_some("strays"));
    headings.extend(["mean ± 95 %", "deviation"]);
    if has_percentiles {
        headings.extend(["p50", "p95", "p99", "p99.9", "jitter"]);
    }
    let mut table = Table::new(&headings);
    for row in rows {
        let mut cells = vec![moment(row.start_ns)];
        if !is_one {
            let class = Some(&row.class).filter(|class| !class.is_empty());
            let class = class.map(|class| format!(" ({class})")).unwrap_or_default();
            cells.push(format!("{} > {}{class}", row.upstream, row.downstream));
            cells.push(row.scope.clone());
        }
        cells.extend([
            match row.gaps {
                0 => row.epochs.to_string(),
                gaps => format!("{} of {}", row.epochs, row.epochs.saturating_add(gaps)),
            },
            row.packets.map_or_else(|| UNKNOWN.to_owned(), units::count),
            lost(row),
        ]);
        cells.extend(has_strays.then(|| strays(row)));
        cells.extend([mean(row), delay(row.stddev_ns)]);
        if has_percentiles {
            let shown = [row.p50_ns, row.p95_ns, row.p99_ns, row.p999_ns, row.jitter_ns];
            cells.extend(shown.map(delay));
        }
        table.row(cells);
    }
    table
}

/// Lost packets, or between which numbers they lie. Collectors of older releases know no bounds.
fn lost(row: &EstimateDocument) -> String {
    let bounds = row.lost.zip(row.lost).or(row.lost_min.zip(row.lost_max));
    bounds.map_or_else(|| UNKNOWN.to_owned(), |(min, max)| units::range(min, max))
}

fn strays(row: &EstimateDocument) -> String {
    let bounds = row.strays_min.zip(row.strays_max);
    bounds.map_or_else(|| UNKNOWN.to_owned(), |(min, max)| units::range(min, max))
}

fn mean(row: &EstimateDocument) -> String {
    let Some(mean_ns) = row.mean_ns else { return UNKNOWN.to_owned() };
    let mean = units::duration(mean_ns as f64);
    match row.ci95_high_ns {
        Some(high_ns) => {
            format!("{mean} ± {}", units::duration(high_ns.saturating_sub(mean_ns) as f64))
        }
        None => mean,
    }
}

fn delay(nanos: Option<i64>) -> String {
    nanos.map_or_else(|| UNKNOWN.to_owned(), |nanos| units::duration(nanos as f64))
}

pub(in crate::command::query) fn moment(nanos: i64) -> String {
    moment_text(Timestamp::from_nanos(nanos))
}

pub(in crate::command::query) fn footer(completeness: &CompletenessDocument) -> String {
    let (epochs, gaps) = (units::count(completeness.epochs), units::count(completeness.gaps));
    let state = if completeness.complete { "complete" } else { "not complete" };
    let stored = completeness.stored.as_ref();
    let stored = stored.map_or_else(
        || "nothing is stored".to_owned(),
        |stored| format!("stored from {} to {}", stored.start, stored.end),
    );
    format!("\n{state}: {epochs} epochs, {gaps} without an estimate; {stored}\n")
}

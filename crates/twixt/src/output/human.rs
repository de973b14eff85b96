//! Tables that people enjoy.

use comfy_table::{CellAlignment, ContentArrangement, presets};
use twixt_model::{
    Delay, DelayEstimate, DelaySample, Estimate, LossRange, OrderStatistics, Percentile,
};
use twixt_observe::PathCounts;
use twixt_offline::{ChosenAlgorithm, Concluded, Files, Measured};

use super::clock_lines::clock_lines;
use super::units;

/// Shown where nothing is known.
pub(crate) const UNKNOWN: &str = "–";
/// Rows shown unless the user asks for more.
pub(crate) const ROWS_DEFAULT: usize = 30;

/// A table with its first column to the left and the others to the right.
pub(crate) struct Table(comfy_table::Table);

impl Table {
    /// With these headings.
    pub(crate) fn new(headings: &[&str]) -> Self {
        let mut table = comfy_table::Table::new();
        table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
        table.set_header(headings);
        for (index, column) in table.column_iter_mut().enumerate() {
            column.set_padding((0, 2));
            column.set_cell_alignment(match index {
                0 => CellAlignment::Left,
                _ => CellAlignment::Right,
            });
        }
        Self(table)
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, cells: Vec<String>) {
        self.0.add_row(cells);
    }
}

impl std::fmt::Display for Table {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for line in self.0.lines() {
            writeln!(formatter, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// What one algorithm concluded along one segment.
pub(crate) fn delay_report(
    files: Files<'_>,
    chosen: &ChosenAlgorithm,
    measured: &Measured,
    concluded: &Concluded,
    rows: usize,
) -> String {
    let mut estimates: Vec<&Estimate> = concluded.estimates.iter().collect();
    let series = concluded.epochs() > 1;
    if !series {
        estimates.sort_by_key(|estimate| std::cmp::Reverse(badness(estimate)));
    }
    let mut report = format!(
        "{} → {}   ({}, {} per point)\n\n",
        files.upstream.display(),
        files.downstream.display(),
        chosen.algorithm.name,
        units::bytes(concluded.synopsis_bytes)
    );
    report += &table(&estimates[..estimates.len().min(rows)], series).to_string();
    if estimates.len() > rows {
        report += &format!(
            "… and {} more; --rows-shown shows more, -F csv all\n",
            units::count((estimates.len() - rows) as u64)
        );
    }
    report += "\n";
    report += &reasons(&estimates[..estimates.len().min(rows)]);
    report + &footer(measured)
}

/// Why something is unknown; a reason that many rows share is shown once.
fn reasons(estimates: &[&Estimate]) -> String {
    let mut reasons: Vec<(String, Vec<&Estimate>)> = Vec::new();
    for estimate in estimates {
        let Some(reason) = estimate.reasons() else { continue };
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, rows)) => rows.push(estimate),
            None => reasons.push((reason, vec![estimate])),
        }
    }
    let line = |(reason, rows): (String, Vec<&Estimate>)| match rows.as_slice() {
        [row] => format!("{UNKNOWN} {}: {reason}\n", row.scope),
        rows => format!("{UNKNOWN} {} rows: {reason}\n", units::count(rows.len() as u64)),
    };
    reasons.into_iter().map(line).collect()
}

/// What several epochs say together, worst first.
pub(crate) fn total_report(totals: &[Estimate], epochs: u64, rows: usize) -> String {
    let mut totals: Vec<&Estimate> = totals.iter().collect();
    totals.sort_by_key(|estimate| std::cmp::Reverse(badness(estimate)));
    totals.truncate(rows);
    format!("\nall {} epochs together:\n\n{}", units::count(epochs), table(&totals, false))
}

/// Worst first: by mean delay, then by loss; what is not known comes last.
fn badness(estimate: &Estimate) -> (Option<Delay>, Option<u64>) {
    (
        estimate.delay.map(|delay| delay.mean()),
        estimate.evidence.loss_range().map(|range| range.max),
    )
}

fn table(estimates: &[&Estimate], series: bool) -> Table {
    let ordered =
        estimates.iter().any(|estimate| estimate.delay.is_some_and(|delay| delay.order.is_some()));
    let sampled = !ordered && estimates.iter().any(|estimate| estimate.sample.is_some());
    let strayed = estimates.iter().any(|estimate| has_strays(estimate));
    let mut headings = vec!["scope"];
    headings.extend(series.then_some("start (UTC)"));
    headings.extend(["packets", "used", "lost"]);
    headings.extend(strayed.then_some("strays"));
    headings.extend(["mean ± 95 %", "deviation"]);
    if ordered {
        headings.extend(["min", "p50", "p95", "p99", "max"]);
    }
    if sampled {
        headings.extend(["p50", "p95", "p99", "p99.9", "jitter"]);
    }
    let mut table = Table::new(&headings);
    for estimate in estimates {
        let mut cells = vec![estimate.scope.to_string()];
        cells.extend(series.then(|| units::moment(estimate.span.start)));
        cells.extend(counts(estimate));
        cells.extend(strayed.then(|| strays(estimate)));
        cells.extend(delays(estimate));
        if ordered {
            cells.extend(order(estimate));
        }
        if sampled {
            cells.extend(percentiles(estimate));
        }
        table.row(cells);
    }
    table
}

/// Packets, those used, those lost.
pub(crate) fn counts(estimate: &Estimate) -> [String; 3] {
    let evidence = &estimate.evidence;
    let lost = match evidence.loss_range() {
        None => UNKNOWN.to_owned(),
        Some(LossRange { min: 0, max: 0 }) => "0".to_owned(),
        Some(LossRange { min, max }) => {
            let share = |lost: u64| units::percent(lost as f64 / evidence.packets.max(1) as f64);
            match min == max {
                true => format!("{} ({})", units::count(max), share(max)),
                false => {
                    format!("{} ({} to {})", units::range(min, max), share(min), share(max))
                }
            }
        }
    };
    [units::count(evidence.packets), units::count(evidence.used), lost]
}

/// Whether some packets were surely seen downstream only.
fn has_strays(estimate: &Estimate) -> bool {
    estimate.evidence.stray_range().is_some_and(|range| range.min > 0)
}

fn strays(estimate: &Estimate) -> String {
    match estimate.evidence.stray_range() {
        None => UNKNOWN.to_owned(),
        Some(LossRange { min, max }) if min == max => units::count(max),
        Some(LossRange { min, max }) => units::range(min, max),
    }
}

/// Mean with its interval, and deviation.
pub(crate) fn delays(estimate: &Estimate) -> [String; 2] {
    let Some(delay) = estimate.delay else { return [UNKNOWN.to_owned(), UNKNOWN.to_owned()] };
    let mean = units::duration_to(delay.mean_ns(), step_ns(&delay));
    let mean = match delay.half_width_ns {
        Some(0.0) => mean,
        Some(half) => format!("{mean} ± {}", units::duration(half)),
        None => format!("{mean} ± ?"),
    };
    [mean, delay.deviation_ns.map_or_else(|| UNKNOWN.to_owned(), units::duration)]
}

/// The smallest difference that should show: a tenth of the interval, or, where a clock offset
/// hides it, of the deviation.
fn step_ns(delay: &DelayEstimate) -> f64 {
    let offset = delay.mean_ns().abs() >= 1e9;
    let interval = delay.half_width_ns.filter(|&half| half > 0.0);
    let spread = interval.or(delay.deviation_ns.filter(|_| offset));
    spread.map_or(f64::MAX, |spread| spread / 10.0)
}

fn order(estimate: &Estimate) -> [String; 5] {
    let order = estimate.delay.and_then(|delay| delay.order);
    let step_ns = estimate.delay.as_ref().map_or(f64::MAX, step_ns);
    let shown = |pick: fn(&OrderStatistics) -> Delay| {
        order.map_or_else(
            || UNKNOWN.to_owned(),
            |order| units::duration_to(pick(&order).as_nanos() as f64, step_ns),
        )
    };
    [
        shown(|order| order.min),
        shown(|order| order.p50),
        shown(|order| order.p95),
        shown(|order| order.p99),
        shown(|order| order.max),
    ]
}

/// Percentiles of a sample with their intervals, and jitter.
fn percentiles(estimate: &Estimate) -> [String; 5] {
    let step_ns = estimate.delay.as_ref().map_or(f64::MAX, step_ns);
    let shown = |ns: i64| units::duration_to(ns as f64, step_ns);
    let interval = |found: Percentile| match found.low_ns == found.high_ns {
        true => shown(found.time_ns),
        false => {
            let Percentile { time_ns, low_ns, high_ns, .. } = found;
            format!("{} [{}, {}]", shown(time_ns), shown(low_ns), shown(high_ns))
        }
    };
    let unknown = || UNKNOWN.to_owned();
    let [p50, p95, p99, p999] =
        DelaySample::SHARES.map(|share| estimate.percentile(share).map_or_else(unknown, interval));
    let jitter = estimate.sample.as_ref().and_then(|sample| sample.jitter_ns());
    [p50, p95, p99, p999, jitter.map_or_else(unknown, units::duration)]
}

/// A line on the clocks, on the direction, and on what was not measured.
fn footer(measured: &Measured) -> String {
    let mut footer = String::new();
    if let Some(span) = measured.stretch {
        let length = units::duration((span.end - span.start).as_nanos() as f64);
        footer += &format!("overlap    {length} from {} UTC\n", units::moment(span.start));
    }
    footer += &format!("direction  decided by {}", measured.direction.decided_by);
    match measured.direction.unknown_flows {
        0 => footer += "\n",
        unknown => footer += &format!("; {unknown} flows of unknown direction were skipped\n"),
    }
    footer += &clock_lines(measured);
    footer += &not_measured("upstream", &measured.upstream);
    footer + &not_measured("downstream", &measured.downstream)
}

fn not_measured(point: &str, counts: &PathCounts) -> String {
    let reasons: Vec<String> = counts
        .skipped
        .iter()
        .map(|(reason, count)| format!("{} {reason}", units::count(*count)))
        .collect();
    let mut lines = match reasons.as_slice() {
        [] => String::new(),
        reasons => format!("{point:<10} skipped: {}\n", reasons.join(", ")),
    };
    if let Some(dropped @ 1..) = counts.dropped {
        lines +=
            &format!("{point:<10} dropped: {} by the capturing kernel\n", units::count(dropped));
    }
    lines
}

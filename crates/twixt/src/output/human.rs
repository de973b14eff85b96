//! Tables that people enjoy.

use twixt_model::binning::distribution;
use twixt_model::{
    Crossing, Delay, DelayEstimate, DelaySample, Estimate, LossRange, OrderStatistics, Percentile,
};
use twixt_observe::PathCounts;
use twixt_offline::{ChosenAlgorithm, Concluded, Files, Measured};

use super::clock_lines::clock_lines;
use super::order::RowsShown;
use super::shape;
use super::table::Table;
use super::units;

/// Shown where nothing is known.
pub(crate) const UNKNOWN: &str = "–";
/// Columns that are left out where a table does not fit, the first of them first: what other columns
/// tell too, before what none does.
const EXPENDABLE: &[&str] = &[
    "over time",
    "jitter",
    "used",
    "min",
    "deviation",
    "p99.9",
    "p50",
    "strays",
    "max",
    "p99",
    "p95",
];
/// Rows shown unless the user asks for more.
pub(crate) const ROWS_DEFAULT: usize = 30;

/// What one algorithm concluded along one segment.
pub(crate) fn delay_report(
    files: Files<'_>,
    chosen: &ChosenAlgorithm,
    measured: &Measured,
    concluded: &Concluded,
    rows: impl Into<RowsShown>,
) -> String {
    report_with(files, chosen, measured, concluded, rows.into(), &clock_lines(files, measured))
}

/// The same of one direction of two, without what is known of the clocks of both.
pub(crate) fn direction_report(
    files: Files<'_>,
    chosen: &ChosenAlgorithm,
    measured: &Measured,
    concluded: &Concluded,
    rows: RowsShown,
) -> String {
    report_with(files, chosen, measured, concluded, rows, "")
}

fn report_with(
    files: Files<'_>,
    chosen: &ChosenAlgorithm,
    measured: &Measured,
    concluded: &Concluded,
    RowsShown { most: rows, is_sorted }: RowsShown,
    clocks: &str,
) -> String {
    let mut estimates: Vec<&Estimate> = concluded.estimates.iter().collect();
    let series = concluded.epochs() > 1;
    if !series && !is_sorted {
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
    if !concluded.together.is_empty() {
        report += &total_report(&concluded.together, concluded.epochs(), rows);
    }
    report += "\n";
    report += &shapes(&estimates[..estimates.len().min(rows)], series);
    report += &reasons(&estimates[..estimates.len().min(rows)]);
    report + &footer(measured, clocks)
}

/// Where the delays of the first rows lie, where every packet was kept.
fn shapes(estimates: &[&Estimate], series: bool) -> String {
    const LINES_MAX: usize = 5;
    const POINTS: usize = 400;
    let line = |estimate: &&Estimate| {
        let packets = &estimate.crossings.as_deref()?.packets;
        let mut delays: Vec<Delay> = packets.iter().filter_map(Crossing::delay).collect();
        delays.sort_unstable();
        let cdf = distribution(&delays, POINTS).into_iter();
        let cdf: Vec<(i64, f64)> = cdf.map(|(delay, share)| (delay.as_nanos(), share)).collect();
        let drawn = shape::distribution(&cdf, cdf.first()?.0, cdf.last()?.0)?;
        Some(format!("{drawn}  {}\n", estimate.scope))
    };
    // Of a series each row is but a moment.
    let lines: Vec<String> = match series {
        true => Vec::new(),
        false => estimates.iter().take(LINES_MAX).filter_map(line).collect(),
    };
    if lines.is_empty() { String::new() } else { lines.concat() + "\n" }
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
        headings.extend(["min", "p50", "p95", "p99", "max", "jitter"]);
    }
    if sampled {
        headings.extend(["p50", "p95", "p99", "p99.9", "jitter"]);
    }
    let courses = !series && estimates.iter().any(|estimate| has_packets(estimate));
    headings.extend(courses.then_some("over time"));
    let mut table = Table::new(&headings).expending(EXPENDABLE);
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
        cells.extend(courses.then(|| course(estimate)));
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

fn has_packets(estimate: &Estimate) -> bool {
    estimate.crossings.as_ref().is_some_and(|crossings| !crossings.packets.is_empty())
}

/// The mean delay over time, in a few letters.
fn course(estimate: &Estimate) -> String {
    estimate.crossings.as_ref().map_or_else(String::new, |known| shape::course(&known.packets))
}

fn order(estimate: &Estimate) -> [String; 6] {
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
        estimate.jitter_ns().map_or_else(|| UNKNOWN.to_owned(), units::duration),
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
    [p50, p95, p99, p999, estimate.jitter_ns().map_or_else(unknown, units::duration)]
}

/// A line on the clocks, on the direction, and on what was not measured.
fn footer(measured: &Measured, clocks: &str) -> String {
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
    footer += clocks;
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

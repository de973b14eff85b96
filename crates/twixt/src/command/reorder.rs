//! `twixt reorder`: TCP reordering by prefix, at one point.

mod picture;

use std::collections::BTreeMap;

use serde::Serialize;
use twixt_model::{ReorderEstimate, Span};
use twixt_offline::ChosenAlgorithm;
use twixt_synopsis::{Estimator, Question};

use super::one_point::{SeenAtPoint, read};
use crate::args::{
    AlgorithmArgs, FailAbove, Judgement, Known, LimitMeasure, Reorderings, TrafficArgs,
};
use crate::configuration::Configuration;
use crate::exit::{Exit, usage};
use crate::frame_input::SourceArgs;
use crate::output::{self, ROWS_DEFAULT, Table, TableFormat, units};
use crate::plot::PlotFile;

/// TCP reordering by source prefix, at one point
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Share of packets out of order above which a prefix is affected
    #[arg(long, value_name = "SHARE", default_value_t = 0.02)]
    threshold: f64,
    /// Print only this many prefixes [default: all; 30 in human output]
    #[arg(long, value_name = "N")]
    top: Option<usize>,
    /// Order of the rows, largest first [default: by share]
    #[arg(long, value_enum, value_name = "KEY", default_value_t, hide_default_value = true)]
    sort: Order,
    /// End with exit code 10 if a prefix exceeds a limit on its share out of order: share=1%
    #[arg(long, value_name = "LIMITS")]
    fail_above: Option<FailAbove>,
    /// Draw the share out of order by prefix into a file: .svg, .png or .html
    #[arg(long, value_name = "FILE")]
    plot: Option<PlotFile>,
    /// Stop after this many packets
    #[arg(short = 'c', long = "count", value_name = "COUNT")]
    count: Option<u64>,
    /// Output format
    #[arg(short = 'F', long, value_enum, default_value_t)]
    format: TableFormat,
    #[command(flatten)]
    traffic: TrafficArgs,
    #[command(flatten)]
    algorithm: AlgorithmArgs<Reorderings>,
    #[command(flatten)]
    source: SourceArgs,
}

/// What rows are sorted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum Order {
    /// Share out of order
    #[default]
    Share,
    /// Packets
    Packets,
}

/// A capture has an end, and so has what it takes to follow it flow by flow.
const DEFAULT_ALGORITHM: &str = "exact";
/// An interface has none: fixed memory.
const DEFAULT_LIVE_ALGORITHM: &str = "hybrid";

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    if !(args.threshold > 0.0 && args.threshold < 1.0) {
        let threshold = args.threshold;
        return Err(usage(format!("--threshold {threshold}: must be between 0 and 1")));
    }
    if let Some(limits) = &args.fail_above {
        limits.check(|measure| measure == LimitMeasure::Share)?;
    }
    let is_live = args.source.live.is_given();
    let default = if is_live { DEFAULT_LIVE_ALGORITHM } else { DEFAULT_ALGORITHM };
    let chosen = args.algorithm.choose(default)?;
    let seen = read(&args.source, &args.traffic, &chosen, args.count)?;
    let Some(span) = seen.span else {
        return seen.exit.without_answer(format!("{}: no packets", seen.name));
    };
    let mut prefixes = conclude(&chosen, &seen, span)?;
    if args.sort == Order::Packets {
        prefixes.sort_by_key(|prefix| std::cmp::Reverse(prefix.packets));
    }
    if prefixes.is_empty() {
        let message = format!("{}: no TCP packets with data to judge", seen.name);
        return seen.exit.without_answer(message);
    }
    if let Some(file) = &args.plot {
        file.write_any(picture::picture(&seen.name, &prefixes, args.threshold))?;
    }
    let shown = args.top.unwrap_or(usize::MAX);
    let rows = prefixes.iter().take(shown).map(|prefix| Row::new(prefix, args.threshold));
    match (args.format, args.format.rows()) {
        (_, Some(format)) => output::rows(format, rows)?,
        (TableFormat::Json, _) => output::json(&args.document(&seen, rows.collect()))?,
        _ => {
            let rows = args.top.unwrap_or(ROWS_DEFAULT);
            output::text(&report(&seen, &prefixes, args.threshold, rows))?;
        }
    }
    Ok(args.judge(&prefixes, seen.exit))
}

fn conclude(
    chosen: &ChosenAlgorithm,
    seen: &SeenAtPoint,
    span: Span,
) -> anyhow::Result<Vec<ReorderEstimate>> {
    let Estimator::Reorder(estimator) = &chosen.algorithm.estimator else {
        unreachable!("the command offers no algorithm for anything else")
    };
    Ok((estimator.conclude)(seen.synopsis.as_ref(), &Question::about(span))?)
}

impl Args {
    /// Takes from the configuration file what the command line left out.
    pub(crate) fn with(self, configuration: &Configuration) -> Self {
        Self { algorithm: self.algorithm.with(configuration), ..self }
    }

    /// Compares every prefix with the limits, and says how the command ends.
    fn judge(&self, prefixes: &[ReorderEstimate], exit: Exit) -> Exit {
        let Some(limits) = &self.fail_above else { return exit };
        let mut judgement = Judgement::default();
        for prefix in prefixes {
            limits.judge(&mut judgement, &prefix.prefix, |_| {
                let bounds = prefix.fraction().zip(prefix.fraction_max());
                bounds.map_or(Known::Nothing, |(least, most)| Known::Between(least, most))
            });
        }
        judgement.conclude(exit)
    }

    fn document(&self, seen: &SeenAtPoint, prefixes: Vec<Row>) -> Document {
        Document {
            algorithm: seen.synopsis.name(),
            synopsis_bytes: seen.synopsis.state_bytes(),
            packets: seen.counts.packets,
            skipped: seen.counts.skipped.clone(),
            dropped: seen.counts.dropped,
            threshold: self.threshold,
            prefixes,
        }
    }
}

/// `twixt reorder -F json`.
#[derive(Serialize)]
struct Document {
    algorithm: &'static str,
    synopsis_bytes: u64,
    packets: u64,
    skipped: BTreeMap<String, u64>,
    dropped: Option<u64>,
    threshold: f64,
    prefixes: Vec<Row>,
}

/// A prefix, in all machine formats.
#[derive(Serialize)]
struct Row {
    prefix: String,
    packets: u64,
    out_of_order: u64,
    fraction: Option<f64>,
    retransmitted: u64,
    verdict: &'static str,
    extent_mean: Option<f64>,
    extent_max: Option<u32>,
    undecided: u64,
    fraction_max: Option<f64>,
    duplicates: u64,
    reason: Option<&'static str>,
}

impl Row {
    fn new(estimate: &ReorderEstimate, threshold: f64) -> Self {
        Self {
            prefix: estimate.prefix.to_string(),
            packets: estimate.packets,
            out_of_order: estimate.out_of_order,
            fraction: estimate.fraction(),
            retransmitted: estimate.retransmitted,
            verdict: estimate.verdict(threshold).name(),
            extent_mean: estimate.extent.map(|extent| extent.mean),
            extent_max: estimate.extent.map(|extent| extent.largest),
            undecided: estimate.undecided,
            fraction_max: estimate.fraction_max(),
            duplicates: estimate.duplicates,
            reason: estimate.reason(threshold),
        }
    }
}

fn report(seen: &SeenAtPoint, prefixes: &[ReorderEstimate], threshold: f64, rows: usize) -> String {
    let (name, bytes) = (seen.synopsis.name(), units::bytes(seen.synopsis.state_bytes()));
    let mut report = format!("{}   ({name}, {bytes})\n\n", seen.name);
    let above = format!("above {}", units::percent(threshold));
    let mut table = Table::new(&[
        "from",
        "packets",
        "out of order",
        "share",
        "retransmitted",
        "undecided",
        "extent",
        &above,
    ]);
    for estimate in prefixes.iter().take(rows) {
        let extent =
            estimate.extent.map_or("–".to_owned(), |extent| format!("{:.1}", extent.mean));
        table.row(vec![
            estimate.prefix.to_string(),
            units::count(estimate.packets),
            units::count(estimate.out_of_order),
            share(estimate),
            units::count(estimate.retransmitted),
            units::count(estimate.undecided),
            extent,
            estimate.verdict(threshold).name().to_owned(),
        ]);
    }
    report += &table.to_string();
    if let Some(more @ 1..) = prefixes.len().checked_sub(rows) {
        let more = units::count(more as u64);
        report += &format!("… and {more} more; --top shows more, -F csv all\n");
    }
    let sum = |count: fn(&ReorderEstimate) -> u64| units::count(prefixes.iter().map(count).sum());
    report += &format!(
        "\n{} packets with data judged, {} out of order, {} retransmitted, {} undecided\n",
        sum(|estimate| estimate.packets),
        sum(|estimate| estimate.out_of_order),
        sum(|estimate| estimate.retransmitted),
        sum(|estimate| estimate.undecided),
    );
    if prefixes.iter().any(|estimate| estimate.duplicates > 0) {
        let duplicates = sum(|estimate| estimate.duplicates);
        report += &format!("{duplicates} duplicates were not judged\n");
    }
    if let Some(dropped @ 1..) = seen.counts.dropped {
        report += &format!("{} dropped by the capturing kernel\n", units::count(dropped));
    }
    report
}

/// Out of order for certain, and up to what share with the undecided.
fn share(estimate: &ReorderEstimate) -> String {
    match (estimate.fraction(), estimate.fraction_max()) {
        (Some(least), Some(most)) if most > least => {
            format!("{} to {}", units::percent(least), units::percent(most))
        }
        (Some(share), _) => units::percent(share),
        (None, _) => "–".to_owned(),
    }
}

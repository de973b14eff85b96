//! `twixt heavy`: the largest flows at one point.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Serialize;
use twixt_model::{HeavyFlow, Span};
use twixt_offline::ChosenAlgorithm;
use twixt_synopsis::{Estimator, Question, Totals};

use super::one_point::{SeenAtPoint, read};
use crate::args::{AlgorithmArgs, Heavies, TrafficArgs};
use crate::configuration::Configuration;
use crate::exit::Exit;
use crate::frame_input::SourceArgs;
use crate::output::{self, ROWS_DEFAULT, ScopeColumns, Table, TableFormat, units};

/// The largest flows at one point, from a fixed number of counters
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Rank flows by packets or bytes
    #[arg(long, value_enum, default_value_t)]
    by: Size,
    /// Print only this many flows [default: all; 30 in human output]
    #[arg(long, value_name = "N")]
    top: Option<usize>,
    /// Stop after this many packets
    #[arg(short = 'c', long = "count", value_name = "COUNT")]
    count: Option<u64>,
    /// Output format
    #[arg(short = 'F', long, value_enum, default_value_t)]
    format: TableFormat,
    #[command(flatten)]
    traffic: TrafficArgs,
    #[command(flatten)]
    algorithm: AlgorithmArgs<Heavies>,
    #[command(flatten)]
    source: SourceArgs,
}

/// What makes a flow large.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum Size {
    /// By packets
    #[default]
    Packets,
    /// By bytes
    Bytes,
}

/// Of the bounded ones, the one that has most of the large flows in the same memory.
pub(super) const DEFAULT_ALGORITHM: &str = "rap";

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    let chosen = args.algorithm.choose(DEFAULT_ALGORITHM)?;
    let seen = read(&args.source, &args.traffic, &chosen, args.count)?;
    let Some(span) = seen.span else {
        return seen.exit.without_answer(format!("{}: no packets", seen.name));
    };
    let flows = args.largest(&chosen, &seen, span)?;
    let rows = flows.iter().map(Row::new);
    match (args.format, args.format.rows()) {
        (_, Some(format)) => output::rows(format, rows)?,
        (TableFormat::Json, _) => output::json(&Document::new(&seen, rows.collect()))?,
        _ => output::text(&report(&seen, &flows, args.top.unwrap_or(ROWS_DEFAULT)))?,
    }
    Ok(seen.exit)
}

impl Args {
    /// Takes from the configuration file what the command line left out.
    pub(crate) fn with(self, configuration: &Configuration) -> Self {
        Self { algorithm: self.algorithm.with(configuration), ..self }
    }

    fn largest(
        &self,
        chosen: &ChosenAlgorithm,
        seen: &SeenAtPoint,
        span: Span,
    ) -> anyhow::Result<Vec<HeavyFlow>> {
        let Estimator::Heavy(estimator) = &chosen.algorithm.estimator else {
            unreachable!("the command offers no algorithm for anything else")
        };
        let question = Question::about(span);
        let mut flows = (estimator.conclude)(seen.synopsis.as_ref(), &question)?;
        if self.by == Size::Bytes {
            flows.sort_by_key(|flow| (Reverse(flow.bytes), flow.key));
        }
        if let (Some(top), true) = (self.top, self.format != TableFormat::Human) {
            flows.truncate(top);
        }
        Ok(flows)
    }
}

/// `twixt heavy -F json`.
#[derive(Serialize)]
struct Document {
    algorithm: &'static str,
    /// Counters; `null` if there is one for every flow.
    entries: Option<i64>,
    synopsis_bytes: u64,
    packets: u64,
    bytes: u64,
    skipped: BTreeMap<String, u64>,
    dropped: Option<u64>,
    flows: Vec<Row>,
}

/// A flow, in all machine formats.
#[derive(Serialize)]
struct Row {
    scope: String,
    packets: u64,
    bytes: u64,
    packets_at_least: u64,
    packets_at_most: Option<u64>,
    #[serde(flatten)]
    columns: ScopeColumns,
}

impl Document {
    fn new(seen: &SeenAtPoint, flows: Vec<Row>) -> Self {
        let Totals { packets, bytes } = seen.synopsis.totals();
        Self {
            algorithm: seen.synopsis.name(),
            entries: entries(seen),
            synopsis_bytes: seen.synopsis.state_bytes(),
            packets,
            bytes,
            skipped: seen.counts.skipped.clone(),
            dropped: seen.counts.dropped,
            flows,
        }
    }
}

impl Row {
    fn new(flow: &HeavyFlow) -> Self {
        Self {
            scope: flow.key.to_string(),
            packets: flow.packets,
            bytes: flow.bytes,
            packets_at_least: flow.packets_at_least,
            packets_at_most: flow.packets_at_most,
            columns: (&flow.key).into(),
        }
    }
}

fn entries(seen: &SeenAtPoint) -> Option<i64> {
    seen.synopsis.config().get("entries").and_then(toml::Value::as_integer)
}

fn report(seen: &SeenAtPoint, flows: &[HeavyFlow], rows: usize) -> String {
    let size = match entries(seen) {
        Some(entries) => format!("{} counters, ", units::count(entries.unsigned_abs())),
        None => String::new(),
    };
    let (name, bytes) = (seen.synopsis.name(), units::bytes(seen.synopsis.state_bytes()));
    let mut report = format!("{}   ({name}, {size}{bytes})\n\n", seen.name);
    let totals = seen.synopsis.totals();
    let mut table = Table::new(&["flow", "packets", "certain", "share", "bytes", "share"]);
    for flow in flows.iter().take(rows) {
        table.row(vec![
            flow.key.to_string(),
            units::count(flow.packets),
            units::count(flow.packets_at_least),
            units::percent(flow.packets as f64 / totals.packets as f64),
            units::bytes(flow.bytes),
            units::percent(flow.bytes as f64 / totals.bytes.max(1) as f64),
        ]);
    }
    report += &table.to_string();
    if let Some(more @ 1..) = flows.len().checked_sub(rows) {
        let more = units::count(more as u64);
        report += &format!("… and {more} more; --top shows more, -F csv all\n");
    }
    let (packets, bytes) = (units::count(totals.packets), units::bytes(totals.bytes));
    report += &format!("\n{packets} packets, {bytes}\n");
    for (reason, count) in &seen.counts.skipped {
        report += &format!("{} skipped: {reason}\n", units::count(*count));
    }
    if let Some(dropped @ 1..) = seen.counts.dropped {
        report += &format!("{} dropped by the capturing kernel\n", units::count(dropped));
    }
    report
}

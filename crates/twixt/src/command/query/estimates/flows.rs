//! `--by flow`: what single flows did, from the raw epochs that a collector keeps.

use std::path::Path;

use twixt_collector::api::{FlowOrder, FlowSelection, FlowsDocument};
use twixt_collector::flows::{FlowsAsked, FlowsError};
use twixt_collector::{EPOCHS_FOLDER, ESTIMATES_FOLDER};
use twixt_history::HistoryReader;
use twixt_model::{Delay, Span};
use twixt_store::{Log, Options};

use super::super::Args;
use super::asking::Collector;
use super::{exit, showing};
use crate::args::Moment;
use crate::exit::{Exit, no_answer, note, usage};
use crate::output::{self, TableFormat};

/// Default number of flows shown.
const FLOWS_DEFAULT: u64 = 20;

/// `--order`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(in crate::command::query) enum Order {
    /// Mean delay
    #[default]
    Delay,
    /// Standard deviation of delay
    Deviation,
    /// Share of packets lost
    Loss,
}

/// What is asked about flows.
pub(super) struct FlowQuestion {
    pub(super) asked: FlowsAsked,
    pub(super) order: FlowOrder,
    pub(super) limit: u64,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let estimates = &args.estimates;
    if estimates.scope.is_some() || estimates.step.is_some() {
        return Err(usage("--scope and --step cannot be combined with --by flow"));
    }
    if args.format == TableFormat::Parquet {
        return Err(usage("-F parquet is not available with --by flow"));
    }
    let segment = estimates.segment.clone();
    let question = FlowQuestion {
        asked: FlowsAsked {
            segment: segment.ok_or_else(|| usage("--by flow needs --segment"))?,
            class: estimates.class.clone(),
            algorithm: args.algorithm.clone(),
            span: last_minute(args)?,
        },
        order: estimates.order.unwrap_or_default().into(),
        limit: estimates.top.unwrap_or(FLOWS_DEFAULT),
    };
    let document = match (&estimates.source.running.collector, &estimates.source.directory) {
        (Some(url), _) => Collector::new(url, &estimates.source.running)?.flows(&question)?,
        (None, Some(directory)) => read(directory, &question)?,
        (None, None) => return Err(usage("nothing to query: use --collector or --directory")),
    };
    show(args, &document)
}

/// What is asked for; the minute before its end, as of a collector, if no start is given.
fn last_minute(args: &Args) -> anyhow::Result<Span> {
    const MINUTE: Delay = Delay::from_nanos(60_000_000_000);
    let span = args.span()?;
    if args.start.is_some() {
        return Ok(span);
    }
    let end = args.end.unwrap_or(Moment::Ago(0)).resolve();
    Ok(Span { start: end - MINUTE, end })
}

/// As a collector would answer.
fn read(directory: &Path, question: &FlowQuestion) -> anyhow::Result<FlowsDocument> {
    let [epochs, estimates] = [EPOCHS_FOLDER, ESTIMATES_FOLDER].map(|name| directory.join(name));
    if !epochs.is_dir() || !estimates.is_dir() {
        let shown = directory.display();
        return Err(no_answer(format!("{shown} is not the directory of a collector")));
    }
    let reader = HistoryReader::open(&estimates);
    let log = Log::open(epochs, Options::default());
    let ask = |question: &_| reader.answer(question);
    let answer = twixt_collector::flows::flows(&log, ask, &question.asked);
    let answer = answer.map_err(|error| match error {
        FlowsError::TooManyEpochs | FlowsError::TooManyBytes => usage(error.to_string()),
        error => error.into(),
    })?;
    let limit = usize::try_from(question.limit).unwrap_or(usize::MAX);
    let selection = FlowSelection { order: question.order, min_packets: 0, limit };
    Ok(FlowsDocument::of(&question.asked, answer, selection))
}

fn show(args: &Args, document: &FlowsDocument) -> anyhow::Result<Exit> {
    document.completeness.problems.iter().for_each(note);
    match args.format {
        TableFormat::Json => output::json(document)?,
        TableFormat::Jsonl => output::jsonl(&document.flows)?,
        TableFormat::Csv => output::csv(&document.flows)?,
        _ if document.flows.is_empty() => {
            let reason = document.reason.as_deref().unwrap_or("no flow was seen");
            return Err(no_answer(reason));
        }
        _ => output::text(&showing::flow_report(document, args.rows_shown))?,
    }
    if args.format != TableFormat::Json {
        document.reason.iter().for_each(note);
    }
    Ok(exit(!document.flows.is_empty(), document.completeness.complete))
}

impl From<Order> for FlowOrder {
    fn from(order: Order) -> Self {
        match order {
            Order::Delay => Self::Delay,
            Order::Deviation => Self::Deviation,
            Order::Loss => Self::Loss,
        }
    }
}

//! `--by flow`: what single flows did, from the raw epochs that a collector keeps.

use std::path::Path;

use twixt_collector::api::{
    EstimatesDocument, FlowDocument, FlowOrder, FlowSelection, FlowsDocument,
};
use twixt_collector::flows::{FlowsAnswer, FlowsAsked, FlowsError};
use twixt_collector::{EPOCHS_FOLDER, ESTIMATES_FOLDER};
use twixt_history::{HistoryReader, Step};
use twixt_model::{Delay, FlowKey};
use twixt_store::{Log, Options};

use super::super::Args;
use super::asking::Collector;
use super::{exit, showing};
use crate::bundle::Directory;
use crate::exit::{Exit, no_answer, note, usage};
use crate::output::{self, TableFormat};

/// Default number of flows shown.
const FLOWS_DEFAULT: u64 = 20;
/// The time that is asked about by default.
const MINUTE: Delay = Delay::from_nanos(60_000_000_000);

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
    if estimates.step.is_some() {
        return Err(usage("--step cannot be combined with --by flow"));
    }
    if estimates.scope.is_some() && (estimates.order.is_some() || estimates.top.is_some()) {
        return Err(usage("--order and --top cannot be combined with --scope: it is one flow"));
    }
    if args.format == TableFormat::Parquet {
        return Err(usage("-F parquet is not available with --by flow"));
    }
    let segment = estimates.segment.clone();
    let directory = estimates.source.directory.as_deref().map(Directory::open).transpose()?;
    let now = directory.as_ref().and_then(Directory::now);
    let question = FlowQuestion {
        asked: FlowsAsked {
            segment: segment.ok_or_else(|| usage("--by flow needs --segment"))?,
            class: estimates.class.clone(),
            algorithm: args.algorithm.clone(),
            span: super::recent(args, MINUTE, now)?,
            scope: estimates.scope.as_deref().map(flow).transpose()?,
        },
        order: estimates.order.unwrap_or_default().into(),
        limit: estimates.top.unwrap_or(FLOWS_DEFAULT),
    };
    if question.asked.scope.is_some() {
        return one(args, &question.asked, directory.as_ref());
    }
    let document = match (&estimates.source.running.collector, &directory) {
        (Some(url), _) => Collector::new(url, &estimates.source.running)?.flows(&question)?,
        (None, Some(directory)) => {
            let limit = usize::try_from(question.limit).unwrap_or(usize::MAX);
            let selection = FlowSelection { order: question.order, min_packets: 0, limit };
            let answer = read(directory.path(), &question.asked)?;
            FlowsDocument::of(&question.asked, answer, selection)
        }
        (None, None) => return Err(usage("nothing to query: use --collector or --directory")),
    };
    show(args, &document)
}

/// One flow, epoch by epoch.
fn one(args: &Args, asked: &FlowsAsked, directory: Option<&Directory>) -> anyhow::Result<Exit> {
    let running = &args.estimates.source.running;
    let document = match (&running.collector, directory) {
        (Some(url), _) => Collector::new(url, running)?.flow(asked)?,
        (None, Some(directory)) => FlowDocument::of(asked, read(directory.path(), asked)?),
        (None, None) => return Err(usage("nothing to query: use --collector or --directory")),
    };
    if args.format == TableFormat::Json {
        output::json(&document)?;
        return Ok(exit(!document.estimates.is_empty(), document.completeness.complete));
    }
    if document.estimates.is_empty() {
        let reason = document.reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
        return Err(no_answer(format!("no packet of this flow was seen{reason}")));
    }
    document.reason.iter().for_each(note);
    let estimates = EstimatesDocument {
        range: document.range,
        step: Step::Epoch.name().to_owned(),
        completeness: document.completeness,
        estimates: document.estimates,
        next: None,
    };
    super::show(args, &estimates)
}

/// A flow by the name that answers give it.
fn flow(scope: &str) -> anyhow::Result<String> {
    let key: Result<FlowKey, _> = scope.parse();
    key.map(|key| key.to_string()).map_err(|error| usage(format!("--scope: {error}")))
}

/// As a collector would pair them again.
fn read(directory: &Path, asked: &FlowsAsked) -> anyhow::Result<FlowsAnswer> {
    let [epochs, estimates] = [EPOCHS_FOLDER, ESTIMATES_FOLDER].map(|name| directory.join(name));
    if !epochs.is_dir() || !estimates.is_dir() {
        let shown = directory.display();
        return Err(no_answer(format!("{shown} is not the directory of a collector")));
    }
    let reader = HistoryReader::open(&estimates);
    let log = Log::open(epochs, Options::default());
    let ask = |question: &_| reader.answer(question);
    twixt_collector::flows::flows(&log, ask, asked).map_err(|error| match error {
        FlowsError::TooManyEpochs | FlowsError::TooManyBytes => usage(error.to_string()),
        error => error.into(),
    })
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

//! What a collector remembers: asked of itself while it runs, or read from its folder.

mod asking;
mod bundle;
mod flows;
mod showing;

use std::path::{Path, PathBuf};

use twixt_collector::ESTIMATES_FOLDER;
use twixt_collector::api::{
    CompletenessDocument, EstimateDocument, EstimatesDocument, HistogramDocument,
};
use twixt_history::{HistoryReader, ROWS_MAX, RowAnswer, RowQuestion, Step, Table, to_parquet};
use twixt_model::{Delay, PointId, Scope, Segment, Span, Timestamp};
use twixt_offline::Split;
use twixt_synopsis::By;

use crate::args::Moment;
use crate::bundle::Directory;
use crate::exit::{Exit, no_answer, note, usage};
use crate::output::{self, TableFormat};
pub(in crate::command) use asking::Collector;
pub(super) use asking::parameters;
pub(super) use showing::{footer, moment};

/// Every scope.
pub(super) const ANY_SCOPE: &str = "*";

/// Whom to ask.
#[derive(clap::Args)]
pub(crate) struct SourceArgs {
    #[command(flatten)]
    pub(super) running: CollectorArgs,
    /// The directory of a collector, whether or not it runs, or an incident bundle
    #[arg(long, value_name = "DIR", group = "source")]
    pub(super) directory: Option<PathBuf>,
}

/// A collector that runs, and how to be admitted.
#[derive(clap::Args)]
pub(crate) struct CollectorArgs {
    /// A running collector: http://HOST:PORT or https://HOST:PORT
    #[arg(long, value_name = "URL", group = "source")]
    pub(crate) collector: Option<String>,
    /// File with the token of a reader
    #[arg(long, value_name = "FILE", requires = "collector")]
    token_file: Option<PathBuf>,
    /// Certificates of the authority that signed the collector's [default: well-known authorities]
    #[arg(long, value_name = "FILE", requires = "collector")]
    ca: Option<PathBuf>,
}

#[derive(clap::Args)]
pub(super) struct EstimateArgs {
    #[command(flatten)]
    pub(super) source: SourceArgs,
    /// The segment: names of its points [default: all segments]
    #[arg(long, value_name = "UPSTREAM:DOWNSTREAM", value_parser = segment)]
    segment: Option<Segment>,
    /// Class of traffic [default: all classes]
    #[arg(long, value_name = "NAME")]
    pub(super) class: Option<String>,
    /// Scope of the estimates: all, a flow, … or * for everything [default: all]
    #[arg(long, value_name = "SCOPE")]
    pub(super) scope: Option<String>,
    /// Length of the rows: epoch, minute, hour [default: minute]
    #[arg(long, value_name = "STEP")]
    pub(super) step: Option<Step>,
    /// With --by flow: sort flows by this, largest first [default: delay]
    #[arg(long, value_name = "WHAT", value_enum)]
    pub(super) order: Option<flows::Order>,
    /// With --by flow: maximum number of flows [default: 20]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000))]
    pub(super) top: Option<u64>,
    /// Write all that is stored of --segment from --start to --end to one file, for `twixt view`
    /// [default: an hour]
    #[arg(long, value_name = "FILE")]
    bundle: Option<PathBuf>,
}

impl EstimateArgs {
    /// The names of options that were given.
    pub(super) fn given(&self) -> impl Iterator<Item = &'static str> {
        let given = [
            ("segment", self.segment.is_some()),
            ("class", self.class.is_some()),
            ("scope", self.scope.is_some()),
            ("step", self.step.is_some()),
            ("order", self.order.is_some()),
            ("top", self.top.is_some()),
            ("bundle", self.bundle.is_some()),
        ];
        given.into_iter().filter(|(_, is_given)| *is_given).map(|(name, _)| name)
    }

    fn question(&self, args: &super::Args) -> anyhow::Result<RowQuestion> {
        let scope = self.scope.clone().unwrap_or_else(|| Scope::All.to_string());
        Ok(RowQuestion {
            segment: self.segment.clone(),
            class: self.class.clone(),
            algorithm: args.algorithm.clone(),
            scope: Some(scope).filter(|scope| scope != ANY_SCOPE),
            span: args.span()?,
            histograms: args.format == TableFormat::Parquet,
            limit: ROWS_MAX,
            ..RowQuestion::all(self.step.unwrap_or(Step::Minute))
        })
    }
}

pub(super) fn run(args: &super::Args) -> anyhow::Result<Exit> {
    if args.total || args.stream.is_some() || args.estimator.is_some() {
        return Err(usage("--total, --stream and --estimator are for --store"));
    }
    if let Some(path) = &args.estimates.bundle {
        return bundle::run(args, path);
    }
    match args.by {
        None | Some(Split::By(By::All)) => {}
        Some(Split::By(By::Flow)) => return flows::run(args),
        Some(_) => return Err(usage("a collector answers --by all and --by flow")),
    }
    if args.estimates.order.is_some() || args.estimates.top.is_some() {
        return Err(usage("--order and --top are for --by flow"));
    }
    let question = args.estimates.question(args)?;
    match (&args.estimates.source.running.collector, &args.estimates.source.directory) {
        (Some(url), _) => {
            let collector = Collector::new(url, &args.estimates.source.running)?;
            match args.format {
                TableFormat::Parquet => collector.estimate_table(&question),
                _ => show(args, &collector.estimates(&question)?),
            }
        }
        (None, Some(directory)) => {
            let directory = Directory::open(directory)?;
            let reader = HistoryReader::open(&folder(directory.path())?);
            match args.format {
                TableFormat::Parquet => table(&reader, &question),
                _ => show(args, &read(&reader, &question)?),
            }
        }
        (None, None) => Err(usage("nothing to query: use --collector, --directory or --store")),
    }
}

/// Rows of a segment and an interval of time, summed up.
pub(crate) fn totals(
    source: &SourceArgs,
    question: &RowQuestion,
) -> anyhow::Result<HistogramDocument> {
    match (&source.running.collector, &source.directory) {
        (Some(url), _) => Collector::new(url, &source.running)?.totals(question),
        (None, Some(directory)) => {
            let directory = Directory::open(directory)?;
            let answer = HistoryReader::open(&folder(directory.path())?).answer(question)?;
            let total = twixt_history::totals(answer.rows.iter().filter(|row| !row.is_gap()));
            Ok(HistogramDocument {
                range: question.span.into(),
                completeness: CompletenessDocument::of(&answer, ToString::to_string),
                total: total.iter().map(EstimateDocument::from).collect(),
                buckets: None,
                reason: None,
            })
        }
        (None, None) => Err(usage("nothing to query: use --collector or --directory")),
    }
}

/// What is asked for; so long before the end, as of a collector, if no start is given. Without an end
/// that is `now`, or the clock's.
fn recent(args: &super::Args, length: Delay, now: Option<Timestamp>) -> anyhow::Result<Span> {
    let span = args.span()?;
    let clock = || now.unwrap_or_else(|| Moment::Ago(0).resolve());
    let end = args.end.map_or_else(clock, Moment::resolve);
    match args.start {
        Some(_) => Ok(Span { start: span.start, end: end.max(span.start) }),
        None => Ok(Span { start: end - length, end }),
    }
}

/// Where estimates lie in a collector's folder, or the folder of estimates itself.
fn folder(directory: &Path) -> anyhow::Result<PathBuf> {
    let estimates = directory.join(ESTIMATES_FOLDER);
    match () {
        () if estimates.is_dir() => Ok(estimates),
        () if directory.join("open").is_dir() || directory.join("rollups").is_dir() => {
            Ok(directory.to_owned())
        }
        () => Err(no_answer(format!("{} has no estimates", directory.display()))),
    }
}

/// All pages of an answer, as a collector would give it.
fn read(reader: &HistoryReader, question: &RowQuestion) -> anyhow::Result<EstimatesDocument> {
    let mut whole = Whole::default();
    let mut question = question.clone();
    loop {
        let answer = reader.answer(&question)?;
        question.after = answer.next;
        whole.add(EstimatesDocument {
            range: question.span.into(),
            step: question.step.name().to_owned(),
            completeness: CompletenessDocument::of(&answer, ToString::to_string),
            estimates: answer.rows.iter().map(EstimateDocument::from).collect(),
            next: None,
        });
        if question.after.is_none() {
            return Ok(whole.document);
        }
    }
}

/// A document combined from pages.
#[derive(Default)]
struct Whole {
    document: EstimatesDocument,
    pages: u64,
}

impl Whole {
    fn add(&mut self, page: EstimatesDocument) {
        self.pages += 1;
        if self.pages == 1 {
            self.document = page;
            return;
        }
        let sum = &mut self.document.completeness;
        sum.complete &= page.completeness.complete;
        sum.epochs = sum.epochs.saturating_add(page.completeness.epochs);
        sum.gaps = sum.gaps.saturating_add(page.completeness.gaps);
        for problem in page.completeness.problems {
            if !sum.problems.contains(&problem) {
                sum.problems.push(problem);
            }
        }
        self.document.estimates.extend(page.estimates);
    }
}

fn table(reader: &HistoryReader, question: &RowQuestion) -> anyhow::Result<Exit> {
    let answer: RowAnswer = reader.answer(question)?;
    answer.problems.iter().for_each(note);
    if answer.next.is_some() {
        return Err(usage(format!("more than {ROWS_MAX} rows: query a shorter time")));
    }
    output::bytes(&to_parquet(Table::Estimates, &answer.rows)?)?;
    let is_known = answer.rows.iter().any(|row| !row.is_gap());
    Ok(exit(is_known, answer.is_complete()))
}

fn show(args: &super::Args, document: &EstimatesDocument) -> anyhow::Result<Exit> {
    let is_known = document.estimates.iter().any(|row| row.epochs > 0);
    let is_complete = document.completeness.complete;
    document.completeness.problems.iter().for_each(note);
    match args.format {
        TableFormat::Json => output::json(document)?,
        TableFormat::Jsonl => output::jsonl(&document.estimates)?,
        TableFormat::Csv => output::csv(&document.estimates)?,
        _ if document.estimates.is_empty() => {
            return Err(no_answer("no estimate is stored for that segment and time"));
        }
        _ => output::text(&showing::report(document, args.rows_shown))?,
    }
    Ok(exit(is_known, is_complete))
}

pub(super) fn exit(is_known: bool, is_complete: bool) -> Exit {
    let exit = if is_known { Exit::Done } else { Exit::NoAnswer };
    exit.or_partial(!is_complete)
}

/// A segment as it is written.
pub(crate) fn segment(text: &str) -> Result<Segment, String> {
    let (upstream, downstream) = text
        .split_once(':')
        .filter(|(upstream, downstream)| !upstream.is_empty() && !downstream.is_empty())
        .ok_or("write it as UPSTREAM:DOWNSTREAM, such as r-in:r-out")?;
    let point = |name: &str| PointId(name.to_owned());
    Ok(Segment { upstream: point(upstream), downstream: point(downstream) })
}

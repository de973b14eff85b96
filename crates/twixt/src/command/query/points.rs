//! `query --point`: round trips, reordering and large flows of single points, over time and in all.

mod showing;

use std::path::{Path, PathBuf};

use serde::Serialize;
use twixt_collector::api::{
    HeavyDocument, ObservedDocument, ReorderingDocument, RoundTripsDocument,
};
use twixt_history::{
    HistoryReader, ROWS_MAX, RowAnswer, RowQuestion, Step, Table, Unreadable, to_parquet,
};
use twixt_model::quantity::Nanoseconds;
use twixt_model::{PointId, RoundTripKind, Scope, Segment};
use twixt_offline::Split;
use twixt_store::real_disk;
use twixt_synopsis::By;

use super::estimates::{ANY_SCOPE, Collector, SourceArgs, exit, parameters};
use crate::exit::{Exit, no_answer, note, usage};
use crate::output::{self, TableFormat};

/// Rows that a collector answers at a time.
const ANSWER_ROWS_MAX: usize = 20_000;

/// What is asked of a point.
#[derive(clap::Args)]
pub(crate) struct PointArgs {
    /// A point: its round trips, reordering or large flows, instead of the delay of a segment
    #[arg(long, value_name = "POINT", conflicts_with_all = ["segment", "store"])]
    pub(super) point: Option<String>,
    /// With --point: what to show
    #[arg(long, value_name = "WHAT", value_enum, requires = "point")]
    show: Option<Shown>,
    /// With --point: kind of round trips, such as tcp-handshake [default: all]
    #[arg(long, value_name = "KIND", requires = "point")]
    kind: Option<RoundTripKind>,
    /// With --point: part of the kind, such as toward-servers, or * for all [default: the whole]
    #[arg(long, value_name = "PART", requires = "point")]
    part: Option<String>,
    /// With --point: also the share of round trips that took longer, such as 50ms
    #[arg(long, value_name = "DURATION", requires = "point")]
    above: Option<Nanoseconds>,
    /// With --point: share of packets out of order that prefixes are compared with [default: 0.02]
    #[arg(long, value_name = "SHARE", requires = "point")]
    threshold: Option<f64>,
}

/// `--show`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum Shown {
    /// Round-trip times
    #[default]
    RoundTrips,
    /// Packets out of order, by prefix
    Reordering,
    /// The largest flows
    Heavy,
}

impl Shown {
    const fn table(self) -> Table {
        match self {
            Self::RoundTrips => Table::RoundTrips,
            Self::Reordering => Table::Reordering,
            Self::Heavy => Table::Heavy,
        }
    }
}

/// Share of packets out of order that prefixes are compared with, as in `twixt reorder`.
const THRESHOLD_DEFAULT: f64 = 0.02;

pub(super) fn run(args: &super::Args, point: &str) -> anyhow::Result<Exit> {
    let PointArgs { show, kind, part, above, threshold, .. } = &args.point;
    let show = show.unwrap_or_default();
    check(args, show)?;
    let estimates = &args.estimates;
    let point = || PointId(point.to_owned());
    let all = Some(Scope::All.to_string()).filter(|_| show == Shown::RoundTrips);
    let part = part.clone().or_else(|| Some(String::new()));
    let question = RowQuestion {
        segment: Some(Segment { upstream: point(), downstream: point() }),
        class: estimates.class.clone(),
        algorithm: args.algorithm.clone(),
        kind: kind.map(|kind| kind.name().to_owned()),
        part: part.filter(|part| show == Shown::RoundTrips && part != ANY_SCOPE),
        scope: estimates.scope.clone().or(all).filter(|scope| scope != ANY_SCOPE),
        span: args.span()?,
        of_all: true,
        histograms: true,
        limit: ROWS_MAX,
        ..RowQuestion::all(estimates.step.unwrap_or(Step::Minute))
    };
    let above_ns = above.map(|above| above.0);
    let threshold = threshold.unwrap_or(THRESHOLD_DEFAULT);
    let source = PointSource::of(&estimates.source)?;
    if args.format == TableFormat::Parquet {
        return source.write_table(show.table(), &question);
    }
    match show {
        Shown::RoundTrips => {
            let document = round_trips(&source, &question, above_ns)?;
            let known = document.total.iter().any(|row| row.matched > 0);
            let rows = (&document, document.round_trips.as_slice());
            print(args, rows, known, &document.observed, || showing::round_trips(args, &document))?;
            finish(&document.completeness, known)
        }
        Shown::Reordering => {
            let more = vec![("threshold", threshold.to_string())];
            let document: ReorderingDocument = match &source {
                PointSource::Running(collector) => {
                    collector.document("reordering", &asked(&question, more))?
                }
                PointSource::Stored(directory) => {
                    let answer = read(directory, Table::Reordering, &question)?;
                    ReorderingDocument::of(&question, &answer, Some(threshold), problem)
                }
            };
            refuse_more(document.next.as_ref())?;
            let known = document.total.iter().any(|row| row.packets > 0);
            let rows = (&document, document.prefixes.as_slice());
            print(args, rows, known, &document.observed, || showing::reordering(args, &document))?;
            finish(&document.completeness, known)
        }
        Shown::Heavy => {
            let document: HeavyDocument = match &source {
                PointSource::Running(collector) => {
                    collector.document("heavy", &asked(&question, Vec::new()))?
                }
                PointSource::Stored(directory) => {
                    let answer = read(directory, Table::Heavy, &question)?;
                    HeavyDocument::of(&question, &answer, problem)
                }
            };
            refuse_more(document.next.as_ref())?;
            let known = !document.total.is_empty();
            let rows = (&document, document.flows.as_slice());
            print(args, rows, known, &document.observed, || showing::heavy(args, &document))?;
            finish(&document.completeness, known)
        }
    }
}

/// Refuses what does not belong together.
fn check(args: &super::Args, show: Shown) -> anyhow::Result<()> {
    let PointArgs { kind, part, above, threshold, .. } = &args.point;
    let is_split = !matches!(args.by, None | Some(Split::By(By::All)));
    let of_round_trips = kind.is_some() || part.is_some() || above.is_some();
    match () {
        () if args.total || args.stream.is_some() || args.estimator.is_some() => {
            Err(usage("--total, --stream and --estimator are for --store"))
        }
        () if is_split || args.estimates.order.is_some() || args.estimates.top.is_some() => {
            Err(usage("--by, --order and --top are for segments; use --scope with --point"))
        }
        () if of_round_trips && show != Shown::RoundTrips => {
            Err(usage("--kind, --part and --above are for --show round-trips"))
        }
        () if threshold.is_some() && show != Shown::Reordering => {
            Err(usage("--threshold is for --show reordering"))
        }
        () if threshold.is_some_and(|threshold| !(threshold > 0.0 && threshold < 1.0)) => {
            Err(usage("--threshold must be between 0 and 1"))
        }
        () => Ok(()),
    }
}

/// Whom to ask.
pub(crate) enum PointSource {
    /// A collector that runs.
    Running(Collector),
    /// The directory of one.
    Stored(PathBuf),
}

impl PointSource {
    pub(crate) fn of(source: &SourceArgs) -> anyhow::Result<Self> {
        match (&source.running.collector, &source.directory) {
            (Some(url), _) => Ok(Self::Running(Collector::new(url, &source.running)?)),
            (None, Some(directory)) => Ok(Self::Stored(directory.clone())),
            (None, None) => Err(usage("nothing to query: use --collector or --directory")),
        }
    }

    /// The rows as they lie in files.
    fn write_table(&self, table: Table, question: &RowQuestion) -> anyhow::Result<Exit> {
        match self {
            Self::Running(collector) => collector.table(table.name(), &asked(question, Vec::new())),
            Self::Stored(directory) => {
                let answer = read(directory, table, question)?;
                answer.problems.iter().for_each(note);
                refuse_more(answer.next.map(|next| next.to_string()).as_ref())?;
                output::bytes(&to_parquet(table, &answer.rows)?)?;
                let is_known = answer.rows.iter().any(|row| !row.is_gap());
                Ok(exit(is_known, answer.is_complete()))
            }
        }
    }
}

/// Round trips of points, from wherever they are.
pub(crate) fn round_trips(
    source: &PointSource,
    question: &RowQuestion,
    above_ns: Option<i64>,
) -> anyhow::Result<RoundTripsDocument> {
    let document: RoundTripsDocument = match source {
        PointSource::Running(collector) => {
            let more = above_ns.map(|above_ns| ("above_ns", above_ns.to_string()));
            collector.document("round-trips", &asked(question, more.into_iter().collect()))?
        }
        PointSource::Stored(directory) => {
            let answer = read(directory, Table::RoundTrips, question)?;
            RoundTripsDocument::of(question, &answer, above_ns, problem)
        }
    };
    refuse_more(document.next.as_ref())?;
    Ok(document)
}

fn problem(problem: &Unreadable) -> String {
    problem.to_string()
}

/// A question as a collector is asked it.
fn asked(question: &RowQuestion, more: Vec<(&'static str, String)>) -> Vec<(&'static str, String)> {
    let point = question.segment.as_ref().map(|segment| segment.upstream.0.clone());
    let all = |text: &Option<String>| text.clone().unwrap_or_else(|| ANY_SCOPE.to_owned());
    let mut asked = parameters(question);
    asked.retain(|(name, _)| *name != "segment" && *name != "scope");
    asked.extend(point.map(|point| ("point", point)));
    asked.push(("scope", all(&question.scope)));
    asked.extend(question.kind.clone().map(|kind| ("kind", kind)));
    // Only round trips have parts.
    asked.extend(question.part.clone().filter(|part| !part.is_empty()).map(|part| ("part", part)));
    // Without a start, a collector answers the last hour.
    if !asked.iter().any(|(name, _)| *name == "start") {
        asked.push(("start", "0".to_owned()));
    }
    asked.push(("limit", ANSWER_ROWS_MAX.to_string()));
    asked.extend(more);
    asked
}

fn read(directory: &Path, table: Table, question: &RowQuestion) -> anyhow::Result<RowAnswer> {
    let folder = directory.join(table.name());
    if !folder.is_dir() {
        let (shown, name) = (directory.display(), table.name());
        return Err(no_answer(format!("{shown} has no {name}: it is not of a collector")));
    }
    let reader = HistoryReader::open_table(real_disk(), &folder, table);
    let question = RowQuestion { limit: ANSWER_ROWS_MAX, ..question.clone() };
    Ok(reader.answer(&question)?)
}

fn refuse_more(next: Option<&String>) -> anyhow::Result<()> {
    match next {
        Some(_) => Err(usage(format!(
            "more than {ANSWER_ROWS_MAX} rows: query a shorter time, or a longer --step"
        ))),
        None => Ok(()),
    }
}

fn print<D: Serialize, R: Serialize>(
    args: &super::Args,
    (document, rows): (&D, &[R]),
    known: bool,
    observed: &[ObservedDocument],
    report: impl FnOnce() -> String,
) -> anyhow::Result<()> {
    match args.format {
        TableFormat::Json => output::json(document),
        TableFormat::Jsonl => output::jsonl(rows),
        TableFormat::Csv => output::csv(rows),
        _ if !known && observed.is_empty() => {
            Err(no_answer("not recorded: nothing is stored of that point and time"))
        }
        _ if !known => Err(no_answer(format!(
            "the point recorded {} epochs, and there was nothing of it to measure",
            observed.iter().map(|row| row.epochs).sum::<u64>()
        ))),
        _ => output::text(&report()),
    }
}

fn finish(
    completeness: &twixt_collector::api::CompletenessDocument,
    known: bool,
) -> anyhow::Result<Exit> {
    completeness.problems.iter().for_each(note);
    Ok(exit(known, completeness.complete))
}

//! `twixt query`: delay between two points, for any interval of time: what a collector stores,
//! or what the epochs of a store give.

mod ahead;
mod document;
mod epochs;
pub(super) mod estimates;
mod families;
mod heads;
pub(super) mod points;
mod touched;

use std::path::{Path, PathBuf};

use twixt_collector::EPOCHS_FOLDER;
use twixt_model::{Epoch, Scope, Span, by_scope};
use twixt_offline::{Beside, Files, FlowSizes, Measured, Plan, Split};
use twixt_store::{Log, Options};
use twixt_synopsis::By;

use super::delay::{has_answer, is_empty, note_problems};
use crate::args::{AlgorithmArgs, Delays, DigestArgs, FlowsArgs, Moment, TrafficArgs, span_of};
use crate::bundle::Directory;
use crate::configuration::Configuration;
use crate::exit::{Exit, no_answer, note, usage};
use crate::output::{
    self, ROWS_DEFAULT, TableFormat, delay_report, estimate_rows, total_report, units,
};
pub(crate) use document::DamageDocument;
use document::{Missing, QueryDocument};
use epochs::Epochs;
use touched::Touched;

/// One-way delay, deviation and loss between two points, at any stored time
///
/// Queries a collector (--collector), reads its directory (--directory), or pairs the epochs of a
/// store (--store). With --point: round trips, reordering or large flows of one point.
#[derive(clap::Args)]
#[command(group = clap::ArgGroup::new("source").required(true))]
pub(crate) struct Args {
    /// The store: a directory written by `record --store`, or an incident bundle
    #[arg(long, value_name = "DIR", group = "source", requires_all = ["from", "to"])]
    store: Option<PathBuf>,
    /// The point that packets pass first, in a store
    #[arg(
        long,
        value_name = "POINT",
        requires = "store",
        default_value = "",
        hide_default_value = true
    )]
    from: String,
    /// The point that packets pass second, in a store
    #[arg(
        long,
        value_name = "POINT",
        requires = "store",
        default_value = "",
        hide_default_value = true
    )]
    to: String,
    #[command(flatten)]
    estimates: estimates::EstimateArgs,
    #[command(flatten)]
    point: points::PointArgs,
    /// Start: 2024-01-31T10:00:00Z or with another offset (without one: UTC), 2024-01-31, @ and
    /// seconds since 1970, nanoseconds, or -1d for a day ago [default: everything stored]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    start: Option<Moment>,
    /// End, inclusive; like --start
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    end: Option<Moment>,
    /// Split estimates: all, flow, host, prefix/24, port, class [default: all; flow if flows are named]
    #[arg(long, value_name = "SCOPE")]
    by: Option<Split>,
    /// One estimate for all epochs together, instead of one for each
    #[arg(long)]
    total: bool,
    /// Output format
    #[arg(short = 'F', long = "format", value_enum, default_value_t)]
    format: TableFormat,
    /// Rows of the table to show
    #[arg(long, value_name = "N", default_value_t = ROWS_DEFAULT)]
    rows_shown: usize,
    /// The algorithm of the recording, if there are several
    #[arg(short = 'a', long, value_name = "NAME")]
    algorithm: Option<String>,
    /// Algorithm and settings as `twixt info DIR` shows them, if there are several
    #[arg(long, value_name = "NAME")]
    stream: Option<String>,
    /// Estimator to use
    #[arg(long, value_name = "NAME")]
    estimator: Option<String>,
    #[command(flatten)]
    flows: FlowsArgs,
    #[command(flatten)]
    digest: DigestArgs,
    #[arg(skip)]
    traffic: TrafficArgs,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    match &args.store {
        Some(store) => run_store(args, store),
        None => match &args.point.point {
            Some(point) => points::run(args, point),
            None => estimates::run(args),
        },
    }
}

fn run_store(args: &Args, store: &Path) -> anyhow::Result<Exit> {
    if let Some(name) = args.estimates.given().next() {
        return Err(usage(format!("--{name} is for --collector or --directory, not for --store")));
    }
    let store = Directory::open(store)?;
    let log = Log::open(epochs_in(&store), Options::default());
    let asked = args.span()?;
    let families = families::choose(&log, args, asked)?;
    let mut epochs = Epochs::find(&log, args, families, asked)?;
    let plan = args.plan(&epochs)?;
    let mut measured = epochs.pair(&plan);
    measured.concluded[0].estimates.retain(|estimate| match &estimate.scope {
        Scope::Flow(key) => plan.flows.asks_for(key),
        _ => true,
    });
    let missing = epochs.missing(&measured);
    missing.note();
    let problems = note_problems(&measured);
    let known = has_answer(&measured);
    if !known && args.format == TableFormat::Human && is_empty(&measured) {
        return Err(no_answer("the two points have no epoch in common: nothing to compare"));
    }
    args.print(&plan, measured, &missing, epochs.touched())?;
    let exit = if known { Exit::Done } else { Exit::NoAnswer };
    Ok(exit.or_partial(missing.is_partial() || problems > 0))
}

/// Where the records of a store lie; of a bundle, its raw epochs.
fn epochs_in(store: &Directory) -> PathBuf {
    match store {
        Directory::There(path) => path.clone(),
        Directory::Bundle(bundle) => bundle.folder().join(EPOCHS_FOLDER),
    }
}

impl Args {
    /// Takes from the configuration file what the command line left out.
    pub(crate) fn with(self, configuration: &Configuration) -> Self {
        Self { digest: self.digest.with(configuration), ..self }
    }

    fn span(&self) -> anyhow::Result<Span> {
        span_of(self.start, self.end)
    }

    fn plan(&self, epochs: &Epochs<'_>) -> anyhow::Result<Plan> {
        let first = epochs.first();
        let flows = self.flows.list(FlowSizes::Estimated)?;
        if flows.has_whole_sizes() && epochs.count() > 1 {
            return Err(usage(
                "--sizes known: the list has the total packets of flows, not those of each epoch; \
                 use flow records, or omit it",
            ));
        }
        if self.by == Some(Split::Dscp) {
            return Err(usage(
                "--by dscp needs captures: a store has the classes of its recording",
            ));
        }
        let named = if flows.is_all() { By::All } else { By::Flow };
        let asked = AlgorithmArgs::<Delays>::named(self.algorithm.clone(), self.estimator.clone());
        let plan = Plan {
            traffic: self.traffic.traffic()?,
            digest: self.digest.plan(),
            algorithms: vec![asked.recorded(first)?],
            split: self.by.unwrap_or(Split::By(named)),
            rule: first.rule,
            auto_epochs: false,
            cutting: twixt_measure::Cutting::Timed,
            flows,
            beside: Beside::default(),
        };
        plan.check()?;
        plan.check_recorded(first)?;
        Ok(plan)
    }

    fn print(
        &self,
        plan: &Plan,
        mut measured: Measured,
        missing: &Missing,
        touched: Touched,
    ) -> anyhow::Result<()> {
        let files = Files { upstream: Path::new(&self.from), downstream: Path::new(&self.to) };
        let concluded = &mut measured.concluded[0];
        let totals: Vec<_> = by_scope(&concluded.estimates).into_values().collect();
        let series = concluded.epochs() > 1 && !self.total;
        if self.total {
            concluded.estimates.clone_from(&totals);
        }
        let (chosen, concluded) = (&plan.algorithms[0], &measured.concluded[0]);
        if let Some(format) = self.format.rows() {
            return output::rows(format, estimate_rows(concluded, None));
        }
        match self.format {
            TableFormat::Json => output::json(&QueryDocument::new(
                files, chosen, &measured, &totals, missing, touched,
            )),
            _ => {
                let mut report = delay_report(files, chosen, &measured, concluded, self.rows_shown);
                report += &touched.report();
                if series {
                    report += &total_report(&totals, concluded.epochs(), self.rows_shown);
                }
                output::text(&report)
            }
        }
    }
}

/// A run of epochs.
type EpochRange = std::ops::RangeInclusive<Epoch>;

/// Says on standard error what there is too much of to say it all.
fn note_some<T>(things: &[T], say: impl Fn(&T) -> String) {
    const SHOWN: usize = 5;
    for thing in things.iter().take(SHOWN) {
        note(say(thing));
    }
    if things.len() > SHOWN {
        note(format_args!("… and {} more", units::count((things.len() - SHOWN) as u64)));
    }
}

//! `twixt flow pair`: delays out of the flow records of two points.

use std::path::{Path, PathBuf};

use serde::Serialize;
use twixt_flow::EXAMPLE_ENTERPRISE;
use twixt_measure::survey::{ClockDifference, Comparison};
use twixt_model::quantity::Nanoseconds;
use twixt_model::{Delay, Estimate, FlowRecord, Prefix, Span};
use twixt_offline::{ChosenAlgorithm, Concluded, DirectionFound, Files, Measured, Split};
use twixt_synopsis::cnf::{AssociationCounts, CnfConfig, RecordEstimator, RecordPairingCounts};
use twixt_synopsis::{By, Purpose, find};

use super::direction::{FlowHashes, RecordSurvey};
use super::point_records::{PointRecords, Selection};
use super::results;
use super::streams::Streams;
use crate::exit::{Exit, no_answer, usage};
use crate::output::{
    self, DelayDocument, Format, ROWS_DEFAULT, delay_report, estimate_rows, units,
};

/// One-way delays from the flow records of two points
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Records of the point where packets pass first: an IPFIX file or pipe, or a capture of export
    /// traffic
    #[arg(value_name = "UP")]
    upstream: PathBuf,
    /// Records of the point where packets pass second
    #[arg(value_name = "DOWN")]
    downstream: PathBuf,
    /// Use only records of flows toward this prefix
    #[arg(long, value_name = "PREFIX")]
    toward: Option<Prefix>,
    /// Split estimates: all, flow, prefix/24
    #[arg(long, value_name = "SCOPE", default_value = "flow")]
    by: Split,
    /// Estimator of flow delays: hybrid, multiflow or endpoint
    #[arg(long, value_name = "NAME", default_value = RecordEstimator::NAMES[0],
          value_parser = RecordEstimator::NAMES)]
    estimator: String,
    /// Share of packets that were metered [default: as in the records, or all]
    #[arg(long, value_name = "NUMBER")]
    sampling: Option<f64>,
    /// Leave out this share of the largest delays
    #[arg(long, value_name = "NUMBER", default_value_t = 0.0)]
    outliers: f64,
    /// Enterprise number under which twixt wrote its own elements
    #[arg(long, value_name = "NUMBER", default_value_t = EXAMPLE_ENTERPRISE)]
    enterprise: u32,
    #[command(flatten)]
    association: AssociationArgs,
    /// Output format
    #[arg(short = 'F', long = "format", value_enum, default_value_t)]
    format: Format,
    /// Also write the delays of flows to this IPFIX file, with elements 530 and 533
    #[arg(short = 'w', long = "write", value_name = "FILE")]
    write: Option<PathBuf>,
    /// Rows of the table to show, worst first
    #[arg(long, value_name = "N", default_value_t = ROWS_DEFAULT)]
    rows_shown: usize,
}

/// How records are recognised. The names are those of the settings of cnf.
#[derive(clap::Args)]
#[command(next_help_heading = "Association")]
struct AssociationArgs {
    /// Match records by packet labels or by times alone [default: label, if all records have
    /// labels]
    #[arg(long, value_name = "HOW", value_parser = ["label", "timing"])]
    associate: Option<String>,
    /// Timing: smallest propagation delay
    #[arg(long, value_name = "DURATION", default_value = "0ms")]
    propagation_min: Nanoseconds,
    /// Timing: largest propagation delay
    #[arg(long, value_name = "DURATION", default_value = "20ms")]
    propagation_max: Nanoseconds,
    /// Timing: largest time in queues
    #[arg(long, value_name = "DURATION", default_value = "50ms")]
    processing: Nanoseconds,
    /// Timing: largest clock difference
    #[arg(long, value_name = "DURATION", default_value = "1ms")]
    clock: Nanoseconds,
    /// Active timeout of the meters
    #[arg(long, value_name = "DURATION", default_value = "30m")]
    active_timeout: Nanoseconds,
    /// Inactive timeout of the meters
    #[arg(long, value_name = "DURATION", default_value = "15s")]
    inactive_timeout: Nanoseconds,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    args.check()?;
    let window_ns = args.settings("label", 1.0)?.1.window_ns();
    let (upstream, downstream, mut found) = args.open()?;
    let mut streams = Streams::begin(upstream, downstream, window_ns, args.sampling)?;
    let associate = args.associate(streams.are_labelled())?;
    let (_, config) = args.settings(associate, 1.0)?;
    let estimator = RecordEstimator::of_name(Some(&args.estimator));
    let pairing = streams.pair(&config, args.by.by(), estimator)?;
    if let Some(comparison) = streams.compare() {
        check_one_way(&comparison)?;
        found = PairFacts::by(&comparison);
    }
    let counts = pairing.counts();
    let partial = streams.note_problems(config.rule(), &counts);
    let Some(span) = streams.upstream.span else {
        return Err(no_answer(format!("{}: no usable record", args.upstream.display())));
    };
    let rate = streams.rate().unwrap_or(1.0);
    let (chosen, _) = args.settings(associate, rate)?;
    let estimates = pairing.estimates(rate, span);
    let known = estimates.iter().any(|estimate| estimate.delay.is_some());
    let unwritten = args
        .write
        .as_deref()
        .map_or(Ok(0), |path| results::write(path, &estimates, args.enterprise))?;
    args.print(&chosen, &args.paired(&streams, estimates, span, &counts, found))?;
    let exit = if known { Exit::Done } else { Exit::NoAnswer };
    Ok(exit.or_partial(partial || unwritten > 0))
}

/// The result for two files of records.
struct Paired {
    measured: Measured,
    /// The coarsest of all records.
    resolution_ns: u64,
    association: AssociationDocument,
}

/// What became of records, in JSON.
#[derive(Serialize)]
struct AssociationDocument {
    upstream: u64,
    downstream: u64,
    associated: u64,
    unmatched: u64,
    doubtful: u64,
    overdue: u64,
}

impl From<AssociationCounts> for AssociationDocument {
    fn from(counts: AssociationCounts) -> Self {
        let AssociationCounts {
            upstream,
            downstream,
            associated,
            unmatched,
            doubtful,
            overdue,
            ..
        } = counts;
        Self { upstream, downstream, associated, unmatched, doubtful, overdue }
    }
}

/// `twixt flow pair -F json`: as `twixt delay`, and what is particular to records.
#[derive(Serialize)]
struct PairDocument<'a> {
    #[serde(flatten)]
    delay: DelayDocument,
    resolution_ns: u64,
    records: &'a AssociationDocument,
}

/// What was found out about both points together.
struct PairFacts {
    direction: DirectionFound,
    clock: Option<ClockDifference>,
}

impl PairFacts {
    /// By the records that both have.
    fn by(comparison: &Comparison) -> Self {
        let unknown_flows = comparison.unknown_flows();
        let decided_by = comparison.decided_by.name();
        // One direction tells nothing of the clocks that records of it do not include.
        let clock = comparison.clock().filter(|clock| clock.error_bound.is_some());
        Self { direction: DirectionFound { decided_by, unknown_flows }, clock }
    }

    /// Nothing: as the user says.
    const fn as_named(decided_by: &'static str) -> Self {
        Self { direction: DirectionFound { decided_by, unknown_flows: 0 }, clock: None }
    }
}

/// Refuses records of which nothing goes downstream.
fn check_downstream(comparison: &Comparison) -> anyhow::Result<()> {
    match comparison.downstream_delays {
        Some(_) => Ok(()),
        None => Err(no_answer(
            "all common records go in the other direction: swap the two files, or use --toward PREFIX \
             if the clocks differ by more than delays",
        )),
    }
}

/// Refuses records of both directions that were read once, and so together.
fn check_one_way(comparison: &Comparison) -> anyhow::Result<()> {
    check_downstream(comparison)?;
    match comparison.upstream_delays {
        None => Ok(()),
        Some(_) => Err(usage(
            "the records are of both directions, which a pipe can be read only once to distinguish: \
             use --toward PREFIX, or files",
        )),
    }
}

impl Args {
    /// Refuses what cannot be answered.
    fn check(&self) -> anyhow::Result<()> {
        if self.by == Split::Class {
            return Err(usage(
                "flow records do not name classes: use --by flow, all or prefix/24, or export each \
                 class with a filter",
            ));
        }
        if self.write.is_some() && self.by.by() != By::Flow {
            return Err(usage("delays are written by flow: omit --by, or --write"));
        }
        Ok(())
    }

    /// Opens both points, of which only records count that go downstream. A pipe can be read only
    /// once: which way its flows go is checked when it was.
    fn open(&self) -> anyhow::Result<(PointRecords, PointRecords, PairFacts)> {
        if let Some(toward) = self.toward {
            let selected = [Selection::Toward(toward), Selection::Toward(toward)];
            return self.open_selected(selected, PairFacts::as_named("toward"));
        }
        let paths = [&self.upstream, &self.downstream];
        let found = match paths.iter().all(|path| path.is_file()) {
            true => {
                let [up, down] = paths.map(|path| RecordSurvey::of_file(path, self.enterprise));
                up?.compare(&down?)
            }
            false => None,
        };
        match found {
            None => {
                let all = [(); 2].map(|()| Selection::Surveyed(RecordSurvey::new()));
                self.open_selected(all, PairFacts::as_named("order"))
            }
            Some(comparison) => {
                check_downstream(&comparison)?;
                let found = PairFacts::by(&comparison);
                let verdicts = [comparison.upstream, comparison.downstream];
                let going = verdicts.map(|going| Selection::Going(going, FlowHashes::default()));
                self.open_selected(going, found)
            }
        }
    }

    fn open_selected(
        &self,
        [upstream, downstream]: [Selection; 2],
        found: PairFacts,
    ) -> anyhow::Result<(PointRecords, PointRecords, PairFacts)> {
        let open = |path: &Path, selection| PointRecords::open(path, self.enterprise, selection);
        Ok((open(&self.upstream, upstream)?, open(&self.downstream, downstream)?, found))
    }

    /// How records are recognised: as the user says, else by labels if there are any.
    fn associate(&self, labelled: bool) -> anyhow::Result<&'static str> {
        match self.association.associate.as_deref() {
            Some("label") if !labelled => {
                Err(usage("not all records have labels: use --associate timing"))
            }
            Some("label") => Ok("label"),
            Some(_) => Ok("timing"),
            None => Ok(if labelled { "label" } else { "timing" }),
        }
    }

    /// The settings of cnf that the command line and this rate amount to.
    fn settings(&self, associate: &str, rate: f64) -> anyhow::Result<(ChosenAlgorithm, CnfConfig)> {
        let mut settings = toml::Table::new();
        let mut set = |name: &str, value: toml::Value| settings.insert(name.to_owned(), value);
        set("sampling", self.sampling.unwrap_or(rate).into());
        set("outliers", self.outliers.into());
        set("associate", associate.into());
        let bounds = &self.association;
        for (name, time) in [
            ("propagation_min", bounds.propagation_min),
            ("propagation_max", bounds.propagation_max),
            ("processing", bounds.processing),
            ("clock_bound", bounds.clock),
            ("active_timeout", bounds.active_timeout),
            ("inactive_timeout", bounds.inactive_timeout),
        ] {
            set(name, time.0.into());
        }
        let config = settings.clone().try_into::<CnfConfig>();
        let config = config.map_err(|error| usage(error.message().to_owned()))?;
        let algorithm = find(Purpose::Delay, "cnf").expect("it is in the registry");
        let prototype = (algorithm.start)(&settings).map_err(|error| usage(error.to_string()))?;
        let estimator = Some(self.estimator.clone());
        Ok((ChosenAlgorithm { algorithm, estimator, prototype }, config))
    }

    fn paired(
        &self,
        streams: &Streams,
        estimates: Vec<Estimate>,
        span: Span,
        counts: &RecordPairingCounts,
        PairFacts { direction, clock }: PairFacts,
    ) -> Paired {
        let Streams { upstream, downstream, .. } = streams;
        let bytes = upstream.records * size_of::<FlowRecord>() as u64;
        let resolution_ns = upstream.resolution_ns.max(downstream.resolution_ns);
        // Times are no more precise than that.
        let clock = clock.map(|clock| ClockDifference {
            error_bound: clock
                .error_bound
                .map(|bound| bound + Delay::from_nanos(resolution_ns as i64)),
            ..clock
        });
        Paired {
            resolution_ns,
            association: counts.association.into(),
            measured: Measured {
                concluded: vec![Concluded::whole(estimates, bytes, span)],
                upstream: upstream.counts(),
                downstream: downstream.counts(),
                direction,
                stretch: Some(span),
                clock,
                clocks: None,
                corrected: false,
                beside: None,
                negative_delays: counts.negative_delays,
                opposite: false,
            },
        }
    }

    fn print(&self, chosen: &ChosenAlgorithm, paired: &Paired) -> anyhow::Result<()> {
        let files = Files { upstream: &self.upstream, downstream: &self.downstream };
        let (measured, concluded) = (&paired.measured, &paired.measured.concluded[0]);
        match self.format {
            Format::Json => output::json(&PairDocument {
                delay: DelayDocument::new(files, chosen, measured, concluded),
                resolution_ns: paired.resolution_ns,
                records: &paired.association,
            }),
            Format::Jsonl => output::jsonl(estimate_rows(concluded, None)),
            Format::Csv => output::csv(estimate_rows(concluded, None)),
            Format::Human => {
                let report = delay_report(files, chosen, measured, concluded, self.rows_shown);
                output::text(&(report + &paired.footer()))
            }
        }
    }
}

impl Paired {
    fn footer(&self) -> String {
        let AssociationDocument { upstream, downstream, associated, unmatched, doubtful, .. } =
            &self.association;
        let [upstream, downstream, associated, unmatched, doubtful] =
            [upstream, downstream, associated, unmatched, doubtful].map(|n| units::count(*n));
        format!(
            "records    {upstream} upstream, {downstream} downstream: {associated} associated, \
             {unmatched} without a partner, {doubtful} doubtful\nresolution {}: single delays are \
             no more precise\n",
            units::duration(self.resolution_ns as f64)
        )
    }
}

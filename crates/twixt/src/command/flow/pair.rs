//! `twixt flow pair`: delays out of the flow records of two points.

use std::path::PathBuf;

use serde::Serialize;
use twixt_flow::EXAMPLE_ENTERPRISE;
use twixt_model::{FlowRecord, Prefix, Span};
use twixt_sim::quantity::Nanoseconds;
use twixt_synopsis::cnf::{
    Associated, Association, AssociationCounts, CnfConfig, FlowQuestion, RecordEstimator, Records,
    conclude, in_order,
};
use twixt_synopsis::{Purpose, find};

use super::point_records::{PointRecords, read};
use crate::args::{Chosen, Split};
use crate::exit::{Exit, no_answer, note, usage};
use crate::measure::{Concluded, DirectionFound, Files, Measured};
use crate::output::{
    self, DelayDocument, Format, ROWS_DEFAULT, delay_report, estimate_rows, units,
};

/// One-way delays out of the flow records of two points
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Records of the point where packets pass first: an IPFIX file, or a capture of exports
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
    /// How delays of flows are concluded: hybrid, multiflow or endpoint
    #[arg(long, value_name = "NAME", default_value = RecordEstimator::NAMES[0],
          value_parser = RecordEstimator::NAMES)]
    estimator: String,
    /// Share of packets that were metered [default: as the records say, or all]
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
    /// How to print
    #[arg(short = 'F', long = "format", value_enum, default_value_t)]
    format: Format,
    /// Rows of the table for people, worst first
    #[arg(long, value_name = "N", default_value_t = ROWS_DEFAULT)]
    rows_shown: usize,
}

/// How records are recognised. The names are those of the settings of cnf.
#[derive(clap::Args)]
#[command(next_help_heading = "Association")]
struct AssociationArgs {
    /// By packet labels or by times alone [default: label, if all records have labels]
    #[arg(long, value_name = "HOW", value_parser = ["label", "timing"])]
    associate: Option<String>,
    /// Timing: least propagation delay
    #[arg(long, value_name = "DURATION", default_value = "0ms")]
    propagation_min: Nanoseconds,
    /// Timing: greatest propagation delay
    #[arg(long, value_name = "DURATION", default_value = "20ms")]
    propagation_max: Nanoseconds,
    /// Timing: greatest time in queues
    #[arg(long, value_name = "DURATION", default_value = "50ms")]
    processing: Nanoseconds,
    /// Timing: greatest difference of the clocks
    #[arg(long, value_name = "DURATION", default_value = "1ms")]
    clock: Nanoseconds,
    /// The meters close records that are this old
    #[arg(long, value_name = "DURATION", default_value = "30m")]
    active_timeout: Nanoseconds,
    /// The meters close records without a packet for so long
    #[arg(long, value_name = "DURATION", default_value = "15s")]
    inactive_timeout: Nanoseconds,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    let upstream = read(&args.upstream, args.enterprise, args.toward)?;
    let downstream = read(&args.downstream, args.enterprise, args.toward)?;
    let (chosen, config) = args.settings(&upstream, &downstream)?;
    let (pairs, counts) = associate(&config, &upstream.records, &downstream.records);
    note_counts(&counts);
    let Some(span) = span(&upstream.records) else {
        return Err(no_answer(format!("{}: no usable record", args.upstream.display())));
    };
    let question = FlowQuestion {
        by: args.by.by(),
        estimator: RecordEstimator::of_name(Some(&args.estimator)),
        packet_rate: config.packet_rate(),
        outliers: config.outliers(),
        span,
    };
    let records =
        Records { upstream: &upstream.records, downstream: &downstream.records, pairs: &pairs };
    let estimates = conclude(&records, &question);
    let known = estimates.iter().any(|estimate| estimate.delay.is_some());
    let bytes = size_of_val(upstream.records.as_slice()) as u64;
    let paired = Paired {
        resolution_ns: upstream.resolution_ns().max(downstream.resolution_ns()),
        association: counts.into(),
        partial: upstream.partial || downstream.partial,
        measured: Measured {
            concluded: vec![Concluded::whole(estimates, bytes, span)],
            upstream: upstream.counts,
            downstream: downstream.counts,
            direction: DirectionFound {
                decided_by: if args.toward.is_some() { "toward" } else { "order" },
                unknown_flows: 0,
            },
            stretch: Some(span),
            clock: None,
            negative_delays: negative_delays(&pairs),
            opposite: false,
        },
    };
    args.print(&chosen, &paired)?;
    let exit = if known { Exit::Done } else { Exit::NoAnswer };
    Ok(exit.or_partial(paired.partial))
}

/// What two files of records told.
struct Paired {
    measured: Measured,
    /// The coarsest of all records.
    resolution_ns: u64,
    association: AssociationDocument,
    partial: bool,
}

/// What became of records, in JSON.
#[derive(Serialize)]
struct AssociationDocument {
    upstream: u64,
    downstream: u64,
    associated: u64,
    unmatched: u64,
    doubtful: u64,
}

impl From<AssociationCounts> for AssociationDocument {
    fn from(counts: AssociationCounts) -> Self {
        let AssociationCounts { upstream, downstream, associated, unmatched, doubtful, .. } =
            counts;
        Self { upstream, downstream, associated, unmatched, doubtful }
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

impl Args {
    /// The settings of cnf that these records and the command line amount to.
    fn settings(
        &self,
        upstream: &PointRecords,
        downstream: &PointRecords,
    ) -> anyhow::Result<(Chosen, CnfConfig)> {
        let AssociationArgs { associate, .. } = &self.association;
        let labelled = upstream.are_labelled() && downstream.are_labelled();
        if associate.as_deref() == Some("label") && !labelled {
            return Err(usage("not all records have labels: use --associate timing"));
        }
        let associate = associate.as_deref().unwrap_or(if labelled { "label" } else { "timing" });
        let mut settings = toml::Table::new();
        let mut set = |name: &str, value: toml::Value| settings.insert(name.to_owned(), value);
        set("sampling", self.sampling(upstream, downstream).into());
        set("outliers", self.outliers.into());
        set("associate", associate.into());
        let bounds = &self.association;
        for (name, time) in [
            ("propagation_min", bounds.propagation_min),
            ("propagation_max", bounds.propagation_max),
            ("processing", bounds.processing),
            ("clock", bounds.clock),
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
        Ok((Chosen { algorithm, estimator, prototype }, config))
    }

    /// What the user says; else what the records say; else all packets.
    fn sampling(&self, upstream: &PointRecords, downstream: &PointRecords) -> f64 {
        if let Some(rate) = self.sampling {
            return rate;
        }
        if let (Some(one), Some(other)) = (upstream.rate, downstream.rate)
            && (one - other).abs() > 0.1 * one.max(other)
        {
            let (one, other) = (units::percent(one), units::percent(other));
            note(format_args!("upstream metered {one} of packets, downstream {other}"));
        }
        upstream.rate.or(downstream.rate).unwrap_or(1.0)
    }

    fn print(&self, chosen: &Chosen, paired: &Paired) -> anyhow::Result<()> {
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
        let AssociationDocument { upstream, downstream, associated, unmatched, doubtful } =
            &self.association;
        let [upstream, downstream, associated, unmatched, doubtful] =
            [upstream, downstream, associated, unmatched, doubtful].map(|n| units::count(*n));
        format!(
            "records    {upstream} upstream, {downstream} downstream: {associated} associated, \
             {unmatched} without a partner, {doubtful} doubtful\n\
             resolution {}: single delays are not known better\n",
            units::duration(self.resolution_ns as f64)
        )
    }
}

fn associate(
    config: &CnfConfig,
    upstream: &[FlowRecord],
    downstream: &[FlowRecord],
) -> (Vec<Associated>, AssociationCounts) {
    let mut association =
        Association::new(config.rule(), config.window_ns(), Association::RECORDS_MAX);
    let mut pairs = Vec::new();
    for (side, record) in in_order(upstream.iter().copied(), downstream.iter().copied()) {
        association.offer(side, record);
        pairs.extend(std::iter::from_fn(|| association.poll()));
    }
    association.finish();
    pairs.extend(std::iter::from_fn(|| association.poll()));
    (pairs, association.counts())
}

/// Says what went wrong with the association.
fn note_counts(counts: &AssociationCounts) {
    for (count, what) in [
        (counts.displaced, "records made place for others before their partners came"),
        (counts.overdue, "records came long after others that ended later: are the clocks set?"),
        (counts.clock_steps, "steps of a clock"),
    ] {
        if count > 0 {
            note(format_args!("{} {what}", units::count(count)));
        }
    }
}

fn span(records: &[FlowRecord]) -> Option<Span> {
    let spans = records.iter().map(|record| Span { start: record.first, end: record.last });
    spans.reduce(Span::union)
}

fn negative_delays(pairs: &[Associated]) -> u64 {
    let delays = pairs.iter().flat_map(Associated::delays);
    delays.filter(|(_, delay)| delay.as_nanos() < 0).count() as u64
}

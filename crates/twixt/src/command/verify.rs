//! `twixt verify`: an algorithm beside the exact referee.

mod picture;

use std::collections::BTreeMap;

use serde::Serialize;
use twixt_model::{DelayEstimate, Estimate, Scope, by_scope, total};
use twixt_offline::{Concluded, FlowSizes, Plan, Split};
use twixt_synopsis::{ALGORITHMS, Algorithm, By};

use super::delay::{PairArgs, note_problems};
use crate::args::{AlgorithmArgs, Delays};
use crate::configuration::Configuration;
use crate::exit::{Exit, no_answer};
use crate::output::{self, Format, Table, units};
use crate::plot::PlotFile;

/// The error of an algorithm compared with the exact referee, by flow size
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    pair: PairArgs,
    /// Draw errors by flow size into a file: .svg, .png or .html
    #[arg(long, value_name = "FILE")]
    plot: Option<PlotFile>,
    /// Output format
    #[arg(short = 'F', long = "format", value_enum, default_value_t)]
    format: Format,
}

/// Least and most packets of the flows that are judged together.
const SIZES: [(u64, Option<u64>); 5] =
    [(1, Some(9)), (10, Some(99)), (100, Some(499)), (500, Some(999)), (1000, None)];

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    args.pair.check()?;
    let chosen = args.pair.algorithm.choose_to_compare("lda")?;
    let referee = AlgorithmArgs::<Delays>::default().choose("exact")?;
    let plan = Plan {
        traffic: args.pair.traffic.traffic()?,
        digest: args.pair.digest.plan(),
        algorithms: vec![chosen, referee],
        split: Split::By(By::Flow),
        rule: args.pair.rule(),
        auto_epochs: args.pair.auto_epochs(),
        cutting: args.pair.cutting(Split::By(By::Flow))?,
        flows: args.pair.flows.list(FlowSizes::Known)?,
        beside: args.pair.beside(),
    };
    plan.check_flows()?;
    let measured = args.pair.measure(&plan, false)?;
    let segment = &measured.segments[0];
    let problems = note_problems(segment);
    let [concluded, referee] = segment.concluded.as_slice() else {
        unreachable!("two algorithms were planned")
    };
    let document = VerifyDocument::new(plan.algorithms[0].algorithm.name, concluded, referee)
        .ok_or_else(|| no_answer("the referee found no packet that crossed the segment"))?;
    if let Some(file) = &args.plot {
        file.write_any(picture::picture(&document))?;
    }
    document.print(args.format)?;
    Ok(Exit::Done.or_partial(measured.partial || problems > 0).or_interrupted())
}

impl Args {
    /// Takes from the configuration file what the command line left out.
    pub(crate) fn with(self, configuration: &Configuration) -> Self {
        Self { pair: self.pair.with(configuration), ..self }
    }
}

/// `twixt verify -F json`.
#[derive(Debug, Serialize)]
struct VerifyDocument {
    algorithm: &'static str,
    synopsis_bytes: u64,
    flows: u64,
    answered: u64,
    all: AllErrors,
    by_size: Vec<SizeErrors>,
}

#[derive(Debug, Serialize)]
struct AllErrors {
    relative_error_mean: Option<f64>,
    relative_error_stddev: Option<f64>,
    lost: Option<u64>,
    referee_lost: Option<u64>,
    referee_mean_ns: i64,
    referee_stddev_ns: Option<i64>,
}

/// Flows without a delay that the referee knows are not counted; those that the algorithm does
/// not answer are.
#[derive(Debug, Serialize)]
struct SizeErrors {
    min_packets: u64,
    max_packets: Option<u64>,
    flows: u64,
    answered: u64,
    median_relative_error: Option<f64>,
    p95_relative_error: Option<f64>,
    median_relative_error_stddev: Option<f64>,
    ci95_coverage: Option<f64>,
}

impl VerifyDocument {
    fn new(algorithm: &'static str, concluded: &Concluded, referee: &Concluded) -> Option<Self> {
        let truth = by_scope(&referee.estimates);
        let answers = by_scope(&concluded.estimates);
        let all = total(&concluded.estimates);
        let delay = all.as_ref().and_then(|all| all.delay);
        let all_truth = total(&referee.estimates)?;
        let true_delay = all_truth.delay?;
        let by_size: Vec<SizeErrors> =
            SIZES.iter().map(|&size| SizeErrors::new(size, &truth, &answers)).collect();
        Some(Self {
            algorithm,
            synopsis_bytes: concluded.synopsis_bytes,
            flows: by_size.iter().map(|size| size.flows).sum(),
            answered: by_size.iter().map(|size| size.answered).sum(),
            all: AllErrors {
                relative_error_mean: delay.and_then(|delay| mean_error(&delay, &true_delay)),
                relative_error_stddev: delay.and_then(|delay| deviation_error(&delay, &true_delay)),
                lost: all.as_ref().and_then(|all| all.evidence.lost),
                referee_lost: all_truth.evidence.lost,
                referee_mean_ns: true_delay.mean().as_nanos(),
                referee_stddev_ns: true_delay.deviation_ns.map(|ns| ns.round() as i64),
            },
            by_size,
        })
    }

    fn print(&self, format: Format) -> anyhow::Result<()> {
        match format {
            Format::Json => output::json(self),
            Format::Jsonl => output::jsonl(&self.by_size),
            Format::Csv => output::csv(&self.by_size),
            Format::Human => output::text(&self.report()),
        }
    }

    fn report(&self) -> String {
        let shown = |error: Option<f64>| error.map_or_else(|| "–".to_owned(), units::percent);
        let lost = |lost: Option<u64>| lost.map_or_else(|| "–".to_owned(), units::count);
        let mut report = format!(
            "{} ({} per point) compared with the exact referee\n\nall traffic  mean off by {}, \
             deviation off by {}, lost {} (referee {})\n",
            self.algorithm,
            units::bytes(self.synopsis_bytes),
            shown(self.all.relative_error_mean),
            shown(self.all.relative_error_stddev),
            lost(self.all.lost),
            lost(self.all.referee_lost),
        );
        if self.answered == 0 {
            let flows = units::count(self.flows);
            let is_this = |entry: &&Algorithm| entry.name == self.algorithm;
            let why = match ALGORITHMS.iter().find(is_this).is_some_and(|entry| entry.per_flow) {
                true => String::new(),
                false => format!(": {} does not separate flows", self.algorithm),
            };
            return report + &format!("flows        none of {flows} answered{why}\n");
        }
        let mut table = Table::new(&[
            "packets",
            "flows",
            "answered",
            "median error",
            "p95 error",
            "deviation off by",
            "95 % intervals hold",
        ]);
        for size in &self.by_size {
            table.row(vec![
                size.range(),
                units::count(size.flows),
                units::count(size.answered),
                shown(size.median_relative_error),
                shown(size.p95_relative_error),
                shown(size.median_relative_error_stddev),
                shown(size.ci95_coverage),
            ]);
        }
        report += "\n";
        report + &table.to_string()
    }
}

impl SizeErrors {
    fn range(&self) -> String {
        match self.max_packets {
            Some(most) => format!("{}–{most}", self.min_packets),
            None => format!("{}+", self.min_packets),
        }
    }

    fn new((least, most): (u64, Option<u64>), truth: &Merged, answers: &Merged) -> Self {
        let fits = |packets: u64| packets >= least && most.is_none_or(|most| packets <= most);
        let flows: Vec<(&Scope, DelayEstimate)> = truth
            .iter()
            .filter(|(_, total)| fits(total.evidence.packets))
            .filter_map(|(scope, total)| Some((*scope, total.delay?)))
            .collect();
        let answered: Vec<(DelayEstimate, DelayEstimate)> = flows
            .iter()
            .filter_map(|(scope, truth)| Some((answers.get(scope)?.delay?, *truth)))
            .collect();
        let errors = |error: fn(&DelayEstimate, &DelayEstimate) -> Option<f64>| {
            let mut errors: Vec<f64> =
                answered.iter().filter_map(|(answer, truth)| error(answer, truth)).collect();
            errors.sort_by(f64::total_cmp);
            errors
        };
        let (means, deviations) = (errors(mean_error), errors(deviation_error));
        Self {
            min_packets: least,
            max_packets: most,
            flows: flows.len() as u64,
            answered: answered.len() as u64,
            median_relative_error: percentile(&means, 0.5),
            p95_relative_error: percentile(&means, 0.95),
            median_relative_error_stddev: percentile(&deviations, 0.5),
            ci95_coverage: coverage(&answered),
        }
    }
}

type Merged<'a> = BTreeMap<&'a Scope, Estimate>;

fn mean_error(answer: &DelayEstimate, truth: &DelayEstimate) -> Option<f64> {
    relative(answer.mean_ns(), truth.mean_ns())
}

fn deviation_error(answer: &DelayEstimate, truth: &DelayEstimate) -> Option<f64> {
    relative(answer.deviation_ns?, truth.deviation_ns?)
}

fn relative(answer: f64, truth: f64) -> Option<f64> {
    (truth != 0.0).then(|| ((answer - truth) / truth).abs())
}

/// As in `OrderStatistics`.
fn percentile(sorted: &[f64], share: f64) -> Option<f64> {
    let index = (share * sorted.len() as f64) as usize;
    sorted.get(index.min(sorted.len().checked_sub(1)?)).copied()
}

/// The share of intervals that hold the truth, to a nanosecond; `None` if there are no intervals.
fn coverage(answered: &[(DelayEstimate, DelayEstimate)]) -> Option<f64> {
    let holds = |(answer, truth): &(DelayEstimate, DelayEstimate)| {
        Some((answer.mean_ns() - truth.mean_ns()).abs() <= answer.half_width_ns? + 1.0)
    };
    let held: Vec<bool> = answered.iter().filter_map(holds).collect();
    let hits = held.iter().filter(|&&held| held).count();
    (!held.is_empty()).then(|| hits as f64 / held.len() as f64)
}

//! `twixt demo`: a first look, without a network, a capture or root.

mod chart;
mod measurement;
mod report;
mod scenario;

use serde::Serialize;
use twixt_model::{EpochRule, Estimate};
use twixt_offline::segment;
use twixt_sim::Simulation;
use twixt_synopsis::By;

use crate::exit::Exit;
use crate::output::{self, Format};
use measurement::{Asked, Finding, measure};
use scenario::Scenario;

/// A first look: simulate a segment with a queue that fills, and measure it
///
/// Runs in memory and takes a few seconds; no root, no files, no network. LDA, which keeps
/// kilobytes, is compared with the exact referee, which keeps every packet.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Run once and exit (it always does; accepted for scripts)
    #[arg(long = "once", hide = true)]
    _once: bool,
    /// Seed of everything random
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Output format
    #[arg(short = 'F', long = "format", value_enum, default_value_t)]
    format: Format,
}

/// Length of the epochs that the chart shows.
const EPOCH_NS: i64 = 100_000_000;

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    let scenario = Scenario::new(args.seed);
    let simulation = scenario.simulate()?;
    let found = DemoMeasured::measure(&simulation)?;
    let document = Document { segments: vec![found.segment()], incidents: [] };
    match args.format {
        Format::Human => output::text(&report::report(&scenario, &found))?,
        Format::Json => output::json(&document)?,
        Format::Jsonl => output::jsonl(&document.segments)?,
        Format::Csv => output::csv(&document.segments)?,
    }
    Ok(Exit::Done)
}

/// What the two algorithms found.
struct DemoMeasured {
    exact: Finding,
    lda: Finding,
    /// Epoch by epoch.
    exact_series: Finding,
    lda_series: Finding,
    /// By the referee, which alone distinguishes flows.
    flows: Finding,
}

impl DemoMeasured {
    fn measure(simulation: &Simulation) -> anyhow::Result<Self> {
        let epochs = EpochRule::every(EPOCH_NS).expect("it is positive");
        let ask = |algorithm, rule, by| measure(simulation, Asked { algorithm, rule, by });
        Ok(Self {
            exact: ask("exact", EpochRule::WHOLE, By::All)?,
            lda: ask("lda", EpochRule::WHOLE, By::All)?,
            exact_series: ask("exact", epochs, By::All)?,
            lda_series: ask("lda", epochs, By::All)?,
            flows: ask("exact", EpochRule::WHOLE, By::Flow)?,
        })
    }

    fn segment(&self) -> SegmentRow {
        let all = self.exact.estimates.first();
        let delay = all.and_then(|all| all.delay);
        SegmentRow {
            segment: segment().to_string(),
            class: None,
            mean_ns: delay.map(|delay| delay.mean().as_nanos()),
            p99_ns: delay.and_then(|delay| delay.order).map(|order| order.p99.as_nanos()),
            loss: all.and_then(loss),
            verdict: if self.congested().is_empty() { "ok" } else { "congested" },
        }
    }

    /// The epochs in which the queue was full, by LDA.
    fn congested(&self) -> Vec<&Estimate> {
        let mean_ns = |estimate: &Estimate| Some(estimate.delay?.mean_ns());
        let series = &self.lda_series.estimates;
        let calmest_ns = series.iter().filter_map(mean_ns).fold(f64::INFINITY, f64::min);
        let is_congested = |estimate: &&Estimate| {
            loss(estimate).is_some_and(|loss| loss >= CONGESTED_LOSS)
                && mean_ns(estimate).is_some_and(|mean_ns| mean_ns >= CONGESTED_RISE * calmest_ns)
        };
        series.iter().filter(is_congested).collect()
    }
}

/// An epoch is congested when it loses at least this share of its packets …
const CONGESTED_LOSS: f64 = 0.01;
/// … and delays the others at least so many times as long as the calmest epoch does.
const CONGESTED_RISE: f64 = 5.0;

/// The share of packets that the network lost.
fn loss(estimate: &Estimate) -> Option<f64> {
    Some(estimate.evidence.lost? as f64 / estimate.evidence.packets.max(1) as f64)
}

/// The demo, for programs. Incidents come with the demo of a whole network.
#[derive(Serialize)]
struct Document {
    segments: Vec<SegmentRow>,
    incidents: [(); 0],
}

#[derive(Serialize)]
struct SegmentRow {
    segment: String,
    class: Option<&'static str>,
    mean_ns: Option<i64>,
    p99_ns: Option<i64>,
    loss: Option<f64>,
    verdict: &'static str,
}

//! `twixt plan fridge`: entries and entry probability, and the error to expect.

use serde::Serialize;
use twixt_model::quantity::{Nanoseconds, PacketRate};
use twixt_synopsis::rtt::{FridgeNeed, FridgePlan};

use super::picture::expected_error_picture;
use super::show;
use crate::args::bytes;
use crate::exit::{Exit, usage};
use crate::output::{Format, Table, units};
use crate::plot::{PlotFile, Quantity};

/// Entries and entry probability of a fridge, and the error to expect
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Requests per second
    #[arg(long, value_name = "RATE")]
    rate: PacketRate,
    /// Longest round trip of interest
    #[arg(long, value_name = "DURATION", default_value = "2s")]
    longest: Nanoseconds,
    /// Memory to use
    #[arg(long, value_name = "SIZE", default_value = "64KiB", value_parser = bytes)]
    memory: u64,
    /// Length of an epoch
    #[arg(long, value_name = "DURATION", default_value = "10s")]
    epoch: Nanoseconds,
    /// Share of requests that are answered
    #[arg(long, value_name = "SHARE", default_value_t = 0.5)]
    answered: f64,
    /// Draw the expected error into a file: .svg, .png or .html
    #[arg(long, value_name = "FILE")]
    plot: Option<PlotFile>,
    /// Output format
    #[arg(short = 'F', long = "format", value_enum, default_value_t)]
    format: Format,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let document = args.document()?;
    if let Some(file) = &args.plot {
        let points =
            document.expected.iter().map(|one| (one.percentile, one.relative_error)).collect();
        file.write_any(expected_error_picture(
            "Fridge: error by percentile",
            ("percentile", Quantity::Number),
            points,
        ))?;
    }
    show(args.format, &document, &document.report(), &document.expected)
}

/// `twixt plan fridge -F json`.
#[derive(Serialize)]
struct FridgeDocument {
    entries: u32,
    entry_probability: f64,
    synopsis_bytes: u64,
    /// Round trips measured in an epoch.
    samples: u64,
    horizon_ns: i64,
    expected: Vec<ExpectedDocument>,
}

/// Half the width of the 95 % interval of a percentile, relative to it.
#[derive(Serialize)]
struct ExpectedDocument {
    percentile: f64,
    relative_error: f64,
}

impl Args {
    fn document(&self) -> anyhow::Result<FridgeDocument> {
        if !(self.answered > 0.0 && self.answered <= 1.0) {
            return Err(usage("--answered must be above 0 and at most 1"));
        }
        let need = FridgeNeed {
            memory_bytes: self.memory,
            rate: self.rate.0 as f64,
            longest_ns: self.longest.0 as f64,
            epoch_ns: self.epoch.0 as f64,
            answered: self.answered,
        };
        let plan = need.plan().ok_or_else(|| {
            usage("too little memory for a fridge, or no round trip above 1 µs to measure")
        })?;
        Ok(FridgeDocument::of(&plan))
    }
}

impl FridgeDocument {
    fn of(plan: &FridgePlan) -> Self {
        let expected = plan.expected.iter().map(|&(share, relative_error)| ExpectedDocument {
            percentile: (1000.0 * share).round() / 10.0,
            relative_error,
        });
        Self {
            entries: plan.fridge.entries,
            entry_probability: plan.fridge.probability,
            synopsis_bytes: plan.synopsis_bytes,
            samples: plan.matched.round() as u64,
            horizon_ns: plan.horizon_ns.round() as i64,
            expected: expected.collect(),
        }
    }

    fn report(&self) -> String {
        let mut report = format!(
            "fridge with {} of state: --entries {} --entry-probability {:.6}\n\nround trips \
             measured per epoch     {}\nnot reliable beyond                {}\n\n",
            units::bytes(self.synopsis_bytes),
            self.entries,
            self.entry_probability,
            units::count(self.samples),
            units::duration(self.horizon_ns as f64),
        );
        let mut table = Table::new(&["percentile", "± 95 %"]);
        for expected in &self.expected {
            let error = units::percent(expected.relative_error);
            table.row(vec![format!("p{}", expected.percentile), format!("± {error}")]);
        }
        report += &table.to_string();
        report
    }
}

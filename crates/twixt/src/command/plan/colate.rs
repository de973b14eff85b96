//! `twixt plan colate`: counters and epochs for a wanted reliability, and what cannot be had.

mod document;

use clap::ValueEnum;
use twixt_model::quantity::Nanoseconds;
use twixt_synopsis::{ColateGoal, ColatePlan, ColateTraffic, PlannedEstimator, Reliability};

use self::document::{ColateDocument, ErrorDocument, ReachableDocument, StorageDocument};
use crate::args::bytes;
use crate::exit::{Exit, usage};
use crate::output::{self, Format};
use crate::plot::PlotFile;

/// Counters of COLATE and packets per epoch, for an error that is rarely exceeded
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Memory to use at each point
    #[arg(long, value_name = "SIZE", default_value = "1MiB", value_parser = bytes)]
    memory: u64,
    /// Share of estimates that must be within the interval
    #[arg(long, value_name = "SHARE", default_value_t = 0.95)]
    reliability: f64,
    /// Allowed error of a flow's mean delay, relative to that mean
    #[arg(long, value_name = "SHARE", default_value_t = 0.05)]
    interval: f64,
    /// Packets of the smallest flow that matters
    #[arg(long, value_name = "PACKETS", default_value_t = 1000)]
    smallest: u64,
    /// Packets of the largest flow
    #[arg(long, value_name = "PACKETS", default_value_t = 100_000)]
    largest: u64,
    /// Packets of the smallest flow in the traffic; flows too small to matter add noise too
    #[arg(long, value_name = "PACKETS", default_value_t = 1)]
    least: u64,
    /// Packets of an epoch, if it cannot be as short as the error requires
    #[arg(long, value_name = "N")]
    packets: Option<u64>,
    /// Deviation of the flows' means, relative to their mean
    #[arg(long, value_name = "RATIO", default_value_t = 0.5)]
    spread: f64,
    /// Deviation of one flow's packets, relative to their mean
    #[arg(long, value_name = "RATIO", default_value_t = 0.7)]
    jitter: f64,
    /// Longest delay beyond the usual one
    #[arg(long, value_name = "DURATION", default_value = "1s")]
    longest: Nanoseconds,
    /// Round times down to multiples of this
    #[arg(long, value_name = "DURATION", default_value = "1us")]
    resolution: Nanoseconds,
    /// Estimator to plan for
    #[arg(long, value_enum, default_value_t)]
    estimator: EstimatorName,
    /// Draw packets per epoch and storage by memory into a file: .svg, .png or .html
    #[arg(long, value_name = "FILE")]
    plot: Option<PlotFile>,
    /// Output format
    #[arg(short = 'F', long = "format", value_enum, default_value_t)]
    format: Format,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    args.check()?;
    let document = args.document()?;
    if let Some(file) = &args.plot {
        file.write_any(document.picture())?;
    }
    match args.format {
        Format::Human => output::text(&args.report(&document))?,
        Format::Json => output::json(&document)?,
        Format::Jsonl => output::jsonl(&[document])?,
        Format::Csv => output::csv(document.by_memory)?,
    }
    Ok(Exit::Done)
}

/// Estimators that can be planned for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum EstimatorName {
    /// All flows at once, their sizes known
    #[default]
    Joint,
    /// Equation 4 of the paper, one flow at a time
    Paper,
}

/// A digest that takes one damaged counter in 256 for intact.
const DIGEST_BITS: u32 = 8;

impl Args {
    fn check(&self) -> anyhow::Result<()> {
        let share = |share: f64| share > 0.0 && share < 1.0;
        if !share(self.reliability) {
            return Err(usage("--reliability must be between 0 and 1"));
        }
        if !(self.interval > 0.0 && self.interval.is_finite()) {
            return Err(usage("--interval must be above 0"));
        }
        if self.least < 1 || self.smallest < self.least || self.largest < self.smallest {
            return Err(usage("--least must be at least 1, --smallest no less, --largest no less"));
        }
        let ratio = |ratio: f64| (0.0..=1000.0).contains(&ratio);
        if !(ratio(self.spread) && ratio(self.jitter) && self.spread + self.jitter > 0.0) {
            return Err(usage("--spread and --jitter must not be negative, nor both 0"));
        }
        match self.longest.0 > 0 && self.resolution.0 > 0 && self.packets != Some(0) {
            true => Ok(()),
            false => Err(usage("--longest, --resolution and --packets must be above 0")),
        }
    }

    fn traffic(&self) -> ColateTraffic {
        ColateTraffic {
            least: self.least as f64,
            smallest: self.smallest as f64,
            largest: self.largest as f64,
            spread: self.spread,
            jitter: self.jitter,
        }
    }

    fn plan(&self, memory_bytes: u64) -> Option<ColatePlan> {
        let goal = ColateGoal {
            wanted: Reliability { reliability: self.reliability, interval: self.interval },
            estimator: match self.estimator {
                EstimatorName::Joint => PlannedEstimator::Joint,
                EstimatorName::Paper => PlannedEstimator::Equation,
            },
            packets: self.packets.map(|packets| packets as f64),
            delay_units: self.longest.0 as f64 / self.resolution.0 as f64,
        };
        ColatePlan::within(memory_bytes, &self.traffic(), &goal)
    }

    fn document(&self) -> anyhow::Result<ColateDocument> {
        let plan = self.plan(self.memory);
        let plan = plan.ok_or_else(|| usage(format!("{} bytes are too few", self.memory)))?;
        Ok(ColateDocument {
            counters: plan.config.counters(),
            per_flow: plan.config.per_flow(),
            bits: plan.time_bits,
            threshold: plan.threshold as u64,
            synopsis_bytes: plan.config.state_bytes(),
            reachable: plan.reachable.into(),
            expected: self.expected(&plan),
            by_memory: self.by_memory(),
        })
    }

    /// Errors of flows ten times as large each.
    fn expected(&self, plan: &ColatePlan) -> Vec<ErrorDocument> {
        let sizes = std::iter::successors(Some(self.smallest), |size| size.checked_mul(10));
        let error = |estimator, packets: u64| {
            plan.expected_error(&self.traffic(), estimator, packets as f64)
        };
        let line = |packets| ErrorDocument {
            packets,
            joint: error(PlannedEstimator::Joint, packets),
            paper: error(PlannedEstimator::Equation, packets),
        };
        sizes.take_while(|&size| size <= self.largest).map(line).collect()
    }

    /// A quarter of the memory up to sixteen times of it.
    fn by_memory(&self) -> Vec<StorageDocument> {
        let sizes = (0..7).map(|step| (self.memory / 4).saturating_mul(1 << step));
        let line = |memory_bytes: u64| {
            let plan = self.plan(memory_bytes)?;
            let ReachableDocument { reliability, interval } = plan.reachable.into();
            Some(StorageDocument {
                memory_bytes,
                counters: plan.config.counters(),
                threshold: plan.threshold as u64,
                bits_per_packet: bits_per_packet(&plan),
                reliability,
                interval,
            })
        };
        sizes.filter_map(line).collect()
    }
}

/// What a packet takes in storage, as counters are packed.
fn bits_per_packet(plan: &ColatePlan) -> f64 {
    let load = plan.threshold / f64::from(plan.config.counters());
    // A blank counter takes a bit.
    let filled = 1.0 - (-load).exp();
    let bits = f64::from(plan.time_bits + DIGEST_BITS) + load.max(1.0).log2() + 1.0;
    (1.0 + filled * bits) / load
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn args(words: &[&str]) -> Args {
        Line::parse_from(["plan"].iter().chain(words)).args
    }

    #[test]
    fn numbers_out_of_range_are_refused() {
        for words in [
            ["--reliability", "1"],
            ["--interval", "0"],
            ["--least", "0"],
            ["--least", "1001"],
            ["--largest", "10"],
            ["--packets", "0"],
            ["--spread", "nan"],
        ] {
            assert!(args(&words).check().is_err(), "{words:?}");
        }
        assert!(args(&["--memory", "10"]).document().is_err());
    }

    #[test]
    fn what_cannot_be_reached_is_said() {
        let check = |words: &[&str], expected: &str| {
            let asked = args(words);
            let report = asked.report(&asked.document().unwrap());
            assert!(report.contains(expected), "{expected} is not in {report}");
        };
        check(&["--memory", "64MiB"], "\nreachable: ");
        check(&["--memory", "64MiB", "--estimator", "paper"], "\nreachable: ");
        check(&["--packets", "1000000000"], "not reachable");
        check(&["--packets", "100000000", "--estimator", "paper"], "not reachable");
    }

    #[test]
    fn errors_and_memories_are_listed() {
        let document = args(&[]).document().unwrap();
        let sizes: Vec<u64> = document.expected.iter().map(|line| line.packets).collect();
        assert_eq!(sizes, [1000, 10_000, 100_000]);
        assert!(document.expected.iter().all(|line| line.joint < line.paper));
        assert!(document.expected.windows(2).all(|pair| pair[1].joint < pair[0].joint));
        let memories: Vec<u64> = document.by_memory.iter().map(|line| line.memory_bytes).collect();
        assert_eq!(memories[..3], [1 << 18, 1 << 19, 1 << 20]);
    }
}

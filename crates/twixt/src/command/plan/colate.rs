//! `twixt plan colate`: counters and epochs for a wanted reliability, and what cannot be had.

use serde::Serialize;
use twixt_sim::quantity::Nanoseconds;
use twixt_synopsis::{ColatePlan, ColateTraffic, Reliability};

use crate::args::bytes;
use crate::exit::{Exit, usage};
use crate::output::{self, Format, Table, units};

/// Counters of COLATE and packets per epoch, for an error that is rarely exceeded
#[derive(clap::Args)]
pub(crate) struct Args {
    /// State to use at each point
    #[arg(long, value_name = "SIZE", default_value = "1MiB", value_parser = bytes)]
    memory: u64,
    /// Share of estimates that shall be within the interval
    #[arg(long, value_name = "SHARE", default_value_t = 0.95)]
    reliability: f64,
    /// Error of a flow's mean delay that is allowed, relative to the mean
    #[arg(long, value_name = "SHARE", default_value_t = 0.05)]
    interval: f64,
    /// Packets of the smallest flow that matters
    #[arg(long, value_name = "PACKETS", default_value_t = 1000)]
    smallest: u64,
    /// Packets of the largest flow
    #[arg(long, value_name = "PACKETS", default_value_t = 100_000)]
    largest: u64,
    /// Packets of an epoch, if it cannot be as short as the error asks for
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
    /// Times are rounded down to multiples of this
    #[arg(long, value_name = "DURATION", default_value = "1us")]
    resolution: Nanoseconds,
    /// How to print: human or json
    #[arg(short = 'F', long = "format", value_enum, default_value_t)]
    format: Format,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    args.check()?;
    let document = args.document(args.memory)?;
    match args.format {
        Format::Human => output::text(&args.report(&document))?,
        Format::Json => output::json(&document)?,
        Format::Jsonl => output::jsonl(&[document])?,
        Format::Csv => output::csv(args.by_memory())?,
    }
    Ok(Exit::Done)
}

/// `twixt plan colate -F json`. The threshold is in packets, bits are those of a sum of times.
#[derive(Serialize)]
struct ColateDocument {
    counters: u32,
    per_flow: u32,
    bits: u32,
    threshold: u64,
    synopsis_bytes: u64,
    reachable: ReachableDocument,
}

#[derive(Serialize)]
struct ReachableDocument {
    reliability: f64,
    interval: f64,
}

/// RAM against storage: one line per memory.
#[derive(Serialize)]
struct StorageDocument {
    memory_bytes: u64,
    counters: u32,
    threshold: u64,
    bits_per_packet: f64,
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
        if self.smallest < 1 || self.largest < self.smallest {
            return Err(usage("--smallest must be at least 1, and --largest no less"));
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

    fn plan(&self, memory_bytes: u64) -> Option<ColatePlan> {
        let traffic = ColateTraffic {
            smallest: self.smallest as f64,
            largest: self.largest as f64,
            spread: self.spread,
            jitter: self.jitter,
        };
        let wanted = Reliability { reliability: self.reliability, interval: self.interval };
        let packets = self.packets.map(|packets| packets as f64);
        let delay_units = self.longest.0 as f64 / self.resolution.0 as f64;
        ColatePlan::within(memory_bytes, &traffic, wanted, packets, delay_units)
    }

    fn document(&self, memory_bytes: u64) -> anyhow::Result<ColateDocument> {
        let plan = self.plan(memory_bytes);
        let plan = plan.ok_or_else(|| usage(format!("{memory_bytes} bytes are too few")))?;
        let Reliability { reliability, interval } = plan.reachable;
        Ok(ColateDocument {
            counters: plan.config.counters(),
            per_flow: plan.config.per_flow(),
            bits: plan.time_bits,
            threshold: plan.threshold as u64,
            synopsis_bytes: plan.config.state_bytes(),
            reachable: ReachableDocument { reliability, interval },
        })
    }

    /// A quarter of the memory up to sixteen times of it.
    fn by_memory(&self) -> Vec<StorageDocument> {
        let sizes = (0..7).map(|step| (self.memory / 4) << step);
        let line = |memory_bytes: u64| {
            let plan = self.plan(memory_bytes)?;
            let counters = plan.config.counters();
            let load = plan.threshold / f64::from(counters);
            // A blank counter takes a bit.
            let filled = 1.0 - (-load).exp();
            let bits = f64::from(plan.time_bits + DIGEST_BITS) + load.max(1.0).log2() + 1.0;
            let bits_per_packet = (1.0 + filled * bits) / load;
            let threshold = plan.threshold as u64;
            Some(StorageDocument { memory_bytes, counters, threshold, bits_per_packet })
        };
        sizes.filter_map(line).collect()
    }

    fn report(&self, document: &ColateDocument) -> String {
        let ColateDocument { counters, per_flow, bits, threshold, synopsis_bytes, .. } = document;
        let mut report = format!(
            "colate with {} of state per point: --counters {counters} --per-flow {per_flow}\n\
             sums of times need --time-bits {bits} at --resolution {}\n\
             packets per epoch: {}\n{}\n\n",
            units::bytes(*synopsis_bytes),
            self.resolution,
            units::count(*threshold),
            self.verdict(&document.reachable),
        );
        let headings = ["memory", "counters", "packets per epoch", "stored bits per packet"];
        let mut table = Table::new(&headings);
        for line in self.by_memory() {
            table.row(vec![
                units::bytes(line.memory_bytes),
                units::count(u64::from(line.counters)),
                units::count(line.threshold),
                format!("{:.3}", line.bits_per_packet),
            ]);
        }
        report += &table.to_string();
        report
    }

    fn verdict(&self, reachable: &ReachableDocument) -> String {
        let within = |reliability: f64, interval: f64| {
            let (often, near) = (units::percent(reliability), units::percent(interval));
            format!("{often} of flows of {} packets within {near}", units::count(self.smallest))
        };
        let asked = within(self.reliability, self.interval);
        match reachable.interval <= self.interval {
            true => format!("reachable as asked: {asked}"),
            false => format!(
                "not reachable: {asked}; but {}, or {}",
                within(reachable.reliability, self.interval),
                within(self.reliability, reachable.interval)
            ),
        }
    }
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
            ["--smallest", "0"],
            ["--largest", "10"],
            ["--packets", "0"],
            ["--spread", "nan"],
        ] {
            assert!(args(&words).check().is_err(), "{words:?}");
        }
        assert!(args(&["--memory", "10"]).document(10).is_err());
    }

    #[test]
    fn what_cannot_be_reached_is_said() {
        let asked = args(&["--memory", "64MiB"]);
        let document = asked.document(asked.memory).unwrap();
        assert!(
            asked.report(&document).contains("reachable as asked"),
            "{}",
            asked.report(&document)
        );
        let asked = args(&["--packets", "100000000"]);
        let report = asked.report(&asked.document(asked.memory).unwrap());
        assert!(report.contains("not reachable"), "{report}");
    }
}

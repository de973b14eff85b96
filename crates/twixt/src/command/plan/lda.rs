//! `twixt plan lda`: banks and sampling rates, and the error to expect.

use std::str::FromStr;

use serde::Serialize;
use twixt_model::quantity::{Nanoseconds, PacketRate};
use twixt_synopsis::{Lda, LdaConfig, Synopsis};

use super::picture::expected_error_picture;
use super::show;
use crate::args::bytes;
use crate::exit::{Exit, usage};
use crate::output::{Format, Table, units};
use crate::plot::{PlotFile, Quantity};

/// Banks and sampling rates of LDA, and the error to expect
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Packets per second on the segment
    #[arg(long, value_name = "RATE")]
    rate: PacketRate,
    /// Length of an epoch
    #[arg(long, value_name = "DURATION", default_value = "1s")]
    epoch: Nanoseconds,
    /// Share of packets that are lost: one number, or a range such as 0.001..0.1
    #[arg(long, value_name = "LOSS", default_value = "0.001..0.1")]
    loss: LossRange,
    /// Memory to use at each point
    #[arg(long, value_name = "SIZE", default_value = "96KiB", value_parser = bytes)]
    memory: u64,
    /// Deviation of the delay, relative to its mean
    #[arg(long, value_name = "RATIO", default_value_t = 1.0)]
    variation: f64,
    /// Draw the expected error into a file: .svg, .png or .html
    #[arg(long, value_name = "FILE")]
    plot: Option<PlotFile>,
    /// Output format: human or json
    #[arg(short = 'F', long = "format", value_enum, default_value_t)]
    format: Format,
}

/// Lowest and highest share of packets that are lost.
#[derive(Clone, Copy, Debug, PartialEq)]
struct LossRange {
    low: f64,
    high: f64,
}

impl FromStr for LossRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "use a share such as 0.01, or a range such as 0.001..0.1".to_owned();
        let (low, high) = text.split_once("..").unwrap_or((text, text));
        let share =
            |text: &str| text.parse::<f64>().ok().filter(|share| (0.0..1.0).contains(share));
        let (low, high) = (share(low).ok_or_else(wrong)?, share(high).ok_or_else(wrong)?);
        if low <= high { Ok(Self { low, high }) } else { Err(wrong()) }
    }
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let document = args.document()?;
    if let Some(file) = &args.plot {
        let points = document.expected.iter().map(|one| (one.loss, one.relative_error)).collect();
        file.write_any(expected_error_picture(
            "LDA: error by loss",
            ("loss", Quantity::Share),
            points,
        ))?;
    }
    show(args.format, &document, &document.report(), &document.expected)
}

/// `twixt plan lda -F json`.
#[derive(Serialize)]
struct LdaDocument {
    banks: Vec<BankDocument>,
    synopsis_bytes: u64,
    expected: Vec<ExpectedDocument>,
}

#[derive(Serialize)]
struct BankDocument {
    rows: u32,
    sampling: f64,
}

/// What to expect at one loss: packets that the estimate rests on, and half the width of the
/// 95 % interval of the mean, relative to the mean.
#[derive(Serialize)]
struct ExpectedDocument {
    loss: f64,
    samples: u64,
    relative_error: f64,
}

impl Args {
    fn document(&self) -> anyhow::Result<LdaDocument> {
        let packets = (self.rate.0 as f64 * self.epoch.0 as f64 / 1e9).round();
        if packets < 1.0 || self.epoch.0 <= 0 {
            return Err(usage("no packet in an epoch: raise --rate or --epoch"));
        }
        if self.variation.is_nan() || self.variation <= 0.0 {
            return Err(usage("--variation must be above 0"));
        }
        let config =
            LdaConfig::for_loss(self.memory, packets as u64, self.loss.low, self.loss.high)
                .ok_or_else(|| {
                    usage(format!("{} bytes are too few for a single cell", self.memory))
                })?;
        let sampling = config.sampling().iter();
        Ok(LdaDocument {
            banks: sampling
                .map(|&sampling| BankDocument { rows: config.rows(), sampling })
                .collect(),
            synopsis_bytes: Synopsis::state_bytes(&Lda::new(&config)),
            expected: self.losses().map(|loss| self.expected(&config, packets, loss)).collect(),
        })
    }

    /// The ends of the range and what lies between, in equal ratios.
    fn losses(&self) -> impl Iterator<Item = f64> {
        const STEPS: i32 = 4;
        let LossRange { low, high } = self.loss;
        let steps = if low > 0.0 && high > low { STEPS } else { i32::from(high > low) };
        (0..=steps).map(move |step| match step {
            0 => low,
            step if step == steps => high,
            step => low * (high / low).powf(f64::from(step) / f64::from(steps)),
        })
    }

    fn expected(&self, config: &LdaConfig, packets: f64, loss: f64) -> ExpectedDocument {
        let lost = (packets * loss).round();
        let (received, lost) = ((packets - lost) as u64, lost as u64);
        ExpectedDocument {
            loss,
            samples: config.expected_used(received, lost).round() as u64,
            relative_error: config.expected_half_width(received, lost, self.variation),
        }
    }
}

impl LdaDocument {
    fn report(&self) -> String {
        let rates: Vec<String> =
            self.banks.iter().map(|bank| format!("{:.6}", bank.sampling)).collect();
        let rows = self.banks.first().map_or(0, |bank| bank.rows);
        let mut report = format!(
            "lda with {} of state per point: --rows {rows} --sampling {}\n\n",
            units::bytes(self.synopsis_bytes),
            rates.join(",")
        );
        let mut table = Table::new(&["loss", "packets used", "mean ± 95 %"]);
        for expected in &self.expected {
            let error = units::percent(expected.relative_error);
            table.row(vec![
                units::percent(expected.loss),
                units::count(expected.samples),
                format!("± {error}"),
            ]);
        }
        report += &table.to_string();
        report
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_a_share_or_a_range() {
        assert_eq!("0.01".parse(), Ok(LossRange { low: 0.01, high: 0.01 }));
        assert_eq!("0.001..0.1".parse(), Ok(LossRange { low: 0.001, high: 0.1 }));
        for text in ["", "x", "1.5", "-0.1", "0.2..0.1", "0.1..", "nan"] {
            assert!(text.parse::<LossRange>().is_err(), "{text}");
        }
    }
}

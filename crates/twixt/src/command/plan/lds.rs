//! `twixt plan lds`: rows, columns and sampling rates, and the error to expect by flow size.

mod capture;

use std::path::PathBuf;

use serde::Serialize;
use twixt_synopsis::{Lds, LdsNeed, Pareto, RowPlan, Synopsis, expected_error, expected_survival};

use super::picture::expected_error_picture;
use super::show;
use crate::args::bytes;
use crate::exit::{Exit, usage};
use crate::output::{Format, Table, units};
use crate::plot::{PlotFile, Quantity};

/// Rows, columns and sampling rates of LDS, and the error to expect by flow size
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Flows in an epoch [default: those of the capture given with -r]
    #[arg(long, value_name = "N")]
    flows: Option<u64>,
    /// Packets of a flow that counts as large
    #[arg(long, value_name = "PACKETS", default_value_t = 1000)]
    large: u64,
    /// Tolerable share of other flows' packets in a large flow's cell
    #[arg(long, value_name = "SHARE", default_value_t = 0.05)]
    error: f64,
    /// Share of large flows that must be measured within that error
    #[arg(long, value_name = "SHARE", default_value_t = 0.95)]
    confidence: f64,
    /// Packets that a flow may lose and still be measured [default: none]
    #[arg(long, value_name = "PACKETS", default_value_t = 0)]
    losses: u64,
    /// Memory to use at each point, instead of --confidence
    #[arg(long, value_name = "SIZE", value_parser = bytes, conflicts_with = "confidence")]
    memory: Option<u64>,
    /// A capture to take the number of flows and their sizes from
    #[arg(short = 'r', long = "read", value_name = "FILE")]
    read: Option<PathBuf>,
    /// Shape of the Pareto distribution of flow sizes, without a capture
    #[arg(long, value_name = "NUMBER", default_value_t = 1.05, conflicts_with = "read")]
    shape: f64,
    /// Packets of the smallest flow, likewise
    #[arg(long, value_name = "PACKETS", default_value_t = 2.53, conflicts_with = "read")]
    min: f64,
    /// Deviation of the flows' mean delays, relative to their mean
    #[arg(long, value_name = "RATIO", default_value_t = 1.0)]
    variation: f64,
    /// Draw the expected error into a file: .svg, .png or .html
    #[arg(long, value_name = "FILE")]
    plot: Option<PlotFile>,
    /// Output format: human or json
    #[arg(short = 'F', long = "format", value_enum, default_value_t)]
    format: Format,
}

/// Flow sizes that errors are shown for.
const SIZES: [u64; 6] = [10, 100, 500, 1_000, 10_000, 100_000];

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let document = args.document()?;
    if let Some(file) = &args.plot {
        let points =
            document.expected.iter().map(|one| (one.packets as f64, one.relative_error)).collect();
        file.write_any(expected_error_picture(
            "LDS: error by flow size",
            ("packets of the flow", Quantity::Count),
            points,
        ))?;
    }
    show(args.format, &document, &document.report(), &document.expected)
}

/// `twixt plan lds -F json`.
#[derive(Serialize)]
struct LdsDocument {
    rows: u32,
    columns: u32,
    virtual_cells: u32,
    sampling: Vec<f64>,
    synopsis_bytes: u64,
    expected: Vec<ExpectedDocument>,
    flows: u64,
    flow_size: FlowSizeDocument,
    /// Large flows per cell.
    load: f64,
    /// Rows that would be best for this load, before rounding.
    ideal_rows: f64,
}

/// What to expect for flows of one size: the probability that in their emptiest cell others have no
/// more than the tolerable share, and the median error of the mean by estimator `paper`.
#[derive(Serialize)]
struct ExpectedDocument {
    packets: u64,
    survival: f64,
    relative_error: f64,
}

#[derive(Serialize)]
struct FlowSizeDocument {
    shape: f64,
    min: f64,
}

impl Args {
    fn document(&self) -> anyhow::Result<LdsDocument> {
        self.check()?;
        let (flows, sizes) = self.traffic()?;
        let need =
            LdsNeed { flows, sizes, large: self.large, tolerable: self.error, losses: self.losses };
        let config = match self.memory {
            Some(memory_bytes) => need
                .within(memory_bytes)
                .ok_or_else(|| usage(format!("{memory_bytes} bytes are too few for a sketch")))?,
            None => need.for_confidence(self.confidence).ok_or_else(|| {
                usage(
                    "that would need too large a sketch: relax the target, or measure fewer flows",
                )
            })?,
        };
        let load = need.load(&config);
        let expected = |&packets: &u64| ExpectedDocument {
            packets,
            survival: expected_survival(flows, &sizes, &config, packets as f64, self.error),
            relative_error: expected_error(flows, &sizes, &config, packets as f64, self.variation),
        };
        Ok(LdsDocument {
            rows: config.rows() as u32,
            columns: config.columns(),
            virtual_cells: config.virtual_cells(),
            sampling: config.sampling().to_vec(),
            synopsis_bytes: Synopsis::state_bytes(&Lds::new(&config)),
            expected: SIZES.iter().map(expected).collect(),
            flows,
            flow_size: FlowSizeDocument { shape: sizes.shape, min: sizes.least },
            load,
            ideal_rows: RowPlan::for_load(load).ideal_rows,
        })
    }

    fn check(&self) -> anyhow::Result<()> {
        let within = |value: f64| value > 0.0 && value < 1.0;
        if !within(self.error) || !within(self.confidence) {
            return Err(usage("--error and --confidence must be between 0 and 1"));
        }
        if !(self.shape > 0.0 && self.min > 0.0 && self.variation > 0.0) {
            return Err(usage("--shape, --min and --variation must be above 0"));
        }
        match self.large {
            0 => Err(usage("--large must be above 0")),
            _ => Ok(()),
        }
    }

    /// Number of flows, and their sizes.
    fn traffic(&self) -> anyhow::Result<(u64, Pareto)> {
        let Some(path) = &self.read else {
            let flows = self.flows.filter(|&flows| flows > 0);
            let flows = flows.ok_or_else(|| usage("use --flows N, or a capture with -r FILE"))?;
            return Ok((flows, Pareto { shape: self.shape, least: self.min }));
        };
        let found = capture::flow_sizes(path)?;
        let sizes = Pareto::fit(&found).ok_or_else(|| {
            usage(format!(
                "{}: too few flows of different sizes to fit; use --flows, --shape and --min",
                path.display()
            ))
        })?;
        Ok((self.flows.unwrap_or(found.len() as u64), sizes))
    }
}

impl LdsDocument {
    fn report(&self) -> String {
        let rates: Vec<String> = self.sampling.iter().map(f64::to_string).collect();
        let Self { rows, columns, virtual_cells, load, ideal_rows, .. } = self;
        let best = RowPlan::for_load(*load);
        let mut report = format!(
            "lds with {} of state per point: --rows {rows} --columns {columns} --virtual-cells \
             {virtual_cells} --sampling {}\n\n\
             {} flows, of which (x / {:.2})^-{:.3} send more than x packets\n\
             large flows per cell z = {load:.4}: best with 1/(ez) = {ideal_rows:.1} rows, where \
             {:.4} of them survive\n\n",
            units::bytes(self.synopsis_bytes),
            rates.join(","),
            units::count(self.flows),
            self.flow_size.min,
            self.flow_size.shape,
            best.survival,
        );
        let mut table = Table::new(&["packets", "survive", "median error (paper)"]);
        for expected in &self.expected {
            table.row(vec![
                units::count(expected.packets),
                units::percent(expected.survival),
                units::percent(expected.relative_error),
            ]);
        }
        report += &table.to_string();
        report
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

    fn document(words: &str) -> LdsDocument {
        let line = Line::parse_from(["lds"].into_iter().chain(words.split_whitespace()));
        line.args.document().unwrap()
    }

    /// Two flows per cell of the paper's traffic: its own example of the formula.
    #[test]
    fn the_papers_example() {
        let found = document("--flows 140000 --memory 1426288");
        assert_eq!((found.rows, found.columns), (4, 17_500));
        assert!((found.load - 0.0875).abs() < 5e-4, "{}", found.load);
        assert_eq!(format!("{:.1}", found.ideal_rows), "4.2");
        assert_eq!(format!("{:.3}", RowPlan::for_load(found.load).survival), "0.985");
        // The formula asks for no other flow of more than 50 packets; smaller ones add up.
        assert!(found.expected[3].survival < 0.985, "{}", found.expected[3].survival);
    }

    #[test]
    fn a_confidence_gives_a_size_that_reaches_it() {
        let found = document("--flows 146000 --confidence 0.95");
        assert_eq!(found.rows, 3);
        assert!((0.95..0.96).contains(&found.expected[3].survival));
        let lossy = document("--flows 146000 --losses 500");
        assert_eq!(lossy.sampling, [0.01, 0.1, 0.5, 1.0]);
        assert_eq!(lossy.virtual_cells, 5);
    }
}

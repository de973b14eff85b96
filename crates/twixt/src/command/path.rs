//! `twixt path`: which segment of a chain of points added the delay, the variance, the loss.

mod breakdown;
mod report;

use std::path::{Path, PathBuf};

use anyhow::Context;

use super::delay::{PairArgs, has_answer, note_problems};
use crate::configuration::Configuration;
use crate::exit::{Exit, usage};
use crate::output::{
    self, DelayDocument, EstimateRow, Format, SegmentDocument, SegmentsDocument, estimate_rows,
};
use crate::remarks::Terminal;
use breakdown::Breakdown;
use twixt_offline::{
    Files, Measured, PairMeasured, Plan, Split, epoch_files, is_epoch_file, is_standard_input,
};

/// Which segment of a chain of captures or epoch files added the delay, the variance, the loss
///
/// Name the files in the order in which packets pass: `twixt path a.pcap b.pcap c.pcap`. Each
/// segment is measured like `delay`, and so is the whole, from the first to the last.
#[derive(clap::Args)]
#[command(override_usage = "twixt path [OPTIONS] A B [C]... [FILTER]...")]
#[command(mut_arg("filter", |filter| filter
    .value_name("C]... [FILTER")
    .help("Further points, in order; then a filter, from the first word that is not a file")))]
pub(crate) struct Args {
    /// Split estimates: all, flow, prefix/24, class
    #[arg(long, value_name = "SCOPE", default_value = "all")]
    by: Split,
    /// Output format
    #[arg(short = 'F', long = "format", value_enum, default_value_t)]
    format: Format,
    #[command(flatten)]
    pair: PairArgs,
    #[arg(skip)]
    further: Vec<PathBuf>,
}

/// A segment of the chain, or all of it.
struct Section<'a> {
    files: Files<'a>,
    measured: Measured,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    args.check()?;
    let points = args.points();
    let mut partial = false;
    let mut sections = Vec::new();
    let mut plan = None;
    for files in sections_of(&points) {
        let (made, PairMeasured { segments, partial: unusable }) =
            args.measure(files).with_context(|| {
                format!("{} to {}", files.upstream.display(), files.downstream.display())
            })?;
        partial |= unusable;
        plan = Some(made);
        sections.extend(segments.into_iter().map(|measured| Section { files, measured }));
    }
    let (Some(plan), Some(total)) = (plan, sections.pop()) else {
        return Err(usage("a path has at least two points"));
    };
    let problems: usize =
        sections.iter().chain([&total]).map(|section| note_problems(&section.measured)).sum();
    let known = sections.iter().chain([&total]).all(|section| has_answer(&section.measured));
    args.print(&plan, &sections, &total)?;
    let exit = if known { Exit::Done } else { Exit::NoAnswer };
    Ok(exit.or_partial(partial || problems > 0))
}

/// The segments of a chain, then all of it. With two points these are the same.
fn sections_of<'a>(points: &[&'a Path]) -> Vec<Files<'a>> {
    let between = |upstream: &'a Path, downstream: &'a Path| Files { upstream, downstream };
    let mut sections: Vec<Files<'a>> =
        points.windows(2).map(|pair| between(pair[0], pair[1])).collect();
    if let [first, .., last] = points {
        sections.push(between(first, last));
    }
    sections
}

impl Args {
    /// Takes from the configuration file what the command line left out, and further files from
    /// among the words of the filter.
    pub(crate) fn with(self, configuration: &Configuration) -> Self {
        let mut pair = self.pair.with(configuration);
        let further = pair.traffic.take_first_words(|word| Path::new(word).is_file());
        Self { pair, further: further.into_iter().map(PathBuf::from).collect(), ..self }
    }

    fn points(&self) -> Vec<&Path> {
        let Files { upstream, downstream } = self.pair.files();
        let further = self.further.iter().map(PathBuf::as_path);
        [upstream, downstream].into_iter().chain(further).collect()
    }

    /// Refuses what cannot be read so.
    fn check(&self) -> anyhow::Result<()> {
        let points = self.points();
        if points.iter().any(|point| is_standard_input(point)) {
            return Err(usage(
                "the captures of a path are read several times: use files, not standard input",
            ));
        }
        let recorded = points.iter().filter(|point| is_epoch_file(point)).count();
        if recorded != 0 && recorded != points.len() {
            return Err(usage(
                "some files hold epochs and others are captures: record the captures first, with \
                 the same settings",
            ));
        }
        self.pair.check()
    }

    /// As `delay` does.
    fn measure(&self, files: Files<'_>) -> anyhow::Result<(Plan, PairMeasured)> {
        if is_epoch_file(files.upstream) {
            return epoch_files(files, &Terminal, |first| self.pair.recorded_plan(first, self.by));
        }
        let plan = self.pair.plan(self.pair.algorithm.choose("exact")?, self.by)?;
        let measured = self.pair.measure_between(&plan, files, false)?;
        Ok((plan, measured))
    }

    fn print(
        &self,
        plan: &Plan,
        sections: &[Section<'_>],
        total: &Section<'_>,
    ) -> anyhow::Result<()> {
        let chosen = &plan.algorithms[0];
        let breakdown = Breakdown::new(sections, total);
        match self.format {
            Format::Human => output::text(&report::report(chosen, sections, total, &breakdown)),
            Format::Json => {
                let document = |section: &Section<'_>| {
                    let measured = &section.measured;
                    DelayDocument::new(section.files, chosen, measured, &measured.concluded[0])
                };
                output::json(&report::PathDocument {
                    segments: SegmentsDocument {
                        segments: sections.iter().map(document).collect(),
                        total: Some(estimate_rows(&total.measured.concluded[0], None)),
                    },
                    rest: breakdown.rest().into(),
                    most: report::MostDocument::new(sections, &breakdown),
                })
            }
            Format::Jsonl => output::jsonl(rows(sections, total)),
            Format::Csv => output::csv(rows(sections, total)),
        }
    }
}

/// The estimates of all segments, then those of the whole.
fn rows(sections: &[Section<'_>], total: &Section<'_>) -> Vec<EstimateRow> {
    let rows = |section: &Section<'_>| {
        let named = SegmentDocument::from(section.files);
        estimate_rows(&section.measured.concluded[0], Some(&named))
    };
    sections.iter().chain([total]).flat_map(rows).collect()
}

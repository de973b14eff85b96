//! `twixt path`: which segment of a chain of points added the delay, the variance, the loss.

mod breakdown;
mod picture;
mod report;

use std::path::{Path, PathBuf};

use anyhow::Context;

use super::delay::{PairArgs, has_answer, note_problems};
use crate::configuration::Configuration;
use crate::exit::{Exit, note, usage};
use crate::interruption;
use crate::output::{
    self, DelayDocument, EstimateRow, ROWS_DEFAULT, SegmentDocument, SegmentsDocument, TableFormat,
    delay_report, estimate_rows,
};
use crate::plot::PlotFile;
use crate::remarks::Terminal;
use breakdown::Breakdown;
use twixt_offline::{
    ChosenAlgorithm, Files, Measured, PairMeasured, Plan, Split, epoch_files, is_epoch_file,
    is_read_once,
};
use twixt_synopsis::By;

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
    /// Split estimates: all, flow, host, prefix/24, port, dscp, class
    #[arg(long, value_name = "SCOPE", default_value = "all")]
    by: Split,
    /// Draw delay and loss from segment to segment into a file: .svg, .png or .html
    #[arg(long, value_name = "FILE")]
    plot: Option<PlotFile>,
    /// Output format
    #[arg(short = 'F', long = "format", value_enum, default_value_t)]
    format: TableFormat,
    #[command(flatten)]
    pair: PairArgs,
    /// Refused with what to do instead
    #[arg(long, hide = true)]
    both: bool,
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
        if interruption::is_requested() && sections.len() < sections_of(&points).len() {
            return args.print_interrupted(plan.as_ref(), &sections);
        }
    }
    let (Some(plan), Some(total)) = (plan, sections.pop()) else {
        return Err(usage("a path has at least two points"));
    };
    let problems: usize =
        sections.iter().chain([&total]).map(|section| note_problems(&section.measured)).sum();
    let known = sections.iter().chain([&total]).all(|section| has_answer(&section.measured));
    args.print(&plan, &sections, &total)?;
    let exit = if known { Exit::Done } else { Exit::NoAnswer };
    Ok(exit.or_partial(partial || problems > 0).or_interrupted())
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
        let further = pair
            .traffic
            .take_first_words(|word| Path::new(word).is_file() || is_read_once(Path::new(word)));
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
        if points.iter().any(|point| is_read_once(point)) {
            return Err(usage(
                "the captures of a path are read several times: use files, not standard input or \
                 pipes",
            ));
        }
        if self.both {
            return Err(usage(
                "a path is measured in the order of its files: for the way back, name them in reverse",
            ));
        }
        let is_split = self.by != Split::By(By::All);
        if self.format == TableFormat::Human && (is_split || self.pair.is_series()) {
            return Err(usage(
                "the table of a path is one of all its traffic over all time: for rows by scope or \
                 epoch, add -F json, jsonl or csv to --by or --epoch",
            ));
        }
        self.check_filter()?;
        let recorded = points.iter().filter(|point| is_epoch_file(point)).count();
        if recorded != 0 && recorded != points.len() {
            return Err(usage(
                "some files hold epochs and others are captures: record the captures first, with \
                 the same settings",
            ));
        }
        self.pair.check()
    }

    /// A file that does not exist is taken for a filter, of which no word looks like one.
    fn check_filter(&self) -> anyhow::Result<()> {
        let first = self.pair.traffic.first_word().filter(|word| word.contains(['.', '/']));
        match (first, self.pair.traffic.filter()) {
            (Some(word), Err(_)) => Err(usage(format!("{word}: no such file"))),
            _ => Ok(()),
        }
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
        if let Some(file) = &self.plot {
            file.write_any(picture::picture(sections, total, &breakdown))?;
        }
        if let Some(format) = self.format.rows() {
            // The estimates of all segments, then those of the whole.
            return output::rows(format, rows(sections.iter().chain([total])));
        }
        match self.format {
            TableFormat::Json => output::json(&report::PathDocument {
                segments: SegmentsDocument {
                    segments: documents(chosen, sections.iter()),
                    total: Some(estimate_rows(&total.measured.concluded[0], None)),
                },
                rest: breakdown.rest().into(),
                most: report::MostDocument::new(sections, &breakdown),
            }),
            _ => output::text(&report::report(chosen, sections, total, &breakdown)),
        }
    }

    /// Shows the segments that were measured before the user interrupted: nothing is known of the rest.
    fn print_interrupted(
        &self,
        plan: Option<&Plan>,
        sections: &[Section<'_>],
    ) -> anyhow::Result<Exit> {
        let chosen = &plan.expect("a segment was measured").algorithms[0];
        let concluded = |section: &Section<'_>| section.measured.concluded[0].epochs();
        let shown = sections.iter().filter(|section| concluded(section) > 0);
        note("interrupted: partial, the path was not measured to its end");
        if let Some(format) = self.format.rows() {
            output::rows(format, rows(shown))?;
            return Ok(Exit::Interrupted);
        }
        match self.format {
            TableFormat::Json => {
                let segments = documents(chosen, shown);
                output::json(&SegmentsDocument { segments, total: None })?;
            }
            _ => {
                let report = |section: &Section<'_>| {
                    let measured = &section.measured;
                    let (files, rows) = (section.files, ROWS_DEFAULT);
                    delay_report(files, chosen, measured, &measured.concluded[0], rows)
                };
                output::text(&shown.map(report).collect::<Vec<_>>().join("\n"))?;
            }
        }
        Ok(Exit::Interrupted)
    }
}

fn documents<'a>(
    chosen: &ChosenAlgorithm,
    sections: impl Iterator<Item = &'a Section<'a>>,
) -> Vec<DelayDocument> {
    let document = |section: &Section<'_>| {
        let measured = &section.measured;
        DelayDocument::new(section.files, chosen, measured, &measured.concluded[0])
    };
    sections.map(document).collect()
}

/// The estimates of segments, which may be all of the path.
fn rows<'a>(sections: impl IntoIterator<Item = &'a Section<'a>>) -> Vec<EstimateRow> {
    let rows = |section: &Section<'_>| {
        let named = SegmentDocument::from(section.files);
        estimate_rows(&section.measured.concluded[0], Some(&named))
    };
    sections.into_iter().flat_map(rows).collect()
}

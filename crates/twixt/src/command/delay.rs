//! `twixt delay`: one-way delay, deviation and loss between two captures.

mod limits;
mod picture;
mod rtp;

use std::path::PathBuf;

use anyhow::Context;
use twixt_measure::{Cutting, Sealed};
use twixt_model::{EpochRule, Evidence};
use twixt_offline::{
    Beside, ChosenAlgorithm, EpochLeftOut, Files, FlowSizes, Measured, PairMeasured, Plan, Split,
    Traffic, epoch_files, is_epoch_file, is_read_once, is_standard_input, one_read, segment,
    two_reads,
};
use twixt_synopsis::{By, Estimator};

use crate::args::{
    AlgorithmArgs, ClockArg, Cut, DigestArgs, EpochLength, FailAbove, FlowsArgs, SeriesLength,
    TrafficArgs,
};
use crate::configuration::Configuration;
use crate::exit::{Exit, no_answer, note, usage};
use crate::interruption;
use crate::output::{
    self, DelayDocument, ROWS_DEFAULT, RowFormat, RowWriter, RowsShown, SegmentDocument,
    SegmentsDocument, SortKey, TableFormat, clock_lines, delay_report, direction_report,
    estimate_rows, packet_rows, units,
};
use crate::plot::PlotFile;
use crate::remarks::Terminal;
use picture::ScopesDrawn;

/// One-way delay, deviation and loss between two captures or epoch files
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Report both directions: upstream to downstream, and back
    #[arg(long, conflicts_with_all = ["one_pass", "toward"])]
    both: bool,
    /// Split estimates: all, flow, host, prefix/24, port, dscp, class
    #[arg(long, value_name = "SCOPE", default_value = "all")]
    by: Split,
    /// Keep a sample beside the algorithm, of this many bytes per second, for percentiles
    #[arg(long, value_name = "SIZE", value_parser = crate::args::bytes)]
    sample_budget: Option<u64>,
    /// Print every packet: when it was sent, its flow, delay and length, and whether it was lost;
    /// needs -F jsonl, csv or parquet, and an algorithm that keeps every packet
    #[arg(long, conflicts_with = "by")]
    samples: bool,
    /// Report RTP streams, with jitter, loss and the score of the E-model (ITU-T G.107) for calls
    #[arg(long, conflicts_with_all = ["by", "samples", "plot", "one_pass", "epoch", "sort", "fail_above"])]
    rtp: bool,
    /// Draw the distribution, the course over time and loss into a file: .svg, .png or .html
    #[arg(long, value_name = "FILE")]
    plot: Option<PlotFile>,
    /// Output format
    #[arg(short = 'F', long = "format", value_enum, default_value_t)]
    format: TableFormat,
    /// Order of the rows, largest first [default: by mean; epochs by time]
    #[arg(long, value_enum, value_name = "KEY")]
    sort: Option<SortKey>,
    /// End with exit code 10 if a row exceeds a limit, such as mean=5ms,p99=20ms,loss=1%
    #[arg(long, value_name = "LIMITS")]
    fail_above: Option<FailAbove>,
    /// Rows of the table to show, worst first
    #[arg(long, value_name = "N", default_value_t = ROWS_DEFAULT)]
    rows_shown: usize,
    #[command(flatten)]
    pub(super) pair: PairArgs,
}

/// Two files and how they are compared: what `delay`, `verify` and `path` share.
#[derive(clap::Args)]
pub(super) struct PairArgs {
    /// Where packets pass first: pcap, pcapng (gzip, zstd) or an epoch file; - is standard input
    #[arg(value_name = "UP")]
    upstream: PathBuf,
    /// Where packets pass second
    #[arg(value_name = "DOWN")]
    downstream: PathBuf,
    #[command(flatten)]
    pub(super) traffic: TrafficArgs,
    #[command(flatten)]
    pub(super) algorithm: AlgorithmArgs,
    /// Cut time into epochs of this length, for a series; auto: some 60 of them [default: whole]
    #[arg(long, value_name = "DURATION")]
    epoch: Option<SeriesLength>,
    #[arg(skip)]
    epoch_written: Option<EpochLength>,
    /// What ends an epoch: time, or markers (needs --one-pass)
    #[arg(long, value_enum, default_value_t)]
    cut: Cut,
    /// Read each capture once: needs --toward or a filter, and captures that cover the same time
    #[arg(long)]
    one_pass: bool,
    /// What to do about clocks that differ
    #[arg(long, value_enum, default_value_t, value_name = "USE")]
    clock: ClockArg,
    #[command(flatten)]
    pub(super) flows: FlowsArgs,
    #[command(flatten)]
    pub(super) digest: DigestArgs,
}

impl PairArgs {
    /// Takes from the configuration file what the command line left out.
    pub(super) fn with(self, configuration: &Configuration) -> Self {
        let traffic = self.traffic.with(configuration).weighed(self.algorithm.weights_file());
        Self {
            epoch_written: EpochLength::written(configuration),
            traffic,
            algorithm: self.algorithm.with(configuration),
            digest: self.digest.with(configuration),
            ..self
        }
    }

    /// The two files.
    pub(super) fn files(&self) -> Files<'_> {
        Files { upstream: &self.upstream, downstream: &self.downstream }
    }

    /// The rule by which time is cut.
    pub(super) fn rule(&self) -> EpochRule {
        match (self.epoch, self.epoch_written) {
            (Some(SeriesLength::Cut(rule)), _) | (None, Some(EpochLength(rule))) => rule,
            (Some(SeriesLength::Auto), _) | (None, None) => EpochRule::WHOLE,
        }
    }

    /// Whether the length of epochs is chosen by how long the captures are.
    pub(super) const fn auto_epochs(&self) -> bool {
        matches!(self.epoch, Some(SeriesLength::Auto))
    }

    /// Whether the command line says that time is cut.
    pub(super) fn is_series(&self) -> bool {
        match self.epoch {
            Some(SeriesLength::Cut(rule)) => rule != EpochRule::WHOLE,
            Some(SeriesLength::Auto) => true,
            None => false,
        }
    }

    /// What ends an epoch.
    pub(super) fn cutting(&self, split: Split) -> anyhow::Result<Cutting> {
        self.cut.cutting(self.rule(), split, &segment().upstream.0)
    }

    /// Refuses what cannot be read so.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        let paths = [&self.upstream, &self.downstream];
        if paths.iter().all(|path| is_standard_input(path)) {
            return Err(usage("only one of the two captures can be standard input"));
        }
        if paths.iter().any(|path| is_read_once(path)) && !self.one_pass {
            return Err(usage(
                "standard input and pipes can be read only once: add --one-pass, with --toward or a \
                 filter",
            ));
        }
        if self.cut == Cut::Markers && !self.one_pass {
            return Err(usage(
                "--cut markers needs --one-pass: markers decide where epochs begin and end",
            ));
        }
        if self.one_pass && self.clock == ClockArg::Correct {
            return Err(usage(
                "--clock correct cannot be combined with --one-pass: clock errors are known only \
                 after a first read",
            ));
        }
        if self.one_pass && self.auto_epochs() {
            return Err(usage(
                "--epoch auto cannot be combined with --one-pass, as the length of the captures is \
                 known only after a first read: use --epoch DURATION",
            ));
        }
        if self.one_pass && !self.traffic.has_direction() {
            return Err(usage(
                "--one-pass needs --toward PREFIX or a filter: it cannot detect which packets go \
                 downstream",
            ));
        }
        Ok(())
    }

    /// Whether the inputs are epoch files; one alone is refused.
    fn are_epoch_files(&self) -> anyhow::Result<bool> {
        match [&self.upstream, &self.downstream].map(|path| is_epoch_file(path)) {
            [true, true] => Ok(true),
            [false, false] => Ok(false),
            _ => Err(usage(
                "one file holds epochs and the other is a capture: record the capture first, \
                 with the same settings",
            )),
        }
    }

    /// The plan for an algorithm, with estimates split up like this.
    pub(super) fn plan(&self, chosen: ChosenAlgorithm, split: Split) -> anyhow::Result<Plan> {
        let plan = Plan {
            traffic: self.traffic_by(split)?,
            digest: self.digest.plan(),
            algorithms: vec![chosen],
            split,
            rule: self.rule(),
            auto_epochs: self.auto_epochs(),
            cutting: self.cutting(split)?,
            flows: self.flows.list(FlowSizes::Estimated)?,
            beside: self.beside(),
        };
        plan.check()?;
        Ok(plan)
    }

    /// Which packets are measured, with the classes that a split makes.
    fn traffic_by(&self, split: Split) -> anyhow::Result<Traffic> {
        self.traffic.traffic_by(split == Split::Dscp)
    }

    /// What is done beside measuring.
    pub(super) fn beside(&self) -> Beside {
        Beside { clock: self.clock.into(), ..Beside::default() }
    }

    /// The plan that fits what was recorded.
    pub(super) fn recorded_plan(&self, first: &Sealed, split: Split) -> anyhow::Result<Plan> {
        if self.epoch.is_some() || self.traffic.has_direction() {
            return Err(applies_when_recorded());
        }
        if self.clock == ClockArg::Correct {
            return Err(usage("--clock correct needs captures: recorded times cannot be changed"));
        }
        if split == Split::Dscp {
            return Err(usage(
                "--by dscp needs captures: epoch files have the classes they were recorded with",
            ));
        }
        let plan = self.plan(self.algorithm.recorded(first)?, split)?;
        plan.check_recorded(first)?;
        Ok(plan)
    }

    /// Measures two captures.
    pub(super) fn measure(&self, plan: &Plan, both: bool) -> anyhow::Result<PairMeasured> {
        let reads_stamps = |chosen: &ChosenAlgorithm| chosen.prototype.reads_stamps();
        if is_read_once(&self.upstream) && plan.algorithms.iter().any(reads_stamps) {
            return Err(usage(
                "the upstream capture is read first, for the send times of packets: it cannot be \
                 standard input or a pipe",
            ));
        }
        self.measure_between(plan, self.files(), both)
    }

    /// Measures any two captures.
    pub(super) fn measure_between(
        &self,
        plan: &Plan,
        files: Files<'_>,
        both: bool,
    ) -> anyhow::Result<PairMeasured> {
        interruption::watch().context("cannot handle signals")?;
        match self.one_pass {
            true => Ok(one_read(plan, files, &Terminal)?),
            false => Ok(two_reads(plan, files, both, &Terminal)?),
        }
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    args.pair.check()?;
    if args.samples && args.format.rows().is_none() {
        return Err(usage("--samples needs -F jsonl, -F csv or -F parquet"));
    }
    limits::check(args.fail_above.as_ref())?;
    let (plan, mut measured) = match args.pair.are_epoch_files()? {
        true => epoch_files(args.pair.files(), &Terminal, |first| args.recorded(first))?,
        false => {
            let plan = args.plan()?;
            let measured = args.pair.measure(&plan, args.both)?;
            (plan, measured)
        }
    };
    let problems: usize = measured.segments.iter().map(note_problems).sum();
    if args.rtp {
        let exit = Exit::Done.or_partial(measured.partial || problems > 0).or_interrupted();
        return match rtp::print(args, &plan, &measured)? {
            0 => exit.without_answer("no RTP stream goes from the first capture to the second"),
            _ => Ok(exit),
        };
    }
    let known = measured.segments.iter().any(has_answer);
    if !known && args.format == TableFormat::Human && measured.segments.iter().all(is_empty) {
        return Err(no_answer("the two points have no epoch in common: nothing to compare"));
    }
    args.arrange(&mut measured);
    args.draw(&plan, &measured)?;
    args.print(&plan, &measured)?;
    let exit = if known { Exit::Done } else { Exit::NoAnswer };
    let exit = exit.or_partial(measured.partial || problems > 0).or_interrupted();
    let is_series = measured.segments.iter().any(|one| one.concluded[0].epochs() > 1);
    let estimates = measured.segments.iter().flat_map(|one| &one.concluded[0].estimates);
    Ok(limits::conclude(args.fail_above.as_ref(), estimates, is_series, exit))
}

impl Args {
    /// Takes from the configuration file what the command line left out.
    pub(crate) fn with(self, configuration: &Configuration) -> Self {
        Self { pair: self.pair.with(configuration), ..self }
    }

    fn plan(&self) -> anyhow::Result<Plan> {
        let split = if self.rtp { Split::By(By::Flow) } else { self.by };
        let mut plan = self.pair.plan(self.pair.algorithm.choose("exact")?, split)?;
        plan.beside.sample_bytes_per_second = self.sample_budget;
        let can_draw = plan.algorithms.iter().all(keeps_packets)
            || plan.rule != EpochRule::WHOLE
            || self.sample_budget.is_some()
            || plan.algorithms[0].algorithm.name == "sample";
        match self.plot.is_some() && !can_draw {
            true => Err(usage(format!(
                "--plot needs more than one mean: with {} add --epoch or --sample-budget, or use \
                 exact",
                plan.algorithms[0].algorithm.name
            ))),
            false => self.with_packets(plan),
        }
    }

    /// The same, with every packet if that was asked for.
    fn with_packets(&self, mut plan: Plan) -> anyhow::Result<Plan> {
        let keeps_packets = plan.algorithms.iter().all(keeps_packets);
        let is_asked = self.samples || self.rtp;
        let shown = is_asked || self.plot.is_some() || self.format == TableFormat::Human;
        plan.beside.packets = keeps_packets && shown;
        match is_asked && !keeps_packets {
            true => Err(usage(format!(
                "--samples and --rtp need an algorithm that keeps every packet: {} does not, exact does",
                plan.algorithms[0].algorithm.name
            ))),
            false => Ok(plan),
        }
    }

    /// The plan that fits what was recorded.
    fn recorded(&self, first: &Sealed) -> anyhow::Result<Plan> {
        match self.both || self.rtp || self.sample_budget.is_some() {
            true => Err(applies_when_recorded()),
            false => self.with_packets(self.pair.recorded_plan(first, self.by)?),
        }
    }

    /// Puts rows in the order that was asked for. Code points without packets have none.
    fn arrange(&self, measured: &mut PairMeasured) {
        for segment in &mut measured.segments {
            let estimates = &mut segment.concluded[0].estimates;
            if self.by == Split::Dscp {
                estimates.retain(|estimate| estimate.evidence.packets > 0);
            }
            if let Some(key) = self.sort {
                key.sort(estimates);
            }
        }
    }

    /// Draws what `--plot` asks for.
    fn draw(&self, plan: &Plan, measured: &PairMeasured) -> anyhow::Result<()> {
        let Some(file) = &self.plot else { return Ok(()) };
        let chosen = &plan.algorithms[0];
        let drawn = match self.sort {
            Some(_) => ScopesDrawn::First,
            None => ScopesDrawn::Largest,
        };
        file.write_any(picture::picture(self.pair.files(), chosen, &measured.segments, drawn))
    }

    fn print(&self, plan: &Plan, measured: &PairMeasured) -> anyhow::Result<()> {
        let chosen = &plan.algorithms[0];
        if let Some(format) = self.format.rows() {
            return self.print_rows(format, measured);
        }
        match self.format {
            TableFormat::Json => self.print_json(chosen, measured),
            _ => {
                let report = |segment: &Measured| {
                    let (files, concluded) =
                        (segment.files(self.pair.files()), &segment.concluded[0]);
                    let rows = RowsShown { most: self.rows_shown, is_sorted: self.sort.is_some() };
                    match self.both {
                        true => direction_report(files, chosen, segment, concluded, rows),
                        false => delay_report(files, chosen, segment, concluded, rows),
                    }
                };
                let mut reports: Vec<String> = measured.segments.iter().map(report).collect();
                // What is known of the clocks is the same in both directions.
                let first = measured.segments.first().filter(|_| self.both);
                reports.extend(
                    first.map(|segment| clock_lines(segment.files(self.pair.files()), segment)),
                );
                output::text(&reports.join("\n"))
            }
        }
    }

    /// Estimates, or packets, of all segments.
    fn print_rows(&self, format: RowFormat, measured: &PairMeasured) -> anyhow::Result<()> {
        let mut writer = RowWriter::new(format);
        for segment in &measured.segments {
            let named = SegmentDocument::from(segment.files(self.pair.files()));
            let named = self.both.then_some(&named);
            let concluded = &segment.concluded[0];
            if self.samples {
                for row in packet_rows(concluded, named) {
                    writer.write(&row)?;
                }
                continue;
            }
            for row in estimate_rows(concluded, named) {
                writer.write(&row)?;
            }
        }
        writer.finish()
    }

    fn print_json(&self, chosen: &ChosenAlgorithm, measured: &PairMeasured) -> anyhow::Result<()> {
        let files = self.pair.files();
        let document = |segment: &Measured| {
            DelayDocument::new(segment.files(files), chosen, segment, &segment.concluded[0])
        };
        let mut segments: Vec<DelayDocument> = measured.segments.iter().map(document).collect();
        match (self.both, segments.pop()) {
            (false, Some(segment)) => output::json(&segment),
            (_, last) => {
                segments.extend(last);
                output::json(&SegmentsDocument { segments, total: None })
            }
        }
    }
}

/// Whether an algorithm knows what became of each packet.
fn keeps_packets(chosen: &ChosenAlgorithm) -> bool {
    matches!(chosen.algorithm.estimator, Estimator::TwoPoint { matches_packets: true, .. })
}

fn applies_when_recorded() -> anyhow::Error {
    usage(
        "--epoch, --both, --rtp, --sample-budget, --toward and filters apply to recording, not to epoch \
         files",
    )
}

/// Says which epochs were left out and why; how many.
pub(super) fn note_problems(measured: &Measured) -> usize {
    const SHOWN: usize = 5;
    let problems = || measured.concluded.iter().flat_map(|concluded| &concluded.problems);
    let mut reasons: Vec<(&str, Vec<i64>)> = Vec::new();
    for EpochLeftOut { epoch, reason } in problems() {
        match reasons.iter_mut().find(|(known, _)| known == reason) {
            Some((_, epochs)) => epochs.push(epoch.0),
            None => reasons.push((reason, vec![epoch.0])),
        }
    }
    for (reason, epochs) in reasons.iter().take(SHOWN) {
        let more = match epochs.len() - 1 {
            0 => String::new(),
            more => format!(" and {} more", units::count(more as u64)),
        };
        note(format_args!("{reason} (epoch {}{more})", epochs[0]));
    }
    problems().count()
}

/// Whether there is at least one delay, or it is known that everything was lost.
pub(super) fn has_answer(measured: &Measured) -> bool {
    let estimates = measured.concluded.iter().flat_map(|concluded| &concluded.estimates);
    let is_outage =
        |evidence: &Evidence| evidence.packets > 0 && evidence.lost == Some(evidence.packets);
    estimates.into_iter().any(|estimate| estimate.delay.is_some() || is_outage(&estimate.evidence))
}

/// Whether nothing at all could be compared.
pub(super) fn is_empty(measured: &Measured) -> bool {
    measured.concluded.iter().all(|concluded| concluded.estimates.is_empty())
}

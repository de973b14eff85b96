//! `twixt delay`: one-way delay, deviation and loss between two captures.

use std::path::PathBuf;

use twixt_measure::{Cutting, Sealed};
use twixt_model::{EpochRule, Evidence};
use twixt_offline::{
    Beside, ChosenAlgorithm, EpochLeftOut, Files, FlowSizes, Measured, PairMeasured, Plan, Split,
    epoch_files, is_epoch_file, is_standard_input, one_read, segment, two_reads,
};

use crate::args::{AlgorithmArgs, ClockArg, Cut, DigestArgs, EpochLength, FlowsArgs, TrafficArgs};
use crate::configuration::Configuration;
use crate::exit::{Exit, no_answer, note, usage};
use crate::output::{
    self, DelayDocument, Format, ROWS_DEFAULT, SegmentDocument, SegmentsDocument, delay_report,
    estimate_rows, units,
};
use crate::remarks::Terminal;

/// One-way delay, deviation and loss between two captures or epoch files
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Report both directions: upstream to downstream, and back
    #[arg(long, conflicts_with_all = ["one_pass", "toward"])]
    both: bool,
    /// Split estimates: all, flow, prefix/24, class
    #[arg(long, value_name = "SCOPE", default_value = "all")]
    by: Split,
    /// Keep a sample beside the algorithm, of this many bytes per second, for percentiles
    #[arg(long, value_name = "SIZE", value_parser = crate::args::bytes)]
    sample_budget: Option<u64>,
    /// Output format
    #[arg(short = 'F', long = "format", value_enum, default_value_t)]
    format: Format,
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
    /// Cut time into epochs of this length, for a series [default: whole]
    #[arg(long, value_name = "DURATION")]
    epoch: Option<EpochLength>,
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
        self.epoch.or(self.epoch_written).map_or(EpochRule::WHOLE, |epoch| epoch.0)
    }

    /// What ends an epoch.
    pub(super) fn cutting(&self, split: Split) -> anyhow::Result<Cutting> {
        self.cut.cutting(self.rule(), split, &segment().upstream.0)
    }

    /// Refuses what cannot be read so.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        let stdin = [&self.upstream, &self.downstream].map(|path| is_standard_input(path));
        if stdin == [true, true] {
            return Err(usage("only one of the two captures can be standard input"));
        }
        if stdin.contains(&true) && !self.one_pass {
            return Err(usage(
                "standard input can be read only once: add --one-pass, with --toward or a filter",
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
            traffic: self.traffic.traffic()?,
            digest: self.digest.plan(),
            algorithms: vec![chosen],
            split,
            rule: self.rule(),
            cutting: self.cutting(split)?,
            flows: self.flows.list(FlowSizes::Estimated)?,
            beside: self.beside(),
        };
        plan.check()?;
        Ok(plan)
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
        let plan = self.plan(self.algorithm.recorded(first)?, split)?;
        plan.check_recorded(first)?;
        Ok(plan)
    }

    /// Measures two captures.
    pub(super) fn measure(&self, plan: &Plan, both: bool) -> anyhow::Result<PairMeasured> {
        let reads_stamps = |chosen: &ChosenAlgorithm| chosen.prototype.reads_stamps();
        if is_standard_input(&self.upstream) && plan.algorithms.iter().any(reads_stamps) {
            return Err(usage(
                "the upstream capture is read first, for the send times of packets: it cannot be \
                 standard input",
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
        match self.one_pass {
            true => Ok(one_read(plan, files, &Terminal)?),
            false => Ok(two_reads(plan, files, both, &Terminal)?),
        }
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    args.pair.check()?;
    let (plan, measured) = match args.pair.are_epoch_files()? {
        true => epoch_files(args.pair.files(), &Terminal, |first| args.recorded(first))?,
        false => {
            let plan = args.plan()?;
            let measured = args.pair.measure(&plan, args.both)?;
            (plan, measured)
        }
    };
    let problems: usize = measured.segments.iter().map(note_problems).sum();
    let known = measured.segments.iter().any(has_answer);
    if !known && args.format == Format::Human && measured.segments.iter().all(is_empty) {
        return Err(no_answer("the two points have no epoch in common: nothing to compare"));
    }
    args.print(&plan, &measured)?;
    let exit = if known { Exit::Done } else { Exit::NoAnswer };
    Ok(exit.or_partial(measured.partial || problems > 0))
}

impl Args {
    /// Takes from the configuration file what the command line left out.
    pub(crate) fn with(self, configuration: &Configuration) -> Self {
        Self { pair: self.pair.with(configuration), ..self }
    }

    fn plan(&self) -> anyhow::Result<Plan> {
        let mut plan = self.pair.plan(self.pair.algorithm.choose("exact")?, self.by)?;
        plan.beside.sample_bytes_per_second = self.sample_budget;
        Ok(plan)
    }

    /// The plan that fits what was recorded.
    fn recorded(&self, first: &Sealed) -> anyhow::Result<Plan> {
        match self.both || self.sample_budget.is_some() {
            true => Err(applies_when_recorded()),
            false => self.pair.recorded_plan(first, self.by),
        }
    }

    fn print(&self, plan: &Plan, measured: &PairMeasured) -> anyhow::Result<()> {
        let chosen = &plan.algorithms[0];
        let rows = || {
            measured.segments.iter().flat_map(|segment| {
                let named = SegmentDocument::from(segment.files(self.pair.files()));
                estimate_rows(&segment.concluded[0], self.both.then_some(&named))
            })
        };
        match self.format {
            Format::Json => self.print_json(chosen, measured),
            Format::Jsonl => output::jsonl(rows()),
            Format::Csv => output::csv(rows()),
            Format::Human => {
                let report = |segment: &Measured| {
                    delay_report(
                        segment.files(self.pair.files()),
                        chosen,
                        segment,
                        &segment.concluded[0],
                        self.rows_shown,
                    )
                };
                let reports: Vec<String> = measured.segments.iter().map(report).collect();
                output::text(&reports.join("\n"))
            }
        }
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

fn applies_when_recorded() -> anyhow::Error {
    usage(
        "--epoch, --both, --sample-budget, --toward and filters apply to recording, not to epoch \
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

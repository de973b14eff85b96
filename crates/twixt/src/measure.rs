//! From two captures (or two epoch files) to estimates.
//!
//! A capture is read twice: first to survey what the two have in common, then to measure that.

mod beside;
mod correction;
mod directory;
mod first_read;
mod pairs;
mod reading;
mod recorded;
mod second_read;
mod selection;
mod stamps;

pub(crate) use beside::{Beside, KeptBeside};
pub(crate) use pairs::{Concluded, Pairs, Problem};
pub(crate) use recorded::{End, Recordings, rough_delay};

use std::path::Path;

use twixt_measure::clock::ClockReport;
use twixt_measure::survey::{ClockDifference, Comparison, Edges, Method, compare, compare_told};
use twixt_measure::{Cutting, Sealed};
use twixt_model::{Delay, EpochRule, Needs, PointId, Segment, Span};
use twixt_observe::PointCounts;
use twixt_synopsis::{AnySynopsis, By, FlowNames};
use twixt_wire::Observer;

use crate::args::{Chosen, DigestArgs, FlowList, Split, TrafficArgs};
use crate::exit::{no_answer, note, usage};
use crate::input;
use first_read::Surveyed;

/// What is to be measured, and how.
pub(crate) struct Plan<'a> {
    pub(crate) traffic: &'a TrafficArgs,
    pub(crate) digest: &'a DigestArgs,
    pub(crate) algorithms: Vec<Chosen>,
    pub(crate) split: Split,
    pub(crate) rule: EpochRule,
    pub(crate) cutting: Cutting,
    pub(crate) flows: FlowList,
    pub(crate) beside: Beside,
}

/// How the direction of flows was decided.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DirectionFound {
    pub(crate) decided_by: &'static str,
    pub(crate) unknown_flows: u64,
}

/// What was measured along one segment.
pub(crate) struct Measured {
    /// In the order of the plan's algorithms.
    pub(crate) concluded: Vec<Concluded>,
    pub(crate) upstream: PointCounts,
    pub(crate) downstream: PointCounts,
    pub(crate) direction: DirectionFound,
    pub(crate) stretch: Option<Span>,
    pub(crate) clock: Option<ClockDifference>,
    /// What single packets tell of the clocks.
    pub(crate) clocks: Option<ClockReport>,
    /// Whether what is known of the clocks was taken out of delays.
    pub(crate) corrected: bool,
    /// What was kept beside the algorithm.
    pub(crate) beside: Option<KeptBeside>,
    pub(crate) negative_delays: u64,
    /// Whether this is the opposite of the segment that was asked for.
    pub(crate) opposite: bool,
}

impl Measured {
    /// The files of this segment, when `asked` are those that were asked for.
    pub(crate) fn files<'a>(&self, asked: Files<'a>) -> Files<'a> {
        if self.opposite { asked.swapped() } else { asked }
    }
}

impl Measured {
    /// Has every estimate say how far the clocks may differ, where that is known.
    fn note_clock_error(&mut self) {
        let bound = self.clock.and_then(|clock| clock.error_bound);
        for concluded in &mut self.concluded {
            for estimate in &mut concluded.estimates {
                estimate.evidence.clock_error = estimate.evidence.clock_error.or(bound);
            }
        }
    }
}

/// Everything about one pair of captures.
pub(crate) struct PairMeasured {
    /// The segment as asked for, and with both directions its opposite.
    pub(crate) segments: Vec<Measured>,
    /// Whether a part of the input was unusable.
    pub(crate) partial: bool,
}

/// The two files of a segment.
#[derive(Clone, Copy)]
pub(crate) struct Files<'a> {
    pub(crate) upstream: &'a Path,
    pub(crate) downstream: &'a Path,
}

impl Files<'_> {
    fn swapped(self) -> Self {
        Self { upstream: self.downstream, downstream: self.upstream }
    }
}

impl Plan<'_> {
    /// What the algorithms read, all together.
    pub(crate) fn needs(&self) -> Needs {
        let flows = Needs { flow: true, detail: true, ..Needs::default() };
        let noted = self.notes_flows().then_some(flows);
        let needs = self.algorithms.iter().map(|chosen| chosen.prototype.needs());
        needs.chain(noted).fold(Needs::default(), Needs::or)
    }

    /// What each point keeps.
    pub(crate) fn prototypes(&self) -> Vec<&dyn AnySynopsis> {
        self.algorithms.iter().map(|chosen| chosen.prototype.as_ref()).collect()
    }

    /// The classes that have meters of their own.
    pub(crate) fn class_names(&self, observer: &Observer) -> Vec<String> {
        match self.split {
            Split::Class => observer.class_names().map(str::to_owned).collect(),
            Split::By(_) => Vec::new(),
        }
    }

    /// How an algorithm's estimates are split up: not at all, if it cannot tell flows apart.
    pub(crate) fn by(&self, chosen: &Chosen) -> By {
        if chosen.algorithm.per_flow { self.split.by() } else { By::All }
    }

    /// Whether the flows that pass are to be noted.
    pub(crate) fn notes_flows(&self) -> bool {
        self.flows.is_all() && self.algorithms.iter().any(|chosen| self.asks_for_flows(chosen))
    }

    /// Whether an algorithm must be told which flows there are.
    pub(crate) fn asks_for_flows(&self, chosen: &Chosen) -> bool {
        let told = self.flows.is_heavy() || chosen.prototype.flow_names() == FlowNames::All;
        self.by(chosen) != By::All && !told
    }

    /// Refuses flows that no synopsis can name.
    pub(crate) fn check_flows(&self) -> anyhow::Result<()> {
        let nameless = |chosen: &&Chosen| {
            self.by(chosen) != By::All && chosen.prototype.flow_names() == FlowNames::None
        };
        if self.flows.is_heavy()
            && let Some(chosen) = self.algorithms.iter().find(nameless)
        {
            let name = chosen.algorithm.name;
            return Err(usage(format!(
                "{name} keeps no table of large flows: give it one with --heavy-entries N, where \
                 it can have one"
            )));
        }
        if self.traffic.is_weighed() && !self.flows.has_classes() {
            return Err(usage(
                "with --weights, the file of flows needs a column `class`: the number of the rule \
                 that each flow matches",
            ));
        }
        Ok(())
    }

    /// Refuses what an algorithm cannot answer.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        let per_flow = self.split.by() != By::All;
        match self.algorithms.iter().find(|chosen| per_flow && !chosen.algorithm.per_flow) {
            Some(chosen) => Err(usage(format!(
                "{} does not tell flows apart: use --by all or --by class, or another algorithm",
                chosen.algorithm.name
            ))),
            None => self.check_flows(),
        }
    }
}

impl Plan<'_> {
    /// Refuses what a recording cannot answer.
    pub(crate) fn check_recorded(&self, first: &Sealed) -> anyhow::Result<()> {
        let name = first.synopsis.name();
        if self.notes_flows() {
            return Err(usage(match first.synopsis.flow_names() {
                FlowNames::None => format!(
                    "{name} keeps no flow keys, so a recording cannot name flows: \
                     give --flow or --flows FILE"
                ),
                _ => format!(
                    "{name} keeps the keys of large flows only: \
                     give --flows heavy, --flow or --flows FILE"
                ),
            }));
        }
        let asks_by_hash = self.algorithms.iter().any(|chosen| self.asks_for_flows(chosen));
        let digest = self.digest.digester(self.digest.recognition()).identity();
        let same = (digest.hash, digest.key_id) == (first.digest.hash, first.digest.key_id);
        if asks_by_hash && !same {
            return Err(usage(format!(
                "it was recorded with another key or hash ({}): give the same --key and --hash, \
                 or no flow will be recognised",
                first.digest
            )));
        }
        Ok(())
    }
}

/// The names of the points within the program; users see those of their files.
pub(crate) fn segment() -> Segment {
    let point = |name: &str| PointId(name.to_owned());
    Segment { upstream: point("upstream"), downstream: point("downstream") }
}

/// Measures two captures in two reads each.
pub(crate) fn two_reads(
    plan: &Plan<'_>,
    files: Files<'_>,
    both: bool,
) -> anyhow::Result<PairMeasured> {
    let (up, down) = first_read::survey(plan, files)?;
    let comparison = match plan.traffic.toward {
        Some(_) => compare_told(&up.noted.survey, &down.noted.survey),
        None => compare(&up.noted.survey, &down.noted.survey),
    };
    let comparison = comparison.ok_or_else(|| nothing_in_common(files, &up, &down))?;
    let plan = &plan.with_sample(Some(shorter(&comparison)))?;
    let mut partial = up.noted.headers_cut > 0 || down.noted.headers_cut > 0;
    let mut segments = Vec::new();
    for (opposite, files, comparison) in directions(files, comparison, both)? {
        let (measured, unusable) = second_read::measure(plan, files, &comparison, up.recognition)?;
        partial |= unusable;
        segments.push(Measured { opposite, ..measured });
    }
    Ok(PairMeasured { segments, partial })
}

/// Measures two captures in one read each: the user has said which packets go downstream, and
/// the captures are taken to cover the same stretch.
pub(crate) fn one_read(plan: &Plan<'_>, files: Files<'_>) -> anyhow::Result<PairMeasured> {
    let plan = &plan.with_sample(None)?;
    let (measured, partial) = second_read::measure_all(plan, files)?;
    Ok(PairMeasured { segments: vec![measured], partial })
}

/// How long the shorter capture lasts: about as long as what they have in common.
fn shorter(comparison: &Comparison) -> i64 {
    let frames = [comparison.upstream_frames, comparison.downstream_frames];
    let lengths = frames.map(|span| (span.end - span.start).as_nanos());
    lengths.into_iter().min().unwrap_or(0).max(1_000_000_000)
}

fn directions<'a>(
    files: Files<'a>,
    comparison: Comparison,
    both: bool,
) -> anyhow::Result<Vec<(bool, Files<'a>, Comparison)>> {
    let opposite = both.then(|| (true, files.swapped(), comparison.opposite()));
    let asked = [Some((false, files, comparison)), opposite].into_iter().flatten();
    let (found, missing): (Vec<_>, Vec<_>) =
        asked.partition(|(_, _, comparison)| comparison.downstream_delays.is_some());
    for (_, files, _) in &missing {
        let (from, to) = (files.upstream.display(), files.downstream.display());
        note(format_args!("no packet that both captures hold goes from {from} to {to}"));
    }
    if found.is_empty() {
        return Err(no_answer(
            "every packet in common goes the other way: swap the two captures, or use --both",
        ));
    }
    Ok(found)
}

fn nothing_in_common(files: Files<'_>, up: &Surveyed, down: &Surveyed) -> anyhow::Error {
    for (path, surveyed) in [(files.upstream, up), (files.downstream, down)] {
        if surveyed.packets == 0 {
            let reasons: Vec<String> = surveyed
                .skipped
                .iter()
                .map(|(skip, count)| format!("{} {count}", skip.name()))
                .collect();
            let why = match reasons.as_slice() {
                [] => "it holds no packets at all".to_owned(),
                reasons => format!("everything was skipped: {}", reasons.join(", ")),
            };
            return no_answer(format!("{}: nothing to measure, {why}", path.display()));
        }
    }
    no_answer(
        "the two captures have no packet in common: were they taken on the same path at the same \
         time? If addresses are translated between them, try --digest nat; if one is cut to \
         headers, --digest headers",
    )
}

/// Measures two epoch files. The files say by which algorithm, so the plan is made from them.
pub(crate) fn epoch_files<'a>(
    files: Files<'_>,
    plan: impl FnOnce(&Sealed) -> anyhow::Result<Plan<'a>>,
) -> anyhow::Result<(Plan<'a>, PairMeasured)> {
    let (upstream, up_partial) = read_all(files.upstream)?;
    let (downstream, down_partial) = read_all(files.downstream)?;
    let plan = plan(&upstream[0])?;
    let measured = recorded::pair_files(&plan, upstream, downstream);
    Ok((plan, PairMeasured { segments: vec![measured], partial: up_partial | down_partial }))
}

fn read_all(path: &Path) -> anyhow::Result<(Vec<Sealed>, bool)> {
    let mut epochs = Vec::new();
    let partial = input::read_epochs(path, |sealed| epochs.push(sealed))?;
    match epochs.is_empty() {
        true => Err(no_answer(format!("{}: there are no epochs in it", path.display()))),
        false => Ok((epochs, partial)),
    }
}

/// Half the width of the zone around epochs' boundaries: beyond any delay that the survey saw.
fn guard(comparison: &Comparison) -> Delay {
    const LEAST: Delay = Delay::from_nanos(10_000_000);
    let range = comparison.downstream_delays.map_or(Delay::ZERO, |range| range.max - range.min);
    range + range + LEAST
}

/// How directions were decided. Where the user said so, no flow is in doubt.
fn direction_of(comparison: &Comparison) -> DirectionFound {
    DirectionFound {
        decided_by: Method::name(comparison.decided_by),
        unknown_flows: match comparison.decided_by {
            Method::Told => 0,
            _ => comparison.unknown_flows(),
        },
    }
}

/// The edges of the common stretch, or why there is none.
fn edges(comparison: &Comparison) -> anyhow::Result<Edges> {
    Edges::new(comparison)
        .ok_or_else(|| no_answer("the two captures have no stretch of time in common"))
}

//! From two captures, or two epoch files, to estimates.

use std::path::Path;

use twixt_measure::Sealed;
use twixt_measure::clock::ClockReport;
use twixt_measure::survey::{Comparison, Method, PointSurvey, compare, compare_specified};
use twixt_model::Unobserved;
use twixt_wire::Skip;

use crate::epoch_file::read_epochs;
use crate::error::OfflineError;
use crate::first_read::{Surveyed, survey};
use crate::measured::{Files, Measured, PairMeasured};
use crate::plan::Plan;
use crate::recorded::pair_files;
use crate::report::{Remark, Reporter};
use crate::second_read::{self, Compared};
use crate::spill::{MEMORY_BYTES, TemporaryFiles, UntilFailure};

/// Measures two captures in two reads each, of which the second is of memory where possible; in both
/// directions if asked to.
///
/// # Errors
/// When they cannot be read, or have nothing to compare.
pub fn two_reads(
    plan: &Plan,
    files: Files<'_>,
    both: bool,
    reporter: &dyn Reporter,
) -> Result<PairMeasured, OfflineError> {
    two_reads_within(MEMORY_BYTES, plan, files, both, reporter)
}

/// The same, where packets of a point that take more memory than this lie in temporary files.
///
/// # Errors
/// As [`two_reads`].
pub fn two_reads_within(
    memory_bytes: usize,
    plan: &Plan,
    files: Files<'_>,
    both: bool,
    reporter: &dyn Reporter,
) -> Result<PairMeasured, OfflineError> {
    let (up, down) = survey(plan, files, reporter)?;
    let comparison = match plan.traffic.toward {
        Some(_) => compare_specified(&up.noted.survey, &down.noted.survey),
        None => compare(&up.noted.survey, &down.noted.survey),
    };
    let mut comparison = comparison.ok_or_else(|| nothing_in_common(files, &up, &down))?;
    let all = all_traffic(&comparison, &up, &down, reporter);
    all.iter().for_each(|all| comparison.learn_clocks(all));
    let temporary = &TemporaryFiles::beyond(memory_bytes);
    let plan = plan.with_epochs(&comparison).with_sample(Some(shorter(&comparison)))?;
    let (plan, until_failure) = (&plan.with_files(temporary), UntilFailure { reporter, temporary });
    let mut partial = up.is_cut_in_headers() || down.is_cut_in_headers();
    let mut segments = Vec::new();
    // One report for both: what is taken out of one direction is put into the other.
    let clocks = all.as_ref().and_then(Comparison::clocks).or_else(|| comparison.clocks());
    for (opposite, files, comparison) in directions(files, comparison, both, reporter)? {
        let turned = || clocks.as_ref().map(ClockReport::turned).or_else(|| comparison.clocks());
        let clocks = if opposite { turned() } else { clocks.clone() };
        if comparison.is_outage() {
            let Files { upstream, downstream } = files;
            let (upstream, downstream) = (upstream.to_owned(), downstream.to_owned());
            reporter.remark(Remark::Outage { upstream, downstream });
        }
        let (sent, received) = if opposite { (&down, &up) } else { (&up, &down) };
        findings(files, &comparison, [&sent.noted.survey, &received.noted.survey])
            .into_iter()
            .for_each(|remark| reporter.remark(remark));
        let compared = Compared {
            comparison: &comparison,
            clocks: clocks.as_ref(),
            recognition: up.recognition,
            cuts: up.cuts.as_ref(),
            dropped: Unobserved { upstream: sent.dropped(), downstream: received.dropped() },
            surveys: [&sent.noted.survey, &received.noted.survey],
            recalled: [sent.recalled(), received.recalled()],
        };
        let measured = second_read::measure(plan, files, compared, &until_failure);
        temporary.check()?;
        let (measured, unusable) = measured?;
        partial |= unusable;
        segments.push(Measured { opposite, ..measured });
        if reporter.is_enough() {
            break;
        }
    }
    Ok(PairMeasured { segments, partial })
}

/// Measures two captures in one read each: it is known which packets go downstream, and the captures
/// are taken to cover the same time.
///
/// # Errors
/// When they cannot be read.
pub fn one_read(
    plan: &Plan,
    files: Files<'_>,
    reporter: &dyn Reporter,
) -> Result<PairMeasured, OfflineError> {
    let temporary = &TemporaryFiles::beyond(MEMORY_BYTES);
    let plan = &plan.with_sample(None)?.with_files(temporary);
    let until_failure = UntilFailure { reporter, temporary };
    let measured = second_read::measure_all(plan, files, &until_failure);
    temporary.check()?;
    let (measured, partial) = measured?;
    Ok(PairMeasured { segments: vec![measured], partial })
}

/// Measures two epoch files. The files say by which algorithm, so the plan is made from the first
/// epoch.
///
/// # Errors
/// When they cannot be read, or the plan cannot be made.
pub fn epoch_files<E: From<OfflineError>>(
    files: Files<'_>,
    reporter: &dyn Reporter,
    plan: impl FnOnce(&Sealed) -> Result<Plan, E>,
) -> Result<(Plan, PairMeasured), E> {
    let (upstream, up_partial) = read_all(files.upstream, reporter)?;
    let (downstream, down_partial) = read_all(files.downstream, reporter)?;
    let plan = plan(&upstream[0])?;
    let measured = pair_files(&plan, upstream, downstream);
    Ok((plan, PairMeasured { segments: vec![measured], partial: up_partial | down_partial }))
}

/// What all packets tell of the clocks, where only some are measured, if that does not contradict the
/// user's choice of what goes downstream.
fn all_traffic(
    comparison: &Comparison,
    up: &Surveyed,
    down: &Surveyed,
    reporter: &dyn Reporter,
) -> Option<Comparison> {
    let all = compare(up.all.as_ref()?, down.all.as_ref()?)?;
    let flows = comparison.contradicted_by(&all);
    // Signs of delays tell nothing where clocks may differ.
    if flows > 0 && matches!(all.decided_by, Method::Ttl | Method::Metadata) {
        reporter.remark(Remark::TowardContradicted { flows, by: all.decided_by });
    }
    (flows == 0).then_some(all)
}

/// What is peculiar to the two captures.
fn findings(
    Files { upstream, downstream }: Files<'_>,
    comparison: &Comparison,
    [sent, received]: [&PointSurvey; 2],
) -> Vec<Remark> {
    let (upstream, downstream) = (upstream.to_owned(), downstream.to_owned());
    let same = comparison.is_of_one_capture();
    let same = same.then_some(Remark::SameCapture { upstream, downstream });
    let (flows, of) = comparison.unseen_flows(sent, received);
    let is_outage = comparison.is_outage();
    let unseen = (flows > 0 && !is_outage).then_some(Remark::FlowsUnseen { flows, of });
    same.into_iter().chain(unseen).collect()
}

/// How long the shorter capture lasts: about as long as their overlap.
fn shorter(comparison: &Comparison) -> i64 {
    const LEAST_NS: i64 = 1_000_000_000;
    let frames = [comparison.upstream_frames, comparison.downstream_frames];
    let lengths = frames.map(|span| (span.end - span.start).as_nanos());
    lengths.into_iter().min().unwrap_or(0).max(LEAST_NS)
}

fn directions<'a>(
    files: Files<'a>,
    comparison: Comparison,
    both: bool,
    reporter: &dyn Reporter,
) -> Result<Vec<(bool, Files<'a>, Comparison)>, OfflineError> {
    let opposite = both.then(|| (true, files.swapped(), comparison.opposite()));
    let asked = [Some((false, files, comparison)), opposite].into_iter().flatten();
    let (found, missing): (Vec<_>, Vec<_>) =
        asked.partition(|(_, _, comparison)| comparison.expected_delays().is_some());
    if found.is_empty() && missing.iter().any(|(_, _, comparison)| comparison.is_all_alike()) {
        return Err(OfflineError::AllAlike);
    }
    for (_, Files { upstream, downstream }, _) in missing {
        let (upstream, downstream) = (upstream.to_owned(), downstream.to_owned());
        reporter.remark(Remark::NothingGoes { upstream, downstream });
    }
    if found.is_empty() { Err(OfflineError::OtherWayOnly) } else { Ok(found) }
}

fn nothing_in_common(files: Files<'_>, up: &Surveyed, down: &Surveyed) -> OfflineError {
    let empty = [(files.upstream, up), (files.downstream, down)]
        .into_iter()
        .find(|(_, surveyed)| surveyed.packets == 0);
    let Some((path, surveyed)) = empty else { return OfflineError::NothingInCommon };
    let mut reasons = surveyed.skipped.iter().filter(|(_, count)| *count > 0);
    let is_elsewhen = reasons.all(|(skip, _)| skip == Skip::OutsideStretch);
    let skipped = surveyed.skipped.iter().map(|(skip, count)| format!("{} {count}", skip.name()));
    let why = match skipped.collect::<Vec<_>>().as_slice() {
        [] => "it has no packets".to_owned(),
        // Nothing but --start and --end leaves frames out before anything is compared.
        [_] if is_elsewhen => "it has no packets between --start and --end".to_owned(),
        reasons => format!("everything was skipped: {}", reasons.join(", ")),
    };
    OfflineError::NothingToMeasure { path: path.to_owned(), why }
}

fn read_all(path: &Path, reporter: &dyn Reporter) -> Result<(Vec<Sealed>, bool), OfflineError> {
    let mut epochs = Vec::new();
    let partial = read_epochs(path, reporter, |sealed| epochs.push(sealed))?;
    match epochs.is_empty() {
        true => Err(OfflineError::NoEpochs { path: path.to_owned() }),
        false => Ok((epochs, partial)),
    }
}

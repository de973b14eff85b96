//! From two captures, or two epoch files, to estimates.

use std::path::Path;

use twixt_measure::Sealed;
use twixt_measure::clock::ClockReport;
use twixt_measure::survey::{Comparison, compare, compare_specified};
use twixt_model::Unobserved;

use crate::epoch_file::read_epochs;
use crate::error::OfflineError;
use crate::first_read::{Surveyed, survey};
use crate::measured::{Files, Measured, PairMeasured};
use crate::plan::Plan;
use crate::recorded::pair_files;
use crate::report::{Remark, Reporter};
use crate::second_read::{self, Compared};

/// Measures two captures in two reads each; in both directions if asked to.
///
/// # Errors
/// When they cannot be read, or have nothing to compare.
pub fn two_reads(
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
    let comparison = comparison.ok_or_else(|| nothing_in_common(files, &up, &down))?;
    let plan = &plan.with_sample(Some(shorter(&comparison)))?;
    let mut partial = up.noted.headers_cut > 0 || down.noted.headers_cut > 0;
    let mut segments = Vec::new();
    // One report for both: what is taken out of one direction is put into the other.
    let clocks = comparison.clocks();
    for (opposite, files, comparison) in directions(files, comparison, both, reporter)? {
        let turned = || clocks.as_ref().map(ClockReport::turned).or_else(|| comparison.clocks());
        let clocks = if opposite { turned() } else { clocks.clone() };
        if comparison.is_outage() {
            let Files { upstream, downstream } = files;
            let (upstream, downstream) = (upstream.to_owned(), downstream.to_owned());
            reporter.remark(Remark::Outage { upstream, downstream });
        }
        let (sent, received) = if opposite { (&down, &up) } else { (&up, &down) };
        let compared = Compared {
            comparison: &comparison,
            clocks: clocks.as_ref(),
            recognition: up.recognition,
            dropped: Unobserved { upstream: sent.dropped(), downstream: received.dropped() },
            surveys: [&sent.noted.survey, &received.noted.survey],
        };
        let (measured, unusable) = second_read::measure(plan, files, compared, reporter)?;
        partial |= unusable;
        segments.push(Measured { opposite, ..measured });
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
    let plan = &plan.with_sample(None)?;
    let (measured, partial) = second_read::measure_all(plan, files, reporter)?;
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
    let skipped = surveyed.skipped.iter().map(|(skip, count)| format!("{} {count}", skip.name()));
    let why = match skipped.collect::<Vec<_>>().as_slice() {
        [] => "it has no packets".to_owned(),
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

//! The second read of two captures: what both saw is measured.
//!
//! A clock that was set cuts the captures in parts, which are read one after the other.

use std::sync::Arc;

use twixt_measure::OPEN_EPOCHS_MAX;
use twixt_measure::clock::ClockReport;
use twixt_measure::survey::{
    Comparison, DelayRange, Disorder, Ends, Method, PointSurvey, heartbeats, stray_cause,
};
use twixt_model::{Delay, EpochRule, Side, Unobserved};
use twixt_observe::LATENESS;
use twixt_synopsis::Heartbeats;
use twixt_wire::Cuts;

use crate::capture::dropped_in;
use crate::correction::{clock_of, correction};
use crate::epochs::{Late, Spread};
use crate::error::OfflineError;
use crate::measured::{DirectionFound, Files, Measured};
use crate::pairs::{Concluded, Pairs};
use crate::parts::{Part, Together, parts};
use crate::plan::{Plan, Recognition};
use crate::reading::{Boundaries, CaptureReading};
use crate::recollection::Recalled;
use crate::report::{Pass, Remark, Reporter};
use crate::selection::Excerpt;
use crate::side_by_side::{Manner, read_both, read_part};
use crate::stamps::Stamps;

/// What the first read found.
#[derive(Clone, Copy)]
pub(crate) struct Compared<'a> {
    pub(crate) comparison: &'a Comparison,
    /// What packets of both directions together tell of the clocks.
    pub(crate) clocks: Option<&'a ClockReport>,
    pub(crate) recognition: Recognition,
    pub(crate) cuts: Option<&'a Arc<Cuts>>,
    /// Frames that each capture says were dropped.
    pub(crate) dropped: Unobserved,
    /// What was noted of upstream, and of downstream.
    pub(crate) surveys: [&'a PointSurvey; 2],
    /// Their packets, where they need not be read again.
    pub(crate) recalled: [Option<Recalled<'a>>; 2],
}

/// Measures the packets that go downstream, in the overlap of both points. Also returns whether
/// a part of the input was unusable.
pub(crate) fn measure(
    plan: &Plan,
    files: Files<'_>,
    surveyed: Compared<'_>,
    reporter: &dyn Reporter,
) -> Result<(Measured, bool), OfflineError> {
    let Compared { comparison, clocks, surveys, .. } = surveyed;
    let correction = correction(plan, clocks, comparison, reporter);
    let rule = plan.rule_of_meters();
    let (parts, together) = parts(rule, comparison, clocks, correction.as_ref())?;
    let (measured, partial) = match together {
        Together::Whole => measure_as_one(plan, files, surveyed, &parts, reporter)?,
        Together::AddedUp => add_up(plan, files, surveyed, &parts, reporter)?,
    };
    let clock = clock_of(comparison, clocks);
    let mut measured = Measured {
        clock,
        clocks: clocks.cloned(),
        corrected: correction.is_some(),
        negative_delays: comparison.negative_delays,
        ..measured
    };
    measured.note_clock_error();
    if plan.rule != EpochRule::WHOLE {
        measured.concluded.iter_mut().for_each(Concluded::add_up);
    }
    measured.note_stray_cause(plan, || {
        parts.iter().find_map(|part| stray_cause(comparison, &part.edges, surveys))
    });
    Ok((measured, partial))
}

/// Measures each part for itself, and adds up.
fn add_up(
    plan: &Plan,
    files: Files<'_>,
    surveyed: Compared<'_>,
    parts: &[Part],
    reporter: &dyn Reporter,
) -> Result<(Measured, bool), OfflineError> {
    let mut all: Option<(Measured, bool)> = None;
    for part in parts.chunks(1) {
        let (measured, partial) = measure_as_one(plan, files, surveyed, part, reporter)?;
        match &mut all {
            Some((sum, any)) => {
                sum.add(measured, plan.rule);
                *any |= partial;
            }
            None => all = Some((measured, partial)),
        }
    }
    all.ok_or(OfflineError::NoOverlap)
}

/// Measures parts of the captures one after the other, with the same meters.
fn measure_as_one<'a>(
    plan: &Plan,
    files: Files<'_>,
    surveyed: Compared<'a>,
    parts: &'a [Part],
    reporter: &dyn Reporter,
) -> Result<(Measured, bool), OfflineError> {
    Spread::of(parts).check(plan.rule_of_meters())?;
    let delays = delays_of(surveyed.comparison, parts);
    let (mut up, mut down) = open(plan, files, surveyed, parts, delays, reporter)?;
    let heartbeats = heartbeats_of(plan, surveyed, parts);
    let digester = up.path.observer().digester();
    let mut pairs = Pairs::of_captures(plan, digester, delays.median, &heartbeats);
    for (number, part) in parts.iter().enumerate() {
        let [upstream, downstream] = surveyed.excerpts(plan, part);
        if number > 0 {
            up = up.going_on(plan, files, upstream)?;
            down = down.going_on(plan, files, downstream)?;
        }
        up.path.sink_mut().jumps = part.jumps;
        let sink = down.path.sink_mut();
        sink.jumps = part.jumps;
        let usual = delays_of(surveyed.comparison, std::slice::from_ref(part));
        sink.stamps = match surveyed.recalled(parts)[0] {
            Some(recalled) => recalled_stamps(plan, recalled, upstream, usual, reporter),
            None => stamps(plan, files, upstream, Some(usual), reporter)?,
        };
        // The clock is put right; which packets count is decided by what it showed.
        sink.correction = part.correction.clone();
        read_part(part, &mut pairs, &mut up, &mut down, reporter);
        if let Some(shortened) = part.shortened.get() {
            reporter.remark(Remark::EndedByRequest(shortened.last(Side::Upstream)));
            break;
        }
    }
    let refused = up.path.sink().held_refused + down.path.sink().held_refused;
    if refused > 0 {
        reporter.remark(Remark::HeldRefused(refused));
    }
    let direction = direction_of(surveyed.comparison);
    let (mut measured, partial) = conclude(plan, pairs, up, down, direction, reporter);
    measured.note_late(plan, &Late::of(plan, surveyed.comparison, parts, delays.min));
    Ok((measured, partial))
}

/// Identical packets that may have been in flight at ends of these parts, or of their epochs.
fn heartbeats_of(plan: &Plan, surveyed: Compared<'_>, parts: &[Part]) -> Arc<[Heartbeats]> {
    let Compared { comparison, surveys, .. } = surveyed;
    // Whoever matches packets has their times.
    if plan.algorithms.iter().all(|chosen| chosen.algorithm.matches_packets()) {
        return Arc::default();
    }
    let is_whole = plan.rule_of_meters() == EpochRule::WHOLE;
    let ends = if is_whole { Ends::Overlap } else { Ends::Epochs };
    parts.iter().flat_map(|part| heartbeats(comparison, &part.edges, surveys, ends)).collect()
}

impl<'a> Compared<'a> {
    /// What was kept of both captures. Across steps of a clock times of frames that are no packets count
    /// too, and each part is a read of its own.
    fn recalled(&self, parts: &[Part]) -> [Option<Recalled<'a>>; 2] {
        self.recalled.map(|recalled| recalled.filter(|_| parts.len() == 1 && !parts[0].jumps))
    }

    /// Which packets of both ends count in a part.
    fn excerpts(&self, plan: &Plan, part: &'a Part) -> [Excerpt<'a>; 2] {
        let Self { comparison, recognition, cuts, .. } = *self;
        let excerpt = |side, verdicts| Excerpt {
            side,
            recognition,
            cuts,
            // If the user specified what goes downstream, nothing else decides.
            verdicts: plan.traffic.toward.is_none().then_some(verdicts),
            edges: Some(&part.edges),
        };
        [
            excerpt(Side::Upstream, &comparison.upstream),
            excerpt(Side::Downstream, &comparison.downstream),
        ]
    }
}

/// Opens both captures for the first part, with meters for all of them.
fn open<'a>(
    plan: &Plan,
    files: Files<'_>,
    surveyed: Compared<'a>,
    parts: &'a [Part],
    delays: DelayRange,
    reporter: &dyn Reporter,
) -> Result<(CaptureReading<'a>, CaptureReading<'a>), OfflineError> {
    let Compared { dropped, surveys, .. } = surveyed;
    // How far frames are from being in order of time.
    let disorder = surveys.map(PointSurvey::disorder);
    let [upstream, downstream] = surveyed.excerpts(plan, &parts[0]);
    let rule = plan.rule_of_meters();
    let guard = Some(Spread::of(parts).guard(rule));
    let [up_lateness, down_lateness] = disorder.map(|disorder| lateness(rule, disorder));
    let up_boundaries = Boundaries { shift: Delay::ZERO, guard, lateness: up_lateness };
    let [sent, received] = surveyed.recalled(parts);
    let mut up = CaptureReading::new(plan, files, upstream, up_boundaries)?.recalling(plan, sent);
    // The downstream clock is taken to be ahead by the smallest delay, for cutting epochs only:
    // so its epochs line up, and the fewest packets are in flight at a boundary.
    let down_boundaries = Boundaries { shift: delays.min, guard, lateness: down_lateness };
    let down = CaptureReading::new(plan, files, downstream, down_boundaries)?;
    let mut down = down.recalling(plan, received);
    up.expect_dropped(dropped.upstream);
    down.expect_dropped(dropped.downstream);
    up.expect_disorder(disorder[0].back_max);
    down.expect_disorder(disorder[1].back_max);
    // Times that jump with a clock are in order within each part.
    if rule != EpochRule::WHOLE && !parts[0].jumps {
        up.expect_late(disorder[0].beyond(up_lateness), disorder[0].back_max, reporter);
        down.expect_late(disorder[1].beyond(down_lateness), disorder[1].back_max, reporter);
    }
    Ok((up, down))
}

/// Delays as they will be measured.
fn delays_of(comparison: &Comparison, parts: &[Part]) -> DelayRange {
    let corrected = parts[0].correction.as_ref().and_then(|right| right.delays(comparison));
    corrected.unwrap_or(parts[0].overlap.delays)
}

/// When packets were sent, if an algorithm wants to know: that takes a read of its own.
fn stamps(
    plan: &Plan,
    files: Files<'_>,
    upstream: Excerpt<'_>,
    usual: Option<DelayRange>,
    reporter: &dyn Reporter,
) -> Result<Option<Stamps>, OfflineError> {
    match plan.algorithms.iter().any(|chosen| chosen.prototype.reads_stamps()) {
        true => upstream.stamps(plan, files, usual, reporter).map(Some),
        false => Ok(None),
    }
}

/// The same by what was kept of the packets.
fn recalled_stamps(
    plan: &Plan,
    recalled: Recalled<'_>,
    upstream: Excerpt<'_>,
    usual: DelayRange,
    reporter: &dyn Reporter,
) -> Option<Stamps> {
    let is_asked = plan.algorithms.iter().any(|chosen| chosen.prototype.reads_stamps());
    is_asked.then(|| {
        let stamps = recalled.stamps(plan, &upstream).sorted(Some((usual.min, usual.max)));
        stamps.report_refused(reporter);
        stamps
    })
}

/// Why loss is not known of captures that were read once, and not to their ends.
const UNEQUAL_ENDS: &str = "interrupted: what was not read of one capture cannot be distinguished from \
                            lost packets of the other";

/// Measures every packet that the user selected.
pub(crate) fn measure_all(
    plan: &Plan,
    files: Files<'_>,
    reporter: &dyn Reporter,
) -> Result<(Measured, bool), OfflineError> {
    let recognition = plan.digest.recognition;
    let excerpt = |side| Excerpt { side, recognition, cuts: None, verdicts: None, edges: None };
    let upstream = excerpt(Side::Upstream);
    let mut up = CaptureReading::new(plan, files, upstream, Boundaries::default())?;
    let stamps = stamps(plan, files, upstream, None, reporter)?;
    let downstream = excerpt(Side::Downstream);
    let mut down = CaptureReading::new(plan, files, downstream, Boundaries::default())?;
    down.path.sink_mut().stamps = stamps;
    // One epoch ends after all is known.
    if plan.rule_of_meters() != EpochRule::WHOLE {
        up.expect_dropped(dropped_in(files.upstream)?);
        down.expect_dropped(dropped_in(files.downstream)?);
    }
    let progress =
        reporter.progress(Pass::Only, up.capture.size_bytes() + down.capture.size_bytes());
    // The first packets give a rough idea of the delay, clock offset included.
    up.read_batch(progress.as_ref());
    down.read_batch(progress.as_ref());
    let reference = match (up.path.sink().first, down.path.sink().first) {
        (Some(sent), Some(received)) => received - sent,
        _ => Delay::ZERO,
    };
    let digester = up.path.observer().digester();
    let mut pairs = Pairs::of_captures(plan, digester, reference, &Arc::default());
    let manner = Manner { progress: progress.as_ref(), reporter, shortening: None };
    read_both(&mut pairs, &mut up, &mut down, &manner);
    drop(progress);
    let decided_by = if plan.traffic.toward.is_some() { "toward" } else { "filter" };
    let direction = DirectionFound { decided_by, unknown_flows: 0 };
    for reading in [&up, &down] {
        reading.capture.ended_early().into_iter().for_each(|remark| reporter.remark(remark));
    }
    let (mut measured, partial) = conclude(plan, pairs, up, down, direction, reporter);
    if reporter.is_enough() {
        measured.concluded.iter_mut().flat_map(Concluded::all_mut).for_each(|estimate| {
            estimate.forget_loss(UNEQUAL_ENDS);
        });
    }
    if plan.rule != EpochRule::WHOLE {
        measured.concluded.iter_mut().for_each(Concluded::add_up);
    }
    Ok((measured, partial))
}

fn conclude(
    plan: &Plan,
    mut pairs: Pairs,
    up: CaptureReading<'_>,
    down: CaptureReading<'_>,
    direction: DirectionFound,
    reporter: &dyn Reporter,
) -> (Measured, bool) {
    let partial = up.ended_early() || down.ended_early();
    let (upstream, mut sealed) = up.finish(reporter);
    let (downstream, more) = down.finish(reporter);
    // In the order of their epochs, so that none waits for many of the other point's.
    sealed.extend(more);
    sealed.sort_by_key(|sent| sent.sealed.epoch);
    for sent in sealed {
        pairs.receive(sent);
    }
    let concluded = pairs.finish();
    let mut measured = Measured {
        clock: concluded.first().and_then(Concluded::clock),
        clocks: concluded.last().and_then(Concluded::clocks),
        corrected: false,
        beside: None,
        stretch: concluded.first().and_then(|concluded| concluded.span),
        concluded,
        upstream,
        downstream,
        direction,
        negative_delays: 0,
        opposite: false,
    };
    measured.share_sample(plan);
    (measured, partial)
}

/// How long an epoch stays open: until the last of its frames was read, if not too many are open
/// then.
fn lateness(rule: EpochRule, disorder: &Disorder) -> Delay {
    let length_ns = rule.length_ns().unwrap_or(0);
    let most = Delay::from_nanos(length_ns.saturating_mul(OPEN_EPOCHS_MAX - 1));
    LATENESS.max(disorder.back_max.min(most))
}

/// How directions were decided. If the user specified them, no flow is in doubt.
fn direction_of(comparison: &Comparison) -> DirectionFound {
    DirectionFound {
        decided_by: Method::name(comparison.decided_by),
        unknown_flows: match comparison.decided_by {
            Method::Specified => 0,
            _ => comparison.unknown_flows(),
        },
    }
}

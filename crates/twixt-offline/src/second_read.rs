//! The second read of two captures: what both saw is measured.
//!
//! Both captures are read at the same time, each by a thread of its own. Packets near the ends of
//! the overlap are held back until both threads have seen them, and sorted out together.
//! Sealed epochs pass through short queues, so that neither thread runs far ahead.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use twixt_measure::OPEN_EPOCHS_MAX;
use twixt_measure::clock::ClockReport;
use twixt_measure::survey::{
    ClockDifference, Comparison, DelayRange, Disorder, Edges, Method, Place, resolve,
};
use twixt_model::{Delay, Epoch, EpochRule, Observation, Side, Unobserved};
use twixt_observe::LATENESS;

use crate::beside::ClockUse;
use crate::capture::dropped_in;
use crate::correction::Correction;
use crate::error::OfflineError;
use crate::measured::{DirectionFound, Files, Measured, segment};
use crate::pairs::{Concluded, Pairs, Sent};
use crate::plan::{Plan, Recognition};
use crate::reading::{Boundaries, CaptureReading};
use crate::report::{Progress, Remark, Reporter};
use crate::selection::Excerpt;
use crate::stamps::Stamps;

/// What the first read found.
#[derive(Clone, Copy)]
pub(crate) struct Compared<'a> {
    pub(crate) comparison: &'a Comparison,
    pub(crate) recognition: Recognition,
    /// Frames that each capture says were dropped.
    pub(crate) dropped: Unobserved,
    /// How far upstream's frames, and downstream's, are from being in order of time.
    pub(crate) disorder: [&'a Disorder; 2],
}

/// Measures the packets that go downstream, in the overlap of both points. Also returns whether
/// a part of the input was unusable.
pub(crate) fn measure(
    plan: &Plan,
    files: Files<'_>,
    surveyed: Compared<'_>,
    reporter: &dyn Reporter,
) -> Result<(Measured, bool), OfflineError> {
    let Compared { comparison, recognition, dropped, disorder } = surveyed;
    let edges = Edges::new(comparison).ok_or(OfflineError::NoOverlap)?;
    let seen = comparison.expected_delays().expect("directions without packets were left out");
    let clocks = comparison.clocks();
    let correction = correction(plan, clocks.as_ref(), comparison, reporter);
    let corrected = correction.is_some();
    let delays = correction.as_ref().and_then(|right| right.delays(comparison)).unwrap_or(seen);
    let excerpt = |side, verdicts| Excerpt {
        side,
        recognition,
        // If the user specified what goes downstream, nothing else decides.
        verdicts: plan.traffic.toward.is_none().then_some(verdicts),
        edges: Some(&edges),
    };
    let upstream = excerpt(Side::Upstream, &comparison.upstream);
    let downstream = excerpt(Side::Downstream, &comparison.downstream);
    check_epochs(plan, seen)?;
    let guard = Some(guard(comparison));
    // The downstream clock is taken to be ahead by the smallest delay, for cutting epochs only:
    // so its epochs line up, and the fewest packets are in flight at a boundary.
    let [up_lateness, down_lateness] = disorder.map(|disorder| lateness(plan.rule, disorder));
    let up_boundaries = Boundaries { shift: Delay::ZERO, guard, lateness: up_lateness };
    let mut up = CaptureReading::new(plan, files, upstream, up_boundaries)?;
    let stamps = stamps(plan, files, upstream, Some(delays), reporter)?;
    let down_boundaries = Boundaries { shift: delays.min, guard, lateness: down_lateness };
    let mut down = CaptureReading::new(plan, files, downstream, down_boundaries)?;
    down.path.sink_mut().stamps = stamps;
    up.expect_dropped(dropped.upstream);
    down.expect_dropped(dropped.downstream);
    if plan.rule != EpochRule::WHOLE {
        up.expect_late(disorder[0].beyond(up_lateness), disorder[0].back_max, reporter);
        down.expect_late(disorder[1].beyond(down_lateness), disorder[1].back_max, reporter);
    }
    // The clock is put right; which packets count is decided by what it showed.
    down.path.sink_mut().correction = correction;
    let progress = reporter.progress(up.capture.size_bytes() + down.capture.size_bytes());
    let (up_until, down_until) = edges.start_until();
    thread::scope(|scope| {
        scope.spawn(|| down.read_start(down_until, progress.as_ref()));
        up.read_start(up_until, progress.as_ref());
    });
    sort_out(&edges, Place::Start, &mut up, &mut down);
    let mut pairs = Pairs::new(plan, segment(), up.path.observer().digester(), delays.median);
    read_both(&mut pairs, &mut up, &mut down, progress.as_ref());
    sort_out(&edges, Place::End, &mut up, &mut down);
    let refused = up.path.sink().held_refused + down.path.sink().held_refused;
    if refused > 0 {
        reporter.remark(Remark::HeldRefused(refused));
    }
    drop(progress);
    let direction = direction_of(comparison);
    let (measured, partial) = conclude(plan, pairs, up, down, direction, reporter);
    let clock = clocks.as_ref().and_then(drifting_offset).or_else(|| comparison.clock());
    let negative_delays = comparison.negative_delays;
    let mut measured = Measured { clock, clocks, corrected, negative_delays, ..measured };
    measured.note_clock_error();
    Ok((measured, partial))
}

/// What puts the downstream clock right, if it should be and something is known of it.
fn correction(
    plan: &Plan,
    clocks: Option<&ClockReport>,
    comparison: &Comparison,
    reporter: &dyn Reporter,
) -> Option<Correction> {
    if plan.beside.clock == ClockUse::Report {
        return None;
    }
    let correction = Correction::new(clocks, comparison);
    if correction.is_none() {
        reporter.remark(Remark::ClocksUnknown);
    }
    correction
}

/// The offset at the start of the overlap, of clocks that drift apart.
fn drifting_offset(report: &ClockReport) -> Option<ClockDifference> {
    let offset = report.offset?;
    let drifts = report.sure_skew().is_some() || !report.steps.is_empty();
    drifts
        .then_some(ClockDifference { offset: offset.offset, error_bound: Some(offset.error_bound) })
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

/// A packet under way at the end of an epoch is found again in the next one: not if delays differ
/// by more than half an epoch, and then it would look lost.
fn check_epochs(plan: &Plan, delays: DelayRange) -> Result<(), OfflineError> {
    let spread_ns = (delays.max - delays.min).as_nanos();
    match plan.rule.length_ns() {
        Some(length_ns) if length_ns / 2 <= spread_ns => {
            Err(OfflineError::EpochsTooShort { length_ns, spread_ns })
        }
        _ => Ok(()),
    }
}

/// Measures every packet that the user selected.
pub(crate) fn measure_all(
    plan: &Plan,
    files: Files<'_>,
    reporter: &dyn Reporter,
) -> Result<(Measured, bool), OfflineError> {
    let recognition = plan.digest.recognition;
    let excerpt = |side| Excerpt { side, recognition, verdicts: None, edges: None };
    let upstream = excerpt(Side::Upstream);
    let mut up = CaptureReading::new(plan, files, upstream, Boundaries::default())?;
    let stamps = stamps(plan, files, upstream, None, reporter)?;
    let downstream = excerpt(Side::Downstream);
    let mut down = CaptureReading::new(plan, files, downstream, Boundaries::default())?;
    down.path.sink_mut().stamps = stamps;
    // One epoch ends after all is known.
    if plan.rule != EpochRule::WHOLE {
        up.expect_dropped(dropped_in(files.upstream)?);
        down.expect_dropped(dropped_in(files.downstream)?);
    }
    let progress = reporter.progress(up.capture.size_bytes() + down.capture.size_bytes());
    // The first packets give a rough idea of the delay, clock offset included.
    up.read_batch(progress.as_ref());
    down.read_batch(progress.as_ref());
    let reference = match (up.path.sink().first, down.path.sink().first) {
        (Some(sent), Some(received)) => received - sent,
        _ => Delay::ZERO,
    };
    let mut pairs = Pairs::new(plan, segment(), up.path.observer().digester(), reference);
    read_both(&mut pairs, &mut up, &mut down, progress.as_ref());
    drop(progress);
    let decided_by = if plan.traffic.toward.is_some() { "toward" } else { "filter" };
    let direction = DirectionFound { decided_by, unknown_flows: 0 };
    for reading in [&up, &down] {
        reading.capture.ended_early().into_iter().for_each(|remark| reporter.remark(remark));
    }
    Ok(conclude(plan, pairs, up, down, direction, reporter))
}

fn conclude(
    plan: &Plan,
    mut pairs: Pairs,
    up: CaptureReading<'_>,
    down: CaptureReading<'_>,
    direction: DirectionFound,
    reporter: &dyn Reporter,
) -> (Measured, bool) {
    let partial = [&up, &down].iter().any(|reading| reading.capture.ended_early().is_some());
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

/// Decides about the packets held back at one end of the overlap, and measures those that count.
fn sort_out(
    edges: &Edges,
    place: Place,
    up: &mut CaptureReading<'_>,
    down: &mut CaptureReading<'_>,
) {
    let at = |reading: &CaptureReading<'_>| -> Vec<Observation> {
        reading.path.sink().held_at(place).collect()
    };
    let resolved = resolve(edges, place, &at(up), &at(down));
    up.release(place, &resolved.upstream);
    down.release(place, &resolved.downstream);
}

/// How long an epoch stays open: until the last of its frames was read, if not too many are open
/// then.
fn lateness(rule: EpochRule, disorder: &Disorder) -> Delay {
    let length_ns = rule.length_ns().unwrap_or(0);
    let most = Delay::from_nanos(length_ns.saturating_mul(OPEN_EPOCHS_MAX - 1));
    LATENESS.max(disorder.back_max.min(most))
}

/// Half the width of the zone around epochs' boundaries: beyond any delay that the survey saw.
fn guard(comparison: &Comparison) -> Delay {
    const LEAST: Delay = Delay::from_nanos(10_000_000);
    let range = comparison.downstream_delays.map_or(Delay::ZERO, |range| range.max - range.min);
    range + range + LEAST
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

/// Sealed epochs that wait for the other point at most.
const QUEUE_MAX: usize = 4;

/// Reads both captures to their ends, and pairs epochs as they are sealed.
fn read_both<'a>(
    pairs: &mut Pairs,
    up: &mut CaptureReading<'a>,
    down: &mut CaptureReading<'a>,
    progress: &dyn Progress,
) {
    thread::scope(|scope| {
        let read = |reading| {
            let (sender, receiver) = sync_channel(QUEUE_MAX);
            scope.spawn(move || read_on(reading, &sender, progress));
            receiver
        };
        let (upstream, downstream) = (read(up), read(down));
        pair_as_they_come(pairs, &[upstream, downstream]);
    });
}

fn read_on(reading: &mut CaptureReading<'_>, sender: &SyncSender<Sent>, progress: &dyn Progress) {
    while reading.read_batch(progress) {
        while let Some(sealed) = reading.path.sink_mut().poll() {
            if sender.send(sealed).is_err() {
                return;
            }
        }
    }
}

/// Always takes from the point that is behind, so that neither waits for many epochs of the other.
fn pair_as_they_come(pairs: &mut Pairs, receivers: &[Receiver<Sent>; 2]) {
    let mut reached = [Some(Epoch(i64::MIN)); 2];
    let behind = |reached: &[Option<Epoch>; 2]| {
        (0..2).filter(|&end| reached[end].is_some()).min_by_key(|&end| reached[end])
    };
    while let Some(end) = behind(&reached) {
        match receivers[end].recv() {
            Ok(sent) => {
                reached[end] = Some(sent.sealed.epoch);
                pairs.receive(sent);
            }
            Err(_) => reached[end] = None,
        }
    }
}

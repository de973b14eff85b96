//! What is known of the clocks of two points, in sentences.

use twixt_measure::clock::{ClockReport, LevelShift, ShiftCause, SkewDoubt};
use twixt_model::Delay;
use twixt_offline::{Files, Measured};

use super::units;

/// Changes of delay that are listed at most.
const SHIFTS_SHOWN: usize = 4;

/// A line for the offset, and one for each further thing that is known, or that cannot be.
pub(crate) fn clock_lines(files: Files<'_>, measured: &Measured) -> String {
    let mut lines = vec![offset(measured)];
    if let Some(clocks) = &measured.clocks {
        lines.extend(drift(clocks, is_one_way(measured)));
        lines.extend(steps(clocks));
        lines.extend(shifts(files, clocks));
    }
    if measured.corrected {
        lines.push("delays are corrected for this".to_owned());
    }
    let mut text = String::new();
    for (number, line) in lines.iter().enumerate() {
        let label = if number == 0 { "clocks" } else { "" };
        text += &format!("{label:<10} {line}\n");
    }
    text
}

/// Whether packets of one direction only were compared.
fn is_one_way(measured: &Measured) -> bool {
    measured
        .clocks
        .as_ref()
        .is_none_or(|clocks| clocks.pieces.iter().all(|piece| piece.offset.is_none()))
}

fn offset(measured: &Measured) -> String {
    let drifts = measured.clocks.as_ref().is_some_and(|clocks| clocks.sure_skew().is_some());
    let Some(clock) = measured.clock else {
        if !is_one_way(measured) {
            return "the offset is unknown: packets of both directions are missing between two clock \
                    steps"
                .to_owned();
        }
        let taken = if drifts { "assumed synchronised at first" } else { "assumed synchronised" };
        return format!("{taken} (only one direction seen)");
    };
    let ahead = if clock.offset < Delay::ZERO { "behind" } else { "ahead" };
    let offset = units::duration(clock.offset.as_nanos().unsigned_abs() as f64);
    match clock.error_bound {
        Some(bound) if bound >= Delay::from_nanos(clock.offset.as_nanos().saturating_abs()) => {
            format!("agree within {}", units::duration(bound.as_nanos() as f64))
        }
        Some(bound) => {
            let bound = units::duration(bound.as_nanos() as f64);
            let included = if measured.corrected { "" } else { "; delays include it" };
            format!("downstream is {ahead} by {offset} ± {bound}{included}")
        }
        None => format!(
            "downstream seems {ahead} by about {offset}: no delay explains that; delays include it"
        ),
    }
}

/// How the clocks drift apart, or why that cannot be said; nothing if they seem not to.
fn drift(clocks: &ClockReport, one_way: bool) -> Option<String> {
    if let Some(skew) = clocks.sure_skew() {
        let gains = if skew.ppm < 0.0 { "loses" } else { "gains" };
        // Never "± 0.000": nothing is as sure as that.
        let (ppm, error) = (skew.ppm.abs(), skew.error_ppm.max(0.001));
        let provided =
            if one_way { ", unless it is a queue or path that changes steadily" } else { "" };
        return Some(format!("downstream {gains} {ppm:.3} ± {error:.3} ppm{provided}"));
    }
    let doubt = clocks.skew_doubt.filter(|doubt| *doubt != SkewDoubt::FewPackets)?;
    Some(format!("whether they drift apart is unknown: {doubt}"))
}

fn steps(clocks: &ClockReport) -> impl Iterator<Item = String> {
    clocks.steps.iter().map(|step| {
        let (moment, size) = (units::moment(step.time), step.step.as_nanos());
        let onward = if size < 0 { "back" } else { "ahead" };
        let size = units::duration(size.unsigned_abs() as f64);
        format!("downstream was stepped {onward} by {size} at {moment} UTC")
    })
}

fn shifts(files: Files<'_>, clocks: &ClockReport) -> Vec<String> {
    let shown = clocks.shifts.iter().take(SHIFTS_SHOWN);
    let mut lines: Vec<String> = shown.map(|change| shift(files, change)).collect();
    if let Some(more @ 1..) = clocks.shifts.len().checked_sub(SHIFTS_SHOWN) {
        lines.push(format!("… and {more} more such changes"));
    }
    lines
}

fn shift(files: Files<'_>, shift: &LevelShift) -> String {
    let moment = units::moment(shift.time);
    let end = if shift.downstream { files.downstream } else { files.upstream }.display();
    // Differences of packets that go upstream are smaller where their delays are larger.
    let is_longer = (shift.change > Delay::ZERO) == shift.downstream;
    let longer = if is_longer { "longer" } else { "shorter" };
    let size = units::duration(shift.change.as_nanos().unsigned_abs() as f64);
    match shift.cause {
        ShiftCause::Path => format!(
            "the path toward {end} became {size} {longer} at {moment} UTC: another path or a queue, as \
             the other direction did not change with it"
        ),
        ShiftCause::Unknown => format!(
            "delays toward {end} are {longer} by {size} since {moment} UTC: a clock step or another \
             path, which cannot be distinguished"
        ),
    }
}

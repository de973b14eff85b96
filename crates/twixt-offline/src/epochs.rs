//! How long epochs may be, and which of them late packets put in doubt.
//!
//! A packet that is under way at the end of an epoch is found again in the next one, if delays differ
//! by less than half an epoch. One that takes longer looks lost in one epoch, and like a stray in
//! another: these two say so. Where many take longer, every epoch would, and all are refused.
//!
//! None of this concerns algorithms that match packets: they know when each left.

use std::collections::BTreeSet;

use twixt_measure::EPOCH_NS_MIN;
use twixt_measure::clock::ClockPoint;
use twixt_measure::survey::{Comparison, Overlap};
use twixt_model::{Delay, Epoch, EpochRule, Estimate};

use crate::error::OfflineError;
use crate::measured::Measured;
use crate::parts::Part;
use crate::plan::Plan;

/// How delays of packets differ, by those that were compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spread {
    /// All but one in a hundred differ from the smallest by no more.
    pub(crate) usual: Delay,
    /// None differs by more.
    pub(crate) most: Delay,
}

/// One packet in so many may take longer than half an epoch.
const LATE_EVERY: usize = 100;

impl Spread {
    /// In whichever part delays differ most.
    pub(crate) fn of(parts: &[Part]) -> Self {
        let spreads = || parts.iter().map(|part| Self::of_overlap(&part.overlap));
        let most = |pick: fn(Self) -> Delay| spreads().map(pick).max().unwrap_or(Delay::ZERO);
        Self { usual: most(|spread| spread.usual), most: most(|spread| spread.most) }
    }

    pub(crate) fn of_overlap(Overlap { delays, quantiles, .. }: &Overlap) -> Self {
        let most = delays.max - delays.min;
        let usual = quantiles.len().checked_sub(1 + quantiles.len() / LATE_EVERY);
        let usual = usual.map_or(most, |index| quantiles[index] - delays.min);
        Self { usual, most }
    }

    /// Half the width of the zone around epochs' boundaries: beyond any delay that the survey saw, if
    /// epochs are long enough for that.
    pub(crate) fn guard(self, rule: EpochRule) -> Delay {
        const LEAST: Delay = Delay::from_nanos(10_000_000);
        let guard = self.most + self.most + LEAST;
        rule.length_ns().map_or(guard, |length_ns| guard.min(Delay::from_nanos(length_ns / 2)))
    }

    /// The shortest epochs that most packets do not outlast.
    const fn shortest_ns(self) -> i64 {
        let shortest_ns = self.usual.as_nanos().saturating_mul(2).saturating_add(2);
        if shortest_ns < EPOCH_NS_MIN { EPOCH_NS_MIN } else { shortest_ns }
    }

    /// Refuses epochs that are shorter.
    pub(crate) fn check(self, rule: EpochRule) -> Result<(), OfflineError> {
        let shortest_ns = self.shortest_ns();
        match rule.length_ns() {
            Some(length_ns) if length_ns < shortest_ns => {
                let spread_ns = self.usual.as_nanos();
                Err(OfflineError::EpochsTooShort { length_ns, spread_ns, shortest_ns })
            }
            _ => Ok(()),
        }
    }
}

impl Plan {
    /// The same, with epochs of a round length, so that there are some sixty in the overlap.
    pub(crate) fn with_epochs(&self, comparison: &Comparison) -> Self {
        let mut plan = self.clone();
        if !self.auto_epochs {
            return plan;
        }
        let Some(overlap) = comparison.overlap() else { return plan };
        let shift = overlap.delays.median;
        let (up, down) = (overlap.upstream, overlap.downstream);
        let (start, end) = (up.start.max(down.start - shift), up.end.min(down.end - shift));
        let wanted_ns = auto_length_ns((end - start).as_nanos().max(0));
        plan.rule = EpochRule::every(wanted_ns).expect("it is positive");
        if plan.rule_of_meters() != EpochRule::WHOLE {
            let shortest_ns = Spread::of_overlap(&overlap).shortest_ns().max(wanted_ns);
            let longer_ns = round_lengths_ns().find(|length_ns| *length_ns >= shortest_ns);
            plan.rule = longer_ns.and_then(EpochRule::every).unwrap_or(plan.rule);
        }
        plan
    }
}

/// The round length that divides a stretch into some sixty epochs: by its ratio to what sixty would
/// have, the nearest, so that there are 38 to 95.
fn auto_length_ns(stretch_ns: i64) -> i64 {
    const EPOCHS: f64 = 60.0;
    let wanted_ns = (stretch_ns as f64 / EPOCHS).max(1.0);
    let off = |length_ns: i64| (length_ns as f64 / wanted_ns).ln().abs();
    let nearest = round_lengths_ns().min_by(|one, other| off(*one).total_cmp(&off(*other)));
    nearest.unwrap_or(i64::MAX)
}

/// 1, 2 and 5 of each power of ten, ascending: up to years.
fn round_lengths_ns() -> impl Iterator<Item = i64> {
    (0..18).flat_map(|power| [1, 2, 5].map(|digit| digit * 10_i64.pow(power)))
}

/// Epochs that packets left or entered too late to be found again.
#[derive(Debug, Default)]
pub(crate) struct Late {
    left: BTreeSet<Epoch>,
    entered: BTreeSet<Epoch>,
    /// The longest that a packet took beyond the shortest delay.
    most: Delay,
    /// Not all packets were compared: there may be others.
    is_sampled: bool,
}

impl Late {
    /// Packets that took longer than the guard, by what the survey compared. Downstream's clock is
    /// taken to be ahead by `shift` where epochs are cut.
    pub(crate) fn of(plan: &Plan, comparison: &Comparison, parts: &[Part], shift: Delay) -> Self {
        let rule = plan.rule_of_meters();
        let guard = Spread::of(parts).guard(rule);
        let mut late = Self { is_sampled: comparison.is_sampled, ..Self::default() };
        for point in points(comparison, parts) {
            let beyond = point.difference - shift;
            let left = rule.epoch_of(point.time);
            let entered = rule.epoch_of(point.time + beyond);
            if beyond > guard && entered != left {
                late.left.insert(left);
                late.entered.insert(entered);
                late.most = late.most.max(beyond);
            }
        }
        late
    }

    /// Has an estimate of an epoch say no more than is known.
    fn limit(&self, estimate: &mut Estimate, epoch: Epoch, half_ns: i64) {
        let (left, entered) = (self.left.contains(&epoch), self.entered.contains(&epoch));
        let evidence = &estimate.evidence;
        let is_clean = evidence.lost == Some(0) && evidence.strays == Some(0);
        if !left && !entered && (is_clean || !self.is_sampled) {
            return;
        }
        let [most, half] = [self.most.as_nanos(), half_ns].map(milliseconds);
        estimate.forget_loss(&format!(
            "packets take up to {most} longer than others, more than half an epoch ({half}): late \
             packets cannot be distinguished from lost ones, and the mean excludes them; use longer \
             epochs, or --algorithm exact"
        ));
        estimate.sample = None;
        // A packet too few and another too many may hide each other.
        estimate.delay = estimate.delay.filter(|_| !(left && entered));
        if let Some(delay) = &mut estimate.delay {
            (delay.half_width_ns, delay.order, delay.order_range) = (None, None, None);
        }
    }
}

fn milliseconds(time_ns: i64) -> String {
    format!("{} ms", (time_ns as f64 / 1e4).round() / 1e2)
}

/// Packets that go downstream, with delays as they will be measured.
fn points<'a>(
    comparison: &'a Comparison,
    parts: &'a [Part],
) -> Box<dyn Iterator<Item = ClockPoint> + 'a> {
    let points = &comparison.downstream_points;
    match parts.first().and_then(|part| part.correction.as_ref()) {
        Some(correction) => Box::new(correction.corrected(points)),
        None => {
            let within = |point: &ClockPoint| {
                let received = point.time + point.difference;
                parts.iter().map(|part| &part.overlap).any(|overlap| {
                    overlap.upstream.contains(point.time) && overlap.downstream.contains(received)
                })
            };
            Box::new(points.iter().copied().filter(within))
        }
    }
}

impl Measured {
    /// Has the epochs that late packets left or entered say so.
    pub(crate) fn note_late(&mut self, plan: &Plan, late: &Late) {
        if late.left.is_empty() {
            return;
        }
        let half_ns = plan.rule.length_ns().unwrap_or(0) / 2;
        for (concluded, chosen) in self.concluded.iter_mut().zip(&plan.algorithms) {
            if plan.cuts_when_matched(chosen) {
                continue;
            }
            for estimate in &mut concluded.estimates {
                let epoch = plan.rule.epoch_of(estimate.span.start);
                late.limit(estimate, epoch, half_ns);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_auto(stretch_ns: i64, expected_ns: i64) {
        assert_eq!(auto_length_ns(stretch_ns), expected_ns);
    }

    #[test]
    fn epochs_have_round_lengths_and_there_are_some_sixty() {
        check_auto(0, 1);
        check_auto(60, 1);
        check_auto(1_000_000_000, 20_000_000);
        check_auto(60_000_000_000, 1_000_000_000);
        check_auto(5_049_000_000, 100_000_000);
        for power in 3..18 {
            for digit in 1..10 {
                let stretch_ns = digit * 10_i64.pow(power);
                let epochs = stretch_ns as f64 / auto_length_ns(stretch_ns) as f64;
                assert!((37.9..95.1).contains(&epochs), "{epochs} in {stretch_ns} ns");
            }
        }
    }
}

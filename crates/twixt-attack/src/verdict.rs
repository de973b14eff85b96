//! What the answers to one question in one cell, over all seeds, amount to.

use std::fmt;

use statrs::distribution::{Binomial, DiscreteCDF};

use crate::outcome::{AnswerOutcome, HeldClaims, median};

/// Intervals must hold at least so often: the 95 % that they claim, less what approximations may cost.
pub const COVERAGE_MIN: f64 = 0.93;
/// A cell is red by its counts only if chance explains them with a probability below this. A page has
/// some 8,000 such tests: one is red by mistake.
pub const FALSE_ALARM: f64 = 1e-4;
/// Claims that must always hold may fail so often, as digests of different packets may agree.
const CERTAIN_MIN: f64 = 0.99;
/// Means without an interval are far off at most so often.
const FAR_OFF_MAX: f64 = 0.05;
/// Loss may be wrong by this share of the packets; so many may be outside the overlap.
const PACKETS_OFF_MAX: f64 = 0.01;
/// The default estimator may have so many times the error of the best other.
const RIVAL_MAX: f64 = 1.1;
/// Below this difference of relative errors, both estimators are right.
const RIVAL_FLOOR: f64 = 1e-3;
/// A default that is worse must be so in this share of the seeds.
const RIVAL_SEEDS: f64 = 0.75;
/// With an interval for fewer scopes than this share, the answer of the cell is unknown.
const ANSWERED_MIN: f64 = 0.5;

/// What is wrong with answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FaultKind {
    /// Too few intervals of means hold.
    Interval,
    /// Means that claim to be exact are not.
    Certain,
    /// Loss is wrong, silently.
    Loss,
    /// Too few intervals of percentiles hold.
    Percentile,
    /// Means without an interval are far off.
    Bare,
    /// Another estimator has less error than the default.
    Estimator,
    /// Something is missing without a reason.
    Silent,
    /// Packets that both points could compare are left out.
    Overlap,
    /// The program failed.
    Failed,
}

/// A fault, with its figures.
#[derive(Clone, Debug)]
pub struct RedFault {
    /// What is wrong.
    pub kind: FaultKind,
    /// How wrong it is.
    pub figures: String,
}

/// Green, unknown or red.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// Everything that was claimed holds.
    Green,
    /// Nothing wrong was claimed, but most means have no interval.
    Unknown,
    /// Something that was claimed does not hold.
    Red,
}

/// What is found for one question in one cell.
#[derive(Clone, Debug)]
pub struct CellVerdict {
    /// Its faults.
    pub faults: Vec<RedFault>,
    /// The share of intervals that hold.
    pub coverage: Option<f64>,
    /// The share of scopes without an interval.
    pub unknown: f64,
    /// Median of the median errors of seeds.
    pub error: Option<f64>,
    /// Median of half the widths of intervals, relative to the mean.
    pub width: Option<f64>,
    /// The error of loss, as a share of packets.
    pub loss_error: Option<f64>,
}

impl CellVerdict {
    /// Judges the outcomes of all seeds.
    #[must_use]
    pub fn of(outcomes: &[&AnswerOutcome]) -> Self {
        let sum =
            |part: fn(&AnswerOutcome) -> u64| outcomes.iter().map(|one| part(one)).sum::<u64>();
        let intervals = Claims::of(outcomes, |outcome| outcome.intervals);
        let asked = sum(|outcome| outcome.asked);
        Self {
            faults: faults(outcomes),
            coverage: intervals.share(),
            unknown: 1.0 - share(intervals.total.all, asked).unwrap_or_default().min(1.0),
            error: median(outcomes.iter().filter_map(|outcome| outcome.error).collect()),
            width: median(outcomes.iter().filter_map(|outcome| outcome.width).collect()),
            loss_error: share(
                sum(|outcome| outcome.loss_error),
                sum(|outcome| outcome.loss_packets),
            ),
        }
    }

    /// What it comes to.
    #[must_use]
    pub fn colour(&self) -> Colour {
        match self.faults.is_empty() {
            false => Colour::Red,
            true if self.unknown > 1.0 - ANSWERED_MIN => Colour::Unknown,
            true => Colour::Green,
        }
    }
}

impl FaultKind {
    /// Its name in the page.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Interval => "interval",
            Self::Certain => "certain",
            Self::Loss => "loss",
            Self::Percentile => "percentile",
            Self::Bare => "far off",
            Self::Estimator => "estimator",
            Self::Silent => "silent",
            Self::Overlap => "overlap",
            Self::Failed => "failed",
        }
    }
}

impl fmt::Display for Colour {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Green => "green",
            Self::Unknown => "unknown",
            Self::Red => "red",
        })
    }
}

fn faults(outcomes: &[&AnswerOutcome]) -> Vec<RedFault> {
    use FaultKind::{Bare, Certain, Interval, Percentile};
    let claims = |of: fn(&AnswerOutcome) -> HeldClaims| Claims::of(outcomes, of);
    let counted = [
        (Interval, claims(|outcome| outcome.intervals), COVERAGE_MIN),
        (Certain, claims(|outcome| outcome.certain), CERTAIN_MIN),
        (Percentile, claims(|outcome| outcome.percentiles), COVERAGE_MIN),
        (Bare, claims(|outcome| outcome.bare), 1.0 - FAR_OFF_MAX),
    ];
    let too_few = counted.into_iter().filter(|(_, claims, least)| claims.are_below(*least));
    let mut faults: Vec<RedFault> =
        too_few.map(|(kind, claims, _)| RedFault { kind, figures: claims.to_string() }).collect();
    faults.extend(packet_faults(outcomes));
    faults.extend(estimator_fault(outcomes));
    let failure = outcomes.iter().find_map(|outcome| outcome.failure.clone());
    faults.extend(failure.map(|figures| RedFault { kind: FaultKind::Failed, figures }));
    faults.sort_by_key(|fault| fault.kind);
    faults
}

fn packet_faults(outcomes: &[&AnswerOutcome]) -> Vec<RedFault> {
    let sum = |part: fn(&AnswerOutcome) -> u64| outcomes.iter().map(|one| part(one)).sum::<u64>();
    let mut faults = Vec::new();
    let lost = share(sum(|outcome| outcome.loss_error), sum(|outcome| outcome.loss_packets));
    let sent = sum(|outcome| outcome.packets + outcome.outside);
    let outside = share(sum(|outcome| outcome.outside), sent);
    for (kind, off) in [(FaultKind::Loss, lost), (FaultKind::Overlap, outside)] {
        if let Some(off) = off.filter(|&off| off > PACKETS_OFF_MAX) {
            faults.push(RedFault { kind, figures: format!("{:.1} % of packets", 100.0 * off) });
        }
    }
    let silent = sum(|outcome| outcome.silent);
    if silent > 0 {
        let figures = format!("{silent} of {}", sum(|outcome| outcome.asked));
        faults.push(RedFault { kind: FaultKind::Silent, figures });
    }
    faults
}

fn estimator_fault(outcomes: &[&AnswerOutcome]) -> Option<RedFault> {
    let rivals: Vec<_> = outcomes.iter().filter_map(|outcome| outcome.rival).collect();
    let own = median(rivals.iter().map(|rival| rival.own).collect())?;
    let other = median(rivals.iter().map(|rival| rival.other).collect())?;
    let is_worse = |own: f64, other: f64| own > RIVAL_MAX * other && own - other > RIVAL_FLOOR;
    let worse = rivals.iter().filter(|rival| is_worse(rival.own, rival.other)).count();
    let in_most = worse as f64 >= RIVAL_SEEDS * rivals.len() as f64;
    (is_worse(own, other) && in_most).then(|| RedFault {
        kind: FaultKind::Estimator,
        figures: format!("error {:.1} %, best other {:.1} %", 100.0 * own, 100.0 * other),
    })
}

/// Claims by seed. Those of one seed are not independent: flows share cells.
struct Claims {
    seeds: Vec<HeldClaims>,
    total: HeldClaims,
}

impl Claims {
    fn of(outcomes: &[&AnswerOutcome], of: fn(&AnswerOutcome) -> HeldClaims) -> Self {
        let seeds: Vec<HeldClaims> = outcomes.iter().map(|outcome| of(outcome)).collect();
        let sum = |part: fn(&HeldClaims) -> u64| seeds.iter().map(part).sum();
        let total = HeldClaims { all: sum(|claims| claims.all), held: sum(|claims| claims.held) };
        Self { seeds, total }
    }

    fn share(&self) -> Option<f64> {
        share(self.total.held, self.total.all)
    }

    /// Whether fewer hold than this share, and chance does not explain it: exact binomial test with the
    /// number of independent claims that would scatter as much.
    fn are_below(&self, least: f64) -> bool {
        let Some(held) = self.share().filter(|&held| held < least) else { return false };
        let independent = self.independent();
        let count = (held * independent as f64).round() as u64;
        let chance = Binomial::new(least, independent).expect("a share is between 0 and 1");
        chance.cdf(count) < FALSE_ALARM
    }

    /// The number of claims over the design effect: how much more their share scatters from seed to seed
    /// than if all were independent (Kish, "Survey Sampling", 1965, section 5.4).
    fn independent(&self) -> u64 {
        let seeds = self.seeds.iter().filter(|claims| claims.all > 0).count() as f64;
        let all = self.total.all as f64;
        let Some(held) = self.share().filter(|_| seeds > 1.0) else { return 1 };
        let rest = |claims: &HeldClaims| claims.held as f64 - held * claims.all as f64;
        let squares: f64 = self.seeds.iter().map(|claims| rest(claims).powi(2)).sum();
        let variance = squares * seeds / (seeds - 1.0) / all.powi(2);
        let binomial = held * (1.0 - held) / all;
        let effect = if binomial > 0.0 { (variance / binomial).max(1.0) } else { 1.0 };
        (all / effect).max(seeds).min(all) as u64
    }
}

impl fmt::Display for Claims {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let HeldClaims { all, held } = self.total;
        write!(
            formatter,
            "{held} of {all} hold ({:.1} %)",
            100.0 * self.share().unwrap_or_default()
        )
    }
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::RivalErrors;

    /// Outcomes of seeds with these numbers of intervals and of those that hold.
    fn seeds(counts: &[(u64, u64)]) -> Vec<AnswerOutcome> {
        let outcome = |&(all, held): &(u64, u64)| AnswerOutcome {
            asked: all,
            intervals: HeldClaims { all, held },
            ..AnswerOutcome::default()
        };
        counts.iter().map(outcome).collect()
    }

    #[track_caller]
    fn check(outcomes: &[AnswerOutcome], expected: Colour, kinds: &[FaultKind]) {
        let verdict = CellVerdict::of(&outcomes.iter().collect::<Vec<_>>());
        let found: Vec<FaultKind> = verdict.faults.iter().map(|fault| fault.kind).collect();
        assert_eq!((verdict.colour(), found.as_slice()), (expected, kinds), "{verdict:?}");
    }

    #[test]
    fn intervals_that_hold_are_green_and_others_red() {
        check(&seeds(&[(100, 95), (100, 92), (100, 96)]), Colour::Green, &[]);
        check(&seeds(&[(100, 80), (100, 82), (100, 78)]), Colour::Red, &[FaultKind::Interval]);
        check(&seeds(&[(1, 1); 20]), Colour::Green, &[]);
        check(&seeds(&[(1, 0); 4]), Colour::Red, &[FaultKind::Interval]);
    }

    /// One seed of which all fail is one piece of evidence, not a hundred.
    #[test]
    fn flows_of_one_seed_are_not_independent() {
        check(&seeds(&[(100, 100), (100, 100), (100, 70)]), Colour::Green, &[]);
        check(&seeds(&[(100, 0)]), Colour::Green, &[]);
    }

    #[test]
    fn an_answer_that_knows_little_is_unknown() {
        let mut outcomes = seeds(&[(10, 10); 5]);
        outcomes.iter_mut().for_each(|outcome| outcome.asked = 100);
        check(&outcomes, Colour::Unknown, &[]);
        outcomes[0].silent = 1;
        check(&outcomes, Colour::Red, &[FaultKind::Silent]);
    }

    #[test]
    fn wrong_losses_and_worse_estimators_are_red() {
        let mut outcomes = seeds(&[(10, 10); 4]);
        for outcome in &mut outcomes {
            (outcome.loss_packets, outcome.loss_error) = (1_000, 11);
            outcome.rival = Some(RivalErrors { own: 0.02, other: 0.01 });
        }
        check(&outcomes, Colour::Red, &[FaultKind::Loss, FaultKind::Estimator]);
        for outcome in &mut outcomes {
            outcome.loss_error = 9;
            outcome.rival = Some(RivalErrors { own: 0.0105, other: 0.01 });
        }
        check(&outcomes, Colour::Green, &[]);
    }
}

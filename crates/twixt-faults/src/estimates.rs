//! Whether every pair of stored halves is estimated, once and right, and whether gaps are true.

use std::collections::{BTreeMap, BTreeSet};

use twixt_engine::{Conclusion, Engine, EngineConfig, EngineEvent};
use twixt_history::Row;
use twixt_measure::Sealed;
use twixt_model::{Scope, Timestamp};

use crate::agent_machine::point_name;
use crate::collector_machine::segments;
use crate::ledger::Stored;
use crate::plan::Plan;
use crate::traffic::{Passing, Traffic, epoch_ns};

/// What is said of the epochs of a series.
type ByEpoch<T> = BTreeMap<i64, T>;

/// What the estimates of a story depend on.
#[derive(Clone, Copy)]
pub(crate) struct Story<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) traffic: &'a Traffic,
    /// Points and epochs that are stored, though that was never acknowledged.
    pub(crate) unacknowledged: &'a BTreeSet<(String, i64)>,
    /// Packets that a kernel dropped.
    pub(crate) dropped: &'a BTreeSet<Passing>,
    /// Bits changed on the collector's disk: what was estimated may be lost, and what was estimated
    /// from may be lost.
    pub(crate) is_rotten: bool,
}

impl Story<'_> {
    /// Checks what the history says against what is stored, for all series.
    pub(crate) fn check(&self, stored: &Stored, rows: &[Row]) -> Result<u64, String> {
        let halves: Vec<Sealed> = stored
            .values()
            .map(|bytes| Sealed::from_bytes(bytes).map_err(|error| error.to_string()))
            .collect::<Result<_, _>>()?;
        let expected = expected(self.plan, &halves);
        let mut estimated = 0;
        for upstream in 0..self.plan.points() - 1 {
            for algorithm in &self.plan.algorithms {
                let check = SeriesCheck { story: *self, upstream, algorithm };
                estimated += check.run(&halves, &expected, rows)?;
            }
        }
        Ok(estimated)
    }
}

struct SeriesCheck<'a> {
    story: Story<'a>,
    upstream: usize,
    algorithm: &'a str,
}

impl SeriesCheck<'_> {
    fn run(&self, halves: &[Sealed], expected: &[Conclusion], rows: &[Row]) -> Result<u64, String> {
        let said = self.said(rows)?;
        let own: Vec<&Sealed> =
            halves.iter().filter(|half| half.synopsis.name() == self.algorithm).collect();
        let of = |point: usize| {
            let name = point_name(point);
            own.iter().filter(move |half| half.point.0 == name)
        };
        let has = |point: usize, epoch: i64| of(point).any(|half| half.epoch.0 == epoch);
        for (epoch, row) in &said {
            let is_pair = has(self.upstream, *epoch) && has(self.upstream + 1, *epoch);
            let is_sure = !self.story.is_rotten && !self.has_clock_faults();
            if !row.is_gap() && !is_pair && is_sure {
                return Err(format!("{self} epoch {epoch}: an estimate without both halves"));
            }
            self.check_loss(*epoch, row)?;
        }
        for conclusion in expected.iter().filter(|conclusion| self.is_about(conclusion)) {
            let last = match conclusion {
                Conclusion::Gap(gap) => gap.last.0,
                Conclusion::Estimate(pair) => pair.epoch.0,
            };
            for epoch in (conclusion.epoch().0..=last).filter(|epoch| self.is_certain(*epoch)) {
                self.compare(epoch, conclusion, said.get(&epoch))?;
            }
        }
        Ok(said.values().filter(|row| !row.is_gap()).count() as u64)
    }

    fn has_clock_faults(&self) -> bool {
        self.story.plan.has_clock_faults()
    }

    /// The rows of this series by epoch: one for each.
    fn said<'r>(&self, rows: &'r [Row]) -> Result<ByEpoch<&'r Row>, String> {
        let mut said = BTreeMap::new();
        let own = rows.iter().filter(|row| {
            row.series.upstream == point_name(self.upstream)
                && row.series.downstream == point_name(self.upstream + 1)
                && row.series.algorithm == self.algorithm
                && (row.is_gap() || row.scope == Scope::All.to_string())
        });
        for row in own {
            let first = row.epoch.unwrap_or(row.start_ns / row.series.epoch_ns.max(1));
            let epochs = if row.is_gap() { row.gaps } else { 1 };
            for epoch in first..first + epochs.cast_signed() {
                if let Some(before) = said.insert(epoch, row) {
                    return Err(format!("{self} epoch {epoch}: two rows, {before:?} and {row:?}"));
                }
            }
        }
        Ok(said)
    }

    /// Whether all halves of an epoch and its neighbours were acknowledged, as far as they are stored.
    fn is_certain(&self, epoch: i64) -> bool {
        let points = [self.upstream, self.upstream + 1].map(point_name);
        let mut halves =
            points.iter().flat_map(|point| (epoch - 1..=epoch + 1).map(|at| (point.clone(), at)));
        !halves.any(|half| self.story.unacknowledged.contains(&half))
    }

    fn is_about(&self, conclusion: &Conclusion) -> bool {
        let series = match conclusion {
            Conclusion::Gap(gap) => &gap.series,
            Conclusion::Estimate(pair) => &pair.series,
        };
        series.segment.upstream.0 == point_name(self.upstream) && series.algorithm == self.algorithm
    }

    fn compare(&self, epoch: i64, expected: &Conclusion, row: Option<&&Row>) -> Result<(), String> {
        if (self.story.is_rotten || self.has_clock_faults())
            && (row.is_none_or(|row| row.is_gap()) || is_gap(expected))
        {
            return Ok(());
        }
        let Some(row) = row else {
            // Nothing is known, and no later epoch came that would show it as a gap.
            if matches!(expected, Conclusion::Gap(_)) {
                return Ok(());
            }
            return Err(format!("{self} epoch {epoch}: no row, expected {}", shown(expected)));
        };
        let differs = |what: &str| {
            Err(format!("{self} epoch {epoch}: {what}: {row:?}, expected {}", shown(expected)))
        };
        match expected {
            Conclusion::Gap(_) if row.is_gap() => Ok(()),
            Conclusion::Gap(_) => differs("an estimate of what cannot be compared"),
            Conclusion::Estimate(_) if row.is_gap() => differs("a gap where both halves are"),
            Conclusion::Estimate(pair) => {
                let all = pair.estimates.iter().find(|estimate| estimate.scope == Scope::All);
                let Some(estimate) = all else { return Ok(()) };
                if row.realigned_epochs != Some(pair.realigned_epochs) && self.has_clock_faults() {
                    // Clocks were a whole number of epochs apart, for a while.
                    return Ok(());
                }
                let expected = Row::of_epoch(row.series.clone(), epoch, pair.span, estimate);
                // A neighbour that was not there in time leaves packets that cannot be placed, and the
                // row says so.
                let is_edge = row.reason.is_some() && row.lost.is_none();
                let is_equal = row.packets == expected.packets
                    && row.used == expected.used
                    && row.lost == expected.lost
                    && sums(row) == sums(&expected);
                // Where clocks differ it depends on the order in which epochs come which packets near
                // boundaries can be placed.
                let is_either_unknown = row.lost.is_none() || expected.lost.is_none();
                let is_unsure = self.has_clock_faults() && is_either_unknown;
                let is_equal = is_equal || (is_unsure && row.packets == expected.packets);
                let is_within = row.packets <= expected.packets && row.used <= row.packets;
                let is_equal = is_equal || (is_edge && is_within);
                if is_equal { Ok(()) } else { differs("another estimate") }
            }
        }
    }

    /// Loss is what the network lost of what upstream saw, never what a point did not see.
    fn check_loss(&self, epoch: i64, row: &Row) -> Result<(), String> {
        let range = row.loss_range().filter(|_| !self.has_clock_faults());
        let Some(range) = range else { return Ok(()) };
        let within_ns = epoch_ns(epoch, self.story.plan.start_ns);
        let truth = self.story.traffic.lost_behind(self.upstream, within_ns, self.story.dropped);
        match (range.min..=range.max).contains(&truth) {
            true => Ok(()),
            false => {
                Err(format!("{self} epoch {epoch}: {range:?} lost, in truth {truth}: {row:?}"))
            }
        }
    }
}

impl std::fmt::Display for SeriesCheck<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (up, down) = (point_name(self.upstream), point_name(self.upstream + 1));
        write!(formatter, "{up}:{down} {}", self.algorithm)
    }
}

/// What an engine concludes that has all stored halves at once, in order.
fn expected(plan: &Plan, halves: &[Sealed]) -> Vec<Conclusion> {
    let config = EngineConfig { segments: segments(plan), ..EngineConfig::default() };
    let mut engine = Engine::new(config);
    let mut ordered: Vec<&Sealed> = halves.iter().collect();
    ordered.sort_by_key(|half| (half.epoch, half.run, half.point.clone()));
    ordered.into_iter().for_each(|half| engine.receive(half.clone()));
    engine.advance(Timestamp::MAX);
    let conclusion = |event| match event {
        EngineEvent::Estimated(pair) => Some(Conclusion::Estimate(*pair)),
        EngineEvent::Gap(gap) => Some(Conclusion::Gap(gap)),
        _ => None,
    };
    std::iter::from_fn(|| engine.poll()).filter_map(conclusion).collect()
}

const fn is_gap(conclusion: &Conclusion) -> bool {
    matches!(conclusion, Conclusion::Gap(_))
}

fn sums(row: &Row) -> Option<(u64, i128)> {
    row.delay.as_ref().map(|delay| (delay.count, delay.sum_ns))
}

fn shown(conclusion: &Conclusion) -> String {
    match conclusion {
        Conclusion::Gap(gap) => format!("a gap: {}", gap.reason),
        Conclusion::Estimate(pair) => format!("{:?}", pair.estimates),
    }
}

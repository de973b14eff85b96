//! Distinguishes a restarted agent from a second one that uses the same name.
//!
//! The number of a run is when its agent started, or one more than that of the run before if the clock
//! was set back since, so the larger is the newer one. After a restart
//! the old run's last epochs may still come, but all of them began before the new run's first
//! ended. If the old run goes on reporting epochs while the new one does, there are two agents,
//! and the newer one is believed.

use std::collections::{BTreeMap, HashMap};

use twixt_model::{Span, Timestamp};

/// Runs of one point that are remembered; the oldest are forgotten.
const RUNS_MAX: usize = 16;
/// A run that was silent for this long is over: after a clock was set back and the spool removed, the
/// agent's new run seems to be the older one, and must not be refused for ever.
const SILENCE_NS: i64 = 60_000_000_000;

/// The runs of all points.
#[derive(Debug, Default)]
pub(super) struct Runs {
    points: HashMap<(String, String), BTreeMap<u64, Reported>>, // as many as there may be points
}

/// From when to when a run reported, by when its epochs begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reported {
    first: Timestamp,
    last: Timestamp,
}

/// What an epoch is about, as far as runs are concerned.
#[derive(Clone, Copy, Debug)]
pub(super) struct Report<'a> {
    pub(super) domain: &'a str,
    pub(super) point: &'a str,
    pub(super) run: u64,
    pub(super) span: Span,
}

impl Runs {
    /// The newer run that reports as the same point at the same time, if there is one.
    pub(super) fn rival(&self, report: Report<'_>) -> Option<u64> {
        let runs = self.points.get(&key(report))?;
        let start = report.span.start;
        let newer = runs.range(report.run.saturating_add(1)..).rev();
        let mut rivals = newer.filter(|(_, reported)| {
            let over = reported.last.as_nanos().saturating_add(SILENCE_NS);
            reported.first < start && start.as_nanos() <= over
        });
        rivals.next().map(|(&run, _)| run)
    }

    /// Remembers an epoch that was stored.
    pub(super) fn note(&mut self, report: Report<'_>) {
        let runs = self.points.entry(key(report)).or_default();
        let start = report.span.start;
        let reported = runs.entry(report.run).or_insert(Reported { first: start, last: start });
        reported.first = reported.first.min(start);
        reported.last = reported.last.max(start);
        if runs.len() > RUNS_MAX {
            runs.pop_first();
        }
    }
}

fn key(report: Report<'_>) -> (String, String) {
    (report.domain.to_owned(), report.point.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    fn report(run: u64, second: i64) -> Report<'static> {
        let start = Timestamp::from_nanos(second * SECOND);
        Report { domain: "d", point: "p", run, span: Span { start, end: start } }
    }

    /// Of the epochs (run, second), in this order, which are refused, and for whom.
    #[track_caller]
    fn check(epochs: &[(u64, i64)], refused: &[(usize, u64)]) {
        let mut runs = Runs::default();
        let mut found = Vec::new();
        for (index, &(run, second)) in epochs.iter().enumerate() {
            match runs.rival(report(run, second)) {
                Some(rival) => found.push((index, rival)),
                None => runs.note(report(run, second)),
            }
        }
        assert_eq!(found, refused);
    }

    #[test]
    fn a_restarted_agent_is_no_second_one() {
        check(&[(1, 10), (1, 11), (5, 11), (5, 12)], &[]);
        // What was left in the old run's spool comes late.
        check(&[(5, 11), (5, 12), (1, 10), (1, 11)], &[]);
    }

    #[test]
    fn of_two_agents_the_newer_is_believed() {
        check(&[(1, 10), (5, 10), (1, 11), (5, 11), (1, 12), (5, 12)], &[(2, 5), (4, 5)]);
    }

    #[test]
    fn a_clock_that_was_set_back_does_not_shut_out_its_agent() {
        check(&[(90, 100), (90, 110), (50, 60), (50, 105), (50, 171)], &[(3, 90)]);
    }

    #[test]
    fn memory_is_bounded() {
        let mut runs = Runs::default();
        for run in 0..1_000 {
            runs.note(report(run, run as i64));
        }
        assert_eq!(runs.points.values().map(BTreeMap::len).sum::<usize>(), RUNS_MAX);
    }
}

//! Detects clock steps. A point that goes on counting would mix two times, so it
//! restarts.

use std::sync::{Mutex, PoisonError};
use std::time::{Instant, SystemTime};

use twixt_model::Timestamp;
use twixt_observe::Era;

/// A synchronised clock drifts by less than this between two checks; a step moves it
/// by more.
const STEP_NS_MIN: i64 = 50_000_000;
/// A look at two clocks that took longer is not taken for a step.
const LOOK_NS_MAX: i64 = 5_000_000;
/// Looks until one is quick enough; on a very busy machine the best of them counts.
const LOOKS: usize = 3;

/// Two clocks: one that can be set, and one that cannot.
pub(crate) trait Clocks {
    /// The time on the one that stamps frames.
    fn wall(&self) -> Timestamp;
    /// On the other, since some moment.
    fn steady_ns(&self) -> i64;
}

/// Those of this machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SystemClocks {
    base: Instant,
}

/// The clock of a point, as all its threads see it.
#[derive(Debug)]
pub(crate) struct PointClock<C = SystemClocks> {
    clocks: C,
    state: Mutex<Offsets>,
}

/// How far the clock is from one that cannot be set.
#[derive(Debug)]
struct Offsets {
    offset_ns: i64,
    era: Era,
}

/// A look at both clocks.
#[derive(Clone, Copy, Debug)]
struct Look {
    offset_ns: i64,
    took_ns: i64,
}

impl PointClock {
    /// That of this machine. Begins the first era, whose run is the time it begins, or a larger
    /// number if the run before had a larger one.
    pub(crate) fn after(newest_run: u64) -> Self {
        Self::with(SystemClocks { base: Instant::now() }, newest_run)
    }
}

impl<C: Clocks> PointClock<C> {
    /// As [`after`](PointClock::after), by other clocks.
    pub(crate) fn with(clocks: C, newest_run: u64) -> Self {
        let run = run_after(newest_run, clocks.wall());
        let state = Offsets { offset_ns: look(&clocks).offset_ns, era: Era { number: 0, run } };
        Self { clocks, state: Mutex::new(state) }
    }

    /// The present era. Looks whether it is still the same.
    pub(crate) fn era(&self) -> Era {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.note(look(&self.clocks), self.clocks.wall());
        state.era
    }

    /// The time.
    pub(crate) fn now(&self) -> Timestamp {
        self.clocks.wall()
    }

    #[cfg(test)]
    fn pretend(&self, offset_ns: i64) {
        self.state.lock().unwrap().offset_ns += offset_ns;
    }
}

impl Offsets {
    fn note(&mut self, look: Look, now: Timestamp) {
        let moved_ns = look.offset_ns.saturating_sub(self.offset_ns).saturating_abs();
        if moved_ns < STEP_NS_MIN {
            // Drift.
            self.offset_ns = look.offset_ns;
        } else if look.took_ns <= LOOK_NS_MAX || moved_ns > look.took_ns.saturating_mul(2) {
            self.offset_ns = look.offset_ns;
            let run = run_after(self.era.run, now);
            self.era = Era { number: self.era.number + 1, run };
        }
    }
}

/// The time, unless that is not larger.
fn run_after(newest_run: u64, now: Timestamp) -> u64 {
    newest_run.saturating_add(1).max(now.as_nanos().max(1).cast_unsigned())
}

impl Clocks for SystemClocks {
    fn wall(&self) -> Timestamp {
        let nanos = match SystemTime::now().duration_since(SystemTime::UNIX_EPOCH) {
            Ok(since) => i64::try_from(since.as_nanos()).unwrap_or(i64::MAX),
            Err(before) => {
                i64::try_from(before.duration().as_nanos()).map_or(i64::MIN, |nanos| -nanos)
            }
        };
        Timestamp::from_nanos(nanos)
    }

    fn steady_ns(&self) -> i64 {
        self.base.elapsed().as_nanos() as i64 // 292 years
    }
}

fn look(clocks: &impl Clocks) -> Look {
    let once = || {
        let before_ns = clocks.steady_ns();
        let time_ns = clocks.wall().as_nanos();
        let after_ns = clocks.steady_ns();
        let middle_ns = before_ns + (after_ns - before_ns) / 2;
        Look { offset_ns: time_ns.saturating_sub(middle_ns), took_ns: after_ns - before_ns }
    };
    let mut best = once();
    for _ in 1..LOOKS {
        if best.took_ns <= LOOK_NS_MAX {
            break;
        }
        let again = once();
        best = if again.took_ns < best.took_ns { again } else { best };
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    /// The number of the era after looks at these offsets, each with how long the look took.
    #[track_caller]
    fn check(looks_ms: &[(i64, i64)], era: u64) {
        let mut offsets = Offsets { offset_ns: 0, era: Era { number: 0, run: 7 } };
        let mut run = 7;
        for &(offset_ms, took_ms) in looks_ms {
            let before = offsets.era.number;
            let look = Look { offset_ns: offset_ms * MS, took_ns: took_ms * MS };
            offsets.note(look, Timestamp::from_nanos(offset_ms * MS));
            assert_eq!(offsets.era.run > run, offsets.era.number > before, "runs grow with eras");
            run = offsets.era.run;
        }
        assert_eq!(offsets.era.number, era);
    }

    #[test]
    fn a_clock_that_is_set_is_told_from_one_that_drifts() {
        check(&[(10, 0), (20, 0), (60, 0), (100, 0)], 0);
        check(&[(60, 0)], 1);
        check(&[(-3_600_000, 0), (-3_600_000, 0)], 1);
        check(&[(3_600_000, 0), (0, 0)], 2);
        check(&[(70, 80)], 0); // the machine was busy
        check(&[(3_600_000, 80)], 1);
    }

    #[test]
    fn a_run_has_a_larger_number_than_the_one_before_whatever_the_clock_shows() {
        assert_eq!(run_after(0, Timestamp::from_nanos(7)), 7);
        assert_eq!(run_after(7, Timestamp::from_nanos(7)), 8);
        assert_eq!(run_after(7, Timestamp::from_nanos(-7)), 8);
    }

    #[test]
    fn nobody_sets_the_clock_of_this_machine() {
        let clock = PointClock::after(0);
        assert_eq!(clock.era(), clock.era());
        clock.pretend(3_600_000 * MS);
        assert_eq!(clock.era().number, 1);
        assert_eq!(clock.era().number, 1);
    }
}

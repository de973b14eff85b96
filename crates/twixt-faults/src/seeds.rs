//! Many stories: on all cores, with progress, and the first that fails.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use crate::world::{Failure, Outcome, run};

/// One story in so many is run twice: its trace must be the same.
const TWICE_ONE_IN: u64 = 50;

/// Which stories to run.
#[derive(Clone, Copy, Debug)]
pub struct Stories {
    /// The first seed.
    pub first: u64,
    /// How many.
    pub count: u64,
    /// Each ends after so many steps at the latest.
    pub steps_max: u64,
    /// Stories between two lines of progress; 0: none are written.
    pub progress_every: u64,
}

/// What many stories came to.
#[derive(Clone, Debug, Default)]
pub struct StoryTotals {
    /// Stories that were run to their end.
    pub stories: u64,
    /// Things that happened in them.
    pub steps: u64,
    /// Epochs stored.
    pub stored: u64,
    /// Epochs of pairs estimated.
    pub estimated: u64,
    /// The failure with the smallest seed.
    pub failure: Option<(u64, Failure)>,
    /// Wall time.
    pub seconds: f64,
}

/// Runs stories on all cores, until one fails.
#[must_use]
pub fn run_all(stories: Stories) -> StoryTotals {
    let started = Instant::now();
    let (next, has_failed) = (AtomicU64::new(0), AtomicBool::new(false));
    let summary = Mutex::new(StoryTotals::default());
    let work = || {
        while !has_failed.load(Ordering::Relaxed) {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= stories.count {
                return;
            }
            let ended = run_one(stories.first + number, stories.steps_max);
            let mut summary = summary.lock().unwrap_or_else(PoisonError::into_inner);
            summary.note(stories.first + number, ended, &has_failed);
            if stories.progress_every > 0 && summary.stories.is_multiple_of(stories.progress_every)
            {
                let (done, seconds) = (summary.stories, started.elapsed().as_secs_f64());
                eprintln!("{done} of {} stories, {seconds:.0} s", stories.count);
            }
        }
    };
    let cores = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(work);
        }
    });
    let summary = summary.into_inner().unwrap_or_else(PoisonError::into_inner);
    StoryTotals { seconds: started.elapsed().as_secs_f64(), ..summary }
}

/// Runs one story. If it fails, it is run again to know what happened.
///
/// # Errors
/// When something does not hold that must, or the product panics.
pub fn run_one(seed: u64, steps_max: u64) -> Result<Outcome, Failure> {
    let ended = run_guarded(seed, steps_max, false);
    let again = match &ended {
        Ok(_) if !seed.is_multiple_of(TWICE_ONE_IN) => return ended,
        _ => run_guarded(seed, steps_max, true),
    };
    match (ended, again) {
        (Ok(first), Ok(second)) if first.trace != second.trace => {
            let (first, second) = (first.trace, second.trace);
            let problem = format!("one seed, two stories: {first:016x} and {second:016x}");
            Err(Failure { problem, story: Vec::new() })
        }
        (Err(failure), Ok(_)) => {
            let problem = format!("one seed, two stories; the first time: {}", failure.problem);
            Err(Failure { problem, story: Vec::new() })
        }
        (_, again) => again,
    }
}

fn run_guarded(seed: u64, steps_max: u64, keeps_story: bool) -> Result<Outcome, Failure> {
    let ended = catch_unwind(AssertUnwindSafe(|| run(seed, steps_max, keeps_story)));
    ended.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
        Err(Failure { problem: format!("panicked: {text}"), story: Vec::new() })
    })
}

impl StoryTotals {
    fn note(&mut self, seed: u64, ended: Result<Outcome, Failure>, has_failed: &AtomicBool) {
        match ended {
            Ok(outcome) => {
                self.stories += 1;
                self.steps += outcome.steps;
                self.stored += outcome.stored;
                self.estimated += outcome.estimated;
            }
            Err(failure) => {
                has_failed.store(true, Ordering::Relaxed);
                if self.failure.as_ref().is_none_or(|(before, _)| seed < *before) {
                    self.failure = Some((seed, failure));
                }
            }
        }
    }
}

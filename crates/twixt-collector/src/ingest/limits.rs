//! How much one caller may ask for: requests at a time, and epochs per second.
//!
//! A bucket may run into debt, since how many epochs a request brings is known only after it was
//! read. A sender in debt waits until it is paid.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use super::answer::Problem;
use crate::server::Limits;

/// Callers that are remembered. Beyond this those go first that have nothing to remember.
const CALLERS_MAX: usize = 4_096;

/// What callers have used.
#[derive(Debug)]
pub(super) struct CallerLimits {
    limits: Limits,
    callers: Mutex<HashMap<String, Used>>, // at most CALLERS_MAX
}

#[derive(Debug)]
struct Used {
    requests: usize,
    /// Epochs that may come at once; negative is debt.
    credit: f64,
    at: Instant,
}

/// A request that is being answered.
#[derive(Debug)]
pub(super) struct CallerRequest<'a> {
    of: &'a CallerLimits,
    caller: String,
}

impl CallerLimits {
    pub(super) fn new(limits: Limits) -> Self {
        Self { limits, callers: Mutex::default() }
    }

    pub(super) fn admit(&self, caller: &str) -> Result<CallerRequest<'_>, Problem> {
        self.admit_at(caller, Instant::now())
    }

    fn admit_at(&self, caller: &str, now: Instant) -> Result<CallerRequest<'_>, Problem> {
        let (rate, burst) = (self.limits.epochs_per_second as f64, self.limits.epochs_burst as f64);
        let mut callers = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
        if callers.len() >= CALLERS_MAX && !callers.contains_key(caller) {
            callers.retain(|_, used| used.requests > 0 || used.earned(now, rate) < burst);
            if callers.len() >= CALLERS_MAX {
                return Err(Problem::TooMuch { seconds: 1 });
            }
        }
        let used = callers.entry(caller.to_owned()).or_insert(Used {
            requests: 0,
            credit: burst,
            at: now,
        });
        used.credit = used.earned(now, rate).min(burst);
        used.at = now;
        if used.credit <= 0.0 {
            let seconds = (-used.credit / rate).ceil().max(1.0) as u64;
            return Err(Problem::TooMuch { seconds });
        }
        if used.requests >= self.limits.requests_per_caller_max {
            return Err(Problem::TooMuch { seconds: 1 });
        }
        used.requests += 1;
        used.credit -= 1.0; // whatever it brings
        Ok(CallerRequest { of: self, caller: caller.to_owned() })
    }

    fn change(&self, caller: &str, change: impl FnOnce(&mut Used)) {
        let mut callers = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(used) = callers.get_mut(caller) {
            change(used);
        }
    }
}

impl Used {
    fn earned(&self, now: Instant, rate: f64) -> f64 {
        self.credit + now.saturating_duration_since(self.at).as_secs_f64() * rate
    }
}

impl CallerRequest<'_> {
    /// So many epochs came. The first of them was paid for already.
    pub(super) fn charge(&self, epochs: usize) {
        self.of.change(&self.caller, |used| used.credit -= epochs.saturating_sub(1) as f64);
    }
}

impl Drop for CallerRequest<'_> {
    fn drop(&mut self) {
        self.of.change(&self.caller, |used| used.requests -= 1);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn limits() -> CallerLimits {
        CallerLimits::new(Limits {
            epochs_per_second: 10,
            epochs_burst: 20,
            requests_per_caller_max: 2,
            ..Limits::default()
        })
    }

    #[test]
    fn debts_are_paid_before_the_next_request() {
        let (limits, start) = (limits(), Instant::now());
        limits.admit_at("a", start).unwrap().charge(50);
        let problem = limits.admit_at("a", start).unwrap_err();
        assert_eq!(problem, Problem::TooMuch { seconds: 3 });
        assert!(limits.admit_at("b", start).is_ok(), "others go on");
        assert!(limits.admit_at("a", start + Duration::from_millis(2_900)).is_err());
        assert!(limits.admit_at("a", start + Duration::from_millis(3_100)).is_ok());
    }

    #[test]
    fn requests_at_a_time_are_few() {
        let (limits, now) = (limits(), Instant::now());
        let first = limits.admit_at("a", now).unwrap();
        let _second = limits.admit_at("a", now).unwrap();
        assert_eq!(limits.admit_at("a", now).unwrap_err(), Problem::TooMuch { seconds: 1 });
        drop(first);
        assert!(limits.admit_at("a", now).is_ok());
    }

    #[test]
    fn callers_that_owe_nothing_are_forgotten() {
        let (limits, now) = (limits(), Instant::now());
        for caller in 0..2 * CALLERS_MAX {
            let later = Duration::from_millis(caller as u64);
            limits.admit_at(&caller.to_string(), now + later).unwrap();
        }
        assert!(limits.callers.lock().unwrap().len() <= CALLERS_MAX);
    }
}

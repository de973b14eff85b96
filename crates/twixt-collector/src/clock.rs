//! What time it is. The only place of the collector that asks, so that tests can set the clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use twixt_model::Timestamp;

/// A clock this far ahead of the newest record may be wrong.
const AHEAD_NS_MAX: i64 = 24 * 3_600 * 1_000_000_000;
/// It is believed when nothing newer came for so long: agents would report another time.
const DOUBT: Duration = Duration::from_secs(24 * 3_600);

/// The system's clock, one that is off by some time, or one that stands still until it is set.
/// Clones are off by the same, and are set with it.
#[derive(Clone, Debug, Default)]
pub struct WallClock {
    ahead_ns: Arc<AtomicI64>,
    standing: Option<Standing>,
}

/// What a clock shows that stands still.
#[derive(Clone, Debug)]
struct Standing {
    began: Instant,
    steady_ns: Arc<AtomicU64>,
}

impl WallClock {
    /// The system's clock.
    #[must_use]
    pub fn system() -> Self {
        Self::default()
    }

    /// A clock that stands still: it shows what it is [set](Self::set) to, at first 1970.
    #[must_use]
    pub fn standing() -> Self {
        let standing = Standing { began: Instant::now(), steady_ns: Arc::default() };
        Self { ahead_ns: Arc::default(), standing: Some(standing) }
    }

    /// Sets a clock that stands still: to a time, and to how long it exists.
    pub fn set(&self, now: Timestamp, exists: Duration) {
        if let Some(standing) = &self.standing {
            self.ahead_ns.store(now.as_nanos(), Ordering::Relaxed);
            let steady_ns = u64::try_from(exists.as_nanos()).unwrap_or(u64::MAX);
            standing.steady_ns.store(steady_ns, Ordering::Relaxed);
        }
    }

    /// A moment to measure how long something takes, which no one can set back.
    #[must_use]
    pub fn instant(&self) -> Instant {
        self.standing.as_ref().map_or_else(Instant::now, |standing| {
            standing.began + Duration::from_nanos(standing.steady_ns.load(Ordering::Relaxed))
        })
    }

    /// What time it is.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        if self.standing.is_some() {
            return Timestamp::from_nanos(self.ahead_ns.load(Ordering::Relaxed));
        }
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let now_ns = i64::try_from(since.as_nanos()).unwrap_or(i64::MAX);
        Timestamp::from_nanos(now_ns.saturating_add(self.ahead_ns.load(Ordering::Relaxed)))
    }

    /// Sets it: from now on it is ahead of the system's by this, or behind.
    pub fn set_ahead_ns(&self, ahead_ns: i64) {
        self.ahead_ns.store(ahead_ns, Ordering::Relaxed);
    }
}

/// By which time records are old. A clock that was set years ahead, by mistake, must not delete
/// everything that there is.
#[derive(Debug, Default)]
pub(crate) struct AgeReference {
    /// Since when the clock is doubted with the newest record as it is.
    since: Option<(Instant, i64)>,
}

impl AgeReference {
    /// The moment that ages count from, and whether the clock has just begun to be doubted.
    pub(crate) fn moment(
        &mut self,
        now: Timestamp,
        newest: Option<Timestamp>,
        at: Instant,
    ) -> (Timestamp, bool) {
        let newest_ns = newest.map_or(i64::MAX, Timestamp::as_nanos);
        let most = Timestamp::from_nanos(newest_ns.saturating_add(AHEAD_NS_MAX));
        if now <= most {
            self.since = None;
            return (now, false);
        }
        let is_news = self.since.is_none();
        let (since, _) = *self.since.insert(match self.since {
            Some((since, of_ns)) if of_ns == newest_ns => (since, newest_ns),
            _ => (at, newest_ns),
        });
        let is_believed = at.saturating_duration_since(since) >= DOUBT;
        (if is_believed { now } else { most }, is_news)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_NS: i64 = 3_600 * 1_000_000_000;

    #[test]
    fn a_clock_that_is_set_ahead_is_believed_after_a_day() {
        let (mut age_reference, start) = (AgeReference::default(), Instant::now());
        let at = |hours: i64| Timestamp::from_nanos(hours * HOUR_NS);
        let mut check = |clock: i64, newest: i64, after: u64, expected: (i64, bool)| {
            let after = start + Duration::from_secs(after * 3_600);
            let found = age_reference.moment(at(clock), Some(at(newest)), after);
            assert_eq!(found, (at(expected.0), expected.1));
        };
        check(100, 99, 0, (100, false));
        check(90_000, 100, 1, (124, true));
        check(90_020, 100, 21, (124, false));
        // Something new came, by the clock of an agent that is right.
        check(90_023, 123, 24, (147, false));
        check(90_040, 123, 40, (147, false));
        check(90_048, 123, 48, (90_048, false));
        // Set right again, and then behind.
        check(150, 149, 49, (150, false));
        check(50, 150, 50, (50, false));
        check(90_000, 150, 51, (174, true));
        assert_eq!(AgeReference::default().moment(at(9), None, start), (at(9), false));
    }
}

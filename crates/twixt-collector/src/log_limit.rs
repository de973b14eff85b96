//! Limits how often a repeated warning is logged, and counts what was not.

use std::time::{Duration, Instant};

/// Between two log lines.
const EVERY: Duration = Duration::from_secs(60);

/// A warning that may repeat.
#[derive(Debug, Default)]
pub(crate) struct LogLimit {
    logged: Option<Instant>,
    unlogged: u64,
}

impl LogLimit {
    /// It happened this many times more. Returns how often since the last log line, if it is time
    /// for another.
    pub(crate) fn note(&mut self, times: u64, now: Instant) -> Option<u64> {
        self.unlogged = self.unlogged.saturating_add(times);
        if self.unlogged == 0 {
            return None;
        }
        if self.logged.is_some_and(|logged| now.saturating_duration_since(logged) < EVERY) {
            return None;
        }
        self.logged = Some(now);
        Some(std::mem::take(&mut self.unlogged))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_logged_at_once_and_then_rarely() {
        let (mut limit, start) = (LogLimit::default(), Instant::now());
        let logged: Vec<Option<u64>> =
            (0..130).map(|second| limit.note(1, start + Duration::from_secs(second))).collect();
        let expected = |second| [(0, 1), (60, 60), (120, 60)].into_iter().find(|at| at.0 == second);
        assert_eq!(LogLimit::default().note(0, start), None, "it did not happen");
        for (second, logged) in logged.into_iter().enumerate() {
            assert_eq!(logged, expected(second).map(|(_, count)| count), "{second}");
        }
    }
}

//! Logs lost epochs: at once, and then a summary now and then.

use std::time::{Duration, Instant};

/// Between two lines about the same.
const EVERY: Duration = Duration::from_secs(60);

/// Counts what is lost, and says when it is time to log how much.
#[derive(Debug, Default)]
pub(crate) struct Losses {
    logged: u64,
    logged_at: Option<Instant>,
}

impl Losses {
    /// Given how many were lost so far: how many of them to log now, if any.
    pub(crate) fn due(&mut self, lost: u64, now: Instant) -> Option<u64> {
        let new = lost.saturating_sub(self.logged);
        let is_due = self.logged_at.is_none_or(|at| now.duration_since(at) >= EVERY);
        if new == 0 || !is_due {
            return None;
        }
        self.logged = lost;
        self.logged_at = Some(now);
        Some(new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_is_logged_at_once_and_others_in_sums() {
        let start = Instant::now();
        let mut losses = Losses::default();
        assert_eq!(losses.due(0, start), None);
        assert_eq!(losses.due(1, start), Some(1));
        for lost in 2..50 {
            assert_eq!(losses.due(lost, start + Duration::from_secs(lost)), None);
        }
        assert_eq!(losses.due(50, start + EVERY), Some(49));
        assert_eq!(losses.due(50, start + 3 * EVERY), None);
        assert_eq!(losses.due(51, start + 3 * EVERY), Some(1));
    }
}

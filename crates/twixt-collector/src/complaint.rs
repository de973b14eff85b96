//! Says that something goes on, now and then, and how often it did: whoever is to be told of a
//! flood must not be flooded.

use std::time::{Duration, Instant};

/// Between two complaints.
const EVERY: Duration = Duration::from_secs(60);

/// What is to be complained about.
#[derive(Debug, Default)]
pub(crate) struct Complaint {
    said: Option<Instant>,
    unsaid: u64,
}

impl Complaint {
    /// It happened so often again. How often since it was said last, if it should be said now.
    pub(crate) fn note(&mut self, times: u64, now: Instant) -> Option<u64> {
        self.unsaid = self.unsaid.saturating_add(times);
        if self.unsaid == 0 {
            return None;
        }
        if self.said.is_some_and(|said| now.saturating_duration_since(said) < EVERY) {
            return None;
        }
        self.said = Some(now);
        Some(std::mem::take(&mut self.unsaid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_said_at_once_and_then_rarely() {
        let (mut complaint, start) = (Complaint::default(), Instant::now());
        let said: Vec<Option<u64>> =
            (0..130).map(|second| complaint.note(1, start + Duration::from_secs(second))).collect();
        let expected = |second| [(0, 1), (60, 60), (120, 60)].into_iter().find(|at| at.0 == second);
        assert_eq!(Complaint::default().note(0, start), None, "it did not happen");
        for (second, said) in said.into_iter().enumerate() {
            assert_eq!(said, expected(second).map(|(_, count)| count), "{second}");
        }
    }
}

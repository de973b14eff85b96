//! When an alert is raised and cleared: values in, transitions out. It knows neither what the
//! values are of nor what time it is.

/// How an alert stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AlertState {
    /// There is not enough to say.
    #[default]
    Unknown,
    /// Below the threshold.
    Clear,
    /// Above the threshold, or was and has not come down far enough.
    Raised,
}

impl AlertState {
    /// The name in machine formats.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Clear => "clear",
            Self::Raised => "raised",
        }
    }
}

/// Between which values nothing changes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Thresholds {
    /// Values above this raise it.
    pub above: f64,
    /// Once raised, it is cleared by values below this; by any that is not above `above` if `None`.
    pub clear_below: Option<f64>,
}

/// A change to report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transition {
    /// How it stood.
    pub from: AlertState,
    /// How it stands.
    pub to: AlertState,
}

/// An alert on one series.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Alarm {
    pub(super) state: AlertState,
    /// Whether anything was ever known.
    pub(super) is_known: bool,
    /// Whether the last value that was known left it raised.
    pub(super) is_raised: bool,
}

impl Alarm {
    /// How it stands.
    pub(super) const fn state(&self) -> AlertState {
        self.state
    }

    /// Takes the next value, `None` where there is not enough to say. That all is well at first
    /// is no news.
    pub(super) fn take(
        &mut self,
        thresholds: &Thresholds,
        value: Option<f64>,
    ) -> Option<Transition> {
        if let Some(value) = value {
            self.is_raised = thresholds.raise(value, self.is_raised);
        }
        let to = match (value, self.is_raised) {
            (None, _) => AlertState::Unknown,
            (Some(_), true) => AlertState::Raised,
            (Some(_), false) => AlertState::Clear,
        };
        let from = std::mem::replace(&mut self.state, to);
        let is_news = self.is_known || to == AlertState::Raised;
        self.is_known |= value.is_some();
        (from != to && is_news).then_some(Transition { from, to })
    }
}

impl Thresholds {
    /// The end of a range that decides, where every value of it would lead to the same.
    #[must_use]
    pub fn decided_by(&self, low: f64, high: f64) -> Option<f64> {
        let is_clear = high <= self.above && self.clear_below.is_none_or(|clear| high < clear);
        match low > self.above {
            true => Some(low),
            false => is_clear.then_some(high),
        }
    }

    fn raise(&self, value: f64, was_raised: bool) -> bool {
        let stays = match self.clear_below {
            Some(clear_below) => value >= clear_below,
            None => false,
        };
        value > self.above || (was_raised && stays)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values in, and the first letter of what was reported after each: `.` for nothing.
    #[track_caller]
    fn check(clear_below: Option<f64>, values: &[Option<f64>], expected: &str) {
        let thresholds = Thresholds { above: 5.0, clear_below };
        let mut alarm = Alarm::default();
        let reported: String = values
            .iter()
            .map(|value| match alarm.take(&thresholds, *value) {
                Some(Transition { from, to }) => {
                    assert_ne!(from, to);
                    assert_eq!(alarm.state(), to);
                    to.name().chars().next().unwrap()
                }
                None => '.',
            })
            .collect();
        assert_eq!(reported, expected);
    }

    #[test]
    fn a_range_decides_if_all_of_it_does() {
        let decided =
            |clear_below, low, high| Thresholds { above: 5.0, clear_below }.decided_by(low, high);
        assert_eq!(decided(None, 6.0, 9.0), Some(6.0));
        assert_eq!(decided(None, 1.0, 5.0), Some(5.0));
        assert_eq!(decided(None, 4.0, 6.0), None);
        assert_eq!(decided(Some(3.0), 1.0, 4.0), None, "it might stay raised");
        assert_eq!(decided(Some(3.0), 1.0, 2.0), Some(2.0));
    }

    const NOTHING: Option<f64> = None;

    #[test]
    fn it_is_raised_once_and_cleared_once() {
        let values = [Some(1.0), Some(6.0), Some(7.0), Some(6.0), Some(5.0), Some(1.0)];
        check(None, &values, ".r..c.");
        check(None, &[Some(6.0), Some(4.0), Some(6.0)], "rcr");
        check(None, &[Some(5.0)], ".");
    }

    #[test]
    fn between_the_thresholds_nothing_changes() {
        let values = [Some(4.0), Some(6.0), Some(4.0), Some(3.0), Some(2.9), Some(4.0), Some(5.1)];
        check(Some(3.0), &values, ".r..c.r");
    }

    #[test]
    fn too_little_evidence_is_unknown_and_forgets_nothing() {
        check(None, &[NOTHING, NOTHING, Some(1.0)], "...");
        check(None, &[NOTHING, Some(6.0)], ".r");
        check(None, &[Some(1.0), NOTHING, NOTHING, Some(1.0)], ".u.c");
        // Raised before, and not below where it would be cleared: raised still.
        check(Some(3.0), &[Some(6.0), NOTHING, Some(4.0)], "rur");
        check(Some(3.0), &[Some(6.0), NOTHING, Some(1.0)], "ruc");
        check(Some(3.0), &[Some(1.0), NOTHING, Some(4.0)], ".uc");
    }
}

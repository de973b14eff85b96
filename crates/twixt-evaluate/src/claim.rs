//! What was published, and whether we found the same.

use crate::summary::{Summary, Value};

/// A published number or sentence, and what our measurement must be to agree.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Claim {
    /// What is claimed, in our words.
    pub claim: &'static str,
    /// What the paper gives, as it gives it.
    pub published: &'static str,
    /// The value of the trials that it is about; empty if we cannot measure it.
    pub value: &'static str,
    /// When we agree.
    pub holds: Holds,
    /// Shown beside the verdict; for one that differs or cannot be had, the reason.
    pub note: &'static str,
}

/// A claim that needs no note.
pub(crate) const fn claim(
    claim: &'static str,
    published: &'static str,
    value: &'static str,
    holds: Holds,
) -> Claim {
    Claim { claim, published, value, holds, note: "" }
}

/// When a measured number agrees with a claim.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Holds {
    /// Not above this.
    AtMost(f64),
    /// Not below this.
    AtLeast(f64),
    /// Between these two.
    Between(f64, f64),
    /// Not further from this than three standard errors of the mean over seeds: an estimate
    /// without bias is further away once in 370 times.
    Unbiased(f64),
    /// A share that is promised, and how many each trial counts: not below it by more than three
    /// standard errors of the share of all that are counted.
    Promised(f64, u32),
    /// Known to differ: the published number is not what comes out, and the note says why.
    Differs,
    /// Cannot be measured here, and the note says why.
    Cannot,
}

/// What became of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// We found what was published, or better.
    Pass,
    /// We found something else.
    Differs,
    /// It cannot be rerun here.
    Cannot,
}

impl Verdict {
    /// As in output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Differs => "differs",
            Self::Cannot => "cannot",
        }
    }
}

/// A claim, what we measured, and what follows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Judged {
    /// What is claimed.
    pub claim: &'static Claim,
    /// What we measured; `None` if we could not.
    pub measured: Option<Value>,
    /// What follows.
    pub verdict: Verdict,
}

impl Judged {
    /// How many standard errors of the mean over seeds the measured number is from the nearest bound
    /// of its claim: below 2, other seeds might give another verdict. `None` where there is no bound,
    /// nothing was measured, or one seed alone says nothing of its scatter.
    #[must_use]
    pub fn standard_errors_to_bound(&self) -> Option<f64> {
        let measured = self.measured.filter(|measured| measured.trials > 1)?;
        let distance = self.claim.holds.distance(measured.mean)?;
        let error = measured.standard_error();
        // What does not scatter is sure, on the bound too.
        Some(if error > 0.0 { distance / error } else { f64::INFINITY })
    }
}

impl Claim {
    /// The same with something to say beside the verdict.
    pub(crate) const fn noting(self, note: &'static str) -> Self {
        Self { note, ..self }
    }

    pub(crate) fn judge(&'static self, summary: &Summary) -> Judged {
        let measured = summary.value(self.value);
        let verdict = match (self.holds, measured) {
            (Holds::Cannot, _) | (_, None) => Verdict::Cannot,
            (Holds::Differs, _) => Verdict::Differs,
            (holds, Some(value)) if holds.admits(value) => Verdict::Pass,
            _ => Verdict::Differs,
        };
        Judged { claim: self, measured, verdict }
    }
}

impl Holds {
    /// How far a number is from its nearest bound; `None` where the bound depends on the scatter
    /// itself, or there is none.
    fn distance(self, number: f64) -> Option<f64> {
        match self {
            Self::AtMost(bound) | Self::AtLeast(bound) => Some((number - bound).abs()),
            Self::Between(least, most) => Some((number - least).abs().min((number - most).abs())),
            Self::Unbiased(_) | Self::Promised(..) | Self::Differs | Self::Cannot => None,
        }
    }

    fn admits(self, measured: Value) -> bool {
        let mean = measured.mean;
        match self {
            Self::AtMost(most) => mean <= most,
            Self::AtLeast(least) => mean >= least,
            Self::Between(least, most) => (least..=most).contains(&mean),
            Self::Unbiased(truth) => (mean - truth).abs() <= 3.0 * measured.standard_error(),
            Self::Promised(share, counted) => {
                let all = f64::from(counted) * measured.trials as f64;
                mean >= share - 3.0 * (share * (1.0 - share) / all).sqrt()
            }
            Self::Differs | Self::Cannot => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Trial;

    #[track_caller]
    fn check(holds: Holds, value: &'static str, expected: Verdict) {
        let mut trial = Trial::default();
        trial.value("error", 0.5);
        let claim =
            Box::leak(Box::new(Claim { claim: "small", published: "0.5", value, holds, note: "" }));
        assert_eq!(claim.judge(&Summary::of(&[trial])).verdict, expected);
    }

    #[test]
    fn a_number_agrees_when_it_lies_where_it_should() {
        check(Holds::AtMost(0.5), "error", Verdict::Pass);
        check(Holds::AtMost(0.4), "error", Verdict::Differs);
        check(Holds::AtLeast(0.6), "error", Verdict::Differs);
        check(Holds::Between(0.4, 0.6), "error", Verdict::Pass);
    }

    #[test]
    fn a_promise_holds_as_far_as_counts_can_say() {
        let check = |mean, trials, expected| {
            let measured = Value { mean, spread: 0.2, trials };
            assert_eq!(Holds::Promised(0.95, 25).admits(measured), expected, "{mean}");
        };
        // Three standard errors of 50 and of 500 counts are 0.092 and 0.029.
        check(0.86, 2, true);
        check(0.85, 2, false);
        check(0.93, 20, true);
        check(0.92, 20, false);
        check(1.0, 20, true);
    }

    #[test]
    fn without_bias_is_within_three_standard_errors() {
        let check = |mean, expected| {
            let measured = Value { mean, spread: 0.2, trials: 16 };
            assert_eq!(Holds::Unbiased(1.0).admits(measured), expected, "{mean}");
        };
        check(1.14, true);
        check(0.86, true);
        check(1.16, false);
        // One trial alone says nothing of its error.
        let single = Value { mean: 1.01, spread: 0.0, trials: 1 };
        assert!(!Holds::Unbiased(1.0).admits(single));
    }

    #[test]
    fn a_verdict_is_as_sure_as_its_bound_is_far() {
        let check = |holds, trials, expected| {
            let claim = Claim { claim: "small", published: "0.5", value: "", holds, note: "" };
            let measured = Some(Value { mean: 0.9, spread: 0.2, trials });
            let claim = Box::leak(Box::new(claim));
            let judged = Judged { claim, measured, verdict: Verdict::Pass };
            let found = judged.standard_errors_to_bound();
            let near = |one: f64, other: f64| (one - other).abs() < 1e-9;
            assert!(
                found.zip(expected).map_or(found == expected, |(one, other)| near(one, other)),
                "{holds:?}: {found:?}"
            );
        };
        check(Holds::AtMost(1.0), 16, Some(2.0));
        check(Holds::AtLeast(0.8), 4, Some(1.0));
        check(Holds::Between(0.0, 1.0), 16, Some(2.0));
        check(Holds::AtMost(1.0), 1, None);
        let exact = Value { mean: 3.0, spread: 0.0, trials: 4 };
        let claim = Box::leak(Box::new(Claim {
            claim: "three",
            published: "3",
            value: "",
            holds: Holds::Between(3.0, 3.0),
            note: "",
        }));
        let judged = Judged { claim, measured: Some(exact), verdict: Verdict::Pass };
        assert_eq!(judged.standard_errors_to_bound(), Some(f64::INFINITY));
        check(Holds::Unbiased(1.0), 16, None);
        check(Holds::Differs, 16, None);
    }

    #[test]
    fn what_was_not_measured_never_passes() {
        check(Holds::AtMost(0.5), "other", Verdict::Cannot);
        check(Holds::Cannot, "", Verdict::Cannot);
        check(Holds::Differs, "error", Verdict::Differs);
    }
}

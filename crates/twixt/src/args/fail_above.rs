//! `--fail-above`: limits that the answer must not exceed.

use std::fmt;
use std::str::FromStr;

use twixt_collector::alerts::Measure;
use twixt_model::quantity::Nanoseconds;

use super::threshold::{Threshold, threshold};
use crate::exit::{Exit, note, usage};
use crate::output::units;

/// Limits, with commas between them. The command ends with code 10 if one is exceeded.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FailAbove(Vec<Limit>);

/// What is limited, and to how much.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Limit {
    pub(crate) measure: LimitMeasure,
    /// Nanoseconds, or a share.
    pub(crate) above: f64,
}

/// What can be limited.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum LimitMeasure {
    /// A time, or loss.
    Of(Measure),
    /// The share of round trips that took longer than this.
    ShareAbove(Nanoseconds),
    /// The share of packets out of order.
    Share,
}

/// What is known of a measure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Known {
    Exactly(f64),
    /// At least and at most.
    Between(f64, f64),
    Nothing,
}

/// Scopes that exceed a limit, and those of which it is not known.
#[derive(Debug, Default)]
pub(crate) struct Judgement {
    broken: Vec<String>,
    unknown: Vec<String>,
}

impl FromStr for FailAbove {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.split(',').map(str::parse).collect::<Result<_, _>>().map(Self)
    }
}

impl FromStr for Limit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let share = |value: &str| threshold(Measure::Loss, value);
        if let Some(value) = text.strip_prefix("share=") {
            return Ok(Self { measure: LimitMeasure::Share, above: share(value)? });
        }
        if let Some(rest) = text.strip_prefix("share:") {
            let (time, value) = rest.split_once('=').ok_or("write share:50ms=5%")?;
            let time = Nanoseconds::from_str(time).map_err(|error| error.to_string())?;
            return Ok(Self { measure: LimitMeasure::ShareAbove(time), above: share(value)? });
        }
        let Threshold { measure, above } = text.parse()?;
        Ok(Self { measure: LimitMeasure::Of(measure), above })
    }
}

impl fmt::Display for LimitMeasure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Of(measure) => measure.fmt(formatter),
            Self::ShareAbove(time) => {
                write!(formatter, "share above {}", units::round_duration(time.0 as f64))
            }
            Self::Share => formatter.write_str("share out of order"),
        }
    }
}

impl LimitMeasure {
    fn shown(self, value: f64) -> String {
        match self {
            Self::Of(measure) if measure.is_time() => units::duration(value),
            _ => units::percent(value),
        }
    }
}

impl FailAbove {
    /// Refuses what a command does not measure.
    pub(crate) fn check(&self, is_measured: impl Fn(LimitMeasure) -> bool) -> anyhow::Result<()> {
        match self.0.iter().find(|limit| !is_measured(limit.measure)) {
            Some(limit) => {
                Err(usage(format!("--fail-above: this command does not report {}", limit.measure)))
            }
            None => Ok(()),
        }
    }

    /// Compares what is known of one scope.
    pub(crate) fn judge(
        &self,
        judgement: &mut Judgement,
        scope: &dyn fmt::Display,
        known: impl Fn(LimitMeasure) -> Known,
    ) {
        for &Limit { measure, above } in &self.0 {
            let limit = measure.shown(above);
            let (low, high) = match known(measure) {
                Known::Exactly(value) => (value, value),
                Known::Between(low, high) => (low, high),
                Known::Nothing => (f64::NEG_INFINITY, f64::INFINITY),
            };
            if low > above {
                let value = measure.shown(low);
                judgement.broken.push(format!("{scope}: {measure} is {value}, above {limit}"));
            } else if high > above {
                judgement.unknown.push(format!("{scope}: {measure} is unknown, limit {limit}"));
            }
        }
    }
}

impl Judgement {
    /// Says what was found, and how the command ends with it. A limit that is exceeded prevails.
    pub(crate) fn conclude(self, exit: Exit) -> Exit {
        const SHOWN: usize = 5;
        for texts in [&self.broken, &self.unknown] {
            texts.iter().take(SHOWN).for_each(note);
            if let Some(more @ 1..) = texts.len().checked_sub(SHOWN) {
                note(format_args!("… and {} more", units::count(more as u64)));
            }
        }
        match (self.broken.is_empty(), self.unknown.is_empty(), exit) {
            (_, _, Exit::Interrupted) => exit,
            (false, ..) => Exit::Broken,
            (true, false, Exit::Done | Exit::Partial) => Exit::NoAnswer,
            _ => exit,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_as_people_write_them() {
        let read: FailAbove = "mean=5ms,loss=1%,share:50ms=5%,share=2%".parse().unwrap();
        let measures: Vec<String> =
            read.0.iter().map(|limit| format!("{} {}", limit.measure, limit.above)).collect();
        assert_eq!(
            measures,
            ["mean 5000000", "loss 0.01", "share above 50 ms 0.05", "share out of order 0.02"]
        );
        for text in ["", "mean", "mean=5", "share:5=1%", "share:50ms", "loss=2", "mean=5ms,"] {
            assert!(text.parse::<FailAbove>().is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_unknown_is_neither_broken_nor_kept() {
        let limits: FailAbove = "mean=5ms,loss=1%".parse().unwrap();
        let judge = |mean: Known, loss: Known| {
            let mut judgement = Judgement::default();
            limits.judge(&mut judgement, &"all", |measure| match measure {
                LimitMeasure::Of(Measure::Mean) => mean,
                _ => loss,
            });
            judgement.conclude(Exit::Done)
        };
        assert_eq!(judge(Known::Exactly(5e6), Known::Exactly(0.01)), Exit::Done);
        assert_eq!(judge(Known::Exactly(6e6), Known::Nothing), Exit::Broken);
        assert_eq!(judge(Known::Nothing, Known::Exactly(0.0)), Exit::NoAnswer);
        assert_eq!(judge(Known::Exactly(1.0), Known::Between(0.0, 0.5)), Exit::NoAnswer);
        assert_eq!(judge(Known::Exactly(1.0), Known::Between(0.02, 0.5)), Exit::Broken);
    }
}

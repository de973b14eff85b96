//! Which packets the segment loses, apart from those that overflow a queue.

use std::fmt;
use std::str::FromStr;

use crate::random::Stream;
use crate::spec::{Form, RangeError, Spec, SpecError, require, require_share};

/// Which packets the segment loses.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Loss {
    /// None.
    #[default]
    None,
    /// Each with the same probability, whatever happens to the others.
    Uniform {
        /// The probability.
        rate: f64,
    },
    /// Runs of consecutive packets of the segment, whatever their flow: the model of Gilbert
    /// (1960), in whose bad state every packet is lost.
    Burst {
        /// Share of all packets that is lost.
        rate: f64,
        /// Mean length of a run in packets.
        length: f64,
    },
}

const FORMS: &[Form] = &[
    Form::new("none", ""),
    Form::new("uniform", "0.001"),
    Form::new("burst", "rate=0.01,length=100"),
];

impl Loss {
    pub(crate) fn validate(&self) -> Result<(), RangeError> {
        match *self {
            Self::None => Ok(()),
            Self::Uniform { rate } => require_share("rate of the loss", rate),
            Self::Burst { rate, length } => {
                require_share("rate of the loss", rate)?;
                // Between two runs lies at least one packet that is not lost.
                let reachable = (1.0..1e9).contains(&length) && rate <= length / (length + 1.0);
                require(
                    reachable,
                    "length of the loss bursts",
                    length,
                    "at least 1 and at least rate / (1 - rate) packets",
                )
            }
        }
    }
}

/// Decides about one packet after the other.
pub(crate) struct LossProcess {
    /// Of losing the next packet if this one was not lost.
    begin: f64,
    /// Of losing the next packet if this one was lost.
    stay: f64,
    lost: bool,
}

impl LossProcess {
    pub(crate) fn new(model: &Loss, stream: &mut Stream) -> Self {
        let (begin, stay, rate) = match *model {
            Loss::None => (0.0, 0.0, 0.0),
            Loss::Uniform { rate } => (rate, rate, rate),
            // In the long run lost / kept = begin / (1 - stay), and a run has 1 / (1 - stay).
            Loss::Burst { rate, length } => {
                (rate / (1.0 - rate) / length, 1.0 - 1.0 / length, rate)
            }
        };
        Self { begin, stay, lost: stream.chance(rate) }
    }

    /// Whether the next packet is lost.
    pub(crate) fn strikes(&mut self, stream: &mut Stream) -> bool {
        self.lost = stream.chance(if self.lost { self.stay } else { self.begin });
        self.lost
    }
}

impl FromStr for Loss {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let spec = Spec::parse("loss", FORMS, text)?;
        let model = match spec.name() {
            "none" => Self::None,
            "uniform" => Self::Uniform { rate: spec.only("rate")? },
            _ => Self::Burst { rate: spec.key("rate")?, length: spec.key("length")? },
        };
        model.validate()?;
        Ok(model)
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => formatter.write_str("none"),
            Self::Uniform { rate } => write!(formatter, "uniform:{rate}"),
            Self::Burst { rate, length } => write!(formatter, "burst:rate={rate},length={length}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Purpose;

    const PACKETS: usize = 1_000_000;

    /// Share lost and mean length of a run.
    fn run(model: &str) -> (f64, f64) {
        let mut stream = Stream::new(11, Purpose::Loss);
        let mut process = LossProcess::new(&model.parse().unwrap(), &mut stream);
        let lost: Vec<bool> = (0..PACKETS).map(|_| process.strikes(&mut stream)).collect();
        let total = lost.iter().filter(|&&lost| lost).count() as f64;
        let runs = lost.windows(2).filter(|pair| !pair[0] && pair[1]).count() as f64;
        (total / PACKETS as f64, total / runs)
    }

    #[test]
    fn uniform_loss_has_its_rate_and_no_memory() {
        let (rate, length) = run("uniform:0.02");
        // Standard errors: sqrt(p (1 - p) / n) = 0.00014; runs of mean 1 / (1 - p) = 1.0204 with
        // deviation sqrt(p) / (1 - p) = 0.144 over about 19 600 runs: 0.001.
        assert!((rate - 0.02).abs() < 5.0 * 0.000_14, "{rate}");
        assert!((length - 1.0204).abs() < 5.0 * 0.001, "{length}");
    }

    #[test]
    fn bursts_have_their_rate_and_length() {
        let (rate, length) = run("burst:rate=0.3,length=20");
        // About 15 000 runs of mean 20 and deviation sqrt(380) = 19.5: standard error 0.159. The
        // states of successive packets correlate by r = stay - begin = 0.929, which multiplies
        // the variance of the rate by (1 + r) / (1 - r) = 27.
        assert!((length - 20.0).abs() < 5.0 * 0.159, "{length}");
        assert!((rate - 0.3).abs() < 5.0 * (0.21 * 27.0 / PACKETS as f64).sqrt(), "{rate}");
    }

    #[test]
    fn none_is_none_and_all_is_all() {
        assert_eq!(run("none").0, 0.0);
        assert_eq!(run("uniform:1").0, 1.0);
    }
}

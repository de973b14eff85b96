//! What is kept beside the algorithm that was asked for: a sample, for the percentiles that it
//! does not know.

use twixt_model::Estimate;
use twixt_synopsis::{Algorithm, Purpose, Sample, Synopsis, find};

use crate::chosen::ChosenAlgorithm;
use crate::error::OfflineError;
use crate::measured::Measured;
use crate::pairs::Concluded;
use crate::plan::Plan;

/// What else a plan says, beside its algorithms.
#[derive(Clone, Copy, Debug, Default)]
pub struct Beside {
    /// Bytes that a sample may take for each second of an epoch, if one is wanted.
    pub sample_bytes_per_second: Option<u64>,
    /// What is done about the clocks.
    pub clock: ClockUse,
    /// Every packet is to be in its estimate, from algorithms that keep every packet.
    pub packets: bool,
}

/// What is done about the clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClockUse {
    /// Report what they differ by, and leave delays as they were seen.
    #[default]
    Report,
    /// Take out of delays what is known: skew, steps, and with both directions the offset.
    Correct,
}

/// What was kept beside the algorithm that was asked for.
#[derive(Debug)]
pub struct KeptBeside {
    /// With the settings that followed from the budget.
    pub chosen: ChosenAlgorithm,
    /// State that one point kept per epoch.
    pub synopsis_bytes: u64,
}

impl Plan {
    /// The same, with a sample as its last algorithm, if one is wanted. `stretch_ns` is how long an
    /// epoch lasts that covers everything, where that is known.
    pub(crate) fn with_sample(&self, stretch_ns: Option<i64>) -> Result<Self, OfflineError> {
        let mut plan = self.clone();
        if let Some(bytes_per_second) = self.beside.sample_bytes_per_second {
            plan.algorithms.push(self.sample(bytes_per_second, stretch_ns)?);
        }
        Ok(plan)
    }

    fn sample(
        &self,
        bytes_per_second: u64,
        stretch_ns: Option<i64>,
    ) -> Result<ChosenAlgorithm, OfflineError> {
        let algorithm = sample_algorithm();
        if self.algorithms.iter().any(|chosen| std::ptr::eq(chosen.algorithm, algorithm)) {
            return Err(OfflineError::SampleTwice);
        }
        let length_ns =
            self.rule.length_ns().or(stretch_ns).ok_or(OfflineError::SampleWithoutLength)?;
        let bytes = (bytes_per_second as f64 * length_ns as f64 / 1e9).round() as u64;
        let settings = (algorithm.sized)(bytes).ok_or(OfflineError::SampleTooSmall { bytes })?;
        let prototype = (algorithm.start)(&settings)?;
        Ok(ChosenAlgorithm { algorithm, estimator: None, prototype })
    }
}

impl Measured {
    /// Gives the sample, which is what the last algorithm of `plan` concluded, to the estimates of
    /// the first: same packets, same scopes.
    pub(crate) fn share_sample(&mut self, plan: &Plan) {
        if plan.beside.sample_bytes_per_second.is_none() {
            return;
        }
        let (Some(sample), Some(chosen)) = (self.concluded.pop(), plan.algorithms.last()) else {
            return;
        };
        for concluded in &mut self.concluded {
            concluded.estimates.iter_mut().for_each(|estimate| fill(estimate, &sample));
        }
        let synopsis_bytes = sample.synopsis_bytes;
        self.beside = Some(KeptBeside { chosen: chosen.clone(), synopsis_bytes });
    }
}

fn fill(estimate: &mut Estimate, sample: &Concluded) {
    let is_same = |other: &&Estimate| {
        other.scope == estimate.scope && other.span.start == estimate.span.start
    };
    estimate.sample = sample.estimates.iter().find(is_same).and_then(|other| other.sample.clone());
}

fn sample_algorithm() -> &'static Algorithm {
    find(Purpose::Delay, Sample::NAME).expect("it is in the registry")
}

//! What is kept beside the algorithm that was asked for: a sample, for the percentiles that it
//! does not know.

use twixt_model::Estimate;
use twixt_synopsis::{Algorithm, Purpose, Sample, Synopsis, find};

use super::{Concluded, Measured, Plan};
use crate::args::{Chosen, ClockUse};
use crate::exit::usage;

/// What else a plan says, beside its algorithms.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Beside {
    /// Bytes that a sample may take for each second of an epoch, if one is wanted.
    pub(crate) sample_bytes_per_second: Option<u64>,
    /// What is done about the clocks.
    pub(crate) clock: ClockUse,
}

/// What was kept beside the algorithm that was asked for.
pub(crate) struct KeptBeside {
    /// With the settings that followed from the budget.
    pub(crate) chosen: Chosen,
    /// State that one point kept per epoch.
    pub(crate) synopsis_bytes: u64,
}

impl Plan<'_> {
    /// The same, with a sample as its last algorithm, if one is wanted. `stretch_ns` is how long an
    /// epoch lasts that covers everything, where that is known.
    pub(super) fn with_sample(&self, stretch_ns: Option<i64>) -> anyhow::Result<Self> {
        let mut algorithms: Vec<Chosen> = self.algorithms.iter().map(Chosen::again).collect();
        if let Some(bytes_per_second) = self.beside.sample_bytes_per_second {
            algorithms.push(self.sample(bytes_per_second, stretch_ns)?);
        }
        let (cutting, flows) = (self.cutting.clone(), self.flows.clone());
        Ok(Self { algorithms, cutting, flows, ..*self })
    }

    fn sample(&self, bytes_per_second: u64, stretch_ns: Option<i64>) -> anyhow::Result<Chosen> {
        let algorithm = sample_algorithm();
        if self.algorithms.iter().any(|chosen| std::ptr::eq(chosen.algorithm, algorithm)) {
            return Err(usage(
                "--sample-budget keeps a sample beside another algorithm; with --algorithm sample, \
                 --memory says how large it is in an epoch",
            ));
        }
        let length_ns = self.rule.length_ns().or(stretch_ns).ok_or_else(|| {
            usage(
                "--sample-budget is for each second, and with --one-pass nobody knows how many \
                 there will be: add --epoch",
            )
        })?;
        let bytes = (bytes_per_second as f64 * length_ns as f64 / 1e9).round() as u64;
        let settings = (algorithm.sized)(bytes).ok_or_else(|| {
            usage(format!(
                "--sample-budget: {bytes} bytes for an epoch are too few to say anything"
            ))
        })?;
        let prototype = (algorithm.start)(&settings).map_err(|error| usage(error.to_string()))?;
        Ok(Chosen { algorithm, estimator: None, prototype })
    }
}

impl Measured {
    /// Gives the sample, which is what the last algorithm of `plan` concluded, to the estimates of
    /// the first: same packets, same scopes.
    pub(super) fn share_sample(&mut self, plan: &Plan<'_>) {
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
        self.beside = Some(KeptBeside { chosen: chosen.again(), synopsis_bytes });
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

//! Delays of flows that each have a mean of their own.

use crate::random::Stream;
use twixt_model::quantity::Nanoseconds;

/// One or two medians of the flows' means.
#[derive(Clone, Copy, Debug)]
pub(super) struct Medians {
    /// Share of the flows that have the first.
    pub(super) fraction: f64,
    pub(super) first: Nanoseconds,
    pub(super) second: Nanoseconds,
}

impl Medians {
    pub(super) const fn one(median: Nanoseconds) -> Self {
        Self { fraction: 1.0, first: median, second: median }
    }
}

/// The flows' means, and how packets vary around them.
pub(super) struct PerFlow {
    /// By flow: the median of its packets, which lies below their mean.
    medians_ns: Vec<f64>,
    /// Deviation of the logarithm of a packet's delay.
    sigma: f64,
}

impl PerFlow {
    pub(super) fn new(
        medians: Medians,
        spread: f64,
        jitter: f64,
        flows: u32,
        stream: &mut Stream,
    ) -> Self {
        // A log-normal variable has the squared coefficient of variation exp(sigma^2) - 1, and
        // the mean median * exp(sigma^2 / 2).
        let sigma_squared = libm::log1p(jitter * jitter);
        let mean_to_median = libm::exp(-sigma_squared / 2.0);
        let median_of_flow = |stream: &mut Stream| {
            let is_first = stream.chance(medians.fraction);
            let median = if is_first { medians.first } else { medians.second };
            stream.log_normal(median.as_f64(), spread) * mean_to_median
        };
        let medians_ns = (0..flows).map(|_| median_of_flow(stream)).collect();
        Self { medians_ns, sigma: sigma_squared.sqrt() }
    }

    pub(super) fn draw(&self, flow: u32, stream: &mut Stream) -> f64 {
        stream.log_normal(self.medians_ns[flow as usize], self.sigma)
    }
}

//! How many counters for how small an error: sections 3.2 and 5 of the paper, as corrected.
//!
//! The paper takes a counter for a binomial variable in units of time, whose variance then depends
//! on the unit. What varies is which packets, and which whole flows, fall into a flow's counters.
//! That is what its equation 4 leaves over, which looks at one flow at a time; what solving for
//! all flows at once leaves over is in `joint.rs`.

mod joint;

use self::joint::Noise;
use super::ColateConfig;

/// Traffic that is planned for. Delays are relative to their mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ColateTraffic {
    /// Packets of the smallest flow there is.
    pub least: f64,
    /// Packets of the smallest flow that matters.
    pub smallest: f64,
    /// Packets of the largest flow. Between the least and this, flows of twice the size are taken to
    /// be half as many, so that all sizes have a like share of packets.
    pub largest: f64,
    /// Deviation of the flows' means.
    pub spread: f64,
    /// Deviation of one flow's packets.
    pub jitter: f64,
}

/// What is asked for, or reached: so small an error, so often.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reliability {
    /// Share of estimates that are within the interval.
    pub reliability: f64,
    /// Half of the interval, relative to the mean delay of the flow.
    pub interval: f64,
}

/// How means are estimated that are planned for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PlannedEstimator {
    /// All flows at once.
    #[default]
    Joint,
    /// The paper's equation 4, one flow at a time.
    Equation,
}

/// What a plan is made for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ColateGoal {
    /// How near estimates for the smallest flows shall be, how often.
    pub wanted: Reliability,
    /// How they are made.
    pub estimator: PlannedEstimator,
    /// Packets of an epoch, if it cannot be as short as the error asks for.
    pub packets: Option<f64>,
    /// The longest delay of a packet beyond the usual one, in units of the resolution: it decides
    /// on the width of sums.
    pub delay_units: f64,
}

/// Sizes, and what comes of them.
#[derive(Clone, Debug, PartialEq)]
pub struct ColatePlan {
    /// Counters, and how many of them to a flow.
    pub config: ColateConfig,
    /// Bits of a sum of times that suffice.
    pub time_bits: u32,
    /// Packets that an epoch may have.
    pub threshold: f64,
    /// What is reached with as many.
    pub reachable: Reliability,
}

/// Rounds in which the size of an epoch and the counters of a flow settle.
const ROUNDS: usize = 20;
const USUAL_PER_FLOW: f64 = 20.0;
/// More packets than any epoch has, as a power of two, and how finely the most are found.
const PACKETS_EXPONENT_MAX: f64 = 60.0;
const HALVINGS: usize = 24;
/// The shortest and the longest interval that is considered, as powers of two.
const INTERVAL_EXPONENTS: (f64, f64) = (-30.0, 30.0);
/// Flows that are looked at: by their neighbours, and by their own means.
const NEIGHBOURS: usize = 8;
const MEANS: usize = 32;
/// Part of the variance that spreading flows may add.
const LITTLE_NOISE: f64 = 0.01;

impl ColatePlan {
    /// The most packets that an epoch may have with so much memory, or what comes of those that
    /// it has. `None` for less memory than a flow needs.
    #[must_use]
    pub fn within(memory_bytes: u64, traffic: &ColateTraffic, goal: &ColateGoal) -> Option<Self> {
        let ColateGoal { wanted, estimator, packets, delay_units } = *goal;
        let counters = ColateConfig::within(memory_bytes)?.counters();
        let n = f64::from(counters);
        let (mut threshold, mut per_flow) = (packets.unwrap_or(n), 0);
        for _ in 0..ROUNDS {
            let before =
                std::mem::replace(&mut per_flow, traffic.per_flow(n, threshold, estimator));
            if before == per_flow {
                break;
            }
            let table = Table { counters: n, per_flow: f64::from(per_flow), estimator };
            let most = || table.threshold(traffic, wanted).max(traffic.largest);
            threshold = packets.unwrap_or_else(most);
        }
        let config = ColateConfig::new(counters, per_flow.min(counters), &[1.0]).ok()?;
        let fullest = traffic.fullest_counter(n, f64::from(per_flow), threshold);
        let time_bits = (fullest * delay_units).max(1.0).log2().ceil() as u32 + 2;
        let table = Table { counters: n, per_flow: f64::from(per_flow), estimator };
        let reachable = table.reachable(traffic, threshold, wanted);
        Some(Self { config, time_bits: time_bits.clamp(8, 64), threshold, reachable })
    }

    /// What the mean of a flow of `size` packets is off by, at one standard deviation and relative
    /// to the mean delay of all, in an epoch as planned.
    #[must_use]
    pub fn expected_error(
        &self,
        traffic: &ColateTraffic,
        estimator: PlannedEstimator,
        size: f64,
    ) -> f64 {
        let counters = f64::from(self.config.counters());
        let per_flow = f64::from(self.config.per_flow());
        Table { counters, per_flow, estimator }.error(traffic, self.threshold, size)
    }
}

/// Counters, and how they are asked.
#[derive(Clone, Copy)]
struct Table {
    counters: f64,
    per_flow: f64,
    estimator: PlannedEstimator,
}

impl Table {
    /// Error of a flow's mean, relative to that of all, at one standard deviation.
    fn error(self, traffic: &ColateTraffic, packets: f64, size: f64) -> f64 {
        let Self { counters, per_flow, estimator } = self;
        match estimator {
            PlannedEstimator::Joint => Noise::of(traffic, counters, per_flow, packets).error(size),
            PlannedEstimator::Equation => {
                let variance = packets * traffic.noise_of_packet(per_flow) / counters;
                counters / (counters - per_flow).max(1.0) * variance.sqrt() / size
            }
        }
    }

    /// What smallest flows are off by. A flow's counters may have more noise than those of others.
    fn scatter(self, traffic: &ColateTraffic, packets: f64) -> Scatter {
        let Self { counters, per_flow, estimator } = self;
        let errors = match estimator {
            PlannedEstimator::Joint => Noise::of(traffic, counters, per_flow, packets)
                .errors(traffic.smallest, &normal_quantiles::<NEIGHBOURS>()),
            PlannedEstimator::Equation => vec![self.error(traffic, packets, traffic.smallest)],
        };
        Scatter { errors, means: traffic.flow_means() }
    }

    /// The most packets with which the smallest flow is as near as wanted. Errors grow with
    /// packets, so that halving finds it.
    fn threshold(self, traffic: &ColateTraffic, wanted: Reliability) -> f64 {
        let holds = |exponent: f64| {
            let scatter = self.scatter(traffic, exponent.exp2());
            scatter.reliability(wanted.interval) >= wanted.reliability
        };
        halved((0.0, PACKETS_EXPONENT_MAX), holds).exp2()
    }

    /// As asked if that can be; else how often the interval holds, and which one would.
    fn reachable(self, traffic: &ColateTraffic, packets: f64, wanted: Reliability) -> Reliability {
        let scatter = self.scatter(traffic, packets);
        let reliability = scatter.reliability(wanted.interval);
        if reliability >= wanted.reliability {
            return wanted;
        }
        let is_short = |exponent: f64| scatter.reliability(exponent.exp2()) < wanted.reliability;
        let interval = halved(INTERVAL_EXPONENTS, is_short).exp2();
        Reliability { reliability, interval }
    }
}

/// What flows of one size are off by, and what that is relative to.
struct Scatter {
    /// At one standard deviation, relative to the mean of all flows.
    errors: Vec<f64>,
    /// Means of flows, relative to that of all.
    means: Vec<f64>,
}

impl Scatter {
    /// Share of flows whose mean is off by less than `interval` times itself: an error that is small
    /// for most flows is large for one that is fast.
    fn reliability(&self, interval: f64) -> f64 {
        let pairs =
            self.errors.iter().flat_map(|error| self.means.iter().map(move |mean| mean / error));
        let sum: f64 = pairs.map(|deviations| within(interval * deviations)).sum();
        sum / (self.errors.len() * self.means.len()) as f64
    }
}

/// The largest number for which something holds that holds below it.
fn halved((mut low, mut high): (f64, f64), holds: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if holds(middle) { low = middle } else { high = middle }
    }
    low
}

/// Values of a normal distribution that are equally likely, in order.
fn normal_quantiles<const N: usize>() -> [f64; N] {
    std::array::from_fn(|index| {
        let share = (2.0 * index as f64 + 1.0) / N as f64 - 1.0;
        two_sided_quantile(share.abs()).copysign(share)
    })
}

impl ColateTraffic {
    /// Mean size of a flow as a packet finds it: sum of squares over sum.
    fn mean_square_size(&self) -> f64 {
        match self.largest > self.least {
            true => (self.largest - self.least) / (self.largest / self.least).ln(),
            false => self.least,
        }
    }

    /// What a packet adds to the variance of what others leave in a flow's counters.
    fn noise_of_packet(&self, per_flow: f64) -> f64 {
        let packet = self.noise_of_one();
        let together = self.spread * self.spread * (self.mean_square_size() - 1.0);
        per_flow * packet + together
    }

    /// Means of flows that are equally likely, relative to that of all. They are taken to be
    /// log-normal.
    fn flow_means(&self) -> Vec<f64> {
        let variance = (self.spread * self.spread).ln_1p();
        let mean = |quantile: f64| (quantile * variance.sqrt() - variance / 2.0).exp();
        normal_quantiles::<MEANS>().map(mean).to_vec()
    }

    fn noise_of_one(&self) -> f64 {
        self.spread * self.spread + self.jitter * self.jitter
    }

    /// Counters that spread the largest flow down to what the others hold: equations 13 to 15.
    /// More than usual only while they add little to the noise, which they never do where all
    /// flows are solved for at once.
    fn per_flow(&self, counters: f64, packets: f64, estimator: PlannedEstimator) -> u32 {
        let load = (packets / counters).max(1.0);
        let cheap = match estimator {
            PlannedEstimator::Joint => USUAL_PER_FLOW,
            PlannedEstimator::Equation => {
                LITTLE_NOISE * self.noise_of_packet(0.0) / self.noise_of_one()
            }
        };
        let most = cheap.clamp(USUAL_PER_FLOW, 1024.0).min(counters / 2.0).max(1.0);
        (self.largest / load).ceil().clamp(1.0, most) as u32
    }

    fn fullest_counter(&self, counters: f64, per_flow: f64, packets: f64) -> f64 {
        self.largest / per_flow + packets / counters
    }
}

/// Variance of what others add to the counters of a flow, `per_flow` of `counters`, from the sum
/// of squares over all packets and that over the totals of all flows: packets fall there one by
/// one, and those of one flow together.
#[must_use]
pub fn noise_variance(counters: f64, per_flow: f64, packet_squares: f64, flow_squares: f64) -> f64 {
    (per_flow * packet_squares + (flow_squares - packet_squares)) / counters
}

/// The interval of the paper's equation 21, relative to `own` of `all`, at `quantile` standard
/// deviations. (Printed with n - m where (n - m)^2 belongs.)
#[must_use]
pub fn binomial_interval(counters: f64, per_flow: f64, all: f64, own: f64, quantile: f64) -> f64 {
    let (n, m) = (counters, per_flow);
    let variance = own / m * (1.0 - 1.0 / m) + (all - own) / n * (1.0 - 1.0 / n);
    quantile * n * m.sqrt() / (n - m) * variance.sqrt() / own
}

/// How many standard deviations to both sides hold so large a share of a normal distribution.
#[must_use]
pub fn two_sided_quantile(share: f64) -> f64 {
    let (mut low, mut high) = (0.0, 10.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if within(middle) < share { low = middle } else { high = middle }
    }
    low
}

/// Share of a normal distribution within so many standard deviations, by Simpson's rule.
fn within(quantile: f64) -> f64 {
    const STEPS: u32 = 400;
    let step = quantile.min(10.0) / f64::from(STEPS);
    let density = |index: u32| (-(f64::from(index) * step).powi(2) / 2.0).exp();
    let weight = |index: u32| match index {
        0 | STEPS => 1.0,
        odd if odd % 2 == 1 => 4.0,
        _ => 2.0,
    };
    let sum: f64 = (0..=STEPS).map(|index| weight(index) * density(index)).sum();
    sum * step / 3.0 * (2.0 / std::f64::consts::PI).sqrt()
}

#[cfg(test)]
mod tests;

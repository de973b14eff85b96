//! LDA: what its experiments share.
//!
//! The paper simulates a second of a 10 Gbit/s line, 5 million packets, with delays drawn one by
//! one. Its mean of 0.2 us is 0.2 ms here: delays are whole nanoseconds, and rounding must not be
//! part of the result.

pub(super) mod banks;
pub(super) mod constant;
pub(super) mod loss;
pub(super) mod plan;
pub(super) mod sampling;
pub(super) mod test_packets;

use twixt_model::{Delay, DelayEstimate, Observation, PacketDigest, Span, Timestamp, mix};
use twixt_synopsis::{Lda, LdaConfig, Pair, Question, Synopsis, TwoPoint};

use crate::experiment::{Setting, Size};

/// Rows of all banks together.
const ROWS: u32 = 1024;
/// Mean of all distributions.
const MEAN_NS: f64 = 200_000.0;
const LOSSES: [f64; 8] = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2];

/// How single delays are distributed; the mean is always the same.
#[derive(Clone, Copy)]
enum Law {
    Weibull { shape: f64 },
    Pareto { shape: f64 },
}

impl Law {
    /// The delay that a share of all delays is below.
    fn quantile(self, share: f64) -> f64 {
        let rest = 1.0 - share;
        match self {
            Self::Weibull { shape } => {
                // Gamma(1 + 1/b) for b = 0.6, 0.8 and 1.
                let gamma = match shape {
                    ..0.7 => 1.504_575_488_251_556,
                    ..0.9 => 1.133_003_096,
                    _ => 1.0,
                };
                MEAN_NS / gamma * (-rest.ln()).powf(1.0 / shape)
            }
            Self::Pareto { shape } => MEAN_NS * (shape - 1.0) / shape * rest.powf(-1.0 / shape),
        }
    }
}

/// How many packets a second has.
const fn packets(size: Size) -> u64 {
    size.pick(1_000_000, 5_000_000)
}

/// Numbers from 0 to 1 that follow from a place and a seed.
fn uniform(place: u64, seed: u64) -> f64 {
    (mix(mix(place).wrapping_add(seed)) >> 11) as f64 / (1_u64 << 53) as f64
}

/// One delay for each packet.
fn delays(law: Law, setting: Setting) -> Vec<i64> {
    let delay = |packet| law.quantile(uniform(packet, setting.seed)).round() as i64;
    (0..packets(setting.size)).map(delay).collect()
}

/// Losses that strike each packet alike.
fn uniform_losses(count: usize, loss: f64, seed: u64) -> Vec<bool> {
    (0..count as u64).map(|packet| uniform(packet, !seed) < loss).collect()
}

/// Episodes in which all packets are lost, 100 on average.
fn episodes_of_loss(count: usize, loss: f64, seed: u64) -> Vec<bool> {
    const LENGTH: f64 = 100.0;
    let mut lost = vec![false; count];
    let (mut at, mut draw) = (0.0, 0);
    while (at as usize) < count {
        let mut exponential = |mean: f64| {
            draw += 1;
            -mean * (1.0 - uniform(draw, seed ^ 0x6570_6973)).ln()
        };
        at += exponential(LENGTH * (1.0 - loss) / loss);
        let end = at + exponential(LENGTH);
        lost[(at as usize).min(count)..(end as usize).min(count)].fill(true);
        at = end;
    }
    lost
}

/// What LDA says of packets with these delays, and the truth: mean and deviation of those that
/// arrived.
struct Compared {
    centred: Option<DelayEstimate>,
    printed: Option<DelayEstimate>,
    mean_ns: f64,
    deviation_ns: f64,
}

fn compare(config: &LdaConfig, delays: &[i64], lost: &[bool], seed: u64) -> Compared {
    let (mut upstream, mut downstream) = (Lda::new(config), Lda::new(config));
    let (mut count, mut sum, mut squares) = (0.0, 0.0, 0.0);
    let origin = delays.first().copied().unwrap_or_default();
    for (packet, (&delay, &lost)) in delays.iter().zip(lost).enumerate() {
        let sent = sent(packet, seed);
        upstream.update(&sent);
        if !lost {
            downstream.update(&Observation { time: sent.time + Delay::from_nanos(delay), ..sent });
            let relative = (delay - origin) as f64;
            (count, sum, squares) = (count + 1.0, sum + relative, squares + relative * relative);
        }
    }
    let estimate = |estimator| {
        let about = Question::about(Span::at(Timestamp::from_nanos(0)));
        let pair = Pair { upstream: &upstream, downstream: &downstream };
        Lda::estimate(pair, &Question { estimator, ..about }).first().and_then(|one| one.delay)
    };
    Compared {
        centred: estimate(None),
        printed: estimate(Some("printed")),
        mean_ns: origin as f64 + sum / count,
        deviation_ns: (squares / count - (sum / count).powi(2)).sqrt(),
    }
}

/// A packet upstream: one every 200 ns.
fn sent(packet: usize, seed: u64) -> Observation {
    Observation {
        time: Timestamp::from_nanos(packet as i64 * 200),
        digest: PacketDigest(mix(mix(packet as u64).wrapping_add(seed << 20))),
        length: 250,
        ..Observation::default()
    }
}

impl Compared {
    /// Relative to the mean.
    fn mean_error(&self) -> Option<f64> {
        Some((self.centred?.mean_ns() / self.mean_ns - 1.0).abs())
    }

    /// Relative to the deviation.
    fn deviation_error(&self) -> Option<f64> {
        Some((self.centred?.deviation_ns? / self.deviation_ns - 1.0).abs())
    }

    /// The same with the printed estimator. A negative variance is not an answer: as wrong as zero.
    fn printed_deviation_error(&self) -> Option<f64> {
        Some((self.printed?.deviation_ns.unwrap_or(0.0) / self.deviation_ns - 1.0).abs())
    }

    /// Whether the 95 % interval holds the truth: 1 or 0.
    fn covered(&self) -> Option<f64> {
        let delay = self.centred?;
        let inside = (delay.mean_ns() - self.mean_ns).abs() <= delay.half_width_ns?;
        Some(f64::from(u8::from(inside)))
    }
}

impl Compared {
    /// The paper's bound on the error of the mean that holds in 98 % of cases, equation (1),
    /// relative to the mean, with the deviation as estimated.
    fn bound(&self) -> Option<f64> {
        const EXCEEDED: f64 = 0.02;
        let delay = self.centred?;
        let deviations = (2.0 * (2.0 / EXCEEDED).ln() / delay.count as f64).sqrt();
        Some(delay.deviation_ns? * deviations / self.mean_ns)
    }

    /// Whether that bound holds: 1 or 0.
    fn bounded(&self) -> Option<f64> {
        Some(f64::from(u8::from(self.mean_error()? <= self.bound()?)))
    }
}

/// One bank that samples for so many losses as the paper has it: p = alpha m / (L + 1).
fn tuned(rows: u32, lost: f64, alpha: f64) -> f64 {
    (alpha * f64::from(rows) / (lost + 1.0)).min(1.0)
}

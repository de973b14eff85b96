//! When packets enter the segment, and of which flow they are.
//!
//! The trace is a loop. A flow starts anywhere on it, its packets follow in bursts, and what runs
//! past the end continues at the beginning, like flows that were under way when a capture
//! started. So every packet is as likely at one time as at any other, and the rate holds from the
//! first packet to the last without a ramp at either end.

use std::fmt;
use std::str::FromStr;

use twixt_model::{FlowKey, Timestamp};

use crate::config::{Config, PACKETS_MAX, SimulationConfigError};
use crate::delay::require_length;
use crate::random::{Purpose, Stream};
use crate::spec::{Form, RangeError, Spec, SpecError, require};
use twixt_model::quantity::Nanoseconds;

/// A packet of a user's own trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When it enters the segment.
    pub time: Timestamp,
    /// Of which flow it is.
    pub key: FlowKey,
    /// Length of the IP packet in bytes.
    pub length: u32,
    /// Says which frame of the user's it is; handed back by
    /// [`crate::Simulation::original_frame`], and not looked at here.
    pub frame: u64,
}

/// How the packets of a flow follow each other: in bursts of geometric length, with exponential
/// gaps within and between them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Burst {
    /// Mean length in packets.
    pub length: f64,
    /// Mean gap within a burst.
    pub gap: Nanoseconds,
}

const FORM: Form = Form::new("", "length=8,gap=20us");

/// Mean gap between the bursts of small flows: about a round trip. Large flows, which at that
/// pace would need longer than the trace, have the shorter gaps that make them fill it once.
const PAUSE_MAX_NS: f64 = 50e6;

/// Packets that flows may have before the trace is cut.
const DRAWN_MAX: u64 = 1 << 30;

impl Default for Burst {
    fn default() -> Self {
        Self { length: 8.0, gap: Nanoseconds(20_000) }
    }
}

impl Burst {
    pub(crate) fn validate(&self) -> Result<(), RangeError> {
        let good = (1.0..=1e6).contains(&self.length);
        require(good, "length of a burst", self.length, "1 to 1000000 packets")?;
        require(self.gap.0 >= 0, "gap within a burst", self.gap, "0 or more")?;
        require_length("gap within a burst", self.gap)
    }
}

impl FromStr for Burst {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let spec = Spec::with_form("burst", &FORM, text)?;
        let burst = Self { length: spec.key("length")?, gap: spec.key("gap")? };
        burst.validate()?;
        Ok(burst)
    }
}

impl fmt::Display for Burst {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "length={},gap={}", self.length, self.gap)
    }
}

/// A packet that enters, counted from the start of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entering {
    pub(crate) time_ns: i64,
    pub(crate) flow: u32,
}

/// All packets of a checked configuration, in order of time.
pub(crate) fn schedule(config: &Config) -> Result<Vec<Entering>, SimulationConfigError> {
    let sizes = flow_sizes(config)?;
    let total: u64 = sizes.iter().sum();
    let wanted = config.packets.map_or(total, |packets| packets.min(total));
    let round = Loop {
        duration_ns: total as f64 / config.rate.0 as f64 * 1e9,
        burst: config.burst,
        seed: config.seed,
    };
    // Where the trace is cut, most of it need not be kept. The rate fluctuates, so keep a little
    // more than should be enough; if it was not, keep more.
    let mut share = if wanted == total { 1.0 } else { wanted as f64 / total as f64 * 1.1 };
    loop {
        let mut packets = round.place(&sizes, share);
        if packets.len() as u64 >= wanted || share >= 1.0 {
            packets.sort_unstable();
            packets.truncate(wanted as usize);
            return Ok(packets);
        }
        share *= 2.0;
    }
}

/// Packets of each flow: as drawn, or scaled up by one factor if fewer than asked for.
fn flow_sizes(config: &Config) -> Result<Vec<u64>, SimulationConfigError> {
    let mut stream = Stream::new(config.seed, Purpose::FlowSize);
    let mut sizes = Vec::with_capacity(config.flows as usize);
    let mut total = 0;
    let most = if config.packets.is_some() { DRAWN_MAX } else { PACKETS_MAX };
    for _ in 0..config.flows {
        let size = config.flow_size.draw(&mut stream);
        total += size;
        if total > most {
            return Err(SimulationConfigError::TooManyPackets { packets: total, most });
        }
        sizes.push(size);
    }
    if let Some(packets) = config.packets.filter(|&packets| packets > total) {
        scale(&mut sizes, total, packets);
    }
    Ok(sizes)
}

/// Scales sizes that sum to `from` so that they sum to `to`, exactly: each cumulative sum is
/// scaled and rounded down, which leaves no flow more than one packet off.
fn scale(sizes: &mut [u64], from: u64, to: u64) {
    let scaled = |sum: u64| (u128::from(sum) * u128::from(to) / u128::from(from)) as u64;
    let mut sum = 0;
    for size in sizes {
        let before = scaled(sum);
        sum += *size;
        *size = scaled(sum) - before;
    }
}

struct Loop {
    duration_ns: f64,
    burst: Burst,
    seed: u64,
}

impl Loop {
    /// The packets that fall into the first `share` of the loop, flow by flow.
    fn place(&self, sizes: &[u64], share: f64) -> Vec<Entering> {
        let mut stream = Stream::new(self.seed, Purpose::Arrival);
        let horizon_ns = self.duration_ns * share;
        let mut packets = Vec::new();
        for (flow, &size) in (0..).zip(sizes) {
            self.place_flow(size, &mut stream, |time_ns| {
                if time_ns < horizon_ns {
                    packets.push(Entering { time_ns: time_ns as i64, flow });
                }
            });
        }
        packets
    }

    fn place_flow(&self, size: u64, stream: &mut Stream, mut sink: impl FnMut(f64)) {
        let gap_ns = self.burst.gap.as_f64();
        let pause_ns = self.pause_ns(size);
        let mut time_ns = stream.unit() * self.duration_ns;
        let mut left_in_burst = stream.geometric(self.burst.length);
        for _ in 0..size {
            if left_in_burst == 0 {
                left_in_burst = stream.geometric(self.burst.length);
                time_ns += pause_ns * stream.exponential();
            }
            time_ns %= self.duration_ns;
            sink(time_ns);
            left_in_burst -= 1;
            if left_in_burst > 0 {
                time_ns += gap_ns * stream.exponential();
            }
        }
    }

    /// Mean gap between bursts: a burst and a pause together take what makes the flow go round
    /// the loop once.
    fn pause_ns(&self, size: u64) -> f64 {
        let Burst { length, gap } = self.burst;
        let cycle_ns = self.duration_ns * length / size as f64;
        (cycle_ns - (length - 1.0) * gap.as_f64()).clamp(0.0, PAUSE_MAX_NS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FlowSize;
    use twixt_model::quantity::PacketRate;

    fn config(flows: u32, flow_size: &str, packets: Option<u64>) -> Config {
        let flow_size: FlowSize = flow_size.parse().unwrap();
        Config { flows, flow_size, packets, rate: PacketRate(100_000), ..Config::default() }
    }

    fn count_by_flow(packets: &[Entering], flows: usize) -> Vec<u64> {
        let mut counts = vec![0; flows];
        for packet in packets {
            counts[packet.flow as usize] += 1;
        }
        counts
    }

    #[test]
    fn flows_have_their_packets_in_order_of_time() {
        let packets = schedule(&config(100, "fixed:packets=50", None)).unwrap();
        assert_eq!(count_by_flow(&packets, 100), [50; 100]);
        assert!(packets.is_sorted());
        // 5000 packets at 100 000 a second.
        assert!(packets.iter().all(|packet| (0..50_000_000).contains(&packet.time_ns)));
    }

    #[test]
    fn the_rate_holds_in_every_part_of_the_trace() {
        let packets = schedule(&config(20_000, "fixed:packets=10", None)).unwrap();
        let mut tenths = [0_u32; 10];
        for packet in &packets {
            tenths[(packet.time_ns / 200_000_000) as usize] += 1;
        }
        // Bursts of mean 8, cut by the end of the flow, come and go as a whole: the variance of a
        // count is at most 10 packets of a flow at once times that of independent packets.
        let error = (20_000.0_f64 * 0.9 * 10.0).sqrt();
        for count in tenths {
            assert!((f64::from(count) - 20_000.0).abs() < 5.0 * error, "{tenths:?}");
        }
    }

    #[test]
    fn too_few_packets_are_scaled_by_one_factor() {
        let packets = schedule(&config(10, "fixed:packets=3", Some(75))).unwrap();
        let counts = count_by_flow(&packets, 10);
        assert_eq!(counts.iter().sum::<u64>(), 75);
        assert!(counts.iter().all(|&count| count == 7 || count == 8), "{counts:?}");
    }

    #[test]
    fn too_many_packets_are_cut() {
        let whole = schedule(&config(1000, "fixed:packets=30", None)).unwrap();
        for wanted in [1, 700, 29_999] {
            let cut = schedule(&config(1000, "fixed:packets=30", Some(wanted))).unwrap();
            assert_eq!(cut, whole[..wanted as usize]);
        }
    }

    #[test]
    fn what_cannot_be_held_is_refused() {
        let error = schedule(&config(3, "fixed:packets=100000000", None)).unwrap_err();
        assert!(error.to_string().contains("at most 134217728"), "{error}");
    }

    #[test]
    fn packets_come_in_bursts() {
        let config =
            Config { flows: 1, rate: PacketRate(100), ..config(1, "fixed:packets=100000", None) };
        let packets = schedule(&config).unwrap();
        let gaps = packets.windows(2).map(|pair| pair[1].time_ns - pair[0].time_ns);
        let within: Vec<f64> = gaps.map(|gap| gap as f64).filter(|&gap| gap < 200_000.0).collect();
        let mean = within.iter().sum::<f64>() / within.len() as f64;
        // 7 in 8 gaps are short (standard error 0.001) and have a mean of 20 us (0.07 us); pauses
        // of mean 50 ms are short by chance in 1 of 2000 cases, and then of mean 100 us.
        assert!((within.len() as f64 / 100_000.0 - 0.875).abs() < 0.006, "{}", within.len());
        assert!((mean - 20_000.0).abs() < 400.0, "{mean}");
    }
}

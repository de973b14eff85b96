//! Which packets are overtaken by later ones.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use twixt_model::{FlowKey, Prefix, mix};

use crate::SimulatedPacket;
use crate::delay::require_length;
use crate::random::Stream;
use crate::spec::{Form, RangeError, Spec, SpecError, require, require_share};
use twixt_model::quantity::Nanoseconds;

/// Which packets are overtaken by later ones.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Reorder {
    /// None, beyond what the delay model does.
    #[default]
    None,
    /// Packets chosen at random take longer, by up to `extent`. Whether one is overtaken depends
    /// on what follows it.
    Uniform {
        /// Share of the packets that are chosen.
        rate: f64,
        /// They take longer by something uniform between 0 and this.
        extent: Nanoseconds,
    },
    /// Packets to some destination prefixes (24 bits; 48 in IPv6) are delivered just after their
    /// successor in the flow. Those without a successor within 10 ms are left alone.
    Prefixes {
        /// Share of the destination prefixes that are afflicted, rounded up.
        share: f64,
        /// Share of their packets that are overtaken.
        rate: f64,
    },
}

const FORMS: &[Form] = &[
    Form::new("none", ""),
    Form::new("uniform", "rate=0.01,extent=1ms"),
    Form::new("prefixes", "share=0.03,rate=0.05"),
];

/// How far behind a successor may be to overtake.
const REACH_NS: i64 = 10_000_000;
/// How far behind the successor the overtaken packet is delivered.
const BEHIND_NS: i64 = 1_000;

impl Reorder {
    pub(crate) fn validate(&self) -> Result<(), RangeError> {
        match *self {
            Self::None => Ok(()),
            Self::Uniform { rate, extent } => {
                require_share("rate of the reordering", rate)?;
                require(extent.0 > 0, "extent of the reordering", extent, "positive")?;
                require_length("extent of the reordering", extent)
            }
            Self::Prefixes { share, rate } => {
                require_share("share of the prefixes", share)?;
                require_share("rate of the reordering", rate)
            }
        }
    }

    /// Delays packets that were on their way to `keys`. They are in order of entry.
    pub(crate) fn apply(
        &self,
        packets: &mut [SimulatedPacket],
        keys: &[FlowKey],
        stream: &mut Stream,
    ) {
        match *self {
            Self::None => {}
            Self::Uniform { rate, extent } => prolong(packets, rate, extent, stream),
            Self::Prefixes { share, rate } => {
                let afflicted = afflicted_flows(keys, share, stream.bits());
                overtake(packets, &afflicted, rate, stream);
            }
        }
    }
}

fn prolong(packets: &mut [SimulatedPacket], rate: f64, extent: Nanoseconds, stream: &mut Stream) {
    for packet in packets {
        let extra_ns = prolongation_ns(rate, extent, stream);
        if let Some(crossing_ns) = packet.crossing_ns() {
            packet.deliver(crossing_ns + extra_ns);
        }
    }
}

/// By how much the next packet takes longer; mostly by nothing.
pub(crate) fn prolongation_ns(rate: f64, extent: Nanoseconds, stream: &mut Stream) -> i64 {
    let (chosen, part) = (stream.chance(rate), stream.positive_unit());
    if chosen { (part * extent.as_f64()).ceil() as i64 } else { 0 }
}

/// Backwards, because a packet's successor may be overtaken itself.
fn overtake(packets: &mut [SimulatedPacket], afflicted: &[bool], rate: f64, stream: &mut Stream) {
    let mut next_exit_ns: Vec<Option<i64>> = vec![None; afflicted.len()];
    for packet in packets.iter_mut().rev() {
        let chosen = stream.chance(rate);
        let flow = packet.flow as usize;
        let Some(exit_ns) = packet.exit_ns() else { continue };
        let overtaker = next_exit_ns[flow].filter(|next| next.abs_diff(exit_ns) <= REACH_NS as u64);
        if let Some(next_ns) = overtaker.filter(|_| chosen && afflicted[flow]) {
            packet.deliver(next_ns.max(exit_ns) + BEHIND_NS - packet.entered_ns());
        }
        next_exit_ns[flow] = packet.exit_ns();
    }
}

/// By flow, whether its destination prefix is one of those chosen.
fn afflicted_flows(keys: &[FlowKey], share: f64, salt: u64) -> Vec<bool> {
    let mut prefixes: Vec<Prefix> = keys.iter().map(destination_prefix).collect();
    prefixes.sort_unstable();
    prefixes.dedup();
    prefixes.sort_by_key(|prefix| mix(bits(prefix.address()) ^ salt));
    prefixes.truncate((share * prefixes.len() as f64).ceil() as usize);
    prefixes.sort_unstable();
    keys.iter().map(|key| prefixes.binary_search(&destination_prefix(key)).is_ok()).collect()
}

fn destination_prefix(key: &FlowKey) -> Prefix {
    Prefix::of(key.destination, if key.destination.is_ipv4() { 24 } else { 48 })
}

fn bits(address: IpAddr) -> u64 {
    match address {
        IpAddr::V4(address) => u64::from(address.to_bits()),
        IpAddr::V6(address) => (address.to_bits() >> 64) as u64,
    }
}

impl FromStr for Reorder {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let spec = Spec::parse("reordering", FORMS, text)?;
        let model = match spec.name() {
            "none" => Self::None,
            "uniform" => Self::Uniform { rate: spec.key("rate")?, extent: spec.key("extent")? },
            _ => Self::Prefixes { share: spec.key("share")?, rate: spec.key("rate")? },
        };
        model.validate()?;
        Ok(model)
    }
}

impl fmt::Display for Reorder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => formatter.write_str("none"),
            Self::Uniform { rate, extent } => {
                write!(formatter, "uniform:rate={rate},extent={extent}")
            }
            Self::Prefixes { share, rate } => {
                write!(formatter, "prefixes:share={share},rate={rate}")
            }
        }
    }
}

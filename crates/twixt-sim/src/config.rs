//! What to simulate.

use std::fmt;
use std::str::FromStr;

use twixt_model::Timestamp;

use crate::delay::require_length;
use crate::spec::{RangeError, SpecError, require};
use crate::{Burst, Clock, DelayModel, FlowSize, Loss, PacketSize, Reorder};
use twixt_model::quantity::{Nanoseconds, PacketRate};

/// Packets of a simulation at most. Each takes 40 bytes, and 16 more while it is made.
pub const PACKETS_MAX: u64 = 1 << 27;

/// Flows of a simulation at most: so many distinct five-tuples are set aside for them.
pub const FLOWS_MAX: u32 = 256 * 64_512;

/// What to simulate. A value of this type may be nonsense; [`crate::Simulation::run`] says so.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Everything random follows from this.
    pub seed: u64,
    /// When the trace starts.
    pub start: Timestamp,
    /// How many flows are drawn.
    pub flows: u32,
    /// Mean rate of all flows together, from the first packet to the last.
    pub rate: PacketRate,
    /// How many packets there shall be: flows are scaled up to as many, or the trace is cut
    /// after as many. `None`: as many as the flows have.
    pub packets: Option<u64>,
    /// How many packets a flow has.
    pub flow_size: FlowSize,
    /// How the packets of a flow follow each other.
    pub burst: Burst,
    /// How many bytes a packet has.
    pub packet_size: PacketSize,
    /// How long packets take to cross the segment.
    pub delay: DelayModel,
    /// What every packet takes in addition, in both directions.
    pub propagation: Nanoseconds,
    /// Which packets the segment loses. Return traffic is spared.
    pub loss: Loss,
    /// Which packets are overtaken. Return traffic is spared.
    pub reorder: Reorder,
    /// Error of the downstream clock.
    pub clock: Clock,
    /// Return traffic.
    pub reverse: Reverse,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            seed: 1,
            start: Timestamp::from_nanos(1_704_067_200_000_000_000), // 2024-01-01T00:00:00Z
            flows: 20_000,
            rate: PacketRate(500_000),
            packets: None,
            flow_size: FlowSize::Pareto { shape: 1.05, min: 2.53, max: 200_000.0 },
            burst: Burst::default(),
            packet_size: PacketSize::Imix,
            delay: DelayModel::Weibull { shape: 0.6, scale: Nanoseconds(100_000) },
            propagation: Nanoseconds(0),
            loss: Loss::None,
            reorder: Reorder::None,
            clock: Clock::default(),
            reverse: Reverse::None,
        }
    }
}

impl Config {
    /// Checks what concerns the segment, whatever the traffic.
    pub(crate) fn validate_segment(&self) -> Result<(), SimulationConfigError> {
        require(self.propagation.0 >= 0, "propagation", self.propagation, "0 or more")?;
        require_length("propagation", self.propagation)?;
        self.delay.validate()?;
        self.loss.validate()?;
        self.reorder.validate()?;
        self.clock.validate()?;
        if let Reverse::Through(model) = &self.reverse {
            model.validate()?;
        }
        // Times in 64 bits reach to the year 2262; half of that leaves room for everything else.
        let near = self.start.as_nanos().unsigned_abs() <= i64::MAX as u64 / 2;
        require(near, "start", self.start.as_nanos(), "between 1824 and 2116")?;
        Ok(())
    }

    /// Checks what concerns synthetic traffic.
    pub(crate) fn validate_traffic(&self) -> Result<(), SimulationConfigError> {
        self.flow_size.validate()?;
        self.burst.validate()?;
        self.packet_size.validate()?;
        require((1..=FLOWS_MAX).contains(&self.flows), "flows", self.flows, "1 to 16515072")?;
        require(self.rate.0 > 0, "rate", self.rate, "positive")?;
        if let Some(packets) = self.packets {
            require((1..=PACKETS_MAX).contains(&packets), "packets", packets, "1 to 134217728")?;
        }
        Ok(())
    }
}

/// Why a configuration cannot be simulated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SimulationConfigError {
    /// A value is out of its range. The message says which, and the range.
    #[error(transparent)]
    Range(#[from] RangeError),
    /// The flows have more packets than can be held. Ask for fewer flows, smaller flows, or cut
    /// the trace with a number of packets.
    #[error(
        "{packets} packets, but at most {most} can be simulated; use fewer or smaller flows, or \
         limit the number of packets"
    )]
    TooManyPackets {
        /// How many it would be.
        packets: u64,
        /// How many it can be.
        most: u64,
    },
    /// The user's own trace has no packet.
    #[error("there are no arrivals")]
    NoArrivals,
    /// A user's own trace spans more time than 64 bits can count twice.
    #[error("the arrivals span more than a century; the times in the trace are damaged")]
    ArrivalsTooLong,
    /// Return traffic answers synthetic packets only. A user's own trace brings its own.
    #[error("return traffic cannot be simulated for a trace of your own; use reverse none")]
    ReverseOfArrivals,
}

/// Return traffic: for every second delivered packet of a flow a small one comes back, as TCP
/// acknowledges. It passes the downstream point first and the upstream point second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Reverse {
    /// None.
    #[default]
    None,
    /// Through a delay model of its own.
    Through(DelayModel),
}

impl FromStr for Reverse {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        if text.trim() == "none" { Ok(Self::None) } else { text.parse().map(Self::Through) }
    }
}

impl fmt::Display for Reverse {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => formatter.write_str("none"),
            Self::Through(model) => model.fmt(formatter),
        }
    }
}

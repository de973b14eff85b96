//! What a network consists of.

use std::ops::Range;

use twixt_model::quantity::{BitRate, Nanoseconds, PacketRate};

use super::source::FLOWS_PER_LAP_MAX;
use crate::spec::{RangeError, require, require_share};
use crate::{Burst, DelayModel, FlowSize, Loss, PacketSize, SimulationConfigError};

/// What a network consists of. A value of this type may be nonsense; [`super::Network::new`] says so.
#[derive(Clone, Debug, PartialEq)]
pub struct NetworkConfig {
    /// Everything random follows from this.
    pub seed: u64,
    /// The links, in such an order that every route follows it.
    pub links: Vec<LinkConfig>,
    /// What is sent.
    pub traffic: Vec<TrafficConfig>,
}

/// A link between two routers, in one direction, with the queues in front of it.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkConfig {
    /// A queue for each class, with its part of the link: classes do not delay each other.
    pub queues: Vec<QueueConfig>,
    /// What every packet takes after the queue.
    pub propagation: Nanoseconds,
    /// Which packets get lost on the way.
    pub loss: Loss,
    /// Share of the packets that take longer, and may be overtaken.
    pub reorder_rate: f64,
    /// They take longer by something uniform between 0 and this.
    pub reorder_extent: Nanoseconds,
    /// When more packets get lost.
    pub spells: Vec<LossSpell>,
}

/// A first-in first-out queue that loses what finds it full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueConfig {
    /// How fast it is emptied.
    pub drain: BitRate,
    /// Packets that it holds, the one in transmission included.
    pub packets: u32,
}

/// A time in which a link loses more packets than usual.
#[derive(Clone, Debug, PartialEq)]
pub struct LossSpell {
    /// Whose packets; those of every class when `None`.
    pub class: Option<usize>,
    /// Each with this probability.
    pub rate: f64,
    /// When, since the start.
    pub during_ns: Range<i64>,
}

/// Flows of one class along one route, one after the other without end.
#[derive(Clone, Debug, PartialEq)]
pub struct TrafficConfig {
    /// The links that they pass.
    pub route: Vec<usize>,
    /// Which of their queues.
    pub class: usize,
    /// Protocol and destination port of all of them.
    pub service: (u8, u16),
    /// Flows that are drawn at a time.
    pub flows: u32,
    /// Mean rate of all of them together.
    pub rate: PacketRate,
    /// How many packets a flow has.
    pub flow_size: FlowSize,
    /// How the packets of a flow follow each other.
    pub burst: Burst,
    /// How many bytes a packet has.
    pub packet_size: PacketSize,
    /// Only then, since the start; always when `None`.
    pub during_ns: Option<Range<i64>>,
}

/// Why a network cannot be simulated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NetworkError {
    /// A value is out of its range, or flows have too many packets. The message says which.
    #[error(transparent)]
    Config(#[from] SimulationConfigError),
    /// Traffic goes nowhere, or over a link that does not exist. Mend its route.
    #[error("traffic {traffic} has no links, or one that does not exist")]
    Route {
        /// Which traffic.
        traffic: usize,
    },
    /// A route goes back in the order of the links. Put them into another order.
    #[error("traffic {traffic} passes links in another order than they are listed in")]
    Order {
        /// Which traffic.
        traffic: usize,
    },
    /// A link has no queue for a class of its traffic. Add one.
    #[error("link {link} has no queue for class {class}")]
    Class {
        /// Which link.
        link: usize,
        /// Which class.
        class: usize,
    },
}

impl From<RangeError> for NetworkError {
    fn from(error: RangeError) -> Self {
        Self::Config(error.into())
    }
}

impl NetworkConfig {
    pub(super) fn validate(&self) -> Result<(), NetworkError> {
        self.links.iter().try_for_each(LinkConfig::validate)?;
        for (index, traffic) in self.traffic.iter().enumerate() {
            traffic.validate()?;
            let is_known = |link: &usize| *link < self.links.len();
            if traffic.route.is_empty() || !traffic.route.iter().all(is_known) {
                return Err(NetworkError::Route { traffic: index });
            }
            if !traffic.route.is_sorted_by(|one, next| one < next) {
                return Err(NetworkError::Order { traffic: index });
            }
            let lacks = |link: &&usize| self.links[**link].queues.len() <= traffic.class;
            if let Some(&link) = traffic.route.iter().find(lacks) {
                return Err(NetworkError::Class { link, class: traffic.class });
            }
        }
        Ok(())
    }
}

impl LinkConfig {
    fn validate(&self) -> Result<(), NetworkError> {
        self.queues.iter().try_for_each(|queue| queue.model().validate())?;
        let propagation = DelayModel::Constant { delay: self.propagation };
        propagation.validate()?;
        self.loss.validate()?;
        require_share("rate of the reordering", self.reorder_rate)?;
        DelayModel::Constant { delay: self.reorder_extent }.validate()?;
        for spell in &self.spells {
            require_share("rate of the loss", spell.rate)?;
        }
        Ok(())
    }
}

impl QueueConfig {
    pub(super) const fn model(&self) -> DelayModel {
        DelayModel::DropTail { drain: self.drain, queue: self.packets }
    }
}

impl TrafficConfig {
    fn validate(&self) -> Result<(), NetworkError> {
        self.flow_size.validate()?;
        self.burst.validate()?;
        self.packet_size.validate()?;
        let flows = (1..=FLOWS_PER_LAP_MAX).contains(&self.flows);
        require(flows, "flows", self.flows, "1 to 4096")?;
        require(self.rate.0 > 0, "rate", self.rate, "positive")?;
        Ok(())
    }
}

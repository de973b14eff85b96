//! A network of links, with traffic that never ends: several routes, a queue for every class on every
//! link, and the truth about every packet on every link.
//!
//! Time is advanced from outside, in steps of any length. Within a step each link is done before those
//! that its packets go on to, so that every queue meets its packets in order of time. That needs links in
//! such an order that no route goes back in it.

mod config;
mod link;
mod source;

pub use config::{LinkConfig, LossSpell, NetworkConfig, NetworkError, QueueConfig, TrafficConfig};

use twixt_model::FlowKey;

use crate::frame::Hosts;
use crate::packet::Direction;
use crate::{SimulatedFrame, SimulatedPacket};
use link::Link;
use source::Source;

/// A network at work.
#[derive(Debug)]
pub struct Network {
    links: Vec<Link>,
    sources: Vec<Source>,
    /// By source: the links that its packets pass.
    routes: Vec<Vec<usize>>,
    now_ns: i64,
}

/// A packet of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetworkPacket {
    /// Its flow.
    pub key: FlowKey,
    /// Which traffic of the configuration it is of.
    pub traffic: usize,
    /// Its class.
    pub class: usize,
    /// Of the flow within its traffic: so that initial sequence numbers differ.
    hosts: u64,
    packet: SimulatedPacket,
}

/// A packet on a link: what really happened to it there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkCrossing {
    /// Which packet.
    pub packet: NetworkPacket,
    /// Links that it crossed before this one.
    pub hop: u8,
    /// When it came to the queue of the link, since the start.
    pub entered_ns: i64,
    /// When it reached the other end; `None` if it was lost.
    pub left_ns: Option<i64>,
}

/// What passed the two ends of a link in a step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkStep {
    /// What came to its queue, in order of time, lost or not.
    pub entered: Vec<LinkCrossing>,
    /// What reached the other end, in order of time. Some of it entered in an earlier step.
    pub left: Vec<LinkCrossing>,
}

impl Network {
    /// An empty network at time 0.
    ///
    /// # Errors
    ///
    /// If a value is out of its range, or routes and links do not go together.
    pub fn new(config: &NetworkConfig) -> Result<Self, NetworkError> {
        config.validate()?;
        let links = config.links.iter().zip(0..);
        let sources = config.traffic.iter().zip(0..);
        let count = config.traffic.len();
        Ok(Self {
            links: links.map(|(link, index)| Link::new(link, config.seed, index)).collect(),
            sources: sources
                .map(|(traffic, index)| Source::new(traffic, config.seed, index, count))
                .collect(),
            routes: config.traffic.iter().map(|traffic| traffic.route.clone()).collect(),
            now_ns: 0,
        })
    }

    /// Advances the time, and returns what passed the ends of each link until then.
    ///
    /// # Errors
    ///
    /// If the flows of a source have more packets than can be held.
    pub fn advance(&mut self, until_ns: i64) -> Result<Vec<LinkStep>, NetworkError> {
        self.now_ns = self.now_ns.max(until_ns);
        let mut entering: Vec<Vec<LinkCrossing>> = vec![Vec::new(); self.links.len()];
        for (source, route) in self.sources.iter_mut().zip(&self.routes) {
            source.take_until(self.now_ns, &mut entering[route[0]])?;
        }
        let mut steps = Vec::with_capacity(self.links.len());
        for (index, link) in self.links.iter_mut().enumerate() {
            let step = link.advance(std::mem::take(&mut entering[index]), self.now_ns);
            for crossing in &step.left {
                let route = &self.routes[crossing.packet.traffic];
                if let (Some(&next), Some(left_ns)) =
                    (route.get(usize::from(crossing.hop) + 1), crossing.left_ns)
                {
                    entering[next].push(crossing.going_on(left_ns));
                }
            }
            steps.push(step);
        }
        Ok(steps)
    }
}

impl NetworkPacket {
    /// Length of the IP packet in bytes.
    #[must_use]
    pub const fn length(&self) -> u32 {
        self.packet.length
    }

    /// How many packets of its flow were sent before it.
    #[must_use]
    pub const fn sequence(&self) -> u32 {
        self.packet.sequence
    }

    /// Its headers after so many routers.
    #[must_use]
    pub fn frame(&self, routers: u8) -> SimulatedFrame {
        let hosts = Hosts { sender: self.hosts, receiver: !self.hosts };
        SimulatedFrame::build(&self.key, &self.packet, Direction::Forward, hosts, routers)
    }
}

impl LinkCrossing {
    /// As it comes to the next link.
    const fn going_on(&self, entered_ns: i64) -> Self {
        Self { packet: self.packet, hop: self.hop + 1, entered_ns, left_ns: None }
    }

    /// Distinguishes packets that come at the same time, so that their order is the same everywhere.
    const fn order(&self) -> (i64, usize, u32, u32) {
        let NetworkPacket { traffic, packet, .. } = self.packet;
        (self.entered_ns, traffic, packet.flow, packet.sequence)
    }
}

#[cfg(test)]
mod tests;

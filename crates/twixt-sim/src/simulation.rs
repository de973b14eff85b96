//! A simulated segment: what went in, what both points saw of it.

use twixt_model::{
    Delay, Detail, FlowHash, FlowKey, Observation, PacketDigest, Side, TcpFields, Timestamp, mix,
    protocol, tcp_flag,
};

use crate::arrivals::{self, Arrival};
use crate::crossing;
use crate::flows::synthetic_keys;
use crate::frame::{Hosts, SimulatedFrame, TcpNumbers};
use crate::packet::{Direction, PointPacket, SimulatedPacket};
use crate::random::{Purpose, Stream};
use crate::trace::Trace;
use crate::truth::Truth;
use crate::{Clock, Config, Reverse, SimulationConfigError};

/// A simulated segment and the truth about it.
#[derive(Clone, Debug)]
pub struct Simulation {
    start: Timestamp,
    clock: Clock,
    /// Two numbers that keep digests and header fields apart from those of other seeds.
    digest_key: u64,
    flow_hash_key: u64,
    /// Of forward flows.
    keys: Vec<FlowKey>,
    packets: Vec<SimulatedPacket>,
    /// Which frames of the user's the packets are; empty for synthetic traffic.
    frames: Vec<u64>,
    /// Packets in the order in which the points see them.
    upstream: Vec<u32>,
    downstream: Vec<u32>,
}

impl Simulation {
    /// Simulates synthetic traffic.
    ///
    /// # Errors
    ///
    /// If a value of the configuration is out of its range, or asks for too many packets.
    pub fn run(config: &Config) -> Result<Self, SimulationConfigError> {
        config.validate_segment()?;
        config.validate_traffic()?;
        let keys = synthetic_keys(config.seed, config.flows);
        let mut packets = crossing::packets_of(config, &arrivals::schedule(config)?);
        crossing::cross_forward(config, &mut packets, &keys);
        if let Reverse::Through(model) = &config.reverse {
            let back = crossing::return_traffic(config, model, &packets, config.flows);
            packets.extend(back);
        }
        Ok(Self::assemble(config, config.start, keys, packets, Vec::new()))
    }

    /// Simulates what happens to a trace of the user's own. Of the configuration only the segment
    /// counts: delay, propagation, loss, reordering, clock and seed. The trace need not be in
    /// order of time. There is no return traffic.
    ///
    /// # Errors
    ///
    /// If a value of the configuration is out of its range, or the trace is empty or too long.
    pub fn with_arrivals(
        config: &Config,
        arrivals: impl IntoIterator<Item = Arrival>,
    ) -> Result<Self, SimulationConfigError> {
        config.validate_segment()?;
        if config.reverse != Reverse::None {
            return Err(SimulationConfigError::ReverseOfArrivals);
        }
        let trace = Trace::read(arrivals)?;
        let (mut packets, keys) = (trace.packets, trace.keys);
        crossing::cross_forward(config, &mut packets, &keys);
        Ok(Self::assemble(config, trace.start, keys, packets, trace.frames))
    }

    fn assemble(
        config: &Config,
        start: Timestamp,
        keys: Vec<FlowKey>,
        packets: Vec<SimulatedPacket>,
        frames: Vec<u64>,
    ) -> Self {
        let mut identity = Stream::new(config.seed, Purpose::Identity);
        let mut simulation = Self {
            start,
            clock: config.clock,
            digest_key: identity.bits(),
            flow_hash_key: identity.bits(),
            keys,
            packets,
            frames,
            upstream: Vec::new(),
            downstream: Vec::new(),
        };
        simulation.upstream = simulation.order_at(Side::Upstream);
        simulation.downstream = simulation.order_at(Side::Downstream);
        simulation
    }

    /// All packets: forward traffic in order of entry, then return traffic in order of entry.
    #[must_use]
    pub fn packets(&self) -> &[SimulatedPacket] {
        &self.packets
    }

    /// How many forward flows were drawn or found. Some may have no packet, where a trace was cut.
    #[must_use]
    pub fn flows(&self) -> usize {
        self.keys.len()
    }

    /// The five-tuple of a flow.
    ///
    /// # Panics
    ///
    /// If no packet of this simulation has this flow.
    #[must_use]
    pub fn flow_key(&self, flow: u32) -> FlowKey {
        let flow = flow as usize;
        match flow.checked_sub(self.keys.len()) {
            None => self.keys[flow],
            Some(forward) => self.keys[forward].reversed(),
        }
    }

    /// Which way a packet goes.
    #[must_use]
    pub fn direction(&self, packet: &SimulatedPacket) -> Direction {
        match (packet.flow as usize) < self.keys.len() {
            true => Direction::Forward,
            false => Direction::Return,
        }
    }

    /// What a point sees, in order of its time.
    pub fn sightings(&self, point: Side) -> impl ExactSizeIterator<Item = PointPacket> + '_ {
        let order = match point {
            Side::Upstream => &self.upstream,
            Side::Downstream => &self.downstream,
        };
        order.iter().map(move |&index| {
            let packet = &self.packets[index as usize];
            let time = self.seen_at(packet, point).expect("points list only what they see");
            PointPacket { time, packet: index }
        })
    }

    /// The same as algorithms see it: digests of packets are distinct.
    pub fn observations(&self, point: Side) -> impl ExactSizeIterator<Item = Observation> + '_ {
        self.sightings(point).map(|sighting| {
            let packet = &self.packets[sighting.packet as usize];
            Observation {
                time: sighting.time,
                digest: PacketDigest(mix(u64::from(sighting.packet) ^ self.digest_key)),
                flow: self.flow_hash(packet.flow),
                length: packet.length,
                ..Observation::default()
            }
        })
    }

    /// The hash that stands for a flow in [`Simulation::observations`].
    #[must_use]
    pub const fn flow_hash(&self, flow: u32) -> FlowHash {
        FlowHash(mix(flow as u64 ^ self.flow_hash_key))
    }

    /// Headers of a packet as a point sees them; `None` for packets of a user's own trace, whose
    /// frames the user has.
    #[must_use]
    pub fn frame(&self, point: Side, sighting: PointPacket) -> Option<SimulatedFrame> {
        let packet = self.packets.get(sighting.packet as usize)?;
        if !self.frames.is_empty() {
            return None;
        }
        let (key, direction) = (self.flow_key(packet.flow), self.direction(packet));
        let routers = u8::from(!self.enters_at(packet, point));
        Some(SimulatedFrame::build(&key, packet, direction, self.hosts(packet), routers))
    }

    /// What one-point algorithms ask for beside an observation: the same as the frame says.
    ///
    /// # Panics
    ///
    /// If this simulation has no such packet.
    #[must_use]
    pub fn detail(&self, sighting: PointPacket) -> Detail {
        let packet = &self.packets[sighting.packet as usize];
        let key = self.flow_key(packet.flow);
        let tcp = (key.protocol == protocol::TCP).then(|| {
            let numbers = TcpNumbers::of(packet, self.direction(packet), self.hosts(packet));
            TcpFields {
                sequence: numbers.sequence,
                acknowledgement: numbers.acknowledgement,
                flags: tcp_flag::ACK,
                payload_bytes: packet.payload_bytes(),
                timestamps: None,
            }
        });
        let identification = self.hosts(packet).number(packet) as u16;
        Detail { key, tcp, identification, exchange: None, sent: None }
    }

    /// Which frame of a user's own trace a packet is; `None` for synthetic packets.
    #[must_use]
    pub fn original_frame(&self, packet: u32) -> Option<u64> {
        self.frames.get(packet as usize).copied()
    }

    /// What really happened.
    #[must_use]
    pub fn truth(&self) -> Truth {
        Truth::of(self)
    }

    /// When a point sees a packet, by its own clock; `None` if it does not.
    #[must_use]
    pub fn seen_at(&self, packet: &SimulatedPacket, point: Side) -> Option<Timestamp> {
        let elapsed_ns = self.elapsed_ns(packet, point)?;
        let shown_ns = match point {
            Side::Upstream => elapsed_ns,
            Side::Downstream => self.clock.reading(elapsed_ns),
        };
        Some(self.start + Delay::from_nanos(shown_ns))
    }

    /// The delay that matching every packet of the two points gives: clock error
    /// included. `None` if the packet was lost.
    #[must_use]
    pub fn observed_delay(&self, packet: &SimulatedPacket) -> Option<Delay> {
        let upstream = self.seen_at(packet, Side::Upstream)?;
        let downstream = self.seen_at(packet, Side::Downstream)?;
        Some(match self.direction(packet) {
            Direction::Forward => downstream - upstream,
            Direction::Return => upstream - downstream,
        })
    }

    /// Indices of the packets that a point sees, by time, then by index.
    fn order_at(&self, point: Side) -> Vec<u32> {
        let timed = |(index, packet): (u32, &SimulatedPacket)| {
            Some((self.elapsed_ns(packet, point)?, index))
        };
        let mut sorted: Vec<(i64, u32)> = (0_u32..).zip(&self.packets).filter_map(timed).collect();
        // Almost in order already, which the stable sort makes use of.
        sorted.sort();
        sorted.into_iter().map(|(_, index)| index).collect()
    }

    /// When a point sees a packet, in true time since the start.
    fn elapsed_ns(&self, packet: &SimulatedPacket, point: Side) -> Option<i64> {
        if self.enters_at(packet, point) { Some(packet.entered_ns()) } else { packet.exit_ns() }
    }

    fn enters_at(&self, packet: &SimulatedPacket, point: Side) -> bool {
        point == self.direction(packet).entry()
    }

    fn hosts(&self, packet: &SimulatedPacket) -> Hosts {
        Hosts {
            sender: self.flow_hash(packet.flow).0,
            receiver: self.flow_hash(self.opposite(packet.flow)).0,
        }
    }

    fn opposite(&self, flow: u32) -> u32 {
        let flows = self.keys.len() as u32;
        if flow < flows { flow + flows } else { flow - flows }
    }
}

#[cfg(test)]
mod tests;

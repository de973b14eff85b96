//! What happens to packets between the two points: queue or delay first, then random loss and
//! propagation, then reordering; and the return traffic that delivered packets cause.

use twixt_model::FlowKey;

use crate::arrivals::Entering;
use crate::delay::{DelayProcess, Entry, FORWARD, RETURN};
use crate::frame::HEADERS_BYTES;
use crate::loss::LossProcess;
use crate::random::{Purpose, Stream};
use crate::{Config, DelayModel, SimulatedPacket};

/// Mean time from the delivery of a packet to the return packet that answers it.
const TURNAROUND_NS: f64 = 50_000.0;

/// Gives entering packets their lengths and their places in their flows.
pub(crate) fn packets_of(config: &Config, entering: &[Entering]) -> Vec<SimulatedPacket> {
    let mut stream = Stream::new(config.seed, Purpose::PacketSize);
    let mut numbering = Numbering::new(config.flows as usize);
    entering
        .iter()
        .map(|entering| {
            let length = config.packet_size.draw(&mut stream).max(HEADERS_BYTES);
            numbering.next(entering.time_ns, entering.flow, length)
        })
        .collect()
}

/// Counts packets and payload of every flow.
pub(crate) struct Numbering {
    /// By flow: packets and bytes of payload so far.
    flows: Vec<(u32, u32)>,
}

impl Numbering {
    pub(crate) fn new(flows: usize) -> Self {
        Self { flows: vec![(0, 0); flows] }
    }

    /// Makes room for one more flow.
    pub(crate) fn grow(&mut self, flows: usize) {
        self.flows.resize(flows, (0, 0));
    }

    pub(crate) fn next(&mut self, entered_ns: i64, flow: u32, length: u32) -> SimulatedPacket {
        let (packets, payload) = &mut self.flows[flow as usize];
        let packet = SimulatedPacket::new(entered_ns, flow, *packets, *payload, length);
        *packets += 1;
        *payload = payload.wrapping_add(packet.payload_bytes());
        packet
    }
}

/// Sends packets, which are in order of entry, across the segment.
pub(crate) fn cross_forward(config: &Config, packets: &mut [SimulatedPacket], keys: &[FlowKey]) {
    let mut delay = DelayProcess::new(&config.delay, config.seed, FORWARD, keys.len() as u32);
    let mut loss_stream = Stream::new(config.seed, Purpose::Loss);
    let mut loss = LossProcess::new(&config.loss, &mut loss_stream);
    for packet in packets.iter_mut() {
        let crossing_ns = delay.cross(entry_of(packet, packet.flow));
        // Asked for every packet, so that the delay model does not shift later losses.
        let lost = loss.strikes(&mut loss_stream);
        if let Some(crossing_ns) = crossing_ns.filter(|_| !lost) {
            packet.deliver(crossing_ns + config.propagation.0);
        }
    }
    config.reorder.apply(packets, keys, &mut Stream::new(config.seed, Purpose::Reorder));
}

/// The packets that come back, sent across the segment in the other direction. The return flow of
/// flow f is flow `flows + f`.
pub(crate) fn return_traffic(
    config: &Config,
    model: &DelayModel,
    forward: &[SimulatedPacket],
    flows: u32,
) -> Vec<SimulatedPacket> {
    let mut delay = DelayProcess::new(model, config.seed, RETURN, flows);
    let mut packets = answers(config.seed, forward, flows);
    for packet in &mut packets {
        if let Some(crossing_ns) = delay.cross(entry_of(packet, packet.flow - flows)) {
            packet.deliver(crossing_ns + config.propagation.0);
        }
    }
    packets
}

/// One for every second delivered packet of a flow, the first included, in order of entry.
fn answers(seed: u64, forward: &[SimulatedPacket], flows: u32) -> Vec<SimulatedPacket> {
    let mut stream = Stream::new(seed, Purpose::Turnaround);
    let mut answered: Vec<(i64, u32)> = Vec::new();
    for (index, packet) in (0_u32..).zip(forward) {
        if packet.sequence.is_multiple_of(2) {
            let turnaround_ns = (TURNAROUND_NS * stream.exponential()) as i64;
            answered.extend(packet.exit_ns().map(|exit_ns| (exit_ns + turnaround_ns, index)));
        }
    }
    answered.sort_unstable();

    // By flow: packets sent back, and payload they have acknowledged. An answer never
    // acknowledges less than the one before it.
    let mut sent = vec![(0_u32, 0_u32); flows as usize];
    let answer = |(entered_ns, index): (i64, u32)| {
        let cause = &forward[index as usize];
        let (sequence, acknowledged) = &mut sent[cause.flow as usize];
        let reached = cause.payload_offset.wrapping_add(cause.payload_bytes());
        if reached.wrapping_sub(*acknowledged) < 1 << 31 {
            *acknowledged = reached;
        }
        let flow = flows + cause.flow;
        let packet =
            SimulatedPacket::new(entered_ns, flow, *sequence, *acknowledged, HEADERS_BYTES);
        *sequence += 1;
        packet
    };
    answered.into_iter().map(answer).collect()
}

fn entry_of(packet: &SimulatedPacket, flow: u32) -> Entry {
    Entry { time_ns: packet.entered_ns(), flow, bytes: packet.length }
}

//! The traffic of a cell: which packets are sent, when, and what becomes of each.

mod delays;
mod losses;
mod sizes;

use std::net::Ipv4Addr;

use crate::grid::GridCell;
use crate::random::Random;

/// Packets that pass the upstream point, whatever the cell. With 25 questions for each seed of a cell, so
/// many let all cells with 20 seeds end within three hours on two cores.
pub(crate) const PACKETS: usize = 30_000;
/// How long the traffic lasts: the mean of the gaps between packets is this over [`PACKETS`].
const DURATION_NS: f64 = 10e9;
/// When the first packet is sent, since 1970.
const START_NS: i64 = 1_700_000_000_000_000_000;
/// Consecutive packets of one flow, at most.
const BURST_MAX: usize = 8;
/// One packet returns for so many of a flow.
const RETURN_EVERY: u32 = 10;
/// A receiver takes so long to answer.
const ANSWER_NS: i64 = 2_000_000;
/// Smallest delay of packets that return.
const RETURN_DELAY_NS: f64 = 500_000.0;

/// Everything that happens in a cell.
pub(crate) struct Traffic {
    pub(crate) flows: Vec<Flow>,
    /// From upstream to downstream, in the order in which they were sent.
    pub(crate) forward: Vec<SentPacket>,
    /// From downstream to upstream: it is not measured, but both points see it.
    pub(crate) backward: Vec<SentPacket>,
}

/// A directed five-tuple.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flow {
    pub(crate) transport: Transport,
    pub(crate) source: (Ipv4Addr, u16),
    pub(crate) destination: (Ipv4Addr, u16),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    Tcp,
    Udp,
}

/// One packet and its fate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SentPacket {
    /// Its place in [`Traffic::flows`].
    pub(crate) flow: usize,
    /// Its place among the packets of its flow and direction; 0 for all that repeat each other.
    pub(crate) sequence: u32,
    pub(crate) payload_bytes: usize,
    pub(crate) sent_ns: i64,
    /// `None`: it was lost.
    pub(crate) delay_ns: Option<i64>,
}

impl Traffic {
    /// The traffic of a cell and a seed.
    pub(crate) fn draw(cell: GridCell, seed: u64) -> Self {
        let mut random = Random::of(&[cell.number(), seed]);
        let flows = draw_flows(cell.flows(), &mut random);
        let counts = sizes::draw(cell.sizes(), flows.len(), &mut random);
        let mut forward = schedule(&counts, cell.repeats(), &mut random);
        delays::apply(cell.delays(), flows.len(), &mut forward, &mut random);
        losses::apply(cell.losses(), flows.len(), &mut forward, &mut random);
        let backward = returning(&forward, flows.len(), &mut random);
        Self { flows, forward, backward }
    }
}

impl Flow {
    /// The flow of packets that return.
    pub(crate) fn reversed(self) -> Self {
        Self { source: self.destination, destination: self.source, ..self }
    }

    /// How the product names it in its output.
    pub(crate) fn scope(self) -> String {
        let name = match self.transport {
            Transport::Tcp => "tcp",
            Transport::Udp => "udp",
        };
        let [(from, from_port), (to, to_port)] = [self.source, self.destination];
        format!("{name} {from}:{from_port} > {to}:{to_port}")
    }
}

fn draw_flows(count: usize, random: &mut Random) -> Vec<Flow> {
    let draw = |index: usize| {
        let host = u32::try_from(index).expect("flows are few");
        // The source is different for each flow, so that no two are alike.
        let source = Ipv4Addr::from(0x0a00_0000 + host + 1);
        let destination =
            Ipv4Addr::from([198, 18, random.below(256) as u8, random.below(256) as u8]);
        let port = 1_024 + random.below(60_000) as u16;
        let transport = if random.happens(0.5) { Transport::Tcp } else { Transport::Udp };
        Flow { transport, source: (source, port), destination: (destination, 443) }
    };
    (0..count).map(draw).collect()
}

/// Packets of all flows in bursts, with exponential gaps. Delays follow later.
fn schedule(counts: &[usize], repeats: f64, random: &mut Random) -> Vec<SentPacket> {
    let order = bursts(counts, random);
    let mut sent_ns = 0.0;
    let mut sequences = vec![0_u32; counts.len()];
    let packet = |flow: usize| {
        sent_ns += random.exponential(DURATION_NS / PACKETS as f64);
        let repeated = random.happens(repeats);
        sequences[flow] += 1;
        SentPacket {
            flow,
            sequence: if repeated { 0 } else { sequences[flow] },
            payload_bytes: if repeated { 24 } else { draw_payload(random) },
            sent_ns: START_NS + sent_ns as i64,
            delay_ns: None,
        }
    };
    order.into_iter().map(packet).collect()
}

/// The flows of all packets in order.
fn bursts(counts: &[usize], random: &mut Random) -> Vec<usize> {
    let mut bursts = Vec::new();
    for (flow, &count) in counts.iter().enumerate() {
        let mut left = count;
        while left > 0 {
            let length = (1 + random.below(BURST_MAX)).min(left);
            bursts.push((flow, length));
            left -= length;
        }
    }
    random.shuffle(&mut bursts);
    bursts.into_iter().flat_map(|(flow, length)| std::iter::repeat_n(flow, length)).collect()
}

fn draw_payload(random: &mut Random) -> usize {
    match random.below(10) {
        0..6 => 24,
        6..9 => 100,
        _ => 400,
    }
}

/// Answers of the receivers: to packets that were lost too, as those of another path would be.
fn returning(forward: &[SentPacket], flows: usize, random: &mut Random) -> Vec<SentPacket> {
    let mut seen = vec![0_u32; flows];
    let mut answer = |packet: &SentPacket| {
        let number = seen[packet.flow];
        seen[packet.flow] += 1;
        number.is_multiple_of(RETURN_EVERY).then(|| SentPacket {
            sequence: number + 1,
            sent_ns: packet.sent_ns + packet.delay_ns.unwrap_or_default() + ANSWER_NS,
            delay_ns: Some((RETURN_DELAY_NS + random.exponential(RETURN_DELAY_NS / 2.0)) as i64),
            ..*packet
        })
    };
    let mut backward: Vec<SentPacket> = forward.iter().filter_map(&mut answer).collect();
    backward.sort_by_key(|packet| packet.sent_ns);
    backward
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(names: [&str; 6]) -> Traffic {
        Traffic::draw(GridCell::named(names), 1)
    }

    #[test]
    fn traffic_follows_from_cell_and_seed() {
        let times = |traffic: &Traffic| {
            traffic.forward.iter().map(|packet| packet.delay_ns).sum::<Option<i64>>()
        };
        let names = ["10", "equal", "default", "exponential", "none", "none"];
        assert_eq!(times(&draw(names)), times(&draw(names)));
        let other = Traffic::draw(GridCell::named(names), 2);
        assert_ne!(times(&draw(names)), times(&other));
    }

    #[test]
    fn half_of_the_packets_repeat_where_the_cell_says_so() {
        let traffic = draw(["30", "pareto", "default", "queue", "2%", "50%"]);
        let repeated = traffic.forward.iter().filter(|packet| packet.sequence == 0).count() as f64;
        // Four standard deviations of a binomial count of 30 000.
        assert!((repeated - 15_000.0).abs() < 4.0 * 87.0, "{repeated}");
    }

    #[test]
    fn flows_are_all_different() {
        let flows = draw(["10000", "equal", "default", "exponential", "none", "none"]).flows;
        let names: std::collections::BTreeSet<String> =
            flows.iter().map(|flow| flow.scope()).collect();
        assert_eq!(names.len(), 10_000);
    }

    #[test]
    fn packets_are_sent_in_order_and_return() {
        let traffic = draw(["100", "equal", "default", "broken", "one-flow", "none"]);
        assert_eq!(traffic.forward.len(), PACKETS);
        assert!(traffic.forward.is_sorted_by_key(|packet| packet.sent_ns));
        assert_eq!(traffic.backward.len(), PACKETS / 10);
    }
}

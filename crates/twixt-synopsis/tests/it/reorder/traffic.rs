//! A TCP sender, the network before the point, and the truth about every packet that arrives there.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use twixt_model::{
    Detail, FlowHash, FlowKey, Observation, TcpFields, Timestamp, mix, protocol, tcp_flag,
};

pub(super) const MILLISECOND: i64 = 1_000_000;
const PAYLOAD_BYTES: u32 = 1000;
/// Average time between two packets of a flow.
const GAP_NS: f64 = 1e6;

/// What a sender writes into its packets beside the sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Marks {
    /// IPv4 with an identification that counts packets.
    Counting,
    /// IPv4 with the identification 0, as RFC 6864 allows.
    Zero,
    /// IPv4 with random identifications.
    Random,
    /// IPv6 with timestamps that tick every so many milliseconds.
    Clock(i64),
    /// IPv6 without timestamps.
    None,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Setting {
    /// Share of packets that others overtake.
    pub(super) late: f64,
    /// Share that is lost before the point, and retransmitted a round trip later.
    pub(super) lost: f64,
    /// Share that is lost behind the point, likewise.
    pub(super) lost_behind: f64,
    pub(super) round_trip_ns: i64,
    pub(super) marks: Marks,
    /// Whether the capture has the handshakes.
    pub(super) handshake: bool,
    /// Every packet is seen twice, the second time after so many nanoseconds.
    pub(super) doubled_after_ns: Option<i64>,
}

/// What became of the packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Truth {
    pub(super) packets: u64,
    /// Sent once, and seen behind data that was sent later.
    pub(super) overtaken: u64,
    pub(super) retransmitted: u64,
    /// Retransmissions that were overtaken themselves: either verdict is right.
    pub(super) both: u64,
}

/// A packet on its way.
#[derive(Clone, Copy)]
struct Sent {
    sent_ns: i64,
    seen_ns: Option<i64>,
    number: u32,
    again: bool,
}

pub(super) type Seen = (Observation, Detail);

/// Uniform numbers from a seed.
struct Draws(u64);

impl Draws {
    const fn new(seed: u64) -> Self {
        Self(seed)
    }

    const fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        (mix(self.0) >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn exponential(&mut self) -> f64 {
        -(1.0 - self.uniform()).ln()
    }
}

/// Flows of one prefix, in the order of their times at the point.
pub(super) fn flows(setting: &Setting, flows: u16, packets: u32, seed: u64) -> (Vec<Seen>, Truth) {
    let mut draws = Draws::new(seed);
    let (mut seen, mut truth) = (Vec::new(), Truth::default());
    for port in 1..=flows {
        let mut sent = transmissions(setting, packets, &mut draws);
        sent.sort_by_key(|packet| packet.sent_ns);
        let flow = Flow { setting, port, first: mix(seed ^ u64::from(port)) as u32 };
        if setting.handshake {
            seen.extend(flow.handshake());
        }
        let mut arrivals: Vec<(i64, Sent, u16)> = (0_u16..)
            .zip(sent)
            .filter_map(|(place, packet)| Some((packet.seen_ns?, packet, place)))
            .collect();
        arrivals.sort_by_key(|(seen_ns, ..)| *seen_ns);
        truth.add(&arrivals);
        for (seen_ns, packet, place) in arrivals {
            let copies = [Some(seen_ns), setting.doubled_after_ns.map(|after| seen_ns + after)];
            let detail = flow.detail(&packet, place, &mut draws);
            seen.extend(copies.into_iter().flatten().map(|at| flow.at(at, detail)));
        }
    }
    seen.sort_by_key(|(observation, _)| observation.time);
    (seen, truth)
}

/// Every packet of a flow until it was not lost any more.
fn transmissions(setting: &Setting, packets: u32, draws: &mut Draws) -> Vec<Sent> {
    let (mut sent, mut now_ns) = (Vec::new(), 0);
    for number in 0..packets {
        now_ns += (draws.exponential() * GAP_NS) as i64 + 1;
        let (mut at_ns, mut again) = (now_ns, false);
        loop {
            let lost = draws.uniform() < setting.lost;
            let late = !again && draws.uniform() < setting.late;
            let extra = if late { GAP_NS * (1.0 + 3.0 * draws.uniform()) } else { 0.0 };
            let seen_ns = at_ns + setting.round_trip_ns / 4 + extra as i64;
            sent.push(Sent { sent_ns: at_ns, seen_ns: (!lost).then_some(seen_ns), number, again });
            if !lost && draws.uniform() >= setting.lost_behind {
                break;
            }
            // Three duplicate ACKs later than the round trip; a timer if it is lost once more.
            let timer_ns = if again { 250 * MILLISECOND } else { 0 };
            at_ns += setting.round_trip_ns + (3.0 * GAP_NS) as i64 + timer_ns;
            again = true;
        }
    }
    sent
}

impl Truth {
    fn add(&mut self, arrivals: &[(i64, Sent, u16)]) {
        let (mut highest, mut newest_ns) = (None, i64::MIN);
        for (_, packet, _) in arrivals {
            let overtaken = packet.sent_ns < newest_ns;
            self.packets += 1;
            self.retransmitted += u64::from(packet.again);
            self.both += u64::from(packet.again && overtaken);
            self.overtaken += u64::from(!packet.again && highest > Some(packet.number));
            highest = highest.max(Some(packet.number));
            newest_ns = newest_ns.max(packet.sent_ns);
        }
    }
}

struct Flow<'a> {
    setting: &'a Setting,
    port: u16,
    /// Initial sequence number.
    first: u32,
}

impl Flow<'_> {
    fn at(&self, time_ns: i64, detail: Detail) -> Seen {
        let observation = Observation {
            time: Timestamp::from_nanos(time_ns),
            flow: FlowHash(mix(
                u64::from(self.port) << 8 | u64::from(detail.key.source_port != 443)
            )),
            length: 1040,
            ..Observation::default()
        };
        (observation, detail)
    }

    /// From the server, which sends the data.
    fn key(&self) -> FlowKey {
        let ends: [IpAddr; 2] = match self.setting.marks {
            Marks::Clock(_) | Marks::None => [
                Ipv6Addr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1]).into(),
                Ipv6Addr::from([0x2001, 0xdb8, 1, 0, 0, 0, 0, 1]).into(),
            ],
            _ => [Ipv4Addr::new(10, 0, 0, 1).into(), Ipv4Addr::new(10, 9, 0, 1).into()],
        };
        FlowKey {
            source: ends[0],
            destination: ends[1],
            source_port: 443,
            destination_port: 40_000 + self.port,
            protocol: protocol::TCP,
        }
    }

    fn detail(&self, packet: &Sent, place: u16, draws: &mut Draws) -> Detail {
        let identification = match self.setting.marks {
            Marks::Counting => place.wrapping_add(64_000),
            Marks::Random => (draws.uniform() * 65_536.0) as u16,
            _ => 0,
        };
        let timestamps = match self.setting.marks {
            // Close to where clocks wrap.
            Marks::Clock(tick_ms) => {
                let ticks = packet.sent_ns / (tick_ms * MILLISECOND);
                Some(((ticks as u32).wrapping_sub(700), 0))
            }
            _ => None,
        };
        let sequence = self.first.wrapping_add(1 + packet.number * PAYLOAD_BYTES);
        let (flags, payload_bytes) = (tcp_flag::ACK, PAYLOAD_BYTES);
        let tcp = TcpFields { sequence, flags, payload_bytes, timestamps, acknowledgement: 1 };
        Detail { key: self.key(), tcp: Some(tcp), identification, ..Detail::default() }
    }

    /// SYN, SYN-ACK and ACK, a quarter of the round trip from the server.
    fn handshake(&self) -> [Seen; 3] {
        let (round_trip_ns, first) = (self.setting.round_trip_ns, self.first);
        let packet = |before_ns: i64, flags: u8, sequence: u32, from_client: bool| {
            let tcp = TcpFields { sequence, flags, ..TcpFields::default() };
            let key = if from_client { self.key().reversed() } else { self.key() };
            self.at(-before_ns, Detail { key, tcp: Some(tcp), ..Detail::default() })
        };
        [
            packet(round_trip_ns + MILLISECOND, tcp_flag::SYN, 77, true),
            packet(round_trip_ns / 2 + MILLISECOND, tcp_flag::SYN | tcp_flag::ACK, first, false),
            packet(MILLISECOND, tcp_flag::ACK, 78, true),
        ]
    }
}

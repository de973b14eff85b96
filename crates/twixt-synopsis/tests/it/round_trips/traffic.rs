//! TCP connections over a path with loss, and what a point on it can know of them.

use std::net::Ipv4Addr;

use twixt_model::{Detail, FlowKey, Observation, TcpFields, Timestamp, mix, protocol, tcp_flag};

pub(super) const MILLISECOND: i64 = 1_000_000;
/// How long an endpoint waits before it sends a SYN or a SYN-ACK again (RFC 6298).
const TIMER_NS: i64 = 1_000 * MILLISECOND;
const SEGMENT_BYTES: u32 = 500;

#[derive(Clone, Copy, Debug)]
pub(super) struct Path {
    pub(super) connections: u32,
    pub(super) round_trip_ns: i64,
    /// Share of the way from the client to the server at which the point is.
    pub(super) place: f64,
    /// Probability that a packet of a handshake is lost, on either side of the point.
    pub(super) loss: f64,
    /// Segments that the client sends, each after the ACK of the one before.
    pub(super) segments: u32,
    /// All connections have the same ports.
    pub(super) reused: bool,
    /// Every connection ends with a FIN; else only the last one.
    pub(super) ended: bool,
}

/// Times that the point should find.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Times {
    pub(super) count: u64,
    sum_ns: i64,
}

impl Times {
    fn add(&mut self, time_ns: i64) {
        self.count += 1;
        self.sum_ns += time_ns;
    }

    pub(super) fn mean_ns(&self) -> f64 {
        self.sum_ns as f64 / self.count as f64
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Truth {
    pub(super) handshake: Times,
    pub(super) server: Times,
    pub(super) client: Times,
    pub(super) data: Times,
    pub(super) duration: Times,
}

pub(super) type Seen = (Observation, Detail);

/// Uniform numbers from a seed.
struct Draws(u64);

impl Draws {
    const fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        (mix(self.0) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Connections one after the other, in the order in which the point sees their packets.
pub(super) fn connections(path: &Path, seed: u64) -> (Vec<Seen>, Truth) {
    let mut draws = Draws(seed);
    let (mut seen, mut truth, mut start_ns) = (Vec::new(), Truth::default(), 0);
    for number in 0..path.connections {
        // Round trips are spread evenly, with a deviation of a tenth.
        let spread = 1.0 + 0.1 * 12_f64.sqrt() * (draws.uniform() - 0.5);
        let round_trip_ns = (path.round_trip_ns as f64 * spread) as i64;
        let mut connection = Connection {
            path,
            port: if path.reused { 40_000 } else { (10_000 + number) as u16 },
            to_point_ns: (round_trip_ns as f64 / 2.0 * path.place) as i64,
            one_way_ns: round_trip_ns / 2,
            client: (draws.uniform() * 4e9) as u32,
            server: (draws.uniform() * 4e9) as u32,
            seen: Vec::new(),
        };
        let mut now_ns = connection.shake_hands(start_ns, &mut draws, &mut truth);
        now_ns = connection.send(now_ns, &mut truth);
        if path.ended || number + 1 == path.connections {
            let end_ns =
                connection.there(now_ns, tcp_flag::FIN | tcp_flag::ACK, path.segments, 1, 0);
            let first_ns = connection.seen[0].0.time.as_nanos();
            truth.duration.add(end_ns - first_ns);
        }
        seen.append(&mut connection.seen);
        start_ns = now_ns + 10 * MILLISECOND;
    }
    // Stable: packets that are seen at once stay in their order.
    seen.sort_by_key(|(observation, _)| observation.time);
    (seen, truth)
}

struct Connection<'a> {
    path: &'a Path,
    port: u16,
    to_point_ns: i64,
    one_way_ns: i64,
    client: u32,
    server: u32,
    seen: Vec<Seen>,
}

impl Connection<'_> {
    /// Sends SYNs until one is answered; the time at which the client is connected.
    fn shake_hands(&mut self, start_ns: i64, draws: &mut Draws, truth: &mut Truth) -> i64 {
        let mut lost = || draws.uniform() < self.path.loss;
        let mut losses = Vec::new();
        // Before and behind the point, there and back.
        loop {
            let round = [lost(), lost(), lost(), lost()];
            losses.push(round);
            if !round.contains(&true) {
                break;
            }
        }
        let (mut syns, mut answers) = (Vec::new(), Vec::new());
        let mut now_ns = start_ns;
        for (attempt, [before, behind, answer_behind, _]) in losses.iter().copied().enumerate() {
            now_ns = start_ns + attempt as i64 * TIMER_NS;
            if before {
                continue;
            }
            syns.push(self.there(now_ns, tcp_flag::SYN, 0, 0, 0));
            if behind || answer_behind {
                continue;
            }
            answers.push(self.back(now_ns + self.one_way_ns, tcp_flag::SYN | tcp_flag::ACK, 0, 0));
        }
        let connected_ns = now_ns + 2 * self.one_way_ns;
        let ack_ns = self.there(connected_ns, tcp_flag::ACK, 0, 1, 0);
        // What is certain: a SYN before the first SYN-ACK, a SYN-ACK before the ACK, if it is the only
        // one. All SYN-ACKs come before the ACK.
        let asked = syns.iter().filter(|&&syn_ns| syn_ns < answers[0]).count();
        if asked == 1 {
            truth.server.add(answers[0] - syns[0]);
        }
        if answers.len() == 1 {
            truth.client.add(ack_ns - answers[0]);
        }
        if syns.len() == 1 && answers.len() == 1 {
            truth.handshake.add(ack_ns - syns[0]);
        }
        connected_ns
    }

    /// Sends segments; the time at which the last is acknowledged.
    fn send(&mut self, start_ns: i64, truth: &mut Truth) -> i64 {
        let mut now_ns = start_ns + MILLISECOND;
        for number in 0..self.path.segments {
            let sent_ns = self.there(now_ns, tcp_flag::ACK, number, 1, SEGMENT_BYTES);
            let answered_ns = self.back(now_ns + self.one_way_ns, tcp_flag::ACK, 1, number + 1);
            truth.data.add(answered_ns - sent_ns);
            now_ns += 2 * self.one_way_ns;
        }
        now_ns
    }

    /// A packet from the client, behind so many segments; when the point sees it.
    fn there(&mut self, sent_ns: i64, flags: u8, segments: u32, ack: u32, bytes: u32) -> i64 {
        let opened = u32::from(flags & tcp_flag::SYN == 0);
        let tcp = TcpFields {
            sequence: self.client.wrapping_add(opened + segments * SEGMENT_BYTES),
            acknowledgement: self.server.wrapping_add(ack),
            flags,
            payload_bytes: bytes,
            timestamps: None,
        };
        self.pass(sent_ns + self.to_point_ns, self.key(), tcp)
    }

    /// A packet from the server, which acknowledges so many segments.
    fn back(&mut self, sent_ns: i64, flags: u8, sequence: u32, segments: u32) -> i64 {
        let tcp = TcpFields {
            sequence: self.server.wrapping_add(sequence),
            acknowledgement: self.client.wrapping_add(1 + segments * SEGMENT_BYTES),
            flags,
            payload_bytes: 0,
            timestamps: None,
        };
        let key = self.key().reversed();
        self.pass(sent_ns + self.one_way_ns - self.to_point_ns, key, tcp)
    }

    fn key(&self) -> FlowKey {
        FlowKey {
            source: Ipv4Addr::new(10, 0, 0, 1).into(),
            destination: Ipv4Addr::new(10, 9, 0, 1).into(),
            source_port: self.port,
            destination_port: 443,
            protocol: protocol::TCP,
        }
    }

    fn pass(&mut self, time_ns: i64, key: FlowKey, tcp: TcpFields) -> i64 {
        let time = Timestamp::from_nanos(time_ns);
        let length = 40 + tcp.payload_bytes;
        let detail = Detail { key, tcp: Some(tcp), ..Detail::default() };
        self.seen.push((Observation { time, length, ..Observation::default() }, detail));
        time_ns
    }
}

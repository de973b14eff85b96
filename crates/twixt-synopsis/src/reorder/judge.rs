//! Whether a TCP packet came late, and whether the network or its sender is to blame.
//!
//! Only packets with data are judged: SYN, RST, pure acknowledgements and keep-alives carry no
//! new place in the stream. Sequence numbers are compared modulo 2^32, as RFC 9293 section 3.4
//! has it.
//!
//! A late packet was either overtaken by others, or retransmitted because it was lost, or believed
//! to be. An overtaken packet was sent before those that overtook it, a retransmission after them:
//! the sender's clock tells, or the identification of IPv4 if it counts packets. Data that arrived
//! before was retransmitted, or is a copy of the same packet. For data that fills a hole there is
//! also the age of that hole: one that closes sooner than a round trip was closed by an overtaken
//! packet, one that closes after very long was not. Where nothing decides, the cause is unknown.

use serde::{Deserialize, Serialize};
use twixt_model::{Detail, TcpFields, Timestamp, tcp_flag};

use super::holes::{Cover, Hole, Holes, difference};

/// What a packet must not come behind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Definition {
    /// The packet before it in its flow: each run of late packets counts once.
    Previous,
    /// All data of its flow so far, as in RFC 4737: each late packet counts.
    #[default]
    Highest,
}

impl Definition {
    pub(super) const NAMES: &'static [&'static str] = &["previous", "highest"];

    pub(super) const fn code(self) -> u8 {
        match self {
            Self::Previous => 0,
            Self::Highest => 1,
        }
    }

    pub(super) const fn from_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(Self::Previous),
            1 => Some(Self::Highest),
            _ => None,
        }
    }
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    InOrder,
    OutOfOrder,
    Retransmitted,
    /// Late, and nothing tells why.
    Undecided,
    /// A copy that the network or a mirror port made: no packet of the sender.
    Duplicate,
    /// A keep-alive: nothing to judge.
    Ignored,
}

/// A packet that fills a hole of this age was not merely overtaken.
const OVERTAKING_MAX_NS: i64 = 500_000_000;
/// Two packets whose identifications differ by more are not known to be counted: a sender may share
/// its counter among connections, or draw at random. Of random ones one in 64 seems to be counted.
const IDENTIFICATION_STEPS_MAX: i16 = 512;
/// A copy follows its original at once; a retransmission of the last packet waits for a timer, which
/// is longer on all known systems.
const COPY_MAX_NS: i64 = 1_000_000;
/// Half of what a sequence number can distinguish, twice on the safe side.
const KNOWN_MAX: u32 = 1 << 30;

/// A packet with data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DataPacket {
    pub(super) time: Timestamp,
    pub(super) sequence: u32,
    pub(super) payload_bytes: u32,
    clock: Option<u32>,
    identification: u16,
}

/// What a packet means for its flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TcpSegment {
    /// A new connection: what was known of the flow is no longer true. `answer` for a SYN-ACK.
    Opening {
        tcp: TcpFields,
        answer: bool,
    },
    Data(DataPacket),
    /// A pure ACK.
    Acknowledgement(TcpFields),
    /// Nothing to judge.
    Other,
}

impl TcpSegment {
    #[inline]
    pub(super) fn of(time: Timestamp, detail: &Detail) -> Self {
        let Some(tcp) = detail.tcp else { return Self::Other };
        let has = |flag: u8| tcp.flags & flag != 0;
        match () {
            () if has(tcp_flag::SYN) => Self::Opening { tcp, answer: has(tcp_flag::ACK) },
            () if has(tcp_flag::RST) => Self::Other,
            () if tcp.payload_bytes > 0 => Self::Data(DataPacket {
                time,
                sequence: tcp.sequence,
                payload_bytes: tcp.payload_bytes,
                clock: tcp.timestamps.map(|(value, _)| value),
                identification: detail.identification,
            }),
            () => Self::Acknowledgement(tcp),
        }
    }
}

impl DataPacket {
    const fn end(&self) -> u32 {
        self.sequence.wrapping_add(self.payload_bytes)
    }

    /// Whether it is the same packet as `other`, seen twice.
    fn is_copy_of(&self, other: &Self) -> bool {
        let same = Self { time: other.time, ..*self } == *other;
        same && (self.time - other.time).as_nanos() < COPY_MAX_NS
    }
}

/// When a late packet was sent, beside the one that reached the end of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sent {
    Before,
    After,
}

/// An overtaken packet was sent before those that overtook it, a retransmission after them.
const fn cause_by(sent: Option<Sent>) -> Verdict {
    match sent {
        Some(Sent::Before) => Verdict::OutOfOrder,
        Some(Sent::After) => Verdict::Retransmitted,
        None => Verdict::Undecided,
    }
}

/// What is remembered of a flow, with so many holes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tracker<const HOLES: usize> {
    previous: DataPacket,
    /// End of the data so far.
    highest: u32,
    /// Data before this is not known to have been seen.
    first: u32,
    holes: Holes<HOLES>,
    /// A hole that closes sooner was not closed by a retransmission.
    reaction_ns: i64,
    /// Sender's clock and identification in the packet that reached `highest`.
    clock: Option<u32>,
    identification: u16,
}

impl<const HOLES: usize> Tracker<HOLES> {
    /// From a flow's first packet. No retransmission fills a hole sooner than `reaction_ns` after it
    /// opened; 0 if that is unknown.
    pub(super) fn new(packet: &DataPacket, reaction_ns: i64) -> Self {
        Self {
            previous: *packet,
            highest: packet.end(),
            first: packet.sequence,
            holes: Holes::NONE,
            reaction_ns,
            clock: packet.clock,
            identification: packet.identification,
        }
    }

    /// Judges the next packet of the flow.
    #[inline]
    pub(super) fn judge(&mut self, packet: &DataPacket, definition: Definition) -> Verdict {
        let distance = difference(packet.sequence, self.highest);
        if distance >= 0 {
            self.advance(packet, distance);
            return Verdict::InOrder;
        }
        let cover = self.holes.cover(packet.sequence, packet.end());
        if packet.payload_bytes == 1 && distance == -1 && cover == Cover::Outside {
            return Verdict::Ignored;
        }
        let is_late = match definition {
            Definition::Highest => true,
            Definition::Previous => difference(packet.sequence, self.previous.sequence) < 0,
        };
        let cause = self.cause(packet, cover);
        // A copy is no packet: it has filled nothing, and others follow its original.
        if cause == Verdict::Duplicate {
            return cause;
        }
        self.previous = *packet;
        self.fill(packet);
        if is_late { cause } else { Verdict::InOrder }
    }

    fn advance(&mut self, packet: &DataPacket, gap: i32) {
        if gap > 0 {
            let (start, end) = (self.highest, packet.sequence);
            let given_up = self.holes.add(Hole { start, end, since: packet.time });
            self.forget_below(given_up);
        }
        self.previous = *packet;
        self.reach(packet);
    }

    /// Late data fills holes; what lies beyond `highest` is new.
    fn fill(&mut self, packet: &DataPacket) {
        let given_up = self.holes.fill(packet.sequence, packet.end());
        self.forget_below(given_up);
        if difference(packet.end(), self.highest) > 0 {
            self.reach(packet);
        }
    }

    /// A hole was given up: from here on down it is not known what has been seen.
    fn forget_below(&mut self, given_up: Option<u32>) {
        if let Some(end) = given_up.filter(|&end| difference(end, self.first) > 0) {
            self.first = end;
        }
    }

    fn reach(&mut self, packet: &DataPacket) {
        self.highest = packet.end();
        self.clock = packet.clock;
        self.identification = packet.identification;
        if self.highest.wrapping_sub(self.first) > KNOWN_MAX {
            let first = self.highest.wrapping_sub(KNOWN_MAX);
            self.holes.fill(self.first, first);
            self.first = first;
        }
    }

    /// Why a packet is late, as far as one can tell.
    fn cause(&self, packet: &DataPacket, cover: Cover) -> Verdict {
        if packet.is_copy_of(&self.previous) {
            return Verdict::Duplicate;
        }
        if difference(packet.sequence, self.first) < 0 {
            return cause_by(self.sent(packet));
        }
        match cover {
            Cover::Within(since) => self.cause_of_filling(packet, since),
            // Who sends a part of it again has cut the data anew.
            Cover::Partly if self.sent(packet) == Some(Sent::Before) => Verdict::OutOfOrder,
            Cover::Partly => Verdict::Retransmitted,
            Cover::Outside if self.is_copy(packet) => Verdict::Duplicate,
            Cover::Outside => Verdict::Retransmitted,
        }
    }

    /// Of a packet that lies within a hole: each hole has its own age.
    fn cause_of_filling(&self, packet: &DataPacket, since: Timestamp) -> Verdict {
        let age_ns = (packet.time - since).as_nanos();
        let by_age = match () {
            () if age_ns > OVERTAKING_MAX_NS => Some(Sent::After),
            () if age_ns < self.reaction_ns => Some(Sent::Before),
            () => None,
        };
        let sent = self.sent_by_clock(packet).or(by_age);
        cause_by(sent.or_else(|| self.sent_by_identification(packet)))
    }

    /// Whether a packet whose data arrived before is the packet that brought it.
    fn is_copy(&self, packet: &DataPacket) -> bool {
        let is_leader = packet.end() == self.highest
            && packet.identification != 0
            && (packet.identification, packet.clock) == (self.identification, self.clock);
        is_leader || self.sent(packet) == Some(Sent::Before)
    }

    fn sent(&self, packet: &DataPacket) -> Option<Sent> {
        self.sent_by_clock(packet).or_else(|| self.sent_by_identification(packet))
    }

    fn sent_by_clock(&self, packet: &DataPacket) -> Option<Sent> {
        let (leader, late) = self.clock.zip(packet.clock)?;
        match difference(late, leader) {
            ..0 => Some(Sent::Before),
            0 => None,
            1.. => Some(Sent::After),
        }
    }

    fn sent_by_identification(&self, packet: &DataPacket) -> Option<Sent> {
        match packet.identification.wrapping_sub(self.identification) as i16 {
            1..=IDENTIFICATION_STEPS_MAX => Some(Sent::After),
            steps if (-IDENTIFICATION_STEPS_MAX..0).contains(&steps) => Some(Sent::Before),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet of 100 bytes: `sequence@milliseconds`, then `c` and the sender's clock, `i` and
    /// the identification. Behind the packet its verdict: `.` in order, `o` out of order, `r`
    /// retransmitted, `u` undecided, `d` a duplicate. The handshake took 12 ms.
    #[track_caller]
    fn check(definition: Definition, packets: &str) {
        check_with(definition, 3_000_000, packets);
    }

    #[track_caller]
    fn check_with(definition: Definition, reaction_ns: i64, packets: &str) {
        let mut tracker: Option<Tracker<4>> = None;
        for word in packets.split_whitespace() {
            let (text, expected) = word.split_at(word.len() - 1);
            let packet = parse(text);
            let verdict = match &mut tracker {
                None => {
                    tracker = Some(Tracker::new(&packet, reaction_ns));
                    Verdict::InOrder
                }
                Some(tracker) => tracker.judge(&packet, definition),
            };
            let found = match verdict {
                Verdict::InOrder => ".",
                Verdict::OutOfOrder => "o",
                Verdict::Retransmitted => "r",
                Verdict::Undecided => "u",
                Verdict::Duplicate => "d",
                Verdict::Ignored => "-",
            };
            assert_eq!(found, expected, "{word} in {packets}");
        }
    }

    fn parse(text: &str) -> DataPacket {
        let value = |mark: char| {
            let rest = text.split_once(mark)?.1;
            let end = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
            rest[..end].parse::<u32>().ok()
        };
        let start = text.split('@').next().unwrap();
        DataPacket {
            time: Timestamp::from_nanos(i64::from(value('@').unwrap()) * 1_000_000),
            sequence: start.parse::<i64>().unwrap() as u32,
            payload_bytes: value('b').unwrap_or(100),
            clock: value('c'),
            identification: value('i').unwrap_or(0) as u16,
        }
    }

    const BOTH: [Definition; 2] = [Definition::Previous, Definition::Highest];

    #[test]
    fn an_overtaken_packet_is_out_of_order() {
        for definition in BOTH {
            check(definition, "0@0. 200@1. 100@2o 300@3.");
            check(definition, "-100@0. 100@1. 0@2o 200@3."); // through 0
        }
    }

    #[test]
    fn a_run_of_late_packets_counts_once_or_each() {
        check(Definition::Previous, "0@0. 300@1. 100@2o 200@2. 400@3.");
        check(Definition::Highest, "0@0. 300@1. 100@2o 200@2o 400@3.");
    }

    #[test]
    fn the_clock_of_the_sender_tells() {
        check(Definition::Highest, "0@0c10. 200@1c12. 100@2c11o");
        check(Definition::Highest, "0@0c10. 200@1c12. 100@2c13r");
        check(Definition::Highest, "0@0c10. 200@1c10. 100@9c10i9r 300@9c10i8.");
    }

    #[test]
    fn what_was_seen_already_is_retransmitted() {
        for definition in BOTH {
            check(definition, "0@0. 100@1. 200@2. 100@2r 300@3.");
        }
        check(Definition::Highest, "500@0. 600@1. 400@1u"); // from before the first
        check(Definition::Highest, "500@0i5. 600@1i6. 400@1i4o");
        // Cut anew, with data that was missing.
        check(Definition::Highest, "0@0. 200@1. 100@2b200r 300@3.");
    }

    #[test]
    fn copies_are_no_packets() {
        for definition in BOTH {
            check(definition, "0@0. 0@0d 100@1. 100@1d 300@2. 300@2d 200@3o 200@3d");
            // Copies that come behind the next packet.
            check(definition, "0@0i1. 100@1i2. 0@1i1d 100@1i2d 200@2i3. 100@3i4r");
            check(definition, "0@0i1. 100@1i2. 0@1i3r 100@1i2d 0@1i3d");
        }
        check(Definition::Highest, "0@0. 100@1. 100@9r");
        check(Definition::Highest, "500@0. 400@1u 400@1d");
    }

    #[test]
    fn a_hole_that_closes_late_is_closed_by_the_sender_or_its_identifications_tell() {
        check(Definition::Highest, "0@0i1. 200@1i3. 100@1001i2r");
        check(Definition::Highest, "0@0i1. 200@1i3. 100@100i4r");
        check(Definition::Highest, "0@0i1. 200@1i3. 100@100i2o");
        check(Definition::Highest, "0@0i1. 200@1i3. 100@2i4o"); // sooner than anyone reacts
        check(Definition::Highest, "0@0i9000. 200@1i700. 100@100i30000u"); // drawn at random
    }

    #[test]
    fn without_evidence_nothing_is_claimed() {
        check(Definition::Highest, "0@0. 200@1. 100@100u");
        check(Definition::Highest, "0@0. 200@1. 100@2o");
        check_with(Definition::Highest, 0, "0@0. 200@1. 100@2u");
        check_with(Definition::Highest, 0, "0@0c1. 200@1c1. 100@2c1u");
    }

    #[test]
    fn the_age_of_a_hole_is_its_own() {
        check(Definition::Highest, "0@0. 200@1. 400@900. 300@901o 100@902r");
        // Five holes, where four are remembered.
        let opened = "0@0. 200@1. 400@2. 600@3. 800@4. 1000@5.";
        check(Definition::Highest, &format!("{opened} 900@6o 700@6o 300@6u 100@6u"));
    }

    #[test]
    fn keep_alives_are_not_judged() {
        check(Definition::Highest, "0@0. 101@1. 100@2b1o 201@3.");
        check(Definition::Highest, "0@0. 100@1. 199@9b1- 200@10.");
        check(Definition::Highest, "0@0. 100@1. 200@9b1. 201@10.");
    }
}

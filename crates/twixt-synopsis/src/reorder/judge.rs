//! Whether a TCP packet came late, and whether the network or its sender is to blame.
//!
//! Only packets with data are judged: SYN, RST, pure acknowledgements and keep-alives carry no
//! new place in the stream. Sequence numbers are compared modulo 2^32, as RFC 9293 section 3.4
//! has it.
//!
//! A late packet was either overtaken by others, or sent again because it was lost, or believed
//! to be. Its sender's clock tells, if the packet carries one: an overtaken packet is older than
//! the one it is compared with, a retransmission newer. Else: data that this point has seen
//! already, since the flow left no hole, is sent again. A hole that closes at once was closed by an
//! overtaken packet, because no sender hears of a loss so soon; one that closes after very long
//! was not. Between the two the identification of IPv4 decides, which senders count up. Where
//! nothing decides, the packet is out of order.

use serde::{Deserialize, Serialize};
use twixt_model::{Detail, Timestamp, tcp_flag};

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
    /// A keep-alive: nothing to judge.
    Ignored,
}

/// A hole that closes sooner was not closed by a retransmission.
const REACTION_MIN_NS: i64 = 3_000_000;
/// A packet that comes later than this behind a hole was not merely overtaken.
const OVERTAKING_MAX_NS: i64 = 500_000_000;
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
    /// A new connection: what was known of the flow is no longer true.
    Opening,
    Data(DataPacket),
    /// Nothing to judge.
    Other,
}

impl TcpSegment {
    #[inline]
    pub(super) fn of(time: Timestamp, detail: &Detail) -> Self {
        match detail.tcp {
            Some(tcp) if tcp.flags & tcp_flag::SYN != 0 => Self::Opening,
            Some(tcp) if tcp.payload_bytes > 0 && tcp.flags & tcp_flag::RST == 0 => {
                Self::Data(DataPacket {
                    time,
                    sequence: tcp.sequence,
                    payload_bytes: tcp.payload_bytes,
                    clock: tcp.timestamps.map(|(value, _)| value),
                    identification: detail.identification,
                })
            }
            _ => Self::Other,
        }
    }
}

/// What is remembered of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tracker {
    previous: u32,
    /// End of the data so far.
    highest: u32,
    /// Data before this is not known to have been seen.
    first: u32,
    /// Bytes that are still missing below `highest`.
    missing_bytes: u32,
    /// When they began to be.
    hole_since: Timestamp,
    /// Sender's clock and identification in the packet that reached `highest`.
    clock: Option<u32>,
    identification: u16,
}

impl Tracker {
    /// From a flow's first packet.
    pub(super) fn new(packet: &DataPacket) -> Self {
        Self {
            previous: packet.sequence,
            highest: packet.sequence.wrapping_add(packet.payload_bytes),
            first: packet.sequence,
            missing_bytes: 0,
            hole_since: packet.time,
            clock: packet.clock,
            identification: packet.identification,
        }
    }

    /// Judges the next packet of the flow.
    #[inline]
    pub(super) fn judge(&mut self, packet: &DataPacket, definition: Definition) -> Verdict {
        let distance = difference(packet.sequence, self.highest);
        if packet.payload_bytes == 1 && distance == -1 {
            return Verdict::Ignored;
        }
        if distance >= 0 {
            self.advance(packet, distance);
            return Verdict::InOrder;
        }
        let is_late = match definition {
            Definition::Highest => true,
            Definition::Previous => difference(packet.sequence, self.previous) < 0,
        };
        let resent = is_late && self.is_resent(packet);
        self.previous = packet.sequence;
        self.fill(packet, distance);
        match (is_late, resent) {
            (false, _) => Verdict::InOrder,
            (true, true) => Verdict::Retransmitted,
            (true, false) => Verdict::OutOfOrder,
        }
    }

    fn advance(&mut self, packet: &DataPacket, gap: i32) {
        if gap > 0 {
            if self.missing_bytes == 0 {
                self.hole_since = packet.time;
            }
            self.missing_bytes = self.missing_bytes.saturating_add(gap.unsigned_abs());
        }
        self.previous = packet.sequence;
        self.reach(packet);
    }

    /// Late data fills holes; what lies beyond `highest` is new.
    fn fill(&mut self, packet: &DataPacket, distance: i32) {
        self.missing_bytes = self.missing_bytes.saturating_sub(packet.payload_bytes);
        if packet.payload_bytes > distance.unsigned_abs() {
            self.reach(packet);
        }
    }

    fn reach(&mut self, packet: &DataPacket) {
        self.highest = packet.sequence.wrapping_add(packet.payload_bytes);
        self.clock = packet.clock;
        self.identification = packet.identification;
        if self.highest.wrapping_sub(self.first) > KNOWN_MAX {
            self.first = self.highest.wrapping_sub(KNOWN_MAX);
        }
    }

    /// Whether a late packet was sent again, as far as one can tell.
    fn is_resent(&self, packet: &DataPacket) -> bool {
        let clocks = self.clock.zip(packet.clock);
        match clocks.map(|(leader, late)| difference(late, leader)) {
            Some(..0) => return false,
            Some(1..) => return true,
            Some(0) | None => {}
        }
        if self.missing_bytes == 0 {
            return difference(packet.sequence, self.first) >= 0;
        }
        let since_ns = packet.time.as_nanos().saturating_sub(self.hole_since.as_nanos());
        if since_ns > OVERTAKING_MAX_NS {
            return true;
        }
        if since_ns < REACTION_MIN_NS && clocks.is_none() {
            return false;
        }
        (packet.identification.wrapping_sub(self.identification) as i16) > 0
    }
}

/// How far `one` lies behind `other`, modulo 2^32.
const fn difference(one: u32, other: u32) -> i32 {
    one.wrapping_sub(other) as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet of 100 bytes: `sequence@milliseconds`, then `c` and the sender's clock, `i` and
    /// the identification. Behind the packet its verdict: `.` in order, `o` out of order, `r`
    /// sent again.
    #[track_caller]
    fn check(definition: Definition, packets: &str) {
        let mut tracker: Option<Tracker> = None;
        for word in packets.split_whitespace() {
            let (text, expected) = word.split_at(word.len() - 1);
            let packet = parse(text);
            let verdict = match &mut tracker {
                None => {
                    tracker = Some(Tracker::new(&packet));
                    Verdict::InOrder
                }
                Some(tracker) => tracker.judge(&packet, definition),
            };
            let found = match verdict {
                Verdict::InOrder => ".",
                Verdict::OutOfOrder => "o",
                Verdict::Retransmitted => "r",
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
        check(Definition::Highest, "0@0c10. 200@1c10. 100@1c10i9r 300@1c10i8.");
    }

    #[test]
    fn what_was_seen_already_is_sent_again() {
        for definition in BOTH {
            check(definition, "0@0. 100@1. 200@2. 100@2r 300@3.");
        }
        check(Definition::Highest, "500@0. 600@1. 400@1o"); // from before the first
    }

    #[test]
    fn a_hole_that_closes_late_is_closed_by_the_sender_or_its_identifications_tell() {
        check(Definition::Highest, "0@0i1. 200@1i3. 100@1001i2r");
        check(Definition::Highest, "0@0i1. 200@1i3. 100@100i4r");
        check(Definition::Highest, "0@0i1. 200@1i3. 100@100i2o");
        check(Definition::Highest, "0@0i1. 200@1i3. 100@2i4o"); // sooner than anyone reacts
        check(Definition::Highest, "0@0. 200@1. 100@100o"); // IPv6: nothing tells
    }

    #[test]
    fn keep_alives_are_not_judged() {
        check(Definition::Highest, "0@0. 100@1. 199@9b1- 200@10.");
        check(Definition::Highest, "0@0. 100@1. 200@9b1. 201@10.");
    }
}

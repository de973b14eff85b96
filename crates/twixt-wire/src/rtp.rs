//! RTP streams among the UDP packets of a capture (RFC 3550).
//!
//! Nothing in a packet says that it is RTP. A stream is believed only if many packets have the form, one
//! source (SSRC), sequence numbers that count up and timestamps that go on with them.

use std::collections::BTreeMap;

use twixt_model::{FlowKey, Timestamp, protocol};

use crate::bytes::{be16, be32};
use crate::packet::Packet;

/// The fixed header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtpHeader {
    /// What the payload is (RFC 3551).
    pub payload_type: u8,
    /// Counts packets.
    pub sequence: u16,
    /// When the payload was sampled, by a clock of the medium.
    pub timestamp: u32,
    /// The source that it comes from.
    pub ssrc: u32,
}

impl RtpHeader {
    /// Of the payload of UDP, if it has the form.
    #[must_use]
    pub fn of(payload: &[u8]) -> Option<Self> {
        let (&first, &second) = (payload.first()?, payload.get(1)?);
        let payload_type = second & 0x7f;
        // Types up to 34 are assigned, those from 96 on agreed upon. RTCP would be 72 to 76.
        let is_known = matches!(payload_type, 0 | 3..=18 | 25 | 26 | 28 | 31..=34 | 96..=127);
        if first >> 6 != 2 || !is_known {
            return None;
        }
        let (timestamp, ssrc) = (be32(payload, 4)?, be32(payload, 8)?);
        Some(Self { payload_type, sequence: be16(payload, 2)?, timestamp, ssrc })
    }
}

/// A stream that was recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtpStream {
    /// Its flow.
    pub key: FlowKey,
    /// Its source.
    pub ssrc: u32,
    /// What most of its packets carry.
    pub payload_type: u8,
    /// Its packets in the capture.
    pub packets: u64,
    /// Units of its timestamps per second, if they are those of a usual clock.
    pub clock_hz: Option<u32>,
    /// Units of its timestamps from one packet to the next, mostly.
    pub step: u32,
    /// Whether other streams share its flow.
    pub shares_flow: bool,
}

/// Flows that are followed at most.
pub const RTP_FLOWS_MAX: usize = 1 << 16;
/// Streams of one flow that are distinguished at most.
const STREAMS_PER_FLOW: usize = 8;
/// Packets that must continue a stream before it is believed. That a packet of anything else does so has
/// a probability of less than 2⁻⁴⁰: SSRC, sequence number and timestamp would have to fit by accident.
const CONTINUED_MIN: u64 = 10;
/// Sequence numbers and timestamps that go further than this do not continue a stream: two seconds of
/// packets, and a minute of the fastest clock.
const SEQUENCE_STEP_MAX: u16 = 100;
const TIMESTAMP_STEP_MAX: u32 = 60 * 90_000;

/// Finds RTP streams.
#[derive(Clone, Debug, Default)]
pub struct RtpFinder {
    flows: BTreeMap<FlowKey, Followed>,
    refused: u64,
}

#[derive(Clone, Debug, Default)]
struct Followed {
    packets: u64,
    streams: Vec<Source>, // at most STREAMS_PER_FLOW
}

/// A source that may be a stream.
#[derive(Clone, Debug)]
struct Source {
    packets: u64,
    continued: u64,
    first: (Timestamp, RtpHeader),
    last: (Timestamp, RtpHeader),
    payload_type: Majority<u8>,
    step: Majority<u32>,
}

/// The most frequent of many values, if it is more than half of them.
#[derive(Clone, Copy, Debug, Default)]
struct Majority<T> {
    value: T,
    surplus: u64,
}

impl RtpFinder {
    /// Takes a packet.
    pub fn note(&mut self, time: Timestamp, packet: &Packet, frame: &[u8]) {
        if packet.protocol() != protocol::UDP || !packet.is_first_fragment() {
            return;
        }
        let key = packet.flow_key();
        if self.flows.len() >= RTP_FLOWS_MAX && !self.flows.contains_key(&key) {
            self.refused += 1;
            return;
        }
        let flow = self.flows.entry(key).or_default();
        flow.packets += 1;
        let Some(header) = RtpHeader::of(packet.payload(frame)) else { return };
        match flow.streams.iter().position(|source| source.first.1.ssrc == header.ssrc) {
            Some(place) => flow.streams[place].note(time, header),
            None if flow.streams.len() < STREAMS_PER_FLOW => {
                flow.streams.push(Source::new(time, header));
            }
            None => {}
        }
    }

    /// Packets of flows beyond [`RTP_FLOWS_MAX`].
    #[must_use]
    pub const fn refused(&self) -> u64 {
        self.refused
    }

    /// The streams, by flow.
    #[must_use]
    pub fn streams(&self) -> Vec<RtpStream> {
        let of_flow = |(key, flow): (&FlowKey, &Followed)| {
            let sources: Vec<_> =
                flow.streams.iter().filter(|one| one.is_stream()).cloned().collect();
            let packets: u64 = sources.iter().map(|source| source.packets).sum();
            // RTCP and STUN may share the flow, at a packet or two per second.
            let is_rtp = packets * 10 >= flow.packets * 9;
            let (key, shares_flow) = (*key, sources.len() > 1);
            let sources = if is_rtp { sources } else { Vec::new() };
            sources.into_iter().map(move |source| source.stream(key, shares_flow))
        };
        self.flows.iter().flat_map(of_flow).collect()
    }
}

impl Source {
    const fn new(time: Timestamp, header: RtpHeader) -> Self {
        let seen = (time, header);
        let payload_type = Majority { value: header.payload_type, surplus: 1 };
        let step = Majority { value: 0, surplus: 0 };
        Self { packets: 1, continued: 0, first: seen, last: seen, payload_type, step }
    }

    fn note(&mut self, time: Timestamp, header: RtpHeader) {
        self.packets += 1;
        self.payload_type.note(header.payload_type);
        let before = self.last.1;
        let ahead = header.sequence.wrapping_sub(before.sequence);
        let behind = before.sequence.wrapping_sub(header.sequence);
        let step = header.timestamp.wrapping_sub(before.timestamp);
        if (1..=SEQUENCE_STEP_MAX).contains(&ahead) && step <= TIMESTAMP_STEP_MAX {
            self.continued += 1;
            if ahead == 1 {
                self.step.note(step);
            }
            self.last = (time, header);
        } else if behind > SEQUENCE_STEP_MAX {
            // It began anew. Packets that were overtaken change nothing.
            self.last = (time, header);
        }
    }

    fn is_stream(&self) -> bool {
        let moves = self.first.1.timestamp != self.last.1.timestamp;
        moves && self.continued >= CONTINUED_MIN && self.continued * 10 >= self.packets * 9
    }

    fn stream(&self, key: FlowKey, shares_flow: bool) -> RtpStream {
        let Self { packets, first, last, payload_type, step, .. } = self;
        let units = last.1.timestamp.wrapping_sub(first.1.timestamp);
        let seconds = (last.0 - first.0).as_nanos() as f64 / 1e9;
        RtpStream {
            key,
            ssrc: first.1.ssrc,
            payload_type: payload_type.value,
            packets: *packets,
            clock_hz: usual_clock(f64::from(units) / seconds),
            step: step.value,
            shares_flow,
        }
    }
}

impl<T: PartialEq> Majority<T> {
    /// The vote of Boyer and Moore: it needs no memory for the others.
    fn note(&mut self, value: T) {
        if self.value == value {
            self.surplus += 1;
        } else if self.surplus == 0 {
            *self = Self { value, surplus: 1 };
        } else {
            self.surplus -= 1;
        }
    }
}

/// The clock of RFC 3551 that runs about as fast.
fn usual_clock(hz: f64) -> Option<u32> {
    const CLOCKS: [u32; 8] = [8_000, 11_025, 16_000, 24_000, 32_000, 44_100, 48_000, 90_000];
    CLOCKS.into_iter().find(|&clock| (hz / f64::from(clock) - 1.0).abs() < 0.04)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payload(first: u8, second: u8, sequence: u16, timestamp: u32, ssrc: u32) -> Vec<u8> {
        let mut bytes = vec![first, second];
        bytes.extend(sequence.to_be_bytes());
        bytes.extend(timestamp.to_be_bytes());
        bytes.extend(ssrc.to_be_bytes());
        bytes
    }

    /// Streams of one flow, of packets 20 ms apart.
    fn found(payloads: impl IntoIterator<Item = Vec<u8>>) -> Vec<(u32, u8, Option<u32>, u32)> {
        let mut finder = RtpFinder::default();
        for (index, payload) in payloads.into_iter().enumerate() {
            let length = 28 + payload.len() as u16;
            let mut frame = vec![0x45, 0];
            frame.extend(length.to_be_bytes());
            frame.extend([0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0x40, 0, 0x50, 0]);
            frame.extend((length - 20).to_be_bytes());
            frame.extend([0, 0]);
            frame.extend(payload);
            let options = crate::ParseOptions { outer: false, wire_length: None };
            let packet = crate::parse(crate::LinkType::RAW, &frame, options).expect("it is UDP");
            finder.note(Timestamp::from_nanos(index as i64 * 20_000_000), &packet, &frame);
        }
        let of =
            |stream: &RtpStream| (stream.ssrc, stream.payload_type, stream.clock_hz, stream.step);
        finder.streams().iter().map(of).collect()
    }

    #[test]
    fn a_call_is_recognised_with_lost_and_exchanged_packets() {
        let mut numbers: Vec<u16> = (0..100).filter(|number| number % 17 != 3).collect();
        numbers.swap(40, 41);
        let call = numbers.iter().map(|&number| {
            let sequence = number.wrapping_add(u16::MAX - 50);
            payload(0x80, 0, sequence, 160 * u32::from(number), 0xdead_beef)
        });
        // Gaps make timestamps faster than 20 ms a packet, within what a clock may be off.
        assert_eq!(found(call), [(0xdead_beef, 0, None, 160)]);
        let whole = (0..100).map(|number| payload(0x80, 0x88, number, 160 * u32::from(number), 7));
        assert_eq!(found(whole), [(7, 8, Some(8_000), 160)]);
    }

    #[test]
    fn other_packets_are_no_streams() {
        let call = |number: u16| payload(0x80, 0, number, 160 * u32::from(number), 7);
        // Too few; one sequence number; another version; RTCP; random sources; timestamps that jump.
        assert_eq!(found((0..10).map(call)), []);
        assert_eq!(found((0..100).map(|number| payload(0x80, 0, 5, number, 7))), []);
        assert_eq!(found((0..100).map(|number| payload(0x40, 0, number, number.into(), 7))), []);
        assert_eq!(found((0..100).map(|number| payload(0x80, 200, number, number.into(), 7))), []);
        let sources = (0..100).map(|number| payload(0x80, 0, number, 160, u32::from(number) * 77));
        assert_eq!(found(sources), []);
        let jumps = |number: u16| payload(0x80, 0, number, u32::from(number) * 0x0123_4567, 7);
        assert_eq!(found((0..100).map(jumps)), []);
        // A stream among as many other packets is not believed.
        let mixed =
            (0..100).map(|number| if number % 2 == 0 { call(number / 2) } else { vec![1; 40] });
        assert_eq!(found(mixed), []);
        assert_eq!(found((0..100).map(|number| vec![number as u8; 5])), []);
    }

    #[test]
    fn two_sources_share_a_flow() {
        let both = (0..100).map(|number: u16| {
            let source = u32::from(number % 2);
            payload(0x80, 96, number / 2, 1_800 * u32::from(number), source)
        });
        assert_eq!(found(both).len(), 2);
    }
}

//! Ethernet frames as the two points see them: IPv4 with UDP or TCP, all checksums right.

use crate::traffic::{Flow, SentPacket, Transport};

/// A point that sees a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Point {
    Upstream,
    Downstream,
}

/// Hops that a packet may take, at the first point that sees it.
const HOPS: u8 = 64;
const IP_BYTES: usize = 20;

/// The frame of a packet that a point sees. `flow` is that of its direction.
pub(crate) fn frame(packet: &SentPacket, flow: Flow, point: Point, first: Point) -> Vec<u8> {
    let segment = segment(packet, flow);
    let mut frame = ethernet(point);
    frame.extend(ip_header(packet, flow, segment.len(), HOPS - u8::from(point != first)));
    frame.extend(segment);
    frame
}

/// A router between the points rewrites addresses.
fn ethernet(point: Point) -> Vec<u8> {
    let side = u8::from(point == Point::Downstream);
    let mut header = vec![2, 0, 0, 0, side, 1, 2, 0, 0, 0, side, 2];
    header.extend(0x0800_u16.to_be_bytes());
    header
}

fn ip_header(packet: &SentPacket, flow: Flow, payload_bytes: usize, hops: u8) -> [u8; IP_BYTES] {
    const DO_NOT_FRAGMENT: u8 = 0x40;
    let length = u16::try_from(IP_BYTES + payload_bytes).expect("frames are short");
    let mut header = [0; IP_BYTES];
    header[0] = 0x45;
    header[2..4].copy_from_slice(&length.to_be_bytes());
    header[4..6].copy_from_slice(&packet.sequence.to_be_bytes()[2..]);
    header[6] = DO_NOT_FRAGMENT;
    header[8] = hops;
    header[9] = protocol(flow.transport);
    header[12..16].copy_from_slice(&flow.source.0.octets());
    header[16..].copy_from_slice(&flow.destination.0.octets());
    let sum = checksum(&[&header]);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    header
}

const fn protocol(transport: Transport) -> u8 {
    match transport {
        Transport::Tcp => 6,
        Transport::Udp => 17,
    }
}

/// Header of the transport, and payload.
fn segment(packet: &SentPacket, flow: Flow) -> Vec<u8> {
    const PUSH_AND_ACKNOWLEDGE: u8 = 0x18;
    let payload = payload(packet);
    let mut bytes = Vec::with_capacity(IP_BYTES + payload.len());
    bytes.extend(flow.source.1.to_be_bytes());
    bytes.extend(flow.destination.1.to_be_bytes());
    let checksum_at = match flow.transport {
        Transport::Udp => {
            let length = u16::try_from(8 + payload.len()).expect("frames are short");
            bytes.extend(length.to_be_bytes());
            6
        }
        Transport::Tcp => {
            // Sequence numbers leave gaps: nothing here reassembles the stream.
            bytes.extend((packet.sequence * 1_000).to_be_bytes());
            bytes.extend([0, 0, 0, 1, 0x50, PUSH_AND_ACKNOWLEDGE, 0xff, 0xff]);
            16
        }
    };
    bytes.extend([0; 2]);
    if flow.transport == Transport::Tcp {
        bytes.extend([0; 2]); // no urgent data
    }
    bytes.extend(payload);
    let sum = checksum(&[&pseudo_header(flow, bytes.len()), &bytes]);
    // Zero would mean that UDP has no checksum.
    let sum = if sum == 0 && flow.transport == Transport::Udp { 0xffff } else { sum };
    bytes[checksum_at..checksum_at + 2].copy_from_slice(&sum.to_be_bytes());
    bytes
}

/// Different for each sequence number of a flow, and so the same for packets that repeat each other.
fn payload(packet: &SentPacket) -> Vec<u8> {
    let mut payload = Vec::with_capacity(packet.payload_bytes);
    payload.extend((packet.flow as u64).to_be_bytes());
    payload.extend(packet.sequence.to_be_bytes());
    let mut letters = (b'a'..=b'z').cycle();
    payload.resize_with(packet.payload_bytes, || letters.next().expect("it never ends"));
    payload
}

fn pseudo_header(flow: Flow, segment_bytes: usize) -> [u8; 12] {
    let length = u16::try_from(segment_bytes).expect("frames are short");
    let mut header = [0; 12];
    header[..4].copy_from_slice(&flow.source.0.octets());
    header[4..8].copy_from_slice(&flow.destination.0.octets());
    header[9] = protocol(flow.transport);
    header[10..].copy_from_slice(&length.to_be_bytes());
    header
}

/// RFC 1071. Every part but the last has an even length.
fn checksum(parts: &[&[u8]]) -> u16 {
    let words = parts.iter().flat_map(|part| part.chunks(2));
    let word = |chunk: &[u8]| (u32::from(chunk[0]) << 8) | u32::from(*chunk.get(1).unwrap_or(&0));
    let mut sum: u32 = words.map(word).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 1071, section 3.
    #[test]
    fn the_checksum_is_that_of_the_standard() {
        assert_eq!(checksum(&[&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]]), !0xddf2);
    }

    #[test]
    fn only_what_routers_change_differs_between_points() {
        let packet =
            SentPacket { flow: 1, sequence: 7, payload_bytes: 24, sent_ns: 0, delay_ns: None };
        let source = ([10, 0, 0, 1].into(), 1);
        let destination = ([10, 0, 0, 2].into(), 2);
        let flow = Flow { transport: Transport::Udp, source, destination };
        let [up, down] = [Point::Upstream, Point::Downstream]
            .map(|at| frame(&packet, flow, at, Point::Upstream));
        let differ: Vec<usize> = (0..up.len()).filter(|&at| up[at] != down[at]).collect();
        // Both Ethernet addresses, hops and the first byte of the header's checksum.
        assert_eq!(differ, [4, 10, 22, 24]);
    }
}

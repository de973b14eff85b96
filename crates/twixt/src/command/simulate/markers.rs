//! Markers among the simulated packets, as an agent at the upstream point would have sent them.

use twixt_measure::{MARKER_BYTES, Marker};
use twixt_model::{Delay, Epoch, EpochRule, PointId, Timestamp};
use twixt_offline::segment;
use twixt_sim::{Direction, Side, Simulation};

/// A marker at one point.
pub(super) struct MarkerFrame {
    pub(super) time: Timestamp,
    pub(super) bytes: [u8; FRAME_BYTES],
}

/// Ethernet, IPv4 and UDP before the marker itself.
const HEADERS_BYTES: usize = 14 + 20 + 8;
const FRAME_BYTES: usize = HEADERS_BYTES + MARKER_BYTES;
const TICK: Delay = Delay::from_nanos(1);

/// The markers that a point sees: one before the first packet, one at every boundary of an epoch
/// that has packets, one behind the last packet.
///
/// Downstream a marker follows the last arrival of all packets sent before it, as on a segment
/// that keeps the order of packets.
pub(super) fn markers(simulation: &Simulation, rule: EpochRule, point: Side) -> Vec<MarkerFrame> {
    let PointId(upstream) = segment().upstream;
    let stream = Marker::stream_of("", &PointId(upstream), "");
    let mut made = Vec::new();
    let mut current: Option<Epoch> = None;
    let mut latest: Option<Timestamp> = None;
    let mut mark = |time, ends, starts| {
        let sequence = made.len() as u64;
        let marker = Marker { stream, run: 1, sequence, ends, starts };
        made.push(MarkerFrame { time, bytes: frame(&marker, sequence, point) });
    };
    let forward = simulation
        .packets()
        .iter()
        .filter(|packet| simulation.direction(packet) == Direction::Forward);
    for packet in forward {
        let Some(sent) = simulation.seen_at(packet, Side::Upstream) else { continue };
        let seen = simulation.seen_at(packet, point);
        let epoch = rule.epoch_of(sent);
        if current != Some(epoch) {
            let time = match (point, latest) {
                (Side::Upstream, _) => rule.span_of(epoch).start.min(sent) - TICK,
                (Side::Downstream, Some(latest)) => latest,
                (Side::Downstream, None) => seen.unwrap_or(sent) - TICK,
            };
            mark(time, current.unwrap_or(Epoch(epoch.0 - 1)), epoch);
            current = Some(epoch);
        }
        latest = latest.max(seen);
    }
    if let (Some(epoch), Some(latest)) = (current, latest) {
        mark(latest + TICK, epoch, Epoch(epoch.0 + 1));
    }
    made
}

/// From 192.0.2.1 to 192.0.2.2 (documentation addresses), to the discard port.
fn frame(marker: &Marker, sequence: u64, point: Side) -> [u8; FRAME_BYTES] {
    let mut bytes = [0; FRAME_BYTES];
    bytes[12..14].copy_from_slice(&[0x08, 0x00]);
    let ip_length = (FRAME_BYTES - 14) as u16;
    let ttl = if point == Side::Upstream { 64 } else { 63 };
    bytes[14..16].copy_from_slice(&[0x45, 0]);
    bytes[16..18].copy_from_slice(&ip_length.to_be_bytes());
    bytes[18..20].copy_from_slice(&(sequence as u16).to_be_bytes());
    bytes[22..24].copy_from_slice(&[ttl, 17]);
    bytes[26..30].copy_from_slice(&[192, 0, 2, 1]);
    bytes[30..34].copy_from_slice(&[192, 0, 2, 2]);
    let checksum = internet_checksum(&bytes[14..34]);
    bytes[24..26].copy_from_slice(&checksum.to_be_bytes());
    bytes[36..38].copy_from_slice(&9_u16.to_be_bytes());
    bytes[38..40].copy_from_slice(&(ip_length - 20).to_be_bytes());
    bytes[HEADERS_BYTES..].copy_from_slice(&marker.to_bytes());
    bytes
}

/// RFC 1071.
fn internet_checksum(header: &[u8]) -> u16 {
    let words =
        header.chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

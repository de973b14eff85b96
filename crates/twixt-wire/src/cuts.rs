//! TCP data by byte range, where two points saw the same bytes in other segments.
//!
//! Offloads merge segments and cut them again, so that one point may see 64 KiB in one segment where
//! the other sees 45. The bytes are the same, and sequence numbers say which. So all segments of such
//! a flow, at both points, are cut wherever a segment of either point begins or ends: what remains is
//! in one segment at each point, and can be recognised. This *piece* takes the place of the packet: it
//! has the time of the segment that it lies in, since nothing else is known of it, and the length that
//! it would have as a packet. A range that is sent again is an identical packet.
//!
//! Where both points saw merged segments, the wire carried more packets than there are pieces. If most of
//! the merged segments are multiples of the length that single ones usually have, they are cut into
//! such lengths, as offloads do; if not, the flow counts as one whose packets are not known.
//!
//! A flow that both points saw in the same segments is left alone: its packets are identified by more
//! than their range.

use std::collections::BTreeMap;

use twixt_model::{FlowHash, Observation, PacketDigest, mix, tcp_flag};

use crate::packet::Packet;

/// Segments of one point that are noted at most, 8 bytes each. Flows with further ones are not cut.
pub const SEGMENTS_MAX: usize = 1 << 23;

/// Pieces of 64 KiB of a flow at most: 64 bytes each. A flow with more is not cut, since every segment
/// that is sent again would become as many packets.
pub const PIECES_MAX: usize = 1024;
const PIECES_SPAN_BYTES: u32 = 1 << 16;

/// Payload of a packet that most links carry, at most. What is longer may be merged.
const SINGLE_BYTES_MAX: u32 = 1460;
/// Payload of a full packet where links carry least (RFC 9293, section 3.7.1, less some options).
const SINGLE_BYTES_MIN: u32 = 512;

/// Keeps digests of pieces apart from those of packets.
const SALT: u64 = 0x7069_6563_6573_5f31;

/// Bytes of a flow by their sequence numbers, which begin again after 2³².
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteRange {
    /// The first.
    pub start: u32,
    /// The one behind the last.
    pub end: u32,
}

impl ByteRange {
    /// The payload of a TCP packet; `None` if it has none, or is not whole.
    #[must_use]
    pub fn of(packet: &Packet, frame: &[u8]) -> Option<Self> {
        let tcp = packet.tcp(frame).filter(|_| !packet.more_fragments())?;
        // The flag takes a number of its own, before the data.
        let start = tcp.sequence.wrapping_add(u32::from(tcp.flags & tcp_flag::SYN != 0));
        let range = Self { start, end: start.wrapping_add(tcp.payload_bytes) };
        (tcp.payload_bytes > 0).then_some(range)
    }

    /// How many bytes.
    #[must_use]
    pub const fn bytes(self) -> u32 {
        self.end.wrapping_sub(self.start)
    }

    /// What stands for these bytes of a flow.
    #[must_use]
    pub const fn digest(self, flow: FlowHash) -> PacketDigest {
        let range = ((self.start as u64) << 32) | self.end as u64;
        PacketDigest(mix(flow.derive(SALT) ^ mix(range)))
    }

    /// Whether a number is between two bytes of it.
    const fn is_cut_by(self, boundary: u32) -> bool {
        let before = boundary.wrapping_sub(self.start);
        before > 0 && before < self.bytes()
    }
}

/// The segments that one point saw of every flow.
#[derive(Clone, Debug, Default)]
pub struct SeenSegments {
    flows: BTreeMap<FlowHash, Vec<ByteRange>>,
    noted: usize, // at most SEGMENTS_MAX
    refused: BTreeMap<FlowHash, u64>,
}

impl SeenSegments {
    /// Notes a segment.
    pub fn note(&mut self, flow: FlowHash, range: ByteRange) {
        if self.noted == SEGMENTS_MAX {
            *self.refused.entry(flow).or_default() += 1;
            return;
        }
        self.noted += 1;
        self.flows.entry(flow).or_default().push(range);
    }

    /// Each in its place, and once.
    fn sort(&mut self) {
        for ranges in self.flows.values_mut() {
            ranges.sort_unstable();
            ranges.dedup();
        }
    }
}

/// Where the segments of flows are cut at both points.
#[derive(Clone, Debug, Default)]
pub struct Cuts {
    /// Boundaries by flow, in order.
    flows: BTreeMap<FlowHash, Vec<u32>>,
    refused_flows: u64,
    coarse_flows: u64,
}

impl Cuts {
    /// From what both points saw.
    #[must_use]
    pub fn new(mut upstream: SeenSegments, mut downstream: SeenSegments) -> Self {
        upstream.sort();
        downstream.sort();
        let mut cuts = Self::default();
        for (flow, sent) in &upstream.flows {
            let Some(received) = downstream.flows.get(flow) else { continue };
            if !are_cut_differently(sent, received) {
                continue;
            }
            let mut all = merged(&[boundaries(sent), boundaries(received)]);
            let single_bytes = single_bytes(sent, received);
            let is_long = leaves_long(sent, &all);
            if let Some(bytes) = single_bytes.filter(|_| is_long) {
                all = merged(&[all, parts(sent, received, bytes)]);
            }
            let is_refused =
                [&upstream, &downstream].iter().any(|at| at.refused.contains_key(flow));
            if is_refused || is_dense(&all) {
                cuts.refused_flows += 1;
            } else {
                cuts.coarse_flows += u64::from(is_long && single_bytes.is_none());
                cuts.flows.insert(*flow, all);
            }
        }
        cuts
    }

    /// How many flows are cut.
    #[must_use]
    pub fn flows(&self) -> u64 {
        self.flows.len() as u64
    }

    /// Flows that both points saw in other segments, and that are not cut, for want of room or since
    /// there would be too many pieces.
    #[must_use]
    pub const fn refused_flows(&self) -> u64 {
        self.refused_flows
    }

    /// Flows that are cut, but not into the packets of the wire: pieces stay that both points saw merged.
    #[must_use]
    pub const fn coarse_flows(&self) -> u64 {
        self.coarse_flows
    }

    /// The pieces of a packet, each as if it had been a packet; `None` if its flow is not cut.
    pub fn pieces<'a>(
        &'a self,
        flow: FlowHash,
        range: ByteRange,
        whole: Observation,
    ) -> Option<impl Iterator<Item = Observation> + 'a> {
        let boundaries = self.flows.get(&flow)?;
        let headers_bytes = whole.length.saturating_sub(range.bytes());
        Some(Pieces { boundaries, left: range }.map(move |piece| Observation {
            digest: piece.digest(flow),
            length: headers_bytes + piece.bytes(),
            ..whole
        }))
    }
}

/// What is left of a segment.
struct Pieces<'a> {
    boundaries: &'a [u32],
    left: ByteRange,
}

impl Iterator for Pieces<'_> {
    type Item = ByteRange;

    fn next(&mut self) -> Option<ByteRange> {
        let left = self.left;
        if left.bytes() == 0 {
            return None;
        }
        let end = next_boundary(self.boundaries, left.start)
            .filter(|&boundary| left.is_cut_by(boundary))
            .unwrap_or(left.end);
        self.left.start = end;
        Some(ByteRange { end, ..left })
    }
}

/// The first boundary behind a number, going round.
fn next_boundary(boundaries: &[u32], after: u32) -> Option<u32> {
    let behind = boundaries.partition_point(|&boundary| boundary <= after);
    boundaries.get(behind).or(boundaries.first()).copied()
}

/// Where segments begin and end, in order.
fn boundaries(ranges: &[ByteRange]) -> Vec<u32> {
    let mut ends: Vec<u32> = ranges.iter().flat_map(|range| [range.start, range.end]).collect();
    ends.sort_unstable();
    ends.dedup();
    ends
}

fn merged(boundaries: &[Vec<u32>; 2]) -> Vec<u32> {
    let mut all = boundaries.concat();
    all.sort_unstable();
    all.dedup();
    all
}

/// The length that most single segments have, if at least half of the merged ones are multiples of it.
fn single_bytes(sent: &[ByteRange], received: &[ByteRange]) -> Option<u32> {
    let lengths = || sent.iter().chain(received).map(|range| range.bytes());
    let full = SINGLE_BYTES_MIN..=SINGLE_BYTES_MAX;
    let mut singles: BTreeMap<u32, u64> = BTreeMap::new();
    for bytes in lengths().filter(|bytes| full.contains(bytes)) {
        *singles.entry(bytes).or_default() += 1;
    }
    let (&usual, _) = singles.iter().max_by_key(|(_, count)| **count)?;
    let long = || lengths().filter(|&bytes| bytes > SINGLE_BYTES_MAX);
    let multiples = long().filter(|bytes| bytes % usual == 0).count();
    let parts: u64 = long().map(|bytes| u64::from(bytes / usual)).sum();
    let is_usual = 2 * multiples >= long().count() && parts <= SEGMENTS_MAX as u64;
    is_usual.then_some(usual)
}

/// Where merged segments consist of parts of equal length.
fn parts(sent: &[ByteRange], received: &[ByteRange], part_bytes: u32) -> Vec<u32> {
    let long = sent.iter().chain(received).filter(|range| range.bytes() > SINGLE_BYTES_MAX);
    let within = |range: &ByteRange| {
        let (start, parts) = (range.start, range.bytes().div_ceil(part_bytes));
        (1..parts).map(move |number| start.wrapping_add(number * part_bytes))
    };
    long.flat_map(within).collect()
}

/// Whether pieces stay that may be of several packets.
fn leaves_long(ranges: &[ByteRange], boundaries: &[u32]) -> bool {
    let mut pieces = ranges.iter().flat_map(|&left| Pieces { boundaries, left });
    pieces.any(|piece| piece.bytes() > SINGLE_BYTES_MAX)
}

/// Whether each point saw segments that the other did not, of the same bytes. Where data was lost and
/// sent again in other segments, only the sender's side saw some that the other did not.
fn are_cut_differently(sent: &[ByteRange], received: &[ByteRange]) -> bool {
    let (only_sent, only_received) = (without(sent, received), without(received, sent));
    let is_cut = |ranges: &[ByteRange], other: &[ByteRange]| {
        let ends = boundaries(other);
        let cuts = |range: &ByteRange, end: u32| range.is_cut_by(end);
        ranges
            .iter()
            .any(|range| next_boundary(&ends, range.start).is_some_and(|end| cuts(range, end)))
    };
    is_cut(&only_sent, &only_received) || is_cut(&only_received, &only_sent)
}

/// Those that are not among others.
fn without(ranges: &[ByteRange], others: &[ByteRange]) -> Vec<ByteRange> {
    ranges.iter().filter(|range| others.binary_search(range).is_err()).copied().collect()
}

fn is_dense(boundaries: &[u32]) -> bool {
    let mut spans = boundaries.windows(PIECES_MAX + 1);
    spans.any(|span| span[PIECES_MAX] - span[0] < PIECES_SPAN_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOW: FlowHash = FlowHash(7);

    fn segments(ranges: &[(u32, u32)]) -> SeenSegments {
        let mut segments = SeenSegments::default();
        ranges.iter().for_each(|&(start, end)| segments.note(FLOW, ByteRange { start, end }));
        segments
    }

    /// The pieces of the last segment upstream, and how long they are as packets.
    #[track_caller]
    fn check(upstream: &[(u32, u32)], downstream: &[(u32, u32)], expected: Option<&[(u32, u32)]>) {
        for (sent, received) in [(upstream, downstream), (downstream, upstream)] {
            let cuts = Cuts::new(segments(sent), segments(received));
            let (start, end) = *upstream.last().expect("there is one");
            let range = ByteRange { start, end };
            let whole = Observation { length: 40 + range.bytes(), ..Observation::default() };
            let found = cuts.pieces(FLOW, range, whole).map(Iterator::collect::<Vec<_>>);
            let expected = expected.map(|pieces| {
                let piece = |&(start, end): &(u32, u32)| {
                    let range = ByteRange { start, end };
                    let (digest, length) = (range.digest(FLOW), 40 + range.bytes());
                    Observation { digest, length, ..whole }
                };
                pieces.iter().map(piece).collect::<Vec<_>>()
            });
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn a_merged_segment_is_cut_where_the_other_point_saw_segments_end() {
        let pieces = [(100, 200), (200, 300), (300, 350)];
        check(&[(100, 350)], &pieces, Some(&pieces));
    }

    #[test]
    fn segments_that_are_merged_differently_are_cut_at_all_ends() {
        let pieces = [(20, 30), (30, 40)];
        check(&[(0, 20), (20, 40)], &[(0, 10), (10, 30), (30, 40)], Some(&pieces));
    }

    #[test]
    fn what_both_points_saw_merged_is_cut_as_single_segments_are() {
        let single = (0, 1000);
        let pieces = [(5000, 6000), (6000, 7000), (7000, 8000)];
        check(&[single, (1000, 5000), (5000, 8000)], &[single, (1000, 8000)], Some(&pieces));
    }

    #[test]
    fn merged_segments_of_unknown_parts_are_counted() {
        let at = [segments(&[(0, 700), (700, 5000)]), segments(&[(0, 5000)])];
        let [upstream, downstream] = at;
        let cuts = Cuts::new(upstream, downstream);
        assert_eq!((cuts.flows(), cuts.coarse_flows()), (1, 1));
    }

    #[test]
    fn sequence_numbers_go_round() {
        let near = u32::MAX - 9;
        check(&[(near, 20)], &[(near, 0), (0, 20)], Some(&[(near, 0), (0, 20)]));
        let pieces = [(near, near + 5), (near + 5, 5), (5, 20)];
        check(&[(near, 20)], &pieces, Some(&pieces));
    }

    #[test]
    fn a_flow_of_equal_segments_is_left_alone() {
        check(&[(0, 10), (10, 20)], &[(0, 10), (10, 20)], None);
        // What was lost came in other segments, of which some were lost again.
        check(&[(0, 10), (10, 30), (10, 20), (20, 30)], &[(0, 10), (10, 20), (20, 30)], None);
        check(&[(0, 10), (10, 30), (10, 20), (25, 30)], &[(0, 10), (10, 30)], None);
        // The sender cut what it sent again differently, and both saw that.
        check(&[(0, 10), (10, 20), (20, 30)], &[(0, 10)], None);
        check(&[(0, 10), (10, 20), (5, 15)], &[(0, 10), (10, 20), (5, 15)], None);
    }

    #[test]
    fn a_flow_in_too_many_pieces_is_refused() {
        let small: Vec<(u32, u32)> = (0..2000).map(|number| (number, number + 1)).collect();
        let cuts = Cuts::new(segments(&small), segments(&[(0, 2000)]));
        assert_eq!((cuts.flows(), cuts.refused_flows()), (0, 1));
    }
}

//! Whether two points saw the same packets near a boundary, and how far apart in time.

use twixt_model::{Delay, PacketDigest, Timestamp};

use crate::sample::{Boundary, SampledPacket};

/// What two points have in common near a boundary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Overlap {
    /// Seen at both.
    pub(crate) common: u64,
    /// Seen upstream, where downstream must have kept them if it saw them.
    pub(crate) sent: u64,
    /// Those of them that downstream did not see.
    pub(crate) missing_downstream: u64,
    /// Seen downstream, where upstream must have kept them if it saw them.
    pub(crate) received: u64,
    /// Those of them that upstream did not see.
    pub(crate) missing_upstream: u64,
    /// By how much downstream's times are later: the median of those seen at both.
    pub(crate) rest: Option<Delay>,
}

/// Compares two points at one boundary. `shift` is by how much downstream's boundary is later.
pub(crate) fn compare_at(
    at: Timestamp,
    upstream: &Boundary,
    downstream: &Boundary,
    shift: Delay,
) -> Overlap {
    let ceiling = upstream.ceiling.min(downstream.ceiling);
    let (mut sent, mut received) = (
        boundary_packets(upstream, ceiling, at),
        boundary_packets(downstream, ceiling, at + shift),
    );
    let common = pair_up(&mut sent, &mut received);
    let range = OffsetRange::of(common.iter().copied());
    let sure_to_arrive = |place: &&BoundaryPacket| {
        let (earliest_ns, latest_ns) = (range.min_ns, range.max_ns);
        covers(downstream, place.ns.saturating_add(earliest_ns), place.ns.saturating_add(latest_ns))
    };
    let sure_to_be_sent = |place: &&BoundaryPacket| {
        let (earliest_ns, latest_ns) = (range.max_ns, range.min_ns);
        covers(upstream, place.ns.saturating_sub(earliest_ns), place.ns.saturating_sub(latest_ns))
    };
    let alone = |place: &&BoundaryPacket| !place.common;
    Overlap {
        common: common.len() as u64,
        sent: sent.iter().filter(sure_to_arrive).count() as u64,
        missing_downstream: sent.iter().filter(sure_to_arrive).filter(alone).count() as u64,
        received: received.iter().filter(sure_to_be_sent).count() as u64,
        missing_upstream: received.iter().filter(sure_to_be_sent).filter(alone).count() as u64,
        rest: median(common),
    }
}

/// A packet, and its time since the boundary.
struct BoundaryPacket {
    digest: PacketDigest,
    ns: i64,
    common: bool,
}

/// By digest.
fn boundary_packets(
    boundary: &Boundary,
    ceiling: PacketDigest,
    at: Timestamp,
) -> Vec<BoundaryPacket> {
    let sampled = boundary.packets.iter().filter(|packet| packet.digest <= ceiling);
    let place = |packet: &SampledPacket| BoundaryPacket {
        digest: packet.digest,
        ns: (packet.time - at).as_nanos(),
        common: false,
    };
    sampled.map(place).collect()
}

/// Notes which were seen at both, and by how much later downstream.
fn pair_up(sent: &mut [BoundaryPacket], received: &mut [BoundaryPacket]) -> Vec<i64> {
    let mut rests_ns = Vec::new();
    let mut others = received.iter_mut().peekable();
    for place in sent {
        while others.next_if(|other| other.digest < place.digest).is_some() {}
        if let Some(other) = others.next_if(|other| other.digest == place.digest) {
            (place.common, other.common) = (true, true);
            rests_ns.push(other.ns.saturating_sub(place.ns));
        }
    }
    rests_ns
}

/// Whether a point kept all packets of this interval.
const fn covers(boundary: &Boundary, earliest_ns: i64, latest_ns: i64) -> bool {
    let (before_ns, after_ns) = (boundary.before.as_nanos(), boundary.after.as_nanos());
    earliest_ns >= before_ns.saturating_neg() && latest_ns < after_ns
}

/// The median; `None` of nothing.
pub(crate) fn median(mut values_ns: Vec<i64>) -> Option<Delay> {
    if values_ns.is_empty() {
        return None;
    }
    let middle = values_ns.len() / 2;
    let (_, &mut median_ns, _) = values_ns.select_nth_unstable(middle);
    Some(Delay::from_nanos(median_ns))
}

/// Smallest and largest; 0 of nothing.
struct OffsetRange {
    min_ns: i64,
    max_ns: i64,
}

impl OffsetRange {
    fn of(values_ns: impl Iterator<Item = i64>) -> Self {
        let range = values_ns.fold(None, |range: Option<(i64, i64)>, value| {
            let (min, max) = range.unwrap_or((value, value));
            Some((min.min(value), max.max(value)))
        });
        let (min_ns, max_ns) = range.unwrap_or((0, 0));
        Self { min_ns, max_ns }
    }
}

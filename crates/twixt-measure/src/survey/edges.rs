//! Where the overlap of both points begins and ends, exact to the packet.
//!
//! Far from both ends every packet counts. Near an end, time alone cannot tell which packets
//! both points had a chance to see, because delays vary: there, packets are held back and
//! compared by digest.

use twixt_model::{Delay, Observation, PacketDigest, Side, Span, Timestamp, sort_by_hash};

use super::compare::{Comparison, DelayRange};
use super::missing::{Judge, Passed};
use super::overlap::Overlap;

/// What to do with a packet, by its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The other point was not capturing then: skip it.
    Outside,
    /// Near the beginning: hold it back and [`resolve`].
    Start,
    /// Both points were capturing: measure it.
    Inside,
    /// Near the end: hold it back and [`resolve`].
    End,
}

/// The ends of the overlap, as far as times show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edges {
    upstream: PointEdges,
    downstream: PointEdges,
    /// Packets that leave upstream in this interval are seen downstream, if they arrive.
    certain: Span,
    /// When the downstream point was capturing.
    captured: Span,
    /// Packets that downstream sees in this interval passed upstream while that was capturing, if
    /// they passed it at all.
    witnessed: Span,
    /// Delays of one packet; others are two packets that look alike.
    plausible: (Delay, Delay),
    /// How far from the certain ends packets are held back at both points.
    reach: Delay,
    /// Quantiles of the delays that the survey found, ascending.
    delays: Vec<Delay>,
    /// Whether the two ends overlap: then everything is held back, and resolved at once.
    overlap: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PointEdges {
    outside_before: Timestamp,
    start_until: Timestamp,
    end_from: Timestamp,
    outside_after: Timestamp,
}

/// Added to the range of delays that the survey found, which was only a sample.
const MARGIN_MIN: Delay = Delay::from_nanos(1_000_000);

/// In ranges of delay.
const REACH: i64 = 4;

/// What delays may be, and how far from the ends packets are compared one by one.
struct Margins {
    least: Delay,
    most: Delay,
    reach: Delay,
}

impl Margins {
    fn of(delays: DelayRange) -> Self {
        let range = delays.max - delays.min;
        let margin = Delay::from_nanos(range.as_nanos() / 2).max(MARGIN_MIN);
        let (least, most) = (delays.min - margin, delays.max + margin);
        // So much longer than needed, to learn the loss near the end from packets beyond doubt.
        let reach = Delay::from_nanos((most - least).as_nanos().saturating_mul(REACH));
        Self { least, most, reach }
    }
}

impl Overlap {
    /// The same, as if the captures ended so soon after these times that packets up to them are not held
    /// back; `None` if they end no later anyway.
    #[must_use]
    pub fn shortened(&self, upstream: Timestamp, downstream: Timestamp) -> Option<Self> {
        let Margins { least, most, reach } = Margins::of(self.delays);
        // As `Edges::of` finds the time from which on packets are held back, the other way round.
        let beyond = (upstream + reach + most - least).max(downstream + reach - least);
        let certain = beyond + Delay::from_nanos(1);
        let is_sooner = certain < self.upstream.end.min(self.downstream.end - most);
        is_sooner.then(|| Self {
            upstream: Span { end: certain, ..self.upstream },
            downstream: Span { end: certain + most, ..self.downstream },
            ..self.clone()
        })
    }
}

impl Edges {
    /// The ends for packets that go downstream; `None` if none does.
    #[must_use]
    pub fn new(comparison: &Comparison) -> Option<Self> {
        comparison.overlap().map(|overlap| Self::of(&overlap))
    }

    /// The ends of an overlap.
    #[must_use]
    pub fn of(overlap: &Overlap) -> Self {
        let (up, down, delays) = (overlap.upstream, overlap.downstream, overlap.delays);
        let range = delays.max - delays.min;
        let Margins { least, most, reach } = Margins::of(delays);
        // Few strays are at stake here, and few delays are beyond those of the sample.
        let slack = Delay::from_nanos(range.as_nanos() / 8).max(MARGIN_MIN);
        // Beginning: from `certain` on, whatever leaves upstream arrives while downstream captures.
        let start_certain = up.start.max(down.start - least);
        let start_down = start_certain + reach + most;
        let start_up = start_down - least;
        // End: the same backwards.
        let end_certain = up.end.min(down.end - most);
        let end_down = end_certain - reach + least;
        let end_up = end_down - most;
        let overlaps = start_up >= end_up || start_down >= end_down;
        let edges = |before, until, from, after| PointEdges {
            outside_before: before,
            start_until: if overlaps { Timestamp::MAX } else { until },
            end_from: if overlaps { Timestamp::MAX } else { from },
            outside_after: after,
        };
        Self {
            upstream: edges(
                up.start.max(down.start - most),
                start_up,
                end_up,
                up.end.min(down.end - least),
            ),
            downstream: edges(down.start, start_down, end_down, down.end),
            certain: Span { start: start_certain, end: end_certain },
            captured: down,
            witnessed: Span {
                start: up.start + delays.max + slack,
                end: up.end + delays.min - slack,
            },
            reach,
            delays: overlap.quantiles.clone(),
            plausible: (least - range, most + range),
            overlap: overlaps,
        }
    }

    /// Where a packet lies that the upstream point saw.
    #[must_use]
    #[inline]
    pub fn upstream(&self, time: Timestamp) -> Place {
        self.upstream.place(time)
    }

    /// Where a packet lies that the downstream point saw.
    #[must_use]
    #[inline]
    pub fn downstream(&self, time: Timestamp) -> Place {
        self.downstream.place(time)
    }

    /// Packets that leave upstream in this interval are seen downstream, if they arrive.
    pub(super) const fn certain(&self) -> Span {
        self.certain
    }

    /// Packets that downstream sees in this interval are strays if upstream did not see them.
    pub(super) const fn witnessed(&self) -> Span {
        self.witnessed
    }

    /// The earliest times, upstream and downstream, of packets that are held back at the end.
    #[must_use]
    pub const fn end_from(&self) -> (Timestamp, Timestamp) {
        (self.upstream.end_from, self.downstream.end_from)
    }

    /// Packets that left upstream in this interval are held back at `place` at both points, and
    /// were certainly seen downstream if they arrived.
    pub(super) fn complete(&self, place: Place) -> Span {
        let Span { start, end } = self.certain;
        match place {
            _ if self.overlap => self.certain,
            Place::End => Span { start: end - self.reach, end },
            _ => Span { start, end: start + self.reach },
        }
    }

    /// Whether a packet may have taken so long; otherwise these are two packets that look alike.
    pub(super) fn is_plausible(&self, delay: Delay) -> bool {
        self.plausible.0 <= delay && delay <= self.plausible.1
    }

    /// The shortest and the longest that a packet may have taken.
    pub(super) const fn plausible(&self) -> (Delay, Delay) {
        self.plausible
    }

    /// Whether that is more than a packet takes.
    pub(super) fn is_too_long(&self, delay: Delay) -> bool {
        delay > self.plausible.1
    }

    /// When the downstream point was capturing.
    pub(super) const fn captured(&self) -> Span {
        self.captured
    }

    /// The share of packets whose delay is below `limit`.
    pub(super) fn share_below(&self, limit: Delay) -> f64 {
        let below = self.delays.partition_point(|&delay| delay < limit);
        below as f64 / self.delays.len().max(1) as f64
    }

    /// Whether packets held back at `place` are to be judged by the beginning and by the end.
    pub(super) fn judged(&self, place: Place) -> (bool, bool) {
        (place == Place::Start, place == Place::End || self.overlap)
    }

    /// Whether a frame of that time says how far a capture was read, of those of one end.
    #[must_use]
    pub fn covers(&self, side: Side, time: Timestamp) -> bool {
        let edges = match side {
            Side::Upstream => &self.upstream,
            Side::Downstream => &self.downstream,
        };
        edges.place(time) != Place::Outside
    }

    /// The latest time that counts at one end.
    #[must_use]
    pub const fn last(&self, side: Side) -> Timestamp {
        match side {
            Side::Upstream => self.upstream.outside_after,
            Side::Downstream => self.downstream.outside_after,
        }
    }

    /// The latest times, upstream and downstream, of packets that are held back at the start.
    #[must_use]
    pub const fn start_until(&self) -> (Timestamp, Timestamp) {
        (self.upstream.start_until, self.downstream.start_until)
    }
}

impl PointEdges {
    #[inline]
    fn place(&self, time: Timestamp) -> Place {
        if time < self.outside_before || time > self.outside_after {
            Place::Outside
        } else if time <= self.start_until {
            Place::Start
        } else if time >= self.end_from {
            Place::End
        } else {
            Place::Inside
        }
    }
}

/// What was held back, sorted out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resolved {
    /// For each packet held back upstream, whether to measure it.
    pub upstream: Vec<bool>,
    /// For each packet held back downstream, whether to measure it.
    pub downstream: Vec<bool>,
}

/// Decides about the packets that were held back at one end ([`Place::Start`] or [`Place::End`]).
///
/// A packet that both points saw counts at both. One that is missing downstream counts upstream,
/// as lost, unless it may as well have passed while the downstream point was not capturing. One
/// that is missing upstream counts downstream, as a stray, if upstream was capturing when it must have
/// passed there.
#[must_use]
pub fn resolve(
    edges: &Edges,
    place: Place,
    upstream: &[Observation],
    downstream: &[Observation],
) -> Resolved {
    let partner = match_held(edges, upstream, downstream);
    let mut arrived: Vec<Passed> = (upstream.iter().zip(&partner))
        .filter_map(|(sent, partner)| {
            Some(Passed { sent: sent.time, received: downstream[(*partner)?].time })
        })
        .collect();
    // Nearly in order already, which the stable sort makes use of.
    arrived.sort();
    let judge = Judge::new(edges, place, &arrived, upstream);
    let is_stray = |packet: &Observation| edges.witnessed.contains(packet.time);
    let mut resolved =
        Resolved { upstream: Vec::new(), downstream: downstream.iter().map(is_stray).collect() };
    for (packet, partner) in upstream.iter().zip(&partner) {
        if let Some(partner) = partner {
            resolved.downstream[*partner] = true;
        }
        resolved.upstream.push(partner.is_some() || judge.lost(packet.time));
    }
    resolved
}

/// For each packet held back upstream, the index of its downstream self. Identical packets are
/// paired in order; one without a counterpart at a plausible distance in time is passed over.
fn match_held(
    edges: &Edges,
    upstream: &[Observation],
    downstream: &[Observation],
) -> Vec<Option<usize>> {
    let (sent, received) = (by_digest(upstream), by_digest(downstream));
    let digest = |packets: &[Observation], index: &usize| packets[*index].digest;
    let mut partner = vec![None; upstream.len()];
    let mut left = received.as_slice();
    for sent in sent.chunk_by(|one, next| digest(upstream, one) == digest(upstream, next)) {
        let wanted = digest(upstream, &sent[0]);
        left = &left[left.iter().take_while(|index| digest(downstream, index) < wanted).count()..];
        let alike = left.iter().take_while(|index| digest(downstream, index) == wanted);
        let mut received = alike.peekable();
        for &one in sent {
            let delay = |other: usize| downstream[other].time - upstream[one].time;
            while received.next_if(|&&other| delay(other) < edges.plausible.0).is_some() {}
            partner[one] = received.next_if(|&&other| delay(other) <= edges.plausible.1).copied();
        }
    }
    partner
}

/// Indices of packets in the order of their digests, those of equal ones in the order of their times.
fn by_digest(packets: &[Observation]) -> Vec<usize> {
    let digests = packets.iter().enumerate().map(|(index, packet)| (packet.digest, index));
    let mut digests: Vec<(PacketDigest, usize)> = digests.collect();
    sort_by_hash(&mut digests, |(digest, _)| digest.0);
    digests
        .chunk_by_mut(|one, next| one.0 == next.0)
        .filter(|alike| alike.len() > 1)
        .for_each(|alike| alike.sort_by_key(|&(_, index)| packets[index].time));
    digests.into_iter().map(|(_, index)| index).collect()
}

#[cfg(test)]
mod tests;

//! Whether a packet that is missing near an end of the overlap was lost, or passed while
//! the downstream point was not capturing.

use twixt_model::{Delay, Observation, Timestamp};

use super::edges::{Edges, Place};

/// One packet that both points saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Passed {
    pub sent: Timestamp,
    pub received: Timestamp,
}

/// What is known about the packets of one end, for judging those that are missing.
pub(super) struct Judge<'a> {
    edges: &'a Edges,
    /// Whether the beginning, and whether the end, of the downstream capture is near.
    near: (bool, bool),
    /// Packets sent between these would have been seen, going by the order of packets.
    ordered: (Timestamp, Timestamp),
    /// Share of packets that the network loses.
    loss: f64,
}

/// Loss that is assumed before any packet was counted, and the weight of that assumption.
const LOSS_BEFORE: f64 = 0.01;
const LOSS_BEFORE_PACKETS: f64 = 5.0;

impl<'a> Judge<'a> {
    /// From the packets that were held back at `place`; `arrived` in the order of sending.
    pub(super) fn new(
        edges: &'a Edges,
        place: Place,
        arrived: &[Passed],
        upstream: &[Observation],
    ) -> Self {
        let near = edges.judged(place);
        let surely = |sent: Timestamp| edges.complete(place).contains(sent);
        let sent = upstream.iter().filter(|packet| surely(packet.time)).count() as f64;
        let lost = sent - arrived.iter().filter(|passed| surely(passed.sent)).count() as f64;
        let loss = (lost + LOSS_BEFORE * LOSS_BEFORE_PACKETS) / (sent + LOSS_BEFORE_PACKETS);
        Self { edges, near, ordered: ordered(edges, arrived), loss }
    }

    /// Whether a packet that left upstream at `sent` and is missing downstream was lost.
    ///
    /// It was, if its place in the order of packets says that it would have been seen. Else the
    /// likelier of two explanations is taken: that the network lost it, or that with a delay
    /// such as others had it passed before the downstream capture began or after it ended.
    pub(super) fn lost(&self, sent: Timestamp) -> bool {
        let certain = self.edges.certain();
        let captured = self.edges.captured();
        let early = match self.near.0 && sent < self.ordered.0.min(certain.start) {
            true => self.edges.share_below(captured.start - sent),
            false => 0.0,
        };
        let late = match self.near.1 && sent > self.ordered.1.max(certain.end) {
            true => 1.0 - self.edges.share_below(captured.end - sent),
            false => 0.0,
        };
        (early + late) * (1.0 - self.loss) <= self.loss
    }
}

/// A packet arrives no earlier than the latest of those sent before it, and no later than the
/// earliest of those sent after it, give or take what packets are overtaken by. Where packets
/// keep their order, these are the first and the last packet that both points saw.
fn ordered(edges: &Edges, arrived: &[Passed]) -> (Timestamp, Timestamp) {
    let overtaking = overtaking(arrived);
    let captured = edges.captured();
    let mut latest = Timestamp::MIN;
    let first = arrived.iter().find(|passed| {
        latest = latest.max(passed.received);
        latest - overtaking >= captured.start
    });
    let mut earliest = Timestamp::MAX;
    let last = arrived.iter().rev().find(|passed| {
        earliest = earliest.min(passed.received);
        earliest + overtaking <= captured.end
    });
    (
        first.map_or(Timestamp::MAX, |passed| passed.sent),
        last.map_or(Timestamp::MIN, |passed| passed.sent),
    )
}

/// How much later than a packet sent after it a packet arrives, at most. Few packets are at hand,
/// so twice what they show.
fn overtaking(arrived: &[Passed]) -> Delay {
    let mut latest = Timestamp::MIN;
    let mut most = Delay::ZERO;
    for passed in arrived {
        latest = latest.max(passed.received);
        most = most.max(latest - passed.received);
    }
    most + most
}

//! Identical packets that take another time than others, by the samples of both points, and whether both saw the
//! same ones.
//!
//! Near the ends, packets count by the usual delays, since time alone does not tell which of them both points had
//! a chance to see. Heartbeats that take another time, as they wait in another queue, are counted wrongly there: those that
//! were in flight when the captures began have arrived, and were not sent; those that were in flight when they
//! ended were sent, and have not arrived. As they are identical, and as many at one end as at the other, counts
//! and sums of digests agree, and sums of times are those of other packets.

use std::collections::BTreeMap;

use twixt_model::{Delay, PacketDigest, Span, Timestamp};
use twixt_synopsis::{Heartbeats, least_apart};

use super::compare::Comparison;
use super::edges::Edges;
use super::point::{Kept, PointSurvey};
use super::strays::going_downstream;

/// Fewer identical packets are no heartbeats.
const HEARTBEATS_MIN: usize = 8;

/// Which ends packets may have been in flight at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    /// Those of the overlap.
    Overlap,
    /// Those of every epoch.
    Epochs,
}

/// Identical packets that go downstream and do not take the usual time. If only the ends of the overlap count, those that
/// were sent throughout it may have been in flight there.
#[must_use]
pub fn heartbeats(
    comparison: &Comparison,
    edges: &Edges,
    surveys: [&PointSurvey; 2],
    ends: Ends,
) -> Vec<Heartbeats> {
    if comparison.repeated.is_empty() {
        return Vec::new();
    }
    let [sent, received] = going_downstream(comparison, surveys);
    let mut alike: BTreeMap<PacketDigest, Alike> = BTreeMap::new();
    let mut all: Option<Span> = None;
    for kept in sent.iter().filter(|kept| edges.certain().contains(kept.time)) {
        all = Some(all.map_or(Span::at(kept.time), |all| all.including(kept.time)));
        if comparison.repeated.contains(&kept.digest) {
            alike.entry(kept.digest).or_default().sent.push(*kept);
        }
    }
    for kept in received.iter().filter(|kept| edges.witnessed().contains(kept.time)) {
        if let Some(alike) = alike.get_mut(&kept.digest) {
            alike.received.push(kept.time);
        }
    }
    let found = alike.into_values().filter_map(|alike| alike.heartbeats(edges, all?, ends));
    found.collect()
}

/// Packets of one digest.
#[derive(Default)]
struct Alike {
    sent: Vec<Kept>,
    received: Vec<Timestamp>,
}

impl Alike {
    fn heartbeats(mut self, edges: &Edges, all: Span, ends: Ends) -> Option<Heartbeats> {
        if self.sent.len() < HEARTBEATS_MIN || self.received.is_empty() {
            return None;
        }
        self.sent.sort_unstable_by_key(|kept| kept.time);
        let is_near_ends = ends == Ends::Epochs || self.are_throughout(all);
        let usual = self.received.iter().filter(|&&time| self.may_be_usual(time, edges)).count();
        let Kept { digest, flow, .. } = self.sent[0];
        let packets = self.sent.len() as u64;
        if 2 * usual >= self.received.len() {
            return None;
        }
        self.received.sort_unstable();
        let sent: Vec<Timestamp> = self.sent.iter().map(|kept| kept.time).collect();
        let apart = least_apart(&sent, &self.received, edges.plausible());
        let are_complete = !is_near_ends && self.sent.len() == self.received.len();
        Some(Heartbeats { digest, flow, packets, apart, are_complete })
    }

    /// Whether they were sent from the first of all packets to the last: others of them may have been sent before,
    /// and after.
    fn are_throughout(&self, all: Span) -> bool {
        let pairs = self.sent.windows(2).map(|pair| pair[1].time - pair[0].time);
        let apart = pairs.max().unwrap_or(Delay::ZERO);
        let (first, last) = (self.sent[0].time, self.sent[self.sent.len() - 1].time);
        first - all.start <= apart && all.end - last <= apart
    }

    /// Whether one was sent so that it arrived then, after the usual time.
    fn may_be_usual(&self, arrived: Timestamp, edges: &Edges) -> bool {
        // In order of sending delays become shorter: the first that is not too long.
        let place = self.sent.partition_point(|kept| edges.is_too_long(arrived - kept.time));
        self.sent.get(place).is_some_and(|kept| edges.is_plausible(arrived - kept.time))
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use twixt_model::{FlowHash, mix};

    use super::super::compare;
    use super::super::point::{FlowEnds, Sighting};
    use super::*;

    const MS: i64 = 1_000_000;

    fn survey(packets: &[(u64, i64)], ttl: u8) -> PointSurvey {
        let mut survey = PointSurvey::new();
        for &(packet, time_ns) in packets {
            let time = Timestamp::from_nanos(time_ns);
            survey.saw_frame(time);
            let sighting = Sighting {
                time,
                digest: PacketDigest(mix(packet)),
                flow: FlowHash(1),
                ttl,
                passage: None,
                length: 100,
                is_fragment: false,
            };
            let ends =
                FlowEnds { reverse: FlowHash(2), source: 1, destination: 2, stays_local: false };
            survey.observe(&sighting, || ends);
        }
        survey
    }

    /// Heartbeats every 100 ms.
    #[derive(Clone)]
    struct Beats {
        delay_ns: i64,
        sent_ms: Range<i64>,
        lost_ms: Option<i64>,
    }

    /// A packet every 5 ms takes 1 to 1.5 ms; both points capture for ten seconds, in the middle of the traffic.
    #[track_caller]
    fn check(beats: &Beats, ends: Ends, expected: Option<(u64, bool)>) {
        let unique = (-200..2_200).map(|number| {
            ((number + 1_000) as u64, number * 5 * MS, MS + number.rem_euclid(7) * MS / 14)
        });
        let Range { start, end } = beats.sent_ms.clone();
        let sent = (start / 100..end / 100).map(|beat| beat * 100 + 50);
        let traffic: Vec<(u64, i64, i64)> =
            unique.chain(sent.map(|sent_ms| (7, sent_ms * MS, beats.delay_ns))).collect();
        let captured = |mut packets: Vec<(u64, i64)>, ttl: u8| {
            packets.retain(|(_, time)| (0..10_000 * MS).contains(time));
            packets.sort_by_key(|&(_, time)| time);
            survey(&packets, ttl)
        };
        let up = captured(traffic.iter().map(|&(packet, sent, _)| (packet, sent)).collect(), 64);
        let is_lost = |sent: i64| beats.lost_ms.is_some_and(|lost_ms| sent == lost_ms * MS);
        let arrived = traffic.iter().filter(|&&(packet, sent, _)| packet != 7 || !is_lost(sent));
        let down =
            captured(arrived.map(|&(packet, sent, delay)| (packet, sent + delay)).collect(), 63);
        let comparison = compare(&up, &down).unwrap();
        let edges = Edges::new(&comparison).unwrap();
        let found = heartbeats(&comparison, &edges, [&up, &down], ends);
        assert!(found.iter().all(|one| one.digest == PacketDigest(mix(7))), "{found:?}");
        let shown: Vec<_> = found.iter().map(|one| (one.packets, one.are_complete)).collect();
        assert_eq!(shown, expected.into_iter().collect::<Vec<_>>());
        // 60 ms after one left, which takes too long by nearly as much, and 40 ms before the next; the last have no next.
        let apart_ms = |one: &Heartbeats| one.apart.as_nanos() / MS;
        assert!(found.iter().all(|one| (-45..-25).contains(&apart_ms(one))), "{found:?}");
    }

    #[test]
    fn heartbeats_of_another_delay_are_found() {
        let beats = Beats { delay_ns: 260 * MS, sent_ms: -1_000..11_000, lost_ms: None };
        check(&beats, Ends::Overlap, Some((100, false)));
        check(&beats, Ends::Epochs, Some((100, false)));
    }

    #[test]
    fn heartbeats_of_the_usual_delay_are_not_suspected() {
        let beats = Beats { delay_ns: MS, sent_ms: -1_000..11_000, lost_ms: None };
        check(&beats, Ends::Overlap, None);
        check(&beats, Ends::Epochs, None);
    }

    /// Away from the ends, none of them can have been in flight there; boundaries of epochs may be anywhere.
    #[test]
    fn what_is_not_sent_throughout_was_not_in_flight_at_the_ends() {
        let beats = Beats { delay_ns: 260 * MS, sent_ms: 2_000..8_000, lost_ms: None };
        check(&beats, Ends::Overlap, Some((60, true)));
        check(&beats, Ends::Epochs, Some((60, false)));
        check(&Beats { lost_ms: Some(5_050), ..beats }, Ends::Overlap, Some((60, false)));
    }
}

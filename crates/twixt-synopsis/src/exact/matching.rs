//! Which sighting upstream and which downstream are one packet.
//!
//! Digests are not unique: a retransmission can be identical to the last bit, and some senders
//! repeat whole packets. Packets that occur once at each point tell how long the delays of their flow
//! are; identical ones of that flow are matched in order within that range ([`Alignment`]). Other flows
//! tell nothing, since heartbeats may wait in another queue, unless their delays are so much alike that
//! nothing would fit them by accident. Where several ways of matching are possible,
//! what each of them would say is known too.

use std::collections::HashMap;

use twixt_model::{Delay, FlowHash, Observation};

use super::alignment::{Alignment, Band, Matched};

/// Each upstream packet, and what became of it.
pub(crate) struct Matching {
    /// By digest and then by time.
    pub packets: Vec<(Observation, Fate)>,
    /// Packets that only downstream saw. Of identical ones, the last are taken for them.
    pub strays: Vec<Stray>,
}

/// A packet that only downstream saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stray {
    pub packet: Observation,
    /// How long before it an identical packet came that upstream saw too.
    pub twin: Option<Delay>,
}

/// What became of a packet that upstream saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Downstream did not see it.
    Lost,
    /// Downstream saw as many identical packets, and nothing tells which of them it is.
    Arrived,
    /// Downstream saw it.
    Measured(Matched),
}

impl Fate {
    /// The delay, where it is known.
    pub(crate) const fn delay(self) -> Option<Delay> {
        match self {
            Self::Measured(matched) => Some(matched.delay),
            Self::Lost | Self::Arrived => None,
        }
    }
}

/// Identical packets so close to each other are copies of one, ...
pub(crate) const COPIED_WITHIN: Delay = Delay::from_nanos(100_000);
/// ... if that is no more than this part of their delay: which of them it is hardly matters then.
const COPIED_PART: i64 = 10;
/// Identical packets so many times farther apart than delays differ fit these by accident once in as
/// many times.
const ACCIDENT: i64 = 1_000;
/// As few delays say nothing of how long delays may be.
const TELLING_MIN: usize = 8;
/// The range of many delays is wider than what was seen of it, by this share of it.
const MARGIN_MIN: f64 = 0.05;

impl Matching {
    /// Matches what two points saw. Packets whose delay is further than `window` from the median
    /// are different packets that look alike.
    pub(crate) fn new(
        mut upstream: Vec<Observation>,
        mut downstream: Vec<Observation>,
        window: Delay,
    ) -> Self {
        let by_digest = |packet: &Observation| (packet.digest, packet.time);
        upstream.sort_unstable_by_key(by_digest);
        downstream.sort_unstable_by_key(by_digest);
        let usual = Usual::of(&upstream, &downstream, window);
        let mut packets: Vec<(Observation, Fate)> = Vec::with_capacity(upstream.len());
        let mut strays = unseen_upstream(&upstream, &downstream);
        for (sent, received) in groups(&upstream, &downstream) {
            let first = packets.len();
            match (sent, received) {
                ([packet], [arrived]) => packets.push((*packet, usual.fate(packet, arrived))),
                _ if are_copies(sent, received) => {
                    packets.extend(sent.iter().copied().zip(usual.fates_of_copies(sent, received)));
                }
                _ => packets.extend(sent.iter().copied().zip(usual.fates(sent, received))),
            }
            let crossed = packets[first..].iter().filter(|(_, fate)| *fate != Fate::Lost).count();
            strays.extend(surplus(received, crossed));
        }
        Self { packets, strays }
    }
}

/// Packets whose digest upstream did not see.
fn unseen_upstream(upstream: &[Observation], downstream: &[Observation]) -> Vec<Stray> {
    let mut left = upstream;
    let runs = downstream.chunk_by(|one, other| one.digest == other.digest).filter(|received| {
        let before = left.iter().take_while(|sent| sent.digest < received[0].digest).count();
        left = &left[before..];
        left.first().is_none_or(|sent| sent.digest != received[0].digest)
    });
    runs.flatten().map(|&packet| Stray { packet, twin: None }).collect()
}

/// Identical packets beyond those that crossed.
fn surplus(received: &[Observation], crossed: usize) -> impl Iterator<Item = Stray> {
    (crossed..received.len()).map(move |index| {
        let packet = received[index];
        let before = index.checked_sub(1).filter(|_| crossed > 0).map(|before| received[before]);
        Stray { packet, twin: before.map(|before| packet.time - before.time) }
    })
}

/// Runs of equal digests upstream, each with its run downstream (which may be empty).
fn groups<'a>(
    upstream: &'a [Observation],
    downstream: &'a [Observation],
) -> impl Iterator<Item = (&'a [Observation], &'a [Observation])> {
    let mut left = downstream;
    upstream.chunk_by(|one, other| one.digest == other.digest).map(move |sent| {
        let digest = sent[0].digest;
        let before = left.iter().take_while(|packet| packet.digest < digest).count();
        let equal = left[before..].iter().take_while(|packet| packet.digest == digest).count();
        let received = &left[before..before + equal];
        left = &left[before + equal..];
        (sent, received)
    })
}

/// What delays usually are.
struct Usual {
    /// Delays that are possible at all.
    window: Band,
    /// Delays of flows that have identical packets, if enough of their packets occur once.
    ranges: HashMap<FlowHash, Band>,
    /// Delays of all packets that occur once, if there are enough.
    of_all: Option<Band>,
}

impl Usual {
    fn of(upstream: &[Observation], downstream: &[Observation], window: Delay) -> Self {
        let once = || groups(upstream, downstream).filter_map(once_at_each);
        let mut delays: Vec<Delay> = once().map(|(_, delay)| delay).collect();
        if delays.is_empty() {
            delays = groups(upstream, downstream).flat_map(in_order).collect();
        }
        let median = median_of(&mut delays).unwrap_or(Delay::ZERO);
        let window = Band { low: median - window, median, high: median + window };
        let repeating = groups(upstream, downstream)
            .filter(|(sent, received)| sent.len().max(received.len()) > 1);
        let mut flows: HashMap<FlowHash, Vec<Delay>> =
            repeating.map(|(sent, _)| (sent[0].flow, Vec::new())).collect();
        for (flow, delay) in once().filter(|&(_, delay)| window.contains(delay)) {
            flows.entry(flow).and_modify(|delays| delays.push(delay));
        }
        let known = flows.into_iter();
        let ranges = known.filter_map(|(flow, delays)| Some((flow, range_of(delays, window)?)));
        let all = once().map(|(_, delay)| delay).filter(|&delay| window.contains(delay));
        Self { ranges: ranges.collect(), of_all: range_of(all.collect(), window), window }
    }

    /// Delays that identical packets may have. Those of other flows count only if it is no accident that
    /// every packet received fits them: they are nearly alike, and identical packets far apart.
    fn range(&self, sent: &[Observation], received: &[Observation]) -> Option<Band> {
        let own = self.ranges.get(&sent[0].flow).copied();
        own.or_else(|| {
            let all = self.of_all?;
            let intervals = i64::try_from(sent.len()).ok()? - 1;
            let apart_ns = (sent[sent.len() - 1].time - sent[0].time).as_nanos() / intervals.max(1);
            let is_narrow = (all.high - all.low).as_nanos().checked_mul(ACCIDENT)? <= apart_ns;
            let fits = || Alignment::new(sent, received, all).matches.len() == received.len();
            (is_narrow && fits()).then_some(all)
        })
    }

    /// Of a packet that occurs once at each point.
    fn fate(&self, sent: &Observation, received: &Observation) -> Fate {
        let delay = received.time - sent.time;
        match self.window.contains(delay) {
            true => Fate::Measured(Matched::certain(delay)),
            false => Fate::Lost,
        }
    }

    /// Of a packet that one point saw several times: the copy whose delay is nearest to the usual one is
    /// the packet, and which of them is it makes little difference.
    fn fates_of_copies(&self, sent: &[Observation], received: &[Observation]) -> Vec<Fate> {
        let (last_sent, last_received) = (sent[sent.len() - 1], received[received.len() - 1]);
        let (low, high) = (received[0].time - last_sent.time, last_received.time - sent[0].time);
        let pairs = sent.iter().enumerate().flat_map(|(index, packet)| {
            received.iter().map(move |arrived| (index, arrived.time - packet.time))
        });
        let distance =
            |&(_, delay): &(usize, Delay)| (delay - self.window.median).as_nanos().unsigned_abs();
        let nearest = pairs.min_by_key(distance);
        let mut fates = vec![Fate::Lost; sent.len()];
        if let Some((index, delay)) = nearest.filter(|&(_, delay)| self.window.contains(delay)) {
            fates[index] = Fate::Measured(Matched { delay, least: low, most: high, low, high });
        }
        fates
    }

    fn fates(&self, sent: &[Observation], received: &[Observation]) -> Vec<Fate> {
        let mut fates = vec![Fate::Lost; sent.len()];
        let range = self.range(sent, received);
        let within = range.map(|range| Alignment::new(sent, received, range));
        let fitting = within.filter(|alignment| {
            2 * alignment.matches.len() > sent.len().min(received.len()) || received.is_empty()
        });
        let is_fitting = fitting.is_some();
        let alignment = fitting.unwrap_or_else(|| Alignment::new(sent, received, self.window));
        let fits = range.filter(|_| is_fitting);
        if let Some(range) = fits.filter(|range| keep_order(sent, received, *range, &alignment)) {
            let outer = range.widened(self.window);
            let pairs = sent.iter().zip(received).map(|(one, other)| other.time - one.time);
            if pairs.clone().all(|delay| outer.contains(delay)) {
                return pairs
                    .map(|delay| Fate::Measured(Matched::in_order(delay, outer)))
                    .collect();
            }
        }
        let mut is_taken = vec![false; received.len()];
        for ((sent, received), matched) in alignment.matches {
            is_taken[received] = true;
            fates[sent] = match (is_fitting || matched.is_certain(), range) {
                (true, Some(_)) => Fate::Measured(matched),
                // Nothing tells by how much packets may have overtaken each other: as if none did.
                (true, None) => Fate::Measured(Matched::certain(matched.delay)),
                (false, _) => Fate::Arrived,
            };
        }
        if let Some(range) = range.filter(|_| is_fitting) {
            find_slow(range.widened(self.window), sent, received, &is_taken, &mut fates);
        }
        fates
    }
}

/// Whether as many packets were received as sent, but not all fit the range, and in order as many fit as
/// in any other way: those that do not were slower than unique ones, and none was lost.
fn keep_order(
    sent: &[Observation],
    received: &[Observation],
    range: Band,
    alignment: &Alignment,
) -> bool {
    let fitting =
        sent.iter().zip(received).filter(|(one, other)| range.contains(other.time - one.time));
    sent.len() == received.len()
        && alignment.matches.len() < sent.len()
        && fitting.count() >= alignment.matches.len()
}

/// Packets that seem lost, but were slower (or faster) than those that occur once: where these are few
/// and identical ones many, the range that they show is too narrow for the slowest. It is such a packet
/// if nothing else it could be was sent, nor received, within as much again to either side.
fn find_slow(
    wide: Band,
    sent: &[Observation],
    received: &[Observation],
    is_taken: &[bool],
    fates: &mut [Fate],
) {
    let missing = sent.iter().zip(fates).filter(|(_, fate)| **fate == Fate::Lost);
    for (packet, fate) in missing {
        let from = received.partition_point(|other| other.time - packet.time < wide.low);
        let until = received.partition_point(|other| other.time - packet.time <= wide.high);
        if until != from + 1 || is_taken[from] {
            continue;
        }
        let arrived = received[from].time;
        let first = sent.partition_point(|other| arrived - other.time > wide.high);
        let beyond = sent.partition_point(|other| arrived - other.time >= wide.low);
        if beyond == first + 1 {
            *fate = Fate::Measured(Matched::certain(arrived - packet.time));
        }
    }
}

/// The flow and the delay of a packet that occurs once at each point, or several times at one of them
/// as copies.
fn once_at_each((sent, received): (&[Observation], &[Observation])) -> Option<(FlowHash, Delay)> {
    match (sent, received) {
        ([sent], [received]) => Some((sent.flow, received.time - sent.time)),
        _ if are_copies(sent, received) => Some((sent[0].flow, received[0].time - sent[0].time)),
        _ => None,
    }
}

/// Whether one point saw a packet once, and the other so often within so short a time that the
/// capture, and not the sender, made copies.
fn are_copies(sent: &[Observation], received: &[Observation]) -> bool {
    let copies = match (sent, received) {
        ([_], [_, _, ..]) => received,
        ([_, _, ..], [_]) => sent,
        _ => return false,
    };
    let spread_ns = (copies[copies.len() - 1].time - copies[0].time).as_nanos();
    let delay_ns = (received[0].time - sent[0].time).as_nanos().saturating_abs();
    spread_ns <= COPIED_WITHIN.as_nanos().min(delay_ns / COPIED_PART)
}

/// Delays of identical packets of which none seems to be missing.
fn in_order((sent, received): (&[Observation], &[Observation])) -> Vec<Delay> {
    let pairs = sent.iter().zip(received).filter(|_| sent.len() == received.len());
    pairs.map(|(sent, received)| received.time - sent.time).collect()
}

fn median_of(delays: &mut [Delay]) -> Option<Delay> {
    let middle = delays.len() / 2;
    (!delays.is_empty()).then(|| *delays.select_nth_unstable(middle).1)
}

/// What delays usually are, within what is possible; `None` if there are too few of them to tell.
fn range_of(mut delays: Vec<Delay>, window: Band) -> Option<Band> {
    let (&low, &high) = (delays.iter().min()?, delays.iter().max()?);
    let share = (TELLING_MIN as f64 / delays.len() as f64).max(MARGIN_MIN);
    let margin = Delay::from_nanos(((high - low).as_nanos() as f64 * share) as i64);
    let median = median_of(&mut delays).filter(|_| delays.len() >= TELLING_MIN)?;
    Some(Band {
        low: (low - margin).max(window.low),
        median,
        high: (high + margin).min(window.high),
    })
}

#[cfg(test)]
mod tests {
    use twixt_model::{PacketDigest, Timestamp};

    use super::*;

    fn seen(packets: &[(u64, i64)]) -> Vec<Observation> {
        let observation = |&(digest, time_ns): &(u64, i64)| Observation {
            digest: PacketDigest(digest),
            time: Timestamp::from_nanos(time_ns),
            ..Observation::default()
        };
        packets.iter().map(observation).collect()
    }

    #[track_caller]
    fn check(upstream: &[(u64, i64)], downstream: &[(u64, i64)], expected: &[Option<i64>]) {
        let matching = Matching::new(seen(upstream), seen(downstream), Delay::from_nanos(1_000));
        let delays: Vec<Option<i64>> =
            matching.packets.iter().map(|(_, fate)| fate.delay().map(Delay::as_nanos)).collect();
        assert_eq!(delays, expected);
    }

    /// Of 20 heartbeats some are lost, and no packet of their flow is unique. All other packets took the
    /// same time, which those that arrived fit.
    #[test]
    fn a_constant_delay_of_others_tells_which_heartbeats_are_lost() {
        let flow = |packet: &Observation| FlowHash(u64::from(packet.digest.0 < 100));
        let of_another = |packets: Vec<Observation>| -> Vec<Observation> {
            packets.iter().map(|packet| Observation { flow: flow(packet), ..*packet }).collect()
        };
        let heartbeats = |delay: i64, is_there: fn(i64) -> bool| -> Vec<(u64, i64)> {
            let there = (0..20).filter(|&number| is_there(number));
            there.map(|number| (1, number * 50_000 + delay)).collect()
        };
        let others = |delay: i64| -> Vec<(u64, i64)> {
            (0..50).map(|number| (1_000 + number, number as i64 * 777 + delay)).collect()
        };
        let upstream = [heartbeats(0, |_| true), others(0)].concat();
        let lost_of = |delay: i64| {
            let received = [heartbeats(delay, |number| number % 7 != 3), others(10)].concat();
            let (upstream, downstream) = (seen(&upstream), seen(&received));
            let matching = Matching::new(
                of_another(upstream),
                of_another(downstream),
                Delay::from_nanos(1_000_000),
            );
            let heartbeats = &matching.packets[..20];
            heartbeats.iter().map(|(_, fate)| *fate).collect::<Vec<Fate>>()
        };
        let measured = Fate::Measured(Matched::certain(Delay::from_nanos(10)));
        for (number, fate) in lost_of(10).into_iter().enumerate() {
            assert_eq!(fate, if number % 7 == 3 { Fate::Lost } else { measured }, "{number}");
        }
        // Heartbeats of another queue do not fit.
        assert!(lost_of(70_000).iter().all(|fate| *fate != measured));
    }

    /// 2000 identical packets a second apart, 20 unique ones: a few of the former are slower than any of
    /// the latter, and none is lost.
    #[test]
    fn identical_packets_slower_than_unique_ones_are_not_lost() {
        let delay = |number: u64| {
            let uniform = (twixt_model::mix(number) >> 11) as f64 / (1_u64 << 53) as f64;
            (10_000.0 * -(1.0 - uniform).ln()) as i64
        };
        let packet = |number: u64| {
            let digest = if number.is_multiple_of(100) { number + 1 } else { 0 };
            (digest, number as i64 * 1_000_000)
        };
        let sent: Vec<(u64, i64)> = (0..2_000).map(packet).collect();
        let received: Vec<(u64, i64)> = (0..)
            .zip(&sent)
            .map(|(number, &(digest, time))| (digest, time + delay(number)))
            .collect();
        let slowest = |is_unique: bool| {
            let of = (0..2_000_u64).filter(|number| number.is_multiple_of(100) == is_unique);
            of.map(delay).max().unwrap()
        };
        assert!(slowest(false) > slowest(true) * 3 / 2, "{} {}", slowest(false), slowest(true));
        let matching = Matching::new(seen(&sent), seen(&received), Delay::from_nanos(500_000));
        let lost = matching.packets.iter().filter(|(_, fate)| *fate == Fate::Lost).count();
        assert_eq!((lost, matching.strays.len()), (0, 0));
        // A packet that is missing is missed, and one that came from nowhere is a stray.
        let mut gone = received.clone();
        gone[1_501].1 += 500_000;
        let matching = Matching::new(seen(&sent), seen(&gone), Delay::from_nanos(500_000));
        let lost = matching.packets.iter().filter(|(_, fate)| *fate == Fate::Lost).count();
        assert_eq!((lost, matching.strays.len()), (1, 1));
    }

    /// Whatever comes, every packet upstream crossed or was lost, and every packet downstream crossed
    /// or is a stray.
    #[test]
    fn lost_and_matched_are_upstream_and_strays_and_matched_are_downstream() {
        for seed in 0..300_u64 {
            let draw = |number: u64, below: u64| twixt_model::mix(seed << 20 | number) % below;
            let side = |from: u64| -> Vec<(u64, i64)> {
                let count = draw(from, 60);
                let packet = |number| {
                    let digest = draw(from + 2 * number, 1 + draw(7, 40));
                    (digest, draw(from + 2 * number + 1, 3_000) as i64)
                };
                (1..=count).map(packet).collect()
            };
            let (sent, received) = (side(1_000), side(9_000));
            let matching = Matching::new(seen(&sent), seen(&received), Delay::from_nanos(1_000));
            let lost = matching.packets.iter().filter(|(_, fate)| *fate == Fate::Lost).count();
            let matched = matching.packets.len() - lost;
            assert_eq!(lost + matched, sent.len(), "seed {seed}");
            assert_eq!(matching.strays.len() + matched, received.len(), "seed {seed}");
        }
    }

    /// Second copies of packets at either point are lost or stray, and the delays stay as they were.
    #[test]
    fn doubling_every_packet_at_one_point_changes_no_delay() {
        let [sent, received] = sure(50);
        let single = |packets: &[(u64, i64)]| -> Vec<(u64, i64)> {
            packets.iter().map(|&(digest, time)| (digest, time + 100 * digest as i64)).collect()
        };
        let (sent, received) = (single(&sent), single(&received));
        let doubled = |packets: &[(u64, i64)]| -> Vec<(u64, i64)> {
            packets.iter().flat_map(|&(digest, time)| [(digest, time), (digest, time)]).collect()
        };
        let delays = |sent: &[(u64, i64)], received: &[(u64, i64)]| -> (Vec<Delay>, usize) {
            let matching = Matching::new(seen(sent), seen(received), Delay::from_nanos(1_000));
            let delays = matching.packets.iter().filter_map(|(_, fate)| fate.delay());
            (delays.collect(), matching.strays.len())
        };
        let (once, strays) = delays(&sent, &received);
        assert_eq!((once.len(), strays), (50, 0));
        assert_eq!(delays(&sent, &doubled(&received)), (once.clone(), 50));
        assert_eq!(delays(&doubled(&sent), &received), (once, 0));
    }

    #[test]
    fn packets_are_matched_by_digest_whatever_their_order() {
        check(&[(1, 0), (2, 10), (3, 20)], &[(3, 25), (1, 7)], &[Some(7), None, Some(5)]);
    }

    #[test]
    fn identical_packets_are_matched_in_order() {
        check(&[(1, 0), (1, 100)], &[(1, 9), (1, 105)], &[Some(9), Some(5)]);
    }

    /// So many that occur once, with delays from 8 to 12.
    fn sure(count: u64) -> [Vec<(u64, i64)>; 2] {
        let sent = |number| (100 + number, 0);
        let received = |number| (100 + number, 8 + number as i64 % 5);
        [(0..count).map(sent).collect(), (0..count).map(received).collect()]
    }

    #[track_caller]
    fn check_among(
        sure: [Vec<(u64, i64)>; 2],
        upstream: &[(u64, i64)],
        downstream: &[(u64, i64)],
        expected: &[Fate],
    ) {
        let [sent, received] = sure;
        let (sent, received) = ([upstream, &sent].concat(), [downstream, &received].concat());
        let matching = Matching::new(seen(&sent), seen(&received), Delay::from_nanos(1_000));
        let fates: Vec<Fate> = matching.packets.iter().map(|(_, fate)| *fate).collect();
        assert_eq!(fates[..expected.len()], *expected);
    }

    fn measured(delay_ns: i64) -> Fate {
        Fate::Measured(Matched::certain(Delay::from_nanos(delay_ns)))
    }

    #[test]
    fn of_identical_packets_the_one_with_the_usual_delay_arrived() {
        check_among(sure(8), &[(1, 0), (1, 500)], &[(1, 511)], &[Fate::Lost, measured(11)]);
        check_among(sure(8), &[(1, 500)], &[(1, 100), (1, 509)], &[measured(9)]);
    }

    #[test]
    fn where_usual_delays_are_unknown_nothing_tells_which_of_identical_packets_arrived() {
        let fates = [Fate::Lost, Fate::Arrived];
        check_among(sure(7), &[(1, 0), (1, 500)], &[(1, 511)], &fates);
        check_among(
            sure(7),
            &[(1, 0), (1, 500)],
            &[(1, 9), (1, 511)],
            &[measured(9), measured(11)],
        );
    }

    /// Heartbeats that wait in another queue than all packets that occur once.
    #[test]
    fn another_flow_tells_nothing_of_identical_packets() {
        let of_another = |packets: Vec<Observation>| -> Vec<Observation> {
            let flow = |packet: &Observation| FlowHash(u64::from(packet.digest.0 < 100));
            packets.iter().map(|packet| Observation { flow: flow(packet), ..*packet }).collect()
        };
        let [sent, received] = sure(20);
        let upstream = [&[(1, 0), (1, 50), (1, 100)][..], &sent].concat();
        let downstream = [&[(1, 60), (1, 110)][..], &received].concat();
        let (upstream, downstream) = (of_another(seen(&upstream)), of_another(seen(&downstream)));
        let matching = Matching::new(upstream, downstream, Delay::from_nanos(1_000));
        let fates: Vec<Fate> = matching.packets[..3].iter().map(|(_, fate)| *fate).collect();
        assert_eq!(fates.iter().filter(|&&fate| fate == Fate::Arrived).count(), 2, "{fates:?}");
    }

    /// A queue that only these packets waited in: no match within the usual delays. The first that came
    /// may have overtaken the other.
    #[test]
    fn identical_packets_with_unusual_delays_are_not_lost() {
        let fate = |low_ns: i64, high_ns: i64| {
            let [delay, low, high] = [300, low_ns, high_ns].map(Delay::from_nanos);
            Fate::Measured(Matched { low, high, ..Matched::certain(delay) })
        };
        let (sent, arrived) = ([(1, 0), (1, 10)], [(1, 300), (1, 310)]);
        check_among(sure(8), &sent, &arrived, &[fate(290, 300), fate(300, 310)]);
    }

    #[test]
    fn equal_packets_far_apart_are_different_packets() {
        check(&[(1, 0), (2, 0), (3, 0)], &[(1, 5), (2, 5), (3, 2_000)], &[Some(5), Some(5), None]);
    }

    #[test]
    fn negative_delays_stay_negative() {
        check(&[(1, 100), (2, 100)], &[(1, 90), (2, 95)], &[Some(-10), Some(-5)]);
    }

    #[test]
    fn nothing_matches_nothing() {
        check(&[], &[(1, 5)], &[]);
        check(&[(1, 5)], &[], &[None]);
    }
}

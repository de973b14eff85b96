//! Which sighting upstream and which downstream are one packet.
//!
//! Digests are not unique: a retransmission can be identical to the last bit, and some senders
//! repeat whole packets. Packets that occur once at each point tell how long delays are; identical
//! ones are matched in order within that range ([`Alignment`]). Where several ways of matching them
//! are possible, what each of them would say is known too.

use twixt_model::{Delay, Observation};

use super::alignment::{Alignment, Band, Matched};

/// Each upstream packet, and what became of it.
pub(crate) struct Matching {
    /// By digest and then by time.
    pub packets: Vec<(Observation, Fate)>,
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
        let mut packets = Vec::with_capacity(upstream.len());
        for (sent, received) in groups(&upstream, &downstream) {
            match (sent, received) {
                ([packet], [arrived]) => packets.push((*packet, usual.fate(packet, arrived))),
                _ => packets.extend(sent.iter().copied().zip(usual.fates(sent, received))),
            }
        }
        Self { packets }
    }
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
    /// Delays that packets beyond doubt have, if there are enough of them.
    range: Option<Band>,
}

impl Usual {
    fn of(upstream: &[Observation], downstream: &[Observation], window: Delay) -> Self {
        let delays = |is_sure: fn(usize) -> bool| -> Vec<Delay> {
            groups(upstream, downstream)
                .filter(|(sent, received)| sent.len() == received.len() && is_sure(sent.len()))
                .flat_map(|(sent, received)| sent.iter().zip(received))
                .map(|(sent, received)| received.time - sent.time)
                .collect()
        };
        let mut sure = delays(|count| count == 1);
        if sure.len() < TELLING_MIN {
            sure = delays(|_| true);
        }
        let middle = sure.len() / 2;
        let median = match sure.is_empty() {
            true => Delay::ZERO,
            false => *sure.select_nth_unstable(middle).1,
        };
        let window = Band { low: median - window, median, high: median + window };
        sure.retain(|&delay| window.contains(delay));
        Self { range: range_of(&sure, window), window }
    }

    /// Of a packet that occurs once at each point.
    fn fate(&self, sent: &Observation, received: &Observation) -> Fate {
        let delay = received.time - sent.time;
        match self.window.contains(delay) {
            true => Fate::Measured(Matched::certain(delay)),
            false => Fate::Lost,
        }
    }

    fn fates(&self, sent: &[Observation], received: &[Observation]) -> Vec<Fate> {
        let mut fates = vec![Fate::Lost; sent.len()];
        let (alignment, is_told) = self.align(sent, received);
        for (index, matched) in alignment.matches {
            fates[index] = match matched.is_certain() || is_told {
                true => Fate::Measured(matched),
                false => Fate::Arrived,
            };
        }
        fates
    }

    /// Within the usual range, unless most of the packets do not fit into it; whether they do.
    fn align(&self, sent: &[Observation], received: &[Observation]) -> (Alignment, bool) {
        let least = sent.len().min(received.len());
        if let Some(range) = self.range {
            let alignment = Alignment::new(sent, received, range);
            if 2 * alignment.matches.len() > least || least == 0 {
                return (alignment, true);
            }
        }
        (Alignment::new(sent, received, self.window), false)
    }
}

/// What delays usually are, within what is possible; `None` if there are too few of them to tell.
fn range_of(delays: &[Delay], window: Band) -> Option<Band> {
    let (&low, &high) = (delays.iter().min()?, delays.iter().max()?);
    let share = (TELLING_MIN as f64 / delays.len() as f64).max(MARGIN_MIN);
    let margin = Delay::from_nanos(((high - low).as_nanos() as f64 * share) as i64);
    (delays.len() >= TELLING_MIN).then(|| Band {
        low: (low - margin).max(window.low),
        high: (high + margin).min(window.high),
        ..window
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

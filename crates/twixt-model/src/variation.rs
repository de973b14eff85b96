//! How delays vary from one packet of a flow to the next.
//!
//! None of it depends on what clocks differ by, as long as they do not drift.

use crate::{Crossing, FlowHash};

/// How delays vary from packet to packet, flow by flow: packets of different flows are never
/// compared with each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Variation {
    /// Pairs of packets that follow each other in a flow.
    pub steps: u64,
    /// Interarrival jitter of RFC 3550, section 6.4.1: the mean of what it was after each packet.
    pub jitter_ns: f64,
    /// The largest that it became.
    pub jitter_max_ns: f64,
    /// Mean of the absolute differences of delays of consecutive packets (IPDV of RFC 5481, in the
    /// order in which they were sent).
    pub ipdv_mean_ns: f64,
    /// What 99 % of these differences do not exceed.
    pub ipdv_p99_ns: Option<u64>,
}

/// A packet that was measured.
#[derive(Clone, Copy)]
struct Timed {
    flow: FlowHash,
    sent_ns: i64,
    delay_ns: i64,
}

impl Variation {
    /// Of packets in any order; `None` if no flow has two that were measured.
    #[must_use]
    pub fn of(packets: &[Crossing]) -> Option<Self> {
        let timed = |packet: &Crossing| {
            let delay_ns = packet.delay()?.as_nanos();
            Some(Timed { flow: packet.flow, sent_ns: packet.sent.as_nanos(), delay_ns })
        };
        let mut timed: Vec<Timed> = packets.iter().filter_map(timed).collect();
        timed.sort_unstable_by_key(|packet| (packet.flow, packet.sent_ns));
        let mut differences: Vec<u64> = steps(&timed).collect();
        if differences.is_empty() {
            return None;
        }
        // Jitter is defined by the order of arrival.
        timed.sort_unstable_by_key(|packet| {
            (packet.flow, packet.sent_ns.saturating_add(packet.delay_ns))
        });
        let jitter = Jitter::of(&timed);
        let steps = differences.len() as u64;
        Some(Self {
            steps,
            jitter_ns: jitter.sum_ns / steps as f64,
            jitter_max_ns: jitter.max_ns,
            ipdv_mean_ns: differences.iter().map(|&ns| ns as f64).sum::<f64>() / steps as f64,
            ipdv_p99_ns: Some(percentile_99(&mut differences)),
        })
    }

    /// Of two parts of the traffic together. The percentile of two parts says nothing of the whole.
    #[must_use]
    pub fn merged(self, other: Self) -> Self {
        let (ours, theirs) = (self.steps as f64, other.steps as f64);
        let mean = |one: f64, another: f64| (one * ours + another * theirs) / (ours + theirs);
        Self {
            steps: self.steps.saturating_add(other.steps),
            jitter_ns: mean(self.jitter_ns, other.jitter_ns),
            jitter_max_ns: self.jitter_max_ns.max(other.jitter_max_ns),
            ipdv_mean_ns: mean(self.ipdv_mean_ns, other.ipdv_mean_ns),
            ipdv_p99_ns: None,
        }
    }
}

/// The absolute differences of delays of neighbours that belong to one flow.
fn steps(packets: &[Timed]) -> impl Iterator<Item = u64> {
    let pairs = packets.windows(2).filter(|pair| pair[0].flow == pair[1].flow);
    pairs.map(|pair| pair[0].delay_ns.abs_diff(pair[1].delay_ns))
}

#[derive(Default)]
struct Jitter {
    sum_ns: f64,
    max_ns: f64,
}

impl Jitter {
    fn of(packets: &[Timed]) -> Self {
        let mut all = Self::default();
        for flow in packets.chunk_by(|one, other| one.flow == other.flow) {
            let mut jitter_ns = 0.0;
            for difference_ns in steps(flow) {
                // The gain of RFC 3550: noise is reduced, and changes are followed.
                jitter_ns += (difference_ns as f64 - jitter_ns) / 16.0;
                all.sum_ns += jitter_ns;
                all.max_ns = f64::max(all.max_ns, jitter_ns);
            }
        }
        all
    }
}

/// By the definition of all percentiles here: element `min(n - 1, floor(p n))`.
fn percentile_99(differences: &mut [u64]) -> u64 {
    let index = (differences.len() * 99 / 100).min(differences.len() - 1);
    *differences.select_nth_unstable(index).1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CrossingFate, Delay, Timestamp};

    fn packet(flow: u64, sent: i64, delay: Option<i64>) -> Crossing {
        Crossing {
            sent: Timestamp::from_nanos(sent),
            flow: FlowHash(flow),
            length: 100,
            fate: delay.map_or(CrossingFate::Lost, |ns| CrossingFate::Took(Delay::from_nanos(ns))),
        }
    }

    #[test]
    fn jitter_follows_the_formula_of_rfc_3550() {
        // Differences 160, 320, 0: J = 10, then 10 + 310/16 = 29.375, then 29.375 * 15/16 = 27.539.
        let packets = [(0, 1000), (1000, 1160), (2000, 840), (3000, 840)]
            .map(|(sent, delay)| packet(1, sent, Some(delay)));
        let found = Variation::of(&packets).unwrap();
        assert_eq!(found.steps, 3);
        let expected = (10.0 + 29.375 + 27.539_062_5) / 3.0;
        assert!((found.jitter_ns - expected).abs() < 1e-9, "{found:?}");
        assert_eq!(found.jitter_max_ns, 29.375);
        assert_eq!((found.ipdv_mean_ns, found.ipdv_p99_ns), (160.0, Some(320)));
    }

    #[test]
    fn flows_are_never_compared_with_each_other_and_lost_packets_not_at_all() {
        let packets = [
            packet(1, 0, Some(10)),
            packet(2, 1, Some(5_000)),
            packet(1, 2, None),
            packet(1, 3, Some(26)),
            packet(2, 4, Some(5_000)),
        ];
        let found = Variation::of(&packets).unwrap();
        assert_eq!((found.steps, found.jitter_max_ns, found.ipdv_mean_ns), (2, 1.0, 8.0));
        assert_eq!(Variation::of(&packets[..3]), None);
    }

    #[test]
    fn jitter_is_in_order_of_arrival_and_ipdv_in_order_of_sending() {
        // Sent at 0, 10, 20 with delays 0, 100, 0: they arrive at 0, 110, 20.
        let packets = [packet(1, 0, Some(0)), packet(1, 10, Some(100)), packet(1, 20, Some(0))];
        let found = Variation::of(&packets).unwrap();
        assert_eq!(found.ipdv_mean_ns, 100.0);
        // By arrival the differences are 0 and 100.
        assert_eq!(found.jitter_max_ns, 6.25);
    }

    #[test]
    fn parts_count_by_their_steps() {
        let one = Variation {
            steps: 1,
            jitter_ns: 4.0,
            jitter_max_ns: 9.0,
            ipdv_mean_ns: 8.0,
            ipdv_p99_ns: Some(8),
        };
        let other = Variation { steps: 3, jitter_ns: 8.0, ..one };
        let both = one.merged(other);
        assert_eq!((both.steps, both.jitter_ns, both.ipdv_p99_ns), (4, 7.0, None));
    }
}

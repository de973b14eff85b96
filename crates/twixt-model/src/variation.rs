//! How delays vary from one packet of a flow to the next.
//!
//! None of it depends on what clocks differ by, as long as they do not drift.

use crate::Delay;

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

/// Adds up how delays vary, flow by flow.
#[derive(Clone, Debug, Default)]
pub struct VariationSum {
    steps: u64,
    ipdv_ns: f64,
    jitter_ns: f64,
    jitter_max_ns: f64,
}

impl VariationSum {
    /// Adds the packets of a flow in the order in which they were sent; `note` is shown by how much delays
    /// of neighbours differ.
    pub fn add_in_order_sent(
        &mut self,
        delays: impl Iterator<Item = Delay>,
        mut note: impl FnMut(u64),
    ) {
        for difference_ns in steps(delays) {
            self.steps += 1;
            self.ipdv_ns += difference_ns as f64;
            note(difference_ns);
        }
    }

    /// Adds the same packets in the order in which they arrived, by which jitter is defined.
    pub fn add_in_order_arrived(&mut self, delays: impl Iterator<Item = Delay>) {
        let mut jitter_ns = 0.0;
        for difference_ns in steps(delays) {
            // The gain of RFC 3550: noise is reduced, and changes are followed.
            jitter_ns += (difference_ns as f64 - jitter_ns) / 16.0;
            self.jitter_ns += jitter_ns;
            self.jitter_max_ns = f64::max(self.jitter_max_ns, jitter_ns);
        }
    }

    /// Which of the differences, in ascending order, is the 99th percentile: element
    /// `min(n - 1, floor(p n))`, as of all percentiles here.
    #[must_use]
    pub const fn percentile_99(&self) -> usize {
        let (steps, last) = (self.steps as usize, (self.steps as usize).saturating_sub(1));
        let place = steps * 99 / 100;
        if place < last { place } else { last }
    }

    /// Of all of them, with that percentile; `None` if no flow has two packets that were measured.
    #[must_use]
    pub fn variation(self, ipdv_p99_ns: Option<u64>) -> Option<Variation> {
        let steps = self.steps as f64;
        (self.steps > 0).then(|| Variation {
            steps: self.steps,
            jitter_ns: self.jitter_ns / steps,
            jitter_max_ns: self.jitter_max_ns,
            ipdv_mean_ns: self.ipdv_ns / steps,
            ipdv_p99_ns,
        })
    }
}

/// The absolute differences of the delays of neighbours.
fn steps(mut delays: impl Iterator<Item = Delay>) -> impl Iterator<Item = u64> {
    let mut before = delays.next();
    delays.map(move |delay| {
        let last = before.replace(delay).unwrap_or(delay);
        delay.as_nanos().abs_diff(last.as_nanos())
    })
}

impl Variation {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Of packets of flows: when they were sent, and how long they took.
    fn variation(flows: &[&[(i64, i64)]]) -> Option<Variation> {
        let (mut sum, mut differences) = (VariationSum::default(), Vec::new());
        for flow in flows {
            let mut packets = flow.to_vec();
            let delays = |packets: &[(i64, i64)]| {
                packets.iter().map(|&(_, ns)| Delay::from_nanos(ns)).collect::<Vec<_>>().into_iter()
            };
            sum.add_in_order_sent(delays(&packets), |ns| differences.push(ns));
            packets.sort_by_key(|(sent, delay)| sent + delay);
            sum.add_in_order_arrived(delays(&packets));
        }
        differences.sort_unstable();
        let p99 = differences.get(sum.percentile_99()).copied();
        sum.variation(p99)
    }

    #[test]
    fn jitter_follows_the_formula_of_rfc_3550() {
        // Differences 160, 320, 0: J = 10, then 10 + 310/16 = 29.375, then 29.375 * 15/16 = 27.539.
        let packets = [(0, 1000), (1000, 1160), (2000, 840), (3000, 840)];
        let found = variation(&[&packets]).unwrap();
        assert_eq!(found.steps, 3);
        let expected = (10.0 + 29.375 + 27.539_062_5) / 3.0;
        assert!((found.jitter_ns - expected).abs() < 1e-9, "{found:?}");
        assert_eq!(found.jitter_max_ns, 29.375);
        assert_eq!((found.ipdv_mean_ns, found.ipdv_p99_ns), (160.0, Some(320)));
    }

    #[test]
    fn flows_are_never_compared_with_each_other() {
        let found = variation(&[&[(0, 10), (3, 26)], &[(1, 5_000), (4, 5_000)]]).unwrap();
        assert_eq!((found.steps, found.jitter_max_ns, found.ipdv_mean_ns), (2, 1.0, 8.0));
        assert_eq!(variation(&[&[(0, 10)], &[(1, 5_000)]]), None);
    }

    #[test]
    fn jitter_is_in_order_of_arrival_and_ipdv_in_order_of_sending() {
        // Sent at 0, 10, 20 with delays 0, 100, 0: they arrive at 0, 110, 20.
        let found = variation(&[&[(0, 0), (10, 100), (20, 0)]]).unwrap();
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

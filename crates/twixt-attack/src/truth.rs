//! What happened to the packets, for the time that an answer is about.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use crate::traffic::Traffic;

/// The name of all traffic in answers.
pub(crate) const ALL: &str = "all";

/// What happened within some time, for all traffic and for each flow.
pub(crate) struct Truth {
    pub(crate) all: Fates,
    pub(crate) flows: BTreeMap<String, Fates>,
    /// Packets sent outside that time.
    pub(crate) outside: u64,
}

/// What became of some packets.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fates {
    pub(crate) packets: u64,
    /// Delays of those that arrived, smallest first.
    pub(crate) delays_ns: Vec<i64>,
}

impl Truth {
    /// Of packets that were sent within this time.
    pub(crate) fn within(traffic: &Traffic, time_ns: &RangeInclusive<i64>) -> Self {
        let mut flows = vec![Fates::default(); traffic.flows.len()];
        let mut all = Fates::default();
        let mut outside = 0;
        for packet in &traffic.forward {
            if !time_ns.contains(&packet.sent_ns) {
                outside += 1;
                continue;
            }
            for fates in [&mut all, &mut flows[packet.flow]] {
                fates.packets += 1;
                fates.delays_ns.extend(packet.delay_ns);
            }
        }
        flows.iter_mut().chain([&mut all]).for_each(|fates| fates.delays_ns.sort_unstable());
        let named = traffic.flows.iter().map(|flow| flow.scope()).zip(flows);
        Self { all, flows: named.filter(|(_, fates)| fates.packets > 0).collect(), outside }
    }
}

impl Fates {
    pub(crate) fn lost(&self) -> u64 {
        self.packets - self.delays_ns.len() as u64
    }

    /// `None` if nothing arrived.
    pub(crate) fn mean_ns(&self) -> Option<f64> {
        let count = self.delays_ns.len();
        let sum: i128 = self.delays_ns.iter().map(|&delay| i128::from(delay)).sum();
        (count > 0).then(|| sum as f64 / count as f64)
    }

    /// Of n sorted delays, the one with index min(n - 1, floor(share n)), as the product defines it.
    pub(crate) fn percentile_ns(&self, share: f64) -> Option<i64> {
        let last = self.delays_ns.len().checked_sub(1)?;
        let index = (share * self.delays_ns.len() as f64) as usize;
        Some(self.delays_ns[index.min(last)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::GridCell;

    #[test]
    fn flows_add_up_to_all_traffic() {
        let cell = GridCell::named(["30", "pareto", "default", "broken", "gilbert", "10%"]);
        let traffic = Traffic::draw(cell, 1);
        let [first, last] = [1_000, 20_000].map(|index| traffic.forward[index].sent_ns);
        let truth = Truth::within(&traffic, &(first..=last));
        assert_eq!(truth.all.packets, 19_001);
        assert_eq!(truth.outside, 10_999);
        let flows = || truth.flows.values();
        assert_eq!(flows().map(|fates| fates.packets).sum::<u64>(), truth.all.packets);
        assert_eq!(flows().map(Fates::lost).sum::<u64>(), truth.all.lost());
        let sums =
            flows().filter_map(|fates| Some(fates.mean_ns()? * fates.delays_ns.len() as f64));
        let mean = sums.sum::<f64>() / truth.all.delays_ns.len() as f64;
        let expected = truth.all.mean_ns().unwrap();
        assert!((mean - expected).abs() < 1e-6 * expected, "{mean} {expected}");
    }

    #[test]
    fn percentiles_are_those_of_the_definition() {
        let fates = Fates { packets: 12, delays_ns: (1..=10).collect() };
        assert_eq!(fates.percentile_ns(0.5), Some(6));
        assert_eq!(fates.percentile_ns(0.99), Some(10));
        assert_eq!((fates.lost(), fates.mean_ns()), (2, Some(5.5)));
        assert_eq!(Fates::default().mean_ns(), None);
    }
}

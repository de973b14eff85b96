//! How many packets each flow has.

use super::PACKETS;
use crate::grid::FlowSizes;
use crate::random::Random;

/// Packets of each flow: at least one, [`PACKETS`] together.
pub(super) fn draw(sizes: FlowSizes, flows: usize, random: &mut Random) -> Vec<usize> {
    let weights: Vec<f64> = match sizes {
        FlowSizes::Equal => vec![1.0; flows],
        FlowSizes::Pareto => (0..flows).map(|_| random.pareto(1.05, 1.0)).collect(),
        FlowSizes::Elephant => {
            let elephant = random.below(flows);
            let weight = |flow| if flow == elephant { flows as f64 - 1.0 } else { 1.0 };
            (0..flows).map(weight).collect()
        }
    };
    share(&weights, random)
}

/// Shares packets in proportion to weights.
fn share(weights: &[f64], random: &mut Random) -> Vec<usize> {
    let total: f64 = weights.iter().sum();
    // One flow alone that weighs nothing has everything.
    let total = if total > 0.0 { total } else { 1.0 };
    let rest = PACKETS - weights.len();
    let mut counts: Vec<usize> =
        weights.iter().map(|weight| 1 + (weight / total * rest as f64) as usize).collect();
    // What rounding left over goes to flows at random.
    for _ in counts.iter().sum()..PACKETS {
        counts[random.below(weights.len())] += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(sizes: FlowSizes, flows: usize, largest: impl Fn(usize) -> bool) {
        let counts = draw(sizes, flows, &mut Random::of(&[5]));
        assert_eq!((counts.len(), counts.iter().sum::<usize>()), (flows, PACKETS));
        let most = *counts.iter().max().unwrap();
        assert!(largest(most) && !counts.contains(&0), "{sizes:?}, {flows} flows: {most}");
    }

    #[test]
    fn flows_share_all_packets() {
        check(FlowSizes::Equal, 1, |most| most == PACKETS);
        check(FlowSizes::Equal, 100, |most| most == 300);
        check(FlowSizes::Elephant, 1, |most| most == PACKETS);
        check(FlowSizes::Elephant, 3, |most| most.abs_diff(15_000) < 10);
        check(FlowSizes::Elephant, 1_000, |most| most.abs_diff(15_000) < 1_000);
        check(FlowSizes::Pareto, 1_000, |most| most > 1_000);
        check(FlowSizes::Pareto, 10_000, |most| most > 200);
    }
}

//! Which packets do not arrive.

use super::SentPacket;
use crate::grid::Losses;
use crate::random::Random;

/// The two states of a Gilbert channel: all is lost in the bad one. 5 % of packets are lost, in bursts of
/// 20 on average.
const GILBERT_ENDS: f64 = 1.0 / 20.0;
const GILBERT_BEGINS: f64 = GILBERT_ENDS * 0.05 / 0.95;

/// Takes the delays of packets that are lost away.
pub(super) fn apply(losses: Losses, flows: usize, packets: &mut [SentPacket], random: &mut Random) {
    match losses {
        Losses::Uniform(probability) => lose(packets, |_| random.happens(probability)),
        Losses::Gilbert => {
            let mut is_bad = false;
            lose(packets, |_| {
                let turns = if is_bad { GILBERT_ENDS } else { GILBERT_BEGINS };
                is_bad ^= random.happens(turns);
                is_bad
            });
        }
        Losses::OneFlow => {
            let lost = random.below(flows);
            lose(packets, |packet| packet.flow == lost);
        }
    }
}

fn lose(packets: &mut [SentPacket], mut is_lost: impl FnMut(&SentPacket) -> bool) {
    for packet in packets {
        if is_lost(packet) {
            packet.delay_ns = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::grid::GridCell;
    use crate::traffic::Traffic;

    fn lost(name: &str) -> Vec<bool> {
        let cell = GridCell::named(["100", "equal", "default", "exponential", name, "none"]);
        Traffic::draw(cell, 3).forward.iter().map(|packet| packet.delay_ns.is_none()).collect()
    }

    #[test]
    fn losses_have_their_rates() {
        // Four standard deviations of 30 000 packets; those of bursts are some √40 times as wide.
        for (name, rate, tolerance) in
            [("none", 0.0, 0.0), ("2%", 0.02, 0.004), ("30%", 0.3, 0.011), ("gilbert", 0.05, 0.03)]
        {
            let lost = lost(name);
            let share = lost.iter().filter(|&&lost| lost).count() as f64 / lost.len() as f64;
            assert!((share - rate).abs() <= tolerance, "{name}: {share}");
        }
        assert_eq!(lost("one-flow").into_iter().filter(|&lost| lost).count(), 300);
    }

    #[test]
    fn losses_of_a_gilbert_channel_come_in_bursts() {
        let lost = lost("gilbert");
        let begun = lost.windows(2).filter(|pair| !pair[0] && pair[1]).count() as f64;
        let mean = lost.iter().filter(|&&lost| lost).count() as f64 / begun;
        assert!((10.0..30.0).contains(&mean), "{mean}");
    }
}

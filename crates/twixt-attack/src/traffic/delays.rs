//! How long each packet takes.

use super::SentPacket;
use crate::grid::Delays;
use crate::random::Random;

const MILLISECOND: f64 = 1e6;
/// The two paths of [`Delays::Bimodal`].
const MODES_NS: [f64; 2] = [0.2 * MILLISECOND, 1.5 * MILLISECOND];
/// Packets of one mode differ by up to this share, both ways.
const MODE_SPREAD: f64 = 0.35;
/// What a broken flow suffers on top.
const BROKEN_NS: f64 = 500.0 * MILLISECOND;
/// Flows that break, at most; with few flows, half of them.
const BROKEN_FLOWS: usize = 5;
/// Smallest delay before and after the route changes.
const ROUTES_NS: [f64; 2] = [MILLISECOND, 80.0 * MILLISECOND];
/// How busy the queue is.
const UTILISATION: f64 = 0.99;
/// With this scale and the shape 1.5, the mean is a millisecond.
const PARETO_SCALE_NS: f64 = MILLISECOND / 3.0;

/// Gives every packet a delay.
pub(super) fn apply(delays: Delays, flows: usize, packets: &mut [SentPacket], random: &mut Random) {
    match delays {
        Delays::Exponential => each(packets, |_, _| random.exponential(MILLISECOND)),
        Delays::Bimodal => {
            let modes: Vec<f64> = (0..flows).map(|_| MODES_NS[random.below(2)]).collect();
            each(packets, |_, packet| {
                modes[packet.flow] * (1.0 + MODE_SPREAD * (2.0 * random.unit() - 1.0))
            });
        }
        Delays::Broken => {
            let broken = broken_flows(flows, random);
            each(packets, |_, packet| {
                let extra = if broken[packet.flow] { BROKEN_NS } else { 0.0 };
                extra + random.exponential(MILLISECOND)
            });
        }
        Delays::Route => {
            let half = packets.len() / 2;
            each(packets, |index, _| {
                ROUTES_NS[usize::from(index >= half)] + random.exponential(0.2 * MILLISECOND)
            });
        }
        Delays::Queue => queue(packets),
        Delays::Pareto => each(packets, |_, _| random.pareto(1.5, PARETO_SCALE_NS)),
    }
}

fn each(packets: &mut [SentPacket], mut draw: impl FnMut(usize, &SentPacket) -> f64) {
    for (index, packet) in packets.iter_mut().enumerate() {
        packet.delay_ns = Some(draw(index, packet) as i64);
    }
}

fn broken_flows(flows: usize, random: &mut Random) -> Vec<bool> {
    let mut broken = vec![false; flows];
    broken[..BROKEN_FLOWS.min(flows.div_ceil(2))].fill(true);
    random.shuffle(&mut broken);
    broken
}

/// One server, first in, first out, whose rate follows from the traffic itself.
fn queue(packets: &mut [SentPacket]) {
    const HEADER_BYTES: usize = 42;
    let [Some(first), Some(last)] = [packets.first(), packets.last()] else { return };
    let (start_ns, lasts_ns) = (first.sent_ns, (last.sent_ns - first.sent_ns) as f64);
    let bytes = |packet: &SentPacket| (packet.payload_bytes + HEADER_BYTES) as f64;
    let byte_ns = UTILISATION * lasts_ns / packets.iter().map(bytes).sum::<f64>();
    let mut free_ns = 0.0_f64;
    for packet in packets {
        let sent_ns = (packet.sent_ns - start_ns) as f64;
        free_ns = free_ns.max(sent_ns) + bytes(packet) * byte_ns;
        packet.delay_ns = Some((free_ns - sent_ns) as i64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::GridCell;
    use crate::traffic::Traffic;

    /// Means in milliseconds by flow, smallest first, and of all.
    fn means(name: &str) -> (Vec<f64>, f64) {
        let cell = GridCell::named(["30", "equal", "default", name, "none", "none"]);
        let packets = Traffic::draw(cell, 3).forward;
        let mean = |selects: &dyn Fn(&&SentPacket) -> bool| {
            let of = packets.iter().filter(selects).filter_map(|packet| packet.delay_ns);
            let delays: Vec<f64> = of.map(|delay| delay as f64 / 1e6).collect();
            delays.iter().sum::<f64>() / delays.len() as f64
        };
        let mut flows: Vec<f64> = (0..30).map(|flow| mean(&|packet| packet.flow == flow)).collect();
        flows.sort_by(f64::total_cmp);
        (flows, mean(&|_| true))
    }

    /// 30 flows of 1 000 packets: the mean of a flow with exponential delays has an error of 0.03 ms.
    #[test]
    fn means_are_those_of_the_models() {
        let near = |value: f64, expected: f64| (value - expected).abs() < 0.15 * expected;
        let (flows, all) = means("exponential");
        assert!(near(flows[0], 1.0) && near(flows[29], 1.0) && near(all, 1.0), "{flows:?}");
        let (flows, _) = means("bimodal");
        assert!(near(flows[0], 0.2) && near(flows[29], 1.5), "{flows:?}");
        let (flows, _) = means("broken");
        assert!(near(flows[24], 1.0) && near(flows[25], 501.0), "{flows:?}");
        let (_, all) = means("route");
        assert!(near(all, 40.7), "{all}");
    }

    /// No packet overtakes another, and at 99 % of its capacity the queue adds far more than the time of one
    /// packet (a third of a millisecond).
    #[test]
    fn the_queue_keeps_the_order() {
        let cell = GridCell::named(["30", "equal", "default", "queue", "none", "none"]);
        let packets = Traffic::draw(cell, 3).forward;
        assert!(packets.is_sorted_by_key(|packet| packet.sent_ns + packet.delay_ns.unwrap()));
        let (_, all) = means("queue");
        assert!(all > 2.0, "{all}");
    }
}

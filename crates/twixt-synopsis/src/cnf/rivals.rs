//! Other ways to the delay of single flows, as reference lines for evaluations. They look at
//! every packet that crossed, which no deployment can: what they tell is how well a way could do.

use std::collections::BTreeMap;

use twixt_model::{ClassId, Delay, FlowHash, PacketDigest, Timestamp};

use super::endpoints::{Endpoints, Sums};

/// A packet that was seen at both points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crossed {
    /// When it passed upstream.
    pub sent: Timestamp,
    /// Its delay.
    pub delay: Delay,
    /// Its flow.
    pub flow: FlowHash,
    /// Its digest.
    pub digest: PacketDigest,
    /// Its length in bytes.
    pub length: u32,
}

/// Mean delay by flow, in nanoseconds.
pub type Means = BTreeMap<FlowHash, f64>;

/// The truth.
#[must_use]
pub fn truth(packets: &[Crossed]) -> Means {
    means(packets.iter().map(|packet| (packet.flow, packet.delay)))
}

/// Trajectory sampling: a flow's mean is that of its selected packets.
#[must_use]
pub fn trajectory_sampling(packets: &[Crossed], selects: impl Fn(&Crossed) -> bool) -> Means {
    let selected = packets.iter().filter(|packet| selects(packet));
    means(selected.map(|packet| (packet.flow, packet.delay)))
}

/// One test packet after every `spacing` packets: one mean for all flows.
#[must_use]
pub fn active_packets(packets: &[Crossed], spacing: usize) -> Option<f64> {
    Sums::of(packets.iter().step_by(spacing.max(1)).map(|packet| packet.delay)).mean_ns()
}

/// The mean of all packets, for every flow.
#[must_use]
pub fn mean_of_all(packets: &[Crossed]) -> Option<f64> {
    active_packets(packets, 1)
}

/// The mean of all packets that pass from a flow's first to its last packet: what Multiflow tends to
/// when ever more records have their ends there.
#[must_use]
pub fn all_between(packets: &[Crossed]) -> Means {
    let mut by_time: Vec<&Crossed> = packets.iter().collect();
    by_time.sort_by_key(|packet| packet.sent);
    let mut sums_ns = vec![0.0];
    let mut spans: BTreeMap<FlowHash, (usize, usize)> = BTreeMap::new();
    for (place, packet) in by_time.iter().enumerate() {
        sums_ns.push(sums_ns[place] + packet.delay.as_nanos() as f64);
        spans.entry(packet.flow).or_insert((place, place)).1 = place;
    }
    let mean_ns = |(first, last): (usize, usize)| {
        (sums_ns[last + 1] - sums_ns[first]) / (last + 1 - first) as f64
    };
    spans.into_iter().map(|(flow, span)| (flow, mean_ns(span))).collect()
}

/// Interpolation between the ends of records at the times of the flow's own packets. A packet
/// outside of all records is left out.
#[must_use]
pub fn interpolation(packets: &[Crossed], class: ClassId, endpoints: &Endpoints) -> Means {
    float_means(
        packets.iter().filter_map(|packet| {
            Some((packet.flow, endpoints.interpolated_ns(class, packet.sent)?))
        }),
    )
}

/// How often reference packets are sent for [`reference_interpolation`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ReferenceRate {
    /// One after so many packets.
    Static(usize),
    /// After fewer packets when the line is idle than when it is busy.
    Adaptive {
        /// Bits per second that the line can carry.
        line_bits_per_second: f64,
        /// Packets between reference packets on an idle and on a busy line.
        spacing: Spacing,
    },
}

/// Packets between reference packets on an idle and on a busy line; in between, in proportion to the
/// load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spacing {
    /// When nothing is sent.
    pub idle: f64,
    /// When the line is full.
    pub busy: f64,
}

impl Spacing {
    /// As the authors of RLI have it: one in 10 to one in 300.
    pub const PUBLISHED: Self = Self { idle: 10.0, busy: 300.0 };
}

/// Packets over which the load of the line is measured.
const LOAD_PACKETS: usize = 1000;

/// Reference latency interpolation (RLI): reference packets carry their send time, and the delay
/// of a packet between two of them lies on the line between theirs, in *receive* time. The
/// receiver knows no send time but those of reference packets. Packets before the first or after
/// the last reference are left out.
#[must_use]
pub fn reference_interpolation(packets: &[Crossed], rate: ReferenceRate) -> Means {
    let received = received(packets);
    let references = references(&received, rate);
    let spans = references.windows(2).map(|pair| (pair[0], pair[1]));
    float_means(spans.flat_map(|(from, to)| {
        let (start, first) = received[from];
        let (end, last) = received[to];
        let slope = (last.delay - first.delay).as_nanos() as f64
            / ((end - start).as_nanos() as f64).max(1.0);
        received[from + 1..to].iter().map(move |&(time, packet)| {
            let since = (time - start).as_nanos() as f64;
            (packet.flow, first.delay.as_nanos() as f64 + slope * since)
        })
    }))
}

/// How many packets pass for each reference packet on average; `None` of nothing.
#[must_use]
pub fn packets_per_reference(packets: &[Crossed], rate: ReferenceRate) -> Option<f64> {
    let references = references(&received(packets), rate).len();
    (references > 0).then(|| packets.len() as f64 / references as f64)
}

/// Packets in the order in which they pass downstream, with that time.
fn received(packets: &[Crossed]) -> Vec<(Timestamp, &Crossed)> {
    let mut received: Vec<(Timestamp, &Crossed)> =
        packets.iter().map(|packet| (packet.sent + packet.delay, packet)).collect();
    received.sort_by_key(|&(time, packet)| (time, packet.sent));
    received
}

/// Places after which a reference packet comes, with the delay of the packet there.
fn references(received: &[(Timestamp, &Crossed)], rate: ReferenceRate) -> Vec<usize> {
    let mut places = Vec::new();
    let mut place = 0;
    while place < received.len() {
        places.push(place);
        place += match rate {
            ReferenceRate::Static(spacing) => spacing.max(1),
            ReferenceRate::Adaptive { line_bits_per_second, spacing: Spacing { idle, busy } } => {
                let load = load(&received[..=place], line_bits_per_second);
                ((idle + (busy - idle) * load) as usize).max(1)
            }
        };
    }
    places
}

/// Share of the line that the latest packets took.
fn load(received: &[(Timestamp, &Crossed)], line_bits_per_second: f64) -> f64 {
    let latest = &received[received.len().saturating_sub(LOAD_PACKETS)..];
    let (Some((from, _)), Some((to, _))) = (latest.first(), latest.last()) else { return 0.0 };
    let seconds = (*to - *from).as_nanos() as f64 / 1e9;
    let bits: f64 = latest.iter().map(|(_, packet)| f64::from(packet.length) * 8.0).sum();
    if seconds > 0.0 { (bits / seconds / line_bits_per_second).clamp(0.0, 1.0) } else { 0.0 }
}

fn means(delays: impl Iterator<Item = (FlowHash, Delay)>) -> Means {
    float_means(delays.map(|(flow, delay)| (flow, delay.as_nanos() as f64)))
}

fn float_means(delays: impl Iterator<Item = (FlowHash, f64)>) -> Means {
    let mut sums: BTreeMap<FlowHash, (f64, f64)> = BTreeMap::new();
    for (flow, delay_ns) in delays {
        let (sum, count) = sums.entry(flow).or_default();
        *sum += delay_ns;
        *count += 1.0;
    }
    sums.into_iter().map(|(flow, (sum, count))| (flow, sum / count)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(number: i64, delay_ns: i64) -> Crossed {
        Crossed {
            sent: Timestamp::from_nanos(number * 1000),
            delay: Delay::from_nanos(delay_ns),
            flow: FlowHash(number as u64 % 2),
            digest: PacketDigest(number as u64),
            length: 100,
        }
    }

    #[test]
    fn reference_packets_draw_a_line_in_receive_time() {
        // Delays grow with send time by 10 %, so with receive time by 1/11: RLI is exact.
        let packets: Vec<Crossed> = (0..101).map(|number| packet(number, 100 * number)).collect();
        let found = reference_interpolation(&packets, ReferenceRate::Static(10));
        let inner: Vec<Crossed> =
            packets.iter().copied().filter(|packet| packet.digest.0 % 10 != 0).collect();
        for (flow, mean) in truth(&inner) {
            assert!((found[&flow] - mean).abs() < 1e-6, "{flow:?}: {} {mean}", found[&flow]);
        }
    }

    #[test]
    fn packets_are_counted_for_each_reference() {
        let packets: Vec<Crossed> = (0..100).map(|number| packet(number, 5)).collect();
        let found = packets_per_reference(&packets, ReferenceRate::Static(20));
        assert_eq!(found, Some(20.0));
        assert_eq!(packets_per_reference(&[], ReferenceRate::Static(20)), None);
    }

    #[test]
    fn a_busy_line_sends_fewer_reference_packets() {
        let packets: Vec<Crossed> = (0..5000).map(|number| packet(number, 5)).collect();
        let count = |line_bits_per_second| {
            let received: Vec<_> = packets.iter().map(|packet| (packet.sent, packet)).collect();
            let spacing = Spacing::PUBLISHED;
            references(&received, ReferenceRate::Adaptive { line_bits_per_second, spacing }).len()
        };
        // 100 bytes a microsecond are 800 Mbit/s.
        assert!(count(8e8) < 25, "{}", count(8e8));
        assert!(count(8e11) > 450, "{}", count(8e11));
    }

    #[test]
    fn other_lines_are_plain_means() {
        let packets = [packet(0, 10), packet(1, 20), packet(2, 30), packet(3, 60)];
        assert_eq!(truth(&packets)[&FlowHash(1)], 40.0);
        assert_eq!(mean_of_all(&packets), Some(30.0));
        assert_eq!(active_packets(&packets, 2), Some(20.0));
        assert_eq!(active_packets(&[], 2), None);
        assert_eq!(all_between(&packets)[&FlowHash(0)], 20.0);
        assert_eq!(all_between(&packets)[&FlowHash(1)], 110.0 / 3.0);
        let sampled = trajectory_sampling(&packets, |packet| packet.digest.0 > 1);
        assert_eq!(sampled[&FlowHash(0)], 30.0);
    }
}

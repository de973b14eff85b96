//! Six routers, three routes, three classes of traffic, and what goes wrong.
//!
//! ```text
//!   ams ──▶ fra ──▶ zrh ──▶ mil
//!    │               ▲
//!    ▼               │
//!   bru ──────────▶ par
//! ```
//!
//! Every link of a router has observation points at both ends: `ams-fra` is where Amsterdam sends to
//! Frankfurt, in front of the queue; `fra-ams` is where Frankfurt receives that.

use std::ops::Range;

use twixt_detect::IncidentKind;
use twixt_engine::SegmentConfig;
use twixt_model::quantity::{BitRate, Nanoseconds, PacketRate};
use twixt_model::{PointId, Segment, mix, protocol};
use twixt_sim::{
    Burst, FlowSize, LinkConfig, Loss, LossSpell, NetworkConfig, PacketSize, QueueConfig,
    TrafficConfig,
};

use crate::{EPOCH_NS, LEAD_SECONDS};

/// A class of traffic: one queue on every link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DemoClass {
    /// Its name.
    pub name: &'static str,
    /// Which packets it has, in the words of a filter.
    pub filter: &'static str,
    service: (u8, u16),
    packet_bytes: u32,
    /// Of one route.
    rate: PacketRate,
    /// Of the queues, for one route.
    drain: BitRate,
}

/// All classes. Every queue is used to a fifth or a quarter, and full it takes 40 ms to drain.
pub(crate) const CLASSES: [DemoClass; 3] = [
    DemoClass {
        name: "voice",
        filter: "udp dst port 5004",
        service: (protocol::UDP, 5004),
        packet_bytes: 200,
        rate: PacketRate(500),
        drain: BitRate(4_000_000),
    },
    DemoClass {
        name: "web",
        filter: "tcp dst port 443",
        service: (protocol::TCP, 443),
        packet_bytes: 400,
        rate: PacketRate(700),
        drain: BitRate(10_000_000),
    },
    DemoClass {
        name: "backup",
        filter: "tcp dst port 873",
        service: (protocol::TCP, 873),
        packet_bytes: 1_400,
        rate: PacketRate(400),
        drain: BitRate(20_000_000),
    },
];

/// A link: from where to where, and how long the line takes.
struct DemoLink {
    from: &'static str,
    to: &'static str,
    propagation_us: i64,
}

const fn link(from: &'static str, to: &'static str, propagation_us: i64) -> DemoLink {
    DemoLink { from, to, propagation_us }
}

/// In an order that every route follows.
const LINKS: [DemoLink; 6] = [
    link("ams", "fra", 3_400),
    link("fra", "zrh", 2_900),
    link("ams", "bru", 1_300),
    link("bru", "par", 2_100),
    link("par", "zrh", 4_300),
    link("zrh", "mil", 2_400),
];

/// The routes, router by router.
pub const ROUTES: [&[&str]; 3] =
    [&["ams", "fra", "zrh", "mil"], &["bru", "par", "zrh", "mil"], &["ams", "bru", "par"]];

/// Flows drawn at a time for each route and class; they have some 40 packets each.
const FLOWS: u32 = 400;
const FLOW_SIZE: FlowSize = FlowSize::Pareto { shape: 1.5, min: 17.0, max: 500.0 };
const BURST: Burst = Burst { length: 3.0, gap: Nanoseconds(500_000) };
/// How long a full queue takes to drain.
const QUEUE_NS: u64 = 40_000_000;
/// Share of the packets that every line loses.
const LOSS: Loss = Loss::Uniform { rate: 0.000_2 };
/// Share of the packets that are overtaken, and by how much they are late at most.
const REORDER_RATE: f64 = 0.005;
const REORDER_EXTENT: Nanoseconds = Nanoseconds(2_000_000);

/// While there is too much of a class, its queue is offered this share of what it can send.
const OVERLOAD: f64 = 1.1;
/// While a line loses packets, it loses this share.
const LOSING_RATE: f64 = 0.06;
/// How long an incident lasts, and when the two of a cycle begin, within so many seconds.
const INCIDENT_S: f64 = 12.0;
const QUEUE_BEGINS_S: Range<f64> = 20.0..26.0;
const LOSS_BEGINS_S: Range<f64> = 36.0..42.0;
/// Incidents come again after this time, on other segments.
pub(crate) const CYCLE_S: i64 = 120;

/// Which incidents are injected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InjectedIncidents {
    /// A queue that fills, and then a line that loses packets.
    #[default]
    All,
    /// Only the queue.
    Queue,
    /// Only the loss.
    Loss,
    /// Nothing goes wrong.
    None,
}

/// Something that goes wrong on purpose.
#[derive(Clone, Debug, PartialEq)]
pub struct Injected {
    /// What.
    pub kind: IncidentKind,
    /// Where.
    pub segment: Segment,
    /// For which class; for all when `None`.
    pub class: Option<&'static str>,
    /// From when on, since the start of the summary.
    pub start_s: f64,
    /// Until when.
    pub end_s: f64,
}

/// The network, and what goes wrong in it: the same for everybody with this seed.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// What is simulated.
    pub network: NetworkConfig,
    /// What goes wrong, in order of time.
    pub injected: Vec<Injected>,
}

impl Scenario {
    /// With the incidents of so many cycles.
    #[must_use]
    pub fn new(seed: u64, incidents: InjectedIncidents, cycles: u32) -> Self {
        let network = NetworkConfig { seed, links: links(), traffic: traffic() };
        let mut scenario = Self { network, injected: Vec::new() };
        let mut draw = Draw(mix(seed));
        for cycle in 0..cycles {
            let begins_s = i64::from(cycle) * CYCLE_S;
            scenario.inject(incidents, begins_s as f64, &mut draw);
        }
        scenario
    }

    /// A queue on one segment, then loss on another. All numbers are drawn, whichever are used, so that
    /// the same seed means the same places.
    fn inject(&mut self, incidents: InjectedIncidents, begins_s: f64, draw: &mut Draw) {
        let waiting = draw.below(LINKS.len());
        let losing = (waiting + 1 + draw.below(LINKS.len() - 1)) % LINKS.len();
        let class = draw.below(CLASSES.len());
        let queue_s = begins_s + draw.within(QUEUE_BEGINS_S);
        let loss_s = begins_s + draw.within(LOSS_BEGINS_S);
        if matches!(incidents, InjectedIncidents::All | InjectedIncidents::Queue) {
            self.overload(waiting, class, queue_s);
        }
        if matches!(incidents, InjectedIncidents::All | InjectedIncidents::Loss) {
            self.lose(losing, loss_s);
        }
    }

    /// Traffic of one class that passes this link only, more than its queue can send.
    fn overload(&mut self, link: usize, class: usize, start_s: f64) {
        let DemoClass { name, rate, drain, packet_bytes, .. } = CLASSES[class];
        let routes = routes_over(link) as f64;
        let most = drain.0 as f64 * routes / (f64::from(packet_bytes) * 8.0);
        let extra = OVERLOAD * most - rate.0 as f64 * routes;
        let during_ns = during_ns(start_s);
        self.network.traffic.push(TrafficConfig {
            rate: PacketRate(extra as u64),
            during_ns: Some(during_ns),
            ..traffic_of(&CLASSES[class], vec![link])
        });
        self.note(IncidentKind::Queue, link, Some(name), start_s);
    }

    fn lose(&mut self, link: usize, start_s: f64) {
        let spell = LossSpell { class: None, rate: LOSING_RATE, during_ns: during_ns(start_s) };
        self.network.links[link].spells.push(spell);
        self.note(IncidentKind::Loss, link, None, start_s);
    }

    fn note(&mut self, kind: IncidentKind, link: usize, class: Option<&'static str>, start_s: f64) {
        let (segment, end_s) = (segment_of(&LINKS[link]), start_s + INCIDENT_S);
        self.injected.push(Injected { kind, segment, class, start_s, end_s });
    }
}

/// The segments, in the order of the links: one for each.
pub(crate) fn segments() -> impl Iterator<Item = Segment> {
    LINKS.iter().map(segment_of)
}

/// The segments as a collector is told of them.
pub(crate) fn segment_configs() -> Vec<SegmentConfig> {
    segments().map(|segment| SegmentConfig { segment, class: None }).collect()
}

/// The routers at the two ends of each link.
pub(crate) fn routers_of_links() -> impl Iterator<Item = [&'static str; 2]> {
    LINKS.iter().map(|link| [link.from, link.to])
}

fn segment_of(link: &DemoLink) -> Segment {
    let point = |at: &str, other: &str| PointId(format!("{at}-{other}"));
    Segment { upstream: point(link.from, link.to), downstream: point(link.to, link.from) }
}

fn links() -> Vec<LinkConfig> {
    let link = |(index, link): (usize, &DemoLink)| LinkConfig {
        queues: CLASSES.iter().map(|class| queue(class, routes_over(index))).collect(),
        propagation: Nanoseconds(link.propagation_us * 1_000),
        loss: LOSS,
        reorder_rate: REORDER_RATE,
        reorder_extent: REORDER_EXTENT,
        spells: Vec::new(),
    };
    LINKS.iter().enumerate().map(link).collect()
}

/// A queue for the traffic of so many routes.
fn queue(class: &DemoClass, routes: u64) -> QueueConfig {
    let drain = BitRate(class.drain.0 * routes);
    let bits = drain.0 * QUEUE_NS / 1_000_000_000;
    let packets = bits / (u64::from(class.packet_bytes) * 8);
    QueueConfig { drain, packets: packets as u32 } // some hundreds
}

fn traffic() -> Vec<TrafficConfig> {
    let routes = (0..ROUTES.len()).map(links_of_route);
    routes.flat_map(|route| CLASSES.map(|class| traffic_of(&class, route.clone()))).collect()
}

fn traffic_of(class: &DemoClass, route: Vec<usize>) -> TrafficConfig {
    TrafficConfig {
        route,
        class: CLASSES.iter().position(|of| of.name == class.name).expect("it is one of them"),
        service: class.service,
        flows: FLOWS,
        rate: class.rate,
        flow_size: FLOW_SIZE,
        burst: BURST,
        packet_size: PacketSize::Fixed { bytes: class.packet_bytes },
        during_ns: None,
    }
}

fn links_of_route(route: usize) -> Vec<usize> {
    let between = |pair: &[&str]| {
        let link = LINKS.iter().position(|link| [link.from, link.to] == pair[..]);
        link.expect("routes follow links")
    };
    ROUTES[route].windows(2).map(between).collect()
}

/// How many routes pass a link.
fn routes_over(link: usize) -> u64 {
    (0..ROUTES.len()).filter(|&route| links_of_route(route).contains(&link)).count() as u64
}

/// In the time of the network, which begins a little earlier.
fn during_ns(start_s: f64) -> Range<i64> {
    let start_ns = LEAD_SECONDS * EPOCH_NS + (start_s * 1e9) as i64;
    start_ns..start_ns + (INCIDENT_S * 1e9) as i64
}

/// Numbers that depend on the seed alone.
struct Draw(u64);

impl Draw {
    const fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    const fn below(&mut self, bound: usize) -> usize {
        (self.bits() % bound as u64) as usize
    }

    /// To a tenth of a second, which people can read.
    fn within(&mut self, range: Range<f64>) -> f64 {
        let tenths = ((range.end - range.start) * 10.0) as usize;
        range.start + self.below(tenths) as f64 / 10.0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use twixt_sim::Network;

    use super::*;

    #[test]
    fn there_are_six_routers_and_every_link_is_used() {
        let routers: BTreeSet<&str> = routers_of_links().flatten().collect();
        assert_eq!(routers.len(), 6);
        assert!((0..LINKS.len()).all(|link| (1..=2).contains(&routes_over(link))));
        assert_eq!(links_of_route(0), [0, 1, 5]);
        let names: Vec<String> = segments().map(|segment| segment.to_string()).collect();
        assert_eq!(names[0], "ams-fra > fra-ams");
    }

    #[test]
    fn every_seed_gives_a_network_with_two_incidents_on_two_segments() {
        let mut places = BTreeSet::new();
        for seed in 0..200 {
            let scenario = Scenario::new(seed, InjectedIncidents::All, 2);
            Network::new(&scenario.network).unwrap();
            for pair in scenario.injected.chunks(2) {
                assert_ne!(pair[0].segment, pair[1].segment);
                assert!(pair[0].end_s < pair[1].start_s + INCIDENT_S);
                assert!(pair[1].end_s <= (pair[0].start_s / 120.0).floor() * 120.0 + 60.0);
                places.insert((pair[0].segment.clone(), pair[0].class));
            }
            assert!(Scenario::new(seed, InjectedIncidents::None, 2).injected.is_empty());
            let only = Scenario::new(seed, InjectedIncidents::Loss, 1).injected;
            assert_eq!(only[..], scenario.injected[1..2]);
        }
        assert_eq!(places.len(), 18);
    }
}

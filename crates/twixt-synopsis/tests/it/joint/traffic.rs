//! Packets of flows as two points see them, with the truth added up packet by packet. Shares no code
//! and no assumption with the simulator, which the estimators were developed with.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use rand_distr::{Distribution, Exp1, LogNormal, Normal, Pareto, Uniform};
use twixt_model::{FlowHash, FlowKey, Observation, PacketDigest, Timestamp};
use twixt_synopsis::{KnownFlow, Synopsis};

/// What traffic to make. Equal workloads make equal traffic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Workload {
    pub(crate) seed: u64,
    pub(crate) flows: usize,
    pub(crate) sizes: Sizes,
    pub(crate) delays: Delays,
    /// Part of the packets that is lost, each by itself.
    pub(crate) loss: f64,
    /// Part of a flow's packets that are identical.
    pub(crate) repeats: f64,
}

/// How many packets flows send.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Sizes {
    Equal(u64),
    /// Of shape 1.05, from this many packets up to 100,000.
    Pareto(f64),
}

/// How long packets take, beyond [`CONSTANT_NS`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Delays {
    /// Exponential with a mean of 1 ms, the same for all flows.
    Exponential,
    /// Exponential, each flow with a mean of its own: log-normal around 1 ms, deviation 0.5.
    ByFlow,
    /// Two groups of flows, around 0.2 and 1.5 ms.
    Bimodal,
    /// As by flow, but five flows take 500 ms.
    FiveBroken,
    /// As by flow, and 20 ms more in the second half of the time.
    RouteChange,
    /// Pareto of shape 1.5, a third of a millisecond at least, the same for all flows: no variance.
    Pareto,
    /// One queue at a load of 0.99: delays of neighbours in time are nearly equal.
    Queue,
}

/// Every packet takes at least this long.
pub(crate) const CONSTANT_NS: f64 = 2e7;
/// All packets are sent within this time.
const DURATION_NS: f64 = 1e10;
/// Far from zero, as clocks are.
const START_NS: i64 = 1_700_000_000_000_000_000;
const MILLISECOND: f64 = 1e6;

#[derive(Clone, Copy, Debug)]
struct Packet {
    flow: usize,
    time_ns: i64,
    delay_ns: i64,
    is_lost: bool,
    digest: u64,
}

/// What really happened to a flow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Truth {
    pub(crate) sent: u64,
    arrived: u64,
    delay_sum_ns: i64,
}

impl Truth {
    /// Of the packets that arrived.
    pub(crate) fn mean_ns(&self) -> Option<f64> {
        (self.arrived > 0).then(|| self.delay_sum_ns as f64 / self.arrived as f64)
    }
}

pub(crate) struct Traffic {
    packets: Vec<Packet>,
    hashes: Vec<FlowHash>,
    pub(crate) truth: Vec<Truth>,
}

impl Traffic {
    pub(crate) fn new(workload: &Workload) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(workload.seed);
        let hashes = (0..workload.flows).map(|_| FlowHash(rng.next_u64())).collect();
        let sizes = workload.sizes.draw(workload.flows, &mut rng);
        let mut packets = sent(&sizes, workload, &mut rng);
        packets.sort_by_key(|packet| packet.time_ns);
        workload.delays.apply(workload.flows, &mut packets, &mut rng);
        let mut truth = vec![Truth::default(); workload.flows];
        for packet in &packets {
            let flow = &mut truth[packet.flow];
            flow.sent += 1;
            if !packet.is_lost {
                flow.arrived += 1;
                flow.delay_sum_ns += packet.delay_ns;
            }
        }
        Self { packets, hashes, truth }
    }

    /// Both ends, as one algorithm remembers them.
    pub(crate) fn ends<S: Synopsis>(&self, config: &S::Config) -> (S, S) {
        let (mut upstream, mut downstream) = (S::new(config), S::new(config));
        for packet in &self.packets {
            upstream.update(&self.observation(packet, 0));
            if !packet.is_lost {
                downstream.update(&self.observation(packet, packet.delay_ns));
            }
        }
        (upstream, downstream)
    }

    fn observation(&self, packet: &Packet, delay_ns: i64) -> Observation {
        Observation {
            time: Timestamp::from_nanos(START_NS + packet.time_ns + delay_ns),
            digest: PacketDigest(packet.digest),
            flow: self.hashes[packet.flow],
            length: 500,
            ..Observation::default()
        }
    }

    /// A flow as a list of flows names it.
    pub(crate) fn listed(&self, flow: usize, size_known: bool) -> KnownFlow {
        let packets = size_known.then_some(self.truth[flow].sent);
        KnownFlow { hash: self.hashes[flow], key: key_of(flow), packets, ..KnownFlow::default() }
    }

    /// A flow that a list names although it sent nothing.
    pub(crate) fn absent(&self, number: usize) -> KnownFlow {
        let flow = self.hashes.len() + number;
        // No hash of a flow that sends: those are drawn.
        let hash = FlowHash(twixt_model::mix(self.hashes[0].0 ^ flow as u64));
        KnownFlow { hash, key: key_of(flow), ..KnownFlow::default() }
    }
}

/// Names a flow by its number.
fn key_of(flow: usize) -> FlowKey {
    let [_, high, middle, low] = (flow as u32).to_be_bytes();
    FlowKey {
        source: [10, high, middle, low].into(),
        destination: [192, 0, 2, 1].into(),
        source_port: 40_000,
        destination_port: 443,
        protocol: 17,
    }
}

/// A flow sends during a part of the time that is its own, so that flows see different delays where
/// those change with time.
fn sent(sizes: &[u64], workload: &Workload, rng: &mut ChaCha8Rng) -> Vec<Packet> {
    let unit = Uniform::new(0.0, 1.0).expect("the bounds are in order");
    let mut packets = Vec::with_capacity(sizes.iter().sum::<u64>() as usize);
    for (flow, &size) in sizes.iter().enumerate() {
        let (start, part) = (unit.sample(rng) * 0.9, unit.sample(rng));
        for _ in 0..size {
            let time_ns = (start + (1.0 - start) * part * unit.sample(rng)) * DURATION_NS;
            let (is_lost, mut digest) = (unit.sample(rng) < workload.loss, rng.next_u64());
            if workload.repeats > 0.0 && unit.sample(rng) < workload.repeats {
                digest = twixt_model::mix(flow as u64);
            }
            packets.push(Packet { flow, time_ns: time_ns as i64, delay_ns: 0, is_lost, digest });
        }
    }
    packets
}

impl Sizes {
    fn draw(self, flows: usize, rng: &mut ChaCha8Rng) -> Vec<u64> {
        match self {
            Self::Equal(packets) => vec![packets; flows],
            Self::Pareto(least) => {
                let sizes = Pareto::new(least, 1.05).expect("shape and scale are above zero");
                (0..flows).map(|_| sizes.sample(rng).min(100_000.0) as u64).collect()
            }
        }
    }
}

impl Delays {
    fn apply(self, flows: usize, packets: &mut [Packet], rng: &mut ChaCha8Rng) {
        let levels_ns: Vec<f64> = (0..flows).map(|flow| self.level_ns(flow, flows, rng)).collect();
        let mut queue = Queue::new(packets.len());
        let jitter = LogNormal::new(0.0, 0.4).expect("the deviation is finite");
        let broken = Normal::new(1.0, 0.1).expect("the deviation is finite");
        let pareto = Pareto::new(MILLISECOND / 3.0, 1.5).expect("shape and scale are above zero");
        for packet in packets {
            let level_ns = levels_ns[packet.flow];
            let exponential: f64 = Exp1.sample(rng);
            let varying_ns = match self {
                Self::Queue => queue.next_ns(packet.time_ns as f64, rng),
                Self::Bimodal => level_ns * jitter.sample(rng),
                Self::Pareto => pareto.sample(rng),
                Self::FiveBroken if level_ns > 100.0 * MILLISECOND => {
                    level_ns * f64::max(broken.sample(rng), 0.0)
                }
                Self::RouteChange if packet.time_ns as f64 > DURATION_NS / 2.0 => {
                    level_ns * exponential + 20.0 * MILLISECOND
                }
                _ => level_ns * exponential,
            };
            packet.delay_ns = (CONSTANT_NS + varying_ns) as i64;
        }
    }

    /// What the mean of a flow's packets is about.
    fn level_ns(self, flow: usize, flows: usize, rng: &mut ChaCha8Rng) -> f64 {
        let mut around = |milliseconds: f64, deviation: f64| {
            let level = LogNormal::new((milliseconds * MILLISECOND).ln(), deviation);
            level.expect("the deviation is finite").sample(rng)
        };
        match self {
            Self::Exponential | Self::Queue | Self::Pareto => MILLISECOND,
            Self::Bimodal if flow % 5 < 3 => around(0.2, 0.35),
            Self::Bimodal => around(1.5, 0.35),
            // Spread over the list, so that not all of them are large or small.
            Self::FiveBroken if flow % flows.div_ceil(5) == flows / 11 => 500.0 * MILLISECOND,
            Self::ByFlow | Self::RouteChange | Self::FiveBroken => around(1.0, 0.5),
        }
    }
}

/// A queue with one server, by Lindley's recursion.
struct Queue {
    service_ns: f64,
    wait_ns: f64,
    last_ns: f64,
}

impl Queue {
    const LOAD: f64 = 0.99;

    fn new(packets: usize) -> Self {
        let gap_ns = DURATION_NS / packets.max(1) as f64;
        Self { service_ns: Self::LOAD * gap_ns, wait_ns: 0.0, last_ns: 0.0 }
    }

    fn next_ns(&mut self, time_ns: f64, rng: &mut ChaCha8Rng) -> f64 {
        let service = Uniform::new(0.5, 1.5).expect("the bounds are in order").sample(rng);
        self.wait_ns = (self.wait_ns - (time_ns - self.last_ns)).max(0.0);
        self.last_ns = time_ns;
        self.wait_ns += service * self.service_ns;
        self.wait_ns
    }
}

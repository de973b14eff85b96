//! Consistent NetFlow: what its experiments share.
//!
//! The paper's traces are a minute of a backbone (CHIC: 13 million packets of a million flows)
//! that cannot be had. Ours have the same ratio of packets to flows and the same rate, and Pareto
//! sizes; queues are simulated packet by packet.

pub(super) mod association;
pub(super) mod loss;
pub(super) mod queue;
pub(super) mod sampling;
pub(super) mod sizes;
pub(super) mod weibull;

use std::collections::BTreeMap;

use twixt_model::{FlowHash, FlowKey, Scope, Span, Timestamp};
use twixt_sim::quantity::PacketRate;
use twixt_sim::{Config, DelayModel, Loss, Point, Simulation};
use twixt_synopsis::cnf::rivals::{Crossed, Means, truth};
use twixt_synopsis::{By, Cnf, CnfConfig, Pair, Question, Synopsis, TwoPoint};

use crate::experiment::Setting;

/// Packets per second of the paper's CHIC trace.
const RATE: u64 = 217_000;
/// Bits per second that so many packets of 340 bytes (the mean of imix) are.
const OFFERED_BITS: f64 = RATE as f64 * 340.0 * 8.0;

/// Traffic that crossed a segment, and both meters.
struct Run {
    upstream: Cnf,
    downstream: Cnf,
    packets: Vec<Crossed>,
    truth: Means,
    /// Packets by flow, lost ones included.
    sizes: BTreeMap<FlowHash, u64>,
    hashes: BTreeMap<FlowKey, FlowHash>,
    lost_share: f64,
}

fn traffic(setting: Setting, delay: DelayModel, loss: Loss) -> Simulation {
    let config = Config {
        seed: setting.seed,
        flows: setting.size.pick(40_000, 200_000) as u32,
        packets: Some(setting.size.pick(520_000, 2_600_000)),
        rate: PacketRate(RATE),
        delay,
        loss,
        ..Config::default()
    };
    Simulation::run(&config).expect("the configuration is in range")
}

/// A queue in which so much of the line is taken on average.
fn droptail(load: f64, queue: u32) -> DelayModel {
    let drain = (OFFERED_BITS / load).round();
    format!("droptail:drain={drain}bit,queue={queue}").parse().expect("a queue is well-formed")
}

fn meters(simulation: &Simulation, config: &CnfConfig) -> (Cnf, Cnf) {
    let meter = |point| {
        let mut cnf = Cnf::new(config);
        for (packet, sighting) in simulation.observations(point).zip(simulation.sightings(point)) {
            cnf.update_detailed(&packet, &simulation.detail(sighting));
        }
        cnf
    };
    (meter(Point::Upstream), meter(Point::Downstream))
}

fn config(settings: &str) -> CnfConfig {
    toml::from_str(settings).expect("settings are well-formed")
}

impl Run {
    fn new(simulation: &Simulation, config: &CnfConfig) -> Self {
        let (upstream, downstream) = meters(simulation, config);
        let mut sizes: BTreeMap<FlowHash, u64> = BTreeMap::new();
        let mut packets = Vec::new();
        for (packet, sighting) in
            simulation.observations(Point::Upstream).zip(simulation.sightings(Point::Upstream))
        {
            *sizes.entry(packet.flow).or_default() += 1;
            let crossed = &simulation.packets()[sighting.packet as usize];
            let delay = simulation.observed_delay(crossed);
            packets.extend(delay.map(|delay| Crossed {
                sent: packet.time,
                delay,
                flow: packet.flow,
                digest: packet.digest,
                length: packet.length,
            }));
        }
        let flows = 0..simulation.flows() as u32;
        let offered: u64 = sizes.values().sum();
        Self {
            upstream,
            downstream,
            truth: truth(&packets),
            lost_share: 1.0 - packets.len() as f64 / offered as f64,
            packets,
            sizes,
            hashes: flows
                .map(|flow| (simulation.flow_key(flow), simulation.flow_hash(flow)))
                .collect(),
        }
    }

    /// Mean delay by flow, and the packets of it that were metered.
    fn estimates(&self, estimator: &str) -> BTreeMap<FlowHash, (f64, f64)> {
        let about = Question::about(Span::at(Timestamp::from_nanos(0)));
        let question = Question { by: By::Flow, estimator: Some(estimator), ..about };
        let pair = Pair { upstream: &self.upstream, downstream: &self.downstream };
        let rate = self.upstream.config().packet_rate();
        let flow = |estimate: &twixt_model::Estimate| {
            let Scope::Flow(key) = &estimate.scope else { return None };
            let metered = estimate.evidence.packets as f64 * rate;
            Some((*self.hashes.get(key)?, (estimate.delay?.mean_ns(), metered)))
        };
        Cnf::estimate(pair, &question).iter().filter_map(flow).collect()
    }

    /// Relative errors of flows that `selects`, which is given the packets of a flow.
    fn errors(&self, means: &Means, selects: impl Fn(u64) -> bool) -> Vec<f64> {
        let of_flow = |(flow, mean): (&FlowHash, &f64)| {
            let truth = self.truth.get(flow)?;
            selects(self.sizes[flow]).then(|| (mean / truth - 1.0).abs())
        };
        means.iter().filter_map(of_flow).collect()
    }

    fn means(&self, estimator: &str) -> Means {
        self.estimates(estimator).into_iter().map(|(flow, (mean, _))| (flow, mean)).collect()
    }
}

/// The median; `None` of nothing.
fn median(mut errors: Vec<f64>) -> Option<f64> {
    let middle = errors.len() / 2;
    (!errors.is_empty()).then(|| *errors.select_nth_unstable_by(middle, f64::total_cmp).1)
}

/// Shares of errors that are at most x, at even steps of the share.
fn distribution(mut errors: Vec<f64>) -> Vec<(f64, f64)> {
    const STEPS: usize = 50;
    errors.sort_unstable_by(f64::total_cmp);
    let at = |step: usize| errors[(step * errors.len() / STEPS).min(errors.len() - 1)];
    let steps = if errors.is_empty() { 0 } else { STEPS };
    (0..steps).map(|step| (at(step), step as f64 / STEPS as f64)).collect()
}

//! Simulated traffic, the sketches of it, and what they answer.

use std::collections::BTreeMap;

use twixt_model::{ClassId, Estimate, FlowHash, FlowKey, GroupId, Observation, Scope};
use twixt_sim::{Config, Loss, Point, Simulation};
use twixt_synopsis::{By, KnownFlow, Lds, LdsConfig, Pair, Question, Synopsis, TwoPoint};

/// How much traffic.
pub(crate) struct Scale {
    pub(crate) flows: u32,
    pub(crate) packets: u64,
    pub(crate) seeds: Vec<u64>,
}

/// One simulation and the truth about its flows.
pub(crate) struct Traffic {
    pub(crate) simulation: Simulation,
    pub(crate) flows: Vec<KnownFlow>,
    pub(crate) truth: BTreeMap<FlowKey, Estimate>,
}

impl Traffic {
    pub(crate) fn new(scale: &Scale, seed: u64, loss: Loss) -> Self {
        let delay = "bimodal:fraction=0.6,first=200us,second=1500us,spread=0.35,jitter=0.5";
        Self::with_delay(scale, seed, loss, delay)
    }

    pub(crate) fn with_delay(scale: &Scale, seed: u64, loss: Loss, delay: &str) -> Self {
        let config = Config {
            seed,
            flows: scale.flows,
            packets: Some(scale.packets),
            delay: delay.parse().unwrap(),
            loss,
            ..Config::default()
        };
        let simulation = Simulation::run(&config).unwrap();
        let truth = simulation.truth().flows.into_iter();
        let truth: BTreeMap<FlowKey, Estimate> =
            truth.map(|flow| (key_of(&flow.scope), flow)).collect();
        let flows = (0..simulation.flows() as u32).filter_map(|flow| {
            let key = simulation.flow_key(flow);
            let packets = Some(truth.get(&key)?.evidence.packets);
            Some(KnownFlow {
                hash: simulation.flow_hash(flow),
                key,
                group: GroupId::default(),
                packets,
                class: ClassId(0),
            })
        });
        Self { flows: flows.collect(), truth, simulation }
    }

    /// Flows at random in class 0, 1 and 2: 90, 9 and 1 % of them.
    pub(crate) fn classed(mut self) -> Self {
        for flow in &mut self.flows {
            flow.class = class_of(flow.hash);
        }
        self
    }

    /// What both points keep.
    pub(crate) fn sketches(&self, config: &LdsConfig) -> (Lds, Lds) {
        let fill = |point| {
            let mut lds = Lds::new(config);
            for packet in self.simulation.observations(point) {
                lds.update(&Observation { class: class_of(packet.flow), ..packet });
            }
            lds
        };
        (fill(Point::Upstream), fill(Point::Downstream))
    }

    /// What they answer, flow by flow, with the truth.
    pub(crate) fn ask(
        &self,
        (upstream, downstream): &(Lds, Lds),
        estimator: &str,
        sizes_known: bool,
    ) -> Vec<(Estimate, &Estimate)> {
        let mut flows = self.flows.clone();
        if !sizes_known {
            flows.iter_mut().for_each(|flow| flow.packets = None);
        }
        let span = self.truth.values().next().unwrap().span;
        let question = Question {
            by: By::Flow,
            estimator: Some(estimator),
            flows: &flows,
            ..Question::about(span)
        };
        let estimates = Lds::estimate(Pair { upstream, downstream }, &question);
        let with_truth = |estimate: Estimate| {
            let truth = &self.truth[&key_of(&estimate.scope)];
            (estimate, truth)
        };
        estimates.into_iter().map(with_truth).collect()
    }
}

fn class_of(flow: FlowHash) -> ClassId {
    ClassId(match flow.derive(0x636c_6173_7300) % 100 {
        0..90 => 0,
        90..99 => 1,
        _ => 2,
    })
}

pub(crate) fn key_of(scope: &Scope) -> FlowKey {
    match scope {
        Scope::Flow(key) => *key,
        other => panic!("{other} is no flow"),
    }
}

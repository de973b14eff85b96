//! Simulated traffic with known truth, and how far answers are off.

use std::collections::BTreeMap;

use twixt_model::{Estimate, FlowKey, GroupId, Scope};
use twixt_sim::{Config, Side, Simulation};
use twixt_synopsis::{By, Colate, ColateConfig, KnownFlow, Pair, Question, Synopsis, TwoPoint};
use twixt_testing::{check_coverage, seed};

/// Flow sizes, from and to.
pub(crate) const CLASSES: [(u64, u64); 3] = [(1, 99), (100, 999), (1000, u64::MAX)];

/// One segment.
pub(crate) struct Traffic {
    pub(crate) simulation: Simulation,
    pub(crate) flows: Vec<KnownFlow>,
    pub(crate) truth: BTreeMap<FlowKey, Estimate>,
    /// Of all packets.
    pub(crate) propagation_ns: f64,
}

/// 4000 flows of very unequal size; delays around 1 ms, half of it their own; `packets` at 10^6
/// per minute.
pub(crate) fn config(seed: u64, packets: u64) -> Config {
    Config {
        seed,
        flows: 4000,
        packets: Some(packets),
        rate: twixt_model::quantity::PacketRate(16_667),
        flow_size: "pareto:shape=1.05,min=34,max=200000".parse().unwrap(),
        delay: "per-flow:median=1ms,spread=0.5,jitter=0.7".parse().unwrap(),
        ..Config::default()
    }
}

pub(crate) fn traffic(config: &Config) -> Traffic {
    let config = Config { seed: seed(config.seed), ..config.clone() };
    let simulation = Simulation::run(&config).unwrap();
    let key_of = |scope: &Scope| match scope {
        Scope::Flow(key) => *key,
        other => panic!("{other} is no flow"),
    };
    let truth: BTreeMap<FlowKey, Estimate> =
        simulation.truth().flows.into_iter().map(|flow| (key_of(&flow.scope), flow)).collect();
    let flows = (0..simulation.flows() as u32).filter_map(|flow| {
        let key = simulation.flow_key(flow);
        let packets = Some(truth.get(&key)?.evidence.packets);
        let hash = simulation.flow_hash(flow);
        Some(KnownFlow {
            hash,
            key,
            group: GroupId::default(),
            packets,
            class: twixt_model::ClassId(0),
        })
    });
    let (flows, propagation_ns) = (flows.collect(), config.propagation.0 as f64);
    Traffic { simulation, flows, truth, propagation_ns }
}

impl Traffic {
    pub(crate) fn ends(&self, config: &ColateConfig) -> (Colate, Colate) {
        let fill = |point| {
            let mut colate = Colate::new(config);
            self.simulation.observations(point).for_each(|packet| colate.update(&packet));
            colate
        };
        (fill(Side::Upstream), fill(Side::Downstream))
    }

    pub(crate) fn ask(
        &self,
        ends: &(Colate, Colate),
        estimator: &str,
        sizes_known: bool,
    ) -> Vec<Estimate> {
        let mut flows = self.flows.clone();
        if !sizes_known {
            flows.iter_mut().for_each(|flow| flow.packets = None);
        }
        let question = Question {
            by: By::Flow,
            estimator: Some(estimator),
            flows: &flows,
            ..Question::about(self.truth.values().next().unwrap().span)
        };
        Colate::estimate(Pair { upstream: &ends.0, downstream: &ends.1 }, &question)
    }

    /// How far estimates are off, relative to the part of the delay that varies.
    pub(crate) fn scores(&self, estimates: &[Estimate]) -> [Class; 3] {
        let pairs = estimates.iter().map(|estimate| match &estimate.scope {
            Scope::Flow(key) => (estimate, &self.truth[key]),
            other => panic!("{other} is no flow"),
        });
        let pairs: Vec<(&Estimate, &Estimate)> = pairs.collect();
        CLASSES.map(|(from, to)| self.class(&pairs, from, to))
    }

    fn class(&self, pairs: &[(&Estimate, &Estimate)], from: u64, to: u64) -> Class {
        let mut class = Class::default();
        for (estimate, truth) in pairs {
            let Some(true_delay) = truth.delay else { continue };
            if !(from..=to).contains(&truth.evidence.packets) {
                continue;
            }
            class.flows += 1;
            let Some(delay) = estimate.delay else { continue };
            let off_ns = (delay.mean_ns() - true_delay.mean_ns()).abs();
            class.errors.push(off_ns / (true_delay.mean_ns() - self.propagation_ns));
            if let Some(half_width_ns) = delay.half_width_ns {
                class.intervals += 1;
                class.held += u64::from(off_ns <= half_width_ns + 1.0);
            }
            if let (Some(found), Some(real)) = (delay.deviation_ns, true_delay.deviation_ns) {
                class.deviation_errors.push((found - real).abs() / real);
            }
        }
        class
    }
}

/// What comes out for one class of flows, of one segment or of several.
#[derive(Clone, Debug, Default)]
pub(crate) struct Class {
    pub(crate) flows: usize,
    pub(crate) errors: Vec<f64>,
    pub(crate) intervals: u64,
    pub(crate) held: u64,
    pub(crate) deviation_errors: Vec<f64>,
}

impl Class {
    pub(crate) fn add(&mut self, other: &Self) {
        self.flows += other.flows;
        self.errors.extend(&other.errors);
        self.intervals += other.intervals;
        self.held += other.held;
        self.deviation_errors.extend(&other.deviation_errors);
    }

    pub(crate) fn median_error(&self) -> f64 {
        median(&self.errors)
    }

    /// Share of intervals that hold the truth; not a number if there are none.
    pub(crate) fn coverage(&self) -> f64 {
        self.held as f64 / self.intervals as f64
    }

    /// Intervals are of 95 %.
    #[track_caller]
    pub(crate) fn check_coverage(&self) {
        check_coverage(&format!("{} flows", self.flows), self.held, self.intervals, 0.95);
    }

    /// Share of flows that have an answer.
    pub(crate) fn answered(&self) -> f64 {
        self.errors.len() as f64 / self.flows as f64
    }
}

pub(crate) fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

pub(crate) fn show(name: &str, classes: &[Class; 3]) {
    for (class, (from, to)) in classes.iter().zip(CLASSES) {
        let to = if to == u64::MAX { String::new() } else { to.to_string() };
        println!(
            "{name:<34} {from:>5}-{to:<4} {:>6} flows  {:>6.2} % answered  off by {:>8.3} %  \
             {:>5.1} % covered  deviation of {:>4}, off by {:>5.1} %",
            class.flows,
            class.answered() * 100.0,
            class.median_error() * 100.0,
            class.coverage() * 100.0,
            class.deviation_errors.len(),
            median(&class.deviation_errors) * 100.0,
        );
    }
}

//! Traffic of one segment with known truth, and how far answers about its flows are off: what
//! the experiments of synopses that answer for flows share.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use twixt_model::{ClassId, Estimate, FlowKey, GroupId, Scope};
use twixt_sim::{Config, Side, Simulation};
use twixt_synopsis::cnf::rivals::{Crossed, Means};
use twixt_synopsis::{By, KnownFlow, Listing, Pair, Question, TwoPoint};

/// One segment.
pub(super) struct TestSegment {
    pub(super) simulation: Simulation,
    pub(super) flows: Vec<KnownFlow>,
    truth: BTreeMap<FlowKey, Estimate>,
    /// Of all packets; errors are relative to what varies.
    propagation_ns: f64,
}

/// Every packet that was seen at both points, in the order of upstream.
pub(super) fn crossed(simulation: &Simulation) -> Vec<Crossed> {
    let seen = simulation.observations(Side::Upstream).zip(simulation.sightings(Side::Upstream));
    let crossed = seen.filter_map(|(packet, sighting)| {
        let delay = simulation.observed_delay(&simulation.packets()[sighting.packet as usize])?;
        let (flow, digest, length) = (packet.flow, packet.digest, packet.length);
        Some(Crossed { sent: packet.time, delay, flow, digest, length })
    });
    crossed.collect()
}

/// Whether the sizes of flows are known, as from flow records, or estimated from the counters.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Sizes {
    Known,
    Estimated,
}

/// Flow sizes that an answer is asked about.
pub(super) type Packets = RangeInclusive<u64>;

/// What came out for each flow.
pub(super) struct Answers(Vec<Answer>);

/// What came out for one flow.
#[derive(Clone, Copy)]
struct Answer {
    packets: u64,
    /// The true mean.
    true_ns: f64,
    /// Of the mean; `None` if there is no answer.
    error: Option<f64>,
    deviation_error: Option<f64>,
    /// Whether the 95 % interval holds the true mean, if there is one.
    is_covered: Option<bool>,
    lost: u64,
    /// The estimated loss, if there is an estimate.
    lost_estimated: Option<u64>,
}

impl TestSegment {
    pub(super) fn new(config: &Config) -> Self {
        let simulation = Simulation::run(config).expect("the configuration is in range");
        let truth = simulation.truth().flows.into_iter();
        let truth: BTreeMap<FlowKey, Estimate> =
            truth.filter_map(|flow| Some((key_of(&flow)?, flow))).collect();
        let flows = (0..simulation.flows() as u32).filter_map(|flow| {
            let key = simulation.flow_key(flow);
            let packets = Some(truth.get(&key)?.evidence.packets);
            let hash = simulation.flow_hash(flow);
            Some(KnownFlow { hash, key, group: GroupId::default(), packets, class: ClassId(0) })
        });
        let (flows, propagation_ns) = (flows.collect(), config.propagation.0 as f64);
        Self { simulation, flows, truth, propagation_ns }
    }

    /// The synopses of both ends.
    pub(super) fn ends<S: TwoPoint>(&self, config: &S::Config) -> (S, S) {
        let fill = |point| {
            let mut synopsis = S::new(config);
            self.simulation.observations(point).for_each(|packet| synopsis.update(&packet));
            synopsis
        };
        (fill(Side::Upstream), fill(Side::Downstream))
    }

    /// What two synopses say of all flows.
    pub(super) fn ask<S: TwoPoint>(
        &self,
        (upstream, downstream): (&S, &S),
        estimator: &str,
        sizes: Sizes,
    ) -> Answers {
        let mut flows = self.flows.clone();
        if sizes == Sizes::Estimated {
            flows.iter_mut().for_each(|flow| flow.packets = None);
        }
        let span = self.truth.values().next().expect("there are flows").span;
        let question = Question {
            by: By::Flow,
            estimator: Some(estimator),
            flows: &flows,
            listing: Listing::Passing,
            ..Question::about(span)
        };
        let estimates = S::estimate(Pair { upstream, downstream }, &question);
        let found = estimates.iter().filter_map(|found| Some((key_of(found)?, found)));
        Answers(found.filter_map(|(key, found)| self.answer(&key, found)).collect())
    }

    /// Means by the names of flows.
    pub(super) fn named(&self, means: &Means) -> BTreeMap<FlowKey, f64> {
        let mean = |flow: &KnownFlow| Some((flow.key, *means.get(&flow.hash)?));
        self.flows.iter().filter_map(mean).collect()
    }

    /// What means of flows are worth; a flow that has none has that of all.
    pub(super) fn judge(&self, means_ns: &BTreeMap<FlowKey, f64>, of_all_ns: f64) -> Answers {
        let answer = |(key, truth): (&FlowKey, &Estimate)| {
            let mean_ns = means_ns.get(key).copied().unwrap_or(of_all_ns);
            let error = Some(self.error(truth, mean_ns)?);
            Some(Answer { error, ..Answer::unanswered(truth) })
        };
        Answers(self.truth.iter().filter_map(answer).collect())
    }

    /// The mean delay of a flow; `None` if all of its packets were lost.
    pub(super) fn true_mean_ns(&self, key: &FlowKey) -> Option<f64> {
        Some(self.truth.get(key)?.delay?.mean_ns())
    }

    /// Of all packets.
    pub(super) fn share_lost(&self) -> f64 {
        let sum = |of: fn(&Estimate) -> u64| self.truth.values().map(of).sum::<u64>() as f64;
        sum(|flow| flow.evidence.lost.unwrap_or(0)) / sum(|flow| flow.evidence.packets)
    }

    /// A flow of which every packet was lost has no delay, and is left out.
    fn answer(&self, key: &FlowKey, found: &Estimate) -> Option<Answer> {
        let truth = self.truth.get(key)?;
        let true_delay = truth.delay?;
        let deviation_error = || {
            let deviation_ns = found.delay?.deviation_ns?;
            Some((deviation_ns / true_delay.deviation_ns? - 1.0).abs())
        };
        let is_covered = found.delay.and_then(|delay| {
            let off_ns = (delay.mean_ns() - true_delay.mean_ns()).abs();
            // Sums are whole nanoseconds.
            Some(off_ns <= delay.half_width_ns? + 1.0)
        });
        Some(Answer {
            error: found.delay.and_then(|delay| self.error(truth, delay.mean_ns())),
            deviation_error: deviation_error(),
            is_covered,
            lost_estimated: found.evidence.lost,
            ..Answer::unanswered(truth)
        })
    }

    fn error(&self, truth: &Estimate, mean_ns: f64) -> Option<f64> {
        let true_ns = truth.delay?.mean_ns();
        Some((mean_ns - true_ns).abs() / (true_ns - self.propagation_ns))
    }
}

impl Answer {
    fn unanswered(truth: &Estimate) -> Self {
        let delay = truth.delay.expect("flows without a delay have no answer");
        Self {
            packets: truth.evidence.packets,
            true_ns: delay.mean_ns(),
            error: None,
            deviation_error: None,
            is_covered: None,
            lost: truth.evidence.lost.expect("the truth knows losses"),
            lost_estimated: None,
        }
    }
}

impl Answers {
    /// These and others.
    pub(super) fn extend(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    pub(super) const fn none() -> Self {
        Self(Vec::new())
    }

    /// Relative errors of the mean delays of flows of such sizes, as far as they have answers.
    pub(super) fn errors(&self, packets: Packets) -> Vec<f64> {
        self.of(packets).filter_map(|answer| answer.error).collect()
    }

    pub(super) fn median_error(&self, packets: Packets) -> Option<f64> {
        median(self.errors(packets))
    }

    /// What a share of flows of such sizes is off by at most, of those with answers.
    pub(super) fn error_of(&self, packets: Packets, share_of_flows: f64) -> Option<f64> {
        quantile(self.errors(packets), share_of_flows)
    }

    /// Errors of flows of such sizes whose true mean is so many times the mean of all flows' means.
    pub(super) fn errors_at(&self, packets: Packets, times: std::ops::Range<f64>) -> Vec<f64> {
        let mean_ns = self.0.iter().map(|answer| answer.true_ns).sum::<f64>() / self.0.len() as f64;
        let there = |answer: &&Answer| times.contains(&(answer.true_ns / mean_ns));
        self.of(packets).filter(there).filter_map(|answer| answer.error).collect()
    }

    /// Of all flows of such sizes, those whose mean is off by at most `error`.
    pub(super) fn share_within(&self, packets: Packets, error: f64) -> Option<f64> {
        let within = |answer: &Answer| answer.error.is_some_and(|found| found <= error);
        share(self.of(packets).map(|answer| (within(answer), 1.0)))
    }

    /// Of all flows of such sizes, those without an answer.
    pub(super) fn unanswered(&self, packets: Packets) -> Option<f64> {
        share(self.of(packets).map(|answer| (answer.error.is_none(), 1.0)))
    }

    /// Of the packets of all flows of such sizes, those of flows without an answer.
    pub(super) fn unanswered_packets(&self, packets: Packets) -> Option<f64> {
        share(self.of(packets).map(|answer| (answer.error.is_none(), answer.packets as f64)))
    }

    /// Of the 95 % intervals of flows of such sizes, those that hold the truth.
    pub(super) fn coverage(&self, packets: Packets) -> Option<f64> {
        share(self.of(packets).filter_map(|answer| Some((answer.is_covered?, 1.0))))
    }

    /// Of all flows of such sizes, those with a loss estimate.
    pub(super) fn with_loss_estimate(&self, packets: Packets) -> Option<f64> {
        share(self.of(packets).map(|answer| (answer.lost_estimated.is_some(), 1.0)))
    }

    /// Of the loss estimates of flows of such sizes, those within 2 packets or a tenth of the
    /// truth.
    pub(super) fn right_losses(&self, packets: Packets) -> Option<f64> {
        let estimated =
            self.of(packets).filter_map(|answer| Some((answer, answer.lost_estimated?)));
        share(estimated.map(|(answer, estimated)| {
            let most = (0.1 * answer.lost as f64).max(2.0);
            (estimated.abs_diff(answer.lost) as f64 <= most, 1.0)
        }))
    }

    /// Of all flows of such sizes that lost packets, those that are estimated to have lost none.
    pub(super) fn denied_losses(&self, packets: Packets) -> Option<f64> {
        let lossy = self.of(packets).filter(|answer| answer.lost > 0);
        share(lossy.map(|answer| (answer.lost_estimated == Some(0), 1.0)))
    }

    /// Relative errors of the deviations of flows of such sizes, as far as they have answers.
    pub(super) fn deviation_errors(&self, packets: Packets) -> Vec<f64> {
        self.of(packets).filter_map(|answer| answer.deviation_error).collect()
    }

    fn of(&self, packets: Packets) -> impl Iterator<Item = &Answer> {
        self.0.iter().filter(move |answer| packets.contains(&answer.packets))
    }
}

/// The median; `None` of nothing.
pub(super) fn median(values: Vec<f64>) -> Option<f64> {
    quantile(values, 0.5)
}

/// What so large a share of values is below; `None` of nothing.
pub(super) fn quantile(mut values: Vec<f64>, share: f64) -> Option<f64> {
    let place = ((share * values.len() as f64) as usize).min(values.len().saturating_sub(1));
    (!values.is_empty()).then(|| *values.select_nth_unstable_by(place, f64::total_cmp).1)
}

/// Weight of those that are true over all; `None` of nothing.
fn share(all: impl Iterator<Item = (bool, f64)>) -> Option<f64> {
    let (mut chosen, mut sum) = (0.0, 0.0);
    for (is_chosen, weight) in all {
        sum += weight;
        chosen += if is_chosen { weight } else { 0.0 };
    }
    (sum > 0.0).then(|| chosen / sum)
}

fn key_of(estimate: &Estimate) -> Option<FlowKey> {
    match estimate.scope {
        Scope::Flow(key) => Some(key),
        _ => None,
    }
}

//! From associated records to the delay of flows.

use std::collections::BTreeMap;

use twixt_model::{Delay, DelayEstimate, Estimate, Evidence, FlowKey, FlowRecord, Scope, Span};

use super::Cnf;
use super::association::{Associated, associate};
use super::endpoints::{Endpoints, Sums};
use super::judge::Judge;
use crate::heartbeats::Excluded;
use crate::question::{By, Question};
use crate::strays::{MORE_DOWNSTREAM, counted_strays};
use crate::synopsis::Pair;

/// How the delay of a flow is concluded from the ends of records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RecordEstimator {
    /// Endpoint for flows of a few packets, else Multiflow.
    #[default]
    Hybrid,
    /// The delays at the ends of all records between the first and the last packet of the flow.
    Multiflow,
    /// The delays of the flow's own first and last packet.
    Endpoint,
}

impl RecordEstimator {
    /// As users write them, default first.
    pub const NAMES: [&'static str; 3] = ["hybrid", "multiflow", "endpoint"];

    /// The one of that name; the default if there is none.
    #[must_use]
    pub fn of_name(name: Option<&str>) -> Self {
        match name {
            Some("multiflow") => Self::Multiflow,
            Some("endpoint") => Self::Endpoint,
            _ => Self::Hybrid,
        }
    }

    /// Whether a record of so many packets, of which that share was metered, is known best by its
    /// own two delays.
    pub(super) fn takes_own(self, packets: u64, packet_rate: f64) -> bool {
        match self {
            Self::Endpoint => true,
            Self::Multiflow => false,
            // The size that counts is the flow's own: two sampled packets of a hundred are not a
            // flow of two.
            Self::Hybrid => packets as f64 / packet_rate <= SMALL_FLOW_PACKETS,
        }
    }
}

/// Flows of up to so many packets, sampled or not, are better known by their own two delays than
/// by those of others: up to 3 or 4 in section IV-C of the paper.
const SMALL_FLOW_PACKETS: f64 = 4.0;

/// What is asked about records.
#[derive(Clone, Copy, Debug)]
pub struct FlowQuestion {
    /// How estimates are split up.
    pub by: By,
    /// How delays are concluded.
    pub estimator: RecordEstimator,
    /// The share of a flow's packets that its records count.
    pub packet_rate: f64,
    /// The share of the largest delays that is left out.
    pub outliers: f64,
    /// The interval of upstream time that the records cover.
    pub span: Span,
}

/// The two ends, as records, and what was recognised.
#[derive(Clone, Copy, Debug)]
pub struct PairedRecords<'a> {
    /// All records of the upstream point.
    pub upstream: &'a [FlowRecord],
    /// All records of the downstream point.
    pub downstream: &'a [FlowRecord],
    /// Those that belong together.
    pub pairs: &'a [Associated],
}

/// What the records of two points tell, by scope.
#[must_use]
pub fn conclude(records: &PairedRecords<'_>, question: &FlowQuestion) -> Vec<Estimate> {
    groups_of(records, question)
        .into_iter()
        .map(|(scope, group)| group.estimate(scope, question))
        .collect()
}

fn groups_of(records: &PairedRecords<'_>, question: &FlowQuestion) -> BTreeMap<Scope, Group> {
    let endpoints = Endpoints::new(records.pairs, question.outliers);
    let mut groups: BTreeMap<Scope, Group> = BTreeMap::new();
    for record in records.upstream {
        let group = groups.entry(question.by.scope_of(&record.key)).or_default();
        group.upstream = group.upstream.saturating_add(record.packets);
    }
    for record in records.downstream {
        // Flows that never passed upstream have no delay.
        if let Some(group) = groups.get_mut(&question.by.scope_of(&record.key)) {
            group.downstream = group.downstream.saturating_add(record.packets);
        }
    }
    for pair in records.pairs {
        let group = groups.entry(question.by.scope_of(&pair.upstream.key)).or_default();
        let deviation_ns = question.deviation_of(pair, &endpoints);
        group.add_record(pair.upstream.packets, question.delays_of(pair, &endpoints), deviation_ns);
    }
    groups
}

impl FlowQuestion {
    /// The delays that stand for those of a record's packets.
    fn delays_of(&self, pair: &Associated, endpoints: &Endpoints) -> Sums {
        if self.estimator.takes_own(pair.upstream.packets, self.packet_rate) {
            return Sums::of(pair.delays().map(|(_, delay)| delay));
        }
        let FlowRecord { class, first, last, .. } = pair.upstream;
        endpoints.between(class, first, last)
    }

    /// The deviation of a record's packets. Between the first and the last *metered* packet passed only a part
    /// of the flow, with m of them (m - 1) / (m + 1) of its time on average; in a queue that moves
    /// slowly, delays of a shorter time deviate less. So those around it count that long before and
    /// after as metered packets are apart.
    fn deviation_of(&self, pair: &Associated, endpoints: &Endpoints) -> Option<f64> {
        let FlowRecord { class, first, last, packets, .. } = pair.upstream;
        let is_own = self.estimator.takes_own(packets, self.packet_rate);
        if is_own || self.packet_rate >= 1.0 || packets < 2 {
            return self.delays_of(pair, endpoints).deviation_ns();
        }
        // Hostile records may count any number of packets.
        let gaps = i64::try_from(packets - 1).unwrap_or(i64::MAX);
        let apart = Delay::from_nanos((last - first).as_nanos() / gaps);
        endpoints.between(class, first - apart, last + apart).deviation_ns()
    }
}

/// What is known of one scope.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Group {
    /// Metered packets at each point.
    pub(super) upstream: u64,
    pub(super) downstream: u64,
    /// Delays that stand for its packets. Those of other flows are among them, so there may be more than
    /// packets.
    delays: u64,
    delay: Option<DelayEstimate>,
}

impl Group {
    /// Adds a record of so many packets. It counts by these, whatever the number of delays that
    /// stand for them.
    pub(super) fn add(&mut self, count: u64, delays: Sums) {
        self.add_record(count, delays, delays.deviation_ns());
    }

    /// The same with a deviation that is known better.
    fn add_record(&mut self, count: u64, delays: Sums, deviation_ns: Option<f64>) {
        if delays.count == 0 {
            return;
        }
        self.delays += delays.count;
        let record = DelayEstimate {
            count,
            // Hostile records may count any number of packets.
            sum_ns: delays.sum_ns().saturating_mul(count.into()) / i128::from(delays.count),
            deviation_ns,
            half_width_ns: None,
            order: None,
            order_range: None,
        };
        self.delay = Some(self.delay.map_or(record, |sum| sum.merged(&record)));
    }

    pub(super) fn estimate(self, scope: Scope, question: &FlowQuestion) -> Estimate {
        let packets = (self.upstream as f64 / question.packet_rate).round() as u64;
        let every = question.packet_rate >= 1.0;
        let lost = every.then(|| self.upstream.checked_sub(self.downstream)).flatten();
        let reason = match (&self.delay, lost) {
            (None, _) => Some("none of its records was recognised downstream"),
            (Some(_), None) if every => Some(MORE_DOWNSTREAM),
            (Some(_), None) => Some("interval, loss and strays are unknown with sampled records"),
            (Some(_), Some(_)) => Some("no interval: only the ends of records are known"),
        };
        let used = self.delays.min(packets);
        let mut evidence = Evidence { packets, used, lost, ..Evidence::default() };
        evidence.set_strays(every.then(|| counted_strays(self.upstream, self.downstream)));
        Estimate {
            scope,
            span: question.span,
            evidence,
            delay: self.delay,
            reason: reason.map(str::to_owned),
            sample: None,
            crossings: None,
        }
    }
}

/// The combined result of two synopses: means of flows that may be stated, with their intervals.
pub(super) fn of_pair(pair: Pair<'_, Cnf>, question: &Question<'_>) -> Vec<Estimate> {
    from_pair(pair, question, Judging::Judged)
}

/// As in the paper: a mean, without an interval, for every flow with a delay, however few there are
/// and whatever they tell. For evaluations of the estimators, which compare them with the truth.
#[must_use]
pub fn unjudged(pair: Pair<'_, Cnf>, question: &Question<'_>) -> Vec<Estimate> {
    from_pair(pair, question, Judging::Unjudged)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Judging {
    Judged,
    Unjudged,
}

fn from_pair(pair: Pair<'_, Cnf>, question: &Question<'_>, judging: Judging) -> Vec<Estimate> {
    let (upstream, downstream) = (pair.upstream.records(), pair.downstream.records());
    let config = &pair.upstream.config;
    let pairs = associate(config.rule(), &upstream, &downstream);
    let asked = FlowQuestion {
        by: question.by,
        estimator: RecordEstimator::of_name(question.estimator),
        packet_rate: config.packet_rate(),
        outliers: config.outliers(),
        span: question.span,
    };
    let records = PairedRecords { upstream: &upstream, downstream: &downstream, pairs: &pairs };
    let is_judged = judging == Judging::Judged && question.by != By::All;
    let judge =
        is_judged.then(|| Judge::new(&records, &Endpoints::new(&pairs, asked.outliers), &asked));
    let estimate = |(scope, group): (Scope, Group)| {
        let mut estimate = group.estimate(scope, &asked);
        match &judge {
            Some(judge) if asked.packet_rate < 1.0 => judge.judge(&mut estimate, group.delays),
            Some(judge) => judge.judge_unsampled(&mut estimate),
            None => {}
        }
        estimate
    };
    let mut estimates: Vec<Estimate> =
        groups_of(&records, &asked).into_iter().map(estimate).collect();
    if question.by == By::All {
        // All packets were counted, though not all were metered.
        let totals = pair.upstream.totals;
        match estimates.first_mut() {
            Some(estimate) => {
                if estimate.delay.is_some() && config.packet_rate() < 1.0 {
                    estimate.reason = Some(sampled(pair.upstream.selected(), totals.packets));
                }
            }
            None => estimates.push(nothing(question.span)),
        }
        let (sent, received) = (totals.packets, pair.downstream.totals.packets);
        for estimate in &mut estimates {
            count_all(estimate, sent, received);
        }
    }
    if judging == Judging::Judged {
        // Of identical packets all are metered or none.
        let excluded = Excluded::of(question.heartbeats);
        estimates.iter_mut().for_each(|estimate| leave_out(&excluded, estimate));
    }
    estimates
}

/// Allows for packets that were not metered since they are identical to others.
fn leave_out(excluded: &Excluded, estimate: &mut Estimate) {
    if estimate.scope == Scope::All {
        let doubt = excluded.doubt(&mut estimate.delay, estimate.evidence.packets);
        doubt.iter().for_each(|reason| estimate.add_reason(reason));
        return;
    }
    let delay = estimate.delay.as_mut().filter(|_| excluded.packets > 0);
    if delay.and_then(|delay| delay.half_width_ns.take()).is_some() {
        estimate.add_reason(&excluded.elsewhere());
    }
}

/// What the counts of all packets tell.
fn count_all(estimate: &mut Estimate, sent: u64, received: u64) {
    let evidence = &mut estimate.evidence;
    (evidence.packets, evidence.lost) = (sent, sent.checked_sub(received));
    evidence.set_strays(Some(counted_strays(sent, received)));
    if received > sent && estimate.reason.as_deref() != Some(MORE_DOWNSTREAM) {
        estimate.add_reason(MORE_DOWNSTREAM);
    }
}

/// What is not known, and why: the rate that was achieved, which is not just what was asked for.
fn sampled(selected: u64, packets: u64) -> String {
    let percent = selected as f64 / packets.max(1) as f64 * 100.0;
    format!("the interval is unknown with sampled records; {percent:.2} % of packets were metered")
}

fn nothing(span: Span) -> Estimate {
    let evidence = Evidence::default();
    let reason = Some("no packet was selected: raise sampling".to_owned());
    Estimate {
        scope: Scope::All,
        span,
        evidence,
        delay: None,
        reason,
        sample: None,
        crossings: None,
    }
}

/// Flows by name, for tests and evaluations that look one up.
#[must_use]
pub fn by_flow(estimates: &[Estimate]) -> BTreeMap<FlowKey, &Estimate> {
    let flow = |estimate: &Estimate| match estimate.scope {
        Scope::Flow(key) => Some(key),
        _ => None,
    };
    estimates.iter().filter_map(|estimate| Some((flow(estimate)?, estimate))).collect()
}

#[cfg(test)]
mod tests;

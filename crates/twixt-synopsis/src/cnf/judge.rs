//! What sampled records tell of a flow, and whether that is enough for a mean.
//!
//! The paper states a mean for every flow with a delay. A mean of two delays is off by more than half
//! in every third flow, and one of other flows' delays is worthless where flows differ: some take another
//! path, or wait in another queue. So a mean needs some packets, delays of others stand for a flow's own
//! only if first and last packets of flows show that flows do not differ, and what is stated has an
//! interval. Records of every packet of a flow have two delays each and no interval; what is known of a small part of
//! a flow, or of its time, is not stated as its mean.

use std::collections::BTreeMap;

use twixt_model::{Delay, DelayEstimate, Estimate, FlowRecord, Scope, Span, Timestamp};

use super::association::Associated;
use super::endpoints::{Endpoints, Sums};
use super::estimate::{FlowQuestion, PairedRecords, RecordEstimator};
use crate::interval::student95;
use crate::tail::{self, Widening};

/// A mean needs so many metered packets, or own delays.
const PACKETS_MIN: f64 = 5.0;
/// And so many delays of whatever flow, if these stand for its own.
const DELAYS_MIN: f64 = 10.0;
/// No delay may be unknown for a larger share of a record's time: where flows are few and long, the ends of
/// all of them are at the ends of the capture, and tell nothing of what was between.
const GAP_MAX: f64 = 0.3;
/// The same where every packet was metered, and the mean claims no interval.
const GAP_MAX_UNSAMPLED: f64 = 0.5;
/// So many of a flow's packets must be in records that were recognised downstream. An active timeout that is shorter
/// than the flow cuts it differently at both points: the first record is recognised, and no other.
const RECOGNISED_MIN: f64 = 0.5;
/// Delays of other flows around a flow that are enough to compare its own with.
const OTHERS_MIN: u64 = 3;
/// Own delays of flows are alike by so many standard errors: flows differ.
const ALIKE_ERRORS: f64 = 3.0;
/// And by at least this share of their variance.
const ALIKE_MIN: f64 = 0.1;

/// What all records together tell.
pub(super) struct Judge {
    estimator: RecordEstimator,
    packet_rate: f64,
    /// Whether delays of other flows tell nothing of a flow's own.
    flows_differ: bool,
    /// How much wider intervals are for the tails of delays.
    tail: Widening,
    own: BTreeMap<Scope, Own>,
}

/// What is known of a flow itself.
#[derive(Clone, Debug, Default)]
struct Own {
    delays: Sums,
    /// When they were sent.
    times: Vec<Timestamp>,
    /// Metered packets in records that were recognised.
    metered: u64,
    /// In all records, and their time.
    sent: u64,
    span: Option<Span>,
    /// The share of its time without a delay of any flow, in the worst of its records.
    gap: f64,
}

impl Own {
    fn note(&mut self, record: &FlowRecord) {
        let span = Span { start: record.first, end: record.last };
        self.sent = self.sent.saturating_add(record.packets);
        self.span = Some(self.span.map_or(span, |all| all.union(span)));
    }

    /// The share of its time without a delay of its own.
    fn own_gap(&self) -> f64 {
        let Some(Span { start, end }) = self.span else { return 1.0 };
        let mut times: Vec<Timestamp> = self.times.clone();
        times.extend([start, end]);
        times.sort_unstable();
        let gaps = times.windows(2).map(|pair| (pair[1] - pair[0]).as_nanos());
        gaps.max().unwrap_or(0) as f64 / ((end - start).as_nanos() as f64).max(1.0)
    }

    /// Why there is no mean, if too few of its records were recognised.
    fn why_unrecognised(&self) -> Option<String> {
        let Self { metered, sent, .. } = *self;
        ((metered as f64) < RECOGNISED_MIN * sent as f64).then(|| {
            format!(
                "no mean: {metered} of its {sent} metered packets are in records that were recognised \
                 downstream"
            )
        })
    }
}

fn without_delay(gap: f64) -> String {
    format!("no mean: no delay is known for {:.0} % of its time", 100.0 * gap)
}

impl Judge {
    pub(super) fn new(
        PairedRecords { upstream, pairs, .. }: &PairedRecords<'_>,
        endpoints: &Endpoints,
        question: &FlowQuestion,
    ) -> Self {
        let mut own: BTreeMap<Scope, Own> = BTreeMap::new();
        for record in *upstream {
            own.entry(question.by.scope_of(&record.key)).or_default().note(record);
        }
        for pair in *pairs {
            let flow = own.entry(question.by.scope_of(&pair.upstream.key)).or_default();
            let record = &pair.upstream;
            flow.times.extend(pair.delays().map(|(time, _)| time));
            flow.delays = flow.delays.plus(&Sums::of(pair.delays().map(|(_, delay)| delay)));
            flow.metered = flow.metered.saturating_add(record.packets);
            // Others have no mean anyway.
            if record.packets as f64 >= PACKETS_MIN {
                let gap = endpoints.largest_gap(record.class, record.first, record.last);
                flow.gap = flow.gap.max(gap);
            }
        }
        let mean_ns = endpoints.all().mean_ns().unwrap_or(0.0);
        let delays = pairs.iter().flat_map(Associated::delays);
        let mut distances: Vec<f64> =
            delays.map(|(_, delay)| delay.as_nanos() as f64 - mean_ns).collect();
        Self {
            estimator: question.estimator,
            packet_rate: question.packet_rate,
            flows_differ: flows_differ(pairs, endpoints),
            tail: tail::widening(&mut distances),
            own,
        }
    }

    /// Takes the mean of a flow away of which every packet was metered, if it is known of a small part.
    pub(super) fn judge_unsampled(&self, estimate: &mut Estimate) {
        let Some(own) = self.own.get(&estimate.scope).filter(|_| estimate.delay.is_some()) else {
            return;
        };
        let is_own = self.estimator.takes_own(own.sent, 1.0);
        let gap =
            Some(own.gap).filter(|&gap| gap > GAP_MAX_UNSAMPLED && !is_own).map(without_delay);
        if let Some(reason) = own.why_unrecognised().or(gap) {
            (estimate.delay, estimate.evidence.used) = (None, 0);
            estimate.reason = Some(reason);
        }
    }

    /// Gives an estimate, for whose packets so many delays stand, its interval; or takes its mean away and
    /// says why.
    pub(super) fn judge(&self, estimate: &mut Estimate, delays: u64) {
        let Some(delay) = estimate.delay else { return };
        let metered = (estimate.evidence.packets as f64 * self.packet_rate).round();
        let Some(own) = self.own.get(&estimate.scope) else { return };
        let judged = match (own.why_unrecognised(), self.estimator, self.flows_differ) {
            _ if metered < PACKETS_MIN => Err(format!(
                "only {metered} of its packets were metered, a mean needs {PACKETS_MIN}"
            )),
            (Some(reason), ..) => Err(reason),
            (_, RecordEstimator::Endpoint, _) => self.of_own(own, None),
            (_, RecordEstimator::Hybrid, true) => self.of_own(own, Some(FLOWS_DIFFER)),
            (_, RecordEstimator::Multiflow, true) => Err(format!("no mean: {FLOWS_DIFFER}")),
            (_, _, false) => self.of_others(delay, delays as f64, own),
        };
        match judged {
            Ok(Judged { delay, used, reason }) => {
                let used = used.min(estimate.evidence.packets);
                (estimate.delay, estimate.evidence.used) = (Some(delay), used);
                estimate.reason = Some("loss is unknown with sampled records".to_owned());
                let heavy = self.tail.is_heavy.then_some(tail::HEAVY);
                reason.as_deref().into_iter().chain(heavy).for_each(|one| estimate.add_reason(one));
            }
            Err(reason) => {
                (estimate.delay, estimate.evidence.used) = (None, 0);
                estimate.reason = Some(reason);
                estimate.add_reason("loss is unknown with sampled records");
            }
        }
    }

    /// By the flow's own delays.
    fn of_own(&self, flow: &Own, reason: Option<&str>) -> Result<Judged, String> {
        let because = reason.map(|reason| format!("{reason}; ")).unwrap_or_default();
        let own = &flow.delays;
        let count = own.count as f64;
        if count < PACKETS_MIN {
            let few = format!("{because}only {count} of its own delays are known");
            return Err(format!("{few}, a mean needs {PACKETS_MIN}"));
        }
        let gap = flow.own_gap();
        if gap > GAP_MAX {
            return Err(because + &without_delay(gap));
        }
        let deviation_ns = own.deviation_ns().unwrap_or(0.0);
        let width = student95(count - 1.0) * tail::few(count) * deviation_ns / count.sqrt();
        let delay = DelayEstimate {
            count: own.count,
            sum_ns: own.sum_ns(),
            deviation_ns: Some(deviation_ns),
            half_width_ns: Some(width * self.tail.factor),
            order: None,
            order_range: None,
        };
        Ok(Judged { delay, used: own.count, reason: reason.map(str::to_owned) })
    }

    /// By delays around it, of whatever flow: these are draws from what happened in its time, and its own
    /// packets are others, no fewer than were metered. (More are not known to be apart from each other: packets
    /// of a burst see the same queue.)
    fn of_others(&self, delay: DelayEstimate, used: f64, own: &Own) -> Result<Judged, String> {
        if used < DELAYS_MIN {
            return Err(format!(
                "only {used} delays around it are known, a mean needs {DELAYS_MIN}"
            ));
        }
        if own.gap > GAP_MAX {
            return Err(without_delay(own.gap));
        }
        let draws = 1.0 / (1.0 / used + 1.0 / (own.metered as f64).max(1.0));
        let quantile = student95(used - 1.0) * tail::few(draws) * self.tail.factor;
        let error = draws.sqrt().recip();
        let half_width_ns = delay.deviation_ns.map(|deviation| quantile * deviation * error);
        let delay = DelayEstimate { half_width_ns, ..delay };
        Ok(Judged { delay, used: used as u64, reason: None })
    }
}

const FLOWS_DIFFER: &str =
    "flows differ in their delay, so that packets of others do not stand for its own";

/// A mean that may be stated.
struct Judged {
    delay: DelayEstimate,
    used: u64,
    reason: Option<String>,
}

/// Whether the first and the last packet of a flow are more alike than those of different flows around
/// them: then flows have delays of their own. It is the correlation of the two differences from the mean
/// of others, which have an error in common.
fn flows_differ(pairs: &[Associated], endpoints: &Endpoints) -> bool {
    let (mut flows, mut common, mut single) = (0.0, 0.0, 0.0);
    for pair in pairs {
        let delays: Vec<Delay> = pair.delays().map(|(_, delay)| delay).collect();
        let record = &pair.upstream;
        let around = endpoints.between(record.class, record.first, record.last);
        let &[first, last] = delays.as_slice() else { continue };
        // Outliers may be left out of what is around, and be these.
        if around.count < OTHERS_MIN + 2 {
            continue;
        }
        let others = around.count as f64 - 2.0;
        let own_ns = i128::from(first.as_nanos()) + i128::from(last.as_nanos());
        let others_ns = (around.sum_ns() - own_ns) as f64 / others;
        let [first, last] = [first, last].map(|delay| delay.as_nanos() as f64 - others_ns);
        let error = around.deviation_ns().unwrap_or(0.0).powi(2) / others;
        flows += 1.0;
        common += first * last - error;
        single += (first * first + last * last) / 2.0;
    }
    let alike = common / single;
    single > 0.0 && alike > ALIKE_MIN && alike > ALIKE_ERRORS / f64::sqrt(flows)
}

#[cfg(test)]
mod tests;

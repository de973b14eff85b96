//! The combined result of two samples: the exact delays of the packets that both kept.

use std::collections::BTreeMap;

use twixt_model::{
    Delay, DelayEstimate, DelaySample, Estimate, Evidence, FlowHash, Observation, PacketDigest,
    SampleLevel, SampledDelay, Scope, Timestamp,
};

use super::{Sample, tag_of};
use crate::exact::matching::Matching;
use crate::question::{By, Question};
use crate::synopsis::Pair;

/// Quantile of the normal distribution for a two-sided 95 % interval.
const Z95: f64 = 1.959_963_984_540_054;
/// Equal packets whose delay is further than this from the median are different packets.
const WINDOW: Delay = Delay::from_nanos(60_000_000_000);

pub(super) fn estimate(pair: Pair<'_, Sample>, question: &Question<'_>) -> Vec<Estimate> {
    let level = pair.upstream.level.max(pair.downstream.level);
    let (upstream, downstream) = (packets(pair.upstream, level), packets(pair.downstream, level));
    let received = downstream.len() as u64;
    let matching = Matching::new(upstream, downstream, WINDOW);
    let scopes = Scopes::of(question);
    let mut groups: BTreeMap<&Scope, Group> = BTreeMap::new();
    if question.by == By::All {
        groups.insert(&Scope::All, Group::default());
    }
    for (packet, fate) in &matching.packets {
        if let Some(scope) = scopes.of_packet(packet) {
            groups.entry(scope).or_default().add(packet, fate.delay(), level);
        }
    }
    let whole = Whole { pair, received, level };
    groups.into_iter().map(|(scope, group)| group.estimate(scope, &scopes, &whole)).collect()
}

/// What both points have a chance to have kept.
fn packets(sample: &Sample, level: SampleLevel) -> Vec<Observation> {
    let kept = sample.entries.iter().filter(|entry| level.keeps(entry.rank));
    let seen = kept.map(|entry| Observation {
        time: Timestamp::from_nanos(entry.time_ns),
        digest: PacketDigest(entry.rank),
        flow: FlowHash(entry.flow.unwrap_or(0).into()),
        ..Observation::default()
    });
    seen.collect()
}

/// What packets of known flows count for.
struct Scopes<'a> {
    question: &'a Question<'a>,
    of_flows: BTreeMap<u32, Scope>,
    /// How many packets each has, where that is known of all of its flows.
    packets: BTreeMap<Scope, Option<u64>>,
}

impl<'a> Scopes<'a> {
    fn of(question: &'a Question<'a>) -> Self {
        let (mut of_flows, mut packets) = (BTreeMap::new(), BTreeMap::new());
        let flows = if question.by == By::All { &[] } else { question.flows };
        for flow in flows {
            let scope = question.by.scope_of(&flow.key);
            of_flows.insert(tag_of(flow.hash), scope.clone());
            let sum = packets.entry(scope).or_insert(Some(0_u64));
            *sum = sum.zip(flow.packets).map(|(sum, more)| sum.saturating_add(more));
        }
        Self { question, of_flows, packets }
    }

    /// `None` for a packet of a flow that is not queried.
    fn of_packet(&self, packet: &Observation) -> Option<&Scope> {
        match self.question.by {
            By::All => Some(&Scope::All),
            _ => self.of_flows.get(&(packet.flow.0 as u32)),
        }
    }
}

/// What is known of all packets.
struct Whole<'a> {
    pair: Pair<'a, Sample>,
    /// Packets of the common level downstream.
    received: u64,
    level: SampleLevel,
}

/// The packets of one scope.
#[derive(Default)]
struct Group {
    sent: u64,
    delays: Vec<SampledDelay>,
}

impl Group {
    fn add(&mut self, packet: &Observation, delay: Option<Delay>, level: SampleLevel) {
        self.sent += 1;
        self.delays.extend(delay.map(|delay| SampledDelay {
            delay,
            time: packet.time,
            flow: packet.flow.0 as u32,
            reach: SampleLevel::of_rank(packet.digest.0),
            level,
        }));
    }

    fn estimate(self, scope: &Scope, scopes: &Scopes<'_>, whole: &Whole<'_>) -> Estimate {
        let used = self.delays.len() as u64;
        let missing = self.sent - used;
        let of_all = |sampled: u64| (sampled as f64 * whole.level.weight()).round() as u64;
        let totals = &whole.pair.upstream.totals;
        let (packets, bytes, lost) = match scope {
            Scope::All => {
                // Totals count each loss, and every stray as one less: where strays show in
                // the sample, the sample knows better.
                let counted = totals.lost_until(whole.pair.downstream.totals);
                let lost = counted.filter(|_| whole.received == used);
                let estimated = share_of(totals.packets, missing, self.sent);
                (totals.packets, Some(totals.bytes), lost.or(estimated))
            }
            scope => {
                let known = scopes.packets.get(scope).copied().flatten();
                let packets = known.unwrap_or_else(|| of_all(self.sent));
                (packets, None, share_of(packets, missing, self.sent))
            }
        };
        let evidence = Evidence { packets, used, lost, bytes, ..Evidence::default() };
        let sample = DelaySample::new(self.delays);
        Estimate {
            scope: scope.clone(),
            span: scopes.question.span,
            evidence,
            delay: summarise(sample.packets(), whole.level),
            reason: why_nothing(packets, self.sent, used),
            sample: Some(Box::new(sample)),
        }
    }
}

/// The part of `packets` that is `part` of `whole`; not known from nothing.
fn share_of(packets: u64, part: u64, whole: u64) -> Option<u64> {
    match (packets, whole) {
        (0, _) => Some(0),
        (_, 0) => None,
        _ => Some((packets as f64 * (part as f64 / whole as f64)).round() as u64),
    }
}

fn why_nothing(packets: u64, sent: u64, used: u64) -> Option<String> {
    match (packets, sent, used) {
        (_, _, 1..) => None,
        (0, _, _) => Some("no packets".to_owned()),
        (_, 0, _) => Some("none of the packets was sampled".to_owned()),
        _ => Some(format!("none of the {sent} sampled packets was seen downstream")),
    }
}

/// Mean and deviation of a sample without replacement. Those of a whole have no uncertainty.
fn summarise(packets: &[SampledDelay], level: SampleLevel) -> Option<DelayEstimate> {
    let first = packets.first()?.delay;
    let count = packets.len() as u64;
    // Relative to the smallest, so that a clock offset of years costs no precision.
    let relative = |packet: &SampledDelay| (packet.delay - first).as_nanos() as f64;
    let mean = packets.iter().map(relative).sum::<f64>() / count as f64;
    let squares: f64 = packets.iter().map(|packet| (relative(packet) - mean).powi(2)).sum();
    let is_whole = level == SampleLevel::ALL;
    let freedom = if is_whole { count } else { count - 1 };
    let deviation_ns = (freedom > 0).then(|| (squares / freedom as f64).sqrt());
    let unmeasured = 1.0 - level.share();
    let half_width_ns =
        deviation_ns.map(|deviation| Z95 * deviation * (unmeasured / count as f64).sqrt());
    Some(DelayEstimate {
        count,
        sum_ns: packets.iter().map(|packet| i128::from(packet.delay.as_nanos())).sum(),
        deviation_ns,
        half_width_ns,
        order: None,
        order_range: None,
    })
}

//! The combined result of two samples: the exact delays of the packets that both kept.

use std::collections::BTreeMap;

use twixt_model::{
    Delay, DelaySample, Estimate, Evidence, FlowHash, LossRange, Observation, PacketDigest,
    SampleLevel, SampledDelay, Scope, Timestamp,
};

use super::mean::{Clusters, Population};
use super::parts::Excess;
use super::{Sample, rank_of, tag_of};
use crate::exact::matching::{Fate, Matching};
use crate::heartbeats::{Excluded, Heartbeats};
use crate::question::{By, Question};
use crate::strays::{Bounds, poisson_high, poisson_low, stray_reason};
use crate::sums::Usable;
use crate::synopsis::Pair;
use crate::tail::{self, Widening};

/// Equal packets whose delay is further than this from the median are different packets.
const WINDOW: Delay = Delay::from_nanos(60_000_000_000);

pub(super) fn estimate(pair: Pair<'_, Sample>, question: &Question<'_>) -> Vec<Estimate> {
    let level = pair.upstream.level.max(pair.downstream.level);
    let (upstream, downstream) = (packets(pair.upstream, level), packets(pair.downstream, level));
    let matching = Matching::new(upstream, downstream, WINDOW);
    let scopes = Scopes::of(question, level);
    let mut groups: BTreeMap<&Scope, Group> = BTreeMap::new();
    if question.by == By::All {
        groups.insert(&Scope::All, Group::default());
    }
    for (packet, fate) in &matching.packets {
        if let Some(scope) = scopes.of_packet(packet) {
            groups.entry(scope).or_default().add(packet, *fate, level);
        }
    }
    for stray in &matching.strays {
        if let Some(group) = scopes.of_packet(&stray.packet).and_then(|scope| groups.get_mut(scope))
        {
            group.strays += 1;
        }
    }
    let tail = tail_of(groups.values());
    let hidden = hidden(pair, &matching);
    let is_certain = question.incomplete().next().is_none();
    let whole = Whole { pair, level, tail, hidden, is_certain };
    groups.into_iter().map(|(scope, group)| group.estimate(scope, &scopes, &whole)).collect()
}

/// Identical packets are like others of which there are a fourth as many, at least: parts have several digests.
const LIKE: f64 = 4.0;
/// Fewer digests of many packets in the sample do not stand for those that are not in it.
const LIKE_MIN: usize = 5;

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
    /// Identical packets of each that take another time than others, and that the sample does not stand for.
    excluded: BTreeMap<Scope, Excluded>,
}

impl<'a> Scopes<'a> {
    fn of(question: &'a Question<'a>, level: SampleLevel) -> Self {
        let (mut of_flows, mut packets) = (BTreeMap::new(), BTreeMap::new());
        let flows = if question.by == By::All { &[] } else { question.flows };
        for flow in flows {
            let scope = question.by.scope_of(&flow.key);
            of_flows.insert(tag_of(flow.hash), scope.clone());
            let sum = packets.entry(scope).or_insert(Some(0_u64));
            *sum = sum.zip(flow.packets).map(|(sum, more)| sum.saturating_add(more));
        }
        // Of identical packets all are sampled or none.
        let is_sampled = |alike: &&Heartbeats| level.keeps(rank_of(alike.digest));
        let excluded = question.heartbeats.iter();
        let excluded = excluded.filter(|alike| !(alike.are_complete && is_sampled(alike)));
        let all = (Scope::All, Excluded::of(excluded.clone()));
        let mut of_scopes: BTreeMap<Scope, Excluded> = BTreeMap::from([all]);
        for alike in excluded {
            if let Some(scope) = of_flows.get(&tag_of(alike.flow)) {
                of_scopes.entry(scope.clone()).or_default().add(alike.packets, alike.apart);
            }
        }
        Self { question, of_flows, packets, excluded: of_scopes }
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
    level: SampleLevel,
    /// How much wider intervals are for the tails of delays.
    tail: Widening,
    /// Identical packets that are not in the sample, whosever they are.
    hidden: Vec<Excess>,
    /// Whether equal counts tell that both points saw the same packets.
    is_certain: bool,
}

impl Whole<'_> {
    /// Identical packets that are not in the sample, and may be those of a flow that sent no more than so many.
    fn hidden_of(&self, packets: f64) -> f64 {
        let own = self.hidden.iter().filter(|excess| excess.least <= packets);
        own.map(|excess| excess.packets).sum()
    }

    /// All packets, and the sum of their delays less a reference, if both points saw the same ones.
    fn measured(&self, reference_ns: i64) -> Option<Usable> {
        let (sent, received) = (self.pair.upstream.sums?, self.pair.downstream.sums?);
        Usable::of(&sent, &received, reference_ns).filter(|_| self.is_certain)
    }
}

/// How many packets of all repeat digests that are not in the sample.
fn hidden(pair: Pair<'_, Sample>, matching: &Matching) -> Vec<Excess> {
    let Some(parts) = &pair.upstream.parts else { return Vec::new() };
    let packets = matching.packets.iter().map(|(packet, _)| packet.digest);
    let mut sampled: BTreeMap<u64, u64> = BTreeMap::new();
    packets.for_each(|digest| *sampled.entry(digest.0).or_default() += 1);
    let clusters: Vec<(u64, u64)> =
        sampled.into_iter().filter(|&(_, packets)| packets > 1).collect();
    let hidden = parts.hidden(clusters.iter().copied());
    // Sampled digests of about as many packets stand for them, as other packets do for others.
    let like = |excess: &Excess| {
        let is_like = |cluster: &&(u64, u64)| LIKE * cluster.1 as f64 >= excess.packets;
        clusters.iter().filter(is_like).count()
    };
    hidden.into_iter().filter(|excess| like(excess) < LIKE_MIN).collect()
}

/// What the tails of all scopes together do to intervals: each alone has few packets.
fn tail_of<'a>(groups: impl Iterator<Item = &'a Group>) -> Widening {
    let mut distances: Vec<f64> = groups.flat_map(|group| group.clusters.distances()).collect();
    tail::widening(&mut distances)
}

/// The packets of one scope.
#[derive(Default)]
struct Group {
    sent: u64,
    missing: u64,
    /// Sampled packets that only downstream saw.
    strays: u64,
    delays: Vec<SampledDelay>,
    clusters: Clusters,
}

impl Group {
    fn add(&mut self, packet: &Observation, fate: Fate, level: SampleLevel) {
        self.sent += 1;
        self.missing += u64::from(fate == Fate::Lost);
        self.clusters.add(packet.digest, fate);
        self.delays.extend(fate.delay().map(|delay| SampledDelay {
            delay,
            time: packet.time,
            flow: packet.flow.0 as u32,
            reach: SampleLevel::of_rank(packet.digest.0),
            level,
        }));
    }

    fn estimate(self, scope: &Scope, scopes: &Scopes<'_>, whole: &Whole<'_>) -> Estimate {
        let known = match scope {
            Scope::All => Some(whole.pair.upstream.totals.packets),
            scope => scopes.packets.get(scope).copied().flatten(),
        };
        let (evidence, counts) = match scope {
            Scope::All => (self.evidence_of_all(whole), None),
            _ => {
                (self.evidence_of_part(known, whole.level), self.why_uncounted(known, whole.level))
            }
        };
        // How many the sample has of a flow says nothing of packets that it cannot have.
        let hidden = whole.hidden_of(known.map_or(f64::INFINITY, |packets| packets as f64));
        // Only of all traffic it is known how many packets each part has.
        let (beyond, elsewhere) = if *scope == Scope::All { (hidden, 0.0) } else { (0.0, hidden) };
        let Whole { level, tail, .. } = *whole;
        let population = Population { packets: known, beyond, elsewhere, level, tail };
        let is_sampled = *scope == Scope::All && level != SampleLevel::ALL;
        // Sums are taken relative to a delay that occurs: clocks may be years apart.
        let all = is_sampled.then(|| whole.measured(self.clusters.reference_ns())).flatten();
        let (mut delay, reason) = match (self.why_nothing(evidence.packets), all) {
            (Some(reason), _) => (None, Some(reason)),
            (None, Some(all)) => self.clusters.of_sums(all, beyond),
            (None, None) => self.clusters.mean(&population),
        };
        let excluded = scopes.excluded.get(scope).filter(|_| all.is_none());
        let excluded = excluded.and_then(|packets| packets.doubt(&mut delay, evidence.packets));
        let mut estimate = Estimate {
            scope: scope.clone(),
            span: scopes.question.span,
            evidence: Evidence { used: delay.map_or(0, |delay| delay.count), ..evidence },
            delay,
            reason,
            sample: Some(Box::new(DelaySample::new(self.delays))),
            crossings: None,
        };
        let ranges = estimate.evidence.loss_range().zip(estimate.evidence.stray_range());
        let strays =
            ranges.and_then(|(lost, strays)| stray_reason(scopes.question, lost, strays, None));
        counts
            .iter()
            .chain(&excluded)
            .chain(&strays)
            .for_each(|reason| estimate.add_reason(reason));
        estimate
    }

    fn why_nothing(&self, packets: u64) -> Option<String> {
        match (packets, self.sent, self.delays.len()) {
            (_, _, 1..) => None,
            (0, _, _) => Some("no packets".to_owned()),
            (_, 0, _) => Some("none of the packets was sampled".to_owned()),
            (_, sent, _) => Some(format!("none of the {sent} sampled packets was seen downstream")),
        }
    }

    fn evidence_of_all(&self, whole: &Whole<'_>) -> Evidence {
        let totals = &whole.pair.upstream.totals;
        // Totals count each loss, and every stray as one less: the sample tells how many strays there
        // are.
        let (packets, bytes) = (totals.packets, Some(totals.bytes));
        let received = whole.pair.downstream.totals.packets;
        let bounds = sampled_strays(self.strays, whole.level, received);
        let [lost, strays] = bounds.ranges(packets, received);
        let mut evidence = Evidence { packets, bytes, ..Evidence::default() };
        evidence.set_loss(Some(lost));
        evidence.set_strays(Some(strays));
        evidence
    }

    /// Of a part of the traffic nothing but the sample is known, and how many packets it has if the
    /// caller knows.
    fn evidence_of_part(&self, known: Option<u64>, level: SampleLevel) -> Evidence {
        if level == SampleLevel::ALL {
            return Evidence {
                packets: self.sent,
                lost: Some(self.missing),
                strays: Some(self.strays),
                ..Evidence::default()
            };
        }
        let arrived = self.sent - self.missing;
        let lost_between = known.map(|packets| {
            let (min, max) = (self.missing, packets.saturating_sub(arrived));
            LossRange { min, max: max.max(min) }
        });
        let packets = known.unwrap_or_else(|| (self.sent as f64 * level.weight()).round() as u64);
        let strays = sampled_strays(self.strays, level, u64::MAX);
        let strays_between = Some(LossRange { min: strays.min, max: strays.max });
        Evidence { packets, lost_between, strays_between, ..Evidence::default() }
    }

    fn why_uncounted(&self, known: Option<u64>, level: SampleLevel) -> Option<String> {
        let Self { sent, missing, .. } = self;
        match (level == SampleLevel::ALL, known) {
            (true, _) => None,
            (_, Some(_)) => Some(format!("{missing} of the {sent} sampled packets were lost")),
            _ => Some(format!(
                "{missing} of the {sent} sampled packets were lost; the number of packets is an \
                 estimate from these"
            )),
        }
    }
}

/// 95 % bounds on the strays among packets of which so many sampled ones are strays.
fn sampled_strays(strays: u64, level: SampleLevel, received: u64) -> Bounds {
    if level == SampleLevel::ALL {
        return Bounds { min: strays, max: strays };
    }
    let low = (poisson_low(strays) * level.weight()).ceil() as u64;
    let high = (poisson_high(strays) * level.weight()).floor() as u64;
    Bounds { min: low.max(strays), max: high.max(strays).min(received) }
}

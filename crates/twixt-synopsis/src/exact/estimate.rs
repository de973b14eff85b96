//! Per-packet delays, gathered into estimates by scope, and by when packets left.

use std::collections::BTreeMap;

use twixt_model::{
    Crossing, Crossings, Delay, DelayEstimate, Epoch, EpochRule, Estimate, Evidence, FlowHash,
    FlowKey, LossRange, Observation, Scope, Span, Variation, protocol,
};

use super::Exact;
use super::epochs::{gather, key_of, place_of};
use super::matching::{Fate, Referee, Sightings, Stray};
use super::summary::Delays;
use crate::heartbeats::Excluded;
use crate::question::Question;
use crate::strays::{OneSided, StrayCause, Unmatched, stray_reason};
use crate::synopsis::Pair;

pub(super) fn estimate(pair: Pair<'_, Exact>, question: &Question<'_>) -> Vec<Estimate> {
    let window = i64::try_from(pair.upstream.config.window).unwrap_or(i64::MAX);
    let sorted = |exact: &Exact| exact.packets.clone().sorted();
    let sightings =
        Sightings { upstream: sorted(pair.upstream), downstream: sorted(pair.downstream) };
    let referee = Referee::new(sightings, Delay::from_nanos(window), place_of(pair));
    let judge = |(scope, mut whole): (Scope, BTreeMap<Epoch, Summed>)| {
        let whole = whole.remove(&Epoch(0)).unwrap_or_default();
        let judged = whole.gathered.judged(question);
        (whole.estimate(scope, question.span, question, &judged, pair), judged)
    };
    let wholes = gather(pair, question, EpochRule::WHOLE, &referee).into_iter().map(judge);
    if question.cut == EpochRule::WHOLE {
        return wholes.map(|(whole, _)| whole).collect();
    }
    let wholes: Vec<(Estimate, Judged)> = wholes.collect();
    let mut epochs = gather(pair, question, question.cut, &referee);
    let mut estimates = Vec::new();
    for (whole, judged) in wholes {
        let scope = whole.scope.clone();
        estimates.push(whole);
        for (epoch, row) in epochs.remove(&scope).unwrap_or_default() {
            let span = question.cut.span_of(epoch);
            estimates.push(row.estimate(scope.clone(), span, question, &judged, pair));
        }
    }
    estimates
}

/// Whether packets of a protocol with ports have none: fragments other than the first.
const fn is_portless(key: &FlowKey) -> bool {
    let has_ports = matches!(key.protocol, protocol::TCP | protocol::UDP);
    has_ports && key.source_port == 0 && key.destination_port == 0
}

/// Where this part of the packets that arrived could not be measured, the others say nothing of all.
const UNMEASURED_MAX: f64 = 0.05;
/// So small a part moves no percentile by more than half of a thousandth: they are stated between what they
/// would be if all of these were the shortest, and the longest. Smallest and largest are those measured.
const UNMEASURED_FEW: f64 = 0.0005;
/// The mean of those measured is not shown alone if its interval is wider than this share of it.
const DOUBTFUL_SHARE: f64 = 0.1;

/// Packets of one scope, and of one epoch.
#[derive(Default)]
pub(super) struct Gathered {
    packets: u64,
    bytes: u64,
    lost: u64,
    /// Those that arrived and were not measured.
    unmeasured: Excluded,
    unmatched: Unmatched,
    /// If packets are asked for.
    crossings: Vec<Crossing>,
}

/// Packets of one scope and epoch, and what delays they had.
#[derive(Default)]
pub(super) struct Summed {
    gathered: Gathered,
    delay: Option<DelayEstimate>,
    /// Packets whose share of the sum is in doubt.
    uncertain: u64,
    variation: Option<Variation>,
}

/// What is decided for all packets of a scope: a packet that is missing in one epoch may be a stray
/// of another, and few packets tell no cause.
struct Judged {
    /// How many of the missing packets may be strays, changed on the way.
    changed: u64,
    cause: Option<StrayCause>,
}

impl Gathered {
    pub(super) fn add(&mut self, packet: &Observation, fate: Fate) {
        let Observation { flow, length, .. } = *packet;
        self.packets += 1;
        self.bytes += u64::from(length);
        let [longest_sent, longest_received] = &mut self.unmatched.longest;
        *longest_sent = length.max(*longest_sent);
        if fate == Fate::Lost {
            self.lost += 1;
            self.unmatched.missing.push(OneSided { flow, length, ..OneSided::default() });
            return;
        }
        *longest_received = length.max(*longest_received);
        *self.unmatched.matched.entry(flow).or_default() += 1;
        if let Fate::Arrived(apart) = fate {
            self.unmeasured.add(1, apart);
        }
    }

    /// Keeps a packet that was added.
    pub(super) fn keep(&mut self, packet: &Observation, fate: Fate) {
        let Observation { time: sent, flow, length, .. } = *packet;
        self.crossings.push(Crossing { sent, flow, length, fate: fate.crossing() });
    }

    pub(super) fn add_stray(&mut self, stray: &Stray, key: &FlowKey) {
        let Observation { flow, length, .. } = stray.packet;
        let longest = &mut self.unmatched.longest[1];
        *longest = length.max(*longest);
        let twin_ns = stray.twin.map(Delay::as_nanos);
        let is_fragment = is_portless(key);
        self.unmatched.strays.push(OneSided { flow, length, is_fragment, twin_ns });
    }

    /// What the points did not see alike, of all packets together.
    fn judged(&self, question: &Question<'_>) -> Judged {
        let strays = self.unmatched.strays.len() as u64;
        // Strays that upstream may have failed to observe need no other explanation.
        let is_explained = strays <= question.unobserved.upstream;
        let LossRange { min, max } = self.unmatched.loss();
        let changed = if is_explained { 0 } else { max - min };
        Judged { changed, cause: self.unmatched.cause() }
    }

    /// All packets that were kept.
    fn crossings(&mut self, pair: Pair<'_, Exact>) -> Crossings {
        let mut packets = std::mem::take(&mut self.crossings);
        packets.sort_by_key(|packet| packet.sent);
        let mut keys: BTreeMap<FlowHash, FlowKey> = BTreeMap::new();
        for packet in &packets {
            keys.entry(packet.flow).or_insert_with(|| key_of(pair, packet.flow));
        }
        Crossings { variation: None, packets, keys }
    }

    /// Where the measured packets say nothing of all, their variation says nothing either.
    pub(super) fn summed(self, delays: &Delays<'_>, variation: Option<Variation>) -> Summed {
        let delay = self.delay(delays);
        let variation = variation.filter(|_| delay.is_some());
        Summed { gathered: self, delay, uncertain: delays.uncertain(), variation }
    }

    /// Packets that arrived and were not measured may have had other delays.
    fn delay(&self, delays: &Delays<'_>) -> Option<DelayEstimate> {
        let arrived = (self.packets - self.lost) as f64;
        let delay = delays.summary()?;
        match self.unmeasured.packets {
            0 => Some(DelayEstimate { order_range: delays.order_range(0), ..delay }),
            unmeasured if unmeasured as f64 > UNMEASURED_MAX * arrived => None,
            _ if is_doubtful(&delay) => None,
            _ if self.unmeasured.hides(delay.mean_ns(), arrived as u64) => None,
            unmeasured if unmeasured as f64 <= UNMEASURED_FEW * arrived => {
                let order_range = delays.order_range(unmeasured as usize);
                Some(DelayEstimate { half_width_ns: None, order_range, ..delay })
            }
            _ => Some(DelayEstimate { half_width_ns: None, order: None, ..delay }),
        }
    }
}

impl Summed {
    fn estimate(
        mut self,
        scope: Scope,
        span: Span,
        question: &Question<'_>,
        judged: &Judged,
        pair: Pair<'_, Exact>,
    ) -> Estimate {
        let (reason, delay) = (self.reason(), self.delay);
        let Self { gathered, variation, .. } = &mut self;
        let strays = gathered.unmatched.strays.len() as u64;
        let mut evidence = Evidence {
            packets: gathered.packets,
            used: delay.map_or(0, |delay| delay.count),
            strays: Some(strays),
            bytes: Some(gathered.bytes),
            ..Evidence::default()
        };
        let lost =
            LossRange { min: gathered.lost.saturating_sub(judged.changed), max: gathered.lost };
        evidence.set_loss(Some(lost));
        let mut crossings = gathered.crossings(pair);
        crossings.variation = *variation;
        let (crossings, sample) = (Some(Box::new(crossings)), None);
        let mut estimate = Estimate { scope, span, evidence, delay, reason, sample, crossings };
        let strays = stray_reason(question, lost, LossRange::exactly(strays), judged.cause);
        strays.iter().for_each(|reason| estimate.add_reason(reason));
        estimate
    }

    fn reason(&self) -> Option<String> {
        let Self { gathered, uncertain, .. } = self;
        let no_mean = if self.delay.is_none() { "no mean: " } else { "" };
        match (gathered.packets, gathered.unmeasured.packets, *uncertain) {
            (0, ..) => Some("no packets".to_owned()),
            (packets, 0, _) if gathered.lost == packets => {
                Some(format!("none of the {packets} packets was seen downstream"))
            }
            (_, 0, 0) => None,
            (packets, 0, uncertain) => Some(format!(
                "{uncertain} of the {packets} packets are identical to others, and could be matched \
                 in several ways"
            )),
            (packets, unmeasured, _) if gathered.lost == 0 => Some(format!(
                "{no_mean}{unmeasured} of the {packets} packets are identical to others, of which some may have \
                 been in flight when the captures began"
            )),
            (packets, unmeasured, _) => Some(format!(
                "{no_mean}{unmeasured} of the {packets} packets are identical to others that were lost, and \
                 cannot be distinguished from these"
            )),
        }
    }
}

/// Whether the ways in which identical packets can be matched differ much: without an interval, the mean
/// would say more than is known.
fn is_doubtful(delay: &DelayEstimate) -> bool {
    let half_width_ns = delay.half_width_ns.unwrap_or_default();
    half_width_ns * delay.count as f64 > DOUBTFUL_SHARE * delay.sum_ns.unsigned_abs() as f64
}

#[cfg(test)]
mod tests {
    use twixt_model::{Detail, Observation, PacketDigest, Span, Timestamp};

    use super::*;
    use crate::exact::ExactConfig;
    use crate::exact::records::PlacedDelay;
    use crate::pile::Part;
    use crate::question::By;
    use crate::synopsis::{Synopsis, TwoPoint};

    fn exact(packets: &[(u64, i64, u64)]) -> Exact {
        let mut exact = Exact::new(&ExactConfig::default());
        for &(digest, time_ns, flow) in packets {
            let (digest, time) = (PacketDigest(digest), Timestamp::from_nanos(time_ns));
            let observation =
                Observation { digest, time, flow: FlowHash(flow), ..Observation::default() };
            let key = FlowKey { source_port: flow as u16, protocol: 17, ..FlowKey::default() };
            exact.update_detailed(&observation, &Detail { key, ..Detail::default() });
        }
        exact
    }

    #[track_caller]
    fn check(by: By, expected: &[(&str, u64, Option<i64>)]) {
        let upstream = exact(&[(1, 0, 1), (2, 10, 1), (3, 20, 2), (4, 30, 2), (5, 40, 3)]);
        let downstream = exact(&[(1, 5, 1), (2, 17, 1), (3, 21, 2), (9, 50, 9)]);
        let question = Question { by, ..Question::about(Span::at(Timestamp::from_nanos(0))) };
        let estimates =
            Exact::estimate(Pair { upstream: &upstream, downstream: &downstream }, &question);
        let shown: Vec<(String, u64, Option<i64>)> = estimates
            .iter()
            .map(|estimate| {
                let mean = estimate.delay.map(|delay| delay.mean().as_nanos());
                // One flow is missing whole, and another came from nowhere: it may be the same.
                let lost = estimate.evidence.loss_range().unwrap().max;
                (estimate.scope.to_string(), lost, mean)
            })
            .collect();
        let expected: Vec<_> =
            expected.iter().map(|&(scope, lost, mean)| (scope.to_owned(), lost, mean)).collect();
        assert_eq!(shown, expected);
    }

    #[test]
    fn all_traffic_is_one_estimate() {
        check(By::All, &[("all", 2, Some(4))]);
    }

    #[test]
    fn flows_are_told_apart_and_a_lost_flow_has_no_delay() {
        check(
            By::Flow,
            &[
                ("udp 0.0.0.0:1 > 0.0.0.0:0", 0, Some(6)),
                ("udp 0.0.0.0:2 > 0.0.0.0:0", 1, Some(1)),
                ("udp 0.0.0.0:3 > 0.0.0.0:0", 1, None),
            ],
        );
    }

    #[test]
    fn prefixes_gather_flows() {
        check(By::Prefix { v4: 24, v6: 48 }, &[("0.0.0.0/24 > 0.0.0.0/24", 2, Some(4))]);
    }

    #[test]
    fn what_only_downstream_saw_is_counted() {
        let upstream = exact(&[(1, 0, 1), (2, 10, 1), (3, 20, 1), (4, 30, 1)]);
        let downstream =
            exact(&[(1, 5, 1), (2, 15, 1), (2, 15, 1), (4, 35, 1), (8, 50, 1), (9, 50, 9)]);
        let question = Question::about(Span::at(Timestamp::from_nanos(0)));
        let pair = Pair { upstream: &upstream, downstream: &downstream };
        let evidence = Exact::estimate(pair, &question)[0].evidence;
        assert_eq!((evidence.packets, evidence.used, evidence.strays), (4, 3, Some(3)));
        // The lost packet may be that of the same flow.
        assert_eq!(evidence.loss_range(), Some(LossRange { min: 0, max: 1 }));
        let unobserved = twixt_model::Unobserved { upstream: 3, downstream: 0 };
        let evidence = Exact::estimate(pair, &Question { unobserved, ..question })[0].evidence;
        assert_eq!((evidence.lost, evidence.strays), (Some(1), Some(3)));
    }

    /// One of two heartbeats arrived: five other packets were shown as an exact mean of all.
    #[test]
    fn a_part_of_the_packets_is_not_taken_for_all() {
        let others = (0..5).map(|number| (10 + number, 0, 1));
        let upstream: Vec<_> = others.clone().chain([(1, 0, 2), (1, 50, 2)]).collect();
        let arrived = others.map(|(digest, _, flow)| (digest, 5, flow));
        let downstream: Vec<_> = arrived.chain([(1, 90, 2)]).collect();
        let question = Question::about(Span::at(Timestamp::from_nanos(0)));
        let pair = Pair { upstream: &exact(&upstream), downstream: &exact(&downstream) };
        let estimate = &Exact::estimate(pair, &question)[0];
        assert_eq!((estimate.delay, estimate.evidence.used), (None, 0));
        assert_eq!(estimate.evidence.lost, Some(1));
        assert!(estimate.reason.as_ref().unwrap().contains("identical"), "{estimate:?}");
    }

    #[test]
    fn the_deviation_survives_an_offset_of_years() {
        let offset = 315_360_000_000_000_000;
        let sorted =
            [2, 4, 6].map(|ns| PlacedDelay { place: 0, delay: Delay::from_nanos(offset + ns) });
        let plain = Part::Here(sorted.to_vec().into());
        let delays = Delays { plain, doubtful: Part::none(), place: None };
        let deviation = delays.summary().unwrap().deviation_ns.unwrap();
        assert!((deviation * deviation - 8.0 / 3.0).abs() < 1e-9);
    }
}

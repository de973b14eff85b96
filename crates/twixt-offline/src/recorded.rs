//! Recordings of two points, brought together.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use twixt_measure::Sealed;
use twixt_model::{Delay, Epoch, Segment, Side, Timestamp};
use twixt_observe::PathCounts;

use crate::measured::{DirectionFound, Measured, segment};
use crate::pairs::{Concluded, Pairs, Sent};
use crate::plan::Plan;

/// What is known of two recordings before they are read.
#[derive(Debug)]
pub struct Recordings {
    /// The names of the points, which may well be the same.
    pub segment: Segment,
    /// A rough idea of the delay.
    pub reference: Delay,
    /// The epochs to answer for. Their neighbours help to sort out packets in flight.
    pub asked: RangeInclusive<Epoch>,
}

impl Recordings {
    /// Pairs epochs of both points, which come in order.
    pub fn pair(&self, plan: &Plan, epochs: impl IntoIterator<Item = (Side, Sealed)>) -> Measured {
        // Called by their role, as two recordings may have the same name.
        let segment = segment();
        let digester = plan.digest.digester();
        let pairs = Pairs::new(plan, segment.clone(), &digester, self.reference);
        let mut pairs = pairs.only(self.asked.clone());
        let (mut upstream, mut downstream) = (PathCounts::default(), PathCounts::default());
        let mut classes: BTreeMap<Side, String> = BTreeMap::new();
        for (side, sealed) in epochs {
            let (point, counts) = match side {
                Side::Upstream => (&segment.upstream, &mut upstream),
                Side::Downstream => (&segment.downstream, &mut downstream),
            };
            if self.asked.contains(&sealed.epoch) {
                let is_first_class =
                    classes.entry(side).or_insert(sealed.class.clone()) == &sealed.class;
                add_epoch(counts, &sealed, is_first_class);
            }
            let flows = plan.flows.known_within(&digester, sealed.rule.span_of(sealed.epoch));
            let flows = flows.filter(|_| side == Side::Upstream).map(Into::into);
            let sealed = Sealed { point: point.clone(), ..sealed };
            pairs.receive(Sent { algorithm: 0, sealed, flows });
        }
        let concluded: Vec<Concluded> =
            pairs.finish().into_iter().map(|concluded| self.named(concluded)).collect();
        Measured {
            stretch: concluded.first().and_then(|concluded| concluded.span),
            clock: concluded.first().and_then(Concluded::clock),
            clocks: concluded.first().and_then(Concluded::clocks),
            corrected: false,
            beside: None,
            concluded,
            upstream,
            downstream,
            direction: DirectionFound { decided_by: "recording", unknown_flows: 0 },
            negative_delays: 0,
            opposite: false,
        }
    }

    /// With the users' names for the points in what went wrong.
    fn named(&self, mut concluded: Concluded) -> Concluded {
        let role = segment();
        for problem in &mut concluded.problems {
            let named = [
                (&role.upstream, &self.segment.upstream),
                (&role.downstream, &self.segment.downstream),
            ];
            for (role, name) in named {
                if let Some(rest) = problem.reason.strip_prefix(&format!("{role}: ")) {
                    problem.reason = format!("{name}: {rest}");
                    break;
                }
            }
        }
        concluded
    }
}

/// Pairs what two epoch files hold.
pub(crate) fn pair_files(plan: &Plan, upstream: Vec<Sealed>, downstream: Vec<Sealed>) -> Measured {
    let first = |epochs: &[Sealed]| {
        epochs.iter().filter_map(|sealed| sealed.seen).map(|seen| seen.start).min()
    };
    let recordings = Recordings {
        segment: segment(),
        reference: rough_delay(first(&upstream), first(&downstream)),
        asked: Epoch(i64::MIN)..=Epoch(i64::MAX),
    };
    let (upstream_span, downstream_span) = (span(&upstream), span(&downstream));
    let upstream =
        without_idle_edges(upstream, downstream_span).map(|sealed| (Side::Upstream, sealed));
    let downstream =
        without_idle_edges(downstream, upstream_span).map(|sealed| (Side::Downstream, sealed));
    let mut epochs: Vec<(Side, Sealed)> = upstream.chain(downstream).collect();
    epochs.sort_by_key(|(_, sealed)| sealed.epoch);
    recordings.pair(plan, epochs)
}

/// The first and last epoch of a recording.
fn span(epochs: &[Sealed]) -> Option<RangeInclusive<Epoch>> {
    let numbers = || epochs.iter().map(|sealed| sealed.epoch);
    Some(numbers().min()?..=numbers().max()?)
}

/// Two recordings seldom start and end in the same epoch. Where nothing passed while only one of
/// them ran, nothing is missing.
fn without_idle_edges(
    epochs: Vec<Sealed>,
    other: Option<RangeInclusive<Epoch>>,
) -> impl Iterator<Item = Sealed> {
    epochs.into_iter().filter(move |sealed| {
        sealed.packets > 0 || other.as_ref().is_none_or(|span| span.contains(&sealed.epoch))
    })
}

/// What the first packets of both points let expect.
#[must_use]
pub fn rough_delay(sent: Option<Timestamp>, received: Option<Timestamp>) -> Delay {
    received.zip(sent).map_or(Delay::ZERO, |(received, sent)| received - sent)
}

/// Drops are those of the interface, and the same in every class.
fn add_epoch(counts: &mut PathCounts, sealed: &Sealed, is_first_class: bool) {
    counts.packets += sealed.packets;
    for (reason, skipped) in sealed.tally.skipped() {
        *counts.skipped.entry(reason.to_owned()).or_default() += skipped;
    }
    if is_first_class && sealed.tally.dropped > 0 {
        counts.dropped = Some(counts.dropped.unwrap_or(0) + sealed.tally.dropped);
    }
}

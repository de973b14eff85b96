//! The end of an epoch's wait: its boundaries are settled, the algorithm is asked.

use twixt_model::{Delay, Epoch, Estimate, Segment, Span, Timestamp, Unobserved};
use twixt_synopsis::{Algorithm, AnySynopsis, Estimator, KnownFlow, Mismatch, Pair, Question};

use super::event::{PairingError, PairingEvent, PointSummary, UnpairedReason};
use super::slot::{Half, LateSign, Slot};
use super::unobserved::Observed;
use super::{Pairing, QuestionTemplate};
use crate::cut::TimedCut;
use crate::sealed::Sealed;

/// Why loss is not known where packets in flight could not be moved.
const MISPLACED: &str = "packets near a boundary could not be placed: loss is unknown";

impl Pairing {
    /// Concludes an epoch with what there is. Does nothing if it is concluded.
    pub(super) fn conclude(&mut self, epoch: Epoch, reason: UnpairedReason) {
        if self.slots.get(&epoch).is_none_or(|slot| slot.is_concluded()) {
            return;
        }
        self.settle_start(epoch);
        self.settle_start(Epoch(epoch.0.saturating_add(1)));
        let gap_beside = self.has_gap_beside(epoch);
        let lacks_neighbour = self.lacks_neighbour(epoch);
        let unobserved = self.unobserved(epoch);
        let Some(slot) = self.slots.get_mut(&epoch) else { return };
        slot.blurred |= gap_beside;
        let event = match (&slot.upstream, &slot.downstream) {
            (Some(upstream), Some(downstream)) => Some(compared(
                &Compared { epoch, upstream, downstream, slot, unobserved, lacks_neighbour },
                &self.config.question,
            )),
            // All that downstream saw was in flight, and counts in another epoch now.
            (None, Some(half)) if slot.moved > 0 && half.sealed.synopsis.totals().packets == 0 => {
                None
            }
            (upstream, _) => {
                let Segment { upstream: first, downstream: second } = &self.config.segment;
                let point = if upstream.is_some() { second } else { first }.clone();
                Some(PairingEvent::Unpaired { epoch, point, reason })
            }
        };
        slot.conclude();
        self.counts.count(event.as_ref());
        self.events.extend(event);
    }

    /// Whether nothing came of a neighbour, for whatever reason: what was in flight is not known then.
    fn lacks_neighbour(&self, Epoch(number): Epoch) -> bool {
        let beside = [number.saturating_sub(1), number.saturating_add(1)];
        self.needs_neighbours(Epoch(number))
            && beside.iter().any(|number| !self.slots.contains_key(&Epoch(*number)))
    }

    /// Whether a neighbour came too late, or nothing came of it and something of the epochs beyond it.
    fn has_gap_beside(&self, epoch: Epoch) -> bool {
        let Epoch(number) = epoch;
        let here = |number: i64| self.slots.contains_key(&Epoch(number));
        let older = self.newest_late >= Some(Epoch(number.saturating_sub(1)))
            || self.slots.first_key_value().is_some_and(|(&oldest, _)| oldest < epoch);
        let newer = self.slots.last_key_value().is_some_and(|(&newest, _)| newest > epoch);
        self.needs_neighbours(epoch)
            && ((older && !here(number.saturating_sub(1)))
                || (newer && !here(number.saturating_add(1))))
    }
}

/// Both halves of an epoch.
struct Compared<'a> {
    epoch: Epoch,
    upstream: &'a Half,
    downstream: &'a Half,
    slot: &'a Slot,
    unobserved: Unobserved,
    lacks_neighbour: bool,
}

fn compared(halves: &Compared<'_>, template: &QuestionTemplate) -> PairingEvent {
    let Compared { epoch, upstream, downstream, slot, unobserved, lacks_neighbour } = *halves;
    let flows = slot.flows.as_deref().unwrap_or(&template.flows);
    // Where packets could not be placed, any number of strays has a reason.
    let is_placed = !slot.blurred && slot.unsettled.is_none();
    let upstream_missed = if is_placed { unobserved.upstream } else { u64::MAX };
    let missed = Unobserved { upstream: upstream_missed, ..unobserved };
    match estimate([&upstream.sealed, &downstream.sealed], missed, template, flows) {
        Ok((span, mut estimates)) => {
            if slot.blurred {
                estimates.iter_mut().for_each(|estimate| estimate.forget_loss(MISPLACED));
            }
            if let Some(unsettled) = slot.unsettled {
                let reason = unsettled.reason(template.remedy);
                estimates.iter_mut().for_each(|estimate| doubt(estimate, unsettled.sign, &reason));
            }
            let observed = observed(&upstream.sealed, &downstream.sealed, unobserved);
            estimates.iter_mut().for_each(|estimate| observed.limit(estimate));
            let (upstream, downstream) = (PointSummary::of(upstream), PointSummary::of(downstream));
            let moved = slot.moved;
            PairingEvent::Estimated {
                epoch,
                span,
                estimates,
                upstream,
                downstream,
                moved,
                lacks_neighbour,
            }
        }
        Err(reason) => PairingEvent::Refused { epoch, reason },
    }
}

fn observed(upstream: &Sealed, downstream: &Sealed, unobserved: Unobserved) -> Observed {
    Observed {
        sent: upstream.synopsis.totals().packets,
        received: downstream.synopsis.totals().packets,
        unobserved,
        matches_packets: upstream.synopsis.algorithm().is_some_and(Algorithm::matches_packets),
    }
}

/// Late packets look like lost ones, and their delays are missing in the mean.
fn doubt(estimate: &mut Estimate, sign: LateSign, reason: &str) {
    estimate.evidence.forget_loss();
    estimate.add_reason(reason);
    let Some(delay) = &mut estimate.delay else { return };
    match sign {
        LateSign::Doubt => {}
        // Which are the percentiles of packets of which some are missing?
        LateSign::Missing | LateSign::Beyond => {
            (delay.half_width_ns, delay.order, delay.order_range) = (None, None, None);
        }
        LateSign::Stalled => estimate.delay = None,
    }
    if sign > LateSign::Doubt {
        estimate.sample = None;
        estimate.crossings = None;
    }
}

fn estimate(
    [upstream, downstream]: [&Sealed; 2],
    unobserved: Unobserved,
    template: &QuestionTemplate,
    flows: &[KnownFlow],
) -> Result<(Span, Vec<Estimate>), PairingError> {
    if let Some(torn) = [upstream, downstream].into_iter().find(|half| half.torn) {
        return Err(PairingError::Torn { point: torn.point.clone() });
    }
    let span = span_of(upstream, downstream);
    let question = Question {
        by: template.by,
        estimator: template.estimator.as_deref(),
        flows,
        listing: template.listing,
        span,
        cut: template.cut,
        reference: template.reference,
        unobserved,
        heartbeats: &template.heartbeats,
        packets: template.packets,
        distributions: false,
    };
    let pair =
        Pair { upstream: upstream.synopsis.as_ref(), downstream: downstream.synopsis.as_ref() };
    let mut estimates = ask(pair, &question)?;
    let clock_error = clock_error(upstream, downstream);
    for estimate in &mut estimates {
        estimate.evidence.clock_error = clock_error;
    }
    Ok((span, estimates))
}

fn ask(
    pair: Pair<'_, dyn AnySynopsis>,
    question: &Question<'_>,
) -> Result<Vec<Estimate>, PairingError> {
    let name = pair.upstream.name();
    match pair.upstream.algorithm().map(|algorithm| &algorithm.estimator) {
        Some(Estimator::TwoPoint { estimate, .. }) => estimate(pair, question)
            .map_err(|mismatch: Mismatch| PairingError::Mismatch(mismatch.into())),
        _ => Err(PairingError::OnePoint { algorithm: name }),
    }
}

/// The epoch on upstream's clock; with one epoch for all time, what upstream saw of it.
fn span_of(upstream: &Sealed, downstream: &Sealed) -> Span {
    if upstream.rule.length_ns().is_some() {
        return TimedCut::new(upstream.rule, upstream.shift, Delay::ZERO).span_of(upstream.epoch);
    }
    // Neither point saw a packet: any time will do for an estimate of no packets.
    upstream.seen.or(downstream.seen).unwrap_or(Span::at(Timestamp::from_nanos(0)))
}

fn clock_error(upstream: &Sealed, downstream: &Sealed) -> Option<Delay> {
    Some(upstream.clock_bound? + downstream.clock_bound?)
}

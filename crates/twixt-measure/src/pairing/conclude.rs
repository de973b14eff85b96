//! The end of an epoch's wait: packets in flight are moved, the algorithm is asked.

use twixt_model::{Batch, Delay, Epoch, Estimate, Observation, Segment, Span, Timestamp};
use twixt_synopsis::{ALGORITHMS, Algorithm, AnySynopsis, Estimator, Mismatch, Pair, Question};

use super::event::{PairingError, PairingEvent, PointSummary, UnpairedReason};
use super::slot::{Half, Slot, edge};
use super::{Pairing, QuestionTemplate};
use crate::cut::{self, TimedCut};
use crate::sealed::Sealed;
use crate::stash::Stash;

impl Pairing {
    /// Concludes an epoch with what there is. Does nothing if it is concluded.
    pub(super) fn conclude(&mut self, epoch: Epoch, reason: UnpairedReason) {
        if self.slots.get(&epoch).is_none_or(Slot::is_concluded) {
            return;
        }
        self.settle_start(epoch);
        self.settle_start(Epoch(epoch.0.saturating_add(1)));
        let gap_beside = self.has_gap_beside(epoch);
        let Some(slot) = self.slots.get_mut(&epoch) else { return };
        slot.blurred |= gap_beside;
        let event = match (&slot.upstream, &slot.downstream) {
            (Some(upstream), Some(downstream)) => Some(compared(
                &Compared { epoch, upstream, downstream, slot },
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

    /// Whether nothing came of a neighbour, and something of the epochs beyond it.
    fn has_gap_beside(&self, epoch: Epoch) -> bool {
        let Epoch(number) = epoch;
        let here = |number: i64| self.slots.contains_key(&Epoch(number));
        let older = self.slots.first_key_value().is_some_and(|(&oldest, _)| oldest < epoch);
        let newer = self.slots.last_key_value().is_some_and(|(&newest, _)| newest > epoch);
        self.needs_neighbours(epoch)
            && ((older && !here(number.saturating_sub(1)))
                || (newer && !here(number.saturating_add(1))))
    }

    /// Moves packets that were in flight at the start of an epoch, once.
    fn settle_start(&mut self, epoch: Epoch) {
        let Some(mut after) = self.slots.remove(&epoch) else { return };
        if !after.start_settled {
            let mut nothing = Slot::default();
            let before = self.slots.get_mut(&Epoch(epoch.0.saturating_sub(1)));
            let moved = settle(before.unwrap_or(&mut nothing), &mut after);
            self.counts.moved = self.counts.moved.saturating_add(moved);
        }
        self.slots.insert(epoch, after);
    }
}

/// Both halves of an epoch.
struct Compared<'a> {
    epoch: Epoch,
    upstream: &'a Half,
    downstream: &'a Half,
    slot: &'a Slot,
}

fn compared(halves: &Compared<'_>, template: &QuestionTemplate) -> PairingEvent {
    let Compared { epoch, upstream, downstream, slot } = *halves;
    match estimate(&upstream.sealed, &downstream.sealed, template) {
        Ok((span, mut estimates)) => {
            if slot.blurred {
                estimates.iter_mut().for_each(forget_loss);
            }
            let (upstream, downstream) = (PointSummary::of(upstream), PointSummary::of(downstream));
            let moved = slot.moved;
            PairingEvent::Estimated { epoch, span, estimates, upstream, downstream, moved }
        }
        Err(reason) => PairingEvent::Refused { epoch, reason },
    }
}

/// Packets that should have been moved and could not be look like lost ones.
fn forget_loss(estimate: &mut Estimate) {
    const REASON: &str = "packets near a boundary could not be placed: loss is not known";
    if estimate.evidence.lost.take().is_some() {
        let reasons = estimate.reason.iter().map(String::as_str).chain([REASON]);
        estimate.reason = Some(reasons.collect::<Vec<_>>().join("; "));
    }
}

/// Moves downstream packets across the boundary between two epochs, and says how many.
fn settle(before: &mut Slot, after: &mut Slot) -> u64 {
    let halves = [&before.upstream, &after.upstream, &before.downstream, &after.downstream];
    if !comparable(halves) {
        return 0;
    }
    let moves = cut::settle(
        edge(before.upstream.as_ref(), after.upstream.as_ref()),
        edge(before.downstream.as_ref(), after.downstream.as_ref()),
    );
    let overflow =
        overflowed(before, |sealed| &sealed.tail) || overflowed(after, |sealed| &sealed.head);
    // Where one half is missing and the other has packets of its own, some that were in flight
    // may be in the missing one. Where packets just begin or end, none are.
    let lacks = |missing: &Option<Half>, other: &Option<Half>| {
        let own = |half: &Half| half.sealed.packets > moves.later.len() as u64;
        missing.is_none() && other.as_ref().is_some_and(own)
    };
    let end_lacks = moves.unseen > 0 && lacks(&after.downstream, &after.upstream);
    let start_lacks = moves.strange > 0 && lacks(&before.upstream, &before.downstream);
    before.blurred |= overflow || end_lacks;
    after.blurred |= overflow || start_lacks;
    move_packets(&moves.earlier, after.waiting_downstream(), before.waiting_downstream());
    move_packets(&moves.later, before.waiting_downstream(), after.waiting_downstream());
    before.forget_tails();
    let moved = (moves.earlier.len() + moves.later.len()) as u64;
    before.moved = before.moved.saturating_add(moved);
    after.moved = after.moved.saturating_add(moved);
    after.start_settled = true;
    moved
}

fn overflowed(slot: &Slot, stash: fn(&Sealed) -> &Stash) -> bool {
    let halves = [&slot.upstream, &slot.downstream].into_iter().flatten();
    halves.map(|half| stash(&half.sealed)).any(|stash| stash.overflow() > 0)
}

/// Whether all halves that came mean the same by a digest and an epoch.
fn comparable(halves: [&Option<Half>; 4]) -> bool {
    let mut sealed = halves.into_iter().flatten().map(|half| &half.sealed);
    let Some(first) = sealed.next() else { return false };
    sealed.all(|other| first.check_comparable(other).is_ok())
}

/// Either half may be missing: it did not come, or is concluded. For the other the move is right
/// all the same.
fn move_packets(packets: &[Observation], from: Option<&mut Half>, to: Option<&mut Half>) {
    if let Some(half) = from {
        let synopsis = half.sealed.synopsis.as_mut();
        for packet in packets {
            take_out(synopsis, packet);
        }
    }
    if let Some(half) = to {
        half.sealed.synopsis.update_batch(Batch::of(packets));
    }
}

fn take_out(synopsis: &mut dyn AnySynopsis, packet: &Observation) {
    let Some(algorithm) = algorithm_of(synopsis) else { return };
    match algorithm.estimator {
        Estimator::TwoPoint { remove, .. } => {
            remove(synopsis, packet).expect("the registry's entry is that of the synopsis");
        }
    }
}

fn algorithm_of(synopsis: &dyn AnySynopsis) -> Option<&'static Algorithm> {
    ALGORITHMS.iter().find(|algorithm| algorithm.tag == synopsis.tag())
}

fn estimate(
    upstream: &Sealed,
    downstream: &Sealed,
    template: &QuestionTemplate,
) -> Result<(Span, Vec<Estimate>), PairingError> {
    let span = span_of(upstream, downstream);
    let question = Question {
        by: template.by,
        estimator: template.estimator.as_deref(),
        span,
        reference: template.reference,
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
    let algorithm =
        algorithm_of(pair.upstream).ok_or(PairingError::OnePoint { algorithm: name })?;
    match algorithm.estimator {
        Estimator::TwoPoint { estimate, .. } => estimate(pair, question)
            .map_err(|mismatch: Mismatch| PairingError::Mismatch(mismatch.into())),
    }
}

/// The epoch on upstream's clock; with one epoch for all time, what upstream saw of it.
fn span_of(upstream: &Sealed, downstream: &Sealed) -> Span {
    if upstream.rule.length_ns().is_some() {
        return TimedCut::new(upstream.rule, upstream.shift, Delay::ZERO).span_of(upstream.epoch);
    }
    // Nobody saw anything: any moment will do for an estimate of no packets.
    upstream.seen.or(downstream.seen).unwrap_or(Span::at(Timestamp::from_nanos(0)))
}

fn clock_error(upstream: &Sealed, downstream: &Sealed) -> Option<Delay> {
    Some(upstream.clock_bound? + downstream.clock_bound?)
}

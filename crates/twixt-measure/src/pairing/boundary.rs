//! Boundaries between two epochs: moves packets that were in flight, and notes where it cannot be
//! known which were. How that is found out is the business of `cut`.

use twixt_model::{Batch, Delay, Epoch, Observation, Side, Timestamp};
use twixt_synopsis::{AnySynopsis, Estimator};

use super::Pairing;
use super::slot::{Half, LateSign, Slot, Unsettled, edge};
use crate::cut::{self, Moves, Verdict};
use crate::sealed::CutKind;

impl Pairing {
    /// Moves packets that were in flight at the start of an epoch, once.
    pub(super) fn settle_start(&mut self, epoch: Epoch) {
        let Some(boundary) = self.boundary_before(epoch) else { return };
        let unobserved = self.unobserved_beside(epoch);
        let Some(mut after) = self.slots.remove(&epoch) else { return };
        if !after.start_settled && after.cut() == Some(CutKind::Timed) {
            let mut nothing = Slot::default();
            let before = self.slots.get_mut(&Epoch(epoch.0.saturating_sub(1)));
            let before = before.map_or(&mut nothing, Box::as_mut);
            match moves_between(boundary, before, &after) {
                Some(mut moves) => {
                    if is_severed(before, &after) {
                        before.blurred = true;
                        after.blurred = true;
                    }
                    // A half that comes later brings packets that are not moved any more.
                    after.blurred |= !after.is_complete();
                    self.counts.moved = self.counts.moved.saturating_add(moves.count());
                    // Judged by packets in flight as they were found, so before they are moved.
                    note_missing(&mut moves, before, &mut after);
                    let short_delays = self.learnt.note(epoch, &moves.evidence);
                    let verdict = moves.evidence.verdict(short_delays, unobserved);
                    if note_unsettled(verdict, boundary, before, &mut after) {
                        self.counts.unsettled += 1;
                    }
                    apply(&moves, before, &mut after);
                }
                None => {
                    before.blurred = true;
                    after.blurred = true;
                }
            }
        }
        self.slots.insert(epoch, after);
    }

    /// Downstream's first packets come later than upstream's. Where that is an epoch later, the
    /// first epoch of upstream has no partner, though its packets came.
    pub(super) fn stand_in_before_first(&mut self) {
        if let Some(oldest) = self.oldest_downstream {
            self.stand_in(Epoch(oldest.0.saturating_sub(1)), oldest);
        }
    }

    /// The same at the end, where downstream's clock is behind.
    pub(super) fn stand_in_after_last(&mut self) {
        if let Some(newest) = self.newest[Side::Downstream as usize] {
            self.stand_in(Epoch(newest.0.saturating_add(1)), newest);
        }
    }

    /// Has downstream see nothing in an epoch which it sent nothing of, if that is beyond doubt:
    /// packets that belong there arrived in the epoch beside it.
    fn stand_in(&mut self, missing: Epoch, present: Epoch) {
        let Some(boundary) = self.boundary_before(missing.max(present)) else { return };
        let (Some(slot), Some(beside)) = (self.slots.get(&missing), self.slots.get(&present))
        else {
            return;
        };
        if slot.is_concluded() || beside.is_concluded() || slot.downstream.is_some() {
            return;
        }
        let moves = if missing < present {
            moves_between(boundary, slot, beside).map(|moves| moves.earlier)
        } else {
            moves_between(boundary, beside, slot).map(|moves| moves.later)
        };
        if let Some(like) = &beside.downstream
            && moves.is_some_and(|moves| !moves.is_empty())
        {
            let silent = Half::silent(missing, like);
            if let Some(slot) = self.slots.get_mut(&missing) {
                slot.downstream = Some(silent);
            }
        }
    }

    /// The start of an epoch in cut time; `None` if there are no boundaries.
    fn boundary_before(&self, epoch: Epoch) -> Option<Timestamp> {
        let rule = self.rule().filter(|rule| rule.length_ns().is_some())?;
        Some(rule.span_of(epoch).start)
    }
}

/// What was in flight; `None` if the halves must not be compared.
fn moves_between(boundary: Timestamp, before: &Slot, after: &Slot) -> Option<Moves> {
    let halves = [&before.upstream, &after.upstream, &before.downstream, &after.downstream];
    let mut sealed = halves.into_iter().flatten().map(|half| &half.sealed);
    let first = sealed.next()?;
    sealed.all(|other| first.check_comparable(other).is_ok()).then(|| {
        cut::settle(
            boundary,
            edge(boundary, before.upstream.as_ref(), after.upstream.as_ref()),
            edge(boundary, before.downstream.as_ref(), after.downstream.as_ref()),
        )
    })
}

/// Whether no run of an agent saw both sides of the boundary. One that was killed took with it
/// what it had seen of the later epoch, and the next run may have begun after that.
pub(super) fn is_severed(before: &Slot, after: &Slot) -> bool {
    let is_severed = |before: &Option<Half>, after: &Option<Half>| match (before, after) {
        (Some(before), Some(after)) => !before.runs.iter().any(|run| after.runs.contains(run)),
        _ => false,
    };
    is_severed(&before.upstream, &after.upstream)
        || is_severed(&before.downstream, &after.downstream)
}

/// Where one half is missing and the other has packets of its own, some that were in flight may
/// be in the missing one. Where packets just begin or end, none are.
fn note_missing(moves: &mut Moves, before: &mut Slot, after: &mut Slot) {
    let own = |half: &Half| half.sealed.packets > moves.later.len() as u64;
    let lacks = |missing: &Option<Half>, other: &Option<Half>| {
        missing.is_none() && other.as_ref().is_some_and(own)
    };
    let lacks_before = lacks(&before.upstream, &before.downstream);
    let lacks_after = lacks(&after.downstream, &after.upstream);
    before.blurred |= moves.evidence.unseen > 0 && lacks_after;
    after.blurred |= moves.evidence.strange > 0 && lacks_before;
    moves.evidence.is_hidden = lacks_before || lacks_after;
}

/// Notes whether packets may have been in flight that were not found, and says so.
fn note_unsettled(
    verdict: Verdict,
    boundary: Timestamp,
    before: &mut Slot,
    after: &mut Slot,
) -> bool {
    if verdict == Verdict::Settled || !before.has_packets() || !after.has_packets() {
        return false;
    }
    let edges = [
        edge(boundary, before.upstream.as_ref(), after.upstream.as_ref()),
        edge(boundary, before.downstream.as_ref(), after.downstream.as_ref()),
    ];
    let sides = edges.iter().flat_map(|edge| [edge.before, edge.after]).flatten();
    let reach = sides.map(|side| side.reach).min().unwrap_or(Delay::ZERO);
    let halves = [&before.upstream, &after.upstream, &before.downstream, &after.downstream];
    let overflow = halves.into_iter().flatten().all(|half| reach < half.sealed.guard);
    let sign = match verdict {
        Verdict::Beyond => LateSign::Beyond,
        Verdict::Stalled => LateSign::Stalled,
        Verdict::Late => LateSign::Missing,
        Verdict::Doubtful | Verdict::Settled => LateSign::Doubt,
    };
    let unsettled = Unsettled { reach, overflow, sign };
    before.note_unsettled(unsettled);
    // Of the epoch after, all packets may be there: some of the epoch before are among them.
    let sign = unsettled.sign;
    let sign = if sign == LateSign::Stalled { LateSign::Missing } else { sign };
    after.note_unsettled(Unsettled { sign, ..unsettled });
    true
}

fn apply(moves: &Moves, before: &mut Slot, after: &mut Slot) {
    move_packets(&moves.earlier, after.waiting_downstream(), before.waiting_downstream());
    move_packets(&moves.later, before.waiting_downstream(), after.waiting_downstream());
    before.forget_tails();
    before.moved = before.moved.saturating_add(moves.count());
    after.moved = after.moved.saturating_add(moves.count());
    after.start_settled = true;
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
    let estimator = synopsis.algorithm().map(|algorithm| &algorithm.estimator);
    if let Some(Estimator::TwoPoint { remove, .. }) = estimator {
        remove(synopsis, packet).expect("the registry's entry is that of the synopsis");
    }
}

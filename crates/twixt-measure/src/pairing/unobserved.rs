//! What becomes of loss where a point did not observe all packets: a packet that the kernel dropped,
//! or that came after its epoch was sealed, must not be called lost.

use std::fmt;

use twixt_model::{Epoch, Estimate, LossRange, Scope, Unobserved};

use super::Pairing;
use super::slot::{Half, Slot};

/// What both points counted in an epoch, and what they may not have observed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Observed {
    /// Packets that upstream counted.
    pub(super) sent: u64,
    /// Packets that downstream counted.
    pub(super) received: u64,
    pub(super) unobserved: Unobserved,
    /// Whether the algorithm looks for each packet of upstream downstream.
    pub(super) matches_packets: bool,
}

impl Pairing {
    /// Most packets of an epoch that passed its points and were not observed.
    pub(super) fn unobserved(&self, epoch: Epoch) -> Unobserved {
        let beside = |step: i64| self.slots.get(&Epoch(epoch.0.saturating_add(step)));
        let [before, here, after] = [-1, 0, 1].map(|step| beside(step).map(Box::as_ref));
        let missing = |half: fn(&Slot) -> Option<&Half>| {
            let tally =
                |slot: Option<&Slot>, count: fn(&Half) -> u64| slot.and_then(half).map_or(0, count);
            let noticed_beside = |half: &Half| half.sealed.tally.missing_beside();
            [
                tally(here, |half| half.sealed.tally.missing()),
                tally(before, noticed_beside),
                tally(after, noticed_beside),
                // Late packets belong to an epoch before the one that counts them.
                tally(after, |half| half.sealed.tally.late),
            ]
            .into_iter()
            .fold(0, u64::saturating_add)
        };
        Unobserved {
            upstream: missing(|slot| slot.upstream.as_ref()),
            downstream: missing(|slot| slot.downstream.as_ref()),
        }
    }

    /// Most packets near the start of an epoch that were not observed.
    pub(super) fn unobserved_beside(&self, epoch: Epoch) -> Unobserved {
        let (before, after) =
            (self.unobserved(Epoch(epoch.0.saturating_sub(1))), self.unobserved(epoch));
        Unobserved {
            upstream: before.upstream.max(after.upstream),
            downstream: before.downstream.max(after.downstream),
        }
    }
}

impl Observed {
    /// Has an estimate say no more of loss than is known.
    pub(super) fn limit(&self, estimate: &mut Estimate) {
        if self.unobserved.is_nothing() {
            return;
        }
        let cause = Cause(self.unobserved).to_string();
        self.limit_strays(estimate);
        let Some(missing) = estimate.evidence.lost else {
            let Some(LossRange { min, max }) = estimate.evidence.lost_between else {
                return estimate.add_reason(&cause);
            };
            // What upstream did not observe is among the strays that made this a range. These may be
            // bounded with 95 % only, which is no reason to deny what drops may hide.
            let min = min.saturating_sub(self.unobserved.downstream);
            let counted = self.counted().filter(|_| estimate.scope == Scope::All);
            let max = counted.map_or(max, |counted| counted.max.max(max));
            return estimate.limit_loss(Some(LossRange { min, max }), &cause);
        };
        let range = match &estimate.scope {
            _ if self.matches_packets => Some(LossRange::matched(missing, self.unobserved)),
            // Every synopsis counts all packets, whatever it samples.
            Scope::All => self.counted(),
            // Nothing is missing, so nothing is lost.
            _ if missing == 0 && self.unobserved.upstream == 0 => Some(LossRange::exactly(0)),
            // What is missing of a flow may be estimated from few packets, or from cells that it
            // shares with others: a drop may count there as any number.
            _ => None,
        };
        estimate.limit_loss(range, &cause);
    }
}

impl Observed {
    /// By how many packets were counted; nothing where each is looked for.
    fn counted(&self) -> Option<LossRange> {
        let Self { sent, received, unobserved, matches_packets } = *self;
        let range = || LossRange::counted(sent, received, unobserved);
        (!matches_packets).then(range).flatten()
    }

    /// What upstream did not observe, or downstream, looks like a stray, or hides one.
    fn limit_strays(&self, estimate: &mut Estimate) {
        let Unobserved { upstream, downstream } = self.unobserved;
        let hidden = if self.matches_packets { 0 } else { downstream };
        let limited = estimate.evidence.stray_range().map(|LossRange { min, max }| LossRange {
            min: min.saturating_sub(upstream),
            max: max.saturating_add(hidden),
        });
        estimate.evidence.set_strays(limited);
    }
}

/// Why loss is not known exactly.
struct Cause(Unobserved);

impl fmt::Display for Cause {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Unobserved { upstream, downstream } = self.0;
        let ends = [("upstream", upstream), ("downstream", downstream)];
        let ends = ends.into_iter().filter(|(_, packets)| *packets > 0);
        let ends: Vec<String> = ends.map(|(end, packets)| format!("{packets} {end}")).collect();
        write!(formatter, "packets dropped or late, up to {}", ends.join(" and "))
    }
}

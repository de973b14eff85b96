//! The two halves of an epoch while they wait for each other.

use std::sync::Arc;

use twixt_model::{Delay, Epoch, Observation, Side, Timestamp};
use twixt_synopsis::KnownFlow;

use super::Remedy;
use super::event::PairingError;
use crate::cut::{BoundarySide, Edge};
use crate::sealed::{CutKind, Sealed};
use crate::stash::Stash;
use crate::tally::Tally;

/// Most runs of an agent in one epoch; the epochs of further ones are counted as duplicates.
pub const RUNS_MAX: usize = 64;

/// An epoch and what has come of it.
#[derive(Debug, Default)]
pub(super) struct Slot {
    pub(super) upstream: Option<Half>,
    pub(super) downstream: Option<Half>,
    /// Packets moved into or out of the epoch.
    pub(super) moved: u64,
    /// Whether packets near its boundaries could not be moved, since a neighbour is missing.
    pub(super) blurred: bool,
    /// Why it is not known which packets were in flight at its boundaries.
    pub(super) unsettled: Option<Unsettled>,
    /// Flows that upstream saw in it, if they are known.
    pub(super) flows: Option<Arc<[KnownFlow]>>,
    /// Whether packets in flight at its start have been moved.
    pub(super) start_settled: bool,
    concluded: bool,
}

/// What one point saw, and in which runs.
#[derive(Debug)]
pub(super) struct Half {
    pub(super) sealed: Sealed,
    pub(super) runs: Vec<u64>, // at most RUNS_MAX
}

/// What was kept at a boundary, which did not suffice to settle it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unsettled {
    /// Within this of the boundary both points kept everything.
    pub(super) reach: Delay,
    /// Whether that is less than the guard.
    pub(super) overflow: bool,
    /// What shows that delays may exceed it.
    pub(super) sign: LateSign,
}

/// What shows that delays may exceed what was kept, the surest last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LateSign {
    /// Nothing shows that they do not.
    Doubt,
    /// Most packets are missing.
    Missing,
    /// Delays that came up to it.
    Beyond,
    /// From some moment on, nothing arrived.
    Stalled,
}

impl Unsettled {
    /// Why something is not known, and what can be done.
    pub(super) fn reason(&self, remedy: Remedy) -> String {
        let ms = self.reach.as_nanos() as f64 / 1e6;
        let remedy = match (remedy, self.sign) {
            (Remedy::Length, sign) if self.overflow && sign != LateSign::Stalled => {
                "use --algorithm exact"
            }
            (Remedy::Length, _) => "use longer epochs, or --algorithm exact",
            (Remedy::Guard, LateSign::Stalled) => "use a larger guard or longer epochs",
            (Remedy::Guard, _) if self.overflow => "use a larger stash",
            (Remedy::Guard, _) => "use a larger guard or longer epochs",
        };
        if self.sign == LateSign::Stalled {
            return format!(
                "no packet that was sent near the end of an epoch arrived within {ms} ms: late \
                 packets of a longer path cannot be distinguished from lost ones, and their delays \
                 are missing; {remedy}"
            );
        }
        let reach = if self.sign == LateSign::Beyond { "reach" } else { "may reach" };
        let what = if self.overflow { "stash, which holds" } else { "guard of" };
        format!(
            "delays {reach} beyond the {what} {ms} ms: late packets cannot be distinguished from \
             lost ones, and the mean excludes them; {remedy}"
        )
    }
}

/// What became of an epoch that was handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Added {
    New,
    Merged,
    Duplicate,
    AfterConclusion,
}

impl Slot {
    /// Adds one side's half, or a part of it. Refuses what must not be compared.
    pub(super) fn add(&mut self, side: Side, sealed: Sealed) -> Result<Added, PairingError> {
        if self.concluded {
            return Ok(if self.has_run(side, sealed.run) {
                Added::Duplicate
            } else {
                Added::AfterConclusion
            });
        }
        // One cut by time still tells what was in flight at its whole end.
        if sealed.torn && sealed.cut == CutKind::Marked {
            return Err(PairingError::Torn { point: sealed.point });
        }
        let run = sealed.run;
        let added = match self.half_mut(side) {
            empty @ None => {
                *empty = Some(Half { sealed, runs: vec![run] });
                Added::New
            }
            Some(half) if half.runs.contains(&run) || half.runs.len() == RUNS_MAX => {
                Added::Duplicate
            }
            Some(half) => {
                half.sealed.merge(&sealed)?;
                half.runs.push(run);
                Added::Merged
            }
        };
        if let (Some(upstream), Some(downstream)) = (&self.upstream, &self.downstream) {
            upstream.sealed.check_comparable(&downstream.sealed)?;
        }
        Ok(added)
    }

    /// Forgets all but the runs, and what packets in flight at the epoch's end may need.
    pub(super) fn conclude(&mut self) {
        self.concluded = true;
        self.flows = None;
        for half in [&mut self.upstream, &mut self.downstream].into_iter().flatten() {
            half.sealed.synopsis = half.sealed.synopsis.fresh();
            // One that is refused is concluded early: the epoch before still needs it.
            if self.start_settled {
                half.sealed.head.forget();
            }
        }
    }

    /// Forgets what packets in flight at the epoch's end needed.
    pub(super) fn forget_tails(&mut self) {
        for half in [&mut self.upstream, &mut self.downstream].into_iter().flatten() {
            half.sealed.tail.forget();
        }
    }

    /// What downstream saw, if it can still change.
    pub(super) fn waiting_downstream(&mut self) -> Option<&mut Half> {
        self.downstream.as_mut().filter(|_| !self.concluded)
    }

    /// Notes why a boundary is not settled. Of two reasons, the more certain is kept.
    pub(super) fn note_unsettled(&mut self, unsettled: Unsettled) {
        if self.unsettled.is_none_or(|noted| noted.sign <= unsettled.sign) {
            self.unsettled = Some(unsettled);
        }
    }

    /// Bytes of memory that both halves take.
    pub(super) fn memory_bytes(&self) -> u64 {
        let halves = [&self.upstream, &self.downstream].into_iter().flatten();
        halves.map(|half| half.sealed.memory_bytes()).sum()
    }

    /// Whether either point counted anything.
    pub(super) fn has_packets(&self) -> bool {
        let halves = [&self.upstream, &self.downstream].into_iter().flatten();
        halves.map(|half| half.sealed.packets).any(|packets| packets > 0)
    }

    pub(super) const fn is_concluded(&self) -> bool {
        self.concluded
    }

    /// Whether both halves are there and wait.
    pub(super) const fn is_complete(&self) -> bool {
        !self.concluded && self.upstream.is_some() && self.downstream.is_some()
    }

    /// How its epochs end; `None` if nothing has come.
    pub(super) fn cut(&self) -> Option<CutKind> {
        self.upstream.as_ref().or(self.downstream.as_ref()).map(|half| half.sealed.cut)
    }

    fn half_mut(&mut self, side: Side) -> &mut Option<Half> {
        match side {
            Side::Upstream => &mut self.upstream,
            Side::Downstream => &mut self.downstream,
        }
    }

    fn has_run(&self, side: Side, run: u64) -> bool {
        let half = match side {
            Side::Upstream => &self.upstream,
            Side::Downstream => &self.downstream,
        };
        half.as_ref().is_some_and(|half| half.runs.contains(&run))
    }
}

impl Half {
    /// What downstream would have sent of an epoch in which it saw nothing, to judge by another
    /// of its epochs.
    pub(super) fn silent(epoch: Epoch, like: &Self) -> Self {
        let sealed = &like.sealed;
        let silent = Sealed {
            epoch,
            seen: None,
            packets: 0,
            tally: Tally::default(),
            head: Stash::head(sealed.head.max()),
            tail: Stash::tail(sealed.tail.max()),
            synopsis: sealed.synopsis.fresh(),
            ..sealed.clone()
        };
        Self { sealed: silent, runs: like.runs.clone() }
    }

    fn side<'a>(&self, boundary: Timestamp, stash: &'a Stash) -> BoundarySide<'a> {
        let (shift, guard) = (self.sealed.shift, self.sealed.guard);
        let distance = |kept: &Observation| {
            Delay::from_nanos((kept.time - shift - boundary).as_nanos().saturating_abs())
        };
        let farthest = || stash.observations().iter().map(distance).max().unwrap_or(Delay::ZERO);
        let reach = if stash.overflow() == 0 { guard } else { guard.min(farthest()) };
        BoundarySide { observations: stash.observations(), shift, reach }
    }
}

/// What one point kept on both sides of the boundary between two epochs.
pub(super) fn edge<'a>(
    boundary: Timestamp,
    before: Option<&'a Half>,
    after: Option<&'a Half>,
) -> Edge<'a> {
    Edge {
        before: before.map(|half| half.side(boundary, &half.sealed.tail)),
        after: after.map(|half| half.side(boundary, &half.sealed.head)),
    }
}

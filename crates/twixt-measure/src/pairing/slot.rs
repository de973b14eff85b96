//! The two halves of an epoch while they wait for each other.

use twixt_model::Observation;

use super::End;
use super::event::PairingError;
use crate::cut::Edge;
use crate::sealed::{CutKind, Sealed};

/// Most runs of an agent in one epoch; the epochs of further ones are counted as duplicates.
pub const RUNS_MAX: usize = 64;

/// An epoch and what has come of it.
#[derive(Debug, Default)]
pub(super) struct Slot {
    pub(super) upstream: Option<Half>,
    pub(super) downstream: Option<Half>,
    /// Packets moved into or out of the epoch.
    pub(super) moved: u64,
    /// Whether some packets near its boundaries were not kept, so could not be moved.
    pub(super) blurred: bool,
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

/// What became of an epoch that was handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Added {
    New,
    Merged,
    Duplicate,
    AfterConclusion,
}

impl Slot {
    /// Adds one end's half, or a part of it. Refuses what must not be compared.
    pub(super) fn add(&mut self, end: End, sealed: Sealed) -> Result<Added, PairingError> {
        if self.concluded {
            return Ok(if self.has_run(end, sealed.run) {
                Added::Duplicate
            } else {
                Added::AfterConclusion
            });
        }
        if sealed.torn {
            return Err(PairingError::Torn { point: sealed.point });
        }
        let run = sealed.run;
        let added = match self.half_mut(end) {
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
        for half in [&mut self.upstream, &mut self.downstream].into_iter().flatten() {
            half.sealed.synopsis = half.sealed.synopsis.fresh();
            half.sealed.head.forget();
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

    fn half_mut(&mut self, end: End) -> &mut Option<Half> {
        match end {
            End::Upstream => &mut self.upstream,
            End::Downstream => &mut self.downstream,
        }
    }

    fn has_run(&self, end: End, run: u64) -> bool {
        let half = match end {
            End::Upstream => &self.upstream,
            End::Downstream => &self.downstream,
        };
        half.as_ref().is_some_and(|half| half.runs.contains(&run))
    }
}

/// What one point kept on both sides of the boundary between two epochs.
pub(super) fn edge<'a>(before: Option<&'a Half>, after: Option<&'a Half>) -> Edge<'a> {
    const NOTHING: &[Observation] = &[];
    Edge {
        before: before.map_or(NOTHING, |half| half.sealed.tail.observations()),
        after: after.map_or(NOTHING, |half| half.sealed.head.observations()),
    }
}

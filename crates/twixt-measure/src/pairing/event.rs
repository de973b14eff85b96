//! What comes out of pairing.

use twixt_model::{Delay, Epoch, Estimate, PointId, Span, TimeSource};

use super::slot::Half;
use crate::sealed::SealedMismatch;

/// What became of an epoch.
#[derive(Clone, Debug, PartialEq)]
pub enum PairingEvent {
    /// Both halves came, and were compared.
    Estimated {
        /// Which epoch.
        epoch: Epoch,
        /// The interval of upstream time that it covers.
        span: Span,
        /// What the algorithm concludes.
        estimates: Vec<Estimate>,
        /// What upstream counted.
        upstream: PointSummary,
        /// What downstream counted.
        downstream: PointSummary,
        /// Packets in flight at its boundaries that were moved into it or out of it.
        moved: u64,
        /// Nothing came of an epoch beside it: packets that were in flight look like lost ones.
        lacks_neighbour: bool,
    },
    /// One half came, and was given up waiting with.
    Unpaired {
        /// Which epoch.
        epoch: Epoch,
        /// The point whose half is missing.
        point: PointId,
        /// Why it was given up.
        reason: UnpairedReason,
    },
    /// The halves must not be compared.
    Refused {
        /// Which epoch.
        epoch: Epoch,
        /// Why not.
        reason: PairingError,
    },
}

/// Why an epoch was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnpairedReason {
    /// The point's half did not come in time. Look whether the agent there runs, and whether its
    /// clock is right.
    #[error("its epoch did not arrive in time")]
    Missing,
    /// Too many epochs waited. Hand over the epochs of both points side by side.
    #[error("its epoch did not arrive before too many others were waiting")]
    CrowdedOut,
}

/// Why two halves must not be compared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PairingError {
    /// The points are set up differently. Give both the same settings.
    #[error(transparent)]
    Mismatch(#[from] SealedMismatch),
    /// A marker was lost, or the point did not observe all of the epoch: it began or ended there,
    /// its interface went away, or its clock was set. If it happens often, look at the agent there,
    /// or whether the segment drops markers.
    #[error("{point} missed the start or the end of the epoch")]
    Torn {
        /// Where.
        point: PointId,
    },
    /// The algorithm learns from one point alone. Ask that point.
    #[error("{algorithm} does not compare two points")]
    OnePoint {
        /// Its name.
        algorithm: &'static str,
    },
}

/// What one point counted in an epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PointSummary {
    /// Packets counted, before any were moved.
    pub packets: u64,
    /// Packets skipped on purpose.
    pub skipped: u64,
    /// Packets that the kernel dropped, of all classes; noticed in this epoch.
    pub dropped: u64,
    /// Packets that came after their epoch was sealed.
    pub late: u64,
    /// Observations near the boundaries that could not be kept, so not moved either.
    pub stash_overflow: u64,
    /// First and last time seen.
    pub seen: Option<Span>,
    /// Runs of the agent that saw a part.
    pub runs: usize,
    /// Who took the times.
    pub time_source: TimeSource,
    /// Bound on the error of the clock.
    pub clock_bound: Option<Delay>,
    /// Bytes of state of the synopsis.
    pub synopsis_bytes: u64,
}

impl PointSummary {
    pub(super) fn of(half: &Half) -> Self {
        let sealed = &half.sealed;
        Self {
            packets: sealed.packets,
            skipped: sealed.tally.skipped_total(),
            dropped: sealed.tally.dropped,
            late: sealed.tally.late,
            stash_overflow: sealed.stash_overflow(),
            seen: sealed.seen,
            runs: half.runs.len(),
            time_source: sealed.time_source,
            clock_bound: sealed.clock_bound,
            synopsis_bytes: sealed.synopsis.state_bytes(),
        }
    }
}

/// What happened to a pairing so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PairingCounts {
    /// Epochs taken, of either point.
    pub received: u64,
    /// Epochs of other points or classes.
    pub foreign: u64,
    /// Epochs that came after they were concluded or given up, for whichever time.
    pub late: u64,
    /// Epochs that had come before, of the same run, while they waited.
    pub duplicates: u64,
    /// Epochs that came after a newer one of the same point.
    pub out_of_order: u64,
    /// Parts of another run combined with what had come.
    pub merged_runs: u64,
    /// Epochs estimated.
    pub estimated: u64,
    /// Epochs of which a half was missing.
    pub unpaired: u64,
    /// Epochs whose halves must not be compared.
    pub refused: u64,
    /// Epochs concluded early because too many waited.
    pub crowded_out: u64,
    /// Packets moved across a boundary.
    pub moved: u64,
    /// Boundaries at which it is not known which packets were in flight, so that the loss of the
    /// epochs beside them is not known either. Use a larger guard if there are many.
    pub unsettled: u64,
}

impl PairingCounts {
    /// Counts what came out.
    pub(super) const fn count(&mut self, event: Option<&PairingEvent>) {
        match event {
            Some(PairingEvent::Estimated { .. }) => self.estimated += 1,
            Some(PairingEvent::Unpaired { .. }) => self.unpaired += 1,
            Some(PairingEvent::Refused { .. }) => self.refused += 1,
            None => {}
        }
    }
}

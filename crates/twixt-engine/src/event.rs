//! What an engine reports.

use twixt_measure::{PairingCounts, PairingError, PointSummary, Sealed, UnpairedReason};
use twixt_model::{
    Delay, Epoch, Estimate, HeavyFlow, PointId, ReorderEstimate, RoundTripEstimate, Segment, Span,
};
use twixt_synopsis::{Algorithm, AnySynopsis, Estimator, Mismatch, Purpose, Question};

/// What an engine reports.
#[derive(Clone, Debug, PartialEq)]
pub enum EngineEvent {
    /// Both halves of an epoch came, and were compared.
    Estimated(Box<PairEstimate>),
    /// An epoch of a one-point algorithm came.
    Observed(Box<PointEstimate>),
    /// A minute of a one-point algorithm is over: the combined result of its synopses.
    ObservedSummary(Box<PointEstimate>),
    /// Of some epochs nothing can be reported.
    Gap(Gap),
    /// Something that the operator should know.
    Warning(Warning),
    /// A minute of a series is over: an epoch of a later one was reported.
    MinuteOver(MinuteOver),
}

/// Epochs that are compared with each other: same segment, class, algorithm and length.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Series {
    /// Within which point names are unique.
    pub domain: String,
    /// The two points.
    pub segment: Segment,
    /// Name of the class of traffic; empty without classes.
    pub class: String,
    /// Name of the algorithm.
    pub algorithm: &'static str,
    /// Its tag: names are unique for one purpose only.
    pub tag: u16,
    /// Length of an epoch; `None` when one epoch holds all time.
    pub epoch_ns: Option<i64>,
}

/// The estimate of two points for an epoch.
#[derive(Clone, Debug, PartialEq)]
pub struct PairEstimate {
    /// Segment, class and algorithm.
    pub series: Series,
    /// Which epoch, by upstream's number.
    pub epoch: Epoch,
    /// The interval of upstream time that it covers.
    pub span: Span,
    /// What the algorithm concludes.
    pub estimates: Vec<Estimate>,
    /// What upstream counted.
    pub upstream: PointSummary,
    /// What downstream counted.
    pub downstream: PointSummary,
    /// Packets in flight at the epoch's boundaries that were moved into it or out of it.
    pub moved: u64,
    /// Downstream's epoch has a number larger by this: its clock is that far ahead. Delays
    /// contain what the clocks differ by, as ever.
    pub realigned_epochs: i64,
    /// A half came after the epoch was given up: a gap may have been reported before.
    pub is_late: bool,
}

/// The result of one point for an epoch.
#[derive(Clone, Debug, PartialEq)]
pub struct PointEstimate {
    /// Within which point names are unique.
    pub domain: String,
    /// Who saw it.
    pub point: PointId,
    /// Name of the class of traffic; empty without classes.
    pub class: String,
    /// What the algorithm is asked for.
    pub purpose: Purpose,
    /// Name of the algorithm.
    pub algorithm: &'static str,
    /// Which epoch; of a minute, its first.
    pub epoch: Epoch,
    /// Epochs that it rests on.
    pub epochs: u64,
    /// Number of the run of the agent; after a restart two runs have a part of one epoch each.
    pub run: u64,
    /// The interval of the point's time that it covers.
    pub span: Span,
    /// Length of an epoch; `None` when one epoch holds all time.
    pub epoch_ns: Option<i64>,
    /// What the algorithm concludes.
    pub conclusions: Conclusions,
    /// What the point counted.
    pub counts: PointCounts,
}

/// What one point counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PointCounts {
    /// Packets counted.
    pub packets: u64,
    /// Packets skipped on purpose.
    pub skipped: u64,
    /// Packets that the kernel dropped, of all classes.
    pub dropped: u64,
    /// Packets that came after their epoch was sealed.
    pub late: u64,
}

/// What an algorithm concludes from one point alone.
#[derive(Clone, Debug, PartialEq)]
pub enum Conclusions {
    /// Of round trips.
    RoundTrips(Vec<RoundTripEstimate>),
    /// Of reordering.
    Reordering(Vec<ReorderEstimate>),
    /// Of large flows.
    Heavy(Vec<HeavyFlow>),
}

/// Epochs of which nothing can be reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Segment, class and algorithm.
    pub series: Series,
    /// The first of them.
    pub first: Epoch,
    /// The last of them.
    pub last: Epoch,
    /// The interval of upstream time that they cover.
    pub span: Span,
    /// The point at fault; `None` where it is both, or neither.
    pub point: Option<PointId>,
    /// Why.
    pub reason: GapReason,
    /// These epochs were a gap before a restart, and are stored as one.
    pub is_stored: bool,
}

impl Gap {
    /// How many epochs.
    #[must_use]
    pub const fn epochs(&self) -> u64 {
        self.last.0.abs_diff(self.first.0).saturating_add(1)
    }
}

/// Why nothing can be reported of an epoch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GapReason {
    /// One point's half did not come. Look whether the agent there runs and reaches the collector.
    #[error(transparent)]
    Unpaired(UnpairedReason),
    /// The halves must not be compared.
    #[error(transparent)]
    Refused(PairingError),
    /// Neither point's half came. Look whether the agents run.
    #[error("no epoch arrived from either point")]
    NothingCame,
    /// Packets near the epoch's boundaries, as the points kept them, have nothing in common.
    /// Check the filters of both points, then their clocks.
    #[error(
        "the packets of the two points near the epoch's boundaries have nothing in common: either \
         they do not see the same packets, or their clocks differ by more than the guard of {} ms",
        .guard.as_nanos() / 1_000_000
    )]
    NothingInCommon {
        /// What the points kept lies within this of a boundary.
        guard: Delay,
    },
    /// Clocks differ by something that no whole number of epochs puts right. Set the clocks, or
    /// use a larger guard.
    #[error(
        "the clocks differ by {:.3} s, delay included: after whole epochs {:.0} ms remain, which is \
         more than the guard of {} ms",
        .offset.as_nanos() as f64 / 1e9,
        .rest.as_nanos() as f64 / 1e6,
        .guard.as_nanos() / 1_000_000
    )]
    ClocksApart {
        /// Downstream's clock is ahead by this, delay included.
        offset: Delay,
        /// What remains of it after whole epochs.
        rest: Delay,
        /// What the points kept lies within this of a boundary.
        guard: Delay,
    },
    /// Too few packets near the boundaries to say whether the clocks agree, and no bound on their
    /// error is known.
    #[error(
        "no packet near an epoch's boundary has been seen at both points yet: it is unknown \
         whether their clocks agree"
    )]
    Unverified,
}

/// Something that the operator should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// What it is about.
    pub kind: WarningKind,
    /// The segment that it is about, if it is about one.
    pub segment: Option<Segment>,
    /// For people.
    pub text: String,
}

/// What a warning is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum WarningKind {
    /// The two ends of a segment do not see the same packets.
    NotTheSameStream,
    /// The clocks of two points differ by more than the guard.
    ClockOffset,
    /// Two points are set up differently.
    Configuration,
    /// A segment was discovered.
    Discovered,
    /// Two points share packets, and it is not known which is passed first.
    DirectionUnknown,
    /// A bound was reached.
    Bound,
}

impl WarningKind {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::NotTheSameStream,
        Self::ClockOffset,
        Self::Configuration,
        Self::Discovered,
        Self::DirectionUnknown,
        Self::Bound,
    ];

    /// The name in metrics and machine formats.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotTheSameStream => "not-the-same-stream",
            Self::ClockOffset => "clock-offset",
            Self::Configuration => "configuration",
            Self::Discovered => "discovered",
            Self::DirectionUnknown => "direction-unknown",
            Self::Bound => "bound",
        }
    }
}

/// A minute of a series in which something was reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MinuteOver {
    /// Segment, class and algorithm.
    pub series: Series,
    /// The minute, in upstream time.
    pub span: Span,
}

/// What happened to an engine so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EngineCounts {
    /// Epochs taken.
    pub received: u64,
    /// Epochs of two-point algorithms whose point is not an end of a segment.
    pub unrouted: u64,
    /// Epochs of algorithms that this release does not know.
    pub unknown_algorithm: u64,
    /// Epochs left because too many series are followed already.
    pub series_refused: u64,
    /// Epochs whose packets near boundaries were not looked at because too many points are
    /// followed already. Nothing is estimated from them.
    pub points_refused: u64,
    /// Segments that were discovered.
    pub discovered: u64,
    /// Pairs of points that were not compared because too many are already.
    pub pairs_refused: u64,
    /// Epochs of a pair estimated.
    pub estimated: u64,
    /// Epochs of one point estimated.
    pub observed: u64,
    /// Epochs of which nothing can be reported.
    pub gaps: u64,
    /// Warnings given.
    pub warnings: u64,
    /// Minutes summed up.
    pub summaries: u64,
    /// Epochs that came too late.
    pub late: u64,
    /// Epochs that had come before.
    pub duplicates: u64,
    /// Parts of an epoch of another run of an agent, combined.
    pub merged_runs: u64,
    /// Epochs concluded early because too many waited.
    pub crowded_out: u64,
    /// Boundaries at which it is not known which packets were in flight. Use a larger guard if
    /// there are many.
    pub unsettled: u64,
    /// Events of a replay that were reported before.
    pub replayed: u64,
}

impl PointEstimate {
    /// What a one-point algorithm concludes from a synopsis, before its epoch is known.
    ///
    /// # Errors
    /// When the algorithm is not that of the synopsis, or compares two points.
    pub(crate) fn of(
        series: &Series,
        algorithm: &'static Algorithm,
        synopsis: &dyn AnySynopsis,
        span: Span,
        counts: PointCounts,
    ) -> Result<Self, Mismatch> {
        let question = Question { distributions: true, ..Question::about(span) };
        let conclusions = match &algorithm.estimator {
            Estimator::RoundTrip { conclude, .. } => {
                Conclusions::RoundTrips((conclude.conclude)(synopsis, &question)?)
            }
            Estimator::Reorder(conclude) => {
                Conclusions::Reordering((conclude.conclude)(synopsis, &question)?)
            }
            Estimator::Heavy(conclude) => {
                Conclusions::Heavy((conclude.conclude)(synopsis, &question)?)
            }
            Estimator::TwoPoint { .. } => {
                let (one, other) = (algorithm.name, "a one-point algorithm");
                return Err(Mismatch::Algorithm { one, other });
            }
        };
        Ok(Self {
            domain: series.domain.clone(),
            point: series.segment.upstream.clone(),
            class: series.class.clone(),
            purpose: algorithm.purpose,
            algorithm: algorithm.name,
            epoch: Epoch(0),
            epochs: 1,
            run: 0,
            span,
            epoch_ns: series.epoch_ns,
            conclusions,
            counts,
        })
    }
}

impl EngineCounts {
    /// Adds what a pairing counted since `before`.
    pub(crate) const fn add(&mut self, before: PairingCounts, now: PairingCounts) {
        self.late += now.late - before.late;
        self.duplicates += now.duplicates - before.duplicates;
        self.merged_runs += now.merged_runs - before.merged_runs;
        self.crowded_out += now.crowded_out - before.crowded_out;
        self.unsettled += now.unsettled - before.unsettled;
    }
}

impl PointCounts {
    pub(crate) fn of(sealed: &Sealed) -> Self {
        Self {
            packets: sealed.packets,
            skipped: sealed.tally.skipped_total(),
            dropped: sealed.tally.dropped,
            late: sealed.tally.late,
        }
    }

    pub(crate) const fn add(&mut self, other: Self) {
        self.packets = self.packets.saturating_add(other.packets);
        self.skipped = self.skipped.saturating_add(other.skipped);
        self.dropped = self.dropped.saturating_add(other.dropped);
        self.late = self.late.saturating_add(other.late);
    }
}

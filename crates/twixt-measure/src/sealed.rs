//! What one point saw in one epoch, finished: it never changes again, but parts of one epoch can
//! be combined.

use std::fmt::Display;

use twixt_model::{
    Delay, DigestIdentity, Epoch, EpochRule, Observation, PointId, Span, TimeSource,
};
use twixt_synopsis::AnySynopsis;

use crate::stash::Stash;
use crate::tally::Tally;

/// What one point saw in one epoch, with all that is needed to compare it with another point's.
/// The bytes of it are in `message.rs`.
#[derive(Debug)]
pub struct Sealed {
    /// Within which point names are unique.
    pub domain: String,
    /// Who saw it.
    pub point: PointId,
    /// Name of the class of traffic; empty without classes.
    pub class: String,
    /// Number of the run of the agent, drawn at each start.
    pub run: u64,
    /// Which epoch.
    pub epoch: Epoch,
    /// How time is cut into epochs.
    pub rule: EpochRule,
    /// What the cut followed.
    pub cut: CutKind,
    /// What was subtracted from the point's times to find their epoch, and for nothing else.
    pub shift: Delay,
    /// Within this of a boundary whole observations were kept; zero where none are needed, since
    /// there are no boundaries or markers decide.
    pub guard: Delay,
    /// The epoch's start or end was missed: packets of other epochs are in it, or some of its own
    /// are not. It must not be compared.
    pub torn: bool,
    /// Who took the times.
    pub time_source: TimeSource,
    /// Bound on the error of the point's clock, where that is known.
    pub clock_bound: Option<Delay>,
    /// What makes digests comparable.
    pub digest: DigestIdentity,
    /// First and last time seen; `None` if nothing was.
    pub seen: Option<Span>,
    /// Packets counted.
    pub packets: u64,
    /// Packets not counted, by why.
    pub tally: Tally,
    /// What was counted near the start.
    pub head: Stash,
    /// What was counted near the end.
    pub tail: Stash,
    /// What is remembered of the packets.
    pub synopsis: Box<dyn AnySynopsis>,
}

/// What decides where an epoch ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutKind {
    /// The time of each packet.
    Timed,
    /// A marker among the packets.
    Marked,
}

impl CutKind {
    /// The name in messages to people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Timed => "by time",
            Self::Marked => "by markers",
        }
    }
}

impl Sealed {
    /// Cuts what was kept near the boundaries to its bound, and sorts it. A meter does so, unless it
    /// was asked to leave it ([`Meter::poll_unsettled`](crate::Meter::poll_unsettled)).
    pub fn settle(&mut self) {
        self.head.settle();
        self.tail.settle();
    }

    /// Bytes of memory that its synopsis, and what was kept near the boundaries, take.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        let kept = self.head.observations().len() + self.tail.observations().len();
        self.synopsis.state_bytes().saturating_add((kept * size_of::<Observation>()) as u64)
    }

    /// Observations near the boundaries that could not be kept.
    #[must_use]
    pub const fn stash_overflow(&self) -> u64 {
        self.head.overflow().saturating_add(self.tail.overflow())
    }

    /// Adds another part of the same epoch at the same point: another thread's or interface's,
    /// or that of another run. Nothing changes if that is impossible.
    ///
    /// The time is as good as that of the worse part; the run stays that of `self`.
    ///
    /// # Errors
    /// When the two are not parts of one epoch.
    pub fn merge(&mut self, other: &Self) -> Result<(), SealedMismatch> {
        self.check_part(other).map_err(Difference::within_point)?;
        self.synopsis.try_merge(other.synopsis.as_ref())?;
        self.torn |= other.torn;
        self.time_source = self.time_source.min(other.time_source);
        self.clock_bound = self.clock_bound.zip(other.clock_bound).map(|(one, two)| one.max(two));
        self.seen = match (self.seen, other.seen) {
            (Some(one), Some(two)) => Some(one.union(two)),
            (one, two) => one.or(two),
        };
        self.packets = self.packets.saturating_add(other.packets);
        self.tally.merge(&other.tally);
        self.guard = self.guard.min(other.guard);
        self.head.merge(&other.head);
        self.tail.merge(&other.tail);
        Ok(())
    }

    /// Whether an epoch of the downstream point means the same packets and the same digests.
    /// Algorithm and settings are the business of the synopses.
    pub(crate) fn check_comparable(&self, downstream: &Self) -> Result<(), SealedMismatch> {
        self.check_meaning(downstream).map_err(Difference::between_points)
    }

    fn check_part(&self, other: &Self) -> Result<(), Difference> {
        same("point", &self.point, &other.point)?;
        same("epoch", &self.epoch.0, &other.epoch.0)?;
        same("shift in ns", &self.shift.as_nanos(), &other.shift.as_nanos())?;
        self.check_meaning(other)
    }

    fn check_meaning(&self, other: &Self) -> Result<(), Difference> {
        same("domain", &self.domain, &other.domain)?;
        same("class", &self.class, &other.class)?;
        same_rule(self.rule, other.rule)?;
        same("cut", &self.cut.name(), &other.cut.name())?;
        same("digest", &self.digest, &other.digest)
    }
}

impl Clone for Sealed {
    fn clone(&self) -> Self {
        Self {
            domain: self.domain.clone(),
            point: self.point.clone(),
            class: self.class.clone(),
            tally: self.tally.clone(),
            head: self.head.clone(),
            tail: self.tail.clone(),
            synopsis: self.synopsis.duplicate(),
            ..*self
        }
    }
}

/// Why two sealed epochs cannot be brought together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SealedMismatch {
    /// The points are set up differently. Give both the same settings.
    #[error(
        "upstream and downstream differ in {field}: {upstream} against {downstream}; \
         record both with the same settings"
    )]
    Field {
        /// What differs.
        field: &'static str,
        /// The upstream point's value.
        upstream: String,
        /// The downstream point's value.
        downstream: String,
    },
    /// What should be parts of one point's epochs is not, or its threads or runs are set up
    /// differently. Give all of them the same settings.
    #[error(
        "parts of one point differ in {field}: {one} against {other}; \
         record all of them with the same settings"
    )]
    Part {
        /// What differs.
        field: &'static str,
        /// The one's value.
        one: String,
        /// The other's value.
        other: String,
    },
    /// The points run different algorithms, or one with different settings. Give both the same.
    #[error(transparent)]
    Synopsis(#[from] twixt_synopsis::Mismatch),
}

/// How two epochs differ. The caller knows which points they are from.
#[derive(Debug)]
pub(crate) struct Difference {
    field: &'static str,
    one: String,
    other: String,
}

impl Difference {
    /// Of an upstream epoch and a downstream one, in this order.
    pub(crate) fn between_points(self) -> SealedMismatch {
        SealedMismatch::Field { field: self.field, upstream: self.one, downstream: self.other }
    }

    /// Of two epochs, or parts of one, at the same point.
    pub(crate) fn within_point(self) -> SealedMismatch {
        SealedMismatch::Part { field: self.field, one: self.one, other: self.other }
    }
}

pub(crate) fn same_rule(one: EpochRule, other: EpochRule) -> Result<(), Difference> {
    let show = |rule: EpochRule| {
        rule.length_ns()
            .map_or("one for all time".to_owned(), |length_ns| format!("{length_ns} ns"))
    };
    same("epoch length", &show(one), &show(other))
}

fn same<T: PartialEq + Display>(field: &'static str, one: &T, other: &T) -> Result<(), Difference> {
    if one == other {
        return Ok(());
    }
    Err(Difference { field, one: one.to_string(), other: other.to_string() })
}

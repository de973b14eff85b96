//! How a meter is set up.

use twixt_model::{
    Delay, DigestHash, DigestIdentity, DigestProfile, EpochRule, GroupPrefixes, NameError, PointId,
    TimeSource, check_name,
};

use crate::message::EPOCH_NS_MIN;
use crate::stash::STASH_LIMIT;

/// How a meter is set up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeterConfig {
    /// Within which point names are unique.
    pub domain: String,
    /// Who sees the packets.
    pub point: PointId,
    /// Name of the class of traffic; empty without classes.
    pub class: String,
    /// Number of the run of the agent, drawn at each start.
    pub run: u64,
    /// How time is cut into epochs; the same at all points.
    pub rule: EpochRule,
    /// What ends an epoch.
    pub cutting: Cutting,
    /// How far the point's clock is known to be ahead of upstream's. Subtracted from times to
    /// find their epoch; measured times stay as they are.
    pub shift: Delay,
    /// Within this of a boundary whole observations are kept. Must exceed the largest delay and
    /// clock error together, better twice that, else loss is not known; at most half an epoch
    /// counts.
    pub guard: Delay,
    /// Observations kept on each side of a boundary at most.
    pub stash_max: usize,
    /// How long an epoch stays open for late packets after the next began. At most
    /// [`OPEN_EPOCHS_MAX`](crate::OPEN_EPOCHS_MAX) are open.
    pub lateness: Delay,
    /// Who takes the times.
    pub time_source: TimeSource,
    /// Bound on the error of the point's clock, where that is known.
    pub clock_bound: Option<Delay>,
    /// What makes digests comparable.
    pub digest: DigestIdentity,
}

/// What ends an epoch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Cutting {
    /// The time of each packet.
    #[default]
    Timed,
    /// The time, at a place among the packets that a marker announces downstream.
    SendMarkers,
    /// The markers of another point.
    FollowMarkers {
        /// Who sends them.
        upstream: PointId,
    },
}

impl MeterConfig {
    /// Timed epochs with a guard of a tenth of their length, no classes, and digests by default.
    #[must_use]
    pub fn new(point: PointId, rule: EpochRule) -> Self {
        let tenth = Delay::from_nanos(rule.length_ns().unwrap_or(0) / 10);
        Self {
            domain: String::new(),
            point,
            class: String::new(),
            run: 0,
            rule,
            cutting: Cutting::Timed,
            shift: Delay::ZERO,
            guard: tenth,
            stash_max: 4096,
            lateness: Delay::ZERO,
            time_source: TimeSource::File,
            clock_bound: None,
            digest: DigestIdentity {
                profile: DigestProfile::Default,
                hash: DigestHash::Xxh3,
                payload_bytes: 0,
                key_id: 0,
                groups: GroupPrefixes::default(),
            },
        }
    }

    pub(super) fn check(&self) -> Result<(), MeterError> {
        let names = [("domain", &self.domain), ("point", &self.point.0), ("class", &self.class)];
        for (field, name) in names {
            if !name.is_empty() {
                check_name(name).map_err(|source| MeterError::Name { field, source })?;
            }
        }
        match self.rule.length_ns() {
            Some(length_ns) if length_ns < EPOCH_NS_MIN => {
                return Err(MeterError::EpochTooShort { length_ns });
            }
            None if self.cutting != Cutting::Timed => return Err(MeterError::NoBoundaries),
            _ => {}
        }
        if self.stash_max > STASH_LIMIT {
            return Err(MeterError::StashTooLarge { max: self.stash_max });
        }
        Ok(())
    }
}

/// Why a meter cannot be set up so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MeterError {
    /// A name is too long, or cannot be shown. Choose another.
    #[error("{field}: {source}")]
    Name {
        /// Which name.
        field: &'static str,
        /// What is wrong with it.
        source: NameError,
    },
    /// Epochs are too short. Choose longer ones.
    #[error("epochs of {length_ns} ns, at least {EPOCH_NS_MIN} ns are needed")]
    EpochTooShort {
        /// Their length.
        length_ns: i64,
    },
    /// Markers end epochs, and there is but one. Give epochs a length.
    #[error("markers need an epoch length, not one epoch for all time")]
    NoBoundaries,
    /// The stash is too large for a message. Choose a smaller one.
    #[error("a stash of {max} observations, at most {STASH_LIMIT} are allowed")]
    StashTooLarge {
        /// Its bound.
        max: usize,
    },
}

//! Configuration of an engine, and what of it must be stored.

use twixt_model::{Delay, Epoch, Segment, Timestamp};
use twixt_synopsis::By;

use crate::event::Series;

/// What an engine pairs, and how.
#[derive(Clone, Debug)]
pub struct EngineConfig {
    /// The segments that the operator named.
    pub segments: Vec<SegmentConfig>,
    /// Whether points that share packet digests become segments by themselves.
    pub discover: bool,
    /// How long after an epoch's end its halves are waited for.
    pub patience: Delay,
    /// Length of a minute: when one is over, that is an event.
    pub minute: Delay,
    /// How estimates are split up, by algorithms that can.
    pub by: By,
    /// Memory for epochs that wait for their other half. Beyond this the oldest are given up: they
    /// are stored, and paired from there when the other half comes.
    pub waiting_bytes_max: u64,
}

impl Default for EngineConfig {
    /// No segments, a patience of 5 s, minutes of 60 s, 128 MiB.
    fn default() -> Self {
        Self {
            segments: Vec::new(),
            discover: false,
            patience: Delay::from_nanos(5_000_000_000),
            minute: Delay::from_nanos(60_000_000_000),
            by: By::All,
            waiting_bytes_max: 128 << 20,
        }
    }
}

/// A segment that the operator named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentConfig {
    /// The two points.
    pub segment: Segment,
    /// The class of traffic to compare; every class that both points report when `None`.
    pub class: Option<String>,
}

/// How far a series has come: what must be remembered across a restart, beside the raw epochs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeriesProgress {
    /// Which series; for a one-point algorithm both points are the same.
    pub series: Series,
    /// Epochs up to this one are no longer waited for.
    pub through: Epoch,
    /// Everything up to this epoch was reported.
    pub last: Option<Epoch>,
    /// Epochs beyond `last` that were reported all the same; for a one-point algorithm beyond
    /// `through`, with the run of the agent.
    pub reported: Vec<(Epoch, u64)>,
    /// Epochs, from first to last, whose half came after they were concluded, and that were not
    /// paired since.
    pub late: Vec<(Epoch, Epoch)>,
    /// For a one-point algorithm: minutes that began before this were reported.
    pub summarised: Timestamp,
    /// Downstream's epochs have numbers larger by this, where that is known.
    pub realigned_epochs: Option<i64>,
    /// What pairing had learnt of delays before the first epoch that is needed itself, and not as a
    /// neighbour.
    pub short_delays: u64,
    /// Raw epochs from this one on are needed to go on: upstream's by their numbers, downstream's
    /// by numbers larger by `realigned_epochs`. Oldest first, both points side by side.
    pub replay_from: Epoch,
}

/// Epochs of a series whose half came after they were concluded. Both halves may be stored: they
/// can be paired with [`pair_stored`](crate::pair_stored).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LateEpochs {
    /// Segment, class and algorithm.
    pub series: Series,
    /// From first to last, by upstream's numbers. Oldest first.
    pub ranges: Vec<(Epoch, Epoch)>,
    /// Downstream's epochs have numbers larger by this.
    pub realigned_epochs: i64,
}

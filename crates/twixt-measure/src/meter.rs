//! Observations to sealed epochs.
//!
//! A [`Meter`] serves one class of traffic at one point. It does not know where observations come
//! from nor where sealed epochs go.

mod config;
mod marked;
mod missing;
mod sealer;
mod timed;

pub use config::{Cutting, MeterConfig, MeterError};
pub use sealer::{EMPTY_EPOCHS_MAX, MeterCounts};
pub use timed::OPEN_EPOCHS_MAX;

use twixt_model::{Batch, Epoch, Observation, Span, Timestamp};
use twixt_synopsis::AnySynopsis;

use crate::marker::Marker;
use crate::sealed::Sealed;
use crate::tally::Tally;
use marked::{Follower, Leader};
use missing::Missing;
use sealer::Sealer;
use timed::Timed;

/// Cuts what a point sees into epochs, and seals each with its synopsis.
///
/// ```
/// use twixt_measure::{Meter, MeterConfig};
/// use twixt_model::{Batch, EpochRule, Observation, PointId, Timestamp};
/// use twixt_synopsis::{Lda, LdaConfig, Synopsis};
///
/// let rule = EpochRule::every(1_000_000_000).unwrap();
/// let config = MeterConfig::new(PointId("paris".to_owned()), rule);
/// let mut meter = Meter::new(config, Box::new(Lda::new(&LdaConfig::default()))).unwrap();
/// meter.observe(Batch::of(&[Observation::default()]));
/// meter.advance(Timestamp::from_nanos(3_000_000_000));
/// let packets: Vec<u64> = std::iter::from_fn(|| meter.poll()).map(|epoch| epoch.packets).collect();
/// assert_eq!(packets, [1, 0, 0]);
/// ```
#[derive(Debug)]
pub struct Meter {
    sealer: Sealer,
    mode: Mode,
    missing: Missing,
}

#[derive(Debug)]
enum Mode {
    Timed(Timed),
    Leader(Leader),
    Follower(Follower),
}

impl Meter {
    /// A meter that has seen nothing. Each epoch gets an empty synopsis like `prototype`.
    ///
    /// # Errors
    /// When the configuration is not one that sealed epochs can carry.
    pub fn new(config: MeterConfig, prototype: Box<dyn AnySynopsis>) -> Result<Self, MeterError> {
        config.check()?;
        let mode = match &config.cutting {
            Cutting::Timed => Mode::Timed(Timed::new(&config)),
            Cutting::SendMarkers => Mode::Leader(Leader::new(&config)),
            Cutting::FollowMarkers { upstream } => Mode::Follower(Follower::new(&config, upstream)),
        };
        Ok(Self { sealer: Sealer::new(config, prototype), mode, missing: Missing::default() })
    }

    /// Adds packets. Fetch what is sealed with [`poll`](Self::poll) before adding many more: a
    /// batch can end as many epochs as it has packets.
    pub fn observe(&mut self, batch: Batch<'_>) {
        let Some(span) = span_of(batch.observations) else { return };
        match &mut self.mode {
            Mode::Timed(timed) => timed.observe(batch, span, &mut self.sealer),
            Mode::Leader(leader) => leader.observe(batch, span, &self.sealer),
            Mode::Follower(follower) => follower.observe(batch, span, &self.sealer),
        }
    }

    /// Counts packets that were not measured on purpose, at this moment.
    pub fn count_skipped(&mut self, reason: &str, packets: u64) {
        self.tally().skip(reason, packets);
    }

    /// Up to so many packets that passed within this time were not observed. Epochs that are not
    /// fetched yet say so. Where markers end epochs, time does not tell which epoch that was.
    pub fn note_missing(&mut self, packets: u64, within: Span) {
        if let Mode::Timed(timed) = &self.mode {
            self.missing.add(timed.epochs_near(within), packets);
        }
    }

    /// Every epoch may lack up to so many packets: it is known that they were not observed, and not
    /// when.
    pub fn expect_missing(&mut self, packets: u64) {
        self.missing.add((Epoch(i64::MIN), Epoch(i64::MAX)), packets);
    }

    /// Counts packets that the kernel dropped, as noticed at this moment.
    pub fn count_dropped(&mut self, packets: u64) {
        let tally = self.tally();
        tally.dropped = tally.dropped.saturating_add(packets);
    }

    /// Gives the meter the time on the point's clock, for segments that fall silent.
    ///
    /// When this meter sends markers, it is this call that ends an epoch: all packets observed
    /// before it lie before the marker.
    pub fn advance(&mut self, now: Timestamp) {
        match &mut self.mode {
            Mode::Timed(timed) => timed.advance(now, &mut self.sealer),
            Mode::Leader(leader) => leader.advance(now, &mut self.sealer),
            Mode::Follower(_) => {}
        }
    }

    /// The next sealed epoch, oldest first.
    pub fn poll(&mut self) -> Option<Sealed> {
        let mut sealed = self.poll_unsettled()?;
        sealed.settle();
        Some(sealed)
    }

    /// As [`poll`](Self::poll), for threads on the packet path: another thread calls
    /// [`Sealed::settle`] before anything else is done with it.
    pub fn poll_unsettled(&mut self) -> Option<Sealed> {
        let mut sealed = self.sealer.poll()?;
        let missing = self.missing.of(sealed.epoch);
        let tally = &mut sealed.tally;
        tally.missing_max = missing.filter(|&missing| missing > 0 || tally.dropped > 0);
        Some(sealed)
    }

    /// The next marker to send. It must follow all packets observed before the call of
    /// [`advance`](Self::advance) or [`finish`](Self::finish) that made it, and precede all
    /// packets observed later. A point that cannot hold packets back sends it on request, and
    /// cuts where it sees its own marker leave, as a follower of itself.
    pub fn poll_marker(&mut self) -> Option<Marker> {
        match &mut self.mode {
            Mode::Leader(leader) => leader.poll_marker(),
            Mode::Timed(_) | Mode::Follower(_) => None,
        }
    }

    /// A marker was seen after the packets observed so far and before those to come.
    pub fn observe_marker(&mut self, marker: &Marker) {
        match &mut self.mode {
            Mode::Follower(follower) => follower.observe_marker(marker, &mut self.sealer),
            Mode::Timed(_) | Mode::Leader(_) => self.sealer.counts.foreign_markers += 1,
        }
    }

    /// Seals everything that is open; one epoch for all time even if it is empty. Packets of these
    /// epochs that still come count as late.
    pub fn finish(&mut self) {
        match &mut self.mode {
            Mode::Timed(timed) => timed.finish(&mut self.sealer),
            Mode::Leader(leader) => leader.finish(&mut self.sealer),
            Mode::Follower(follower) => follower.finish(&mut self.sealer),
        }
    }

    /// What happened beside counting.
    #[must_use]
    pub const fn counts(&self) -> MeterCounts {
        self.sealer.counts
    }

    fn tally(&mut self) -> &mut Tally {
        match &mut self.mode {
            Mode::Timed(timed) => timed.tally(&mut self.sealer),
            Mode::Leader(leader) => leader.tally(&self.sealer),
            Mode::Follower(follower) => follower.tally(&self.sealer),
        }
    }
}

/// First and last time; a minimum and a maximum, which compile to vector code.
fn span_of(observations: &[Observation]) -> Option<Span> {
    let first = observations.first()?;
    Some(observations.iter().fold(Span::at(first.time), |span, seen| span.including(seen.time)))
}

#[cfg(test)]
mod tests;

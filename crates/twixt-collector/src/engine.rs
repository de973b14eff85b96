//! Sealed epochs of many points to estimates of many segments, as they come.
//!
//! Pure: no file, socket, thread or clock. Epochs are handed over with [`Engine::receive`], time
//! with [`Engine::advance`], and what there is to tell is fetched with [`Engine::poll`]. Whoever
//! drives it has made the epochs durable before, and writes [`Engine::concluded`] down after the
//! events are out; [`Engine::resume`] takes that up again, so that a replay of the raw epochs
//! tells nothing twice and forgets nothing.
//!
//! It does not know where epochs come from, nor how estimates are shown.

mod event;
mod series;

pub use event::{
    Conclusions, EngineCounts, EngineEvent, Gap, GapReason, MinuteSummary, PairEstimate,
    PointEstimate, Series, Warning, WarningKind,
};

use std::collections::{BTreeMap, VecDeque};

use twixt_measure::Sealed;
use twixt_model::{Delay, Epoch, PointId, Segment, Timestamp};
use twixt_synopsis::{ALGORITHMS, Algorithm, By, Estimator};

use series::PairSeries;

/// Most series (segment, class, algorithm, length of epoch) that are paired at a time. Epochs of
/// further ones are counted and left.
pub const SERIES_MAX: usize = 4096;

/// What an engine pairs, and how.
#[derive(Clone, Debug)]
pub struct EngineConfig {
    /// The segments that the operator named.
    pub segments: Vec<SegmentConfig>,
    /// Whether points that share packet digests become segments by themselves.
    pub discover: bool,
    /// How long after an epoch's end its halves are waited for.
    pub patience: Delay,
    /// Length of the stretches that estimates are summed up for.
    pub minute: Delay,
    /// How estimates are split up, by algorithms that can.
    pub by: By,
}

impl Default for EngineConfig {
    /// No segments, a patience of 5 s, minutes of 60 s.
    fn default() -> Self {
        Self {
            segments: Vec::new(),
            discover: false,
            patience: Delay::from_nanos(5_000_000_000),
            minute: Delay::from_nanos(60_000_000_000),
            by: By::All,
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

/// Pairs the epochs of all points.
#[derive(Debug)]
pub struct Engine {
    config: EngineConfig,
    pairs: BTreeMap<Series, PairSeries>, // at most SERIES_MAX
    now: Option<Timestamp>,
    events: VecDeque<EngineEvent>,
    counts: EngineCounts,
}

/// How far a series has come: what must be remembered across a restart, beside the raw epochs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Concluded {
    /// Which series; for a one-point algorithm both points are the same.
    pub series: Series,
    /// Everything up to this epoch was told.
    pub through: Epoch,
    /// Epochs beyond `through` that were told all the same.
    pub told: Vec<Epoch>,
    /// Minutes that began before this were summed up.
    pub summarised: Timestamp,
    /// Downstream's epochs have numbers larger by this, where its clock is that far ahead.
    pub realigned_epochs: Option<i64>,
    /// Raw epochs from this one on (of both points, by upstream's numbers) are needed to go on.
    pub replay_from: Epoch,
}

impl Engine {
    /// Nothing received yet.
    #[must_use]
    pub fn new(config: EngineConfig) -> Self {
        Self {
            config,
            pairs: BTreeMap::new(),
            now: None,
            events: VecDeque::new(),
            counts: EngineCounts::default(),
        }
    }

    /// Goes on where an engine was that concluded this: its raw epochs are handed over again,
    /// from [`Concluded::replay_from`] on.
    #[must_use]
    pub fn resume(config: EngineConfig, concluded: impl IntoIterator<Item = Concluded>) -> Self {
        let mut engine = Self::new(config);
        for concluded in concluded {
            let series = PairSeries::resumed(&engine.config, &concluded);
            engine.pairs.insert(concluded.series, series);
        }
        engine
    }

    /// How far every series has come. To be written down after all events are fetched and out.
    #[must_use]
    pub fn concluded(&self) -> Vec<Concluded> {
        self.pairs.iter().map(|(series, pair)| pair.concluded(series)).collect()
    }

    /// Takes an epoch of a point, in whatever order.
    pub fn receive(&mut self, sealed: Sealed) {
        self.counts.received += 1;
        let Some(algorithm) = algorithm_of(&sealed) else {
            self.counts.unknown_algorithm += 1;
            return;
        };
        match algorithm.estimator {
            Estimator::TwoPoint { .. } => self.receive_half(algorithm, sealed),
            _ => self.receive_whole(algorithm, &sealed),
        }
    }

    /// Tells the time. Epochs that did not come within the configured patience are given up.
    pub fn advance(&mut self, now: Timestamp) {
        self.now = Some(self.now.map_or(now, |before| before.max(now)));
        for (series, pair) in &mut self.pairs {
            pair.advance(now);
            pair.drain(series, &mut self.events, &mut self.counts);
        }
    }

    /// The next event. Epochs of a series come in order, but for what was refused.
    pub fn poll(&mut self) -> Option<EngineEvent> {
        self.events.pop_front()
    }

    /// What happened so far.
    #[must_use]
    pub const fn counts(&self) -> &EngineCounts {
        &self.counts
    }

    /// Hands a half to every segment that its point is an end of.
    fn receive_half(&mut self, algorithm: &'static Algorithm, sealed: Sealed) {
        let mut routes = self.routes(&sealed);
        let last = routes.pop();
        if last.is_none() {
            self.counts.unrouted += 1;
        }
        for segment in routes {
            self.hand_over(segment, algorithm, sealed.clone());
        }
        if let Some(segment) = last {
            self.hand_over(segment, algorithm, sealed);
        }
    }

    /// The segments that an epoch is a half of.
    fn routes(&self, sealed: &Sealed) -> Vec<Segment> {
        let mut routes: Vec<Segment> = Vec::new();
        for SegmentConfig { segment, class } in &self.config.segments {
            let is_end = |point: &PointId| *point == sealed.point;
            if class.as_ref().is_none_or(|class| *class == sealed.class)
                && (is_end(&segment.upstream) || is_end(&segment.downstream))
                && !routes.contains(segment)
            {
                routes.push(segment.clone());
            }
        }
        routes
    }

    fn hand_over(&mut self, segment: Segment, algorithm: &'static Algorithm, sealed: Sealed) {
        let series = Series {
            domain: sealed.domain.clone(),
            segment,
            class: sealed.class.clone(),
            algorithm: algorithm.name,
            tag: algorithm.tag,
            epoch_ns: sealed.rule.length_ns(),
        };
        if !self.pairs.contains_key(&series) && self.pairs.len() >= SERIES_MAX {
            self.counts.series_refused += 1;
            return;
        }
        let config = &self.config;
        let pair =
            self.pairs.entry(series.clone()).or_insert_with(|| PairSeries::new(config, &series));
        pair.receive(sealed);
        pair.drain(&series, &mut self.events, &mut self.counts);
    }

    /// A one-point algorithm tells at once what there is to tell.
    fn receive_whole(&mut self, algorithm: &'static Algorithm, sealed: &Sealed) {
        match PointEstimate::of(algorithm, sealed) {
            Ok(estimate) => self.events.push_back(EngineEvent::Observed(Box::new(estimate))),
            Err(_) => self.counts.unknown_algorithm += 1,
        }
    }
}

fn algorithm_of(sealed: &Sealed) -> Option<&'static Algorithm> {
    ALGORITHMS.iter().find(|algorithm| algorithm.tag == sealed.synopsis.tag())
}

//! The engine: routes epochs to the series that they belong to.

use std::collections::{BTreeMap, VecDeque};

use twixt_measure::Sealed;
use twixt_model::{Epoch, PointId, Segment, Timestamp};
use twixt_synopsis::{Algorithm, Estimator, by_tag};

use crate::clocks::{SegmentClock, SegmentClocks};
use crate::config::{EngineConfig, LateEpochs, SeriesProgress};
use crate::discovery::{Discovered, Discovery, PointOrder};
use crate::event::{EngineCounts, EngineEvent, Series, Warning, WarningKind};
use crate::late::EpochRanges;
use crate::point::PointSeries;
use crate::routes::{PointKey, Routes, SegmentKey};
use crate::sample::{PointSample, has_boundary_packets};
use crate::segment::SegmentPairs;

/// Most series (segment or point, class, algorithm, length of epoch) that are followed at a time.
/// Epochs of further ones are counted and left.
pub const SERIES_MAX: usize = 16_384;
/// Most series of one segment or point, in all domains and classes: one agent that goes mad leaves
/// room for the others.
pub const SERIES_PER_SEGMENT_MAX: usize = 64;
/// Most points, by class and length of epoch, whose packets near boundaries are kept.
pub const POINTS_MAX: usize = 4096;

/// Pairs the epochs of all points.
#[derive(Debug)]
pub struct Engine {
    config: EngineConfig,
    /// Together with `points` at most SERIES_MAX series.
    segments: BTreeMap<SegmentKey, SegmentPairs>,
    points: BTreeMap<Series, PointSeries>,
    /// How many series each segment has, and all together.
    series: BTreeMap<Segment, usize>,
    all_series: usize,
    /// How many samples each point has.
    sampled: BTreeMap<PointId, usize>,
    samples: BTreeMap<PointKey, PointSample>, // at most POINTS_MAX
    discovery: Discovery,
    /// The clocks of segments whose points keep samples.
    clocks: SegmentClocks,
    routes: Routes,
    /// Memory of epochs that wait for their other half.
    waiting_bytes: u64,
    output: Output,
}

/// What comes out.
#[derive(Debug, Default)]
pub(crate) struct Output {
    pub(crate) events: VecDeque<EngineEvent>,
    pub(crate) counts: EngineCounts,
}

impl Engine {
    /// Nothing received yet.
    #[must_use]
    pub fn new(config: EngineConfig) -> Self {
        Self {
            routes: Routes::new(&config.segments),
            config,
            segments: BTreeMap::new(),
            points: BTreeMap::new(),
            series: BTreeMap::new(),
            all_series: 0,
            sampled: BTreeMap::new(),
            samples: BTreeMap::new(),
            discovery: Discovery::default(),
            clocks: SegmentClocks::default(),
            waiting_bytes: 0,
            output: Output::default(),
        }
    }

    /// Continues where another engine was. The raw epochs are handed over again, from
    /// [`SeriesProgress::replay_from`] on.
    #[must_use]
    pub fn resume(
        config: EngineConfig,
        progress: impl IntoIterator<Item = SeriesProgress>,
    ) -> Self {
        let mut engine = Self::new(config);
        for progress in progress {
            let series = &progress.series;
            let Some(algorithm) = by_tag(series.tag) else { continue };
            if let Estimator::TwoPoint { .. } = algorithm.estimator {
                if !engine.resume_segment(series) {
                    continue;
                }
                let pairs = engine
                    .segments
                    .entry(SegmentKey::of(series))
                    .or_insert_with(|| SegmentPairs::new(series));
                pairs.resume(&engine.config, &progress);
            } else {
                let mut point = PointSeries::new(&engine.config, algorithm, series.clone());
                point.resume(&progress);
                engine.points.insert(series.clone(), point);
            }
            engine.admit(&progress.series.segment);
        }
        engine
    }

    /// Whether a series is still to be followed: its segment is configured, or was discovered.
    fn resume_segment(&mut self, series: &Series) -> bool {
        if self.routes.is_named(&series.segment, &series.class) {
            return true;
        }
        if self.config.discover {
            self.routes.discover(&series.domain, &series.segment, &series.class);
        }
        self.config.discover
    }

    /// How far every series has come. To be stored after all events are fetched and out.
    #[must_use]
    pub fn progress(&self) -> Vec<SeriesProgress> {
        let pairs = self.segments.values().flat_map(SegmentPairs::progress);
        pairs.chain(self.points.values().filter_map(PointSeries::progress)).collect()
    }

    /// Takes an epoch of a point, in whatever order.
    pub fn receive(&mut self, sealed: Sealed) {
        self.output.counts.received += 1;
        match sealed.synopsis.algorithm() {
            Some(algorithm) => match algorithm.estimator {
                Estimator::TwoPoint { .. } => self.receive_half(sealed),
                _ => self.receive_whole(algorithm, &sealed),
            },
            None => self.output.counts.unknown_algorithm += 1,
        }
    }

    /// Advances the time. Epochs that did not come within the configured patience are given up.
    pub fn advance(&mut self, now: Timestamp) {
        for (key, pairs) in &mut self.segments {
            let samples = key.samples(&self.samples);
            pairs.advance(now, self.config.patience, samples, &mut self.output);
        }
        self.waiting_bytes = self.segments.values().map(SegmentPairs::waiting_bytes).sum();
        for point in self.points.values_mut() {
            point.advance(now, &mut self.output);
        }
    }

    /// The next event. Epochs of a series come in order, but for what was refused.
    pub fn poll(&mut self) -> Option<EngineEvent> {
        let event = self.output.events.pop_front()?;
        if let EngineEvent::Estimated(pair) = &event {
            self.clocks.note(pair);
        }
        Some(event)
    }

    /// Epochs whose half came after they were concluded.
    #[must_use]
    pub fn late(&self) -> Vec<LateEpochs> {
        self.segments.values().flat_map(SegmentPairs::all_late).collect()
    }

    /// An epoch is stored, and handed over later unless it comes too late for that: then it is among
    /// [`late`](Self::late) from now on.
    pub fn note_stored(&mut self, sealed: &Sealed) {
        for segment in self.routes.of(sealed) {
            let series = Series::of(segment, sealed);
            if let Some(pairs) = self.segments.get_mut(&SegmentKey::of(&series)) {
                pairs.note_stored(series.tag, sealed);
            }
        }
    }

    /// A gap of a series was reported before a restart. Epochs that are concluded are among
    /// [`late`](Self::late) from now on; others are estimated late if both halves come.
    pub fn note_gap(&mut self, series: &Series, range: (Epoch, Epoch)) {
        let key = SegmentKey::of(series);
        let is_new = self.segments.get(&key).is_none_or(|pairs| !pairs.has(series.tag));
        if is_new && !(self.resume_segment(series) && self.admit(&series.segment)) {
            return;
        }
        let pairs = self.segments.entry(key).or_insert_with(|| SegmentPairs::new(series));
        pairs.note_gap(&self.config, series, range);
    }

    /// Epochs of a series were paired, or cannot be.
    pub fn settle_late(&mut self, series: &Series, (first, last): (Epoch, Epoch)) {
        if let Some(late) = self.late_of(series) {
            late.remove(first, last);
        }
    }

    fn late_of(&mut self, series: &Series) -> Option<&mut EpochRanges> {
        self.segments.get_mut(&SegmentKey::of(series))?.late(series.tag)
    }

    /// What samples of the last ten minutes tell of the clocks, segment by segment.
    #[must_use]
    pub fn clocks(&self) -> Vec<SegmentClock> {
        self.clocks.reports()
    }

    /// Memory of epochs that wait for their other half.
    #[must_use]
    pub const fn waiting_bytes(&self) -> u64 {
        self.waiting_bytes
    }

    /// What happened so far.
    #[must_use]
    pub const fn counts(&self) -> &EngineCounts {
        &self.output.counts
    }

    /// Hands a half to every segment that its point is an end of.
    fn receive_half(&mut self, sealed: Sealed) {
        self.sample(&sealed);
        let mut routes = self.routes.of(&sealed);
        let last = routes.pop();
        if last.is_none() {
            self.output.counts.unrouted += 1;
        }
        for segment in routes {
            self.hand_over(segment, sealed.clone());
        }
        if let Some(segment) = last {
            self.hand_over(segment, sealed);
        }
    }

    /// Keeps a few of the packets near its boundaries.
    fn sample(&mut self, sealed: &Sealed) {
        if !has_boundary_packets(sealed) {
            return;
        }
        let key = PointKey::of(sealed);
        if !self.samples.contains_key(&key) {
            let samples = self.sampled.entry(sealed.point.clone()).or_default();
            if self.samples.len() >= POINTS_MAX || *samples >= SERIES_PER_SEGMENT_MAX {
                self.output.counts.points_refused += 1;
                return;
            }
            *samples += 1;
        }
        let sample = self.samples.entry(key.clone()).or_insert_with(|| PointSample::of(sealed));
        let is_new = !sample.has(sealed.epoch);
        sample.add(sealed);
        if self.config.discover && is_new {
            let packets = sample.packets_of(sealed.epoch);
            let counts = &mut self.output.counts;
            for found in self.discovery.note(&key, sealed, &packets, counts) {
                self.announce(&key, found);
            }
        }
    }

    /// Follows a segment that was discovered, unless the operator named it.
    fn announce(&mut self, key: &PointKey, found: Discovered) {
        let Discovered { segment, direction, offset, digests } = found;
        let Segment { upstream, downstream } = segment.clone();
        let opposite = Segment { upstream: downstream.clone(), downstream: upstream.clone() };
        if [&segment, &opposite].into_iter().any(|of| self.routes.is_named(of, &key.class)) {
            return;
        }
        let common = format!("{upstream} and {downstream} have {digests} packets in common");
        let unknown = "direction unknown, so no estimates are made; configure the segment";
        let (kind, text) = match direction {
            PointOrder::Known if self.routes.discovered() < SERIES_MAX => {
                self.routes.discover(&key.domain, &segment, &key.class);
                self.output.counts.discovered += 1;
                let ms = offset.as_nanos() as f64 / 1e6;
                let text = format!("segment {segment} discovered: {common}, {ms:.3} ms apart");
                (WarningKind::Discovered, text)
            }
            PointOrder::Known => (WarningKind::Bound, format!("{common}: too many segments")),
            PointOrder::Both => {
                let text = format!("{common}, in both directions: {unknown}, by class");
                (WarningKind::DirectionUnknown, text)
            }
            PointOrder::ClocksTooPoor => {
                let text = format!(
                    "{common}, and the clocks do not show which point sees them first: \
                         {unknown}"
                );
                (WarningKind::DirectionUnknown, text)
            }
        };
        self.output.warn(kind, Some(&segment), text);
    }

    fn hand_over(&mut self, segment: Segment, sealed: Sealed) {
        let series = Series::of(segment, &sealed);
        let key = SegmentKey::of(&series);
        let is_new = self.segments.get(&key).is_none_or(|pairs| !pairs.has(series.tag));
        if is_new && !self.admit(&series.segment) {
            return;
        }
        let samples = key.samples(&self.samples);
        let pairs = self.segments.entry(key).or_insert_with(|| SegmentPairs::new(&series));
        let before = pairs.waiting_bytes();
        pairs.receive(&self.config, &series, sealed, samples, &mut self.output);
        let waiting = self.waiting_bytes.saturating_sub(before);
        self.waiting_bytes = waiting.saturating_add(pairs.waiting_bytes());
        self.bound_waiting();
    }

    /// Gives up epochs of the segments that take most, until the rest fits.
    fn bound_waiting(&mut self) {
        while self.waiting_bytes > self.config.waiting_bytes_max {
            let largest = self.segments.iter_mut().max_by_key(|(_, pairs)| pairs.waiting_bytes());
            let Some((key, pairs)) = largest else { return };
            let before = pairs.waiting_bytes();
            if !pairs.make_room(key.samples(&self.samples), &mut self.output) {
                return;
            }
            let waiting = self.waiting_bytes.saturating_sub(before);
            self.waiting_bytes = waiting.saturating_add(pairs.waiting_bytes());
        }
    }

    /// Whether there is room for another series of a segment.
    fn admit(&mut self, segment: &Segment) -> bool {
        let series = self.series.entry(segment.clone()).or_default();
        let has_room = self.all_series < SERIES_MAX && *series < SERIES_PER_SEGMENT_MAX;
        if has_room {
            *series += 1;
            self.all_series += 1;
        } else {
            self.output.counts.series_refused += 1;
        }
        has_room
    }

    /// Epochs of a one-point algorithm are reported at once.
    fn receive_whole(&mut self, algorithm: &'static Algorithm, sealed: &Sealed) {
        let point = sealed.point.clone();
        let segment = Segment { upstream: point.clone(), downstream: point };
        let series = Series::of(segment, sealed);
        if !self.points.contains_key(&series) && !self.admit(&series.segment) {
            return;
        }
        let config = &self.config;
        let point = self
            .points
            .entry(series.clone())
            .or_insert_with(|| PointSeries::new(config, algorithm, series));
        point.receive(sealed, &mut self.output);
    }
}

impl Output {
    pub(crate) fn warn(&mut self, kind: WarningKind, segment: Option<&Segment>, text: String) {
        self.counts.warnings += 1;
        let segment = segment.cloned();
        self.events.push_back(EngineEvent::Warning(Warning { kind, segment, text }));
    }
}

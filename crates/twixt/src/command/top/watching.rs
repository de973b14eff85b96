//! One point, live: round trips and the largest flows, by what `rtt` and `heavy` use.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

use anyhow::Context;
use twixt_capture::{Frame, SourceCounts};
use twixt_model::{
    DigestHash, DigestProfile, EpochRule, HeavyFlow, RoundTripEstimate, Scope, Span, Timestamp,
};
use twixt_observe::{PacketPath, PacketSink, SeenPacket, SynopsisFeed};
use twixt_synopsis::{Algorithm, Estimator, Question};
use twixt_top::{KindLine, News, PointLine, PointSeen};
use twixt_wire::{Digester, HashKey, Observer, Skip};

use super::super::heavy;
use super::super::rtt::{self, Watching};
use super::reason;
use crate::args::{AlgorithmArgs, Heavies, RoundTrips, TrafficArgs};
use crate::exit::usage;
use crate::frame_input::{FrameSource, OnePass, SoFar, SourceArgs};

/// Flows that are shown.
const FLOWS_MAX: usize = 500;

/// A point that is about to be read.
pub(super) struct Point {
    source: FrameSource,
    path: PacketPath<Both>,
}

impl Point {
    /// Opens what was named, before the terminal is taken over: what is wrong is reported.
    pub(super) fn open(source: &SourceArgs, traffic: &TrafficArgs) -> anyhow::Result<Self> {
        let default = match source.live.is_given() {
            true => rtt::DEFAULT_LIVE_ALGORITHM,
            false => rtt::DEFAULT_ALGORITHM,
        };
        let trips = AlgorithmArgs::<RoundTrips>::named(None, None).choose(default)?;
        let large = AlgorithmArgs::<Heavies>::named(None, None).choose(heavy::DEFAULT_ALGORITHM)?;
        let Estimator::RoundTrip { conclude, .. } = &trips.algorithm.estimator else {
            unreachable!("the registry lists algorithms for round trips under this purpose only");
        };
        let needs = trips.prototype.needs().or(large.prototype.needs());
        // Hashes never leave this command: a fixed key will do.
        let key = HashKey::from_seed(0);
        let digester = Digester::new(DigestProfile::Headers, DigestHash::Xxh3, 0, key);
        let observer = traffic.traffic()?.observer(needs, digester);
        let observer = observer.map_err(|error| usage(error.to_string()))?;
        let both = Both {
            trips: Watching::new(
                trips.prototype.duplicate(),
                conclude,
                EpochRule::WHOLE,
                Vec::new(),
            ),
            flows: SynopsisFeed::new(large.prototype.fresh()),
            large: large.algorithm,
        };
        let path = PacketPath::new(observer, both);
        Ok(Self { source: source.open()?.without_progress(), path })
    }

    pub(super) fn name(&self) -> String {
        self.source.name()
    }

    /// Reads until the end, or until it is stopped. Returns what knows how the source ended.
    pub(super) fn run(
        mut self,
        interval: Duration,
        news: &SyncSender<News>,
        stop: &AtomicBool,
    ) -> FrameSource {
        let mut telling = Telling { path: self.path, news, interval, told: Instant::now(), stop };
        let read = self.source.read(&mut telling);
        let ended = match &read {
            Ok(()) => self.source.ending().unwrap_or_else(|| "no more packets".to_owned()),
            Err(error) => reason(error),
        };
        let counts = self.source.counts();
        // Nobody is left to hear of a failure if the view has ended.
        let _ = match telling.seen(counts) {
            Ok(seen) => news.send(News::Point(PointSeen { ended: Some(ended), ..seen })),
            Err(error) => news.send(News::Failed(reason(&error))),
        };
        self.source
    }
}

/// What learns of every packet.
struct Both {
    trips: Watching<'static>,
    flows: SynopsisFeed,
    large: &'static Algorithm,
}

impl PacketSink for Both {
    #[inline(always)]
    fn take(&mut self, observer: &Observer, seen: SeenPacket<'_>) -> Result<(), Skip> {
        self.flows.push(observer, seen);
        self.trips.take(observer, seen)
    }
}

/// Tells what was seen, every so often.
struct Telling<'a> {
    path: PacketPath<Both>,
    news: &'a SyncSender<News>,
    interval: Duration,
    told: Instant,
    /// The view has ended.
    stop: &'a AtomicBool,
}

impl Telling<'_> {
    fn seen(&mut self, source: SourceCounts) -> anyhow::Result<PointSeen> {
        let counts = self.path.counts(source);
        let both = self.path.sink_mut();
        let trips = both.trips.so_far()?;
        let Estimator::Heavy(estimator) = &both.large.estimator else {
            unreachable!("the registry lists algorithms for large flows under this purpose only");
        };
        let question = Question::about(Span::at(Timestamp::from_nanos(0)));
        let flows = (estimator.conclude)(both.flows.synopsis(), &question);
        let flows = flows.context("cannot conclude the largest flows")?;
        Ok(PointSeen {
            packets: counts.packets,
            skipped: counts.skipped.values().sum(),
            dropped: counts.dropped,
            kinds: trips.iter().filter(|of| of.scope == Scope::All).map(kind_line).collect(),
            flows: flows.iter().take(FLOWS_MAX).map(flow_line).collect(),
            ended: None,
        })
    }
}

impl OnePass for Telling<'_> {
    #[inline(always)]
    fn take(&mut self, frame: &Frame<'_>) {
        self.path.take(frame);
    }

    fn has_enough(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn end_batch(&mut self, so_far: &SoFar) -> anyhow::Result<()> {
        if self.told.elapsed() >= self.interval {
            let seen = self.seen(so_far.counts)?;
            // Nobody takes it if the view has ended.
            let _ = self.news.send(News::Point(seen));
            self.told = Instant::now();
        }
        Ok(())
    }
}

fn kind_line(of: &RoundTripEstimate) -> KindLine {
    let part = of.part.map_or_else(String::new, |part| format!(" {part}"));
    let times_ns = of.times.as_ref().map(|times| {
        let at = |share: f64| {
            let found = times.percentiles.iter().find(|of| of.share == share);
            found.map(|of| of.time_ns)
        };
        (times.mean_ns, times.half_width_ns, [at(0.5), at(0.95), at(0.99)])
    });
    KindLine { name: format!("{}{part}", of.kind), measured: of.matched, times_ns }
}

fn flow_line(of: &HeavyFlow) -> PointLine {
    PointLine {
        name: of.key.to_string(),
        packets: of.packets,
        packets_at_least: of.packets_at_least,
        bytes: of.bytes,
    }
}

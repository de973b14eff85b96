//! One capture while it is read for measuring.

use twixt_capture::BatchEnd;
use twixt_measure::Cutting;
use twixt_measure::survey::{DelayRange, Edges, Place};
use twixt_model::{Delay, Needs, Side, SourceCounts, Span, Timestamp};
use twixt_observe::{LATENESS, Meters, MetersConfig, PacketPath, PacketSink, PathCounts};
use twixt_wire::{Observer, Skip, SkipCounts};

use crate::capture::Capture;
use crate::directory::Directory;
use crate::error::OfflineError;
use crate::flow_list::FlowSizes;
use crate::measured::{Files, segment};
use crate::pairs::Sent;
use crate::plan::Plan;
use crate::recollection::{Recalled, Replay};
use crate::report::{Pass, Progress, Remark, Reporter};
use crate::selection::{EndSink, Excerpt, ReadStage, StampSink};
use crate::stamps::Stamps;

/// How the meters of one end cut epochs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Boundaries {
    /// What the clock is ahead.
    pub(crate) shift: Delay,
    /// Half the width of the zone around boundaries; `None`: the default.
    pub(crate) guard: Option<Delay>,
    /// How long an epoch stays open for late packets after the next began.
    pub(crate) lateness: Delay,
}

impl Default for Boundaries {
    fn default() -> Self {
        Self { shift: Delay::ZERO, guard: None, lateness: LATENESS }
    }
}

/// One capture while it is read for measuring.
pub(crate) struct CaptureReading<'a> {
    pub(crate) capture: Capture,
    /// What is read instead, if enough was kept when the capture was read before.
    replay: Option<Replay<'a>>,
    pub(crate) path: PacketPath<EndSink<'a>>,
    ended: bool,
    /// Frames that are known to have been dropped, since the capture was read before.
    dropped: u64,
    /// It is known that frames come too late for their epochs, and which.
    expects_late: bool,
    /// Packets that were measured when the capture was read before: they are skipped in this read.
    measured_before: u64,
    /// Where it ends for us, if before its end.
    last: Option<Timestamp>,
    /// How far frames may be behind the latest before them.
    back: Delay,
}

impl Excerpt<'_> {
    fn observer(&self, plan: &Plan) -> Result<Observer, OfflineError> {
        let directions = Needs { flow: self.verdicts.is_some(), ..Needs::default() };
        let digester = plan.digest.digester_by(self.recognition);
        Ok(plan.traffic.observer(plan.needs().or(directions), digester)?)
    }

    fn open(&self, files: Files<'_>) -> Result<Capture, OfflineError> {
        Ok(Capture::open(match self.side {
            Side::Upstream => files.upstream,
            Side::Downstream => files.downstream,
        })?)
    }

    fn path<S: PacketSink>(&self, plan: &Plan, sink: S) -> Result<PacketPath<S>, OfflineError> {
        Ok(PacketPath::new(self.observer(plan)?, sink)
            .toward(plan.traffic.toward)
            .within(plan.traffic.within)
            .cutting(self.cuts.cloned())
            .following_markers(plan.cutting != Cutting::Timed))
    }

    /// Reads to the end, and keeps nothing but the times of packets. Delays usually lie in this range.
    pub(crate) fn stamps(
        &self,
        plan: &Plan,
        files: Files<'_>,
        usual: Option<DelayRange>,
        reporter: &dyn Reporter,
    ) -> Result<Stamps, OfflineError> {
        let mut capture = self.open(files)?;
        let progress = reporter.progress(Pass::Times, capture.size_bytes());
        let sink = StampSink { excerpt: *self, stamps: Stamps::default() };
        let mut path = self.path(plan, sink)?;
        capture.read_to_end(progress.as_ref(), |frame| path.take(&frame));
        let stamps = path.into_sink().stamps.sorted(usual.map(|range| (range.min, range.max)));
        stamps.report_refused(reporter);
        Ok(stamps)
    }
}

impl<'a> CaptureReading<'a> {
    /// Opens the capture of one end.
    pub(crate) fn new(
        plan: &Plan,
        files: Files<'_>,
        excerpt: Excerpt<'a>,
        boundaries: Boundaries,
    ) -> Result<Self, OfflineError> {
        let config = meters_config(plan, excerpt.side, boundaries, &excerpt.observer(plan)?);
        let meters = Meters::new(&config, &plan.prototypes())?;
        let mut sink = EndSink::new(excerpt, meters, plan.needs().detail);
        if excerpt.side == Side::Upstream && plan.notes_flows() {
            let asked_by = plan.algorithms.iter().map(|chosen| plan.asks_for_flows(chosen));
            let sizes_known = plan.flows.sizes == FlowSizes::Known;
            sink.directory = Some(Directory::new(plan.rule, asked_by.collect(), sizes_known));
        }
        let path = excerpt.path(plan, sink)?;
        Ok(Self {
            capture: excerpt.open(files)?,
            replay: None,
            path,
            ended: false,
            dropped: 0,
            expects_late: false,
            measured_before: 0,
            last: None,
            back: Delay::ZERO,
        })
    }

    /// Reads the capture again, with the same meters: another part of it, between other steps of a
    /// clock.
    pub(crate) fn going_on(
        self,
        plan: &Plan,
        files: Files<'_>,
        excerpt: Excerpt<'a>,
    ) -> Result<Self, OfflineError> {
        let measured_before = self.path.sink().meters.packets();
        let sink = self.path.into_sink().going_on(excerpt);
        let (capture, path) = (excerpt.open(files)?, excerpt.path(plan, sink)?);
        Ok(Self { capture, path, ended: false, measured_before, ..self })
    }

    /// Reads what was kept of the capture, if that is enough.
    pub(crate) fn recalling(self, plan: &Plan, recalled: Option<Recalled<'a>>) -> Self {
        let replay = recalled.map(|recalled| recalled.replay(plan, &self.path.sink().excerpt));
        Self { replay, ..self }
    }

    /// What the source counted.
    fn counts(&self) -> SourceCounts {
        match &self.replay {
            Some(replay) => replay.recalled().counts,
            None => self.capture.counts(),
        }
    }

    /// Whether the capture ended before its end.
    pub(crate) fn ended_early(&self) -> bool {
        match &self.replay {
            Some(replay) => replay.recalled().ended_early,
            None => self.capture.ended_early().is_some(),
        }
    }

    /// Frames are so far from being in order of time.
    pub(crate) fn expect_disorder(&mut self, back: Delay) {
        self.back = back;
    }

    /// Measures nothing beyond other edges, which end sooner, and not before what was read.
    pub(crate) fn end_at(&mut self, edges: &'a Edges) {
        let excerpt = &mut self.path.sink_mut().excerpt;
        excerpt.edges = Some(edges);
        self.last = Some(edges.last(excerpt.side));
    }

    /// So many frames were dropped while this was captured, at whatever time.
    pub(crate) fn expect_dropped(&mut self, dropped: u64) {
        self.dropped = dropped;
        self.path.sink_mut().meters.expect_missing(dropped);
    }

    /// So many frames will come when their epoch is sealed, which lacks them then.
    pub(crate) fn expect_late(
        &mut self,
        late: Option<(u64, Span)>,
        back: Delay,
        reporter: &dyn Reporter,
    ) {
        let Some((frames, within)) = late else { return };
        self.expects_late = true;
        self.path.sink_mut().meters.note_missing(frames, within);
        let path = self.capture.path().to_owned();
        reporter.remark(Remark::OutOfOrder { path, frames, back });
    }

    /// Reads on until a packet after `until` was seen, holding everything back.
    pub(crate) fn read_start(&mut self, until: Timestamp, progress: &dyn Progress) {
        self.path.sink_mut().stage = ReadStage::Start;
        while !self.ended && self.path.sink().latest <= until {
            self.read(progress);
        }
        self.path.sink_mut().stage = ReadStage::Middle;
    }

    /// Reads a batch, measuring what lies inside the overlap; false at the end.
    pub(crate) fn read_batch(&mut self, progress: &dyn Progress) -> bool {
        self.read(progress);
        self.path.sink_mut().advance();
        !self.ended
    }

    /// Measures or skips the packets held back at `place`, and measures those inside.
    pub(crate) fn release(&mut self, place: Place, keep: &[bool]) {
        let skipped = self.path.sink_mut().release(place, keep);
        self.path.count_skipped(&skipped);
    }

    /// Seals what is open, and says what was counted.
    pub(crate) fn finish(mut self, reporter: &dyn Reporter) -> (PathCounts, Vec<Sent>) {
        let source = self.counts();
        let mut counts = self.path.counts(source);
        let mut skipped = SkipCounts::default();
        for (skip, count) in self.path.skipped_with(source).iter() {
            let measured = if skip == Skip::OutsideStretch { self.measured_before } else { 0 };
            skipped.add(skip, count.saturating_sub(measured));
        }
        let named = skipped.iter().map(|(skip, count)| (skip.name().to_owned(), count));
        counts.skipped = named.collect();
        let sink = self.path.sink_mut();
        sink.meters.count_skipped(&skipped);
        let dropped = counts.dropped.unwrap_or(0);
        sink.meters.count_dropped(dropped);
        sink.meters.expect_missing(dropped.saturating_sub(self.dropped));
        sink.meters.finish();
        let sent = std::iter::from_fn(|| sink.poll()).collect();
        let refused = sink.directory.as_ref().map_or(0, Directory::refused);
        if refused > 0 {
            reporter.remark(Remark::FlowsRefused(refused));
        }
        let late = sink.meters.late_packets();
        if late > 0 && !self.expects_late {
            let path = self.capture.path().to_owned();
            reporter.remark(Remark::LatePackets { path, packets: late });
        }
        (PathCounts { packets: sink.meters.packets(), ..counts }, sent)
    }

    fn read(&mut self, progress: &dyn Progress) {
        let path = &mut self.path;
        let end = match &mut self.replay {
            Some(replay) => {
                progress.advance(replay.batch_bytes());
                replay.next_batch(path)
            }
            None => self.capture.read_batch(progress, |frame| path.take(&frame)),
        };
        let latest = self.path.sink().latest;
        let is_enough = self.last.is_some_and(|last| latest > last + self.back);
        self.ended = end == BatchEnd::End || is_enough;
    }
}

fn meters_config(
    plan: &Plan,
    side: Side,
    Boundaries { shift, guard, lateness }: Boundaries,
    observer: &Observer,
) -> MetersConfig {
    let segment = segment();
    let point = match side {
        Side::Upstream => segment.upstream,
        Side::Downstream => segment.downstream,
    };
    let (cutting, classes) = (plan.cutting.clone(), plan.class_names(observer));
    let digest = observer.digester().identity();
    MetersConfig {
        cut_when_matched: plan.cutting == Cutting::Timed,
        shift,
        guard,
        lateness,
        cutting,
        classes,
        ..MetersConfig::new(point, plan.rule, digest)
    }
}

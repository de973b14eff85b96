//! One capture while it is read for measuring.

use twixt_capture::BatchEnd;
use twixt_measure::Cutting;
use twixt_measure::survey::{Edges, Place, Verdicts};
use twixt_model::{Delay, Needs, Observation, TimeSource, Timestamp};
use twixt_observe::{LATENESS, Meters, MetersConfig, PacketPath, PacketSink, PointCounts};
use twixt_wire::{Digester, Observer, SkipCounts};

use super::correction::Correction;
use super::directory::Directory;
use super::pairs::Sent;
use super::selection::{EndSink, SegmentEnd, Selection, Stage, StampSink};
use super::stamps::Stamps;
use super::{Files, Plan, segment};
use crate::args::{Recognition, Sizes};
use crate::exit::{note, usage};
use crate::input::Capture;
use crate::output::units;
use crate::progress::Progress;

/// What is read of one end of the segment.
#[derive(Clone, Copy)]
pub(super) struct Excerpt<'a> {
    pub(super) end: SegmentEnd,
    /// How packets are recognised.
    pub(super) recognition: Recognition,
    /// The directions of flows; every packet goes downstream if `None`.
    pub(super) verdicts: Option<&'a Verdicts>,
    /// The common stretch; everything if `None`.
    pub(super) edges: Option<&'a Edges>,
}

/// How the meters of one end cut epochs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Boundaries {
    /// What the clock is ahead.
    pub(super) shift: Delay,
    /// Half the width of the zone around boundaries; `None`: the default.
    pub(super) guard: Option<Delay>,
}

/// One capture while it is read for measuring.
pub(super) struct Reading<'a> {
    capture: Capture,
    path: PacketPath<EndSink<'a>>,
    /// Packets held back that do not count after all.
    released: SkipCounts,
    ended: bool,
}

impl<'a> Excerpt<'a> {
    fn observer(&self, plan: &Plan<'_>) -> anyhow::Result<Observer> {
        let directions = Needs { flow: self.verdicts.is_some(), ..Needs::default() };
        let digester = plan.digest.digester(self.recognition);
        plan.traffic.observer(plan.needs().or(directions), digester)
    }

    fn open(&self, files: Files<'_>) -> anyhow::Result<Capture> {
        Capture::open(match self.end {
            SegmentEnd::Upstream => files.upstream,
            SegmentEnd::Downstream => files.downstream,
        })
    }

    fn path<S: PacketSink>(&self, plan: &Plan<'_>, sink: S) -> anyhow::Result<PacketPath<S>> {
        Ok(PacketPath::new(self.observer(plan)?, sink)
            .toward(plan.traffic.toward)
            .following_markers(plan.cutting != Cutting::Timed))
    }

    const fn selection(&self) -> Selection<'a> {
        Selection { end: self.end, verdicts: self.verdicts, edges: self.edges }
    }

    /// Reads to the end, and keeps nothing but the times of packets.
    pub(super) fn stamps(&self, plan: &Plan<'_>, files: Files<'_>) -> anyhow::Result<Stamps> {
        let mut capture = self.open(files)?;
        let progress = Progress::new(capture.size_bytes());
        let sink = StampSink { selection: self.selection(), stamps: Stamps::default() };
        let mut path = self.path(plan, sink)?;
        while capture.read_batch(&progress, |frame| path.take(&frame)) == BatchEnd::More {}
        let stamps = path.into_sink().stamps.sorted();
        if stamps.refused() > 0 {
            let refused = units::count(stamps.refused());
            note(format_args!("the send times of {refused} packets could not be kept"));
        }
        Ok(stamps)
    }
}

impl<'a> Reading<'a> {
    /// Opens the capture of one end.
    pub(super) fn new(
        plan: &Plan<'_>,
        files: Files<'_>,
        excerpt: Excerpt<'a>,
        boundaries: Boundaries,
    ) -> anyhow::Result<Self> {
        let config = meters_config(plan, excerpt.end, boundaries, &excerpt.observer(plan)?);
        let meters =
            Meters::new(&config, &plan.prototypes()).map_err(|error| usage(error.to_string()))?;
        let mut sink = EndSink::new(excerpt.selection(), meters, plan.needs().detail);
        if excerpt.end == SegmentEnd::Upstream && plan.notes_flows() {
            let asked_by = plan.algorithms.iter().map(|chosen| plan.asks_for_flows(chosen));
            let sizes_known = plan.flows.sizes == Sizes::Known;
            sink.directory = Some(Directory::new(plan.rule, asked_by.collect(), sizes_known));
        }
        let path = excerpt.path(plan, sink)?;
        let released = SkipCounts::default();
        Ok(Self { capture: excerpt.open(files)?, path, released, ended: false })
    }

    /// Hands every packet the time at which it was sent.
    pub(super) fn with_stamps(mut self, stamps: Option<Stamps>) -> Self {
        self.path.sink_mut().stamps = stamps;
        self
    }

    /// Puts the clock right; which packets count is decided by what it showed.
    pub(super) fn with_correction(mut self, correction: Option<Correction>) -> Self {
        self.path.sink_mut().correction = correction;
        self
    }

    /// The capture that is read.
    pub(super) const fn capture(&self) -> &Capture {
        &self.capture
    }

    /// When the first packet was seen.
    pub(super) const fn first(&self) -> Option<Timestamp> {
        self.path.sink().first()
    }

    /// Reads on until a packet after `until` was seen, holding everything back.
    pub(super) fn read_start(&mut self, until: Timestamp, progress: &Progress) {
        self.path.sink_mut().enter(Stage::Start);
        while !self.ended && self.path.sink().latest() <= until {
            self.read(progress);
        }
        self.path.sink_mut().enter(Stage::Middle);
    }

    /// Reads a batch, measuring what lies inside the stretch; false at the end.
    pub(super) fn read_batch(&mut self, progress: &Progress) -> bool {
        self.read(progress);
        self.path.sink_mut().advance();
        !self.ended
    }

    /// The next sealed epoch.
    pub(super) fn poll(&mut self) -> Option<Sent> {
        self.path.sink_mut().poll()
    }

    /// Computes digests and flow hashes.
    pub(super) const fn digester(&self) -> &Digester {
        self.path.observer().digester()
    }

    /// Packets held back at one end of the stretch.
    pub(super) fn held_at(&self, place: Place) -> impl Iterator<Item = Observation> {
        self.path.sink().held_at(place)
    }

    /// Packets that could not be held back.
    pub(super) const fn held_refused(&self) -> u64 {
        self.path.sink().held_refused()
    }

    /// Measures or skips the packets held back at `place`, and measures those inside.
    pub(super) fn release(&mut self, place: Place, keep: &[bool]) {
        let skipped = self.path.sink_mut().release(place, keep);
        skipped.iter().for_each(|(skip, count)| self.released.add(skip, count));
    }

    /// Seals what is open, and says what was counted.
    pub(super) fn finish(mut self) -> (PointCounts, Vec<Sent>) {
        let source = self.capture.file().counts();
        let mut skipped = self.path.skipped_with(source);
        self.released.iter().for_each(|(skip, count)| skipped.add(skip, count));
        let sink = self.path.sink_mut();
        sink.meters.count_skipped(&skipped);
        sink.meters.finish();
        let sent = std::iter::from_fn(|| sink.poll()).collect();
        note_refused_flows(sink.directory.as_ref());
        let counts = PointCounts {
            packets: sink.meters.packets(),
            skipped: skipped.iter().map(|(skip, count)| (skip.name().to_owned(), count)).collect(),
            dropped: source.dropped,
        };
        (counts, sent)
    }

    fn read(&mut self, progress: &Progress) {
        let path = &mut self.path;
        let end = self.capture.read_batch(progress, |frame| path.take(&frame));
        self.ended = end == BatchEnd::End;
    }
}

fn meters_config(
    plan: &Plan<'_>,
    end: SegmentEnd,
    Boundaries { shift, guard }: Boundaries,
    observer: &Observer,
) -> MetersConfig {
    let segment = segment();
    MetersConfig {
        domain: String::new(),
        point: match end {
            SegmentEnd::Upstream => segment.upstream,
            SegmentEnd::Downstream => segment.downstream,
        },
        run: 0,
        rule: plan.rule,
        shift,
        guard,
        lateness: LATENESS,
        digest: observer.digester().identity(),
        time_source: TimeSource::File,
        cutting: plan.cutting.clone(),
        classes: plan.class_names(observer),
    }
}

fn note_refused_flows(directory: Option<&Directory>) {
    let refused = directory.map_or(0, Directory::refused);
    if refused > 0 {
        note(format_args!(
            "{} packets belong to flows beyond the number that is told apart: nothing is said of these",
            units::count(refused)
        ));
    }
}

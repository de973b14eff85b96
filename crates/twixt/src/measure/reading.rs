//! One capture while it is read for measuring.

use twixt_capture::{BatchEnd, Frame};
use twixt_measure::Cutting;
use twixt_measure::survey::{Edges, Heading, Place, Verdicts};
use twixt_model::{Delay, Detail, Needs, Observation, Prefix, TimeSource, Timestamp};
use twixt_wire::{Digester, FrameBytes, LinkType, Observer, Packet, Skip, SkipCounts};

use super::correction::Correction;
use super::directory::Directory;
use super::first_read::flow_ends;
use super::pairs::Sent;
use super::stamps::Stamps;
use super::{Files, LATENESS, Meters, Plan, PointCounts, Setting, is_timeless, marker_in, segment};
use crate::args::{Recognition, Sizes};
use crate::exit::{note, usage};
use crate::input::Capture;
use crate::output::units;
use crate::progress::Progress;

/// Which end of the segment a capture is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Upstream,
    Downstream,
}

/// Which packets count.
pub(super) struct Select<'a> {
    /// The directions of flows; every packet goes downstream if `None`.
    pub(super) verdicts: Option<&'a Verdicts>,
    /// The common stretch; everything if `None`.
    pub(super) edges: Option<&'a Edges>,
    /// Only packets for this prefix.
    pub(super) toward: Option<Prefix>,
}

/// One capture while it is read for measuring.
pub(super) struct Reading<'a> {
    capture: Capture,
    taking: Taking<'a>,
    ended: bool,
}

/// What happens to its frames.
struct Taking<'a> {
    end: End,
    observer: Observer,
    select: Select<'a>,
    meters: Meters,
    directory: Option<Directory>,
    /// When packets were sent, if an algorithm wants to know.
    stamps: Option<Stamps>,
    /// What puts the clock right, if it should be.
    correction: Option<Correction>,
    /// By algorithm, whether it must be told the flows.
    asks_for_flows: Vec<bool>,
    sizes_known: bool,
    skipped: SkipCounts,
    held: Vec<Held>,
    held_refused: u64,
    first: Option<Timestamp>,
    latest: Timestamp,
    follows_markers: bool,
}

/// A packet near an end of the stretch, or beyond the start while that is not yet sorted out.
struct Held {
    place: Place,
    observation: Observation,
    detail: Option<Detail>,
}

/// Packets held back at most, about 100 bytes each.
const HELD_MAX: usize = 1 << 21;

impl<'a> Reading<'a> {
    /// Opens the capture of one end.
    pub(super) fn new(
        plan: &Plan<'_>,
        files: Files<'_>,
        end: End,
        recognition: Recognition,
        select: Select<'a>,
    ) -> anyhow::Result<Self> {
        let path = match end {
            End::Upstream => files.upstream,
            End::Downstream => files.downstream,
        };
        let needs = plan.needs();
        let needs = Needs { flow: needs.flow || select.verdicts.is_some(), ..needs };
        let taking = Taking {
            end,
            observer: plan.traffic.observer(needs, plan.digest.digester(recognition))?,
            select,
            meters: Meters::default(),
            directory: (end == End::Upstream && plan.notes_flows())
                .then(|| Directory::new(plan.rule)),
            stamps: None,
            correction: None,
            asks_for_flows: plan
                .algorithms
                .iter()
                .map(|chosen| plan.asks_for_flows(chosen))
                .collect(),
            sizes_known: plan.flows.sizes == Sizes::Known,
            skipped: SkipCounts::default(),
            held: Vec::new(),
            held_refused: 0,
            first: None,
            latest: Timestamp::MIN,
            follows_markers: plan.cutting != Cutting::Timed,
        };
        Ok(Self { capture: Capture::open(path)?, taking, ended: false })
    }

    /// Sets up the meters; `shift` is what the clock is ahead, for cutting epochs.
    pub(super) fn with_meters(
        mut self,
        plan: &Plan<'_>,
        shift: Delay,
        guard: Option<Delay>,
    ) -> anyhow::Result<Self> {
        let observer = &self.taking.observer;
        let segment = segment();
        let setting = Setting {
            domain: String::new(),
            point: match self.taking.end {
                End::Upstream => segment.upstream,
                End::Downstream => segment.downstream,
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
        };
        self.taking.meters =
            Meters::new(&setting, &plan.prototypes()).map_err(|error| usage(error.to_string()))?;
        Ok(self)
    }

    /// Hands every packet the time at which it was sent.
    pub(super) fn with_stamps(mut self, stamps: Option<Stamps>) -> Self {
        self.taking.stamps = stamps;
        self
    }

    /// Puts the clock right; which packets count is decided by what it showed.
    pub(super) fn with_correction(mut self, correction: Option<Correction>) -> Self {
        self.taking.correction = correction;
        self
    }

    /// Reads to the end, and keeps nothing but the times of packets.
    pub(super) fn into_stamps(mut self) -> Stamps {
        let progress = Progress::new(self.capture.size_bytes());
        let stamps = Stamps::of(|note| {
            while !self.ended {
                self.read(&progress, |_, _, _, (packet, _)| note(&packet));
            }
        });
        if stamps.refused() > 0 {
            let refused = units::count(stamps.refused());
            note(format_args!("the send times of {refused} packets could not be kept"));
        }
        stamps
    }

    /// The capture that is read.
    pub(super) const fn capture(&self) -> &Capture {
        &self.capture
    }

    /// When the first packet was seen.
    pub(super) const fn first(&self) -> Option<Timestamp> {
        self.taking.first
    }

    /// Reads on until a packet after `until` was seen, holding everything back.
    pub(super) fn read_start(&mut self, until: Timestamp, progress: &Progress) {
        while !self.ended && self.taking.latest <= until {
            self.read(progress, Taking::hold);
        }
    }

    /// Reads a batch, measuring what lies inside the stretch; false at the end.
    pub(super) fn read_batch(&mut self, progress: &Progress) -> bool {
        self.read(progress, |taking, place, frame, packet| match place {
            Place::End => taking.hold(place, frame, packet),
            // What is late for the start, which is sorted out already, counts as inside.
            _ => taking.measure(frame, packet),
        });
        // Packets held back at the end are still to come: their epochs must stay open.
        let until = match (self.taking.select.edges, self.taking.end) {
            (None, _) => Timestamp::MAX,
            (Some(edges), End::Upstream) => edges.end_from().0,
            (Some(edges), End::Downstream) => edges.end_from().1,
        };
        let reached = self.taking.corrected(self.taking.latest.min(until));
        self.taking.meters.advance(reached);
        !self.ended
    }

    /// The next sealed epoch.
    pub(super) fn poll(&mut self) -> Option<Sent> {
        self.taking.poll()
    }

    /// Computes digests and flow hashes.
    pub(super) const fn digester(&self) -> &Digester {
        self.taking.observer.digester()
    }

    /// Packets held back at one end of the stretch.
    pub(super) fn held_at(&self, place: Place) -> impl Iterator<Item = Observation> {
        self.taking.held.iter().filter(move |held| held.place == place).map(|held| held.observation)
    }

    /// Packets that could not be held back.
    pub(super) const fn held_refused(&self) -> u64 {
        self.taking.held_refused
    }

    /// Measures or skips the packets held back at `place`, and measures those inside.
    pub(super) fn release(&mut self, place: Place, keep: &[bool]) {
        let taking = &mut self.taking;
        let mut keep = keep.iter();
        for held in std::mem::take(&mut taking.held) {
            let counts = match held.place {
                found if found == place => *keep.next().expect("there is a verdict for each"),
                Place::Inside => true,
                _ => {
                    taking.held.push(held);
                    continue;
                }
            };
            match (counts, held.detail) {
                (false, _) => taking.skipped.count(Skip::OutsideStretch),
                (true, detail) => taking.push(held.observation, detail),
            }
        }
    }

    /// Seals what is open, and says what was counted.
    pub(super) fn finish(mut self) -> (PointCounts, Vec<Sent>) {
        let taking = &mut self.taking;
        taking.skipped.add(Skip::NoTime, self.capture.file().counts().skipped());
        taking.meters.count_skipped(&taking.skipped);
        taking.meters.finish();
        let sent = std::iter::from_fn(|| taking.poll()).collect();
        taking.note_refused_flows();
        let counts = PointCounts {
            packets: taking.meters.packets(),
            skipped: taking
                .skipped
                .iter()
                .map(|(skip, count)| (skip.name().to_owned(), count))
                .collect(),
            dropped: self.capture.file().counts().dropped,
        };
        (counts, sent)
    }

    fn read(
        &mut self,
        progress: &Progress,
        each: impl Fn(&mut Taking<'a>, Place, &Frame<'_>, (Observation, Packet)),
    ) {
        let taking = &mut self.taking;
        let end = self.capture.read_batch(progress, |frame| match taking.select(&frame) {
            Ok((place, packet)) => each(taking, place, &frame, packet),
            Err(skip) => taking.skipped.count(skip),
        });
        self.ended = end == BatchEnd::End;
    }
}

impl Taking<'_> {
    /// Whether, and where in the stretch, a frame counts.
    fn select(&mut self, frame: &Frame<'_>) -> Result<(Place, (Observation, Packet)), Skip> {
        if is_timeless(frame.time) {
            return Err(Skip::NoTime);
        }
        self.latest = self.latest.max(frame.time);
        let link = LinkType(frame.link_type);
        if self.follows_markers
            && let Some(marker) = marker_in(link, frame.bytes, frame.wire_length)
        {
            self.meters.observe_marker(&marker);
            return Err(Skip::Marker);
        }
        let bytes = FrameBytes::within(frame.memory, frame.bytes.len());
        let (observation, packet) =
            self.observer.observe_packet(link, bytes, frame.wire_length, frame.time)?;
        if self.select.toward.is_some_and(|prefix| !prefix.contains(packet.destination())) {
            return Err(Skip::WrongDirection);
        }
        if let Some(verdicts) = self.select.verdicts {
            match verdicts.heading(observation.flow, || flow_ends(&self.observer, &packet)) {
                Some(Heading::Downstream) => {}
                Some(Heading::Upstream) => return Err(Skip::WrongDirection),
                None => return Err(Skip::DirectionUnknown),
            }
        }
        self.first.get_or_insert(frame.time);
        match self.place(frame.time) {
            Place::Outside => Err(Skip::OutsideStretch),
            place => Ok((place, (observation, packet))),
        }
    }

    fn place(&self, time: Timestamp) -> Place {
        match (self.select.edges, self.end) {
            (None, _) => Place::Inside,
            (Some(edges), End::Upstream) => edges.upstream(time),
            (Some(edges), End::Downstream) => edges.downstream(time),
        }
    }

    fn measure(&mut self, frame: &Frame<'_>, (observation, packet): (Observation, Packet)) {
        let detail = self.observer.needs().detail.then(|| packet.detail(frame.bytes));
        self.push(observation, detail);
    }

    fn corrected(&self, time: Timestamp) -> Timestamp {
        self.correction.as_ref().map_or(time, |correction| correction.apply(time))
    }

    fn push(&mut self, observation: Observation, detail: Option<Detail>) {
        let observation = Observation { time: self.corrected(observation.time), ..observation };
        let Some(detail) = detail else { return self.meters.push(observation) };
        if let Some(directory) = &mut self.directory {
            directory.note(&observation, detail.key);
        }
        let sent = self.stamps.as_mut().and_then(|stamps| stamps.take(observation.digest));
        self.meters.push_detailed(observation, Detail { sent, ..detail });
    }

    fn poll(&mut self) -> Option<Sent> {
        let (algorithm, sealed) = self.meters.poll()?;
        let directory = self.directory.as_mut().filter(|_| self.asks_for_flows[algorithm]);
        let flows = directory.map(|directory| directory.take(sealed.epoch, self.sizes_known));
        Some(Sent { algorithm, sealed, flows })
    }

    fn note_refused_flows(&self) {
        let refused = self.directory.as_ref().map_or(0, Directory::refused);
        if refused > 0 {
            note(format_args!(
                "{} packets belong to flows beyond the number that is told apart: nothing is said of these",
                units::count(refused)
            ));
        }
    }

    fn hold(
        &mut self,
        place: Place,
        frame: &Frame<'_>,
        (observation, packet): (Observation, Packet),
    ) {
        if self.held.len() >= HELD_MAX {
            self.held_refused += 1;
            return self.measure(frame, (observation, packet));
        }
        let detail = self.observer.needs().detail.then(|| packet.detail(frame.bytes));
        self.held.push(Held { place, observation, detail });
    }
}

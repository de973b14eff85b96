//! Which packets of two captures count, and what becomes of them: the policy that two captures plug
//! into the packet path.

use std::net::IpAddr;
use std::sync::Arc;

use twixt_measure::Marker;
use twixt_measure::survey::{Edges, FlowEnds, Heading, Place, Verdicts};
use twixt_model::{Detail, FlowKey, Observation, Side, Timestamp};
use twixt_observe::{Meters, PacketSink, SeenPacket};
use twixt_wire::{Cuts, Observer, Packet, Skip, SkipCounts};

use crate::correction::Correction;
use crate::directory::Directory;
use crate::pairs::Sent;
use crate::plan::Recognition;
use crate::stamps::Stamps;

/// Which packets of one end of the segment count.
#[derive(Clone, Copy)]
pub(crate) struct Excerpt<'a> {
    pub(crate) side: Side,
    /// How packets are recognised.
    pub(crate) recognition: Recognition,
    /// Where TCP segments are cut.
    pub(crate) cuts: Option<&'a Arc<Cuts>>,
    /// The directions of flows; every packet goes downstream if `None`.
    pub(crate) verdicts: Option<&'a Verdicts>,
    /// The overlap of the captures; everything if `None`.
    pub(crate) edges: Option<&'a Edges>,
}

/// Packets of one end of a segment on their way to meters.
pub(crate) struct EndSink<'a> {
    pub(crate) excerpt: Excerpt<'a>,
    pub(crate) meters: Meters,
    /// The flows that passed, for algorithms that need a list.
    pub(crate) directory: Option<Directory>,
    /// When packets were sent, if an algorithm wants to know.
    pub(crate) stamps: Option<Stamps>,
    /// What puts the clock right, if it should be.
    pub(crate) correction: Option<Correction>,
    /// Frames outside the overlap say nothing of how far the capture was read: a clock that was set
    /// shows their times before or after.
    pub(crate) jumps: bool,
    /// Details are read.
    pub(crate) detailed: bool,
    pub(crate) stage: ReadStage,
    held: Vec<HeldPacket>,
    /// Their details, if details are read: of each, in the same order.
    held_details: Vec<Detail>,
    /// Packets that could not be held back.
    pub(crate) held_refused: u64,
    /// Time of the first packet.
    pub(crate) first: Option<Timestamp>,
    /// Latest time of any frame.
    pub(crate) latest: Timestamp,
}

/// How far a capture is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadStage {
    /// Near the start of the overlap: everything is held back.
    Start,
    /// Beyond it: what lies near the end of the overlap is held back.
    Middle,
}

/// A packet near an end of the overlap, or beyond the start while that is not yet sorted out.
struct HeldPacket {
    place: Place,
    observation: Observation,
}

/// Packets held back at most, about 100 bytes each.
const HELD_MAX: usize = 1 << 21;

impl Excerpt<'_> {
    /// Whether, and where in the overlap, a packet counts; `heading` is asked unless all go downstream.
    #[inline]
    pub(crate) fn place(
        &self,
        heading: impl FnOnce() -> Option<Heading>,
        time: Timestamp,
    ) -> Result<Place, Skip> {
        if self.verdicts.is_some() {
            match heading() {
                Some(Heading::Downstream) => {}
                Some(Heading::Upstream) => return Err(Skip::WrongDirection),
                None => return Err(Skip::DirectionUnknown),
            }
        }
        let place = match (self.edges, self.side) {
            (None, _) => Place::Inside,
            (Some(edges), Side::Upstream) => edges.upstream(time),
            (Some(edges), Side::Downstream) => edges.downstream(time),
        };
        match place {
            Place::Outside => Err(Skip::OutsideStretch),
            place => Ok(place),
        }
    }

    /// The same of a packet that was just read.
    fn place_of(&self, observer: &Observer, seen: &SeenPacket<'_>) -> Result<Place, Skip> {
        let ends = || flow_ends(observer, seen.packet);
        let heading = || self.verdicts?.heading(seen.observation.flow, ends);
        self.place(heading, seen.frame.time)
    }

    /// From when on packets are held back at the end of the overlap.
    fn end_from(&self) -> Timestamp {
        match (self.edges, self.side) {
            (None, _) => Timestamp::MAX,
            (Some(edges), Side::Upstream) => edges.end_from().0,
            (Some(edges), Side::Downstream) => edges.end_from().1,
        }
    }
}

impl<'a> EndSink<'a> {
    /// Nothing seen yet.
    pub(crate) fn new(excerpt: Excerpt<'a>, meters: Meters, detailed: bool) -> Self {
        Self {
            excerpt,
            meters,
            directory: None,
            stamps: None,
            correction: None,
            jumps: false,
            detailed,
            stage: ReadStage::Middle,
            held: Vec::new(),
            held_details: Vec::new(),
            held_refused: 0,
            first: None,
            latest: Timestamp::MIN,
        }
    }

    /// The same meters, which go on with another part of the captures.
    pub(crate) fn going_on(self, excerpt: Excerpt<'a>) -> Self {
        let Self { meters, directory, detailed, held_refused, .. } = self;
        Self { directory, held_refused, ..Self::new(excerpt, meters, detailed) }
    }

    /// Seals what is over. Packets held back at the end are still to come: their epochs stay open.
    pub(crate) fn advance(&mut self) {
        if self.latest == Timestamp::MIN {
            return; // No frame yet that says how far the capture was read.
        }
        let reached = self.corrected(self.latest.min(self.excerpt.end_from()));
        self.meters.advance(reached);
    }

    /// Packets held back at one end of the overlap.
    pub(crate) fn held_at(&self, place: Place) -> impl Iterator<Item = Observation> {
        self.held.iter().filter(move |held| held.place == place).map(|held| held.observation)
    }

    /// Measures or skips the packets held back at `place`, and measures those inside. Counts what
    /// is skipped.
    pub(crate) fn release(&mut self, place: Place, keep: &[bool]) -> SkipCounts {
        let (mut keep, mut skipped) = (keep.iter(), SkipCounts::default());
        let mut details = std::mem::take(&mut self.held_details).into_iter();
        for held in std::mem::take(&mut self.held) {
            let detail = details.next();
            let counts = match held.place {
                found if found == place => *keep.next().expect("there is a verdict for each"),
                Place::Inside => true,
                _ => {
                    self.held.push(held);
                    self.held_details.extend(detail);
                    continue;
                }
            };
            match counts {
                false => skipped.count(Skip::OutsideStretch),
                true => self.push(held.observation, detail),
            }
        }
        skipped
    }

    /// The next sealed epoch.
    pub(crate) fn poll(&mut self) -> Option<Sent> {
        let (algorithm, sealed) = self.meters.poll()?;
        let directory = self.directory.as_mut();
        let flows = directory.and_then(|directory| directory.take(algorithm, sealed.epoch));
        Some(Sent { algorithm, sealed, flows })
    }

    fn corrected(&self, time: Timestamp) -> Timestamp {
        self.correction.as_ref().map_or(time, |correction| correction.apply(time))
    }

    fn push(&mut self, observation: Observation, detail: Option<Detail>) {
        let Some(detail) = detail else { return self.push_bare(observation) };
        let observation = Observation { time: self.corrected(observation.time), ..observation };
        if let Some(directory) = &mut self.directory {
            directory.note(&observation, detail.key);
        }
        let sent =
            self.stamps.as_mut().and_then(|stamps| stamps.of(observation.digest, observation.time));
        self.meters.push_detailed(observation, Detail { sent, ..detail });
    }

    #[inline]
    fn push_bare(&mut self, observation: Observation) {
        let time = self.corrected(observation.time);
        self.meters.push(Observation { time, ..observation });
    }

    /// Takes a packet that was read before.
    #[inline]
    pub(crate) fn recall(
        &mut self,
        observation: Observation,
        heading: impl FnOnce() -> Option<Heading>,
        key: impl FnOnce() -> FlowKey,
    ) -> Result<(), Skip> {
        let place = self.excerpt.place(heading, observation.time)?;
        self.first.get_or_insert(observation.time);
        if self.detailed {
            let detail = Detail { key: key(), ..Detail::default() };
            self.hold_or_push(place, observation, Some(detail));
        } else if self.is_held(place) {
            self.held.push(HeldPacket { place, observation });
        } else {
            self.push_bare(observation);
        }
        Ok(())
    }

    fn hold_or_push(&mut self, place: Place, observation: Observation, detail: Option<Detail>) {
        match self.is_held(place) {
            true => {
                self.held.push(HeldPacket { place, observation });
                self.held_details.extend(detail);
            }
            false => self.push(observation, detail),
        }
    }

    /// Whether a packet of this place waits until both captures have been read so far.
    fn is_held(&mut self, place: Place) -> bool {
        let is_held = match self.stage {
            ReadStage::Start => true,
            // What is late for the start, which is sorted out already, counts as inside.
            ReadStage::Middle => place == Place::End,
        };
        let is_full = self.held.len() >= HELD_MAX;
        self.held_refused += u64::from(is_held && is_full);
        is_held && !is_full
    }
}

impl PacketSink for EndSink<'_> {
    #[inline]
    fn see(&mut self, time: Timestamp) {
        let is_beyond = || {
            let Excerpt { side, edges, .. } = self.excerpt;
            edges.is_some_and(|edges| !edges.covers(side, time))
        };
        if !self.jumps || !is_beyond() {
            self.latest = self.latest.max(time);
        }
    }

    fn take(&mut self, observer: &Observer, seen: SeenPacket<'_>) -> Result<(), Skip> {
        let place = self.excerpt.place_of(observer, &seen)?;
        self.first.get_or_insert(seen.frame.time);
        let detail = self.detailed.then(|| seen.packet.detail(seen.frame.bytes.bytes()));
        self.hold_or_push(place, seen.observation, detail);
        Ok(())
    }

    fn take_marker(&mut self, marker: &Marker) {
        self.meters.observe_marker(marker);
    }
}

/// Keeps nothing of packets but when they were sent.
pub(crate) struct StampSink<'a> {
    pub(crate) excerpt: Excerpt<'a>,
    pub(crate) stamps: Stamps,
}

impl PacketSink for StampSink<'_> {
    fn take(&mut self, observer: &Observer, seen: SeenPacket<'_>) -> Result<(), Skip> {
        self.excerpt.place_of(observer, &seen)?;
        self.stamps.note(&seen.observation);
        Ok(())
    }
}

/// The ends of a packet's flow, for judging its direction.
pub(crate) fn flow_ends(observer: &Observer, packet: &Packet) -> FlowEnds {
    let digester = observer.digester();
    let (source, destination) = digester.address_hashes(packet);
    let key = packet.flow_key();
    FlowEnds {
        reverse: digester.flow_hash(&key.reversed()),
        source,
        destination,
        stays_local: stays_local(key.destination),
    }
}

/// Whether routers do not forward packets to an address.
const fn stays_local(destination: IpAddr) -> bool {
    let is_on_link = match destination {
        IpAddr::V4(address) => address.is_broadcast() || address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    is_on_link || destination.is_multicast() || destination.is_loopback()
}

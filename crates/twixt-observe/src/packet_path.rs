//! The packet path: frames to packets to a sink. All commands and the agent run this one.

use std::collections::BTreeMap;
use std::sync::Arc;

use twixt_measure::Marker;
use twixt_model::{
    Frame, FrameDirection, Observation, Prefix, SourceCounts, Span, Timestamp, protocol,
};
use twixt_wire::{
    ByteRange, Cuts, FrameBytes, LinkType, Observer, PAYLOAD_BYTES_MAX, Packet, ParseOptions, Skip,
    SkipCounts, parse,
};

use crate::meters::Meters;

/// Where packets go. A sink may refuse packets that the observer admits.
pub trait PacketSink {
    /// Whether the observation alone may be enough. If not, the short way past the parser is left
    /// out of the loop when it is compiled.
    const MAY_TAKE_BARE: bool = false;

    /// Whether the observation alone is enough, for some packets at least.
    fn takes_bare(&self) -> bool {
        false
    }

    /// An observer that computes no more of every packet than this sink reads.
    fn adapt(&self, observer: Observer) -> Observer {
        observer
    }

    /// A frame of this time came. It may still be skipped.
    #[inline(always)]
    fn see(&mut self, _time: Timestamp) {}

    /// Takes a packet by its observation alone; `false` if more of it must be read.
    #[inline(always)]
    fn take_bare(&mut self, _observation: Observation) -> bool {
        false
    }

    /// Takes a packet.
    ///
    /// # Errors
    /// Why it is not measured.
    fn take(&mut self, observer: &Observer, seen: SeenPacket<'_>) -> Result<(), Skip>;

    /// A marker lies between the packets so far and those to come.
    fn take_marker(&mut self, _marker: &Marker) {}
}

/// What is read of a frame. Handed on in parts: a frame that is passed on as a whole would have to
/// be written to memory.
#[derive(Clone, Copy, Debug)]
pub struct FrameParts<'a> {
    /// What the outermost header is.
    pub link: LinkType,
    /// The bytes that were captured.
    pub bytes: FrameBytes<'a>,
    /// Its length on the wire.
    pub wire_length: u32,
    /// When it was seen.
    pub time: Timestamp,
    /// Which way it crossed the interface, if the source says.
    pub direction: Option<FrameDirection>,
}

/// A packet on its way to a sink.
#[derive(Clone, Copy, Debug)]
pub struct SeenPacket<'a> {
    /// What algorithms know of it.
    pub observation: Observation,
    /// As it was parsed.
    pub packet: &'a Packet,
    /// The frame that it came in.
    pub frame: FrameParts<'a>,
}

/// What one point contributed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathCounts {
    /// Packets that were measured.
    pub packets: u64,
    /// Frames that were not, by reason.
    pub skipped: BTreeMap<String, u64>,
    /// Frames that the capturing kernel lost, if the source says.
    pub dropped: Option<u64>,
}

/// What happens to frames.
#[derive(Debug)]
pub struct PacketPath<S> {
    observer: Observer,
    sink: S,
    follows_markers: bool,
    toward: Option<Prefix>,
    within: Option<Span>,
    /// Where TCP segments are cut, if the other point saw other ones.
    cuts: Option<Arc<Cuts>>,
    /// Nothing is asked of all packets beyond their observation.
    is_plain: bool,
    packets_max: u64,
    /// Packets still wanted.
    packets_left: u64,
    /// Skipped frames that are not yet reported to the meters.
    skipped: SkipCounts,
    /// What the meters know of the source, and since when: whatever was dropped after that is not
    /// among it.
    reported: SourceCounts,
    told_at: Timestamp,
    /// Frames that the snap length cut where a digest might have looked.
    cut: u64,
}

/// Link, network and transport headers without options, and the payload that a digest covers:
/// frames cut beyond this have all of it, as a rule.
const DIGEST_REACH_BYTES: usize = 14 + 40 + 32 + PAYLOAD_BYTES_MAX as usize;

impl<S: PacketSink> PacketPath<S> {
    /// Takes all packets that the observer admits and the sink does not refuse.
    #[must_use]
    pub fn new(observer: Observer, sink: S) -> Self {
        Self {
            observer: sink.adapt(observer),
            sink,
            follows_markers: false,
            toward: None,
            within: None,
            cuts: None,
            is_plain: false,
            packets_max: u64::MAX,
            packets_left: u64::MAX,
            skipped: SkipCounts::default(),
            reported: SourceCounts::default(),
            told_at: Timestamp::MIN,
            cut: 0,
        }
        .examined()
    }

    /// Knows whether anything is asked of all packets.
    fn examined(self) -> Self {
        let selects = self.toward.is_some() || self.within.is_some();
        let asks_more = self.follows_markers || selects || self.cuts.is_some();
        let is_plain = self.sink.takes_bare() && !asks_more;
        Self { is_plain, ..self }
    }

    /// Shows markers to the sink.
    #[must_use]
    pub fn following_markers(self, follows_markers: bool) -> Self {
        Self { follows_markers, ..self }.examined()
    }

    /// Takes only packets for this prefix, if one is given.
    #[must_use]
    pub fn toward(self, toward: Option<Prefix>) -> Self {
        Self { toward, ..self }.examined()
    }

    /// Takes only frames of this time, if one is given, both ends included.
    #[must_use]
    pub fn within(self, within: Option<Span>) -> Self {
        Self { within, ..self }.examined()
    }

    /// Takes the pieces of TCP segments instead of them, in flows that are cut.
    #[must_use]
    pub fn cutting(self, cuts: Option<Arc<Cuts>>) -> Self {
        Self { cuts, ..self }.examined()
    }

    /// Takes no more packets than this, if a number is given.
    #[must_use]
    pub fn at_most(self, packets_max: Option<u64>) -> Self {
        let packets_max = packets_max.unwrap_or(u64::MAX);
        Self { packets_max, packets_left: packets_max, ..self }
    }

    /// Takes a frame.
    #[inline(always)]
    pub fn take(&mut self, frame: &Frame<'_>) {
        if let Err(skip) = self.measure(FrameParts::of(frame)) {
            self.skipped.count(skip);
        }
    }

    /// Whether all packets that were wanted have been taken.
    #[must_use]
    pub const fn has_enough(&self) -> bool {
        self.packets_left == 0
    }

    /// Packets taken so far.
    #[must_use]
    pub const fn packets(&self) -> u64 {
        self.packets_max - self.packets_left
    }

    /// Frames that the snap length cut where a digest might have looked.
    #[must_use]
    pub const fn cut(&self) -> u64 {
        self.cut
    }

    /// Skipped frames that are not yet reported to the meters.
    #[must_use]
    pub const fn skipped(&self) -> SkipCounts {
        self.skipped
    }

    /// Counts what a sink gave up after it had taken it.
    pub fn count_skipped(&mut self, skipped: &SkipCounts) {
        skipped.iter().for_each(|(skip, count)| self.skipped.add(skip, count));
    }

    /// Frames skipped, together with those that the source did not hand over.
    #[must_use]
    pub fn skipped_with(&self, source: SourceCounts) -> SkipCounts {
        let mut skipped = self.skipped;
        skipped.add(Skip::NoTime, source.skipped() - self.reported.skipped());
        skipped
    }

    /// What became of the frames, together with those that the source did not hand over.
    #[must_use]
    pub fn counts(&self, source: SourceCounts) -> PathCounts {
        let skipped = self.skipped_with(source);
        PathCounts {
            packets: self.packets(),
            skipped: skipped.iter().map(|(skip, count)| (skip.name().to_owned(), count)).collect(),
            dropped: source.dropped,
        }
    }

    /// What computes observations.
    #[must_use]
    pub const fn observer(&self) -> &Observer {
        &self.observer
    }

    /// What the packets went to.
    #[must_use]
    pub const fn sink(&self) -> &S {
        &self.sink
    }

    /// What the packets went to, to tell it the time and fetch what is sealed.
    pub const fn sink_mut(&mut self) -> &mut S {
        &mut self.sink
    }

    /// No more frames come.
    #[must_use]
    pub fn into_sink(self) -> S {
        self.sink
    }

    #[inline(always)]
    fn measure(&mut self, frame: FrameParts<'_>) -> Result<(), Skip> {
        if !S::MAY_TAKE_BARE {
            return self.examine(frame);
        }
        if !self.is_plain | is_timeless(frame.time) | (self.packets_left == 0) {
            return self.measure_any(frame);
        }
        self.sink.see(frame.time);
        self.cut += u64::from(frame.is_cut());
        match self.observer.observe_usual(frame.link, frame.bytes, frame.time) {
            Some(observation) if self.sink.take_bare(observation) => {
                self.packets_left -= 1;
                Ok(())
            }
            _ => self.measure_packet(frame),
        }
    }

    /// Any frame, however unlikely.
    #[inline(never)]
    fn measure_any(&mut self, frame: FrameParts<'_>) -> Result<(), Skip> {
        self.examine(frame)
    }

    /// A frame of a packet that is measured if its sink takes it.
    #[inline(never)]
    fn measure_packet(&mut self, frame: FrameParts<'_>) -> Result<(), Skip> {
        self.hand_over(frame)
    }

    #[inline(always)]
    fn examine(&mut self, frame: FrameParts<'_>) -> Result<(), Skip> {
        if self.packets_left == 0 {
            return Ok(());
        }
        if is_timeless(frame.time) {
            return Err(Skip::NoTime);
        }
        if self.within.is_some_and(|span| !span.contains(frame.time)) {
            return Err(Skip::OutsideStretch);
        }
        self.sink.see(frame.time);
        if self.follows_markers
            && let Some(marker) = marker_in(frame.link, frame.bytes.bytes(), frame.wire_length)
        {
            self.sink.take_marker(&marker);
            return Err(Skip::Marker);
        }
        self.cut += u64::from(frame.is_cut());
        self.hand_over(frame)
    }

    #[inline(always)]
    fn hand_over(&mut self, frame: FrameParts<'_>) -> Result<(), Skip> {
        let FrameParts { link, bytes, wire_length, time, .. } = frame;
        let (observation, packet) = self.observer.observe_packet(link, bytes, wire_length, time)?;
        if self.toward.is_some_and(|prefix| !prefix.contains(packet.destination())) {
            return Err(Skip::WrongDirection);
        }
        let seen = SeenPacket { observation, packet: &packet, frame };
        if self.cuts.is_some() {
            return self.hand_over_pieces(seen);
        }
        self.sink.take(&self.observer, seen)?;
        self.packets_left -= 1;
        Ok(())
    }

    /// The pieces of a packet, or all of it if it is not cut.
    #[cold]
    #[inline(never)]
    fn hand_over_pieces(&mut self, seen: SeenPacket<'_>) -> Result<(), Skip> {
        let Self { observer, sink, cuts, packets_left, skipped, .. } = self;
        let pieces = cuts.as_ref().zip(ByteRange::of(seen.packet, seen.frame.bytes.bytes()));
        let flow = || observer.digester().packet_flow_hash(seen.packet);
        let pieces = pieces.and_then(|(cuts, range)| cuts.pieces(flow(), range, seen.observation));
        let Some(pieces) = pieces else {
            sink.take(observer, seen)?;
            *packets_left -= 1;
            return Ok(());
        };
        for observation in pieces {
            match sink.take(observer, SeenPacket { observation, ..seen }) {
                Ok(()) => *packets_left = packets_left.saturating_sub(1),
                Err(skip) => skipped.count(skip),
            }
        }
        Ok(())
    }
}

impl PacketPath<Meters> {
    /// Goes on with other meters. What the source has counted so far is not counted again.
    #[must_use]
    pub(crate) fn begun_anew(&self, observer: Observer, meters: Meters) -> Self {
        Self { reported: self.reported, cut: self.cut, ..Self::new(observer, meters) }
    }

    /// Reports to the meters what was skipped and dropped since the last time. `read` is when the
    /// counts were read, on the clock of the packets: at some moment between its start and its end.
    pub fn report_counts(&mut self, now: SourceCounts, read: Option<Span>) {
        let skipped = self.skipped_with(now);
        self.skipped = SkipCounts::default();
        self.sink.count_skipped(&skipped);
        let dropped = |counts: &SourceCounts| counts.dropped.unwrap_or(0);
        let dropped = dropped(&now).saturating_sub(dropped(&self.reported));
        // Frames without a usable time are not measured either, and only this point knows.
        let missing = dropped.saturating_add(now.skipped().saturating_sub(self.reported.skipped()));
        if let Some(read) = read {
            if missing > 0 {
                self.sink.note_missing(missing, Span { start: self.told_at, end: read.end });
            }
            self.told_at = read.start;
        }
        if dropped > 0 {
            self.sink.count_dropped(dropped);
        }
        self.reported = now;
    }
}

impl<'a> FrameParts<'a> {
    #[inline(always)]
    fn of(frame: &Frame<'a>) -> Self {
        Self {
            link: LinkType(frame.link_type),
            bytes: FrameBytes::within(frame.memory, frame.bytes.len()),
            wire_length: frame.wire_length,
            time: frame.time,
            direction: frame.direction,
        }
    }

    /// Whether the snap length cut it where a digest might have looked.
    #[inline(always)]
    const fn is_cut(&self) -> bool {
        let captured = self.bytes.bytes().len();
        (captured < DIGEST_REACH_BYTES) & (captured < self.wire_length as usize)
    }
}

/// The marker that a frame carries, if it does: one of our own packets, whatever its addresses.
#[must_use]
pub fn marker_in(link: LinkType, frame: &[u8], wire_length: u32) -> Option<Marker> {
    let options = ParseOptions { outer: false, wire_length: Some(wire_length) };
    let packet = parse(link, frame, options).ok()?;
    let payload = packet.payload(frame);
    (packet.protocol() == protocol::UDP).then(|| Marker::from_bytes(payload).ok()).flatten()
}

/// Times at the ends of what 64 bits hold are damage, not times.
#[must_use]
#[inline(always)]
pub fn is_timeless(time: Timestamp) -> bool {
    (time == Timestamp::MIN) | (time == Timestamp::MAX)
}

#[cfg(test)]
mod tests;

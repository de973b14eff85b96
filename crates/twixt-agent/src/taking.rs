//! The packet path: frames to observations to meters. `record` and the agent both run it.

use twixt_capture::{Frame, SourceCounts};
use twixt_measure::Marker;
use twixt_model::{Observation, Prefix, Timestamp, protocol};
use twixt_synopsis::DetailsOf;
use twixt_wire::{
    FrameBytes, LinkType, Observer, PAYLOAD_BYTES_MAX, ParseOptions, Skip, SkipCounts, parse,
};

use crate::meters::Meters;

/// What happens to frames.
#[derive(Debug)]
pub struct Taking {
    observer: Observer,
    meters: Meters,
    detailed: bool,
    details_of: DetailsOf,
    /// Flow hashes are computed of those packets only whose details are read.
    flow_of_few: bool,
    follows_markers: bool,
    toward: Option<Prefix>,
    /// Nothing of the above is asked of all packets.
    is_plain: bool,
    /// Packets still wanted.
    most: u64,
    /// Frames skipped since the meters were told.
    skipped: SkipCounts,
    /// What the meters know of the source.
    told: SourceCounts,
    /// Frames that the snap length cut where a digest might have looked.
    cut: u64,
}

/// What is needed of a frame.
#[derive(Clone, Copy)]
struct Part<'a> {
    link: LinkType,
    bytes: FrameBytes<'a>,
    wire_length: u32,
    time: Timestamp,
}

/// Link, network and transport headers without options, and the payload that a digest covers:
/// frames cut beyond this have all of it, as a rule.
const DIGEST_REACH_BYTES: usize = 14 + 40 + 32 + PAYLOAD_BYTES_MAX as usize;

impl Taking {
    /// Takes all packets that the observer admits, and cuts epochs by time.
    #[must_use]
    pub fn new(observer: Observer, meters: Meters) -> Self {
        let (needs, details_of) = (observer.needs(), meters.details_of());
        // What is kept whole is kept with its flow hash.
        let flow_of_few =
            needs.flow && needs.detail && details_of.is_by_digest() && !meters.keeps_observations();
        Self {
            detailed: needs.detail,
            details_of,
            flow_of_few,
            observer: if flow_of_few { observer.without_flow() } else { observer },
            meters,
            follows_markers: false,
            toward: None,
            is_plain: false,
            most: u64::MAX,
            skipped: SkipCounts::default(),
            told: SourceCounts::default(),
            cut: 0,
        }
        .examined()
    }

    /// Knows whether anything is asked of all packets.
    fn examined(self) -> Self {
        let reads_details = self.detailed && !self.flow_of_few;
        let is_plain = !reads_details && !self.follows_markers && self.toward.is_none();
        Self { is_plain, ..self }
    }

    /// Goes on with other meters. What the source has counted so far is not counted again.
    #[must_use]
    pub(crate) fn begun_anew(&self, observer: Observer, meters: Meters) -> Self {
        Self { told: self.told, cut: self.cut, ..Self::new(observer, meters) }
    }

    /// Shows markers to the meters.
    #[must_use]
    pub fn following_markers(self, follows_markers: bool) -> Self {
        Self { follows_markers, ..self }.examined()
    }

    /// Takes only packets for this prefix, if one is given.
    #[must_use]
    pub fn toward(self, toward: Option<Prefix>) -> Self {
        Self { toward, ..self }.examined()
    }

    /// Takes so many packets and no more.
    #[must_use]
    pub fn at_most(self, most: u64) -> Self {
        Self { most, ..self }
    }

    /// Takes a frame.
    #[inline(always)]
    pub fn take(&mut self, frame: &Frame<'_>) {
        if let Err(skip) = self.measure(frame) {
            self.skipped.count(skip);
        }
    }

    #[inline(always)]
    fn measure(&mut self, frame: &Frame<'_>) -> Result<(), Skip> {
        let (link, time) = (LinkType(frame.link_type), frame.time);
        let bytes = FrameBytes::within(frame.memory, frame.bytes.len());
        // Parts of the frame that are needed below in any case: one that is handed on as a whole
        // would have to be written to memory.
        let part = Part { link, bytes, wire_length: frame.wire_length, time };
        if !self.is_plain | is_timeless(time) | (self.most == 0) {
            return self.measure_any(part);
        }
        self.cut += u64::from(part.is_cut());
        let Some(observation) = self.observer.observe_usual(link, bytes, time) else {
            return self.measure_packet(part);
        };
        if !self.flow_of_few {
            self.meters.push(observation);
        } else if self.details_of.includes(&observation) {
            // One of few: it pays to look at the others as if nobody read details.
            return self.measure_packet(part);
        } else {
            self.meters.push_with(observation, |_| {});
        }
        self.most -= 1;
        Ok(())
    }

    /// Tells the meters what was skipped and dropped since the last time.
    pub fn tell_counts(&mut self, now: SourceCounts) {
        self.skipped.add(Skip::NoTime, now.skipped() - self.told.skipped());
        self.meters.count_skipped(&std::mem::take(&mut self.skipped));
        let dropped = |counts: &SourceCounts| counts.dropped.unwrap_or(0);
        self.meters.count_dropped(dropped(&now).saturating_sub(dropped(&self.told)));
        self.told = now;
    }

    /// Frames skipped since the meters were told.
    #[must_use]
    pub(crate) const fn skipped(&self) -> SkipCounts {
        self.skipped
    }

    /// Whether all packets that were wanted have been taken.
    #[must_use]
    pub const fn has_enough(&self) -> bool {
        self.most == 0
    }

    /// Frames that the snap length cut where a digest might have looked.
    #[must_use]
    pub const fn cut(&self) -> u64 {
        self.cut
    }

    /// What the packets went to.
    #[must_use]
    pub const fn meters(&self) -> &Meters {
        &self.meters
    }

    /// What the packets went to, to tell it the time and fetch what is sealed.
    pub const fn meters_mut(&mut self) -> &mut Meters {
        &mut self.meters
    }

    /// Any frame, however unlikely.
    #[inline(never)]
    fn measure_any(&mut self, part: Part<'_>) -> Result<(), Skip> {
        if self.most == 0 {
            return Ok(());
        }
        if is_timeless(part.time) {
            return Err(Skip::NoTime);
        }
        if self.follows_markers
            && let Some(marker) = marker_in(part.link, part.bytes.bytes(), part.wire_length)
        {
            self.meters.observe_marker(&marker);
            return Err(Skip::Marker);
        }
        self.cut += u64::from(part.is_cut());
        self.measure_packet(part)
    }

    /// A frame, with all that may be asked of its packet.
    #[inline(never)]
    fn measure_packet(&mut self, part: Part<'_>) -> Result<(), Skip> {
        let Part { link, bytes, wire_length, time } = part;
        let (observation, packet) = self.observer.observe_packet(link, bytes, wire_length, time)?;
        if self.toward.is_some_and(|prefix| !prefix.contains(packet.destination())) {
            return Err(Skip::WrongDirection);
        }
        match self.detailed {
            true if self.details_of.includes(&observation) => {
                let flow = match self.flow_of_few {
                    true => self.observer.digester().packet_flow_hash(&packet),
                    false => observation.flow,
                };
                let observation = Observation { flow, ..observation };
                self.meters
                    .push_with(observation, |detail| packet.write_detail(bytes.bytes(), detail));
            }
            // Nobody reads them.
            true => self.meters.push_with(observation, |_| {}),
            false => self.meters.push(observation),
        }
        self.most -= 1;
        Ok(())
    }
}

impl Part<'_> {
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

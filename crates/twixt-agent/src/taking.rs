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
    /// Packets still wanted.
    most: u64,
    /// Frames skipped since the meters were told.
    skipped: SkipCounts,
    /// What the meters know of the source.
    told: SourceCounts,
    /// Frames that the snap length cut where a digest might have looked.
    cut: u64,
}

/// Link, network and transport headers without options, and the payload that a digest covers:
/// frames cut beyond this have all of it, as a rule.
const DIGEST_REACH_BYTES: usize = 14 + 40 + 32 + PAYLOAD_BYTES_MAX as usize;

impl Taking {
    /// Takes all packets that the observer admits, and cuts epochs by time.
    #[must_use]
    pub fn new(observer: Observer, meters: Meters) -> Self {
        let (wanted, details_of) = (observer.wanted(), meters.details_of());
        // What is kept whole is kept with its flow hash.
        let flow_of_few = wanted.flow
            && wanted.detail
            && details_of.is_by_digest()
            && !meters.keeps_observations();
        Self {
            detailed: wanted.detail,
            details_of,
            flow_of_few,
            observer: if flow_of_few { observer.without_flow() } else { observer },
            meters,
            follows_markers: false,
            toward: None,
            most: u64::MAX,
            skipped: SkipCounts::default(),
            told: SourceCounts::default(),
            cut: 0,
        }
    }

    /// Goes on with other meters. What the source has counted so far is not counted again.
    #[must_use]
    pub(crate) fn begun_anew(&self, observer: Observer, meters: Meters) -> Self {
        Self { told: self.told, cut: self.cut, ..Self::new(observer, meters) }
    }

    /// Shows markers to the meters.
    #[must_use]
    pub fn following_markers(self, follows_markers: bool) -> Self {
        Self { follows_markers, ..self }
    }

    /// Takes only packets for this prefix, if one is given.
    #[must_use]
    pub fn toward(self, toward: Option<Prefix>) -> Self {
        Self { toward, ..self }
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
        if self.most == 0 {
            return Ok(());
        }
        if is_timeless(frame.time) {
            return Err(Skip::NoTime);
        }
        if self.follows_markers
            && let Some(marker) = marker_in(frame)
        {
            self.meters.observe_marker(&marker);
            return Err(Skip::Marker);
        }
        let (link, bytes) = (LinkType(frame.link_type), frame.bytes);
        let within = FrameBytes::within(frame.memory, bytes.len());
        let wire_length = frame.wire_length;
        if bytes.len() < DIGEST_REACH_BYTES && bytes.len() < wire_length as usize {
            self.cut += 1;
        }
        if self.detailed || self.toward.is_some() {
            return self.measure_packet(frame);
        }
        let observation = self.observer.observe(link, within, wire_length, frame.time)?;
        self.meters.push(observation);
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

    fn measure_packet(&mut self, frame: &Frame<'_>) -> Result<(), Skip> {
        let link = LinkType(frame.link_type);
        let bytes = FrameBytes::within(frame.memory, frame.bytes.len());
        let (observation, packet) =
            self.observer.observe_packet(link, bytes, frame.wire_length, frame.time)?;
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
                    .push_with(observation, |detail| packet.write_detail(frame.bytes, detail));
            }
            // Nobody reads them.
            true => self.meters.push_with(observation, |_| {}),
            false => self.meters.push(observation),
        }
        self.most -= 1;
        Ok(())
    }
}

/// The marker that a frame carries, if it does: one of our own packets, whatever its addresses.
#[must_use]
pub fn marker_in(frame: &Frame<'_>) -> Option<Marker> {
    let options = ParseOptions { outer: false, wire_length: Some(frame.wire_length) };
    let packet = parse(LinkType(frame.link_type), frame.bytes, options).ok()?;
    let payload = packet.payload(frame.bytes);
    (packet.protocol() == protocol::UDP).then(|| Marker::from_bytes(payload).ok()).flatten()
}

/// Times at the ends of what 64 bits hold are damage, not times.
#[must_use]
pub fn is_timeless(time: Timestamp) -> bool {
    time == Timestamp::MIN || time == Timestamp::MAX
}

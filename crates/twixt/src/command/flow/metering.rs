//! From frames to flow records: which packets are chosen, and the cache that counts them.

use clap::ValueEnum;
use twixt_capture::Frame;
use twixt_flow::SelectorNotice;
use twixt_model::{Prefix, Timestamp};
use twixt_synopsis::FlowCache;
use twixt_wire::{
    LinkType, Observer, SelectionCounts, SelectionFunction, Selector, Skip, SkipCounts,
};

use crate::measure::is_timeless;

/// What is chosen by the hash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Select {
    /// Packets, by what no router changes
    #[default]
    Packet,
    /// Flows with all their packets
    Flow,
}

/// From frames to records.
pub(super) struct Metering {
    pub(super) observer: Observer,
    pub(super) cache: FlowCache,
    pub(super) selector: Selector,
    pub(super) select: Select,
    pub(super) selection: SelectionCounts,
    pub(super) toward: Option<Prefix>,
    /// Packets still wanted.
    pub(super) most: u64,
    pub(super) skipped: SkipCounts,
    /// The latest time that was seen.
    pub(super) now: Option<Timestamp>,
}

impl Metering {
    /// Meters a frame, or counts why not.
    pub(super) fn take(&mut self, frame: &Frame<'_>) {
        if self.most == 0 {
            return;
        }
        if let Err(skip) = self.meter(frame) {
            self.skipped.count(skip);
        }
    }

    fn meter(&mut self, frame: &Frame<'_>) -> Result<(), Skip> {
        if is_timeless(frame.time) {
            return Err(Skip::NoTime);
        }
        let link = LinkType(frame.link_type);
        let (observation, packet) =
            self.observer.observe_packet(link, frame.bytes, frame.wire_length, frame.time)?;
        if self.toward.is_some_and(|prefix| !prefix.contains(packet.destination())) {
            return Err(Skip::WrongDirection);
        }
        self.now = Some(self.now.map_or(frame.time, |now| now.max(frame.time)));
        self.most -= 1;
        let detail = packet.detail(frame.bytes);
        let selection = match self.select {
            Select::Packet => self.selector.packet(&packet, frame.bytes, observation.digest),
            Select::Flow => self.selector.flow(&detail.key, observation.flow),
        };
        if self.selection.count(selection) {
            self.cache.observe(&observation, &detail);
        }
        Ok(())
    }

    /// How packets are chosen, for collectors; nothing if all are, or if flows are.
    pub(super) fn notice(&self) -> Option<SelectorNotice> {
        let selector = &self.selector;
        if selector.rate() >= 1.0 || self.select == Select::Flow {
            return None;
        }
        let function = selector.function();
        let keyed = function == SelectionFunction::Keyed;
        let input = selector.input();
        let hashed = |value: u64| (!keyed && function != SelectionFunction::Ipsx).then_some(value);
        let (range, key_id) = (selector.range(), self.observer.digester().identity().key_id);
        Some(SelectorNotice {
            selector_id: u64::from(function.selector_id().unwrap_or(0)),
            algorithm: function.selector_id(),
            payload_offset: hashed(input.payload_offset.into()),
            payload_bytes: hashed(input.payload_bytes.into()),
            output: Some((0, function.output_max().into())),
            selected: Some((range.lowest.into(), range.highest.into())),
            initialiser: hashed(input.initialiser.into()),
            key_id: keyed.then_some(key_id),
            packets: Some((self.selection.observed, self.selection.selected)),
            interval: None,
        })
    }
}

//! From frames to flow records: which packets are chosen, and the cache that counts them.

use clap::ValueEnum;
use twixt_flow::SelectorNotice;
use twixt_model::Timestamp;
use twixt_observe::{PacketSink, SeenPacket};
use twixt_synopsis::FlowCache;
use twixt_wire::{Observer, SelectionCounts, SelectionFunction, Selector, Skip};

/// What is chosen by the hash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum SelectArg {
    /// Packets, by fields that no router changes
    #[default]
    Packet,
    /// Flows with all their packets
    Flow,
}

/// From packets to records.
pub(super) struct Metering {
    pub(super) cache: FlowCache,
    pub(super) selector: Selector,
    pub(super) select: SelectArg,
    pub(super) selection: SelectionCounts,
    /// How late it is, on the clock of the packets.
    pub(super) now: Option<Timestamp>,
}

impl Metering {
    /// It is at least this late.
    pub(super) fn advance(&mut self, time: Timestamp) {
        self.now = Some(self.now.map_or(time, |now| now.max(time)));
    }

    /// How packets are chosen, for collectors; nothing if all are, or if flows are.
    pub(super) fn notice(&self, key_id: u32) -> Option<SelectorNotice> {
        let selector = &self.selector;
        if selector.rate() >= 1.0 || self.select == SelectArg::Flow {
            return None;
        }
        let function = selector.function();
        let keyed = function == SelectionFunction::Keyed;
        let input = selector.input();
        let hashed = |value: u64| (!keyed && function != SelectionFunction::Ipsx).then_some(value);
        let range = selector.range();
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

impl PacketSink for Metering {
    fn take(&mut self, _observer: &Observer, seen: SeenPacket<'_>) -> Result<(), Skip> {
        let SeenPacket { observation, packet, frame } = seen;
        self.advance(frame.time);
        let bytes = frame.bytes.bytes();
        let detail = packet.detail(bytes);
        let selection = match self.select {
            SelectArg::Packet => self.selector.packet(packet, bytes, observation.digest),
            SelectArg::Flow => self.selector.flow(&detail.key, observation.flow),
        };
        if self.selection.count(selection) {
            self.cache.observe(&observation, &detail);
        }
        Ok(())
    }
}

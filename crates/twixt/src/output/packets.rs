//! Rows of single packets.

use serde::Serialize;
use twixt_model::{Crossing, Crossings, Delay, FlowKey};
use twixt_offline::Concluded;

use super::document::SegmentDocument;
use super::scope_columns::ScopeColumns;

/// One packet that upstream counted.
#[derive(Serialize)]
pub(crate) struct PacketRow {
    /// Where rows of several segments stand together.
    #[serde(flatten)]
    segment: Option<SegmentDocument>,
    time_ns: i64,
    scope: String,
    /// `null` if it was lost, and if packets identical to it arrived so that nothing tells which.
    delay_ns: Option<i64>,
    length: u32,
    lost: bool,
    #[serde(flatten)]
    columns: ScopeColumns,
}

/// The packets of all epochs; `segment` if that is not clear anyway.
pub(crate) fn packet_rows<'a>(
    concluded: &'a Concluded,
    segment: Option<&'a SegmentDocument>,
) -> impl Iterator<Item = PacketRow> + 'a {
    let crossings = concluded.estimates.iter().filter_map(|estimate| estimate.crossings.as_deref());
    crossings.flat_map(move |crossings| {
        crossings.packets.iter().map(move |packet| PacketRow::new(crossings, packet, segment))
    })
}

impl PacketRow {
    fn new(crossings: &Crossings, packet: &Crossing, segment: Option<&SegmentDocument>) -> Self {
        let unknown = FlowKey::default();
        let key = crossings.keys.get(&packet.flow).unwrap_or(&unknown);
        Self {
            segment: segment.cloned(),
            time_ns: packet.sent.as_nanos(),
            scope: key.to_string(),
            delay_ns: packet.delay().map(Delay::as_nanos),
            length: packet.length,
            lost: packet.is_lost(),
            columns: key.into(),
        }
    }
}

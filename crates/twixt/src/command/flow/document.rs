//! Flow records as users see them.

use serde::Serialize;
use twixt_flow::{ReadRecord, SelectorNotice};
use twixt_model::{FlowEnd, PacketDigest};

use crate::flow_record_input::FILE_EXPORTER;

/// One record in JSON and CSV.
#[derive(Serialize)]
pub(super) struct RecordDocument {
    pub(super) scope: String,
    pub(super) first_ns: i64,
    pub(super) last_ns: i64,
    pub(super) resolution_ns: u64,
    pub(super) packets: u64,
    pub(super) bytes: u64,
    pub(super) tcp_flags: u8,
    pub(super) end: Option<&'static str>,
    pub(super) class: u16,
    pub(super) first_label: Option<String>,
    pub(super) last_label: Option<String>,
    pub(super) protocol: &'static str,
    pub(super) exporter: Option<String>,
    pub(super) domain: u32,
    pub(super) observation_point: Option<u64>,
}

impl From<&ReadRecord> for RecordDocument {
    fn from(read: &ReadRecord) -> Self {
        let record = &read.record;
        let label = |label: PacketDigest| format!("{:016x}", label.0);
        Self {
            scope: record.key.to_string(),
            first_ns: record.first.as_nanos(),
            last_ns: record.last.as_nanos(),
            resolution_ns: record.resolution_ns,
            packets: record.packets,
            bytes: record.bytes,
            tcp_flags: record.tcp_flags,
            end: end_name(record.end),
            class: record.class.0,
            first_label: record.first_label.map(label),
            last_label: record.last_label.map(label),
            protocol: read.protocol.name(),
            exporter: (read.exporter != FILE_EXPORTER).then(|| read.exporter.to_string()),
            domain: read.domain,
            observation_point: read.observation_point,
        }
    }
}

const fn end_name(end: FlowEnd) -> Option<&'static str> {
    match end {
        FlowEnd::Unknown => None,
        FlowEnd::Idle => Some("idle"),
        FlowEnd::Active => Some("active"),
        FlowEnd::Finished => Some("finished"),
        FlowEnd::Forced => Some("forced"),
        FlowEnd::Evicted => Some("evicted"),
    }
}

/// How an exporter selects, in JSON.
#[derive(Serialize)]
pub(super) struct SelectorDocument {
    selector: u64,
    algorithm: Option<u16>,
    key_id: Option<String>,
    selected: Option<(u64, u64)>,
    output: Option<(u64, u64)>,
    packets_observed: Option<u64>,
    packets_selected: Option<u64>,
    interval: Option<u64>,
    rate: Option<f64>,
}

impl From<&SelectorNotice> for SelectorDocument {
    fn from(notice: &SelectorNotice) -> Self {
        Self {
            selector: notice.selector_id,
            algorithm: notice.algorithm,
            key_id: notice.key_id.map(|id| format!("{id:08x}")),
            selected: notice.selected,
            output: notice.output,
            packets_observed: notice.packets.map(|(observed, _)| observed),
            packets_selected: notice.packets.map(|(_, selected)| selected),
            interval: notice.interval,
            rate: notice.rate(),
        }
    }
}

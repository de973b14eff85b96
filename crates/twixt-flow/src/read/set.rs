//! Sets of IPFIX and NetFlow v9: what a message consists of behind its header.

use std::net::SocketAddr;

use twixt_model::Timestamp;

use super::counts::ReadCounts;
use super::draft::{Clocks, Draft};
use super::options::OptionsDraft;
use super::stream::Stream;
use super::uptime::UptimeClock;
use super::{Malformed, Protocol, ReadRecord, Sink};
use crate::bytes::Bytes;
use crate::element::Element;
use crate::template::{FIELDS_MAX, Field, Template};

/// Numbers below are reserved for templates.
pub(super) const DATA_FROM: u16 = 256;
/// Owner of elements that only NetFlow v9 has: what a scope is.
const V9_SCOPE: u32 = u32::MAX;
/// Marks fields with an enterprise number.
const ENTERPRISE_BIT: u16 = 0x8000;

/// Where a set came from.
pub(super) struct Origin {
    pub(super) exporter: SocketAddr,
    pub(super) protocol: Protocol,
    pub(super) domain: u32,
    pub(super) exported: Timestamp,
    /// From the header; IPFIX has it in options.
    pub(super) uptime: Option<UptimeClock>,
    pub(super) enterprise: u32,
}

/// Takes the next set: its number and its bytes.
pub(super) fn next_set<'a>(bytes: &mut Bytes<'a>) -> Result<(u16, Bytes<'a>), Malformed> {
    let header = bytes.u16().zip(bytes.u16());
    let (number, length) = header.ok_or(Malformed::Truncated { what: "a set" })?;
    let body_bytes =
        usize::from(length).checked_sub(4).ok_or(Malformed::Length { what: "a set" })?;
    let body = bytes.take(body_bytes).ok_or(Malformed::Truncated { what: "a set" })?;
    Ok((number, Bytes::new(body)))
}

/// Takes `count` descriptions of fields; `None` if they are too many or not all there.
pub(super) fn fields(
    bytes: &mut Bytes<'_>,
    count: usize,
    protocol: Protocol,
) -> Option<Vec<Field>> {
    // Four bytes each: nothing is reserved that is not there.
    if count > FIELDS_MAX || count * 4 > bytes.len() {
        return None;
    }
    let mut fields = Vec::with_capacity(count);
    for _ in 0..count {
        let (number, length) = bytes.u16().zip(bytes.u16())?;
        let element = match protocol {
            Protocol::Ipfix if number & ENTERPRISE_BIT != 0 => {
                Element { enterprise: bytes.u32()?, number: number & !ENTERPRISE_BIT }
            }
            _ => Element::iana(number),
        };
        fields.push(Field { element, length });
    }
    Some(fields)
}

/// Turns the first `count` fields into scopes of NetFlow v9, whose numbers mean something else.
pub(super) fn mark_scopes(fields: &mut [Field], count: usize) {
    for field in fields.iter_mut().take(count) {
        field.element.enterprise = V9_SCOPE;
    }
}

/// Reads a set of records. Returns how many there were; `None` if their template is not known.
pub(super) fn read_data(
    stream: &mut Stream,
    counts: &mut ReadCounts,
    origin: &Origin,
    (number, mut bytes): (u16, Bytes<'_>),
    sink: Sink<'_>,
) -> Result<Option<u32>, Malformed> {
    let Some(template) = stream.templates.find(number) else {
        counts.sets_without_template += 1;
        return Ok(None);
    };
    let mut records = 0;
    // What is left at the end is padding.
    while bytes.len() >= template.record_bytes_min {
        let read = match template.options {
            true => read_options(stream, counts, origin, &template, &mut bytes),
            false => read_flow(stream, counts, origin, &template, &mut bytes, sink),
        };
        read.ok_or(Malformed::Truncated { what: "a record" })?;
        records += 1;
    }
    Ok(Some(records))
}

fn read_options(
    stream: &mut Stream,
    counts: &mut ReadCounts,
    origin: &Origin,
    template: &Template,
    bytes: &mut Bytes<'_>,
) -> Option<()> {
    let mut options = OptionsDraft::default();
    template.read_record(bytes, |element, field| {
        options.field(element, field, origin.enterprise);
    })?;
    options.finish(stream, counts);
    Some(())
}

fn read_flow(
    stream: &Stream,
    counts: &mut ReadCounts,
    origin: &Origin,
    template: &Template,
    bytes: &mut Bytes<'_>,
    sink: Sink<'_>,
) -> Option<()> {
    let mut draft = Draft::default();
    template.read_record(bytes, |element, field| {
        draft.field(element, field, origin.enterprise);
    })?;
    let exported = origin.exported;
    let announced = || stream.started_ms.map(|ms| UptimeClock::since(ms, exported));
    let clocks = Clocks { exported, uptime: origin.uptime.or_else(announced) };
    counts.reverse_halves += u64::from(draft.has_reverse);
    match draft.finish(&clocks) {
        Err(reason) => counts.count_unusable(reason),
        Ok(record) => {
            counts.records += 1;
            sink(&ReadRecord {
                record,
                exporter: origin.exporter,
                protocol: origin.protocol,
                domain: origin.domain,
                observation_point: draft.observation_point,
                exported,
            });
        }
    }
    Some(())
}

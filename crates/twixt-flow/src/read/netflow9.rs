//! NetFlow v9 (RFC 3954).
//!
//! Its header tells the time of day in whole seconds only. Where flows are stamped by uptime, the
//! time of day is known to a second at first, and better with every message: the resolution of
//! records says how well.

use std::net::SocketAddr;

use twixt_model::Timestamp;

use super::counts::ReadCounts;
use super::set::{self, DATA_FROM, Origin};
use super::stream::Stream;
use super::uptime::{ClockChange, StartTime};
use super::{FlowReader, Malformed, Protocol, Sink, StreamKey};
use crate::bytes::Bytes;
use crate::template::Template;

const TEMPLATE_SET: u16 = 0;
const OPTIONS_TEMPLATE_SET: u16 = 1;
const TEMPLATE_BYTES_MIN: usize = 4;
const OPTIONS_TEMPLATE_BYTES_MIN: usize = 6;
const SECOND_NS: i64 = 1_000_000_000;
/// Bytes of a field's description.
const FIELD_BYTES: usize = 4;

impl FlowReader {
    pub(super) fn netflow9(
        &mut self,
        exporter: SocketAddr,
        message: &[u8],
        sink: Sink<'_>,
    ) -> Result<(), Malformed> {
        let mut bytes = Bytes::new(message);
        let header = Header::read(&mut bytes).ok_or(Malformed::Truncated { what: "the header" })?;
        let domain = header.domain;
        let enterprise = self.enterprise;
        let (stream, counts) =
            self.stream(StreamKey { exporter, protocol: Protocol::NetflowV9, domain });
        let start = start_time(stream, &header, counts);
        let origin = Origin {
            exporter,
            protocol: Protocol::NetflowV9,
            domain,
            exported: header.exported,
            uptime: Some(start.clock(header.uptime_ms)),
            enterprise,
        };
        stream.sequence(header.sequence, Some(header.sequence.wrapping_add(1)), counts);
        read_sets(stream, counts, &origin, bytes, sink)
    }
}

struct Header {
    uptime_ms: u32,
    exported: Timestamp,
    sequence: u32,
    domain: u32,
}

impl Header {
    fn read(bytes: &mut Bytes<'_>) -> Option<Self> {
        let _version_and_count = bytes.u32()?;
        Some(Self {
            uptime_ms: bytes.u32()?,
            exported: Timestamp::from_nanos(i64::from(bytes.u32()?) * SECOND_NS),
            sequence: bytes.u32()?,
            domain: bytes.u32()?,
        })
    }
}

/// When the exporter started, with what this message adds to that.
fn start_time(stream: &mut Stream, header: &Header, counts: &mut ReadCounts) -> StartTime {
    let first = StartTime::new(header.exported, SECOND_NS, header.uptime_ms);
    let start = stream.start.get_or_insert(first);
    match start.update(header.exported, SECOND_NS, header.uptime_ms) {
        ClockChange::None => {}
        ClockChange::Stepped => counts.clock_steps += 1,
        ClockChange::Restarted => counts.restarts += 1,
    }
    *start
}

fn read_sets(
    stream: &mut Stream,
    counts: &mut ReadCounts,
    origin: &Origin,
    mut body: Bytes<'_>,
    sink: Sink<'_>,
) -> Result<(), Malformed> {
    while body.len() > 0 {
        let (number, bytes) = set::next_set(&mut body)?;
        match number {
            TEMPLATE_SET => read_templates(stream, counts, bytes)?,
            OPTIONS_TEMPLATE_SET => read_options_templates(stream, counts, bytes)?,
            DATA_FROM.. => {
                set::read_data(stream, counts, origin, (number, bytes), sink)?;
            }
            _ => {}
        }
    }
    Ok(())
}

fn read_templates(
    stream: &mut Stream,
    counts: &mut ReadCounts,
    mut bytes: Bytes<'_>,
) -> Result<(), Malformed> {
    while bytes.len() >= TEMPLATE_BYTES_MIN {
        let truncated = Malformed::Truncated { what: "a template" };
        let (number, count) = bytes.u16().zip(bytes.u16()).ok_or(truncated)?;
        if (number, count) == (0, 0) {
            return Ok(()); // padding
        }
        if number < DATA_FROM {
            return Err(Malformed::Template { number });
        }
        let fields = set::fields(&mut bytes, usize::from(count), Protocol::NetflowV9);
        stream.keep(number, fields.and_then(|fields| Template::new(fields, false)), counts)?;
    }
    Ok(())
}

fn read_options_templates(
    stream: &mut Stream,
    counts: &mut ReadCounts,
    mut bytes: Bytes<'_>,
) -> Result<(), Malformed> {
    while bytes.len() >= OPTIONS_TEMPLATE_BYTES_MIN {
        let truncated = Malformed::Truncated { what: "an options template" };
        let number = bytes.u16().ok_or(truncated)?;
        let (scope_bytes, option_bytes) = bytes.u16().zip(bytes.u16()).ok_or(truncated)?;
        if (number, scope_bytes, option_bytes) == (0, 0, 0) {
            return Ok(()); // padding
        }
        if number < DATA_FROM {
            return Err(Malformed::Template { number });
        }
        let scopes = usize::from(scope_bytes) / FIELD_BYTES;
        let options = usize::from(option_bytes) / FIELD_BYTES;
        let fields = set::fields(&mut bytes, scopes + options, Protocol::NetflowV9);
        let template = fields.and_then(|mut fields| {
            set::mark_scopes(&mut fields, scopes);
            Template::new(fields, true)
        });
        stream.keep(number, template, counts)?;
    }
    Ok(())
}

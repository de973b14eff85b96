//! IPFIX (RFC 7011).

use std::net::SocketAddr;

use twixt_model::Timestamp;

use super::counts::ReadCounts;
use super::set::{self, DATA_FROM, Origin};
use super::stream::Stream;
use super::{FlowReader, Malformed, Protocol, Sink, StreamKey};
use crate::bytes::Bytes;
use crate::template::Template;

const HEADER_BYTES: usize = 16;
const TEMPLATE_SET: u16 = 2;
const OPTIONS_TEMPLATE_SET: u16 = 3;
/// A template's header; what is shorter is padding.
const TEMPLATE_BYTES_MIN: usize = 4;

impl FlowReader {
    pub(super) fn ipfix(
        &mut self,
        exporter: SocketAddr,
        message: &[u8],
        sink: Sink<'_>,
    ) -> Result<(), Malformed> {
        let header = Header::read(message)?;
        let key = StreamKey { exporter, protocol: Protocol::Ipfix, domain: header.domain };
        let origin = Origin {
            exporter,
            protocol: Protocol::Ipfix,
            domain: header.domain,
            exported: header.exported,
            uptime: None,
            enterprise: self.enterprise,
        };
        let (stream, counts) = self.stream(key);
        stream.exported(header.exported, counts);
        let body = Bytes::new(&message[HEADER_BYTES..header.length]);
        let mut records = Some(0_u32);
        let result = read_sets(stream, counts, &origin, body, &mut records, sink);
        // The number of records in a message that was not read to its end is unknown.
        let records = records.filter(|_| result.is_ok());
        let follows = records.map(|records| header.sequence.wrapping_add(records));
        stream.sequence(header.sequence, follows, counts);
        result
    }
}

struct Header {
    length: usize,
    exported: Timestamp,
    sequence: u32,
    domain: u32,
}

impl Header {
    fn read(message: &[u8]) -> Result<Self, Malformed> {
        let mut bytes = Bytes::new(message);
        let mut read = || {
            bytes.u16()?;
            Some((bytes.u16()?, bytes.u32()?, bytes.u32()?, bytes.u32()?))
        };
        let truncated = Malformed::Truncated { what: "the message" };
        let (length, seconds, sequence, domain) = read().ok_or(truncated)?;
        let length = usize::from(length);
        if length < HEADER_BYTES {
            return Err(Malformed::Length { what: "the message" });
        }
        if length > message.len() {
            return Err(truncated);
        }
        let exported = Timestamp::from_nanos(i64::from(seconds) * 1_000_000_000);
        Ok(Self { length, exported, sequence, domain })
    }
}

/// Reads all sets. `records` counts records of any kind, as sequence numbers do; `None` once some
/// could not be counted.
fn read_sets(
    stream: &mut Stream,
    counts: &mut ReadCounts,
    origin: &Origin,
    mut body: Bytes<'_>,
    records: &mut Option<u32>,
    sink: Sink<'_>,
) -> Result<(), Malformed> {
    while body.len() > 0 {
        let (number, bytes) = set::next_set(&mut body)?;
        match number {
            TEMPLATE_SET => read_templates(stream, counts, bytes, false)?,
            OPTIONS_TEMPLATE_SET => read_templates(stream, counts, bytes, true)?,
            DATA_FROM.. => {
                let found = set::read_data(stream, counts, origin, (number, bytes), sink)?;
                *records = records.zip(found).map(|(sum, more)| sum.wrapping_add(more));
            }
            // Reserved; a later version of IPFIX may use it.
            _ => *records = None,
        }
    }
    Ok(())
}

fn read_templates(
    stream: &mut Stream,
    counts: &mut ReadCounts,
    mut bytes: Bytes<'_>,
    options: bool,
) -> Result<(), Malformed> {
    while bytes.len() >= TEMPLATE_BYTES_MIN {
        let truncated = Malformed::Truncated { what: "a template" };
        let (number, count) = bytes.u16().zip(bytes.u16()).ok_or(truncated)?;
        match (number, count) {
            // Withdrawals (section 8.1): of all of a kind, or of one.
            (TEMPLATE_SET | OPTIONS_TEMPLATE_SET, 0) => {
                counts.templates_withdrawn +=
                    stream.templates.remove_all(number == OPTIONS_TEMPLATE_SET);
            }
            (_, 0) => {
                counts.templates_withdrawn += u64::from(stream.templates.remove(number).is_some());
            }
            (..DATA_FROM, _) => return Err(Malformed::Template { number }),
            _ => {
                let scopes = if options { bytes.u16().ok_or(truncated)? } else { 0 };
                let fields = set::fields(&mut bytes, usize::from(count), Protocol::Ipfix);
                let template = fields.and_then(|fields| Template::new(fields, options));
                let template = template.filter(|_| !options || (1..=count).contains(&scopes));
                stream.keep(number, template, counts)?;
            }
        }
    }
    Ok(())
}

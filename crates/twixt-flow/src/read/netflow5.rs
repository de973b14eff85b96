//! NetFlow v5: one fixed layout, IPv4 only.

use std::net::{Ipv4Addr, SocketAddr};

use twixt_model::{ClassId, FlowEnd, FlowKey, FlowRecord, Timestamp, protocol};

use super::counts::{ReadCounts, Unusable};
use super::stream::Stream;
use super::uptime::{ClockChange, StartTime, UptimeClock};
use super::{FlowReader, Malformed, Protocol, ReadRecord, Sink, StreamKey};
use crate::bytes::Bytes;
use crate::notice::SelectorNotice;

const RECORD_BYTES: usize = 48;
/// How exact uptimes are.
const RESOLUTION_NS: u64 = 1_000_000;

impl FlowReader {
    pub(super) fn netflow5(
        &mut self,
        exporter: SocketAddr,
        message: &[u8],
        sink: Sink<'_>,
    ) -> Result<(), Malformed> {
        let mut bytes = Bytes::new(message);
        let header = Header::read(&mut bytes).ok_or(Malformed::Truncated { what: "the header" })?;
        let domain = u32::from(header.engine);
        let key = StreamKey { exporter, protocol: Protocol::NetflowV5, domain };
        let (stream, counts) = self.stream(key);
        header.tell(stream, counts);
        for _ in 0..header.count {
            let record =
                bytes.take(RECORD_BYTES).ok_or(Malformed::Truncated { what: "a record" })?;
            let read = flow(&mut Bytes::new(record), &header.clock());
            match read.expect("a record has all the bytes it is made of") {
                Err(reason) => counts.count_unusable(reason),
                Ok(record) => {
                    counts.records += 1;
                    sink(&ReadRecord {
                        record,
                        exporter,
                        protocol: Protocol::NetflowV5,
                        domain,
                        observation_point: None,
                        exported: header.exported,
                    });
                }
            }
        }
        Ok(())
    }
}

struct Header {
    count: u16,
    uptime_ms: u32,
    exported: Timestamp,
    sequence: u32,
    engine: u16,
    /// One packet in so many is counted; 0 says nothing.
    interval: u16,
}

impl Header {
    fn read(bytes: &mut Bytes<'_>) -> Option<Self> {
        let _version = bytes.u16()?;
        let (count, uptime_ms) = (bytes.u16()?, bytes.u32()?);
        let (seconds, nanos) = (i64::from(bytes.u32()?), i64::from(bytes.u32()?));
        Some(Self {
            count,
            uptime_ms,
            exported: Timestamp::from_nanos(seconds * 1_000_000_000 + nanos),
            sequence: bytes.u32()?,
            engine: bytes.u16()?,
            // The upper two bits say how packets are chosen.
            interval: bytes.u16()? & 0x3fff,
        })
    }

    fn clock(&self) -> UptimeClock {
        UptimeClock {
            now: self.exported,
            now_uptime_ms: self.uptime_ms,
            resolution_ns: RESOLUTION_NS,
        }
    }

    /// Applies the header to the stream.
    fn tell(&self, stream: &mut Stream, counts: &mut ReadCounts) {
        let follows = self.sequence.wrapping_add(u32::from(self.count));
        stream.sequence(self.sequence, Some(follows), counts);
        let first = StartTime::new(self.exported, 0, self.uptime_ms);
        match stream.start.get_or_insert(first).update(self.exported, 0, self.uptime_ms) {
            ClockChange::None => {}
            ClockChange::Stepped => counts.clock_steps += 1,
            ClockChange::Restarted => counts.restarts += 1,
        }
        if self.interval > 1 {
            let interval = Some(u64::from(self.interval));
            stream.notice(SelectorNotice { interval, ..SelectorNotice::default() }, counts);
        }
    }
}

/// One record; `None` if bytes are missing.
fn flow(bytes: &mut Bytes<'_>, clock: &UptimeClock) -> Option<Result<FlowRecord, Unusable>> {
    let (source, destination) = (Ipv4Addr::from(bytes.u32()?), Ipv4Addr::from(bytes.u32()?));
    let _next_hop_and_interfaces = bytes.take(8)?;
    let (packets, octets) = (bytes.u32()?, bytes.u32()?);
    let (first, last) = (clock.moment(bytes.u32()?), clock.moment(bytes.u32()?));
    let (source_port, destination_port) = (bytes.u16()?, bytes.u16()?);
    let [_, tcp_flags, protocol] = bytes.array()?;
    if packets == 0 {
        return Some(Err(Unusable::NoPackets));
    }
    if last < first {
        return Some(Err(Unusable::EndsBeforeStart));
    }
    let has_ports = matches!(protocol, protocol::TCP | protocol::UDP | protocol::SCTP);
    let port = |port| if has_ports { port } else { 0 };
    Some(Ok(FlowRecord {
        key: FlowKey {
            source: source.into(),
            destination: destination.into(),
            source_port: port(source_port),
            destination_port: port(destination_port),
            protocol,
        },
        class: ClassId::default(),
        first,
        last,
        packets: packets.into(),
        bytes: octets.into(),
        tcp_flags,
        first_label: None,
        last_label: None,
        end: FlowEnd::Unknown,
        resolution_ns: clock.resolution_ns,
    }))
}

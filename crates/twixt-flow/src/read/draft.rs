//! One flow record in the making: fields in any order, then a record or the reason why not.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use twixt_model::{ClassId, FlowEnd, FlowKey, FlowRecord, PacketDigest, Timestamp, protocol};

use super::counts::Unusable;
use super::uptime::UptimeClock;
use crate::bytes::number;
use crate::element::{self, Element, REVERSE_ENTERPRISE, enterprise_element};
use crate::ntp;

const MICROSECOND_NS: i64 = 1_000;
const MILLISECOND_NS: i64 = 1_000_000;
const SECOND_NS: i64 = 1_000_000_000;

/// A moment as a field tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    /// On the exporter's clock.
    At { time: Timestamp, resolution_ns: u64 },
    /// So long before the message was sent.
    BeforeExport { microseconds: u32 },
    /// So long after the exporter started.
    Uptime { milliseconds: u32 },
}

impl Moment {
    /// The finest wins; an uptime needs to know more than the record says.
    const fn rank(self) -> u64 {
        match self {
            Self::At { resolution_ns, .. } => resolution_ns,
            Self::BeforeExport { .. } => MICROSECOND_NS as u64,
            Self::Uptime { .. } => MILLISECOND_NS as u64 + 1,
        }
    }
}

/// What ties a record's times to the time of day.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clocks {
    pub(super) exported: Timestamp,
    pub(super) uptime: Option<UptimeClock>,
}

/// The fields of a flow record that were met so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Draft {
    source: Option<IpAddr>,
    destination: Option<IpAddr>,
    source_port: u16,
    destination_port: u16,
    protocol: Option<u8>,
    packets: Option<u64>,
    bytes: Option<u64>,
    tcp_flags: u8,
    first: Option<Moment>,
    last: Option<Moment>,
    first_label: Option<PacketDigest>,
    last_label: Option<PacketDigest>,
    class: ClassId,
    end: FlowEnd,
    started_ms: Option<u64>,
    pub(super) observation_point: Option<u64>,
    /// It counts the opposite direction as well.
    pub(super) has_reverse: bool,
    is_delay: bool,
    bad_field: bool,
}

impl Draft {
    /// Takes in one field. Elements that mean nothing to us are passed over.
    pub(super) fn field(&mut self, element: Element, bytes: &[u8], enterprise: u32) {
        let understood = match element.enterprise {
            0 => self.iana_field(element.number, bytes),
            owner if owner == enterprise => self.own_field(element.number, bytes),
            REVERSE_ENTERPRISE => {
                self.has_reverse = true;
                Some(())
            }
            _ => Some(()),
        };
        self.bad_field |= understood.is_none();
    }

    /// The record, or why there is none.
    pub(super) fn finish(&self, clocks: &Clocks) -> Result<FlowRecord, Unusable> {
        if self.is_delay {
            return Err(Unusable::DelayResult);
        }
        if self.bad_field {
            return Err(Unusable::BadField);
        }
        let key = self.key()?;
        let packets = self.packets.filter(|&packets| packets > 0).ok_or(Unusable::NoPackets)?;
        let (first, first_ns) = self.time(self.first, clocks)?;
        let (last, last_ns) = self.time(self.last, clocks)?;
        if last < first {
            return Err(Unusable::EndsBeforeStart);
        }
        Ok(FlowRecord {
            key,
            class: self.class,
            first,
            last,
            packets,
            bytes: self.bytes.ok_or(Unusable::NoBytes)?,
            tcp_flags: self.tcp_flags,
            first_label: self.first_label,
            last_label: self.last_label,
            end: self.end,
            resolution_ns: first_ns.max(last_ns),
        })
    }

    fn key(&self) -> Result<FlowKey, Unusable> {
        let (source, destination) =
            self.source.zip(self.destination).ok_or(Unusable::NoAddresses)?;
        let protocol = self.protocol.ok_or(Unusable::NoProtocol)?;
        // Exporters write type and code of ICMP in place of a port.
        let has_ports = matches!(protocol, protocol::TCP | protocol::UDP | protocol::SCTP);
        let port = |port| if has_ports { port } else { 0 };
        Ok(FlowKey {
            source,
            destination,
            source_port: port(self.source_port),
            destination_port: port(self.destination_port),
            protocol,
        })
    }

    fn time(&self, moment: Option<Moment>, clocks: &Clocks) -> Result<(Timestamp, u64), Unusable> {
        match moment.ok_or(Unusable::NoTimes)? {
            Moment::At { time, resolution_ns } => Ok((time, resolution_ns)),
            Moment::BeforeExport { microseconds } => {
                let ago_ns = i64::from(microseconds) * MICROSECOND_NS;
                let time_ns = clocks.exported.as_nanos().saturating_sub(ago_ns);
                Ok((Timestamp::from_nanos(time_ns), MICROSECOND_NS as u64))
            }
            Moment::Uptime { milliseconds } => {
                let own = self.started_ms.map(|ms| UptimeClock::since(ms, clocks.exported));
                let clock = own.or(clocks.uptime).ok_or(Unusable::NoSystemStart)?;
                Ok((clock.moment(milliseconds), clock.resolution_ns))
            }
        }
    }

    /// `None` if the field has a length that the element cannot have.
    fn iana_field(&mut self, element: u16, bytes: &[u8]) -> Option<()> {
        match element {
            element::SOURCE_IPV4 => address(&mut self.source, v4(bytes)?),
            element::DESTINATION_IPV4 => address(&mut self.destination, v4(bytes)?),
            element::SOURCE_IPV6 => address(&mut self.source, v6(bytes)?),
            element::DESTINATION_IPV6 => address(&mut self.destination, v6(bytes)?),
            element::SOURCE_PORT => self.source_port = narrow(bytes)?,
            element::DESTINATION_PORT => self.destination_port = narrow(bytes)?,
            element::PROTOCOL => self.protocol = Some(narrow(bytes)?),
            element::TCP_CONTROL_BITS => self.tcp_flags = number(bytes)? as u8,
            element::FLOW_END_REASON => self.end = FlowEnd::from_number(narrow(bytes)?),
            element::OBSERVATION_POINT_ID => self.observation_point = Some(narrow(bytes)?),
            element::DIGEST_HASH_VALUE => self.first_label = Some(PacketDigest(narrow(bytes)?)),
            element::SYSTEM_INIT_MILLISECONDS => self.started_ms = Some(narrow(bytes)?),
            // Deltas come before totals, which count since the flow began.
            element::PACKET_DELTA_COUNT => self.packets = Some(narrow(bytes)?),
            element::OCTET_DELTA_COUNT => self.bytes = Some(narrow(bytes)?),
            element::PACKET_TOTAL_COUNT => self.packets = self.packets.or(Some(narrow(bytes)?)),
            element::OCTET_TOTAL_COUNT => self.bytes = self.bytes.or(Some(narrow(bytes)?)),
            element::DELAY_MEAN_MICROSECONDS..=element::DELAY_SUM_MICROSECONDS => {
                self.is_delay = true;
            }
            _ => return self.time_field(element, bytes),
        }
        Some(())
    }

    fn time_field(&mut self, element: u16, bytes: &[u8]) -> Option<()> {
        use crate::element as e;
        let (place, moment) = match element {
            e::FLOW_START_SECONDS | e::FLOW_END_SECONDS => {
                (element - e::FLOW_START_SECONDS, at(narrow::<u32>(bytes)?, SECOND_NS))
            }
            e::FLOW_START_MILLISECONDS | e::FLOW_END_MILLISECONDS => {
                (element - e::FLOW_START_MILLISECONDS, at(number(bytes)?, MILLISECOND_NS))
            }
            e::FLOW_START_MICROSECONDS | e::FLOW_END_MICROSECONDS => {
                (element - e::FLOW_START_MICROSECONDS, ntp_time(bytes, MICROSECOND_NS)?)
            }
            e::FLOW_START_NANOSECONDS | e::FLOW_END_NANOSECONDS => {
                (element - e::FLOW_START_NANOSECONDS, ntp_time(bytes, 1)?)
            }
            e::FLOW_START_DELTA_MICROSECONDS | e::FLOW_END_DELTA_MICROSECONDS => {
                let microseconds = narrow(bytes)?;
                (element - e::FLOW_START_DELTA_MICROSECONDS, Moment::BeforeExport { microseconds })
            }
            // Here the end has the lower number.
            e::FLOW_START_UPTIME | e::FLOW_END_UPTIME => {
                let milliseconds = narrow(bytes)?;
                (e::FLOW_START_UPTIME - element, Moment::Uptime { milliseconds })
            }
            _ => return Some(()),
        };
        let place = if place == 0 { &mut self.first } else { &mut self.last };
        if place.is_none_or(|before| moment.rank() < before.rank()) {
            *place = Some(moment);
        }
        Some(())
    }

    fn own_field(&mut self, element: u16, bytes: &[u8]) -> Option<()> {
        match element {
            enterprise_element::LAST_LABEL => self.last_label = Some(PacketDigest(narrow(bytes)?)),
            enterprise_element::CLASS => self.class = ClassId(narrow(bytes)?),
            _ => {}
        }
        Some(())
    }
}

/// Some templates have places for both versions and fill the unused one with zeros.
fn address(place: &mut Option<IpAddr>, address: IpAddr) {
    if place.is_none_or(|before| before.is_unspecified()) {
        *place = Some(address);
    }
}

fn v4(bytes: &[u8]) -> Option<IpAddr> {
    <[u8; 4]>::try_from(bytes).ok().map(|octets| Ipv4Addr::from(octets).into())
}

fn v6(bytes: &[u8]) -> Option<IpAddr> {
    <[u8; 16]>::try_from(bytes).ok().map(|octets| Ipv6Addr::from(octets).into())
}

/// A number that fits its type.
fn narrow<T: TryFrom<u64>>(bytes: &[u8]) -> Option<T> {
    T::try_from(number(bytes)?).ok()
}

fn at(count: impl Into<u64>, unit_ns: i64) -> Moment {
    let count = i64::try_from(count.into()).unwrap_or(i64::MAX);
    Moment::At {
        time: Timestamp::from_nanos(count.saturating_mul(unit_ns)),
        resolution_ns: unit_ns as u64,
    }
}

fn ntp_time(bytes: &[u8], resolution_ns: i64) -> Option<Moment> {
    let bits = u64::from_be_bytes(bytes.try_into().ok()?);
    Some(Moment::At { time: ntp::from_bits(bits), resolution_ns: resolution_ns as u64 })
}

//! The layouts of the records that we write: their templates, and their bytes.

use std::net::IpAddr;

use twixt_model::{Delay, FlowKey, FlowRecord, Timestamp};

use super::{DelayRecord, FlowWriteError, WriterConfig};
use crate::element::{self, Element, TimeUnit, enterprise_element};
use crate::notice::SelectorNotice;
use crate::ntp;
use crate::template::Field;

const MICROSECOND_NS: i64 = 1_000;
const MILLISECOND_NS: i64 = 1_000_000;

/// A kind of records. Each has a template of its own, with a number that follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Layout {
    Flow {
        v6: bool,
        first_label: bool,
        last_label: bool,
        unit: TimeUnit,
    },
    Delay {
        v6: bool,
        extremes: bool,
    },
    /// A bit for each of [`SELECTOR_GROUPS`] that is known.
    Selector {
        groups: u8,
    },
}

impl Layout {
    pub(super) fn of_record(
        record: &FlowRecord,
        config: &WriterConfig,
    ) -> Result<Self, FlowWriteError> {
        let fitting = TimeUnit::for_resolution(record.resolution_ns);
        Ok(Self::Flow {
            v6: is_v6(&record.key)?,
            first_label: record.first_label.is_some(),
            last_label: record.last_label.is_some(),
            unit: config.time_unit.map_or(fitting, |unit| unit.max(fitting)),
        })
    }

    pub(super) fn of_delay(delay: &DelayRecord) -> Result<Self, FlowWriteError> {
        Ok(Self::Delay { v6: is_v6(&delay.key)?, extremes: delay.extremes.is_some() })
    }

    pub(super) fn of_selector(notice: &SelectorNotice) -> Self {
        let known = selector_groups(notice).map(|group| u8::from(group.is_some()));
        Self::Selector { groups: known.iter().rev().fold(0, |bits, bit| bits << 1 | bit) }
    }

    /// From 256 on; never changes, so that collectors of several releases agree.
    pub(super) fn template_number(self) -> u16 {
        match self {
            Self::Flow { v6, first_label, last_label, unit } => {
                256 + (unit as u16) * 8
                    + u16::from(v6) * 4
                    + u16::from(first_label) * 2
                    + u16::from(last_label)
            }
            Self::Delay { v6, extremes } => 300 + u16::from(v6) * 2 + u16::from(extremes),
            Self::Selector { groups } => 320 + u16::from(groups),
        }
    }

    /// The set that its template belongs to.
    pub(super) const fn set_number(self) -> u16 {
        match self {
            Self::Selector { .. } => 3,
            Self::Flow { .. } | Self::Delay { .. } => 2,
        }
    }

    /// The template as bytes.
    pub(super) fn template(self, config: &WriterConfig) -> Vec<u8> {
        let fields = self.fields(config);
        let mut bytes = Vec::new();
        bytes.extend(self.template_number().to_be_bytes());
        bytes.extend((fields.len() as u16).to_be_bytes());
        if matches!(self, Self::Selector { .. }) {
            bytes.extend(1_u16.to_be_bytes()); // the first field is the scope
        }
        for Field { element, length } in fields {
            let enterprise_bit = if element.enterprise == 0 { 0 } else { 0x8000 };
            bytes.extend((element.number | enterprise_bit).to_be_bytes());
            bytes.extend(length.to_be_bytes());
            if element.enterprise != 0 {
                bytes.extend(element.enterprise.to_be_bytes());
            }
        }
        bytes
    }

    /// The fields, in the order in which the functions below write them.
    fn fields(self, config: &WriterConfig) -> Vec<Field> {
        let own = |number, length| Field {
            element: Element { enterprise: config.enterprise, number },
            length,
        };
        match self {
            Self::Flow { v6, first_label, last_label, unit } => {
                let mut fields = key_fields(v6);
                fields.extend([
                    iana(element::TCP_CONTROL_BITS, 2),
                    iana(element::FLOW_END_REASON, 1),
                    iana(element::PACKET_DELTA_COUNT, 8),
                    iana(element::OCTET_DELTA_COUNT, 8),
                    iana(unit.start_element(), 8),
                    iana(unit.start_element() + 1, 8),
                ]);
                let point = iana(element::OBSERVATION_POINT_ID, 4);
                fields.extend(config.observation_point.map(|_| point));
                fields.extend(first_label.then(|| iana(element::DIGEST_HASH_VALUE, 8)));
                fields.extend(last_label.then(|| own(enterprise_element::LAST_LABEL, 8)));
                fields.extend(config.classes.then(|| own(enterprise_element::CLASS, 2)));
                fields
            }
            Self::Delay { v6, extremes } => {
                let mut fields = key_fields(v6);
                fields.extend([
                    iana(element::PACKET_DELTA_COUNT, 8),
                    iana(element::FLOW_START_NANOSECONDS, 8),
                    iana(element::FLOW_END_NANOSECONDS, 8),
                    iana(element::DELAY_MEAN_MICROSECONDS, 4),
                    iana(element::DELAY_SUM_MICROSECONDS, 8),
                ]);
                if extremes {
                    fields.push(iana(element::DELAY_MIN_MICROSECONDS, 4));
                    fields.push(iana(element::DELAY_MAX_MICROSECONDS, 4));
                }
                fields
            }
            Self::Selector { groups } => {
                let known = |&(index, _): &(usize, &&[(u16, u16)])| groups >> index & 1 == 1;
                let elements = SELECTOR_GROUPS.iter().enumerate().filter(known);
                let mut fields = vec![iana(element::SELECTOR_ID, 8)];
                fields.extend(elements.flat_map(|(_, group)| *group).map(|&(number, length)| {
                    match number {
                        OWN_KEY_ID => own(enterprise_element::SELECTOR_KEY_ID, length),
                        _ => iana(number, length),
                    }
                }));
                fields
            }
        }
    }

    /// A flow record as bytes.
    pub(super) fn record(
        self,
        record: &FlowRecord,
        config: &WriterConfig,
    ) -> Result<Vec<u8>, FlowWriteError> {
        let Self::Flow { unit, .. } = self else { unreachable!("the layout is that of a record") };
        let mut bytes = Vec::with_capacity(96);
        write_key(&mut bytes, &record.key);
        bytes.extend(u16::from(record.tcp_flags).to_be_bytes());
        bytes.push(record.end as u8);
        bytes.extend(record.packets.to_be_bytes());
        bytes.extend(record.bytes.to_be_bytes());
        bytes.extend(time(record.first, unit)?);
        bytes.extend(time(record.last, unit)?);
        bytes.extend(config.observation_point.iter().flat_map(|point| point.to_be_bytes()));
        let labels = [record.first_label, record.last_label];
        bytes.extend(labels.iter().flatten().flat_map(|label| label.0.to_be_bytes()));
        if config.classes {
            bytes.extend(record.class.0.to_be_bytes());
        }
        Ok(bytes)
    }

    /// A delay as bytes.
    pub(super) fn delay(self, delay: &DelayRecord) -> Result<Vec<u8>, FlowWriteError> {
        let mut bytes = Vec::with_capacity(96);
        write_key(&mut bytes, &delay.key);
        bytes.extend(delay.packets.to_be_bytes());
        bytes.extend(time(delay.first, TimeUnit::Nanoseconds)?);
        bytes.extend(time(delay.last, TimeUnit::Nanoseconds)?);
        bytes.extend(microseconds(delay.mean)?.to_be_bytes());
        // Of nanoseconds: the mean in microseconds is rounded.
        let sum_ns = i128::from(delay.mean.as_nanos()) * i128::from(delay.packets);
        let sum = u64::try_from(sum_ns / i128::from(MICROSECOND_NS)).unwrap_or(u64::MAX);
        bytes.extend(sum.to_be_bytes());
        if let Some((min, max)) = delay.extremes {
            bytes.extend(microseconds(min)?.to_be_bytes());
            bytes.extend(microseconds(max)?.to_be_bytes());
        }
        Ok(bytes)
    }

    /// The description of a selector, as bytes.
    pub(super) fn selector(self, notice: &SelectorNotice) -> Vec<u8> {
        let mut bytes = notice.selector_id.to_be_bytes().to_vec();
        for (values, group) in selector_groups(notice).iter().zip(SELECTOR_GROUPS) {
            let Some(values) = values else { continue };
            for (value, (_, length)) in values.iter().zip(group) {
                bytes.extend(&value.to_be_bytes()[8 - usize::from(*length)..]);
            }
        }
        bytes
    }
}

/// Stands for our own element in the table below; IANA assigns no 0.
const OWN_KEY_ID: u16 = 0;

/// Fields that describe a selector, element and length: a group is known as a whole or not at all.
const SELECTOR_GROUPS: [&[(u16, u16)]; 8] = [
    &[(element::SELECTOR_ALGORITHM, 2)],
    &[(OWN_KEY_ID, 4)],
    &[(element::HASH_IP_PAYLOAD_OFFSET, 8), (element::HASH_IP_PAYLOAD_SIZE, 8)],
    &[(element::HASH_OUTPUT_RANGE_MIN, 8), (element::HASH_OUTPUT_RANGE_MAX, 8)],
    &[(element::HASH_SELECTED_RANGE_MIN, 8), (element::HASH_SELECTED_RANGE_MAX, 8)],
    &[(element::HASH_INITIALISER_VALUE, 8)],
    &[(element::SELECTOR_PACKETS_OBSERVED, 8), (element::SELECTOR_PACKETS_SELECTED, 8)],
    &[(element::SAMPLING_PACKET_INTERVAL, 4)],
];

/// The values of those groups; a group of one repeats it, and the table says how many count.
fn selector_groups(notice: &SelectorNotice) -> [Option<[u64; 2]>; 8] {
    let pair = |(first, second)| [first, second];
    let alone = |value| [value, value];
    [
        notice.algorithm.map(u64::from).map(alone),
        notice.key_id.map(u64::from).map(alone),
        notice.payload_offset.zip(notice.payload_bytes).map(pair),
        notice.output.map(pair),
        notice.selected.map(pair),
        notice.initialiser.map(alone),
        notice.packets.map(pair),
        notice.interval.map(alone),
    ]
}

fn iana(number: u16, length: u16) -> Field {
    Field { element: Element::iana(number), length }
}

fn is_v6(key: &FlowKey) -> Result<bool, FlowWriteError> {
    match (key.source, key.destination) {
        (IpAddr::V4(_), IpAddr::V4(_)) => Ok(false),
        (IpAddr::V6(_), IpAddr::V6(_)) => Ok(true),
        _ => Err(FlowWriteError::Addresses),
    }
}

fn key_fields(v6: bool) -> Vec<Field> {
    let (source, destination, length) = match v6 {
        true => (element::SOURCE_IPV6, element::DESTINATION_IPV6, 16),
        false => (element::SOURCE_IPV4, element::DESTINATION_IPV4, 4),
    };
    vec![
        iana(source, length),
        iana(destination, length),
        iana(element::SOURCE_PORT, 2),
        iana(element::DESTINATION_PORT, 2),
        iana(element::PROTOCOL, 1),
    ]
}

fn write_key(bytes: &mut Vec<u8>, key: &FlowKey) {
    for address in [key.source, key.destination] {
        match address {
            IpAddr::V4(address) => bytes.extend(address.octets()),
            IpAddr::V6(address) => bytes.extend(address.octets()),
        }
    }
    bytes.extend(key.source_port.to_be_bytes());
    bytes.extend(key.destination_port.to_be_bytes());
    bytes.push(key.protocol);
}

fn time(time: Timestamp, unit: TimeUnit) -> Result<[u8; 8], FlowWriteError> {
    let nanoseconds = time.as_nanos();
    let bits = match unit {
        TimeUnit::Milliseconds => u64::try_from(nanoseconds.div_euclid(MILLISECOND_NS)).ok(),
        TimeUnit::Microseconds => {
            let whole =
                nanoseconds - nanoseconds.rem_euclid(MICROSECOND_NS).min(nanoseconds.max(0));
            ntp::to_bits(Timestamp::from_nanos(whole))
        }
        TimeUnit::Nanoseconds => ntp::to_bits(time),
    };
    bits.map(u64::to_be_bytes).ok_or(FlowWriteError::Time { nanoseconds })
}

/// Rounded; 32 bits of microseconds are 71 minutes.
fn microseconds(delay: Delay) -> Result<u32, FlowWriteError> {
    let nanoseconds = delay.as_nanos();
    let rounded = nanoseconds.saturating_add(MICROSECOND_NS / 2).div_euclid(MICROSECOND_NS);
    let fits =
        (nanoseconds >= 0).then_some(rounded).and_then(|rounded| u32::try_from(rounded).ok());
    fits.ok_or(FlowWriteError::Delay { nanoseconds })
}

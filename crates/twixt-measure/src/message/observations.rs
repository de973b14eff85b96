//! Observations near a boundary as bytes, column by column.
//!
//! Digests are noise, and take most of the room. Of flows there are fewer than of packets, times
//! follow each other closely, and lengths are small: these bytes need no further packing.
//!
//! | field | type |
//! |---|---|
//! | flows; of each hash, class and group | u32, (u64, u16, u16) each |
//! | time of each, less that of the one before; of the first, as it is | signed number each |
//! | which flow | number each |
//! | length | number each |
//! | digest | u64 each |
//!
//! A number is in groups of 7 bits, the lowest first; the highest bit of a byte says that more
//! follow. Signed ones are 0, -1, 1, -2, ... in this order.

use std::collections::HashMap;

use twixt_model::{ClassId, FlowHash, GroupId, Observation, PacketDigest, Timestamp};
use twixt_synopsis::{DecodeError, Reader, Writer};

/// The shortest that an observation can be, of a flow that is there already.
pub(super) const BYTES_MIN: usize = 1 + 1 + 1 + 8;
const FLOW_BYTES: usize = 8 + 2 + 2;

/// What the packets of a flow have in common.
type Flow = (FlowHash, ClassId, GroupId);

/// Appends observations.
pub(super) fn write(observations: &[Observation], out: &mut Writer) {
    let mut numbers = HashMap::<Flow, u32>::new();
    let mut flows = Vec::<Flow>::new();
    let mut number_of = |packet: &Observation| {
        let flow = (packet.flow, packet.class, packet.group);
        *numbers.entry(flow).or_insert_with(|| {
            flows.push(flow);
            flows.len() as u32 - 1
        })
    };
    let of_packets: Vec<u32> = observations.iter().map(&mut number_of).collect();
    out.u32(flows.len() as u32); // stashes are bounded by STASH_LIMIT
    for (hash, class, group) in flows {
        out.u64(hash.0);
        out.u16(class.0);
        out.u16(group.0);
    }
    let mut before_ns = 0_i64;
    for packet in observations {
        let time_ns = packet.time.as_nanos();
        let difference = time_ns.wrapping_sub(before_ns);
        write_number(((difference << 1) ^ (difference >> 63)) as u64, out);
        before_ns = time_ns;
    }
    of_packets.into_iter().for_each(|number| write_number(u64::from(number), out));
    observations.iter().for_each(|packet| write_number(u64::from(packet.length), out));
    observations.iter().for_each(|packet| out.u64(packet.digest.0));
}

/// Reads so many back. The caller has seen that there are bytes for them.
pub(super) fn read(
    count: usize,
    input: &mut Reader<'_>,
    field: &'static str,
) -> Result<Vec<Observation>, DecodeError> {
    let flows = read_flows(input, field)?;
    let mut observations = vec![Observation::default(); count];
    let mut time_ns = 0_i64;
    for packet in &mut observations {
        let difference = read_number(input, field)?;
        let difference = (difference >> 1) as i64 ^ -((difference & 1) as i64);
        time_ns = time_ns.wrapping_add(difference);
        packet.time = Timestamp::from_nanos(time_ns);
    }
    for packet in &mut observations {
        let number = usize::try_from(read_number(input, field)?).ok();
        let Some(&flow) = number.and_then(|number| flows.get(number)) else {
            return Err(DecodeError::invalid(field, "an observation without a flow"));
        };
        (packet.flow, packet.class, packet.group) = flow;
    }
    for packet in &mut observations {
        packet.length = u32::try_from(read_number(input, field)?)
            .map_err(|_| DecodeError::invalid(field, "an impossible packet length"))?;
    }
    for packet in &mut observations {
        packet.digest = PacketDigest(input.u64(field)?);
    }
    Ok(observations)
}

/// Goes past so many.
pub(super) fn skip(
    count: usize,
    input: &mut Reader<'_>,
    field: &'static str,
) -> Result<(), DecodeError> {
    let flows = input.u32(field)? as usize;
    input.raw(field, flows.saturating_mul(FLOW_BYTES))?;
    for _ in 0..3 * count {
        read_number(input, field)?;
    }
    input.raw(field, count * size_of::<u64>())?;
    Ok(())
}

fn read_flows(input: &mut Reader<'_>, field: &'static str) -> Result<Vec<Flow>, DecodeError> {
    let count = input.u32(field)? as usize;
    let mut flows = Reader::new(input.raw(field, count.saturating_mul(FLOW_BYTES))?);
    let mut flow = || {
        Ok((FlowHash(flows.u64(field)?), ClassId(flows.u16(field)?), GroupId(flows.u16(field)?)))
    };
    (0..count).map(|_| flow()).collect()
}

fn write_number(mut value: u64, out: &mut Writer) {
    while value >= 0x80 {
        out.u8(value as u8 | 0x80);
        value >>= 7;
    }
    out.u8(value as u8);
}

#[inline]
fn read_number(input: &mut Reader<'_>, field: &'static str) -> Result<u64, DecodeError> {
    let mut value = 0_u64;
    for shift in (0..u64::BITS).step_by(7) {
        let byte = input.u8(field)?;
        let bits = u64::from(byte & 0x7f);
        if (bits << shift) >> shift != bits {
            break;
        }
        value |= bits << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(DecodeError::invalid(field, "a number of more than 64 bits"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_read_back_or_are_refused(value in any::<u64>(), shift in 0..64_u32, bytes in prop::collection::vec(any::<u8>(), 0..12)) {
            let mut out = Writer::new();
            write_number(value >> shift, &mut out);
            let written = out.into_bytes();
            let mut input = Reader::new(&written);
            prop_assert_eq!(read_number(&mut input, "number"), Ok(value >> shift));
            prop_assert_eq!(input.left(), 0);
            let _ = read_number(&mut Reader::new(&bytes), "number");
        }

        #[test]
        fn observations_read_back(
            packets in prop::collection::vec((any::<i64>(), any::<u64>(), 0..4_u64, any::<u32>(), any::<u16>()), 0..40),
        ) {
            let packets: Vec<Observation> = packets.into_iter().map(|(time_ns, digest, flow, length, class)| Observation {
                time: Timestamp::from_nanos(time_ns),
                digest: PacketDigest(digest),
                flow: FlowHash(flow),
                length,
                class: ClassId(class % 2),
                group: GroupId(class % 3),
            }).collect();
            let mut out = Writer::new();
            write(&packets, &mut out);
            let bytes = out.into_bytes();
            let mut input = Reader::new(&bytes);
            prop_assert_eq!(read(packets.len(), &mut input, "head"), Ok(packets));
            prop_assert_eq!(input.left(), 0);
        }
    }

    /// A thousandth of a second at 500 000 packets per second, of a hundred flows.
    #[test]
    fn close_packets_of_few_flows_take_little_more_than_their_digests() {
        let packet = |number: u64| Observation {
            time: Timestamp::from_nanos(1_700_000_000_000_000_000 + number as i64 * 2000),
            digest: PacketDigest(twixt_model::mix(number)),
            flow: FlowHash(twixt_model::mix(!(number % 100))),
            length: 1500,
            ..Observation::default()
        };
        let packets: Vec<Observation> = (0..500).map(packet).collect();
        let mut out = Writer::new();
        write(&packets, &mut out);
        let bytes = out.into_bytes().len();
        assert!(bytes <= 500 * (8 + 2 + 1 + 2) + 100 * 12 + 4 + 8, "{bytes}");
    }
}

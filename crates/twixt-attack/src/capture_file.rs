//! The capture file of a point: pcap with nanoseconds, in the order in which frames were seen.

use std::io::{self, Write};

use crate::frame::{Point, frame};
use crate::traffic::{SentPacket, Traffic};

const NANOSECOND_MAGIC: u32 = 0xa1b2_3c4d;
const ETHERNET: u32 = 1;
const SNAP_LENGTH: u32 = 65_535;
const SECOND_NS: i64 = 1_000_000_000;

/// Writes what a point sees of the traffic.
pub(crate) fn write(traffic: &Traffic, point: Point, out: &mut impl Write) -> io::Result<()> {
    out.write_all(&NANOSECOND_MAGIC.to_le_bytes())?;
    out.write_all(&[2, 0, 4, 0])?; // version 2.4
    out.write_all(&[0; 8])?; // time zone and accuracy, both unused
    out.write_all(&SNAP_LENGTH.to_le_bytes())?;
    out.write_all(&ETHERNET.to_le_bytes())?;
    for (seen_ns, packet, first) in seen(traffic, point) {
        let flow = traffic.flows[packet.flow];
        let flow = if first == Point::Upstream { flow } else { flow.reversed() };
        write_record(seen_ns, &frame(packet, flow, point, first), out)?;
    }
    Ok(())
}

/// What a point sees, and when, in order; with the point that saw each packet first.
fn seen(traffic: &Traffic, point: Point) -> Vec<(i64, &SentPacket, Point)> {
    let forward = traffic.forward.iter().map(|packet| (packet, Point::Upstream));
    let backward = traffic.backward.iter().map(|packet| (packet, Point::Downstream));
    let seen = forward.chain(backward).filter_map(|(packet, first)| {
        let after_ns = if point == first { Some(0) } else { packet.delay_ns };
        Some((packet.sent_ns + after_ns?, packet, first))
    });
    let mut seen: Vec<_> = seen.collect();
    seen.sort_by_key(|&(seen_ns, ..)| seen_ns);
    seen
}

fn write_record(seen_ns: i64, frame: &[u8], out: &mut impl Write) -> io::Result<()> {
    let field = |value: i64| u32::try_from(value).expect("times are after 1970 and before 2106");
    let length = u32::try_from(frame.len()).expect("frames are short");
    let fields = [field(seen_ns / SECOND_NS), field(seen_ns % SECOND_NS), length, length];
    fields.iter().try_for_each(|field| out.write_all(&field.to_le_bytes()))?;
    out.write_all(frame)
}

//! The records that two meters would export: flows take turns, and one record in a hundred has no
//! partner downstream.

use twixt_model::{ClassId, FlowEnd, FlowKey, FlowRecord, PacketDigest, Timestamp, mix};

/// Flows that take turns.
const FLOWS: u64 = 200_000;
/// Records that are closed in a second.
const RECORDS_PER_SECOND: u64 = 3_000;
const START_NS: i64 = 1_700_000_000_000_000_000;
/// Records last up to five seconds.
const LENGTH_NS: u64 = 5_000_000_000;
const DELAY_NS: i64 = 20_000_000;

/// Of `records` flow records, those of the upstream and of the downstream meter, each in the order
/// in which the meter closes them.
pub(crate) fn records(records: u64) -> [Vec<FlowRecord>; 2] {
    let arrived = (0..records).filter(|number| !mix(*number).is_multiple_of(100));
    let upstream = (0..records).map(|number| record(number, 0)).collect();
    let downstream = arrived.map(|number| record(number, DELAY_NS)).collect();
    [upstream, downstream].map(|mut records: Vec<FlowRecord>| {
        records.sort_by_key(|record| record.last);
        records
    })
}

fn record(number: u64, delay_ns: i64) -> FlowRecord {
    let flow = mix(number) % FLOWS;
    let first_ns = START_NS + (number * 1_000_000_000 / RECORDS_PER_SECOND) as i64;
    let last_ns = first_ns + (mix(number ^ 1) % LENGTH_NS) as i64;
    let time = |sent_ns: i64, salt: u64| {
        let waited_ns = if delay_ns > 0 { (mix(number ^ salt) % 40_000_000) as i64 } else { 0 };
        Timestamp::from_nanos(sent_ns + delay_ns + waited_ns)
    };
    let [a, b, c, d, e, f, g, h] = mix(flow).to_be_bytes();
    FlowRecord {
        key: FlowKey {
            source: [a, b, c, d].into(),
            destination: [e, f, g, h].into(),
            source_port: flow as u16,
            destination_port: 443,
            protocol: 6,
        },
        class: ClassId::default(),
        first: time(first_ns, 2),
        last: time(last_ns, 3),
        packets: 5,
        bytes: 500,
        tcp_flags: 0,
        first_label: Some(PacketDigest(mix(number ^ 4 << 60))),
        last_label: Some(PacketDigest(mix(number ^ 5 << 60))),
        end: FlowEnd::Idle,
        resolution_ns: 1,
    }
}

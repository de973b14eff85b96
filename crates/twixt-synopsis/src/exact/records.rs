//! What the referee keeps of packets, in records that can lie in a file.

use std::cmp::Ordering;

use twixt_model::{
    ClassId, Delay, FlowHash, GroupId, Observation, PacketDigest, Timestamp, sort_by_hash,
    sort_by_number,
};

use super::PACKET_BYTES;
use super::alignment::Matched;
use crate::pile::Record;

/// A packet in the order of digests, equal ones in that of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ByDigest(pub(crate) Observation);

/// The delay of a packet that counts for the scope and epoch of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PlacedDelay {
    pub(super) place: u32,
    pub(super) delay: Delay,
}

/// A packet that counts for the scope and epoch of a number, and could be another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PlacedMatched {
    pub(super) place: u32,
    pub(super) matched: Matched,
}

/// When a packet of a flow was sent, and how long it took.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PlacedStep {
    pub(super) place: u32,
    pub(super) flow: FlowHash,
    pub(super) sent: Timestamp,
    pub(super) delay: Delay,
}

/// The delay of a packet of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FlowDelay {
    pub(super) flow: FlowHash,
    pub(super) delay: Delay,
}

/// When a packet arrived, and how long it took.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Arrival {
    pub(super) arrived: Timestamp,
    pub(super) delay: Delay,
}

impl ByDigest {
    fn order(&self) -> (PacketDigest, Timestamp, FlowHash, u32, ClassId, GroupId) {
        let Observation { time, digest, flow, length, class, group } = self.0;
        (digest, time, flow, length, class, group)
    }
}

impl PartialOrd for ByDigest {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ByDigest {
    fn cmp(&self, other: &Self) -> Ordering {
        self.order().cmp(&other.order())
    }
}

/// A number in the same order.
const fn number(delay: Delay) -> u64 {
    delay.as_nanos().cast_unsigned() ^ (1 << 63)
}

fn i64_at(bytes: &[u8], at: usize) -> i64 {
    i64::from_le_bytes(bytes[at..at + 8].try_into().expect("it is as long"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    i64_at(bytes, at).cast_unsigned()
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("it is as long"))
}

fn delay_at(bytes: &[u8], at: usize) -> Delay {
    Delay::from_nanos(i64_at(bytes, at))
}

impl Record for ByDigest {
    const BYTES: usize = PACKET_BYTES;

    fn write(&self, out: &mut Vec<u8>) {
        let Observation { time, digest, flow, length, class, group: _ } = self.0;
        out.extend_from_slice(&time.as_nanos().to_le_bytes());
        out.extend_from_slice(&digest.0.to_le_bytes());
        out.extend_from_slice(&flow.0.to_le_bytes());
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(&class.0.to_le_bytes());
    }

    fn read(bytes: &[u8]) -> Self {
        Self(Observation {
            time: Timestamp::from_nanos(i64_at(bytes, 0)),
            digest: PacketDigest(u64_at(bytes, 8)),
            flow: FlowHash(u64_at(bytes, 16)),
            length: u32_at(bytes, 24),
            class: ClassId(u16::from_le_bytes([bytes[28], bytes[29]])),
            group: GroupId::default(),
        })
    }

    fn sort(records: &mut Vec<Self>) {
        sort_by_hash(records, |packet| packet.0.digest.0);
        records
            .chunk_by_mut(|one, next| one.0.digest == next.0.digest)
            .filter(|alike| alike.len() > 1)
            .for_each(<[Self]>::sort_unstable);
    }
}

impl Record for Delay {
    const BYTES: usize = 8;

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.as_nanos().to_le_bytes());
    }

    fn read(bytes: &[u8]) -> Self {
        delay_at(bytes, 0)
    }

    fn sort(records: &mut Vec<Self>) {
        sort_by_number(records, |delay| number(*delay));
    }
}

impl Record for PlacedDelay {
    const BYTES: usize = 12;

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.place.to_le_bytes());
        self.delay.write(out);
    }

    fn read(bytes: &[u8]) -> Self {
        Self { place: u32_at(bytes, 0), delay: delay_at(bytes, 4) }
    }

    fn sort(records: &mut Vec<Self>) {
        sort_by_number(records, |record| number(record.delay));
        sort_by_number(records, |record| record.place.into());
    }
}

impl Record for PlacedMatched {
    const BYTES: usize = 44;

    fn write(&self, out: &mut Vec<u8>) {
        let Self { place, matched: Matched { delay, least, most, low, high } } = *self;
        out.extend_from_slice(&place.to_le_bytes());
        [delay, least, most, low, high].iter().for_each(|delay| delay.write(out));
    }

    fn read(bytes: &[u8]) -> Self {
        let [delay, least, most, low, high] =
            [4, 12, 20, 28, 36].map(|offset| delay_at(bytes, offset));
        Self { place: u32_at(bytes, 0), matched: Matched { delay, least, most, low, high } }
    }
}

impl Record for PlacedStep {
    const BYTES: usize = 28;

    fn write(&self, out: &mut Vec<u8>) {
        let Self { place, flow, sent, delay } = *self;
        out.extend_from_slice(&place.to_le_bytes());
        out.extend_from_slice(&flow.0.to_le_bytes());
        out.extend_from_slice(&sent.as_nanos().to_le_bytes());
        delay.write(out);
    }

    fn read(bytes: &[u8]) -> Self {
        Self {
            place: u32_at(bytes, 0),
            flow: FlowHash(u64_at(bytes, 4)),
            sent: Timestamp::from_nanos(i64_at(bytes, 12)),
            delay: delay_at(bytes, 20),
        }
    }

    fn sort(records: &mut Vec<Self>) {
        sort_by_hash(records, |step| step.flow.0);
        records
            .chunk_by_mut(|one, next| one.flow == next.flow)
            .filter(|flow| flow.len() > 1)
            .for_each(|flow| flow.sort_unstable_by_key(|step| (step.sent, step.delay)));
        sort_by_number(records, |step| step.place.into());
    }
}

impl Record for FlowDelay {
    const BYTES: usize = 16;

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.flow.0.to_le_bytes());
        self.delay.write(out);
    }

    fn read(bytes: &[u8]) -> Self {
        Self { flow: FlowHash(u64_at(bytes, 0)), delay: delay_at(bytes, 8) }
    }
}

impl Record for Arrival {
    const BYTES: usize = 16;

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.arrived.as_nanos().to_le_bytes());
        self.delay.write(out);
    }

    fn read(bytes: &[u8]) -> Self {
        Self { arrived: Timestamp::from_nanos(i64_at(bytes, 0)), delay: delay_at(bytes, 8) }
    }
}

impl Record for u64 {
    const BYTES: usize = 8;

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_le_bytes());
    }

    fn read(bytes: &[u8]) -> Self {
        u64_at(bytes, 0)
    }

    fn sort(records: &mut Vec<Self>) {
        sort_by_number(records, |number| *number);
    }
}

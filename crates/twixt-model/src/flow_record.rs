//! What a meter of flows remembers of one flow.

use crate::{ClassId, FlowKey, PacketDigest, Timestamp};

/// The packets of one flow, from its first until the meter closed the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowRecord {
    /// The directed flow.
    pub key: FlowKey,
    /// Its class: one queue, one treatment.
    pub class: ClassId,
    /// When its first counted packet was seen.
    pub first: Timestamp,
    /// When its last counted packet was seen.
    pub last: Timestamp,
    /// Counted packets: those that were selected, where packets are sampled.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The flags of all of them, or'ed.
    pub tcp_flags: u8,
    /// Label of the first packet, from meters that keep one.
    pub first_label: Option<PacketDigest>,
    /// Label of the last packet, from meters that keep one.
    pub last_label: Option<PacketDigest>,
    /// Why the meter closed it.
    pub end: FlowEnd,
    /// Times are exact to so many nanoseconds: 1 000 000 where the meter writes milliseconds.
    pub resolution_ns: u64,
}

/// Why a meter closed a record; the numbers are those of IPFIX (flowEndReason, RFC 5102).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FlowEnd {
    /// Unknown.
    #[default]
    Unknown = 0,
    /// No packet for the inactive timeout.
    Idle = 1,
    /// Older than the active timeout.
    Active = 2,
    /// FIN or RST.
    Finished = 3,
    /// The meter stopped.
    Forced = 4,
    /// The table was full.
    Evicted = 5,
}

impl FlowEnd {
    /// The reason of that number; unknown for undefined numbers.
    #[must_use]
    pub const fn from_number(number: u8) -> Self {
        match number {
            1 => Self::Idle,
            2 => Self::Active,
            3 => Self::Finished,
            4 => Self::Forced,
            5 => Self::Evicted,
            _ => Self::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_read_back_from_their_numbers() {
        for number in 0..=5 {
            assert_eq!(FlowEnd::from_number(number) as u8, number);
        }
        assert_eq!(FlowEnd::from_number(200), FlowEnd::Unknown);
    }
}

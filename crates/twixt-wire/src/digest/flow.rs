//! What flow hashes are computed from.

use std::net::IpAddr;

use twixt_model::{FlowKey, GroupPrefixes};

use super::record;
use crate::packet::Packet;

/// A flow key in the form in which it is hashed.
pub(super) struct FlowEnds {
    /// As packets hold addresses.
    source: u128,
    destination: u128,
    source_port: u16,
    destination_port: u16,
    protocol: u8,
    version: u8,
}

impl FlowEnds {
    pub(super) fn of_key(key: &FlowKey) -> Self {
        Self {
            source: bits(key.source),
            destination: bits(key.destination),
            source_port: key.source_port,
            destination_port: key.destination_port,
            protocol: key.protocol,
            version: if key.source.is_ipv4() { 4 } else { 6 },
        }
    }

    #[inline(always)]
    pub(super) fn of_packet(packet: &Packet) -> Self {
        Self {
            source: packet.source,
            destination: packet.destination,
            source_port: packet.source_port,
            destination_port: packet.destination_port,
            protocol: packet.protocol,
            version: packet.version,
        }
    }

    /// The same of the prefixes alone, ports and protocol zero.
    #[inline(always)]
    pub(super) fn prefixes(&self, groups: GroupPrefixes) -> [u64; 5] {
        let length = if self.version == 4 { groups.v4.min(32) } else { groups.v6.min(128) };
        // Addresses stand in the upper bits, IPv4 ones too.
        let mask = u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0);
        let prefixes = Self {
            source: self.source & mask,
            destination: self.destination & mask,
            source_port: 0,
            destination_port: 0,
            protocol: 0,
            version: self.version,
        };
        prefixes.words()
    }

    /// Source and destination (16 bytes each, IPv4 in the first four), ports, protocol, version,
    /// two zeros; big-endian. As little-endian words of those 40 bytes.
    #[inline(always)]
    pub(super) fn words(&self) -> [u64; 5] {
        let last = u64::from(self.source_port) << 48
            | u64::from(self.destination_port) << 32
            | u64::from(self.protocol) << 24
            | u64::from(self.version) << 16;
        let [first, second] = record::halves(self.source);
        let [third, fourth] = record::halves(self.destination);
        [first, second, third, fourth, last.swap_bytes()]
    }
}

fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(address.to_bits()) << 96,
        IpAddr::V6(address) => address.to_bits(),
    }
}

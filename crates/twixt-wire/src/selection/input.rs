//! The bytes that selection hashes see.

use std::net::IpAddr;

use twixt_model::FlowKey;

use super::{IpsxInput, SELECTION_PAYLOAD_BYTES_MAX, SelectorInput, ipsx};
use crate::bytes::{be32, chunk};
use crate::packet::Packet;

/// Header fields of IPv6: length, next header, two addresses.
const FIELDS_BYTES_MAX: usize = 2 + 1 + 16 + 16;
const INPUT_BYTES_MAX: usize = FIELDS_BYTES_MAX + SELECTION_PAYLOAD_BYTES_MAX as usize;

/// Bytes to hash, without allocation.
pub(super) struct Input {
    bytes: [u8; INPUT_BYTES_MAX],
    length: usize,
}

impl Input {
    const EMPTY: Self = Self { bytes: [0; INPUT_BYTES_MAX], length: 0 };

    fn push(&mut self, part: &[u8]) {
        self.bytes[self.length..][..part.len()].copy_from_slice(part);
        self.length += part.len();
    }

    pub(super) fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// What BOB and CRC-32 hash of a packet; `None` if the capture lacks a part of it.
pub(super) fn of_packet(packet: &Packet, frame: &[u8], wanted: SelectorInput) -> Option<Input> {
    let header = frame.get(packet.ip_at as usize..)?;
    let mut input = Input::EMPTY;
    match packet.version {
        4 => {
            input.push(chunk::<4>(header, 4)?);
            input.push(chunk::<8>(header, 12)?);
        }
        _ => {
            input.push(chunk::<3>(header, 4)?);
            input.push(chunk::<32>(header, 8)?);
        }
    }
    let payload = packet.transport(frame);
    let until = usize::from(wanted.payload_offset) + usize::from(wanted.payload_bytes);
    if packet.is_cut() && payload.len() < until {
        return None;
    }
    let until = until.min(payload.len());
    input.push(payload.get(usize::from(wanted.payload_offset)..until).unwrap_or(&[]));
    Some(input)
}

/// The IPSX hash of a packet, if it has one.
pub(super) fn ipsx_of(packet: &Packet, frame: &[u8]) -> Option<u16> {
    if packet.version != 4 {
        return None;
    }
    let header = frame.get(packet.ip_at as usize..)?;
    let payload = packet.transport(frame);
    if packet.is_cut() && payload.len() < 8 {
        return None;
    }
    // A packet without so much payload counts as if zeros followed.
    let mut word = [0; 8];
    let there = payload.len().min(8);
    word[..there].copy_from_slice(&payload[..there]);
    Some(ipsx(IpsxInput {
        fragment: be32(header, 4)?,
        source: be32(header, 12)?,
        destination: be32(header, 16)?,
        payload: be32(&word, 4)?,
    }))
}

/// What BOB and CRC-32 hash of a flow.
pub(super) fn of_flow(key: &FlowKey) -> Input {
    let mut input = Input::EMPTY;
    for address in [key.source, key.destination] {
        match address {
            IpAddr::V4(address) => input.push(&address.octets()),
            IpAddr::V6(address) => input.push(&address.octets()),
        }
    }
    input.push(&key.source_port.to_be_bytes());
    input.push(&key.destination_port.to_be_bytes());
    input.push(&[key.protocol]);
    input
}

//! Flow keys as bytes, for synopses that keep them.

use std::net::IpAddr;

use twixt_model::{FlowHash, FlowKey};

use crate::codec::{DecodeError, Reader, Writer};

/// Bytes of an encoded flow key with its hash.
pub(crate) const KEY_BYTES: usize = 8 + 1 + 16 + 16 + 2 + 2 + 1;

pub(crate) fn write_key(out: &mut Writer, hash: FlowHash, key: &FlowKey) {
    out.u64(hash.0);
    out.u8(if key.source.is_ipv4() { 4 } else { 6 });
    for address in [key.source, key.destination] {
        let mapped = match address {
            IpAddr::V4(address) => address.to_ipv6_mapped(),
            IpAddr::V6(address) => address,
        };
        out.raw(&mapped.octets());
    }
    out.u16(key.source_port);
    out.u16(key.destination_port);
    out.u8(key.protocol);
}

pub(crate) fn read_key(input: &mut Reader<'_>) -> Result<(FlowHash, FlowKey), DecodeError> {
    let hash = FlowHash(input.u64("flow hash")?);
    let version = input.u8("address family")?;
    let mut address = |field| {
        let octets: [u8; 16] = input.raw(field, 16)?.try_into().expect("raw() gave 16 bytes");
        let address = IpAddr::from(octets);
        match version {
            4 => Ok(address.to_canonical()),
            6 => Ok(address),
            _ => Err(DecodeError::invalid("address family", format!("{version} is not 4 or 6"))),
        }
    };
    let (source, destination) = (address("source")?, address("destination")?);
    let source_port = input.u16("source port")?;
    let destination_port = input.u16("destination port")?;
    let protocol = input.u8("protocol")?;
    Ok((hash, FlowKey { source, destination, source_port, destination_port, protocol }))
}

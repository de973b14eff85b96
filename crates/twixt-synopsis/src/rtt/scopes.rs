//! Scopes of groups as bytes.

use std::net::IpAddr;

use twixt_model::{FlowKey, Prefix, Scope};

use crate::codec::{DecodeError, Reader, Writer};

pub(super) fn write(out: &mut Writer, scope: &Scope) {
    match scope {
        Scope::All => out.u8(0),
        Scope::Other => out.u8(1),
        Scope::Class(name) => {
            out.u8(2);
            out.text(name);
        }
        Scope::Port { protocol, port } => {
            out.u8(3);
            out.u8(*protocol);
            out.u16(*port);
        }
        Scope::PrefixPair { source, destination } => {
            out.u8(4);
            for prefix in [source, destination] {
                write_address(out, prefix.address());
                out.u8(prefix.length());
            }
        }
        Scope::Flow(key) => {
            out.u8(5);
            write_address(out, key.source);
            write_address(out, key.destination);
            out.u16(key.source_port);
            out.u16(key.destination_port);
            out.u8(key.protocol);
        }
    }
}

pub(super) fn read(input: &mut Reader<'_>) -> Result<Scope, DecodeError> {
    Ok(match input.u8("scope")? {
        0 => Scope::All,
        1 => Scope::Other,
        2 => Scope::Class(input.text("class")?.to_owned()),
        3 => Scope::Port { protocol: input.u8("protocol")?, port: input.u16("port")? },
        4 => Scope::PrefixPair { source: read_prefix(input)?, destination: read_prefix(input)? },
        5 => Scope::Flow(FlowKey {
            source: read_address(input)?,
            destination: read_address(input)?,
            source_port: input.u16("source port")?,
            destination_port: input.u16("destination port")?,
            protocol: input.u8("protocol")?,
        }),
        code => return Err(DecodeError::invalid("scope", format!("{code} is unknown"))),
    })
}

fn write_address(out: &mut Writer, address: IpAddr) {
    match address {
        IpAddr::V4(address) => {
            out.u8(4);
            out.raw(&address.octets());
        }
        IpAddr::V6(address) => {
            out.u8(6);
            out.raw(&address.octets());
        }
    }
}

fn read_address(input: &mut Reader<'_>) -> Result<IpAddr, DecodeError> {
    let fixed = "raw() gives as many bytes as asked";
    match input.u8("address family")? {
        4 => Ok(IpAddr::from(<[u8; 4]>::try_from(input.raw("address", 4)?).expect(fixed))),
        6 => Ok(IpAddr::from(<[u8; 16]>::try_from(input.raw("address", 16)?).expect(fixed))),
        family => Err(DecodeError::invalid("address family", format!("{family} is not 4 or 6"))),
    }
}

fn read_prefix(input: &mut Reader<'_>) -> Result<Prefix, DecodeError> {
    let address = read_address(input)?;
    Ok(Prefix::of(address, input.u8("prefix length")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_read_back() {
        let prefix = |text: &str| text.parse().unwrap();
        for scope in [
            Scope::All,
            Scope::Other,
            Scope::Class("voice".to_owned()),
            Scope::Port { protocol: 6, port: 443 },
            Scope::PrefixPair { source: prefix("10.0.0.0/8"), destination: prefix("::/0") },
            Scope::Flow("tcp 10.0.0.1:1 > 10.0.1.9:2".parse().unwrap()),
            Scope::Flow("udp [2001:db8::1]:53 > [2001:db8::2]:5353".parse().unwrap()),
        ] {
            let mut out = Writer::new();
            write(&mut out, &scope);
            assert_eq!(read(&mut Reader::new(out.as_slice())), Ok(scope));
        }
    }
}

//! What the first bytes of a frame are: the link types of capture files.
//!
//! Numbers and layouts are those of the LINKTYPE registry of the tcpdump group.

use std::fmt;

use crate::bytes::{be16, chunk};
use crate::parse::{Layer, Place, ip_by_version};
use crate::skip::Skip;

/// A LINKTYPE number as in the header of a capture file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkType(pub u16);

impl LinkType {
    /// BSD loopback: address family in the byte order of the machine that captured.
    pub const NULL: Self = Self(0);
    /// Ethernet.
    pub const ETHERNET: Self = Self(1);
    /// PPP, with or without address and control bytes.
    pub const PPP: Self = Self(9);
    /// PPP in HDLC-like framing, or Cisco HDLC.
    pub const PPP_HDLC: Self = Self(50);
    /// PPP over Ethernet, from the PPPoE header on.
    pub const PPP_ETHER: Self = Self(51);
    /// IP without anything before it.
    pub const RAW: Self = Self(101);
    /// Cisco HDLC.
    pub const CISCO_HDLC: Self = Self(104);
    /// OpenBSD loopback: address family in network byte order.
    pub const LOOP: Self = Self(108);
    /// Linux "any" interface.
    pub const LINUX_SLL: Self = Self(113);
    /// IPv4 without anything before it.
    pub const IPV4: Self = Self(228);
    /// IPv6 without anything before it.
    pub const IPV6: Self = Self(229);
    /// Linux "any" interface, second version.
    pub const LINUX_SLL2: Self = Self(276);

    /// Numbers that some systems wrote for [`LinkType::RAW`] before it had one.
    const RAW_OLD: [Self; 2] = [Self(12), Self(14)];

    /// The name for messages; `None` for link types that are not supported.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::NULL => "BSD loopback",
            Self::ETHERNET => "Ethernet",
            Self::PPP => "PPP",
            Self::PPP_HDLC => "PPP with HDLC framing",
            Self::PPP_ETHER => "PPP over Ethernet",
            Self::RAW => "raw IP",
            Self::CISCO_HDLC => "Cisco HDLC",
            Self::LOOP => "OpenBSD loopback",
            Self::LINUX_SLL => "Linux cooked",
            Self::IPV4 => "raw IPv4",
            Self::IPV6 => "raw IPv6",
            Self::LINUX_SLL2 => "Linux cooked v2",
            _ if Self::RAW_OLD.contains(&self) => "raw IP",
            _ => return None,
        })
    }

    /// Whether frames of this link type can be parsed.
    #[must_use]
    pub fn is_supported(self) -> bool {
        self.name().is_some()
    }

    /// Whether the capturing host sent the frame (true) or received it (false), where the link
    /// layer tells: Linux cooked captures do, in their packet type (4 is outgoing, 0 to 3 are to
    /// the host, broadcast, multicast and to others).
    #[must_use]
    pub fn is_outgoing(self, frame: &[u8]) -> Option<bool> {
        let packet_type = match self {
            Self::LINUX_SLL => u16::from_be_bytes([*frame.first()?, *frame.get(1)?]),
            Self::LINUX_SLL2 => u16::from(*frame.get(10)?),
            _ => return None,
        };
        match packet_type {
            4 => Some(true),
            0..=3 => Some(false),
            _ => None,
        }
    }

    /// What comes first in `frame`, and where that begins.
    pub(crate) fn first(self, frame: &[u8]) -> Result<Place, Skip> {
        match self {
            Self::NULL => {
                let family = *chunk(frame, 0).ok_or(Skip::Truncated)?;
                // The file does not say whose byte order it is; families fit one byte.
                address_family(u32::from_be_bytes(family).min(u32::from_le_bytes(family)))
            }
            Self::LOOP => {
                address_family(u32::from_be_bytes(*chunk(frame, 0).ok_or(Skip::Truncated)?))
            }
            Self::ETHERNET => Ok(Place(Layer::Ethernet, 0)),
            Self::PPP => Ok(Place(Layer::Ppp, 0)),
            Self::PPP_HDLC if frame.first() == Some(&0xff) => Ok(Place(Layer::Ppp, 0)),
            Self::PPP_HDLC | Self::CISCO_HDLC => typed(frame, 2, 4),
            Self::PPP_ETHER => Ok(Place(Layer::PppoeSession, 0)),
            Self::LINUX_SLL => typed(frame, 14, 16),
            Self::LINUX_SLL2 => typed(frame, 0, 20),
            Self::IPV4 => Ok(Place(Layer::Ipv4, 0)),
            Self::IPV6 => Ok(Place(Layer::Ipv6, 0)),
            Self::RAW => ip_by_version(frame, 0),
            _ if Self::RAW_OLD.contains(&self) => ip_by_version(frame, 0),
            _ => Err(Skip::UnsupportedLink),
        }
    }
}

impl fmt::Display for LinkType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => formatter.write_str(name),
            None => write!(formatter, "link type {}", self.0),
        }
    }
}

/// A header that holds an Ethernet type at `type_at` and ends at `end`.
fn typed(frame: &[u8], type_at: usize, end: usize) -> Result<Place, Skip> {
    let ether_type = be16(frame, type_at).ok_or(Skip::Truncated)?;
    Ok(Place(Layer::EtherType(ether_type), end))
}

/// AF_INET is 2 everywhere; AF_INET6 is 10 (Linux), 24 (NetBSD, OpenBSD), 28 (FreeBSD) or
/// 30 (macOS).
fn address_family(family: u32) -> Result<Place, Skip> {
    match family {
        2 => Ok(Place(Layer::Ipv4, 4)),
        10 | 24 | 28 | 30 => Ok(Place(Layer::Ipv6, 4)),
        _ => Err(Skip::NotIp),
    }
}

//! What lies below IP: Ethernet, LLC/SNAP, VLAN tags, MPLS labels, PPP.

use super::{Layer, Place, Walk};
use crate::bytes::{be16, chunk};
use crate::packet::NO_VLAN;
use crate::skip::Skip;

/// Ethernet types.
pub(super) mod ether_type {
    pub(in crate::parse) const IPV4: u16 = 0x0800;
    pub(super) const ARP: u16 = 0x0806;
    pub(super) const TRANSPARENT_BRIDGING: u16 = 0x6558;
    pub(in crate::parse) const VLAN: u16 = 0x8100;
    pub(in crate::parse) const IPV6: u16 = 0x86dd;
    pub(super) const MPLS: u16 = 0x8847;
    pub(super) const MPLS_UPSTREAM: u16 = 0x8848;
    pub(super) const PPPOE_SESSION: u16 = 0x8864;
    pub(super) const VN_TAG: u16 = 0x8926;
    pub(super) const VLAN_SERVICE: u16 = 0x88a8;
    pub(super) const VLAN_OLD: u16 = 0x9100;
    /// Up to this the field is a length (IEEE 802.3).
    pub(super) const LENGTH_MAX: u16 = 1500;
}

/// LLC with the SNAP extension and no vendor, before an Ethernet type (RFC 1042).
const SNAP: [u8; 6] = [0xaa, 0xaa, 0x03, 0, 0, 0];

impl Walk<'_> {
    /// Steps over one layer that is not IP.
    #[inline]
    pub(super) fn below_ip(&mut self, layer: Layer, at: usize) -> Result<Place, Skip> {
        match layer {
            Layer::Ethernet => {
                let ether_type = be16(self.frame, at + 12).ok_or(Skip::Truncated)?;
                Ok(Place(Layer::EtherType(ether_type), at + 14))
            }
            Layer::EtherType(ether_type) => self.ether_type(ether_type, at),
            Layer::PppoeSession => pppoe_session(self.frame, at),
            Layer::Ppp => ppp(self.frame, at),
            Layer::Ipv4 | Layer::Ipv6 => Ok(Place(layer, at)),
        }
    }

    fn ether_type(&mut self, ether_type: u16, at: usize) -> Result<Place, Skip> {
        match ether_type {
            ether_type::IPV4 => Ok(Place(Layer::Ipv4, at)),
            ether_type::IPV6 => Ok(Place(Layer::Ipv6, at)),
            ether_type::VLAN | ether_type::VLAN_SERVICE | ether_type::VLAN_OLD => self.vlan(at),
            ether_type::VN_TAG => {
                let ether_type = be16(self.frame, at + 4).ok_or(Skip::Truncated)?;
                Ok(Place(Layer::EtherType(ether_type), at + 6))
            }
            ether_type::MPLS | ether_type::MPLS_UPSTREAM => self.mpls(ether_type, at),
            ether_type::PPPOE_SESSION => Ok(Place(Layer::PppoeSession, at)),
            ether_type::TRANSPARENT_BRIDGING => Ok(Place(Layer::Ethernet, at)),
            ether_type::ARP => Err(Skip::Arp),
            0..=ether_type::LENGTH_MAX => llc(self.frame, at),
            _ => Err(Skip::NotIp),
        }
    }

    fn vlan(&mut self, at: usize) -> Result<Place, Skip> {
        let &[high, low, type_high, type_low] = chunk(self.frame, at).ok_or(Skip::Truncated)?;
        if self.vlan == NO_VLAN {
            self.vlan = u16::from_be_bytes([high & 0x0f, low]);
        }
        Ok(Place(Layer::EtherType(u16::from_be_bytes([type_high, type_low])), at + 4))
    }

    /// One label (RFC 3032). What follows the last is not stated: IP is recognised by its version,
    /// and a zero there is the control word of an Ethernet pseudowire (RFC 4385).
    fn mpls(&mut self, ether_type: u16, at: usize) -> Result<Place, Skip> {
        self.mpls = true;
        let &[_, _, bottom, _] = chunk(self.frame, at).ok_or(Skip::Truncated)?;
        if bottom & 1 == 0 {
            return Ok(Place(Layer::EtherType(ether_type), at + 4));
        }
        match self.frame.get(at + 4) {
            Some(first) if first >> 4 == 0 => Ok(Place(Layer::Ethernet, at + 8)),
            _ => ip_by_version(self.frame, at + 4),
        }
    }
}

/// IPv4 or IPv6, as the first four bits say.
pub(crate) fn ip_by_version(frame: &[u8], at: usize) -> Result<Place, Skip> {
    match frame.get(at).ok_or(Skip::Truncated)? >> 4 {
        4 => Ok(Place(Layer::Ipv4, at)),
        6 => Ok(Place(Layer::Ipv6, at)),
        _ => Err(Skip::NotIp),
    }
}

fn llc(frame: &[u8], at: usize) -> Result<Place, Skip> {
    let header: &[u8; 3] = chunk(frame, at).ok_or(Skip::Truncated)?;
    if header[..] != SNAP[..3] {
        return Err(Skip::NotIp);
    }
    let &[.., vendor_1, vendor_2, vendor_3, high, low] =
        chunk::<8>(frame, at).ok_or(Skip::Truncated)?;
    match u16::from_be_bytes([high, low]) {
        // Not a length again: that would be LLC inside LLC.
        0..=ether_type::LENGTH_MAX => Err(Skip::NotIp),
        ether_type if [vendor_1, vendor_2, vendor_3] == SNAP[3..] => {
            Ok(Place(Layer::EtherType(ether_type), at + 8))
        }
        _ => Err(Skip::NotIp),
    }
}

/// RFC 2516, section 4: version and type 1, code 0, session, length.
fn pppoe_session(frame: &[u8], at: usize) -> Result<Place, Skip> {
    let header: &[u8; 6] = chunk(frame, at).ok_or(Skip::Truncated)?;
    match header {
        [0x11, 0, ..] => Ok(Place(Layer::Ppp, at + 6)),
        [0x11, ..] => Err(Skip::NotIp),
        _ => Err(Skip::BadHeader),
    }
}

/// RFC 1661, section 2, and RFC 1662, section 3.1: address and control may be absent, and a
/// protocol number whose first byte is odd has one byte only.
fn ppp(frame: &[u8], at: usize) -> Result<Place, Skip> {
    let at = if be16(frame, at) == Some(0xff03) { at + 2 } else { at };
    let first = *frame.get(at).ok_or(Skip::Truncated)?;
    let (number, next) = if first & 1 == 1 {
        (u16::from(first), at + 1)
    } else {
        (be16(frame, at).ok_or(Skip::Truncated)?, at + 2)
    };
    match number {
        0x0021 => Ok(Place(Layer::Ipv4, next)),
        0x0057 => Ok(Place(Layer::Ipv6, next)),
        0x0281 => Ok(Place(Layer::EtherType(ether_type::MPLS), next)),
        _ => Err(Skip::NotIp),
    }
}

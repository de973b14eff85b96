//! What parsing leaves of a frame: the few values and offsets that everything else needs.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use twixt_model::{Detail, FlowKey, Needs, TcpFields, protocol, tcp_flag};

use crate::bytes::{be16, be32, chunk};

/// One IP packet inside a frame.
///
/// Holds values and offsets, no borrow: functions that need the bytes take the frame again. It
/// must be the frame that was parsed; with another one they answer nonsense, but do not panic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// As a big-endian number; IPv4 in the upper 32 bits, the rest zero.
    pub(crate) source: u128,
    pub(crate) destination: u128,
    /// Where the IP header begins.
    pub(crate) ip_at: u32,
    /// Where the transport header begins; for later fragments, their bytes.
    pub(crate) transport_at: u32,
    /// Where the packet's captured bytes end, without padding or trailer of the frame.
    pub(crate) end: u32,
    pub(crate) length: u32,
    pub(crate) identification: u16,
    /// As in IPv4: offset in units of 8 bytes, and the more-fragments bit.
    pub(crate) fragment: u16,
    pub(crate) source_port: u16,
    pub(crate) destination_port: u16,
    pub(crate) vlan: u16,   // in [0, 4095], or NO_VLAN
    pub(crate) version: u8, // 4 or 6
    pub(crate) protocol: u8,
    pub(crate) ttl: u8,
    pub(crate) traffic_class: u8,
    pub(crate) tcp_flags: u8,
    pub(crate) mpls: u8, // 0 or 1
}

const _: () = assert!(size_of::<Packet>() <= 64, "a packet fits one cache line");
// A field with unused values would hold the tag of results, and errors would share bytes with
// observations: these would then be written in pieces and read as a whole, which stalls.
const _: () = assert!(size_of::<Option<Packet>>() > size_of::<Packet>(), "no value is unused");

/// No VLAN tag.
pub(crate) const NO_VLAN: u16 = u16::MAX;
/// The more-fragments bit of [`Packet::fragment`].
pub(crate) const MORE_FRAGMENTS: u16 = 0x2000;
/// The offset bits of [`Packet::fragment`].
pub(crate) const FRAGMENT_OFFSET: u16 = 0x1fff;

/// An echo request or reply of ICMP or ICMPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IcmpEcho {
    /// A reply, not a request.
    pub reply: bool,
    /// Names the process that asked.
    pub identifier: u16,
    /// Names the request.
    pub sequence: u16,
}

impl Packet {
    /// What parsing starts from.
    pub(crate) const BLANK: Self = Self {
        source: 0,
        destination: 0,
        ip_at: 0,
        transport_at: 0,
        end: 0,
        length: 0,
        identification: 0,
        fragment: 0,
        source_port: 0,
        destination_port: 0,
        vlan: NO_VLAN,
        version: 0,
        protocol: 0,
        ttl: 0,
        traffic_class: 0,
        tcp_flags: 0,
        mpls: 0,
    };

    /// 4 or 6.
    #[must_use]
    pub const fn version(&self) -> u8 {
        self.version
    }

    /// Who sent it.
    #[must_use]
    #[inline]
    pub fn source(&self) -> IpAddr {
        address(self.version, self.source)
    }

    /// Whom it is for.
    #[must_use]
    #[inline]
    pub fn destination(&self) -> IpAddr {
        address(self.version, self.destination)
    }

    /// Port at the source; 0 without [`Packet::has_ports`].
    #[must_use]
    pub const fn source_port(&self) -> u16 {
        self.source_port
    }

    /// Port at the destination; 0 without [`Packet::has_ports`].
    #[must_use]
    pub const fn destination_port(&self) -> u16 {
        self.destination_port
    }

    /// Whether it is TCP, UDP or SCTP and not a later fragment.
    #[must_use]
    #[inline]
    pub const fn has_ports(&self) -> bool {
        matches!(self.protocol, protocol::TCP | protocol::UDP | protocol::SCTP)
            && self.is_first_fragment()
    }

    /// The protocol number; for IPv6 that after the extension headers.
    #[must_use]
    pub const fn protocol(&self) -> u8 {
        self.protocol
    }

    /// Time to live, or hop limit.
    #[must_use]
    pub const fn ttl(&self) -> u8 {
        self.ttl
    }

    /// Length of the IP packet in bytes, header included, as its header says. Where that says
    /// zero, as segmentation offload leaves it, the length follows from that of the frame.
    #[must_use]
    pub const fn length(&self) -> u32 {
        self.length
    }

    /// Identification of IPv4; for IPv6 the low 16 bits of that in the fragment header, or 0.
    #[must_use]
    pub const fn identification(&self) -> u16 {
        self.identification
    }

    /// Where in the original packet a fragment belongs, in bytes.
    #[must_use]
    pub const fn fragment_offset_bytes(&self) -> u32 {
        (self.fragment & FRAGMENT_OFFSET) as u32 * 8
    }

    /// Whether fragments follow.
    #[must_use]
    pub const fn more_fragments(&self) -> bool {
        self.fragment & MORE_FRAGMENTS != 0
    }

    /// Whether it begins with a transport header: true for whole packets and first fragments.
    #[must_use]
    #[inline]
    pub const fn is_first_fragment(&self) -> bool {
        self.fragment & FRAGMENT_OFFSET == 0
    }

    /// The code point that chooses the queue: the upper six bits of the traffic class.
    #[must_use]
    pub const fn dscp(&self) -> u8 {
        self.traffic_class >> 2
    }

    /// Number in the outermost VLAN tag.
    #[must_use]
    pub const fn vlan(&self) -> Option<u16> {
        if self.vlan == NO_VLAN { None } else { Some(self.vlan) }
    }

    /// Whether an MPLS label was on it.
    #[must_use]
    pub const fn is_mpls(&self) -> bool {
        self.mpls != 0
    }

    /// The flag bits of TCP; 0 for other protocols, and where they were cut off.
    #[must_use]
    pub const fn tcp_flags(&self) -> u8 {
        self.tcp_flags
    }

    /// Whether the capture lacks the packet's end.
    #[must_use]
    #[inline]
    pub const fn is_cut(&self) -> bool {
        (self.end as u64) < self.ip_at as u64 + self.length as u64
    }

    /// The directed flow.
    #[must_use]
    #[inline]
    pub fn flow_key(&self) -> FlowKey {
        FlowKey {
            source: self.source(),
            destination: self.destination(),
            source_port: self.source_port,
            destination_port: self.destination_port,
            protocol: self.protocol,
        }
    }

    /// What only some algorithms ask for: flow key, TCP fields, questions and answers.
    #[must_use]
    #[inline]
    pub fn detail(&self, frame: &[u8]) -> Detail {
        let mut detail = Detail::default();
        self.write_detail(frame, Needs { exchange: true, ..Needs::default() }, &mut detail);
        detail
    }

    /// The same, written over another in place; questions and answers only if they are needed, since to
    /// find them costs as much as all the rest.
    #[inline(always)]
    pub fn write_detail(&self, frame: &[u8], needs: Needs, detail: &mut Detail) {
        detail.key = self.flow_key();
        detail.tcp = self.tcp(frame);
        detail.identification = self.identification;
        detail.exchange = None;
        if needs.exchange {
            self.write_exchange(frame, &mut detail.exchange);
        }
        detail.sent = None;
    }

    /// The captured bytes from the transport header on; for later fragments, all of theirs.
    #[must_use]
    #[inline]
    pub fn transport<'a>(&self, frame: &'a [u8]) -> &'a [u8] {
        frame.get(self.transport_at as usize..self.end as usize).unwrap_or(&[])
    }

    /// The captured bytes behind the header of TCP, UDP or SCTP; for other protocols the same as
    /// [`Packet::transport`].
    #[must_use]
    pub fn payload<'a>(&self, frame: &'a [u8]) -> &'a [u8] {
        let transport = self.transport(frame);
        transport.get(self.transport_header_bytes(transport)..).unwrap_or(&[])
    }

    /// Fields of the TCP header; `None` for anything else, later fragments, and headers cut
    /// before their flags.
    #[must_use]
    #[inline]
    pub fn tcp(&self, frame: &[u8]) -> Option<TcpFields> {
        if self.protocol != protocol::TCP || !self.is_first_fragment() {
            return None;
        }
        let transport = self.transport(frame);
        let header: &[u8; 14] = transport.first_chunk()?;
        let header_bytes = (usize::from(header[12] >> 4) * 4).max(20);
        let before = (self.transport_at - self.ip_at).saturating_add(header_bytes as u32);
        Some(TcpFields {
            sequence: be32(header, 4)?,
            acknowledgement: be32(header, 8)?,
            flags: header[13],
            payload_bytes: self.length.saturating_sub(before),
            timestamps: tcp_timestamps(transport.get(20..header_bytes.min(transport.len()))),
        })
    }

    /// The echo request or reply, if it is one.
    #[must_use]
    pub fn icmp_echo(&self, frame: &[u8]) -> Option<IcmpEcho> {
        let transport = self.transport(frame);
        let reply = match (self.protocol, *transport.first()?) {
            _ if !self.is_first_fragment() => return None,
            (protocol::ICMP, 8) | (protocol::ICMPV6, 128) => false,
            (protocol::ICMP, 0) | (protocol::ICMPV6, 129) => true,
            _ => return None,
        };
        Some(IcmpEcho { reply, identifier: be16(transport, 4)?, sequence: be16(transport, 6)? })
    }

    /// Whether it opens a TCP connection or answers that.
    #[inline]
    pub(crate) const fn is_syn(&self) -> bool {
        self.tcp_flags & tcp_flag::SYN != 0
    }

    /// Length of the header of TCP, UDP or SCTP at the start of `transport`; 0 for all else. Of a
    /// TCP header cut before it says its length, all of `transport`.
    #[inline]
    pub(crate) fn transport_header_bytes(&self, transport: &[u8]) -> usize {
        match self.protocol {
            _ if !self.is_first_fragment() => 0,
            protocol::TCP => transport
                .get(12)
                .map_or(transport.len(), |&offset| (usize::from(offset >> 4) * 4).max(20)),
            protocol::UDP => 8,
            protocol::SCTP => 12,
            _ => 0,
        }
    }
}

#[inline]
fn address(version: u8, bits: u128) -> IpAddr {
    if version == 4 {
        IpAddr::V4(Ipv4Addr::from_bits((bits >> 96) as u32))
    } else {
        IpAddr::V6(Ipv6Addr::from_bits(bits))
    }
}

/// TSval and TSecr (RFC 7323, section 3.2) among the options of a TCP header.
#[inline]
fn tcp_timestamps(options: Option<&[u8]>) -> Option<(u32, u32)> {
    match options? {
        [] => None,
        // As nearly all senders write it (RFC 7323, appendix A).
        [1, 1, 8, 10, value @ ..] if value.len() >= 8 => Some((be32(value, 0)?, be32(value, 4)?)),
        options => searched_timestamps(options),
    }
}

fn searched_timestamps(options: &[u8]) -> Option<(u32, u32)> {
    let mut rest = options;
    loop {
        rest = match *rest {
            [] | [0, ..] => return None,
            [1, ref after @ ..] => after,
            [8, 10, ..] => {
                let value: &[u8; 8] = chunk(rest, 2)?;
                return Some((be32(value, 0)?, be32(value, 4)?));
            }
            // A length below 2 would not lead on.
            [_, length @ 2..=u8::MAX, ..] => rest.get(usize::from(length)..)?,
            [_, ..] => return None,
        };
    }
}

//! The headers that the packets of a super-packet share, and what differs between them.

use super::counting::CountingFlows;
use crate::live::block::TAG_BYTES;

/// Ethernet with tags, IP and TCP with all options have less.
pub(super) const HEADERS_BYTES_MAX: usize = 256;

/// What a super-packet carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transport {
    Tcp,
    Udp,
}

impl Transport {
    /// By the kind in the virtio-net header, without its mark for congestion: segments of TCP over
    /// IPv4 and IPv6, datagrams of UDP. Fragments of UDP (3) cannot be distinguished here.
    pub(super) fn of(kind: u8) -> Option<Self> {
        const CONGESTION: u8 = 0x80;
        match kind & !CONGESTION {
            1 | 4 => Some(Self::Tcp),
            5 => Some(Self::Udp),
            _ => None,
        }
    }

    const fn protocol(self) -> u8 {
        match self {
            Self::Tcp => 6,
            Self::Udp => 17,
        }
    }
}

/// The headers of one packet, made from those of the super-packet.
#[derive(Debug)]
pub(super) struct Headers {
    buffer: [u8; HEADERS_BYTES_MAX],
    length: usize,
    /// How long they are in the super-packet.
    read_bytes: usize,
    network: Network,
    network_at: usize,
    transport: Transport,
    transport_at: usize,
    sequence: u32,
    flags: u8,
}

#[derive(Clone, Copy, Debug)]
enum Network {
    V4 { identification: u16, goes_up: bool },
    V6,
}

/// Where headers lie in the super-packet.
struct HeaderPlaces {
    network: Network,
    network_at: usize,
    /// Bytes after the IPv6 header that the packets of the wire do not have.
    left_out: usize,
    transport_at: usize,
}

const FIN: u8 = 0x01;
const PSH: u8 = 0x08;
const CWR: u8 = 0x80;

impl Headers {
    /// Reads the headers of a super-packet, and puts `tag` in.
    pub(super) fn read(
        frame: &[u8],
        has_ethernet: bool,
        tag: Option<[u8; TAG_BYTES]>,
        transport: Transport,
        counting: &mut CountingFlows,
    ) -> Option<Self> {
        let found = find(frame, has_ethernet, transport, counting)?;
        let HeaderPlaces { network, network_at, left_out, transport_at } = found;
        let read_bytes = transport_at + transport_bytes(frame, transport_at, transport)?;
        let mut headers = Self {
            buffer: [0; HEADERS_BYTES_MAX],
            length: 0,
            read_bytes,
            network,
            network_at: network_at + tag.map_or(0, |tag| tag.len()),
            transport,
            transport_at: transport_at - left_out + tag.map_or(0, |tag| tag.len()),
            sequence: 0,
            flags: 0,
        };
        match tag {
            Some(_) if !has_ethernet => return None,
            Some(tag) => {
                headers.append(&frame[..ADDRESSES_BYTES])?;
                headers.append(&tag)?;
                headers.append(&frame[ADDRESSES_BYTES..network_at])?;
            }
            None => headers.append(&frame[..network_at])?,
        }
        headers.append_network(frame, &found)?;
        headers.append(frame.get(transport_at..read_bytes)?)?;
        if transport == Transport::Tcp {
            headers.sequence = u32::from_be_bytes(headers.four(headers.transport_at + 4));
            headers.flags = headers.buffer[headers.transport_at + 13];
        }
        Some(headers)
    }

    /// The headers.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer[..self.length]
    }

    /// How many bytes of the super-packet they were made from.
    pub(super) const fn read_bytes(&self) -> usize {
        self.read_bytes
    }

    /// Whether packets with so much payload have a length that their headers can say.
    pub(super) fn can_say(&self, payload_bytes: u32) -> bool {
        (self.length - self.network_at) as u64 + u64::from(payload_bytes) <= u64::from(u16::MAX)
    }

    /// Makes them those of packet `number`, whose payload begins at `offset`. [`Self::can_say`]
    /// was asked about the length.
    pub(super) fn set(&mut self, number: u32, offset: u32, payload_bytes: u32, is_last: bool) {
        let payload_bytes = payload_bytes as u16;
        let network_bytes = (self.length - self.network_at) as u16 + payload_bytes;
        match self.network {
            Network::V4 { identification, goes_up } => {
                let number = if goes_up { number as u16 } else { 0 };
                self.write(self.network_at + 2, network_bytes.to_be_bytes());
                let identification = identification.wrapping_add(number).to_be_bytes();
                self.write(self.network_at + 4, identification);
                self.write_checksum();
            }
            Network::V6 => {
                let length = network_bytes - V6_BYTES as u16;
                self.write(self.network_at + 4, length.to_be_bytes());
            }
        }
        match self.transport {
            Transport::Tcp => {
                let sequence = self.sequence.wrapping_add(offset);
                self.write(self.transport_at + 4, sequence.to_be_bytes());
                let first_only = if number == 0 { 0 } else { CWR };
                let last_only = if is_last { 0 } else { FIN | PSH };
                self.buffer[self.transport_at + 13] = self.flags & !first_only & !last_only;
            }
            Transport::Udp => {
                let length = UDP_BYTES as u16 + payload_bytes;
                self.write(self.transport_at + 4, length.to_be_bytes());
            }
        }
    }

    fn append(&mut self, bytes: &[u8]) -> Option<()> {
        let end = self.length + bytes.len();
        self.buffer.get_mut(self.length..end)?.copy_from_slice(bytes);
        self.length = end;
        Some(())
    }

    /// The network header and its extensions, without what is left out.
    fn append_network(&mut self, frame: &[u8], found: &HeaderPlaces) -> Option<()> {
        let HeaderPlaces { network_at, left_out, transport_at, .. } = *found;
        if left_out == 0 {
            return self.append(frame.get(network_at..transport_at)?);
        }
        let extension_at = network_at + V6_BYTES;
        self.append(frame.get(network_at..extension_at)?)?;
        self.buffer[self.network_at + 6] = *frame.get(extension_at)?;
        self.append(frame.get(extension_at + left_out..transport_at)?)
    }

    fn write<const N: usize>(&mut self, at: usize, bytes: [u8; N]) {
        self.buffer[at..at + N].copy_from_slice(&bytes);
    }

    fn four(&self, at: usize) -> [u8; 4] {
        *self.buffer[at..].first_chunk().expect("the buffer is longer than all headers")
    }

    /// RFC 791: the complement of the sum, in ones' complement, of all other words.
    fn write_checksum(&mut self) {
        let at = self.network_at + 10;
        self.write(at, [0; 2]);
        let words = self.buffer[self.network_at..self.transport_at].chunks_exact(2);
        let sum: u32 = words.map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum();
        let folded = (sum & 0xffff) + (sum >> 16); // at most 30 words: one carry more at most
        let checksum = !(((folded & 0xffff) + (folded >> 16)) as u16);
        self.write(at, checksum.to_be_bytes());
    }
}

const ADDRESSES_BYTES: usize = 12;
const ETHERNET_BYTES: usize = 14;
const V6_BYTES: usize = 40;
const UDP_BYTES: usize = 8;
/// VLAN tags and IPv6 extension headers that are walked over at most.
const STEPS_MAX: usize = 8;

fn find(
    frame: &[u8],
    has_ethernet: bool,
    transport: Transport,
    counting: &mut CountingFlows,
) -> Option<HeaderPlaces> {
    let network_at = if has_ethernet { network_in_ethernet(frame)? } else { 0 };
    match frame.get(network_at)? >> 4 {
        4 => find_v4(frame, network_at, transport, counting),
        6 => find_v6(frame, network_at, transport),
        _ => None,
    }
}

/// Where IP begins, after VLAN tags that are in the frame itself.
fn network_in_ethernet(frame: &[u8]) -> Option<usize> {
    let mut end = ETHERNET_BYTES;
    for _ in 0..STEPS_MAX {
        match frame.get(end - 2..end)? {
            [0x08, 0x00] | [0x86, 0xdd] => return Some(end),
            [0x81, 0x00] | [0x88, 0xa8] | [0x91, 0x00] => end += TAG_BYTES,
            _ => return None,
        }
    }
    None
}

fn find_v4(
    frame: &[u8],
    network_at: usize,
    transport: Transport,
    counting: &mut CountingFlows,
) -> Option<HeaderPlaces> {
    const MORE_OR_OFFSET: u16 = 0x3fff;
    const DO_NOT_FRAGMENT: u16 = 0x4000;
    let header: &[u8; 20] = frame.get(network_at..)?.first_chunk()?;
    let header_bytes = usize::from(header[0] & 0x0f) * 4;
    let fragment = u16::from_be_bytes([header[6], header[7]]);
    let is_whole = fragment & MORE_OR_OFFSET == 0;
    if header_bytes < header.len() || header[9] != transport.protocol() || !is_whole {
        return None;
    }
    let identification = u16::from_be_bytes([header[4], header[5]]);
    let transport_at = network_at + header_bytes;
    let mut flow = [0; 12];
    flow[..8].copy_from_slice(&header[12..]);
    flow[8..].copy_from_slice(frame.get(transport_at..transport_at + 4)?);
    // UDP of Linux begins with 0 and counts within a super-packet.
    let goes_up = transport == Transport::Udp
        || fragment & DO_NOT_FRAGMENT == 0
        || counting.goes_up(&flow, identification);
    let network = Network::V4 { identification, goes_up };
    Some(HeaderPlaces { network, network_at, left_out: 0, transport_at })
}

fn find_v6(frame: &[u8], network_at: usize, transport: Transport) -> Option<HeaderPlaces> {
    const HOP_BY_HOP: u8 = 0;
    const ROUTING: u8 = 43;
    const DESTINATION_OPTIONS: u8 = 60;
    let header: &[u8; V6_BYTES] = frame.get(network_at..)?.first_chunk()?;
    let first_extension_at = network_at + V6_BYTES;
    // Super-packets beyond 64 KiB say their length in an option of their own (RFC 2675), which
    // the packets of the wire do not have.
    let is_jumbo = header[4..6] == [0, 0] && header[6] == HOP_BY_HOP;
    let jumbo_option = frame.get(first_extension_at + 1..first_extension_at + 4);
    let left_out = if is_jumbo && jumbo_option == Some(&[0, 0xc2, 4]) { 8 } else { 0 };
    let (mut next, mut transport_at) = (header[6], first_extension_at);
    for _ in 0..STEPS_MAX {
        match next {
            protocol if protocol == transport.protocol() => {
                return Some(HeaderPlaces {
                    network: Network::V6,
                    network_at,
                    left_out,
                    transport_at,
                });
            }
            HOP_BY_HOP | ROUTING | DESTINATION_OPTIONS => {
                next = *frame.get(transport_at)?;
                transport_at += (usize::from(*frame.get(transport_at + 1)?) + 1) * 8;
            }
            _ => return None,
        }
    }
    None
}

/// How long the transport header is, with options.
fn transport_bytes(frame: &[u8], transport_at: usize, transport: Transport) -> Option<usize> {
    match transport {
        Transport::Udp => Some(UDP_BYTES),
        Transport::Tcp => {
            let length = usize::from(frame.get(transport_at + 12)? >> 4) * 4;
            (length >= 20).then_some(length)
        }
    }
}

//! Frames, byte by byte.

use std::net::{Ipv4Addr, SocketAddrV4};

/// An IPv4 packet in an Ethernet frame, to be varied and written out.
#[derive(Clone, Debug)]
pub(crate) struct Packet {
    source: SocketAddrV4,
    destination: SocketAddrV4,
    transport: Transport,
    identification: u16,
    ttl: u8,
    payload: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
enum Transport {
    Udp,
    Tcp { sequence: u32 },
}

const ETHERNET: [u8; 14] = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
const VXLAN_PORT: u16 = 4789;

impl Packet {
    /// A UDP packet between two ends such as `10.0.0.1:5000`. `number` makes it unlike others.
    pub(crate) fn udp(source: &str, destination: &str, number: u16) -> Self {
        Self::new(source, destination, number, Transport::Udp)
    }

    /// A TCP segment, likewise.
    pub(crate) fn tcp(source: &str, destination: &str, number: u16) -> Self {
        let sequence = 1000 + 64 * u32::from(number);
        Self::new(source, destination, number, Transport::Tcp { sequence })
    }

    fn new(source: &str, destination: &str, number: u16, transport: Transport) -> Self {
        let end = |text: &str| text.parse().expect("an address with a port");
        let mut payload: Vec<u8> = (0..64).collect();
        payload[..2].copy_from_slice(&number.to_be_bytes());
        Self {
            source: end(source),
            destination: end(destination),
            transport,
            identification: number,
            ttl: 64,
            payload,
        }
    }

    /// With this time to live.
    pub(crate) fn ttl(self, ttl: u8) -> Self {
        Self { ttl, ..self }
    }

    /// With this sequence number, for TCP.
    pub(crate) fn sequence(self, sequence: u32) -> Self {
        Self { transport: Transport::Tcp { sequence }, ..self }
    }

    /// With this payload, which makes two packets differ as much as `number` does.
    pub(crate) fn payload(self, payload: &[u8]) -> Self {
        Self { payload: payload.to_vec(), ..self }
    }

    /// With another source, as address translation makes it.
    pub(crate) fn translated(self, source: &str) -> Self {
        Self { source: source.parse().expect("an address with a port"), ..self }
    }

    /// The way back: ends exchanged, everything else as it is.
    pub(crate) fn reversed(self) -> Self {
        Self { source: self.destination, destination: self.source, ..self }
    }

    /// The frame.
    pub(crate) fn frame(&self) -> Vec<u8> {
        let transport = match self.transport {
            Transport::Udp => self.udp_header(),
            Transport::Tcp { sequence } => self.tcp_header(sequence),
        };
        let protocol = if matches!(self.transport, Transport::Udp) { 17 } else { 6 };
        let length = 20 + transport.len() + self.payload.len();
        let (source, destination) = (*self.source.ip(), *self.destination.ip());
        let header =
            ip_header(source, destination, protocol, self.identification, self.ttl, length);
        [&ETHERNET[..], &header, &transport, &self.payload].concat()
    }

    /// The frame within a VXLAN tunnel between two ends.
    pub(crate) fn vxlan(&self, source: &str, destination: &str) -> Vec<u8> {
        let mut payload = vec![8, 0, 0, 0, 0, 0, 42, 0];
        payload.extend(self.frame());
        let ends = [format!("{source}:54321"), format!("{destination}:{VXLAN_PORT}")];
        Self::udp(&ends[0], &ends[1], self.identification).payload(&payload).frame()
    }

    fn udp_header(&self) -> Vec<u8> {
        let length = (8 + self.payload.len()) as u16;
        [self.source.port(), self.destination.port(), length, 0].map(u16::to_be_bytes).concat()
    }

    fn tcp_header(&self, sequence: u32) -> Vec<u8> {
        let mut header = vec![0; 20];
        header[0..2].copy_from_slice(&self.source.port().to_be_bytes());
        header[2..4].copy_from_slice(&self.destination.port().to_be_bytes());
        header[4..8].copy_from_slice(&sequence.to_be_bytes());
        header[8..12].copy_from_slice(&1_u32.to_be_bytes());
        header[12] = 5 << 4;
        header[13] = 0x18; // PSH, ACK
        header[14..16].copy_from_slice(&1024_u16.to_be_bytes());
        header
    }
}

fn ip_header(
    source: Ipv4Addr,
    destination: Ipv4Addr,
    protocol: u8,
    identification: u16,
    ttl: u8,
    length: usize,
) -> [u8; 20] {
    let mut header = [0; 20];
    header[0] = 0x45;
    header[2..4].copy_from_slice(&(length as u16).to_be_bytes());
    header[4..6].copy_from_slice(&identification.to_be_bytes());
    header[8] = ttl;
    header[9] = protocol;
    header[12..16].copy_from_slice(&source.octets());
    header[16..20].copy_from_slice(&destination.octets());
    let sum: u32 =
        header.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    let checksum = !((folded & 0xffff) + (folded >> 16)) as u16;
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    header
}

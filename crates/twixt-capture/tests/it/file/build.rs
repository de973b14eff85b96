//! Builds capture files byte by byte, and reads them into values that tests can compare.

use std::io::Cursor;

use twixt_capture::{ByteOrder, CaptureError, CaptureFile, Ending, FrameDirection, SourceCounts};

/// What a test wants to know of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) nanos: i64,
    pub(crate) bytes: Vec<u8>,
    pub(crate) wire_length: u32,
    pub(crate) link_type: u16,
    pub(crate) interface: u32,
    pub(crate) direction: Option<FrameDirection>,
}

/// A frame of Ethernet on interface 0.
pub(crate) fn seen(nanos: i64, bytes: &[u8], wire_length: u32) -> Seen {
    Seen { nanos, bytes: bytes.to_vec(), wire_length, link_type: 1, interface: 0, direction: None }
}

pub(crate) fn open(bytes: &[u8]) -> Result<CaptureFile, CaptureError> {
    CaptureFile::from_reader(Box::new(Cursor::new(bytes.to_vec())), "test")
}

pub(crate) fn drain(file: &mut CaptureFile) -> (Vec<Seen>, Ending, SourceCounts) {
    let mut frames = Vec::new();
    let ending = file
        .read_to_end(|frame| {
            frames.push(Seen {
                nanos: frame.time.as_nanos(),
                bytes: frame.bytes.to_vec(),
                wire_length: frame.wire_length,
                link_type: frame.link_type,
                interface: frame.interface,
                direction: frame.direction,
            });
        })
        .clone();
    let counts = file.counts();
    (frames, ending, counts)
}

pub(crate) fn read(bytes: &[u8]) -> (Vec<Seen>, Ending, SourceCounts) {
    drain(&mut open(bytes).unwrap())
}

/// Numbers in the byte order of a file.
#[derive(Clone)]
pub(crate) struct Bytes {
    order: ByteOrder,
    pub(crate) bytes: Vec<u8>,
}

impl Bytes {
    pub(crate) fn new(order: ByteOrder) -> Self {
        Self { order, bytes: Vec::new() }
    }

    pub(crate) fn u16(mut self, value: u16) -> Self {
        self.bytes.extend(match self.order {
            ByteOrder::Little => value.to_le_bytes(),
            ByteOrder::Big => value.to_be_bytes(),
        });
        self
    }

    pub(crate) fn u32(mut self, value: u32) -> Self {
        self.bytes.extend(match self.order {
            ByteOrder::Little => value.to_le_bytes(),
            ByteOrder::Big => value.to_be_bytes(),
        });
        self
    }

    pub(crate) fn u64(mut self, value: u64) -> Self {
        self.bytes.extend(match self.order {
            ByteOrder::Little => value.to_le_bytes(),
            ByteOrder::Big => value.to_be_bytes(),
        });
        self
    }

    /// Bytes, filled up to a multiple of four as pcapng does.
    pub(crate) fn padded(mut self, bytes: &[u8]) -> Self {
        self.bytes.extend(bytes);
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
        self
    }

    pub(crate) fn option(self, code: u16, value: &[u8]) -> Self {
        self.u16(code).u16(value.len() as u16).padded(value)
    }
}

/// A pcap file.
pub(crate) struct Pcap {
    order: ByteOrder,
    pub(crate) bytes: Vec<u8>,
}

impl Pcap {
    pub(crate) fn new(order: ByteOrder, magic: u32) -> Self {
        Self::with_header(order, magic, (2, 4), 65_535, 1)
    }

    pub(crate) fn with_header(
        order: ByteOrder,
        magic: u32,
        version: (u16, u16),
        snap_length: u32,
        link_type: u32,
    ) -> Self {
        let header = Bytes::new(order).u32(magic).u16(version.0).u16(version.1).u64(0);
        Self { order, bytes: header.u32(snap_length).u32(link_type).bytes }
    }

    pub(crate) fn record(self, seconds: u32, fraction: u32, bytes: &[u8], wire: u32) -> Self {
        self.raw(&[seconds, fraction, bytes.len() as u32, wire], bytes)
    }

    pub(crate) fn raw(mut self, header: &[u32], bytes: &[u8]) -> Self {
        let header = header.iter().fold(Bytes::new(self.order), |all, &word| all.u32(word));
        self.bytes.extend(header.bytes);
        self.bytes.extend(bytes);
        self
    }
}

/// A pcapng file.
#[derive(Clone)]
pub(crate) struct Pcapng {
    order: ByteOrder,
    pub(crate) bytes: Vec<u8>,
}

impl Pcapng {
    pub(crate) fn new(order: ByteOrder) -> Self {
        Self { order, bytes: Vec::new() }.section(order)
    }

    pub(crate) fn section(mut self, order: ByteOrder) -> Self {
        self.order = order;
        let body = self.body().u32(0x1a2b_3c4d).u16(1).u16(0).u64(u64::MAX);
        self.block(0x0a0d_0d0a, body)
    }

    pub(crate) fn body(&self) -> Bytes {
        Bytes::new(self.order)
    }

    pub(crate) fn block(mut self, kind: u32, body: Bytes) -> Self {
        let length = body.bytes.len() as u32 + 12;
        let whole = self.body().u32(kind).u32(length).padded(&body.bytes).u32(length);
        self.bytes.extend(whole.bytes);
        self
    }

    /// An interface with a snap length of 100.
    pub(crate) fn interface(self, link_type: u16, options: impl FnOnce(Bytes) -> Bytes) -> Self {
        let body = options(self.body().u16(link_type).u16(0).u32(100));
        self.block(1, body)
    }

    pub(crate) fn resolution(self, link_type: u16, resolution: u8) -> Self {
        self.interface(link_type, |body| body.option(9, &[resolution]).u32(0))
    }

    pub(crate) fn enhanced(self, interface: u32, units: u64, bytes: &[u8]) -> Self {
        self.enhanced_with(interface, units, bytes, |body| body)
    }

    pub(crate) fn enhanced_with(
        self,
        interface: u32,
        units: u64,
        bytes: &[u8],
        options: impl FnOnce(Bytes) -> Bytes,
    ) -> Self {
        let length = bytes.len() as u32;
        let body = self.body().u32(interface).u32((units >> 32) as u32).u32(units as u32);
        let body = options(body.u32(length).u32(length).padded(bytes));
        self.block(6, body)
    }
}

//! The pcap format (draft-ietf-opsawg-pcap), and the two dialects that are common enough to meet:
//! nanoseconds, and Kuznetzov's with longer record headers.

use twixt_model::{TimeSource, Timestamp};

use crate::decode::{Damage, Progress, Stop};
use crate::interface::{Interface, InterfaceDescription, snap_length_of};
use crate::{ByteOrder, CaptureFormat, Frame, Resolution, SourceCounts};

pub(crate) const FILE_HEADER_BYTES: usize = 24;
const RECORD_HEADER_BYTES: usize = 16;
/// Kuznetzov's patch of libpcap appended interface index, protocol and packet type.
const KUZNETZOV_HEADER_BYTES: usize = 24;

const MAGIC_MICROSECONDS: u32 = 0xa1b2_c3d4;
const MAGIC_NANOSECONDS: u32 = 0xa1b2_3c4d;
const MAGIC_KUZNETZOV: u32 = 0xa1b2_cd34;

const MAJOR_VERSION: u16 = 2;
const NEWEST_MINOR_VERSION: u16 = 4;

/// What the first four bytes say.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dialect {
    order: ByteOrder,
    resolution: Resolution,
    units_per_second: u32,
    nanos_per_unit: u32,
    record_header_bytes: usize,
}

impl Dialect {
    /// The dialect of a file that begins so, if it is pcap at all.
    pub(crate) fn of(magic: [u8; 4]) -> Option<Self> {
        [ByteOrder::Little, ByteOrder::Big].into_iter().find_map(|order| {
            match order.u32_at(&magic, 0) {
                MAGIC_MICROSECONDS => Some(Self::microseconds(order, RECORD_HEADER_BYTES)),
                MAGIC_KUZNETZOV => Some(Self::microseconds(order, KUZNETZOV_HEADER_BYTES)),
                MAGIC_NANOSECONDS => Some(Self {
                    resolution: Resolution::NANOSECOND,
                    units_per_second: 1_000_000_000,
                    nanos_per_unit: 1,
                    ..Self::microseconds(order, RECORD_HEADER_BYTES)
                }),
                _ => None,
            }
        })
    }

    fn microseconds(order: ByteOrder, record_header_bytes: usize) -> Self {
        Self {
            order,
            resolution: Resolution::MICROSECOND,
            units_per_second: 1_000_000,
            nanos_per_unit: 1_000,
            record_header_bytes,
        }
    }
}

/// Takes frames out of the bytes that follow a file header.
pub(crate) struct PcapDecoder {
    dialect: Dialect,
    interface: Interface,
    /// Before version 2.4 the two lengths of a record came in either order.
    lengths_may_be_swapped: bool,
    counts: SourceCounts,
}

impl PcapDecoder {
    pub(crate) fn new(dialect: Dialect, header: &[u8; FILE_HEADER_BYTES]) -> Result<Self, Damage> {
        let order = dialect.order;
        let (major, minor) = (order.u16_at(header, 4), order.u16_at(header, 6));
        if major != MAJOR_VERSION || minor > NEWEST_MINOR_VERSION {
            return Err(Damage::Version { format: CaptureFormat::Pcap, major, minor });
        }
        let description = InterfaceDescription {
            name: None,
            // The upper half says whether frames end with a checksum.
            link_type: (order.u32_at(header, 20) & 0xffff) as u16,
            snap_length: snap_length_of(order.u32_at(header, 16)),
            resolution: dialect.resolution,
        };
        Ok(Self {
            dialect,
            interface: Interface::new(description, 0),
            lengths_may_be_swapped: minor < NEWEST_MINOR_VERSION,
            counts: SourceCounts::default(),
        })
    }

    pub(crate) fn byte_order(&self) -> ByteOrder {
        self.dialect.order
    }

    pub(crate) fn interface(&self) -> &Interface {
        &self.interface
    }

    pub(crate) fn counts(&self) -> SourceCounts {
        self.counts
    }

    /// Hands over the frames at the front of `bytes`, at most `limit` of them.
    #[inline]
    pub(crate) fn decode<F: FnMut(Frame<'_>)>(
        &mut self,
        bytes: &[u8],
        limit: usize,
        sink: &mut F,
    ) -> Progress {
        let mut rest = bytes;
        let mut stop = Stop::BatchFull;
        for _ in 0..limit {
            match self.next_record(&mut rest) {
                Ok(frame) => sink(frame),
                Err(reason) => {
                    stop = reason;
                    break;
                }
            }
        }
        Progress { consumed_bytes: bytes.len() - rest.len(), stop }
    }

    /// Takes one record from the front of `rest`, or leaves it as it was.
    #[inline]
    fn next_record<'a>(&mut self, rest: &mut &'a [u8]) -> Result<Frame<'a>, Stop> {
        let order = self.dialect.order;
        let header_bytes = self.dialect.record_header_bytes;
        let (Some(header), Some(body)) =
            (rest.first_chunk::<RECORD_HEADER_BYTES>(), rest.get(header_bytes..))
        else {
            return Err(Stop::Incomplete { needed_bytes: header_bytes });
        };
        let (captured, wire_length) =
            self.lengths(order.u32_at(header, 8), order.u32_at(header, 12));
        let limit = self.interface.longest_frame_bytes;
        if captured > limit {
            return Err(Stop::Damaged(Damage::FrameLength { captured, limit }));
        }
        let Some((bytes, after)) = body.split_at_checked(captured as usize) else {
            return Err(Stop::Incomplete { needed_bytes: header_bytes + captured as usize });
        };
        *rest = after;
        self.counts.count_frame(captured, wire_length, self.interface.snap_length);
        Ok(Frame {
            time: self.time(order.u32_at(header, 0), order.u32_at(header, 4)),
            bytes,
            wire_length: wire_length.max(captured),
            link_type: self.interface.description.link_type,
            interface: 0,
            direction: None,
            time_source: TimeSource::File,
        })
    }

    /// Captured and wire length. The wire is never the shorter one, which tells them apart.
    #[inline]
    fn lengths(&self, first: u32, second: u32) -> (u32, u32) {
        if self.lengths_may_be_swapped && first > second {
            (second, first)
        } else {
            (first, second)
        }
    }

    /// Seconds are unsigned, good until 2106. A fraction of a second or more is carried.
    /// Cannot overflow: 2^32 s and 2^32 µs are together below 2^62 ns.
    #[inline]
    fn time(&mut self, seconds: u32, fraction: u32) -> Timestamp {
        self.counts.odd_times += u64::from(fraction >= self.dialect.units_per_second);
        let fraction_nanos = i64::from(fraction) * i64::from(self.dialect.nanos_per_unit);
        Timestamp::from_nanos(i64::from(seconds) * 1_000_000_000 + fraction_nanos)
    }
}

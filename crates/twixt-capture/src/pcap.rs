//! The pcap format (draft-ietf-opsawg-pcap), and the two dialects that are common enough to meet:
//! nanoseconds, and Kuznetzov's with longer record headers.

use twixt_model::{TimeSource, Timestamp};

use crate::decode::{Damage, Stop};
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

    /// Takes the record at the front of `rest`: its frame, and what follows.
    #[inline(always)]
    pub(crate) fn next_frame<'a>(
        &mut self,
        shape: &Shape,
        rest: &'a [u8],
    ) -> Result<(Frame<'a>, &'a [u8]), Stop> {
        shape.next_record(rest, &mut self.counts)
    }

    /// Counts records that were taken, of so many bytes together, headers included.
    pub(crate) fn count(&mut self, frames: usize, bytes: usize) {
        self.counts.frames += frames as u64;
        self.counts.bytes += (bytes - frames * self.dialect.record_header_bytes) as u64;
    }

    /// What all records have in common: to be kept at hand, so that a frame costs no more than
    /// its own fields.
    pub(crate) fn shape(&self) -> Shape {
        Shape {
            order: self.dialect.order,
            lengths_may_be_swapped: self.lengths_may_be_swapped,
            is_foreign: self.lengths_may_be_swapped || self.dialect.order != ByteOrder::NATIVE,
            link_type: self.interface.description.link_type,
            header_bytes: self.dialect.record_header_bytes,
            longest_frame_bytes: self.interface.longest_frame_bytes,
            snap_length: self.interface.snap_length,
            units_per_second: self.dialect.units_per_second,
            nanos_per_unit: self.dialect.nanos_per_unit,
        }
    }
}

/// What all records of a file have in common.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    order: ByteOrder,
    lengths_may_be_swapped: bool,
    /// Fields are not in the order of this machine, or not all in their places.
    is_foreign: bool,
    link_type: u16,
    header_bytes: usize,
    longest_frame_bytes: u32,
    snap_length: u32,
    units_per_second: u32,
    nanos_per_unit: u32,
}

impl Shape {
    /// The record at the front of `rest`, and what follows. What is rare is counted aside.
    #[inline(always)]
    fn next_record<'a>(
        &self,
        rest: &'a [u8],
        counts: &mut SourceCounts,
    ) -> Result<(Frame<'a>, &'a [u8]), Stop> {
        let (Some(header), Some(body)) =
            (rest.first_chunk::<RECORD_HEADER_BYTES>(), rest.get(self.header_bytes..))
        else {
            return Err(Stop::Incomplete { needed_bytes: self.header_bytes });
        };
        let [seconds, fraction, captured, wire_length] = self.fields(header);
        if captured > self.longest_frame_bytes {
            let limit = self.longest_frame_bytes;
            return Err(Stop::Damaged(Damage::FrameLength { captured, limit }));
        }
        let Some((bytes, after)) = body.split_at_checked(captured as usize) else {
            return Err(Stop::Incomplete { needed_bytes: self.header_bytes + captured as usize });
        };
        if (captured > wire_length.min(self.snap_length)) | (fraction >= self.units_per_second) {
            self.count_oddities(captured, wire_length, fraction, counts);
        }
        let frame = Frame {
            time: self.time(seconds, fraction),
            bytes,
            memory: body,
            wire_length: wire_length.max(captured),
            link_type: self.link_type,
            interface: 0,
            direction: None,
            time_source: TimeSource::File,
        };
        Ok((frame, after))
    }

    /// Seconds, their fraction, captured and wire length.
    #[inline]
    fn fields(&self, header: &[u8; RECORD_HEADER_BYTES]) -> [u32; 4] {
        if self.is_foreign {
            return self.foreign_fields(header);
        }
        std::array::from_fn(|index| ByteOrder::NATIVE.u32_at(header, index * 4))
    }

    /// The wire length is never the shorter one, which distinguishes lengths. Not mixed with the
    /// usual case: choosing field by field would cost every file what only some need.
    #[cold]
    fn foreign_fields(&self, header: &[u8; RECORD_HEADER_BYTES]) -> [u32; 4] {
        let [seconds, fraction, first, second] =
            std::array::from_fn(|index| self.order.u32_at(header, index * 4));
        if self.lengths_may_be_swapped && first > second {
            return [seconds, fraction, second, first];
        }
        [seconds, fraction, first, second]
    }

    /// Seconds are unsigned, good until 2106. A fraction of a second or more is carried.
    /// Cannot overflow: 2^32 s and 2^32 µs are together below 2^62 ns.
    #[inline]
    fn time(&self, seconds: u32, fraction: u32) -> Timestamp {
        let fraction_nanos = i64::from(fraction) * i64::from(self.nanos_per_unit);
        Timestamp::from_nanos(i64::from(seconds) * 1_000_000_000 + fraction_nanos)
    }

    #[cold]
    fn count_oddities(
        &self,
        captured: u32,
        wire_length: u32,
        fraction: u32,
        counts: &mut SourceCounts,
    ) {
        counts.longer_than_wire += u64::from(captured > wire_length);
        counts.longer_than_snap += u64::from(captured > self.snap_length);
        counts.odd_times += u64::from(fraction >= self.units_per_second);
    }
}

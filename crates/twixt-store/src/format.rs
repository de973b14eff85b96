//! The bytes of the log.
//!
//! A store is a folder. In it is a folder for each point, and in that two files for each UTC day:
//! `2024-01-31.twxl` with the records whose interval of time begins on that day, and
//! `2024-01-31.twxi`, an index of them. Integers are little-endian, times are nanoseconds since
//! 1970, checksums are XXH3 of 64 bits.
//!
//! Both files begin with 16 bytes: a magic (`TWXL`, `TWXI`), the format version (u8), three zero
//! bytes, and a checksum of these eight.
//!
//! The data file goes on with frames, one after the other, each a head of 64 bytes, the name of the
//! stream, and the payload as it is stored:
//!
//! | at | bytes | field |
//! |---|---|---|
//! | 0 | 4 | mark: `f5`, `TWR` |
//! | 4 | 4 | bytes of the stored payload |
//! | 8 | 4 | bytes of the payload when unpacked |
//! | 12 | 2 | bytes of the stream's name |
//! | 14 | 1 | packing: 0 none, 1 zstd |
//! | 15 | 1 | zero |
//! | 16 | 8 | epoch number, signed |
//! | 24 | 8 | first time, signed |
//! | 32 | 8 | last time, signed |
//! | 40 | 8 | checksum of the stream's name |
//! | 48 | 8 | checksum of the stored payload |
//! | 56 | 8 | checksum of the 56 bytes before, seeded with the frame's place in the file |
//!
//! The head has a checksum of its own, so that a damaged payload still says whose it was and where
//! the next frame begins. The seed makes a frame valid at its own place only: a payload that looks
//! like a frame is not taken for one when a reader searches for the mark behind damage.
//!
//! The index has an entry of 64 bytes for each frame, in the order of frames:
//!
//! | at | bytes | field |
//! |---|---|---|
//! | 0 | 8 | place of the frame |
//! | 8 | 4 | bytes of the frame |
//! | 12 | 4 | zero |
//! | 16 | 8 | checksum of the stream's name |
//! | 24 | 8 | epoch number, signed |
//! | 32 | 8 | first time, signed |
//! | 40 | 8 | last time, signed |
//! | 48 | 8 | latest last time of this and all entries before, signed |
//! | 56 | 8 | checksum of the 56 bytes before, seeded with the entry's place in the file |
//!
//! The index is a hint. It is written after the data and not synced, unless it replaces one that was
//! wrong about the data; whatever part of the data file no sound entry covers is read as if there were
//! no index. The latest time makes the last
//! entry answer for the whole day: a reader that asks for later times reads nothing else of it.
//!
//! A frame is written with one call and at the known end of the file. What lies behind the last
//! whole frame was never acknowledged: readers skip it, the next writer cuts it off.

use twixt_model::{Span, Timestamp};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::walk::FrameHead;

/// Longest payload, before it is packed and after.
pub const RECORD_BYTES_MAX: usize = 1 << 30;
/// Longest name of a stream.
pub const STREAM_BYTES_MAX: usize = 2048;

/// Format version that this release writes; it reads all up to this one.
pub(crate) const VERSION: u8 = 1;
pub(crate) const DATA_MAGIC: [u8; 4] = *b"TWXL";
pub(crate) const INDEX_MAGIC: [u8; 4] = *b"TWXI";
pub(crate) const HEADER_BYTES: usize = 16;
pub(crate) const HEAD_BYTES: usize = 64;
pub(crate) const ENTRY_BYTES: usize = 64;

const HEAD_CHECKED: usize = 4 + 4 + 4 + 2 + 1 + 1 + 8 + 8 + 8 + 8 + 8;
const ENTRY_CHECKED: usize = 8 + 4 + 4 + 8 + 8 + 8 + 8 + 8;
const CHECKSUM_BYTES: usize = 8;
const _: () = assert!(HEADER_BYTES == DATA_MAGIC.len() + 1 + 3 + CHECKSUM_BYTES);
const _: () = assert!(HEAD_BYTES == HEAD_CHECKED + CHECKSUM_BYTES);
const _: () = assert!(ENTRY_BYTES == ENTRY_CHECKED + CHECKSUM_BYTES);
const _: () = assert!(STREAM_BYTES_MAX <= u16::MAX as usize);
// A frame's length fits its field in the index.
const _: () = assert!(HEAD_BYTES + STREAM_BYTES_MAX + RECORD_BYTES_MAX <= u32::MAX as usize);

/// How a file begins.
pub(crate) fn header(magic: [u8; 4]) -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    bytes[..4].copy_from_slice(&magic);
    bytes[4] = VERSION;
    let checksum = xxh3_64(&bytes[..8]);
    bytes[8..].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

/// Bytes of a header that was not whole on the disk which may be something else.
const DAMAGED_MAX: usize = 2;

/// What the beginning of a file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeaderState {
    Sound,
    /// Sound, but of a newer release.
    Newer(u8),
    /// The file was just created, or the machine died before its header was on the disk.
    Unwritten,
    /// Ours, as far as one can tell, but damaged.
    Damaged,
    /// Of another program.
    Foreign,
}

pub(crate) fn check_header(bytes: &[u8; HEADER_BYTES], magic: [u8; 4]) -> HeaderState {
    let checksum = u64_at(bytes, 8);
    let is_alike = || {
        let ours = header(magic);
        let pairs = || ours.iter().zip(bytes);
        // A machine that died may have left zeros in the place of any part, which may be damaged since.
        pairs().filter(|(one, other)| one == other).count() > HEADER_BYTES / 2
            || pairs().filter(|(one, other)| one != other && **other != 0).count() <= DAMAGED_MAX
    };
    match bytes[4] {
        _ if *bytes == [0; HEADER_BYTES] => HeaderState::Unwritten,
        _ if bytes[..4] != magic || checksum != xxh3_64(&bytes[..8]) => match is_alike() {
            true => HeaderState::Damaged,
            false => HeaderState::Foreign,
        },
        version if version > VERSION => HeaderState::Newer(version),
        _ => HeaderState::Sound,
    }
}

/// How a payload is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packing {
    None = 0,
    Zstd = 1,
}

/// The head of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) stored_bytes: u32,
    pub(crate) raw_bytes: u32,
    pub(crate) stream_bytes: u16,
    pub(crate) packing: Packing,
    pub(crate) epoch: i64,
    pub(crate) span: Span,
    pub(crate) stream_hash: u64,
    pub(crate) payload_checksum: u64,
}

impl Packing {
    pub(crate) const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Self::None),
            1 => Some(Self::Zstd),
            _ => None,
        }
    }
}

impl Head {
    pub(crate) fn to_bytes(self, place: u64) -> [u8; HEAD_BYTES] {
        let mut bytes = [0; HEAD_BYTES];
        bytes[..4].copy_from_slice(&Self::MARK);
        bytes[4..8].copy_from_slice(&self.stored_bytes.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.raw_bytes.to_le_bytes());
        bytes[12..14].copy_from_slice(&self.stream_bytes.to_le_bytes());
        bytes[14] = self.packing as u8;
        bytes[16..24].copy_from_slice(&self.epoch.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.span.start.as_nanos().to_le_bytes());
        bytes[32..40].copy_from_slice(&self.span.end.as_nanos().to_le_bytes());
        bytes[40..48].copy_from_slice(&self.stream_hash.to_le_bytes());
        bytes[48..56].copy_from_slice(&self.payload_checksum.to_le_bytes());
        let checksum = xxh3_64_with_seed(&bytes[..HEAD_CHECKED], place);
        bytes[56..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }
}

impl FrameHead for Head {
    const MARK: [u8; 4] = *b"\xf5TWR";
    const BYTES: usize = HEAD_BYTES;

    fn frame_bytes(&self) -> u64 {
        HEAD_BYTES as u64 + u64::from(self.stream_bytes) + u64::from(self.stored_bytes)
    }

    fn from_bytes(bytes: &[u8], place: u64) -> Option<Self> {
        if bytes[..4] != Self::MARK
            || u64_at(bytes, 56) != xxh3_64_with_seed(&bytes[..HEAD_CHECKED], place)
        {
            return None;
        }
        let head = Self {
            stored_bytes: u32_at(bytes, 4),
            raw_bytes: u32_at(bytes, 8),
            stream_bytes: u16::from_le_bytes([bytes[12], bytes[13]]),
            packing: Packing::from_byte(bytes[14])?,
            epoch: i64_at(bytes, 16),
            span: span_at(bytes, 24)?,
            stream_hash: u64_at(bytes, 40),
            payload_checksum: u64_at(bytes, 48),
        };
        let longest = head.stored_bytes.max(head.raw_bytes) as usize;
        (longest <= RECORD_BYTES_MAX && usize::from(head.stream_bytes) <= STREAM_BYTES_MAX)
            .then_some(head)
    }
}

/// An entry of the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IndexEntry {
    pub(crate) place: u64,
    pub(crate) frame_bytes: u32,
    pub(crate) stream_hash: u64,
    pub(crate) epoch: i64,
    pub(crate) span: Span,
    /// Latest end of this and all entries before.
    pub(crate) reach: Timestamp,
}

impl IndexEntry {
    /// Of a frame at a place, behind entries that reach until `reach`.
    pub(crate) fn of(place: u64, head: &Head, reach: Timestamp) -> Self {
        Self {
            place,
            frame_bytes: u32::try_from(head.frame_bytes()).expect("a head's lengths are bounded"),
            stream_hash: head.stream_hash,
            epoch: head.epoch,
            span: head.span,
            reach: reach.max(head.span.end),
        }
    }

    /// Where the frame ends.
    pub(crate) const fn end(&self) -> u64 {
        self.place.saturating_add(self.frame_bytes as u64)
    }

    pub(crate) fn to_bytes(self, entry_place: u64) -> [u8; ENTRY_BYTES] {
        let mut bytes = [0; ENTRY_BYTES];
        bytes[..8].copy_from_slice(&self.place.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.frame_bytes.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.stream_hash.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.epoch.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.span.start.as_nanos().to_le_bytes());
        bytes[40..48].copy_from_slice(&self.span.end.as_nanos().to_le_bytes());
        bytes[48..56].copy_from_slice(&self.reach.as_nanos().to_le_bytes());
        let checksum = xxh3_64_with_seed(&bytes[..ENTRY_CHECKED], entry_place);
        bytes[56..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// The entry at a place of the index; `None` if it is damaged.
    pub(crate) fn from_bytes(bytes: &[u8; ENTRY_BYTES], entry_place: u64) -> Option<Self> {
        if u64_at(bytes, 56) != xxh3_64_with_seed(&bytes[..ENTRY_CHECKED], entry_place) {
            return None;
        }
        Some(Self {
            place: u64_at(bytes, 0),
            frame_bytes: u32_at(bytes, 8),
            stream_hash: u64_at(bytes, 16),
            epoch: i64_at(bytes, 24),
            span: span_at(bytes, 32)?,
            reach: Timestamp::from_nanos(i64_at(bytes, 48)),
        })
    }
}

/// Of a stream's name or of a stored payload.
pub(crate) fn checksum(bytes: &[u8]) -> u64 {
    xxh3_64(bytes)
}

fn span_at(bytes: &[u8], at: usize) -> Option<Span> {
    let start = Timestamp::from_nanos(i64_at(bytes, at));
    let end = Timestamp::from_nanos(i64_at(bytes, at + 8));
    (start <= end).then_some(Span { start, end })
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array_at(bytes, at))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array_at(bytes, at))
}

fn i64_at(bytes: &[u8], at: usize) -> i64 {
    i64::from_le_bytes(array_at(bytes, at))
}

pub(crate) fn array_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    *bytes[at..].first_chunk().expect("fields lie within heads and entries")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(start: i64, end: i64) -> Span {
        Span { start: Timestamp::from_nanos(start), end: Timestamp::from_nanos(end) }
    }

    fn head() -> Head {
        Head {
            stored_bytes: 7,
            raw_bytes: 9,
            stream_bytes: 3,
            packing: Packing::Zstd,
            epoch: -5,
            span: span(-1, 12),
            stream_hash: 77,
            payload_checksum: 99,
        }
    }

    #[test]
    fn heads_are_valid_at_their_own_place_only_and_when_unchanged() {
        let bytes = head().to_bytes(4096);
        assert_eq!(Head::from_bytes(&bytes, 4096), Some(head()));
        assert_eq!(Head::from_bytes(&bytes, 4097), None);
        for at in 0..HEAD_BYTES {
            let mut changed = bytes;
            changed[at] ^= 1;
            assert_eq!(Head::from_bytes(&changed, 4096), None, "byte {at}");
        }
    }

    #[test]
    fn heads_that_ask_for_too_much_are_none() {
        let long = |head: Head| Head::from_bytes(&head.to_bytes(0), 0);
        assert!(long(head()).is_some());
        assert!(long(Head { raw_bytes: RECORD_BYTES_MAX as u32 + 1, ..head() }).is_none());
        assert!(long(Head { stored_bytes: u32::MAX, ..head() }).is_none());
        assert!(long(Head { stream_bytes: u16::MAX, ..head() }).is_none());
        assert!(long(Head { span: span(2, 1), ..head() }).is_none());
    }

    #[test]
    fn entries_are_valid_at_their_own_place_only_and_when_unchanged() {
        let entry = IndexEntry::of(16, &head(), Timestamp::from_nanos(500));
        assert_eq!((entry.reach.as_nanos(), entry.end()), (500, 16 + 64 + 3 + 7));
        let bytes = entry.to_bytes(80);
        assert_eq!(IndexEntry::from_bytes(&bytes, 80), Some(entry));
        assert_eq!(IndexEntry::from_bytes(&bytes, 16), None);
        for at in 0..ENTRY_BYTES {
            let mut changed = bytes;
            changed[at] ^= 0x80;
            assert_eq!(IndexEntry::from_bytes(&changed, 80), None, "byte {at}");
        }
    }

    /// A part of it was on the disk when the machine died, and a bit changed later.
    #[test]
    fn a_header_that_was_not_whole_may_be_damaged_too() {
        for written in 0..HEADER_BYTES {
            for bit in 0..8 * HEADER_BYTES {
                let mut bytes = header(DATA_MAGIC);
                bytes[written..].fill(0);
                bytes[bit / 8] ^= 1 << (bit % 8);
                let state = check_header(&bytes, DATA_MAGIC);
                let expected = [HeaderState::Damaged, HeaderState::Unwritten];
                assert!(expected.contains(&state), "{written} bytes, bit {bit}: {state:?}");
            }
        }
    }

    #[test]
    fn a_newer_file_is_told_from_a_damaged_one() {
        let mut bytes = header(DATA_MAGIC);
        assert_eq!(check_header(&bytes, DATA_MAGIC), HeaderState::Sound);
        assert_eq!(check_header(&bytes, INDEX_MAGIC), HeaderState::Foreign);
        assert_eq!(check_header(&[0; HEADER_BYTES], DATA_MAGIC), HeaderState::Unwritten);
        assert_eq!(check_header(b"someone else's..", DATA_MAGIC), HeaderState::Foreign);
        let capture = *b"\xd4\xc3\xb2\xa1\x02\0\x04\0\0\0\0\0\0\0\0\0";
        assert_eq!(check_header(&capture, DATA_MAGIC), HeaderState::Foreign);
        bytes[4] = 2;
        assert_eq!(check_header(&bytes, DATA_MAGIC), HeaderState::Damaged);
        let checksum = xxh3_64(&bytes[..8]);
        bytes[8..].copy_from_slice(&checksum.to_le_bytes());
        assert_eq!(check_header(&bytes, DATA_MAGIC), HeaderState::Newer(2));
    }
}

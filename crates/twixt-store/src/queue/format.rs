//! The bytes of a queue.
//!
//! A queue is a folder of chunks, each a file named by the number of its first record:
//! `00000000000000000042.twxq`. Integers are little-endian, times are nanoseconds since 1970,
//! checksums are XXH3 of 64 bits. A chunk begins with the header of all our files (magic `TWXQ`),
//! and goes on with records, each a head of 56 bytes and the payload as it is stored:
//!
//! | at | bytes | field |
//! |---|---|---|
//! | 0 | 4 | mark: `f5`, `TWQ` |
//! | 4 | 4 | bytes of the stored payload |
//! | 8 | 4 | bytes of the payload when unpacked |
//! | 12 | 1 | packing: 0 none, 1 zstd |
//! | 13 | 3 | zero |
//! | 16 | 8 | number of the record |
//! | 24 | 8 | label that its owner gave it, signed |
//! | 32 | 8 | time at which it was appended, signed |
//! | 40 | 8 | checksum of the stored payload |
//! | 48 | 8 | checksum of the 48 bytes before, seeded with the record's place in the file |
//!
//! Numbers grow by one from record to record, over chunks and restarts, so that a reader knows which
//! ones are missing behind damage. Only the process that created a chunk appends to it.
//!
//! The file `confirmed.twxc` has a header (magic `TWXC`), the number below which every record is
//! settled, the number below which every record has been appended, and a checksum of both. It is
//! replaced as a whole.

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::format::{HEADER_BYTES, Packing, RECORD_BYTES_MAX, array_at, header};
use crate::walk::FrameHead;

pub(super) const CHUNK_MAGIC: [u8; 4] = *b"TWXQ";
pub(super) const CONFIRMED_MAGIC: [u8; 4] = *b"TWXC";
pub(super) const CONFIRMED_BYTES: usize = HEADER_BYTES + 24;
pub(super) const HEAD_BYTES: usize = 56;
const HEAD_CHECKED: usize = 48;

/// The head of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordHead {
    pub(super) stored_bytes: u32,
    pub(super) raw_bytes: u32,
    pub(super) packing: Packing,
    pub(super) number: u64,
    pub(super) label: i64,
    pub(super) appended_ns: i64,
    pub(super) payload_checksum: u64,
}

impl RecordHead {
    pub(super) fn to_bytes(self, place: u64) -> [u8; HEAD_BYTES] {
        let mut bytes = [0; HEAD_BYTES];
        bytes[..4].copy_from_slice(&Self::MARK);
        bytes[4..8].copy_from_slice(&self.stored_bytes.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.raw_bytes.to_le_bytes());
        bytes[12] = self.packing as u8;
        bytes[16..24].copy_from_slice(&self.number.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.label.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.appended_ns.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.payload_checksum.to_le_bytes());
        let checksum = xxh3_64_with_seed(&bytes[..HEAD_CHECKED], place);
        bytes[48..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }
}

impl FrameHead for RecordHead {
    const MARK: [u8; 4] = *b"\xf5TWQ";
    const BYTES: usize = HEAD_BYTES;

    fn from_bytes(bytes: &[u8], place: u64) -> Option<Self> {
        let checksum = u64::from_le_bytes(array_at(bytes, 48));
        if bytes[..4] != Self::MARK || checksum != xxh3_64_with_seed(&bytes[..HEAD_CHECKED], place)
        {
            return None;
        }
        let head = Self {
            stored_bytes: u32::from_le_bytes(array_at(bytes, 4)),
            raw_bytes: u32::from_le_bytes(array_at(bytes, 8)),
            packing: Packing::from_byte(bytes[12])?,
            number: u64::from_le_bytes(array_at(bytes, 16)),
            label: i64::from_le_bytes(array_at(bytes, 24)),
            appended_ns: i64::from_le_bytes(array_at(bytes, 32)),
            payload_checksum: u64::from_le_bytes(array_at(bytes, 40)),
        };
        let longest = head.stored_bytes.max(head.raw_bytes) as usize;
        (longest <= RECORD_BYTES_MAX && head.number < u64::MAX).then_some(head)
    }

    fn frame_bytes(&self) -> u64 {
        HEAD_BYTES as u64 + u64::from(self.stored_bytes)
    }
}

/// The name of the chunk that begins with a record.
pub(super) fn chunk_name(first: u64) -> String {
    format!("{first:020}.twxq")
}

/// The number of a chunk's first record; `None` if this is no chunk.
pub(super) fn first_of(name: &str) -> Option<u64> {
    let first = name.strip_suffix(".twxq")?.parse().ok()?;
    (chunk_name(first) == name).then_some(first)
}

/// Up to where a queue is settled, and up to where it reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Confirmed {
    /// All records before are confirmed, damaged or discarded.
    pub(super) confirmed: u64,
    /// All records before have been appended.
    pub(super) next: u64,
}

impl Confirmed {
    pub(super) fn to_bytes(self) -> [u8; CONFIRMED_BYTES] {
        let mut bytes = [0; CONFIRMED_BYTES];
        bytes[..HEADER_BYTES].copy_from_slice(&header(CONFIRMED_MAGIC));
        bytes[HEADER_BYTES..][..8].copy_from_slice(&self.confirmed.to_le_bytes());
        bytes[HEADER_BYTES + 8..][..8].copy_from_slice(&self.next.to_le_bytes());
        let checksum = xxh3_64(&bytes[HEADER_BYTES..][..16]);
        bytes[HEADER_BYTES + 16..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// What the file says behind its header; `None` if it is damaged.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; CONFIRMED_BYTES] = bytes.try_into().ok()?;
        let number = |at: usize| u64::from_le_bytes(array_at(bytes, HEADER_BYTES + at));
        let is_sound = number(16) == xxh3_64(&bytes[HEADER_BYTES..][..16]);
        is_sound.then(|| Self { confirmed: number(0), next: number(8) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_valid_at_their_own_place_only_and_when_unchanged() {
        let head = RecordHead {
            stored_bytes: 7,
            raw_bytes: 9,
            packing: Packing::Zstd,
            number: 42,
            label: -5,
            appended_ns: -1,
            payload_checksum: 99,
        };
        let bytes = head.to_bytes(4096);
        assert_eq!(RecordHead::from_bytes(&bytes, 4096), Some(head));
        assert_eq!(RecordHead::from_bytes(&bytes, 4097), None);
        for at in 0..HEAD_BYTES {
            let mut changed = bytes;
            changed[at] ^= 1;
            assert_eq!(RecordHead::from_bytes(&changed, 4096), None, "byte {at}");
        }
    }

    #[test]
    fn chunks_are_named_by_their_first_record() {
        assert_eq!(chunk_name(42), "00000000000000000042.twxq");
        assert_eq!(first_of("00000000000000000042.twxq"), Some(42));
        for other in ["42.twxq", "00000000000000000042", "confirmed", "x.twxq"] {
            assert_eq!(first_of(other), None, "{other}");
        }
    }

    #[test]
    fn a_damaged_confirmation_is_none() {
        let confirmed = Confirmed { confirmed: 77, next: 99 };
        let bytes = confirmed.to_bytes();
        assert_eq!(Confirmed::from_bytes(&bytes), Some(confirmed));
        for at in HEADER_BYTES..CONFIRMED_BYTES {
            let mut changed = bytes;
            changed[at] ^= 1;
            assert_eq!(Confirmed::from_bytes(&changed), None, "byte {at}");
        }
        assert_eq!(Confirmed::from_bytes(&bytes[..20]), None);
    }
}

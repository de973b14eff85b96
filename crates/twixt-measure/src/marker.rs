//! Markers: packets of our own that tell the downstream point where an epoch ends.
//!
//! On a segment that keeps the order of packets (one queue, no load sharing) a marker sent
//! between two packets stays between them, and both points cut at exactly the same packet,
//! whatever the delay and however wrong the clocks. On a segment that reorders packets, those
//! that overtake a marker count in the wrong epoch: use timed epochs there.
//!
//! The idea is that of LDA's control messages (Kompella et al., section on synchronising the two
//! ends); one marker both ends an epoch and starts the next.
//!
//! A marker travels as the payload of a UDP packet:
//!
//! | offset | field | type |
//! |---|---|---|
//! | 0 | magic `TWXK` | 4 bytes |
//! | 4 | format version | u8 |
//! | 5 | zero | 3 bytes |
//! | 8 | stream: hash of domain, upstream point, class | u64 |
//! | 16 | run of the upstream agent | u64 |
//! | 24 | sequence number within the run | u64 |
//! | 32 | epoch that ends here | i64 |
//! | 40 | epoch that starts here | i64 |
//! | 48 | checksum of all before (XXH3) | u64 |
//!
//! Integers are little-endian. The checksum finds damage, not forgery: a host that can send packets
//! into the segment can end epochs, and thereby prevent estimates, but not falsify them unless
//! it knows run and sequence number.

use twixt_model::{Epoch, PointId};
use twixt_synopsis::{DecodeError, Reader, Writer};
use xxhash_rust::xxh3::xxh3_64;

/// Bytes of an encoded marker.
pub const MARKER_BYTES: usize = 56;

const MAGIC: &[u8; 4] = b"TWXK";
/// Format version that this release writes; it reads all up to this one.
const VERSION: u8 = 1;

/// Ends one epoch and starts another, at its place among the packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marker {
    /// Whose epochs; see [`Marker::stream_of`].
    pub stream: u64,
    /// Run of the upstream agent.
    pub run: u64,
    /// Counts the markers of a run from 0, without gaps.
    pub sequence: u64,
    /// The epoch that ends here. For the first marker of a run, the one before `starts`.
    pub ends: Epoch,
    /// The epoch that starts here; those between the two were silent.
    pub starts: Epoch,
}

impl Marker {
    /// Identifies the epochs of one class at one upstream point.
    #[must_use]
    pub fn stream_of(domain: &str, upstream: &PointId, class: &str) -> u64 {
        let mut name = Writer::new();
        name.text(domain);
        name.text(&upstream.0);
        name.text(class);
        xxh3_64(name.as_slice())
    }

    /// The payload of the UDP packet.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; MARKER_BYTES] {
        let mut out = Writer::new();
        out.raw(MAGIC);
        out.u8(VERSION);
        out.raw(&[0; 3]);
        out.u64(self.stream);
        out.u64(self.run);
        out.u64(self.sequence);
        out.i64(self.ends.0);
        out.i64(self.starts.0);
        out.u64(xxh3_64(out.as_slice()));
        out.as_slice().try_into().expect("the fields add up to MARKER_BYTES")
    }

    /// Reads back what [`to_bytes`](Self::to_bytes) wrote.
    ///
    /// # Errors
    /// When the bytes are no marker, or a damaged one.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut input = Reader::new(bytes);
        if input.raw("magic", MAGIC.len())? != MAGIC {
            return Err(DecodeError::Magic { expected: "a marker" });
        }
        let found = input.u8("version")?;
        if found > VERSION {
            return Err(DecodeError::NewerVersion { what: "marker", found, newest: VERSION });
        }
        input.raw("zero", 3)?;
        let marker = Self {
            stream: input.u64("stream")?,
            run: input.u64("run")?,
            sequence: input.u64("sequence")?,
            ends: Epoch(input.i64("ended epoch")?),
            starts: Epoch(input.i64("started epoch")?),
        };
        let checked = &bytes[..bytes.len() - input.left()];
        if input.u64("checksum")? != xxh3_64(checked) {
            return Err(DecodeError::Checksum { what: "marker" });
        }
        input.finish()?;
        if marker.starts <= marker.ends {
            return Err(DecodeError::invalid("started epoch", "is not after the ended one"));
        }
        Ok(marker)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn marker() -> Marker {
        let stream = Marker::stream_of("lab", &PointId("paris".into()), "");
        Marker { stream, run: 7, sequence: 3, ends: Epoch(-5), starts: Epoch(-4) }
    }

    #[test]
    fn a_marker_reads_back() {
        assert_eq!(Marker::from_bytes(&marker().to_bytes()), Ok(marker()));
    }

    #[test]
    fn streams_differ_by_every_part_of_their_name() {
        let stream = |domain, point: &str, class| {
            Marker::stream_of(domain, &PointId(point.to_owned()), class)
        };
        let streams = [
            stream("a", "b", "c"),
            stream("ab", "", "c"),
            stream("a", "bc", ""),
            stream("", "", ""),
        ];
        for (index, one) in streams.iter().enumerate() {
            assert!(!streams[index + 1..].contains(one));
        }
    }

    proptest! {
        #![proptest_config(twixt_testing::cases(256))]

        #[test]
        fn damaged_markers_are_refused(bit in 0..MARKER_BYTES * 8, cut in 0..MARKER_BYTES) {
            let mut bytes = marker().to_bytes();
            prop_assert!(Marker::from_bytes(&bytes[..cut]).is_err());
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(Marker::from_bytes(&bytes).is_err());
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = Marker::from_bytes(&bytes);
        }
    }
}

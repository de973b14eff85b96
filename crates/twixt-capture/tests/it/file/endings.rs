//! Files that end where they should not.

use std::io::{self, Cursor, Read};

use twixt_capture::ByteOrder::{Big, Little};
use twixt_capture::{CaptureError, CaptureFile, Ending, MAX_BLOCK_BYTES};

use crate::file::build::{Bytes, Pcap, Pcapng, drain, open, read};

/// Cuts the file at every byte. `boundaries` are the offsets after header and records; frame `n`
/// is complete from `frame_ends[n]` on.
#[track_caller]
fn check_cut_everywhere(bytes: &[u8], header: usize, boundaries: &[usize], frame_ends: &[usize]) {
    let whole = read(bytes).0;
    assert_eq!(whole.len(), frame_ends.len());
    for cut in 0..=bytes.len() {
        let opened = open(&bytes[..cut]);
        if cut < header {
            match opened.err().expect("a header that is cut is no capture") {
                CaptureError::Empty { .. } => assert_eq!(cut, 0),
                CaptureError::NotACapture { .. } => assert!((1..4).contains(&cut)),
                CaptureError::HeaderTruncated { found, .. } => assert_eq!(found, cut),
                other => panic!("cut at {cut}: {other}"),
            }
            continue;
        }
        let (frames, ending, counts) = drain(&mut opened.unwrap());
        let complete = frame_ends.iter().filter(|&&end| end <= cut).count();
        assert_eq!(frames, whole[..complete], "cut at {cut}");
        assert_eq!(counts.frames, complete as u64);
        let last = *boundaries.iter().filter(|&&boundary| boundary <= cut).max().unwrap();
        match ending {
            Ending::Complete => assert_eq!(cut, last),
            Ending::Truncated { offset, .. } => {
                assert!(last < cut, "cut at {cut}");
                assert_eq!(offset, last as u64);
            }
            other => panic!("cut at {cut}: {other}"),
        }
    }
}

#[test]
fn pcap_cut_at_every_byte() {
    for magic in [0xa1b2_c3d4, 0xa1b2_3c4d] {
        let file = Pcap::new(Little, magic).record(1, 2, b"abc", 60).record(3, 4, b"", 0);
        let file = file.record(5, 6, b"abcdef", 6);
        check_cut_everywhere(&file.bytes, 24, &[24, 43, 59, 81], &[43, 59, 81]);
    }
}

#[test]
fn pcapng_cut_at_every_byte() {
    let mut file = Pcapng::new(Big);
    let mut boundaries = vec![file.bytes.len()];
    file = file.interface(1, |body| body.option(2, b"eth0").option(9, &[9]));
    boundaries.push(file.bytes.len());
    file = file.enhanced(0, 7, b"abc");
    boundaries.push(file.bytes.len());
    file = file.section(Little);
    boundaries.push(file.bytes.len());
    file = file.resolution(1, 6);
    boundaries.push(file.bytes.len());
    file = file.enhanced_with(0, 8, b"abcd", |body| body.option(2, &[1, 0, 0, 0]).u32(0));
    boundaries.push(file.bytes.len());
    check_cut_everywhere(&file.bytes, boundaries[0], &boundaries, &[boundaries[2], boundaries[5]]);
}

#[track_caller]
fn check_damaged(make: impl Fn(Pcapng) -> Pcapng, expected: &str) {
    let good = Pcapng::new(Little).interface(1, |body| body).enhanced(0, 1, b"abc");
    let offset = good.bytes.len() as u64;
    let (frames, ending, _) = read(&make(good).enhanced(0, 1, b"abc").bytes);
    assert_eq!(frames.len(), 1, "what came before is kept, what comes after is not trusted");
    assert_eq!(ending, Ending::Damaged { offset, detail: expected.to_owned() });
}

/// Bytes that are not made a proper block.
fn raw(mut file: Pcapng, bytes: Bytes) -> Pcapng {
    file.bytes.extend(bytes.bytes);
    file
}

#[test]
fn damaged_blocks_end_the_file() {
    let words = |file: &Pcapng, words: &[u32]| {
        words.iter().fold(file.body(), |bytes, &word| bytes.u32(word))
    };
    let limit = MAX_BLOCK_BYTES;
    let wrong_length = |length: u32| {
        format!("a block of {length} bytes, which is not a multiple of 4 from 12 to {limit}")
    };
    for length in [0, 8, 13, limit + 4, u32::MAX] {
        check_damaged(
            |file| {
                let block = words(&file, &[77, length, 0, 0]);
                raw(file, block)
            },
            &wrong_length(length),
        );
    }
    check_damaged(
        |file| {
            let block = words(&file, &[77, 16, 0, 20]);
            raw(file, block)
        },
        "a block of 16 bytes with the length 20 at its end",
    );
    check_damaged(
        |file| {
            let block = words(&file, &[0x0a0d_0d0a, 28, 0x1a2b_3c4e, 0, 0, 0, 28]);
            raw(file, block)
        },
        "a section without a byte-order mark",
    );
    check_damaged(
        |file| {
            let body = file.body().u32(0x1a2b_3c4d).u16(2).u16(0).u64(0);
            file.block(0x0a0d_0d0a, body)
        },
        "pcapng version 2.0 is not supported",
    );
    check_damaged(
        |file| {
            let body = file.body().u32(0).u64(0).u32(9).u32(9).u64(0);
            file.block(6, body)
        },
        "a packet of 9 bytes in a block with space for 8",
    );
    check_damaged(
        |file| {
            let body = file.body().u64(0);
            file.block(6, body)
        },
        "a block of type 0x00000006 that is too short for its fields",
    );
    check_damaged(|file| file.enhanced(0, 1, &[0; 262_145]), {
        "a packet of 262145 bytes, at most 262144 are possible"
    });
}

/// Gives some bytes, then an error as disks do.
struct FailingDisk(Cursor<Vec<u8>>);

impl Read for FailingDisk {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        match self.0.read(target)? {
            0 => Err(io::Error::other("the disk is on fire")),
            count => Ok(count),
        }
    }
}

#[test]
fn a_failing_disk_keeps_what_was_read() {
    let bytes = Pcap::new(Little, 0xa1b2_c3d4).record(1, 2, b"abc", 60).record(1, 2, b"d", 1).bytes;
    let disk = FailingDisk(Cursor::new(bytes[..50].to_vec()));
    let mut file = CaptureFile::from_reader(Box::new(disk), "disk").unwrap();
    let (frames, ending, _) = drain(&mut file);
    assert_eq!(frames.len(), 1);
    assert_eq!(ending.to_string(), "unreadable from byte 43 on: the disk is on fire");
    assert_eq!(file.ending(), Some(&ending));

    let disk = FailingDisk(Cursor::new(bytes[..10].to_vec()));
    let error = CaptureFile::from_reader(Box::new(disk), "disk").err().unwrap();
    assert!(matches!(error, CaptureError::Unreadable { .. }), "{error}");
}

//! Hostile bytes: never a panic, never more frames than bytes could hold.

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use twixt_capture::ByteOrder::{Big, Little};
use twixt_testing::cases;

use crate::file::build::{Pcap, Pcapng, drain, open};

const CASES: u32 = 2_000;

/// Runs `test` on values of `strategy`, the same ones each time.
fn for_all<S: Strategy>(strategy: &S, test: impl Fn(S::Value)) {
    let outcome = TestRunner::new(cases(CASES)).run(strategy, |value| {
        test(value);
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

fn survive(bytes: &[u8]) {
    let Ok(mut file) = open(bytes) else { return };
    let (frames, ending, counts) = drain(&mut file);
    assert_eq!(counts.frames, frames.len() as u64);
    let held: usize = frames.iter().map(|frame| frame.bytes.len() + 16).sum();
    assert!(held <= bytes.len() || file.compression() != twixt_capture::Compression::None);
    assert!(frames.iter().all(|frame| frame.wire_length as usize >= frame.bytes.len()));
    assert_eq!(file.ending(), Some(&ending));
    assert!(!ending.to_string().is_empty());
}

#[test]
fn any_bytes() {
    for_all(&prop::collection::vec(any::<u8>(), 0..200), |bytes| survive(&bytes));
}

#[test]
fn any_bytes_behind_a_magic() {
    let magics: [&[u8]; 8] = [
        &[0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0],
        &[0xa1, 0xb2, 0x3c, 0x4d, 0, 2, 0, 3],
        &[0xa1, 0xb2, 0xcd, 0x34, 0, 2, 0, 4],
        &[0x0a, 0x0d, 0x0d, 0x0a],
        &[0x0a, 0x0d, 0x0d, 0x0a, 28, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a, 1, 0],
        &[0x1f, 0x8b, 8],
        &[0x28, 0xb5, 0x2f, 0xfd],
        b"snoop\0\0\0",
    ];
    let bytes = (prop::sample::select(magics.to_vec()), prop::collection::vec(any::<u8>(), 0..200));
    for_all(&bytes, |(magic, rest)| survive(&[magic, &rest].concat()));
}

#[test]
fn captures_with_changed_bytes() {
    let pcap = Pcap::new(Big, 0xa1b2_3c4d).record(1, 0, b"abcdefgh", 60).record(2, 1, b"d", 1);
    let pcapng = Pcapng::new(Little).interface(1, |body| body.option(2, b"eth0").option(9, &[9]));
    let pcapng = pcapng.enhanced_with(0, 1, b"abc", |body| body.option(2, &[1, 0, 0, 0]).u32(0));
    let pcapng = pcapng.section(Big).resolution(1, 0x80 + 30).enhanced(0, u64::MAX, b"abcd");
    for bytes in [pcap.bytes, pcapng.bytes] {
        let change = (0..bytes.len(), any::<u8>());
        for_all(&prop::collection::vec(change, 1..4), |changes| {
            let mut bytes = bytes.clone();
            for (at, value) in changes {
                bytes[at] = value;
            }
            survive(&bytes);
        });
    }
}

//! What can be opened and what is refused, and in which words.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use flate2::write::GzEncoder;
use twixt_capture::ByteOrder::{Big, Little};
use twixt_capture::{CaptureFile, CaptureFormat, Compression, Ending};

use crate::file::build::{Pcap, Pcapng, drain, open};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 3).unwrap()
}

/// A capture that does not compress away to nothing.
fn long_capture() -> Vec<u8> {
    let mut file = Pcap::new(Little, 0xa1b2_c3d4);
    let mut noise = 1_u32;
    for number in 0..3_000 {
        let frame: Vec<u8> = (0..100)
            .map(|_| {
                noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (noise >> 24) as u8
            })
            .collect();
        file = file.record(number, 0, &frame, 100);
    }
    file.bytes
}

#[track_caller]
fn check_refused(bytes: &[u8], expected: &str) {
    let error = open(bytes).err().expect("this is not a capture");
    assert_eq!(error.to_string(), expected);
}

#[test]
fn formats_are_recognised_by_content() {
    let pcap = Pcap::new(Little, 0xa1b2_c3d4).record(1, 0, b"abc", 3).bytes;
    let pcapng = Pcapng::new(Big).interface(1, |body| body).enhanced(0, 1, b"abc").bytes;
    for (bytes, format) in [(pcap, CaptureFormat::Pcap), (pcapng, CaptureFormat::Pcapng)] {
        for (packed, compression) in [
            (bytes.clone(), Compression::None),
            (gzip(&bytes), Compression::Gzip),
            (zstd(&bytes), Compression::Zstd),
        ] {
            let mut file = open(&packed).unwrap();
            assert_eq!((file.format(), file.compression()), (format, compression));
            let (frames, ending, _) = drain(&mut file);
            assert_eq!((frames.len(), ending), (1, Ending::Complete));
            assert_eq!(file.bytes_read(), packed.len() as u64);
        }
    }
}

#[test]
fn compressed_pieces_may_follow_one_another() {
    let bytes = Pcap::new(Little, 0xa1b2_c3d4).record(1, 0, b"abc", 3).bytes;
    let (head, tail) = bytes.split_at(30);
    for pack in [gzip, zstd] {
        let (frames, ending, _) = drain(&mut open(&[pack(head), pack(tail)].concat()).unwrap());
        assert_eq!((frames.len(), ending), (1, Ending::Complete));
    }
}

#[test]
fn zstd_may_begin_with_a_skippable_frame() {
    let bytes = Pcap::new(Little, 0xa1b2_c3d4).record(1, 0, b"abc", 3).bytes;
    let skippable = [0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0, 1, 2, 3, 4];
    let mut file = open(&[&skippable[..], &zstd(&bytes)].concat()).unwrap();
    assert_eq!(file.compression(), Compression::Zstd);
    assert_eq!(drain(&mut file).0.len(), 1);
}

#[test]
fn a_compressed_file_cut_short_keeps_what_was_read() {
    for pack in [gzip, zstd] {
        let packed = pack(&long_capture());
        let (frames, ending, _) = drain(&mut open(&packed[..packed.len() / 2]).unwrap());
        assert!(matches!(ending, Ending::Truncated { .. }), "{ending}");
        assert!((1_000..2_000).contains(&frames.len()), "{} frames", frames.len());

        let (frames, ending, _) = drain(&mut open(&packed[..packed.len() - 1]).unwrap());
        assert!(matches!(ending, Ending::Truncated { .. }), "{ending}");
        assert!(frames.len() > 1_000);
    }
}

#[test]
fn a_damaged_compressed_file_keeps_what_was_read() {
    let mut packed = gzip(&long_capture());
    packed.extend(b"something else");
    let (frames, ending, _) = drain(&mut open(&packed).unwrap());
    assert!(matches!(ending, Ending::Damaged { .. }), "{ending}");
    assert_eq!(frames.len(), 3_000);
}

#[test]
fn what_is_no_capture_is_named() {
    check_refused(b"", "test: empty, not even a file header; was the capture started?");
    check_refused(&gzip(b""), "test: empty, not even a file header; was the capture started?");
    check_refused(
        b"time,delay\n1,2\n",
        "test: not a pcap or pcapng capture, but text that begins with \"time,delay\"",
    );
    check_refused(
        &[0, 1, 2],
        "test: not a pcap or pcapng capture, but bytes that begin with 00 01 02",
    );
    check_refused(
        b"snoop\0\0\0\0\0\0\x02",
        "test: snoop is not supported; convert it with editcap -F pcapng",
    );
    check_refused(
        &gzip(b"GMBU\0\x02 and more"),
        "test: Microsoft Network Monitor 2 is not supported; convert it with editcap -F pcapng",
    );
    check_refused(b"BZh91AY&SY", "test: bzip2 is not supported; decompress it with bzip2 -d");
}

#[test]
fn versions_and_damaged_headers_are_named() {
    for version in [(1, 4), (2, 5), (3, 0)] {
        let file = Pcap::with_header(Big, 0xa1b2_c3d4, version, 100, 1);
        let (major, minor) = version;
        check_refused(
            &file.bytes,
            &format!(
                "test: pcap version {major}.{minor} is not supported; convert it with editcap"
            ),
        );
    }
    let mut file = Pcapng::new(Little);
    file.bytes[12] = 2;
    check_refused(
        &file.bytes,
        "test: pcapng version 2.0 is not supported; convert it with editcap",
    );
    file.bytes[8] = 0;
    check_refused(
        &file.bytes,
        "test: damaged at the beginning: a section without a byte-order mark",
    );
    let cut = gzip(b"\xd4\xc3\xb2\xa1");
    let error = open(&cut[..12]).err().unwrap().to_string();
    assert!(error.starts_with("test: damaged at the beginning: gzip: "), "{error}");
}

#[test]
fn paths_that_are_no_files() {
    let folder = tempfile::tempdir().unwrap();
    let refusal = |path: PathBuf| {
        let error = CaptureFile::open(&path).err().expect("cannot be opened").to_string();
        error.replace(&folder.path().display().to_string(), "FOLDER")
    };
    assert_eq!(refusal(folder.path().join("missing.pcap")), "FOLDER/missing.pcap: no such file");
    assert_eq!(
        refusal(folder.path().to_owned()),
        "FOLDER: is a directory; name a capture file in it"
    );
    let empty = folder.path().join("empty.pcap");
    fs::write(&empty, b"").unwrap();
    assert!(refusal(empty).starts_with("FOLDER/empty.pcap: empty"));
}

#[test]
fn a_file_knows_its_size() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("long.pcap");
    let bytes = long_capture();
    fs::write(&path, &bytes).unwrap();
    let mut file = CaptureFile::open(&path).unwrap();
    assert_eq!(file.size_bytes(), Some(bytes.len() as u64));
    assert!(file.bytes_read() < bytes.len() as u64, "opening reads one block only");
    assert_eq!(drain(&mut file).0.len(), 3_000);
    assert_eq!(file.bytes_read(), bytes.len() as u64);
    assert_eq!(open(&bytes).unwrap().size_bytes(), None);
}

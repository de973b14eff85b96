//! Recognises by its first bytes what a file is, and names what we do not read.

use std::fmt;

use crate::pcap::Dialect;

/// Bytes that suffice to distinguish formats.
pub(crate) const LOOK_BYTES: usize = 4096;

/// A format of capture files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CaptureFormat {
    /// One link type, one resolution.
    Pcap,
    /// Blocks, many interfaces.
    Pcapng,
}

impl fmt::Display for CaptureFormat {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Pcap => "pcap",
            Self::Pcapng => "pcapng",
        })
    }
}

/// What a file is, by its first bytes.
#[derive(Clone, Debug)]
pub(crate) enum Recognised {
    Pcap(Dialect),
    Pcapng,
    /// A capture in a format that we do not read, or something compressed in a way we do not know.
    Unsupported {
        format: &'static str,
        remedy: &'static str,
    },
    /// Something else, in words.
    Unknown(String),
}

impl Recognised {
    pub(crate) fn is_capture(&self) -> bool {
        matches!(self, Self::Pcap(_) | Self::Pcapng)
    }
}

const CONVERT: &str = "convert it with editcap -F pcapng";

/// First bytes of files that are better named than guessed at.
const UNSUPPORTED: &[(&[u8], &str, &str)] = &[
    (b"snoop\0\0\0", "snoop", CONVERT),
    (b"GMBU", "Microsoft Network Monitor 2", CONVERT),
    (b"RTSS", "Microsoft Network Monitor 1", CONVERT),
    (b"TRSNIFF data    \x1a", "Network General Sniffer", CONVERT),
    (b"\x1c\x00\x01\xac", "IXIA lcap", CONVERT),
    (b"\x1c\x00\x01\xab", "IXIA lcap", CONVERT),
    (b"\xfd7zXZ\0", "xz", "decompress it with xz -d"),
    (b"BZh", "bzip2", "decompress it with bzip2 -d"),
    (b"\x04\x22\x4d\x18", "lz4", "decompress it with lz4 -d"),
    (b"\x1f\x8b", "doubly compressed", "decompress it once with gzip -d"),
    (b"\x28\xb5\x2f\xfd", "doubly compressed", "decompress it once with zstd -d"),
    (b"PK\x03\x04", "zip", "unpack it with unzip"),
];

/// Looks at up to [`LOOK_BYTES`] first bytes of a file, which is not empty.
pub(crate) fn recognise(start: &[u8]) -> Recognised {
    if let Some(magic) = start.first_chunk::<4>() {
        if let Some(dialect) = Dialect::of(*magic) {
            return Recognised::Pcap(dialect);
        }
        if *magic == [0x0a, 0x0d, 0x0d, 0x0a] {
            return Recognised::Pcapng;
        }
    }
    for &(magic, format, remedy) in UNSUPPORTED {
        if start.starts_with(magic) {
            return Recognised::Unsupported { format, remedy };
        }
    }
    if let Some(text) = first_line(start) {
        return Recognised::Unknown(format!("text that begins with {text:?}"));
    }
    if looks_like_erf(start) {
        return Recognised::Unsupported { format: "ERF (Endace)", remedy: CONVERT };
    }
    Recognised::Unknown(format!("bytes that begin with {}", first_bytes(start)))
}

/// The beginning of the first line, if these are the first bytes of a text.
fn first_line(start: &[u8]) -> Option<String> {
    const SHOWN_CHARACTERS: usize = 40;
    let head = &start[..start.len().min(512)];
    let text = match std::str::from_utf8(head) {
        Ok(text) => text,
        // A character that was cut by the end of what we look at is none of the text's fault.
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&head[..error.valid_up_to()]).ok()?
        }
        Err(_) => return None,
    };
    let is_printable = |character: char| !character.is_control() || character.is_whitespace();
    let is_text = !text.is_empty() && text.chars().all(is_printable);
    is_text.then(|| {
        let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        line.chars().take(SHOWN_CHARACTERS).collect()
    })
}

fn first_bytes(start: &[u8]) -> String {
    let shown: Vec<_> = start.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    shown.join(" ")
}

/// ERF has no magic: a file is a run of records of 16 bytes of header (time in units of 2^-32 s,
/// little-endian; type; flags; record length, big-endian; ...) and data. We ask that two records
/// in a row make sense and lie less than a day apart.
fn looks_like_erf(start: &[u8]) -> bool {
    const SECONDS_APART_MAX: u32 = 86_400;
    let Some(first) = ErfRecord::first_of(start) else { return false };
    let Some(after) = start.get(usize::from(first.length)..) else { return false };
    ErfRecord::first_of(after)
        .is_some_and(|second| first.seconds.abs_diff(second.seconds) < SECONDS_APART_MAX)
}

struct ErfRecord {
    seconds: u32,
    length: u16,
}

impl ErfRecord {
    const HEADER_BYTES: u16 = 16;
    const NEWEST_KIND: u8 = 48;

    fn first_of(bytes: &[u8]) -> Option<Self> {
        let header = bytes.first_chunk::<16>()?;
        let seconds = u32::from_le_bytes([header[4], header[5], header[6], header[7]]);
        let length = u16::from_be_bytes([header[10], header[11]]);
        // The top bit says that extension headers follow.
        let kind = header[8] & 0x7f;
        let is_plausible =
            (1..=Self::NEWEST_KIND).contains(&kind) && length >= Self::HEADER_BYTES && seconds > 0;
        is_plausible.then_some(Self { seconds, length })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(start: &[u8], expected: &str) {
        let found = match recognise(start) {
            Recognised::Pcap(_) => "pcap".to_owned(),
            Recognised::Pcapng => "pcapng".to_owned(),
            Recognised::Unsupported { format, .. } => format.to_owned(),
            Recognised::Unknown(words) => words,
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn formats_are_known_by_their_first_bytes() {
        check(&[0xd4, 0xc3, 0xb2, 0xa1], "pcap");
        check(&[0xa1, 0xb2, 0x3c, 0x4d], "pcap");
        check(&[0xa1, 0xb2, 0xcd, 0x34], "pcap");
        check(&[0x0a, 0x0d, 0x0d, 0x0a], "pcapng");
        check(b"snoop\0\0\0\0\0\0\x02", "snoop");
        check(b"GMBU\0\x02", "Microsoft Network Monitor 2");
    }

    #[test]
    fn what_is_no_capture_is_shown() {
        check(b"\n  Hello, world\nmore", "text that begins with \"  Hello, world\"");
        check(
            "\u{fc}".repeat(300).as_bytes(),
            &format!("text that begins with {:?}", "ü".repeat(40)),
        );
        check(b"\x7fELF\x02\x01\x01\0\0\0", "bytes that begin with 7f 45 4c 46 02 01 01 00");
        check(&[0xd4], "bytes that begin with d4");
    }

    #[test]
    fn erf_is_known_by_two_records_in_a_row() {
        let mut record = vec![0, 0, 0, 0, 1, 2, 3, 60, 2, 4, 0, 20, 0, 0, 0, 60, 9, 9, 9, 9];
        check(&record, "bytes that begin with 00 00 00 00 01 02 03 3c");
        record.extend(record.clone());
        check(&record, "ERF (Endace)");
        record[20 + 6] = 77;
        check(&record, "bytes that begin with 00 00 00 00 01 02 03 3c");
    }
}

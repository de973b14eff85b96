//! Real captures, against pcap-parser.
//!
//! pcap-parser is trusted with records and blocks, not with times: those are worked out here from
//! its raw fields, for the resolutions that are plain to work out. Of more than a thousand
//! captures none needs an exception.

use std::fs;
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use pcap_parser::{Block, PcapBlockOwned, PcapError, create_reader};
use twixt_capture::{CaptureError, CaptureFile, Ending};
use twixt_testing::require;

use crate::file::build::drain;

/// Larger than the largest file, so that pcap-parser never has to refill in the middle.
const ORACLE_BUFFER_BYTES: usize = 64 << 20;

#[derive(Debug, PartialEq, Eq)]
struct Record {
    nanos: Option<i64>,
    bytes: Vec<u8>,
    wire_length: u32,
}

impl Record {
    fn new(nanos: Option<i64>, bytes: &[u8], wire_length: u32) -> Self {
        Self { nanos, bytes: bytes.to_vec(), wire_length: wire_length.max(bytes.len() as u32) }
    }
}

/// Unit of an interface in nanoseconds, and its offset; `None` if not plain.
type PlainClock = Option<(u64, i128)>;

/// What pcap-parser finds in the file, and whether it came to the end.
fn oracle(bytes: &[u8]) -> (Vec<Record>, bool) {
    let mut records = Vec::new();
    let mut clocks: Vec<PlainClock> = Vec::new();
    let mut nanos_per_unit = 1_000;
    let mut is_refilled = false;
    let Ok(mut reader) = create_reader(ORACLE_BUFFER_BYTES, Cursor::new(bytes.to_vec())) else {
        return (records, false);
    };
    loop {
        let consumed = match reader.next() {
            Ok((consumed, block)) => {
                match block {
                    PcapBlockOwned::LegacyHeader(header) => {
                        nanos_per_unit = if header.is_nanosecond_precision() { 1 } else { 1_000 };
                    }
                    PcapBlockOwned::Legacy(packet) => {
                        let nanos = i64::from(packet.ts_sec) * 1_000_000_000
                            + i64::from(packet.ts_usec) * nanos_per_unit;
                        records.push(Record::new(Some(nanos), packet.data, packet.origlen));
                    }
                    PcapBlockOwned::NG(block) => note_block(&block, &mut clocks, &mut records),
                }
                consumed
            }
            Err(PcapError::Eof) => return (records, true),
            // All bytes are in the buffer, but only asking for more tells the reader so.
            Err(PcapError::Incomplete(_)) if !is_refilled => {
                is_refilled = true;
                reader.refill().unwrap();
                0
            }
            Err(_) => return (records, false),
        };
        reader.consume(consumed);
    }
}

fn note_block(block: &Block<'_>, clocks: &mut Vec<PlainClock>, records: &mut Vec<Record>) {
    match block {
        Block::SectionHeader(_) => clocks.clear(),
        Block::InterfaceDescription(interface) => clocks.push(match interface.if_tsresol {
            digits @ 0..=9 => Some((
                10_u64.pow(9 - u32::from(digits)),
                i128::from(interface.if_tsoffset) * 1_000_000_000,
            )),
            _ => None,
        }),
        Block::EnhancedPacket(packet) => {
            let units = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
            let Some(clock) = clocks.get(packet.if_id as usize) else { return };
            let nanos = clock.map(|(unit, offset)| i128::from(units) * i128::from(unit) + offset);
            let nanos = nanos.and_then(|nanos| i64::try_from(nanos).ok());
            let bytes = &packet.data[..packet.caplen as usize];
            records.push(Record::new(nanos, bytes, packet.origlen));
        }
        _ => {}
    }
}

fn captures_below(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.to_string_lossy().into_owned();
        if path.is_dir() {
            captures_below(&path, found);
        } else if name.trim_end_matches(".gz").ends_with(".pcap")
            || name.trim_end_matches(".gz").ends_with(".pcapng")
        {
            found.push(path);
        }
    }
}

fn unpacked(path: &Path) -> Vec<u8> {
    let bytes = fs::read(path).unwrap();
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return bytes;
    }
    let mut unpacked = Vec::new();
    MultiGzDecoder::new(&bytes[..]).read_to_end(&mut unpacked).unwrap();
    unpacked
}

/// How we differ from what pcap-parser found, if we do.
fn difference(
    path: &Path,
    bytes: &[u8],
    (expected, is_whole): &(Vec<Record>, bool),
) -> Option<String> {
    let is_whole = *is_whole;
    let mut file = match CaptureFile::open(path) {
        Ok(file) => file,
        Err(CaptureError::Empty { .. }) if bytes.is_empty() => return None,
        Err(error) => return is_whole.then(|| error.to_string()),
    };
    let (frames, ending, _) = drain(&mut file);
    if is_whole && ending != Ending::Complete {
        return Some(ending.to_string());
    }
    if frames.len() < expected.len() || (is_whole && frames.len() > expected.len()) {
        return Some(format!("{} frames, not {}; {ending}", frames.len(), expected.len()));
    }
    let differs = frames.iter().zip(expected).position(|(frame, record)| {
        frame.bytes != record.bytes
            || frame.wire_length != record.wire_length
            || record.nanos.is_some_and(|nanos| nanos != frame.nanos)
    });
    differs.map(|number| format!("frame {number} differs"))
}

#[test]
fn real_captures_read_as_pcap_parser_reads_them() {
    let folder = require!(shared "traces");
    let mut captures = Vec::new();
    captures_below(&folder, &mut captures);
    captures.sort();
    assert!(captures.len() > 1_000, "only {} captures", captures.len());
    let mut differences = Vec::new();
    let mut whole = 0;
    for path in &captures {
        let name = path.strip_prefix(&folder).unwrap().display().to_string();
        let bytes = unpacked(path);
        let expected = oracle(&bytes);
        whole += usize::from(expected.1);
        if let Some(difference) = difference(path, &bytes, &expected) {
            differences.push(format!("{name}: {difference}"));
        }
    }
    assert!(whole > 1_000, "pcap-parser read only {whole} captures to the end");
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn erf_is_named() {
    let path = require!(shared "traces/encap-libtrace/fragtest.erf.gz");
    let error = CaptureFile::open(&path).err().expect("ERF is not read").to_string();
    assert!(error.contains("ERF (Endace) is not supported; convert it with"), "{error}");
}

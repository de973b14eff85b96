//! From a reader to a decoder that has seen the file header, or to a clear refusal.

use std::io::{self, ErrorKind, Read};

use super::Decoder;
use crate::buffer::BlockBuffer;
use crate::decode::{Damage, Stop};
use crate::detect::{LOOK_BYTES, Recognised, recognise};
use crate::input::{Blame, Input};
use crate::pcap::{Dialect, FILE_HEADER_BYTES, PcapDecoder};
use crate::pcapng::PcapngDecoder;
use crate::{CaptureError, CaptureFormat};

/// Enough to recognise pcap and pcapng, which must not wait for more on a slow pipe.
const MAGIC_BYTES: usize = 4;

type Buffer = BlockBuffer<Input>;

/// Reads the file header from `input`, called `name`.
pub(super) fn start(
    input: Box<dyn Read + Send>,
    name: &str,
) -> Result<(Buffer, Decoder), CaptureError> {
    let input = Input::new(input).map_err(|source| refused(name, source))?;
    let mut buffer = BlockBuffer::new(input);
    fill(&mut buffer, MAGIC_BYTES, name)?;
    if buffer.unconsumed().is_empty() {
        return Err(CaptureError::Empty { file: name.to_owned() });
    }
    let mut recognised = recognise(look(&buffer));
    if !recognised.is_capture() {
        // Looks closer, to name what is there. An error would only hide what can be read.
        let _ = buffer.fill_to(LOOK_BYTES);
        recognised = recognise(look(&buffer));
    }
    let file = name.to_owned();
    let decoder = match recognised {
        Recognised::Pcap(dialect) => Decoder::Pcap(start_pcap(&mut buffer, dialect, name)?),
        Recognised::Pcapng => Decoder::Pcapng(start_pcapng(&mut buffer, name)?),
        Recognised::Unsupported { format, remedy } => {
            return Err(CaptureError::UnsupportedFormat { file, format, remedy });
        }
        Recognised::Unknown(appearance) => {
            return Err(CaptureError::NotACapture { file, appearance });
        }
    };
    Ok((buffer, decoder))
}

/// What the system's refusal to open a file means.
pub(super) fn refused(name: &str, source: io::Error) -> CaptureError {
    let file = name.to_owned();
    match source.kind() {
        ErrorKind::NotFound => CaptureError::Missing { file },
        ErrorKind::PermissionDenied => CaptureError::PermissionDenied { file },
        ErrorKind::IsADirectory => CaptureError::Directory { file },
        _ => CaptureError::Unreadable { file, source },
    }
}

fn start_pcap(
    buffer: &mut Buffer,
    dialect: Dialect,
    name: &str,
) -> Result<PcapDecoder, CaptureError> {
    fill(buffer, FILE_HEADER_BYTES, name)?;
    let Some(header) = buffer.unconsumed().first_chunk() else {
        return Err(header_truncated(buffer, CaptureFormat::Pcap, name));
    };
    let decoder =
        PcapDecoder::new(dialect, header).map_err(|damage| header_damaged(damage, name))?;
    buffer.consume(FILE_HEADER_BYTES);
    Ok(decoder)
}

/// Reads the section header, and of what came with it all up to the first packet, so that the
/// interfaces are known early.
fn start_pcapng(buffer: &mut Buffer, name: &str) -> Result<PcapngDecoder, CaptureError> {
    let mut decoder = PcapngDecoder::new();
    loop {
        let bytes = buffer.unconsumed();
        let (end, rest) = decoder.next_frame(bytes, false);
        let (stop, consumed_bytes) =
            (end.err().unwrap_or(Stop::BatchFull), bytes.len() - rest.len());
        buffer.consume(consumed_bytes);
        if decoder.byte_order().is_some() {
            return Ok(decoder);
        }
        match stop {
            Stop::Damaged(damage) => return Err(header_damaged(damage, name)),
            Stop::BatchFull => unreachable!("a file without a section header has no packets"),
            Stop::Incomplete { needed_bytes } => {
                fill(buffer, needed_bytes, name)?;
                if buffer.unconsumed().len() < needed_bytes {
                    return Err(header_truncated(buffer, CaptureFormat::Pcapng, name));
                }
            }
        }
    }
}

fn fill(buffer: &mut Buffer, count: usize, name: &str) -> Result<(), CaptureError> {
    buffer.fill_to(count).map_err(|source| {
        let file = name.to_owned();
        match buffer.input().blame(&source) {
            Blame::System => refused(name, source),
            Blame::CompressedTooShort | Blame::CompressedWrongly => {
                let compression = buffer.input().compression();
                CaptureError::HeaderDamaged { file, detail: format!("{compression}: {source}") }
            }
        }
    })
}

fn look(buffer: &Buffer) -> &[u8] {
    let bytes = buffer.unconsumed();
    &bytes[..bytes.len().min(LOOK_BYTES)]
}

fn header_truncated(buffer: &Buffer, format: CaptureFormat, name: &str) -> CaptureError {
    let found = buffer.unconsumed().len();
    CaptureError::HeaderTruncated { file: name.to_owned(), format, found }
}

fn header_damaged(damage: Damage, name: &str) -> CaptureError {
    let file = name.to_owned();
    match damage {
        Damage::Version { format, major, minor } => {
            CaptureError::UnsupportedVersion { file, format, major, minor }
        }
        _ => CaptureError::HeaderDamaged { file, detail: damage.to_string() },
    }
}

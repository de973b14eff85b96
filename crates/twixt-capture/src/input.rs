//! The bytes of a file, decompressed if need be. Knows nothing of captures.

use std::fmt;
use std::io::{self, BufReader, Chain, Cursor, ErrorKind, Read};

use flate2::read::MultiGzDecoder;
use zstd::stream::read::Decoder as ZstdDecoder;

/// Logarithm of how far back a zstd stream may refer, which is what decompressing it costs in
/// memory: 128 MiB. `zstd --long=31` goes beyond and is refused.
const ZSTD_WINDOW_LOG_MAX: u32 = 27;

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Compression {
    /// Not at all.
    None,
    /// RFC 1952, one or several members.
    Gzip,
    /// RFC 8878, one or several frames.
    Zstd,
}

impl fmt::Display for Compression {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::None => "none",
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        })
    }
}

impl Compression {
    const MAGIC_BYTES: usize = 4;

    fn of(start: &[u8]) -> Self {
        match start {
            [0x1f, 0x8b, ..] => Self::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Self::Zstd,
            // A skippable frame, with which parallel compressors begin (RFC 8878, 3.1.2).
            [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Self::Zstd,
            _ => Self::None,
        }
    }
}

/// Reads what a file decompresses to, and counts the bytes of the file itself.
pub(crate) enum Input {
    Plain(Raw),
    Gzip(Box<MultiGzDecoder<Raw>>),
    Zstd(ZstdDecoder<'static, BufReader<Raw>>),
}

/// The first bytes, which were read to recognise the compression, and the rest.
type Raw = Chain<Cursor<Vec<u8>>, Counted>;

pub(crate) struct Counted {
    input: Box<dyn Read + Send>,
    bytes: u64,
}

impl Input {
    pub(crate) fn new(input: Box<dyn Read + Send>) -> io::Result<Self> {
        let mut counted = Counted { input, bytes: 0 };
        let mut start = Vec::new();
        counted.by_ref().take(Compression::MAGIC_BYTES as u64).read_to_end(&mut start)?;
        let compression = Compression::of(&start);
        let raw = Cursor::new(start).chain(counted);
        Ok(match compression {
            Compression::None => Self::Plain(raw),
            Compression::Gzip => Self::Gzip(Box::new(MultiGzDecoder::new(raw))),
            Compression::Zstd => {
                let mut decoder = ZstdDecoder::new(raw)?;
                decoder.window_log_max(ZSTD_WINDOW_LOG_MAX)?;
                Self::Zstd(decoder)
            }
        })
    }

    pub(crate) fn compression(&self) -> Compression {
        match self {
            Self::Plain(_) => Compression::None,
            Self::Gzip(_) => Compression::Gzip,
            Self::Zstd(_) => Compression::Zstd,
        }
    }

    /// Bytes of the file itself that were read so far.
    pub(crate) fn bytes_read(&self) -> u64 {
        let raw = match self {
            Self::Plain(raw) => raw,
            Self::Gzip(decoder) => decoder.get_ref(),
            Self::Zstd(decoder) => decoder.get_ref().get_ref(),
        };
        raw.get_ref().1.bytes
    }

    /// Whose fault an error of [`Read::read`] is.
    pub(crate) fn blame(&self, error: &io::Error) -> Blame {
        match self.compression() {
            Compression::None => Blame::System,
            _ if error.kind() == ErrorKind::UnexpectedEof => Blame::CompressedTooShort,
            _ if error.raw_os_error().is_none() => Blame::CompressedWrongly,
            _ => Blame::System,
        }
    }
}

/// What made reading fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blame {
    /// Disk, network storage, pipe.
    System,
    /// A compressed file stops in the middle.
    CompressedTooShort,
    /// A compressed file makes no sense.
    CompressedWrongly,
}

impl Read for Input {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(raw) => raw.read(target),
            Self::Gzip(decoder) => decoder.read(target),
            Self::Zstd(decoder) => decoder.read(target),
        }
    }
}

impl Read for Counted {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(target)?;
        self.bytes += count as u64;
        Ok(count)
    }
}

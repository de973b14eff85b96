//! One file of numbered sections, to be handed on: each of some kind, packed and checked by itself.
//!
//! | at | bytes | field |
//! |---|---|---|
//! | 0 | 4 | magic: `TWXB` |
//! | 4 | 1 | format version |
//! | 5 | 3 | zero |
//! | 8 | 8 | checksum of these eight |
//!
//! Then come sections, each a head of 32 bytes and its content as it is stored:
//!
//! | at | bytes | field |
//! |---|---|---|
//! | 0 | 2 | kind; 0 ends the file |
//! | 2 | 1 | packing: 0 none, 1 zstd |
//! | 3 | 5 | zero |
//! | 8 | 4 | bytes of the stored content |
//! | 12 | 4 | bytes of the content when unpacked |
//! | 16 | 8 | checksum of the stored content |
//! | 24 | 8 | checksum of the 24 bytes before, seeded with the number of the section |
//!
//! Integers are little-endian, checksums are XXH3 of 64 bits. A file is whole if all checksums match and
//! nothing follows the section that ends it: one section that is damaged, missing or in another place
//! makes it unusable. Unlike a log it is no place to save what can be saved.
//!
//! What the sections mean is the business of others.

use std::io::{self, Read, Write};

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::compress::{LEVEL_DEFAULT, pack, unpack};
use crate::format::{HEADER_BYTES, Packing, array_at, header};

/// Longest content of a section, packed and unpacked.
pub const SECTION_BYTES_MAX: usize = 64 << 20;
/// Sections of a file.
pub const SECTIONS_MAX: u64 = 1 << 20;
/// How the file begins.
pub const SECTIONS_MAGIC: [u8; 4] = *b"TWXB";

/// Format version that this release writes; it reads all up to this one.
const VERSION: u8 = 1;
const END: u16 = 0;
const HEAD_BYTES: usize = 32;
const HEAD_CHECKED: usize = 24;

/// A section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// What it is; never 0.
    pub kind: u16,
    /// Its content, unpacked.
    pub content: Vec<u8>,
}

/// Why a file cannot be used, or a section not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SectionError {
    /// The file was written by something else.
    #[error("not a bundle: it does not begin with TWXB")]
    Foreign,
    /// A newer release wrote the file. Upgrade.
    #[error(
        "bundle format version {0} is newer than {VERSION}, the newest that this release reads; upgrade"
    )]
    NewerVersion(u8),
    /// The file is not what was written. Copy or download it again.
    #[error("the bundle is damaged ({0}): copy or download it again")]
    Damaged(&'static str),
    /// The content does not fit into a section.
    #[error("{bytes} bytes do not fit into a section of a bundle")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// The file cannot be read or written.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Writes a file, section by section.
#[derive(Debug)]
pub struct SectionWriter<W> {
    out: W,
    number: u64,
}

impl<W: Write> SectionWriter<W> {
    /// Begins a file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn new(mut out: W) -> Result<Self, SectionError> {
        out.write_all(&header_of(VERSION))?;
        Ok(Self { out, number: 0 })
    }

    /// Adds a section; `kind` is not 0.
    ///
    /// # Errors
    /// When it is too long, there are too many, or the file cannot be written.
    pub fn add(&mut self, kind: u16, content: &[u8]) -> Result<(), SectionError> {
        assert_ne!(kind, END, "that kind ends the file");
        if content.len() > SECTION_BYTES_MAX || self.number >= SECTIONS_MAX {
            return Err(SectionError::TooLong { bytes: content.len() });
        }
        let mut stored = Vec::new();
        let packing = pack(content, LEVEL_DEFAULT, &mut stored)?;
        let head = Head {
            kind,
            packing,
            stored_bytes: stored.len() as u32, // no longer than the content
            raw_bytes: content.len() as u32,
            checksum: xxh3_64(&stored),
        };
        self.write(&head, &stored)
    }

    /// Ends the file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(mut self) -> Result<W, SectionError> {
        let end = Head {
            kind: END,
            packing: Packing::None,
            stored_bytes: 0,
            raw_bytes: 0,
            checksum: xxh3_64(&[]),
        };
        self.write(&end, &[])?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn write(&mut self, head: &Head, stored: &[u8]) -> Result<(), SectionError> {
        self.out.write_all(&head.to_bytes(self.number))?;
        self.out.write_all(stored)?;
        self.number += 1;
        Ok(())
    }
}

/// Reads a file, section by section. It holds one, and allocates what is there, not what is promised.
#[derive(Debug)]
pub struct SectionReader<R> {
    input: R,
    number: u64,
    is_over: bool,
}

impl<R: Read> SectionReader<R> {
    /// Checks how the file begins.
    ///
    /// # Errors
    /// When it is something else, of a newer release, or cannot be read.
    pub fn new(mut input: R) -> Result<Self, SectionError> {
        let mut found = Vec::new();
        input.by_ref().take(HEADER_BYTES as u64).read_to_end(&mut found)?;
        if !found.starts_with(&SECTIONS_MAGIC) {
            return Err(SectionError::Foreign);
        }
        let found: [u8; HEADER_BYTES] =
            found.try_into().map_err(|_| SectionError::Damaged("it ends early"))?;
        match found[SECTIONS_MAGIC.len()] {
            version if found != header_of(version) => {
                Err(SectionError::Damaged("the checksum of its header does not match"))
            }
            version if version > VERSION => Err(SectionError::NewerVersion(version)),
            _ => Ok(Self { input, number: 0, is_over: false }),
        }
    }

    /// The next section; `None` at the end of a file that is whole.
    ///
    /// # Errors
    /// When the file is damaged or cannot be read. What came before is of no use then.
    #[allow(clippy::should_implement_trait, reason = "an error ends it")]
    pub fn next(&mut self) -> Result<Option<Section>, SectionError> {
        if self.is_over {
            return Ok(None);
        }
        let head = self.head()?;
        self.number += 1;
        if head.kind == END {
            return self.end(&head);
        }
        if self.number > SECTIONS_MAX {
            return Err(SectionError::Damaged("it has too many sections"));
        }
        let mut stored = Vec::new();
        let wanted = u64::from(head.stored_bytes);
        self.input.by_ref().take(wanted).read_to_end(&mut stored)?;
        if stored.len() as u64 != wanted {
            return Err(SectionError::Damaged("it ends early"));
        }
        if xxh3_64(&stored) != head.checksum {
            return Err(SectionError::Damaged("the checksum of a section does not match"));
        }
        let content = unpack(stored, head.packing, head.raw_bytes)
            .ok_or(SectionError::Damaged("a section cannot be unpacked"))?;
        Ok(Some(Section { kind: head.kind, content }))
    }

    fn head(&mut self) -> Result<Head, SectionError> {
        let mut found = Vec::new();
        self.input.by_ref().take(HEAD_BYTES as u64).read_to_end(&mut found)?;
        let found: [u8; HEAD_BYTES] =
            found.try_into().map_err(|_| SectionError::Damaged("it ends early"))?;
        Head::from_bytes(&found, self.number)
            .ok_or(SectionError::Damaged("the head of a section does not match its checksum"))
    }

    fn end(&mut self, head: &Head) -> Result<Option<Section>, SectionError> {
        let is_empty = head.stored_bytes == 0 && head.raw_bytes == 0;
        if !is_empty || self.input.read(&mut [0])? != 0 {
            return Err(SectionError::Damaged("bytes follow its end"));
        }
        self.is_over = true;
        Ok(None)
    }
}

fn header_of(version: u8) -> [u8; HEADER_BYTES] {
    let mut bytes = header(SECTIONS_MAGIC);
    bytes[SECTIONS_MAGIC.len()] = version;
    let checksum = xxh3_64(&bytes[..8]);
    bytes[8..].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

/// The head of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Head {
    kind: u16,
    packing: Packing,
    stored_bytes: u32,
    raw_bytes: u32,
    checksum: u64,
}

impl Head {
    fn to_bytes(self, number: u64) -> [u8; HEAD_BYTES] {
        let mut bytes = [0; HEAD_BYTES];
        bytes[..2].copy_from_slice(&self.kind.to_le_bytes());
        bytes[2] = self.packing as u8;
        bytes[8..12].copy_from_slice(&self.stored_bytes.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.raw_bytes.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.checksum.to_le_bytes());
        let checksum = xxh3_64_with_seed(&bytes[..HEAD_CHECKED], number);
        bytes[HEAD_CHECKED..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8; HEAD_BYTES], number: u64) -> Option<Self> {
        let checksum = u64::from_le_bytes(array_at(bytes, HEAD_CHECKED));
        if checksum != xxh3_64_with_seed(&bytes[..HEAD_CHECKED], number) {
            return None;
        }
        let head = Self {
            kind: u16::from_le_bytes(array_at(bytes, 0)),
            packing: Packing::from_byte(bytes[2])?,
            stored_bytes: u32::from_le_bytes(array_at(bytes, 8)),
            raw_bytes: u32::from_le_bytes(array_at(bytes, 12)),
            checksum: u64::from_le_bytes(array_at(bytes, 16)),
        };
        let longest = head.stored_bytes.max(head.raw_bytes) as usize;
        (longest <= SECTION_BYTES_MAX).then_some(head)
    }
}

#[cfg(test)]
mod tests;

//! The epoch file: a header, then records, each one sealed epoch.
//!
//! | part | bytes |
//! |---|---|
//! | header | magic `TWXE`, format version (u8), three zero bytes |
//! | record | length of the body (u32), checksum of the body (u64, XXH3), the body |
//!
//! Integers are little-endian. A file is only ever appended to, so a writer that was stopped
//! leaves at most its last record torn; what lies before is good. Opening, reading and appending
//! are the caller's business.

use twixt_synopsis::DecodeError;
use xxhash_rust::xxh3::xxh3_64;

use crate::sealed::Sealed;

/// Format version that this release writes; it reads all up to this one.
const VERSION: u8 = 1;
/// How an epoch file starts.
pub const FILE_HEADER: [u8; 8] = *b"TWXE\x01\0\0\0";
const _: () = assert!(FILE_HEADER[4] == VERSION);
const MAGIC_BYTES: usize = 4;

/// Longest body of a record. The referee keeps every packet, so this is generous.
pub const RECORD_BYTES_MAX: usize = 1 << 30;
/// Bytes before the body of a record.
pub const RECORD_HEADER_BYTES: usize = 4 + 8;

/// What stands before a body: its length and checksum.
///
/// # Errors
/// When the body is longer than [`RECORD_BYTES_MAX`].
pub fn record_header(body: &[u8]) -> Result<[u8; RECORD_HEADER_BYTES], FileError> {
    if body.len() > RECORD_BYTES_MAX {
        return Err(FileError::TooLong { length: body.len() as u64 });
    }
    let mut header = [0; RECORD_HEADER_BYTES];
    let (length, checksum) = header.split_at_mut(size_of::<u32>());
    length.copy_from_slice(&(body.len() as u32).to_le_bytes());
    checksum.copy_from_slice(&xxh3_64(body).to_le_bytes());
    Ok(header)
}

/// A body with its header before it.
///
/// # Errors
/// When the body is longer than [`RECORD_BYTES_MAX`].
pub fn frame_record(body: &[u8]) -> Result<Vec<u8>, FileError> {
    Ok([&record_header(body)?, body].concat())
}

/// Why bytes are no epoch file, or no longer one. All records before are good.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The file is something else. Check its name.
    #[error("not an epoch file")]
    Magic,
    /// The writer runs a newer release. Upgrade the reader.
    #[error("epoch file format version {found}, newest known is {VERSION}")]
    NewerVersion {
        /// Version in the file.
        found: u8,
    },
    /// A record is longer than any that twixt writes: the file is damaged, or the epochs are too
    /// long for an algorithm that keeps every packet. Use shorter epochs.
    #[error("a record of {length} bytes, at most {RECORD_BYTES_MAX} are allowed")]
    TooLong {
        /// Its length.
        length: u64,
    },
    /// The file was damaged after it was written. Nothing after this place can be trusted.
    #[error("record {record}: checksum does not match, the file is damaged")]
    Checksum {
        /// How many records came before it.
        record: u64,
    },
    /// A whole record that is not a sealed epoch. Those after it may be good.
    #[error("record {record}: {source}")]
    Record {
        /// How many records came before it.
        record: u64,
        /// What is wrong with it.
        source: DecodeError,
    },
}

/// How a file ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileTail {
    /// With a whole record.
    Clean,
    /// With so many bytes of a record that was never finished.
    Torn {
        /// How many.
        bytes: u64,
    },
}

/// Takes records out of a file that is handed over piece by piece. Holds one piece and at most
/// one record.
#[derive(Clone, Debug, Default)]
pub struct RecordReader {
    buffer: Vec<u8>,
    /// How much of `buffer` was taken already.
    taken: usize,
    header_seen: bool,
    /// What made the rest of the file unreadable.
    broken: Option<FileError>,
    records: u64,
}

impl RecordReader {
    /// At the beginning of a file.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Hands over the next bytes of the file. Take all records out before handing over more.
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.broken.is_some() {
            return;
        }
        self.buffer.drain(..self.taken);
        self.taken = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// The body of the next record; `None` until more bytes are handed over.
    ///
    /// # Errors
    /// When the file is not, or no longer, readable; then every further call says so too.
    pub fn next_body(&mut self) -> Result<Option<Vec<u8>>, FileError> {
        if let Some(error) = &self.broken {
            return Err(error.clone());
        }
        self.take_record().inspect_err(|error| {
            self.broken = Some(error.clone());
            self.buffer = Vec::new();
            self.taken = 0;
        })
    }

    /// The next sealed epoch; `None` until more bytes are handed over.
    ///
    /// # Errors
    /// As [`next_body`](Self::next_body), and when a record is not a sealed epoch; after that the
    /// next one can still be read.
    pub fn next_sealed(&mut self) -> Result<Option<Sealed>, FileError> {
        let Some(body) = self.next_body()? else { return Ok(None) };
        let record = self.records - 1;
        Sealed::from_bytes(&body).map(Some).map_err(|source| FileError::Record { record, source })
    }

    /// Records taken out so far.
    #[must_use]
    pub const fn records(&self) -> u64 {
        self.records
    }

    /// Ends reading.
    ///
    /// # Errors
    /// When the file was not readable to its end, or is too short to be an epoch file.
    pub fn finish(self) -> Result<FileTail, FileError> {
        if let Some(error) = self.broken {
            return Err(error);
        }
        if !self.header_seen {
            return Err(FileError::Magic);
        }
        Ok(match (self.buffer.len() - self.taken) as u64 {
            0 => FileTail::Clean,
            bytes => FileTail::Torn { bytes },
        })
    }

    fn take_record(&mut self) -> Result<Option<Vec<u8>>, FileError> {
        if !self.header_seen {
            if !is_header(&self.buffer)? {
                return Ok(None);
            }
            self.taken = FILE_HEADER.len();
            self.header_seen = true;
        }
        let left = &self.buffer[self.taken..];
        let Some(body) = first_body(left, self.records)?.map(<[u8]>::to_vec) else {
            return Ok(None);
        };
        self.taken += RECORD_HEADER_BYTES + body.len();
        self.records += 1;
        Ok(Some(body))
    }
}

/// The bodies of the records of a whole file, where they lie.
///
/// # Errors
/// When the bytes are not an epoch file, or one of a newer release.
pub fn records_of(file: &[u8]) -> Result<Records<'_>, FileError> {
    match is_header(file)? {
        true => Ok(Records { left: &file[FILE_HEADER.len()..], records: 0 }),
        false => Err(FileError::Magic),
    }
}

/// See [`records_of`]. Ends with the first record that is not whole.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    left: &'a [u8],
    records: u64,
}

impl Records<'_> {
    /// How the file ends, once all records were taken.
    #[must_use]
    pub const fn tail(&self) -> FileTail {
        match self.left.len() as u64 {
            0 => FileTail::Clean,
            bytes => FileTail::Torn { bytes },
        }
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<&'a [u8], FileError>;

    fn next(&mut self) -> Option<Self::Item> {
        let body = first_body(self.left, self.records).transpose()?;
        Some(body.inspect(|body| {
            self.left = &self.left[RECORD_HEADER_BYTES + body.len()..];
            self.records += 1;
        }))
    }
}

/// Whether a file begins with its header; not yet, if it is shorter.
fn is_header(file: &[u8]) -> Result<bool, FileError> {
    let start = &file[..file.len().min(MAGIC_BYTES)];
    if !FILE_HEADER.starts_with(start) {
        return Err(FileError::Magic);
    }
    match file.first_chunk::<{ FILE_HEADER.len() }>() {
        Some(header) if header[MAGIC_BYTES] > VERSION => {
            Err(FileError::NewerVersion { found: header[MAGIC_BYTES] })
        }
        header => Ok(header.is_some()),
    }
}

/// The body of the first of some records, if it is whole. So many came before it.
fn first_body(records: &[u8], before: u64) -> Result<Option<&[u8]>, FileError> {
    let Some((header, rest)) = records.split_first_chunk::<RECORD_HEADER_BYTES>() else {
        return Ok(None);
    };
    let [a, b, c, d, checksum @ ..] = *header;
    let length = u32::from_le_bytes([a, b, c, d]) as usize;
    if length > RECORD_BYTES_MAX {
        return Err(FileError::TooLong { length: length as u64 });
    }
    match rest.get(..length) {
        Some(body) if xxh3_64(body) != u64::from_le_bytes(checksum) => {
            Err(FileError::Checksum { record: before })
        }
        body => Ok(body),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(bodies: &[&[u8]]) -> Vec<u8> {
        let records = bodies.iter().flat_map(|body| frame_record(body).unwrap());
        FILE_HEADER.into_iter().chain(records).collect()
    }

    type Outcome = (Vec<Vec<u8>>, Result<FileTail, FileError>);

    fn read(bytes: &[u8], piece_bytes: usize) -> Outcome {
        let mut reader = RecordReader::new();
        let mut bodies = Vec::new();
        for piece in bytes.chunks(piece_bytes) {
            reader.feed(piece);
            while let Ok(Some(body)) = reader.next_body() {
                bodies.push(body);
            }
        }
        (bodies, reader.finish())
    }

    #[track_caller]
    fn check(bytes: &[u8], bodies: &[&[u8]], end: &Result<FileTail, FileError>) {
        for piece_bytes in [1, 3, 13, 1 << 16] {
            let (found, found_end) = read(bytes, piece_bytes);
            assert_eq!(
                (found.as_slice(), &found_end),
                (&*bodies.iter().map(|body| body.to_vec()).collect::<Vec<_>>(), end)
            );
        }
    }

    #[test]
    fn records_read_back_whatever_the_pieces() {
        check(&file(&[b"one", b"", b"three"]), &[b"one", b"", b"three"], &Ok(FileTail::Clean));
        check(&FILE_HEADER, &[], &Ok(FileTail::Clean));
    }

    #[test]
    fn a_long_file_needs_no_more_memory_than_a_short_one() {
        let mut reader = RecordReader::new();
        reader.feed(&FILE_HEADER);
        let record = frame_record(&[7; 100]).unwrap();
        for _ in 0..1_000 {
            reader.feed(&record);
            assert_eq!(reader.next_body().unwrap().unwrap().len(), 100);
        }
        assert_eq!(reader.records(), 1_000);
        assert!(reader.buffer.capacity() < 1_000);
    }

    #[test]
    fn a_torn_tail_is_reported_and_the_rest_kept() {
        let whole = file(&[b"one", b"two"]);
        check(&whole[..whole.len() - 1], &[b"one"], &Ok(FileTail::Torn { bytes: 14 }));
        check(&whole[..FILE_HEADER.len() + 15 + 2], &[b"one"], &Ok(FileTail::Torn { bytes: 2 }));
    }

    #[test]
    fn a_damaged_record_is_reported_and_those_before_it_kept() {
        let mut bytes = file(&[b"one", b"two", b"three"]);
        bytes[FILE_HEADER.len() + 15 + 13] ^= 1;
        check(&bytes, &[b"one"], &Err(FileError::Checksum { record: 1 }));
        let mut bytes = file(&[b"one"]);
        bytes.extend_from_slice(&[0xff; 12]);
        check(&bytes, &[b"one"], &Err(FileError::TooLong { length: u64::from(u32::MAX) }));
    }

    #[test]
    fn other_files_are_refused() {
        check(b"\xd4\xc3\xb2\xa1 a capture", &[], &Err(FileError::Magic));
        check(b"TWX", &[], &Err(FileError::Magic));
        check(b"", &[], &Err(FileError::Magic));
        check(b"TWXE\x02\0\0\0", &[], &Err(FileError::NewerVersion { found: 2 }));
    }

    #[test]
    fn a_whole_record_that_is_no_epoch_does_not_end_the_file() {
        let mut reader = RecordReader::new();
        reader.feed(&file(&[b"nonsense", b"more"]));
        let message = reader.next_sealed().unwrap_err().to_string();
        assert_eq!(message, "record 0: not a sealed epoch");
        assert!(matches!(reader.next_sealed(), Err(FileError::Record { record: 1, .. })));
        assert!(matches!(reader.next_sealed(), Ok(None)));
    }
}

//! A file that is read piece by piece, each in one call to the system. (The library's own way takes
//! four for each page, and has a position that all readers share.)

use std::io::{self, BufReader, Read};
use std::sync::Arc;

use bytes::Bytes;
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};
use twixt_store::DiskFile;

/// Read ahead where it is not known how much is needed: a page of strings and its header.
const AHEAD_BYTES: usize = 4096;

/// A file.
#[derive(Debug)]
pub(super) struct Source {
    file: Arc<dyn DiskFile>,
    bytes: u64,
}

/// What lies behind a place.
#[derive(Debug)]
pub(super) struct Behind {
    file: Arc<dyn DiskFile>,
    place: u64,
}

impl Source {
    pub(super) fn new(file: Box<dyn DiskFile>, bytes: u64) -> Self {
        Self { file: Arc::from(file), bytes }
    }
}

impl Length for Source {
    fn len(&self) -> u64 {
        self.bytes
    }
}

impl ChunkReader for Source {
    type T = BufReader<Behind>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        let behind = Behind { file: Arc::clone(&self.file), place: start };
        Ok(BufReader::with_capacity(AHEAD_BYTES, behind))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        // A file that lies about its pages does not make us ask for memory.
        if start.checked_add(length as u64).is_none_or(|end| end > self.bytes) {
            return Err(ParquetError::EOF("a page lies behind the end".to_owned()));
        }
        let mut piece = vec![0; length];
        match self.file.fill_at(&mut piece, start)? {
            true => Ok(piece.into()),
            false => Err(ParquetError::EOF("the file was cut meanwhile".to_owned())),
        }
    }
}

impl Read for Behind {
    fn read(&mut self, piece: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(piece, self.place)?;
        self.place += read as u64;
        Ok(read)
    }
}

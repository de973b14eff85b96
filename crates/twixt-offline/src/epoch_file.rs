//! Files of sealed epochs, as `record` writes them.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use twixt_measure::{FILE_HEADER, FileError, FileTail, RecordReader, Sealed};

use crate::capture::is_read_once;
use crate::error::OfflineError;
use crate::report::{Remark, Reporter};

/// Bytes read at once.
const CHUNK_BYTES: usize = 1 << 20;

/// Whether the file is one that `record` wrote. A pipe is none: to look would be to read it.
#[must_use]
pub fn is_epoch_file(path: &Path) -> bool {
    if is_read_once(path) {
        return false;
    }
    let mut magic = [0; 4];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut magic));
    read.is_ok() && FILE_HEADER.starts_with(&magic)
}

/// Reads an epoch file, epoch by epoch. Returns whether a part of it was unusable, having reported
/// that.
///
/// # Errors
/// When it cannot be read at all.
pub fn read_epochs(
    path: &Path,
    reporter: &dyn Reporter,
    mut each: impl FnMut(Sealed),
) -> Result<bool, OfflineError> {
    let unreadable = |source| OfflineError::Read { path: path.to_owned(), source };
    let mut file = File::open(path).map_err(unreadable)?;
    let mut reader = RecordReader::new();
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut partial = false;
    loop {
        let length = file.read(&mut chunk).map_err(unreadable)?;
        if length == 0 {
            break;
        }
        reader.feed(&chunk[..length]);
        loop {
            match reader.next_sealed() {
                Ok(Some(sealed)) => each(sealed),
                Err(error @ FileError::Record { .. }) => {
                    reporter.remark(Remark::RecordLeftOut { path: path.to_owned(), error });
                    partial = true;
                }
                Ok(None) | Err(_) => break,
            }
        }
    }
    let tail = tail_remark(path, reader)?;
    partial |= tail.is_some();
    tail.into_iter().for_each(|remark| reporter.remark(remark));
    Ok(partial)
}

/// What is wrong with the end of a file of which something was read.
fn tail_remark(path: &Path, reader: RecordReader) -> Result<Option<Remark>, OfflineError> {
    let (path, records) = (path.to_owned(), reader.records());
    match reader.finish() {
        Ok(FileTail::Clean) => Ok(None),
        Ok(FileTail::Torn { bytes }) => Ok(Some(Remark::RecordUnfinished { path, bytes, records })),
        Err(source) if records == 0 => Err(OfflineError::EpochFile { path, source }),
        Err(error) => Ok(Some(Remark::EpochsDamaged { path, error, records })),
    }
}

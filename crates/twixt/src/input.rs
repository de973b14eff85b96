//! Files that commands read: captures and epoch files, told apart by content.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::Context;
use twixt_capture::{CaptureFile, Ending};
use twixt_measure::{FILE_HEADER, FileTail, RecordReader, Sealed};

use crate::exit::note;

/// Opens a capture; `-` is standard input.
pub(crate) fn open_capture(path: &Path) -> anyhow::Result<CaptureFile> {
    let opened = if is_stdin(path) { CaptureFile::stdin() } else { CaptureFile::open(path) };
    Ok(opened?)
}

/// Whether the path means standard input.
pub(crate) fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Whether the file is one that `record` wrote.
pub(crate) fn is_epoch_file(path: &Path) -> bool {
    let mut magic = [0; 4];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut magic));
    read.is_ok() && FILE_HEADER.starts_with(&magic)
}

/// Reads an epoch file, epoch by epoch. Returns whether a part of it was unusable, having said so.
pub(crate) fn read_epochs(path: &Path, mut each: impl FnMut(Sealed)) -> anyhow::Result<bool> {
    let shown = path.display();
    let mut file = File::open(path).with_context(|| format!("cannot open {shown}"))?;
    let mut reader = RecordReader::new();
    let mut chunk = vec![0; 1 << 20];
    let mut partial = false;
    loop {
        let length = file.read(&mut chunk).with_context(|| format!("cannot read {shown}"))?;
        if length == 0 {
            break;
        }
        reader.feed(&chunk[..length]);
        loop {
            match reader.next_sealed() {
                Ok(Some(sealed)) => each(sealed),
                Ok(None) => break,
                Err(error @ twixt_measure::FileError::Record { .. }) => {
                    note(format_args!("{shown}: {error}; the record is left out"));
                    partial = true;
                }
                Err(_) => break,
            }
        }
    }
    let records = reader.records();
    match reader.finish() {
        Ok(FileTail::Clean) => {}
        Ok(FileTail::Torn { bytes }) => {
            note(format_args!(
                "{shown}: the last {bytes} bytes are an unfinished record; {records} epochs were read"
            ));
            partial = true;
        }
        Err(error) if records == 0 => return Err(error).with_context(|| format!("{shown}")),
        Err(error) => {
            note(format_args!("{shown}: {error}; {records} epochs before it were read"));
            partial = true;
        }
    }
    Ok(partial)
}

/// Whether a capture ended before its end.
pub(crate) fn is_partial(file: &CaptureFile) -> bool {
    file.ending().is_some_and(|ending| *ending != Ending::Complete)
}

/// Says what is wrong with how a capture ended; whether there was something.
pub(crate) fn note_ending(path: &Path, file: &CaptureFile) -> bool {
    if let Some(ending) = file.ending().filter(|_| is_partial(file)) {
        let frames = file.counts().frames;
        let shown = path.display();
        note(format_args!("{shown}: {ending}; the {frames} frames before that were used"));
    }
    is_partial(file)
}

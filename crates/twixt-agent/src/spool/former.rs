//! Spools as earlier releases wrote them: a log for each chunk, in a folder named by a number, with
//! indexes in the place of times, and a text file `confirmed` with the chunk and index up to which
//! all was confirmed. They are taken over into the queue, oldest first.

use std::path::Path;

use twixt_model::Timestamp;
use twixt_store::{
    Log, Options, Query, Queue, SharedDisk, StoreError, is_folder, read_file, remove_if_there,
};

use super::SpoolError;

/// What the only point of such a log was called.
const POINT: &str = "epochs";
const CONFIRMED_NAME: &str = "confirmed";
/// Two numbers have no more.
const CONFIRMED_BYTES_MAX: u64 = 64;

/// Appends what an earlier release left to the queue, makes it durable, and deletes it there. After
/// an error nothing is deleted that the queue does not have.
pub(super) fn take_over(
    disk: &SharedDisk,
    folder: &Path,
    queue: &mut Queue,
    now: Timestamp,
) -> Result<(), SpoolError> {
    let failed = |action| {
        let folder = folder.to_owned();
        move |source| SpoolError::Folder { folder, action, source }
    };
    let mut chunks = Vec::new();
    for name in disk.list(folder).map_err(failed("listing it"))? {
        if let Ok(number) = name.parse::<u64>()
            && is_folder(disk.as_ref(), &folder.join(&name)).map_err(failed("listing it"))?
        {
            chunks.push((number, name));
        }
    }
    if chunks.is_empty() {
        return Ok(());
    }
    chunks.sort_unstable();
    let confirmed = read_confirmed(disk, &folder.join(CONFIRMED_NAME));
    for (number, name) in chunks {
        let chunk = folder.join(&name);
        append_all(disk, &chunk, queue, now, |index| (number, index) >= confirmed)?;
        queue.sync()?;
        disk.remove_folder(&chunk).map_err(failed("deleting what was taken over"))?;
    }
    let path = folder.join(CONFIRMED_NAME);
    remove_if_there(disk.as_ref(), &path).map_err(failed("deleting what was taken over"))
}

fn append_all(
    disk: &SharedDisk,
    chunk: &Path,
    queue: &mut Queue,
    now: Timestamp,
    is_wanted: impl Fn(u64) -> bool,
) -> Result<(), StoreError> {
    let log = Log::on(disk.clone(), chunk, Options::default());
    let mut scan = log.scan(Query::all().at_point(POINT))?;
    let mut epochs = 0;
    for found in scan.by_ref() {
        if is_wanted(found.span.start.as_nanos().cast_unsigned()) {
            queue.append(found.epoch.0, now, &found.payload)?;
            epochs += 1;
        }
    }
    let damaged = scan.finish()?.damaged;
    let chunk = chunk.display();
    tracing::info!(%chunk, epochs, damaged, "took over the spool of an earlier release");
    Ok(())
}

/// Nothing is confirmed if the file cannot be read: to send twice does no harm.
fn read_confirmed(disk: &SharedDisk, path: &Path) -> (u64, u64) {
    let text = read_file(disk.as_ref(), path, CONFIRMED_BYTES_MAX).unwrap_or_default();
    let text = String::from_utf8(text).unwrap_or_default();
    let mut numbers = text.split_whitespace().map(str::parse::<u64>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(chunk)), Some(Ok(index))) => (chunk, index),
        _ => (0, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spool::Spool;
    use twixt_model::{Epoch, Span};
    use twixt_store::{Durability, EpochEntry, real_disk, replace_file};

    /// As the release before the queue wrote it.
    fn write_chunk(folder: &Path, number: u64, epochs: std::ops::Range<i64>) {
        let log = Log::open(folder.join(format!("{number:012}")), Options::default());
        let mut writer = log.writer(POINT).unwrap();
        for (index, epoch) in (0..).zip(epochs) {
            let span = Span::at(Timestamp::from_nanos(index));
            let entry = EpochEntry { stream: POINT, span, epoch: Epoch(epoch) };
            writer.append(&entry, &epoch.to_le_bytes(), Durability::Synced).unwrap();
        }
    }

    #[test]
    fn a_spool_of_an_earlier_release_is_taken_over() {
        let folder = tempfile::tempdir().unwrap();
        write_chunk(folder.path(), 1, 0..3);
        write_chunk(folder.path(), 2, 3..6);
        replace_file(&real_disk(), &folder.path().join(CONFIRMED_NAME), b"1 2\n").unwrap();
        let spool = Spool::open(folder.path(), 1 << 20).unwrap();
        let batch = spool.batch(10, 1 << 20).unwrap();
        let epochs: Vec<i64> = batch.iter().map(|spooled| spooled.epoch.0).collect();
        assert_eq!(epochs, [2, 3, 4, 5]);
        assert_eq!(batch[0].payload, 2_i64.to_le_bytes());
        assert!(!folder.path().join("000000000001").exists());
        spool.confirm(&batch[3]);
        drop(spool);
        let spool = Spool::open(folder.path(), 1 << 20).unwrap();
        assert_eq!(spool.counts().epochs, 0);
    }
}

//! A spool for each point, so that one whose epochs the collector does not take holds up no other.

use std::io;
use std::path::Path;
use std::sync::Arc;

use twixt_model::Epoch;
use twixt_store::{
    SharedDisk, folder_of_point, is_folder, make_folders, point_of_folder, real_disk,
};

use super::{Now, SPOOL_BYTES_MIN, Spool, SpoolCounts, SpoolError, system_time};

/// The spools of an agent: of its points, and of points it had before whose epochs still wait.
#[derive(Debug)]
pub struct Spools {
    /// Those of its points come first, in their order.
    spools: Vec<(String, Spool)>,
}

impl Spools {
    /// Opens the spools of these points, each in a folder of its own, and those of other points
    /// that are there. Together they never take more than `bytes_max` bytes, of which each has an
    /// equal share (at least [`SPOOL_BYTES_MIN`]).
    ///
    /// # Errors
    /// When a folder cannot be used, or another agent has it.
    pub fn open<'a>(
        folder: &Path,
        points: impl IntoIterator<Item = &'a str>,
        bytes_max: u64,
    ) -> Result<Self, SpoolError> {
        Self::open_on(&real_disk(), &system_time(), folder, points, bytes_max)
    }

    /// The same on a given disk, with a given clock.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_on<'a>(
        disk: &SharedDisk,
        now: &Now,
        folder: &Path,
        points: impl IntoIterator<Item = &'a str>,
        bytes_max: u64,
    ) -> Result<Self, SpoolError> {
        let failed = |source| SpoolError::Folder {
            folder: folder.to_owned(),
            action: "creating it",
            source,
        };
        make_folders(disk.as_ref(), folder).map_err(failed)?;
        let mut names: Vec<String> = points.into_iter().map(str::to_owned).collect();
        for left in left_behind(disk, folder).map_err(failed)? {
            if !names.contains(&left) {
                names.push(left);
            }
        }
        let share = (bytes_max / names.len().max(1) as u64).max(SPOOL_BYTES_MIN);
        let open = |name: String| {
            let own =
                folder_of_point(&name).ok_or_else(|| SpoolError::Name { point: name.clone() })?;
            let spool = Spool::open_on(disk, Arc::clone(now), &folder.join(own), share)?;
            Ok((name, spool))
        };
        Ok(Self { spools: names.into_iter().map(open).collect::<Result<_, SpoolError>>()? })
    }

    /// Epochs of a run of a point come next; see [`Spool::note_run`].
    pub fn note_run(&self, point: usize, run: u64) {
        self.spools[point].1.note_run(run);
    }

    /// Takes an epoch of a point, by its index; see [`Spool::append`].
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn append(&self, point: usize, epoch: Epoch, payload: &[u8]) -> Result<(), SpoolError> {
        self.spools[point].1.append(epoch, payload)
    }

    /// Makes all that was appended to a point's spool survive the death of the machine.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn sync(&self, point: usize) -> Result<(), SpoolError> {
        self.spools[point].1.sync()
    }

    /// Nothing more will be appended.
    pub fn close(&self) {
        self.iter().for_each(|(_, spool)| spool.close());
    }

    /// All of them, with the names of their points.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Spool)> {
        self.spools.iter().map(|(name, spool)| (name.as_str(), spool))
    }

    /// What they did so far, and hold, together.
    pub fn counts(&self) -> SpoolCounts {
        let counts = self.iter().map(|(_, spool)| spool.counts());
        counts.fold(SpoolCounts::default(), |all, own| SpoolCounts {
            epochs: all.epochs + own.epochs,
            bytes: all.bytes + own.bytes,
            discarded: all.discarded + own.discarded,
            unwritten: all.unwritten + own.unwritten,
            damaged: all.damaged + own.damaged,
            oldest: all.oldest.max(own.oldest),
        })
    }
}

/// The points that have a spool here.
fn left_behind(disk: &SharedDisk, folder: &Path) -> io::Result<Vec<String>> {
    let mut points = Vec::new();
    for name in disk.list(folder)? {
        if is_folder(disk.as_ref(), &folder.join(&name))? {
            points.extend(point_of_folder(&name));
        }
    }
    points.sort_unstable();
    Ok(points)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_share_the_room_and_wait_apart() {
        let folder = tempfile::tempdir().unwrap();
        let spools = Spools::open(folder.path(), ["a", "b/c"], 1 << 20).unwrap();
        spools.append(0, Epoch(1), b"of a").unwrap();
        spools.append(1, Epoch(2), b"of b/c").unwrap();
        assert_eq!(spools.counts().epochs, 2);
        let busy = Spools::open(folder.path(), ["d"], 1 << 20);
        assert!(matches!(busy, Err(SpoolError::Busy { .. })), "another agent has the folder");
        let (_, first) = spools.iter().next().unwrap();
        first.confirm(&first.batch(1, 1 << 20).unwrap()[0]);
        drop(spools);
        // The configuration has another point now; what the others left is still sent.
        let spools = Spools::open(folder.path(), ["d"], 1 << 20).unwrap();
        let waiting: Vec<_> =
            spools.iter().map(|(name, spool)| (name, spool.counts().epochs)).collect();
        assert_eq!(waiting, [("d", 0), ("a", 0), ("b/c", 1)]);
    }

    #[test]
    fn a_name_that_no_file_system_takes_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let name = "x".repeat(300);
        let refused = Spools::open(folder.path(), [name.as_str()], 1 << 20);
        assert!(matches!(refused, Err(SpoolError::Name { .. })));
    }
}

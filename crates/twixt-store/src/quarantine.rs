//! Files whose sync failed.
//!
//! After a failed sync the system may have dropped what it could not write. It still shows it to
//! readers, and the next sync succeeds: nothing that the file holds may be acknowledged any more. The
//! way out is to copy what can be read into a new file and to sync that. Until this works, the file
//! is remembered: by this process, and by an empty file beside it for the next one.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::disk::{Access, Disk, DiskFile, Replacement, SharedDisk, remove_if_there};

/// Bytes copied at once.
const PIECE_BYTES: usize = 1 << 20;

/// Files that must be rewritten before anything in them counts. Clones know the same files.
#[derive(Clone, Debug, Default)]
pub(crate) struct Quarantine {
    paths: Arc<Mutex<BTreeSet<PathBuf>>>,
}

impl Quarantine {
    /// Rewrites a file after its sync failed: the new one, locked. If that fails too, the file
    /// stays in quarantine.
    pub(crate) fn write_anew(
        &self,
        disk: &SharedDisk,
        path: &Path,
        cause: &io::Error,
    ) -> io::Result<Box<dyn DiskFile>> {
        let file = path.display();
        tracing::error!(%file, %cause, "sync failed: the file is copied, and its copy synced");
        self.lock().insert(path.to_owned());
        // Only a restart needs it; until then this process knows.
        let _ = disk.open(&mark_of(path), Access::Extend);
        self.release(disk, path)
    }

    /// Whether a file must be rewritten before it is used.
    pub(crate) fn holds(&self, disk: &dyn Disk, path: &Path) -> io::Result<bool> {
        if self.knows(path) {
            return Ok(true);
        }
        match disk.about(&mark_of(path)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            found => found.map(|_| true),
        }
    }

    /// The same, as far as this process knows.
    pub(crate) fn knows(&self, path: &Path) -> bool {
        self.lock().contains(path)
    }

    /// Copies a file, puts the copy in its place, durably, and lets it go: the new one, locked.
    pub(crate) fn release(&self, disk: &SharedDisk, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let copy = copied(disk, path)?;
        remove_if_there(disk.as_ref(), &mark_of(path))?;
        self.lock().remove(path);
        Ok(copy)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<PathBuf>> {
        self.paths.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn copied(disk: &SharedDisk, path: &Path) -> io::Result<Box<dyn DiskFile>> {
    let file = disk.open(path, Access::Read)?;
    let bytes = file.about()?.bytes;
    let mut copy = Replacement::beside(disk, path)?;
    let mut piece = vec![0; PIECE_BYTES.min(bytes as usize)];
    let mut place = 0;
    while place < bytes {
        let length = (bytes - place).min(PIECE_BYTES as u64) as usize;
        if !file.fill_at(&mut piece[..length], place)? {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        copy.write_all(&piece[..length])?;
        place += length as u64;
    }
    copy.lock()?;
    copy.take_place(path)
}

fn mark_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".suspect");
    PathBuf::from(name)
}

//! Replaces a file as a whole: a reader finds the old content or the new, whatever happens in
//! between.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Access, DiskFile, SharedDisk, parent_of, remove_if_there};

/// Replaces a file, durably: writes beside it, syncs, renames, and syncs the folder.
///
/// # Errors
/// When the disk is full, read-only or broken; the old content is then as it was, or, if only the
/// last step failed, the new content may not survive the death of the machine.
pub fn replace_file(disk: &SharedDisk, path: &Path, content: &[u8]) -> io::Result<()> {
    let mut replacement = Replacement::beside(disk, path)?;
    replacement.write_all(content)?;
    replacement.take_place(path).map(drop)
}

/// What is to take the place of a file. It lies beside it until then, and is deleted if it never
/// does: where the disk is full, its room is needed.
#[derive(Debug)]
#[must_use = "it is deleted unless it takes its place"]
pub struct Replacement {
    disk: SharedDisk,
    beside: PathBuf,
    file: Option<Box<dyn DiskFile>>, // until it takes its place
    bytes: u64,
    is_synced: bool,
}

impl Replacement {
    /// Begins with nothing, beside a path: the same name with `.new` behind it. What an earlier
    /// attempt left there is overwritten.
    ///
    /// # Errors
    /// When it cannot be created.
    pub fn beside(disk: &SharedDisk, path: &Path) -> io::Result<Self> {
        let mut name = path.as_os_str().to_owned();
        name.push(".new");
        let beside = PathBuf::from(name);
        let file = Some(disk.open(&beside, Access::Replace)?);
        Ok(Self { disk: Arc::clone(disk), beside, file, bytes: 0, is_synced: false })
    }

    /// Where it lies until it takes its place.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.beside
    }

    /// Makes what was written durable. What is left for [`take_place`](Self::take_place) is short.
    ///
    /// # Errors
    /// When the disk is full or broken.
    pub fn sync(&mut self) -> io::Result<()> {
        if !self.is_synced {
            self.file().sync()?;
            self.is_synced = true;
        }
        Ok(())
    }

    /// Takes the place of a file in the same folder, durably: the file, still open.
    ///
    /// # Errors
    /// As [`replace_file`].
    pub fn take_place(mut self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        self.sync()?;
        self.disk.rename(&self.beside, path)?;
        self.disk.sync_folder(parent_of(path))?;
        Ok(self.file.take().expect("it is open until it takes its place"))
    }

    /// Locks it, so that it is locked when it takes its place.
    pub(crate) fn lock(&self) -> io::Result<()> {
        match self.file().try_lock()? {
            true => Ok(()),
            false => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    fn file(&self) -> &dyn DiskFile {
        self.file.as_deref().expect("it is open until it takes its place")
    }
}

impl Write for Replacement {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file().write_at(bytes, self.bytes)?;
        self.bytes += written as u64;
        self.is_synced = false;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        // Not there any more if it took its place.
        let _ = remove_if_there(self.disk.as_ref(), &self.beside);
    }
}

//! The file system of the machine.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use super::{About, Access, Disk, DiskFile};

/// The file system of the machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn open(&self, path: &Path, access: Access) -> io::Result<Box<dyn DiskFile>> {
        let is_written = access != Access::Read;
        let file = OpenOptions::new()
            .read(true)
            .write(is_written)
            .create(is_written)
            .truncate(access == Access::Replace)
            .open(path)?;
        Ok(Box::new(file))
    }

    fn make_folder(&self, path: &Path) -> io::Result<()> {
        fs::create_dir(path)
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(folder)? {
            names.extend(entry?.file_name().into_string());
        }
        Ok(names)
    }

    fn about(&self, path: &Path) -> io::Result<About> {
        fs::metadata(path).map(|found| about(&found))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, file: &Path) -> io::Result<()> {
        fs::remove_file(file)
    }

    fn remove_folder(&self, folder: &Path) -> io::Result<()> {
        fs::remove_dir_all(folder)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        File::open(folder)?.sync_all()
    }

    fn user(&self) -> String {
        let word = |word: std::ffi::OsString| word.to_string_lossy().into_owned();
        let command: Vec<String> = std::env::args_os().map(word).collect();
        format!("{} {}", std::process::id(), command.join(" "))
    }
}

impl DiskFile for File {
    fn read_at(&self, buffer: &mut [u8], place: u64) -> io::Result<usize> {
        FileExt::read_at(self, buffer, place)
    }

    fn write_at(&self, bytes: &[u8], place: u64) -> io::Result<usize> {
        FileExt::write_at(self, bytes, place)
    }

    fn set_bytes(&self, bytes: u64) -> io::Result<()> {
        self.set_len(bytes)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }

    fn about(&self) -> io::Result<About> {
        self.metadata().map(|found| about(&found))
    }

    fn try_lock(&self) -> io::Result<bool> {
        match Self::try_lock(self) {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

fn about(found: &fs::Metadata) -> About {
    About {
        bytes: found.len(),
        is_folder: found.is_dir(),
        is_linked: found.nlink() > 0,
        changed: found.modified().ok(),
    }
}

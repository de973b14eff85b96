//! What durable files need of a file system, and no more. Logs and queues reach the disk through
//! [`Disk`] alone, so that a test can give them one that loses, tears and fills up on purpose.

mod real;
mod replace;
#[cfg(any(test, feature = "simulated"))]
pub(crate) mod simulated;

pub use real::RealDisk;
pub use replace::{Replacement, replace_file};

use std::fmt::Debug;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

/// A disk that several owners of files share.
pub type SharedDisk = Arc<dyn Disk>;

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// To be read; it must exist.
    Read,
    /// To be read and written; created if it does not exist.
    Extend,
    /// To be read and written; created, or emptied if it exists.
    Replace,
}

/// What a file system knows of a file or folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct About {
    /// Length of a file.
    pub bytes: u64,
    /// A folder, not a file.
    pub is_folder: bool,
    /// Whether a folder still names it: a file that was deleted while open is not.
    pub is_linked: bool,
    /// When it was last written, if known.
    pub changed: Option<SystemTime>,
}

/// A file system.
pub trait Disk: Debug + Send + Sync {
    /// Opens a file.
    ///
    /// # Errors
    /// As the system reports them; so for all others.
    fn open(&self, path: &Path, access: Access) -> io::Result<Box<dyn DiskFile>>;

    /// Creates a folder whose parent exists.
    fn make_folder(&self, path: &Path) -> io::Result<()>;

    /// Names in a folder, in no order. Names that are not UTF-8 are ignored.
    fn list(&self, folder: &Path) -> io::Result<Vec<String>>;

    /// What is known of a file or folder.
    fn about(&self, path: &Path) -> io::Result<About>;

    /// Gives a file or folder another name, at once, in place of what had that name.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Deletes a file.
    fn remove(&self, file: &Path) -> io::Result<()>;

    /// Deletes a folder with all that is in it.
    fn remove_folder(&self, folder: &Path) -> io::Result<()>;

    /// Makes the names in a folder survive the death of the machine.
    fn sync_folder(&self, folder: &Path) -> io::Result<()>;

    /// The process that uses it, for messages: its number and its command line.
    fn user(&self) -> String;
}

/// An open file. Its lock ends with it.
pub trait DiskFile: Debug + Send + Sync {
    /// Reads from a place; fewer bytes than asked for where the file ends, or at the system's will.
    ///
    /// # Errors
    /// As the system reports them; so for all others.
    fn read_at(&self, buffer: &mut [u8], place: u64) -> io::Result<usize>;

    /// Writes at a place; how many bytes.
    fn write_at(&self, bytes: &[u8], place: u64) -> io::Result<usize>;

    /// Cuts the file, or extends it with zeros.
    fn set_bytes(&self, bytes: u64) -> io::Result<()>;

    /// Makes content and length survive the death of the machine. After a failure the system may
    /// have dropped what it could not write, and the next call may succeed all the same.
    fn sync(&self) -> io::Result<()>;

    /// What is known of it.
    fn about(&self) -> io::Result<About>;

    /// Locks it against other processes; `false` if one of them has it.
    fn try_lock(&self) -> io::Result<bool>;

    /// Fills the buffer; whether the file had enough to fill it.
    fn fill_at(&self, buffer: &mut [u8], place: u64) -> io::Result<bool> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.read_at(&mut buffer[filled..], place + filled as u64) {
                Ok(0) => return Ok(false),
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Writes all bytes.
    fn write_all_at(&self, bytes: &[u8], place: u64) -> io::Result<()> {
        let mut written = 0;
        while written < bytes.len() {
            match self.write_at(&bytes[written..], place + written as u64) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => written += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// The real file system.
#[must_use]
pub fn real_disk() -> SharedDisk {
    Arc::new(RealDisk)
}

/// Whether a folder is there.
///
/// # Errors
/// When the system cannot tell.
pub fn is_folder(disk: &dyn Disk, path: &Path) -> io::Result<bool> {
    match disk.about(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        found => Ok(found?.is_folder),
    }
}

/// Creates a folder and those above it that are missing, durably.
///
/// # Errors
/// When one of them cannot be created or synced.
pub fn make_folders(disk: &dyn Disk, folder: &Path) -> io::Result<()> {
    if is_folder(disk, folder)? {
        return Ok(());
    }
    let parent = parent_of(folder);
    if parent != folder {
        make_folders(disk, parent)?;
    }
    match disk.make_folder(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    // One that is not durable must not be found the next time.
    disk.sync_folder(parent).inspect_err(|_| drop(disk.remove_folder(folder)))
}

/// All of a file, unless it has more than `bytes_max` bytes.
///
/// # Errors
/// When it is longer, missing or unreadable.
pub fn read_file(disk: &dyn Disk, path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let file = disk.open(path, Access::Read)?;
    let bytes = file.about()?.bytes;
    if bytes > bytes_max {
        let text = format!("{bytes} bytes, at most {bytes_max} are expected");
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    let mut content = vec![0; bytes as usize];
    match file.fill_at(&mut content, 0)? {
        true => Ok(content),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Deletes a file; one that is not there is deleted already.
///
/// # Errors
/// When it cannot be deleted.
pub fn remove_if_there(disk: &dyn Disk, path: &Path) -> io::Result<()> {
    match disk.remove(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// The folder that names a path.
pub(crate) fn parent_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

//! A folder that one process uses at a time.

use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::disk::{Access, DiskFile, SharedDisk, make_folders};

/// The file in the folder that is locked. It names the process that has the lock.
const LOCK_FILE: &str = "lock";
/// How long the lock of another process is waited for: the kernel takes a moment to end a process
/// that was killed.
const LOCK_WAIT: Duration = Duration::from_secs(2);
/// How often the lock is tried meanwhile.
const LOCK_STEP: Duration = Duration::from_millis(20);
/// Of a process number and command line, no more is written or shown.
const USER_CHARS_MAX: usize = 200;

/// Keeps other processes out of a folder as long as it lives.
#[derive(Debug)]
pub struct FolderLock {
    _file: Box<dyn DiskFile>,
}

/// Why a folder cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// Another process uses the folder. Stop it, or use another folder.
    #[error("{} is used by {holder}", folder.display())]
    Busy {
        /// The folder.
        folder: PathBuf,
        /// The other process: its number and command line, as far as they are known.
        holder: String,
    },
    /// The folder cannot be made, or not written. Check its path, owner and permissions.
    #[error("cannot lock {}", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

impl FolderLock {
    /// Makes the folder if it is not there, and keeps others out. Waits a little if another process
    /// has it.
    ///
    /// # Errors
    /// When it cannot be written, or another process keeps it.
    pub fn acquire(disk: &SharedDisk, folder: &Path) -> Result<Self, LockError> {
        let problem = |source| LockError::Folder { folder: folder.to_owned(), source };
        make_folders(disk.as_ref(), folder).map_err(problem)?;
        let file = disk.open(&folder.join(LOCK_FILE), Access::Extend).map_err(problem)?;
        let until = Instant::now() + LOCK_WAIT;
        while !file.try_lock().map_err(problem)? {
            if Instant::now() >= until {
                let (folder, holder) = (folder.to_owned(), holder_of(file.as_ref()));
                return Err(LockError::Busy { folder, holder });
            }
            thread::sleep(LOCK_STEP);
        }
        // Only for messages: a full disk is no reason not to start.
        let _ = sign(file.as_ref(), &disk.user());
        Ok(Self { _file: file })
    }
}

/// Writes down who has the lock.
fn sign(file: &dyn DiskFile, user: &str) -> io::Result<()> {
    let user: String = user.chars().take(USER_CHARS_MAX).collect();
    file.set_bytes(0)?;
    file.write_all_at(format!("{user}\n").as_bytes(), 0)
}

/// Who has the lock.
fn holder_of(file: &dyn DiskFile) -> String {
    let mut line = [0; 4 * USER_CHARS_MAX];
    let bytes = file.read_at(&mut line, 0).unwrap_or(0);
    let line = String::from_utf8_lossy(&line[..bytes]);
    match line.trim_end().split_once(' ') {
        Some((process, command)) => format!("another process: pid {process} ({command:?})"),
        None => "another process".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::disk::real_disk;

    #[test]
    fn the_process_that_has_the_folder_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new");
        let _lock = FolderLock::acquire(&real_disk(), &path).unwrap();
        let problem = FolderLock::acquire(&real_disk(), &path).unwrap_err().to_string();
        let named = format!("new is used by another process: pid {} (\"", std::process::id());
        assert!(problem.contains(&named), "{problem}");
    }

    /// A killed process had its lock for a moment longer, and the next one did not start.
    #[test]
    fn a_lock_that_is_given_back_soon_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let lock = FolderLock::acquire(&real_disk(), folder.path()).unwrap();
        let (waits, waiting) = mpsc::channel();
        thread::scope(|scope| {
            let second = scope.spawn(|| {
                waits.send(()).unwrap();
                FolderLock::acquire(&real_disk(), folder.path()).map(drop)
            });
            waiting.recv().unwrap();
            drop(lock);
            second.join().unwrap().unwrap();
        });
    }
}

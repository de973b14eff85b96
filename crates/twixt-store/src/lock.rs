//! A folder that one process uses at a time.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// The file in the folder that is locked. It names the process that has the lock.
const LOCK_FILE: &str = "lock";
/// How long the lock of another process is waited for: the kernel takes a moment to end a process
/// that was killed.
const LOCK_WAIT: Duration = Duration::from_secs(2);
/// How often the lock is tried meanwhile.
const LOCK_STEP: Duration = Duration::from_millis(20);
/// Of a command line, no more is written or shown.
const COMMAND_CHARS_MAX: usize = 200;

/// Keeps other processes out of a folder as long as it lives.
#[derive(Debug)]
pub struct FolderLock {
    _file: File,
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
    pub fn acquire(folder: &Path) -> Result<Self, LockError> {
        let problem = |source| LockError::Folder { folder: folder.to_owned(), source };
        fs::create_dir_all(folder).map_err(problem)?;
        let mut options = OpenOptions::new();
        let opened = options.create(true).truncate(false).read(true).write(true);
        let mut file = opened.open(folder.join(LOCK_FILE)).map_err(problem)?;
        let until = Instant::now() + LOCK_WAIT;
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if Instant::now() < until => thread::sleep(LOCK_STEP),
                Err(TryLockError::WouldBlock) => {
                    let (folder, holder) = (folder.to_owned(), holder_of(&mut file));
                    return Err(LockError::Busy { folder, holder });
                }
                Err(TryLockError::Error(source)) => return Err(problem(source)),
            }
        }
        // Only for messages: a full disk is no reason not to start.
        let _ = sign(&mut file);
        Ok(Self { _file: file })
    }
}

/// Writes down who has the lock.
fn sign(file: &mut File) -> io::Result<()> {
    let arguments: Vec<String> =
        std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    let command: String = arguments.join(" ").chars().take(COMMAND_CHARS_MAX).collect();
    file.set_len(0)?;
    writeln!(file, "{} {command}", std::process::id())
}

/// Who has the lock.
fn holder_of(file: &mut File) -> String {
    let mut line = String::new();
    let bytes_max = 4 * COMMAND_CHARS_MAX as u64;
    let _ = file.take(bytes_max).read_to_string(&mut line);
    match line.trim_end().split_once(' ') {
        Some((process, command)) => format!("another process: pid {process} ({command:?})"),
        None => "another process".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn the_process_that_has_the_folder_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new");
        let _lock = FolderLock::acquire(&path).unwrap();
        let problem = FolderLock::acquire(&path).unwrap_err().to_string();
        let named = format!("new is used by another process: pid {} (\"", std::process::id());
        assert!(problem.contains(&named), "{problem}");
    }

    /// A killed process had its lock for a moment longer, and the next one did not start.
    #[test]
    fn a_lock_that_is_given_back_soon_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let lock = FolderLock::acquire(folder.path()).unwrap();
        let (waits, waiting) = mpsc::channel();
        thread::scope(|scope| {
            let second = scope.spawn(|| {
                waits.send(()).unwrap();
                FolderLock::acquire(folder.path()).map(drop)
            });
            waiting.recv().unwrap();
            drop(lock);
            second.join().unwrap().unwrap();
        });
    }
}

//! A disk that can be full or read-only, and folders to be spoilt.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::network::run;

/// Copies a folder and what is in it.
pub fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder can be made");
    for entry in fs::read_dir(from).expect("it is a folder") {
        let path = entry.expect("folders can be listed").path();
        let place = to.join(path.file_name().expect("entries have names"));
        match path.is_dir() {
            true => copy_folder(&path, &place),
            false => drop(fs::copy(&path, &place).expect("it can be copied")),
        }
    }
}

/// What takes the room of a disk.
const BALLAST: &str = "ballast";

/// A file system in memory, unmounted with the value. The test needs `require!(mounts)`.
#[derive(Debug)]
pub struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Mounts it, with options such as `size=512k`, at a folder, which is made if need be.
    #[track_caller]
    pub fn mount(path: &Path, options: &str) -> Self {
        fs::create_dir_all(path).expect("a folder can be made");
        let disk = Self(path.to_owned());
        disk.remount(options);
        disk
    }

    /// Mounts it again, with other options, such as `remount,ro`.
    #[track_caller]
    pub fn remount(&self, options: &str) {
        run(&format!("mount -t tmpfs -o {options} twixt-test {}", self.0.display()));
    }

    /// Where it is mounted.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Takes all room but so many bytes.
    pub fn fill_but(&self, bytes: u64) {
        let mut ballast = File::create(self.0.join(BALLAST)).expect("a name takes no room");
        while ballast.write_all(&[7; 4_096]).is_ok() {}
        let length = ballast.metadata().expect("it is open").len();
        ballast.set_len(length.saturating_sub(bytes)).expect("less is always possible");
    }

    /// Gives the room back that [`SmallDisk::fill_but`] took.
    pub fn empty(&self) {
        fs::remove_file(self.0.join(BALLAST)).expect("it was filled");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: processes that still have a file open there end with the test.
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).output();
    }
}

//! The number of the newest run whose epochs went into a spool. The next run has a larger one,
//! whatever the clock shows by then: a collector would take epochs of two runs with one number for
//! the same, and a run with a smaller number for one that is over.

use std::io;
use std::path::{Path, PathBuf};

use twixt_store::{SharedDisk, folder_of_point, read_file, replace_file};

const NAME: &str = "newest-run";
/// A number has no more.
const BYTES_MAX: u64 = 32;

/// What is in the file.
#[derive(Debug)]
pub(super) struct NewestRun {
    disk: SharedDisk,
    path: PathBuf,
    number: u64,
}

impl NewestRun {
    pub(super) fn open(disk: &SharedDisk, folder: &Path) -> io::Result<Self> {
        let path = folder.join(NAME);
        let number = read(disk, &path)?;
        Ok(Self { disk: disk.clone(), path, number })
    }

    /// Makes the number of a run durable, if it is larger.
    pub(super) fn note(&mut self, run: u64) -> io::Result<()> {
        if run > self.number {
            replace_file(&self.disk, &self.path, format!("{run}\n").as_bytes())?;
            self.number = run;
        }
        Ok(())
    }
}

/// The number of the newest run of a point in the spools of this folder; 0 if there was none.
pub(crate) fn newest_run(disk: &SharedDisk, spools: &Path, point: &str) -> io::Result<u64> {
    folder_of_point(point).map_or(Ok(0), |own| read(disk, &spools.join(own).join(NAME)))
}

fn read(disk: &SharedDisk, path: &Path) -> io::Result<u64> {
    let text = match read_file(disk.as_ref(), path, BYTES_MAX) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        text => text?,
    };
    let number = std::str::from_utf8(&text).ok().and_then(|text| text.trim_end().parse().ok());
    if number.is_none() {
        tracing::warn!(path = %path.display(), "damaged: the number of this run is the time");
    }
    // Larger ones are damaged: no run starts so late.
    Ok(number.filter(|&number: &u64| i64::try_from(number).is_ok()).unwrap_or(0))
}

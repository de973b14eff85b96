//! The two files of a point's day: what they are called, and which there are.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::day::Day;
use crate::name;

const DATA_ENDING: &str = "twxl";
const INDEX_ENDING: &str = "twxi";

/// The two files of one day of one point. Either may be missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DayFiles {
    pub(crate) point: String,
    pub(crate) day: Day,
    pub(crate) data: PathBuf,
    pub(crate) index: PathBuf,
}

impl DayFiles {
    /// In the folder of the point.
    pub(crate) fn new(folder: &Path, point: &str, day: Day) -> Self {
        Self {
            point: point.to_owned(),
            day,
            data: folder.join(format!("{day}.{DATA_ENDING}")),
            index: folder.join(format!("{day}.{INDEX_ENDING}")),
        }
    }

    /// Bytes of both.
    pub(crate) fn bytes(&self) -> u64 {
        let size = |path: &Path| fs::metadata(path).map_or(0, |found| found.len());
        size(&self.data).saturating_add(size(&self.index))
    }
}

/// The points of a store, by name, with their folders. Other folders are none of ours.
pub(crate) fn points(store: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    let mut points = Vec::new();
    for entry in fs::read_dir(store)? {
        let entry = entry?;
        let point = entry.file_name().to_str().and_then(name::point_of);
        if let Some(point) = point.filter(|_| entry.path().is_dir()) {
            points.push((point, entry.path()));
        }
    }
    points.sort();
    Ok(points)
}

/// The days of a point, oldest first. A day whose data file is gone counts as long as its index
/// tells what was there.
pub(crate) fn days(folder: &Path, point: &str) -> io::Result<Vec<DayFiles>> {
    let mut days = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let ending = path.extension().and_then(|ending| ending.to_str());
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        if let (Some(DATA_ENDING | INDEX_ENDING), Some(Ok(day))) = (ending, stem.map(str::parse)) {
            days.push(day);
        }
    }
    days.sort();
    days.dedup();
    Ok(days.into_iter().map(|day| DayFiles::new(folder, point, day)).collect())
}

//! The files of a point's day: what they are called, and which there are.

use std::io;
use std::path::{Path, PathBuf};

use crate::day::Day;
use crate::disk::{Disk, is_folder};
use crate::name;

const DATA_ENDING: &str = "twxl";
const INDEX_ENDING: &str = "twxi";

/// Two files of one day of one point. Either may be missing. A day has further ones, its parts, when
/// those before are full.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DayFiles {
    pub(crate) point: String,
    pub(crate) day: Day,
    pub(crate) part: u32,
    pub(crate) data: PathBuf,
    pub(crate) index: PathBuf,
}

impl DayFiles {
    /// In the folder of the point.
    pub(crate) fn new(folder: &Path, point: &str, day: Day, part: u32) -> Self {
        let stem = stem(day, part);
        Self {
            point: point.to_owned(),
            day,
            part,
            data: folder.join(format!("{stem}.{DATA_ENDING}")),
            index: folder.join(format!("{stem}.{INDEX_ENDING}")),
        }
    }

    /// The files that come after these when they are full.
    pub(crate) fn next_part(&self) -> Self {
        let folder = self.data.parent().expect("they are in the folder of a point");
        Self::new(folder, &self.point, self.day, self.part + 1)
    }

    /// The folder of the log, in which the point has its own.
    pub(crate) fn log_folder(&self) -> Option<&Path> {
        self.data.parent()?.parent()
    }

    /// Bytes of both.
    pub(crate) fn bytes(&self, disk: &dyn Disk) -> u64 {
        let size = |path: &Path| disk.about(path).map_or(0, |found| found.bytes);
        size(&self.data).saturating_add(size(&self.index))
    }
}

/// Where the data of a part of a day are, in the folder of a log.
pub(crate) fn data_file(folder: &Path, point: &str, day: Day, part: u32) -> PathBuf {
    let folder = folder.join(name::folder_of(point).unwrap_or_default());
    DayFiles::new(&folder, point, day, part).data
}

/// The points of a store, by name, with their folders. Other directories are ignored.
pub(crate) fn points(disk: &dyn Disk, store: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    let mut points = Vec::new();
    for name in disk.list(store)? {
        let folder = store.join(&name);
        if let Some(point) = name::point_of(&name)
            && is_folder(disk, &folder)?
        {
            points.push((point, folder));
        }
    }
    points.sort();
    Ok(points)
}

/// The days of a point, oldest first, with their parts in order. A day whose data file is gone counts
/// as long as its index tells what was there.
pub(crate) fn days(disk: &dyn Disk, folder: &Path, point: &str) -> io::Result<Vec<DayFiles>> {
    let mut days: Vec<(Day, u32)> = Vec::new();
    for name in disk.list(folder)? {
        if let Some((stem, DATA_ENDING | INDEX_ENDING)) = name.rsplit_once('.') {
            days.extend(parse(stem));
        }
    }
    days.sort_unstable();
    days.dedup();
    Ok(days.into_iter().map(|(day, part)| DayFiles::new(folder, point, day, part)).collect())
}

/// What the files of a part of a day are called: `2024-01-31`, `2024-01-31.1`, …
pub(crate) fn stem(day: Day, part: u32) -> String {
    match part {
        0 => day.to_string(),
        part => format!("{day}.{part}"),
    }
}

fn parse(text: &str) -> Option<(Day, u32)> {
    let (day, part) = text.split_once('.').unwrap_or((text, "0"));
    let (day, part) = (day.parse().ok()?, part.parse().ok()?);
    (stem(day, part) == text).then_some((day, part))
}

//! The file that says how far estimates came. It is small, and replaced as a whole: a reader finds
//! the old one or the new one, whatever happens in between.

use std::io::{self, Write};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tracing::warn;
use twixt_engine::{Series, SeriesProgress};
use twixt_model::{Epoch, PointId, Segment, Timestamp};
use twixt_store::{Replacement, SharedDisk, read_file};
use twixt_synopsis::by_tag;

/// Format version that this release writes; it reads all up to this one.
const VERSION: u32 = 1;
/// A longer file was not written by twixt.
const BYTES_MAX: u64 = 64 << 20;

/// The file.
#[derive(Clone, Debug)]
pub(crate) struct ProgressFile {
    disk: SharedDisk,
    path: PathBuf,
}

/// What is to take the place of the file. It lies beside it, on the disk.
#[derive(Debug)]
#[must_use = "it is forgotten unless it takes its place"]
pub(super) struct Prepared {
    beside: Replacement,
    path: PathBuf,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    version: u32,
    series: Vec<SeriesDocument>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SeriesDocument {
    domain: String,
    upstream: String,
    downstream: String,
    class: String,
    tag: u16,
    epoch_ns: Option<i64>,
    through: i64,
    last: Option<i64>,
    #[serde(rename = "told")]
    reported: Vec<(i64, u64)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    late: Vec<(i64, i64)>,
    summarised_ns: i64,
    realigned_epochs: Option<i64>,
    short_delays: u64,
    replay_from: i64,
}

impl ProgressFile {
    pub(crate) fn new(disk: SharedDisk, path: impl Into<PathBuf>) -> Self {
        Self { disk, path: path.into() }
    }

    /// The saved progress. If that cannot be read, it is logged, and nothing is known.
    pub(super) fn read(&self) -> Vec<SeriesProgress> {
        match self.try_read() {
            Ok(progress) => progress,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(problem) => {
                let path = self.path.display();
                warn!(%path, %problem, "cannot read the progress of estimating; some estimates may be repeated");
                Vec::new()
            }
        }
    }

    /// Does all of the work of replacing what is written, but for the last step.
    pub(super) fn prepare(&self, progress: &[SeriesProgress]) -> io::Result<Prepared> {
        let series = progress.iter().map(SeriesDocument::from).collect();
        let bytes = serde_json::to_vec(&Document { version: VERSION, series })?;
        let mut beside = Replacement::beside(&self.disk, &self.path)?;
        beside.write_all(&bytes)?;
        beside.sync()?;
        Ok(Prepared { beside, path: self.path.clone() })
    }

    fn try_read(&self) -> io::Result<Vec<SeriesProgress>> {
        let bytes = read_file(self.disk.as_ref(), &self.path, BYTES_MAX)?;
        let document: Document = serde_json::from_slice(&bytes)?;
        if document.version > VERSION {
            return Err(io::Error::other(format!("format version {}", document.version)));
        }
        Ok(document.series.into_iter().filter_map(SeriesDocument::progress).collect())
    }
}

impl Prepared {
    /// Replaces the file: visible to readers at once, then made durable.
    pub(super) fn take_place(self) -> io::Result<()> {
        self.beside.take_place(&self.path).map(drop)
    }
}

impl From<&SeriesProgress> for SeriesDocument {
    fn from(progress: &SeriesProgress) -> Self {
        let series = &progress.series;
        Self {
            domain: series.domain.clone(),
            upstream: series.segment.upstream.0.clone(),
            downstream: series.segment.downstream.0.clone(),
            class: series.class.clone(),
            tag: series.tag,
            epoch_ns: series.epoch_ns,
            through: progress.through.0,
            last: progress.last.map(|epoch| epoch.0),
            reported: progress.reported.iter().map(|(epoch, run)| (epoch.0, *run)).collect(),
            late: progress.late.iter().map(|(first, last)| (first.0, last.0)).collect(),
            summarised_ns: progress.summarised.as_nanos(),
            realigned_epochs: progress.realigned_epochs,
            short_delays: progress.short_delays,
            replay_from: progress.replay_from.0,
        }
    }
}

impl SeriesDocument {
    /// `None` if this release does not have the algorithm.
    fn progress(self) -> Option<SeriesProgress> {
        let algorithm = by_tag(self.tag)?;
        let segment =
            Segment { upstream: PointId(self.upstream), downstream: PointId(self.downstream) };
        Some(SeriesProgress {
            series: Series {
                domain: self.domain,
                segment,
                class: self.class,
                algorithm: algorithm.name,
                tag: self.tag,
                epoch_ns: self.epoch_ns,
            },
            through: Epoch(self.through),
            last: self.last.map(Epoch),
            reported: self.reported.into_iter().map(|(epoch, run)| (Epoch(epoch), run)).collect(),
            late: self.late.into_iter().map(|(first, last)| (Epoch(first), Epoch(last))).collect(),
            summarised: Timestamp::from_nanos(self.summarised_ns),
            realigned_epochs: self.realigned_epochs,
            short_delays: self.short_delays,
            replay_from: Epoch(self.replay_from),
        })
    }
}

#[cfg(test)]
mod tests {
    use twixt_store::real_disk;
    use twixt_synopsis::ALGORITHMS;

    use super::*;

    fn progress() -> SeriesProgress {
        let point = |name: &str| PointId(name.to_owned());
        SeriesProgress {
            series: Series {
                domain: "lab".to_owned(),
                segment: Segment { upstream: point("a"), downstream: point("b") },
                class: String::new(),
                algorithm: ALGORITHMS[0].name,
                tag: ALGORITHMS[0].tag,
                epoch_ns: Some(1_000),
            },
            through: Epoch(17),
            last: Some(Epoch(17)),
            reported: vec![(Epoch(19), u64::MAX)],
            late: vec![(Epoch(3), Epoch(5))],
            summarised: Timestamp::from_nanos(16_000),
            realigned_epochs: Some(-2),
            short_delays: 3,
            replay_from: Epoch(16),
        }
    }

    #[test]
    fn what_is_written_reads_back() {
        let folder = tempfile::tempdir().unwrap();
        let file = ProgressFile::new(real_disk(), folder.path().join("concluded.json"));
        assert_eq!(file.read(), vec![]);
        let prepared = file.prepare(&[progress()]).unwrap();
        assert_eq!(file.read(), vec![], "not before it takes its place");
        prepared.take_place().unwrap();
        assert_eq!(file.read(), vec![progress()]);
    }

    #[test]
    fn what_cannot_be_read_is_not_known() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("concluded.json");
        let file = ProgressFile::new(real_disk(), &path);
        for text in ["", "{", "[]", r#"{"version":2,"series":[]}"#, "\0\0\0\0"] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(file.read(), vec![], "{text}");
        }
    }

    #[test]
    fn series_of_unknown_algorithms_are_left_out() {
        let document = SeriesDocument { tag: u16::MAX, ..SeriesDocument::from(&progress()) };
        assert_eq!(document.progress(), None);
    }
}

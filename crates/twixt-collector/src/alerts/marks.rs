//! What operators marked: alerts that somebody attends to, and alerts that send no messages for a
//! while. A file, replaced as a whole, keeps them over restarts.
//!
//! A silence covers windows by the time of their packets; nothing here asks a clock.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tracing::warn;
use twixt_store::{SharedDisk, read_file, replace_file};
use utoipa::ToSchema;

use super::AlertMessage;

/// Format version that this release writes; it reads all up to this one.
const VERSION: u32 = 1;
/// A longer file was not written by twixt.
const BYTES_MAX: u64 = 64 << 20;
/// Alerts that are marked at once; further marks are refused.
const MARKS_MAX: usize = 10_000;

/// An alert on one series of estimates, as messages name it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AlertTarget {
    /// Name of the alert.
    pub alert: String,
    /// Domain within which point names are unique.
    pub domain: String,
    /// The point that packets pass first.
    pub upstream: String,
    /// The point that packets pass second.
    pub downstream: String,
    /// Class of traffic; empty without classes.
    pub class: String,
    /// The algorithm of the estimates.
    pub algorithm: String,
}

/// Who marked an alert, and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Acknowledgement {
    /// The reader.
    pub by: String,
    /// When, by the collector's clock, nanoseconds since 1970.
    pub at_ns: i64,
}

/// Who silenced an alert, and for how long.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Silence {
    /// The reader.
    pub by: String,
    /// Windows that end before this send no messages; nanoseconds since 1970.
    pub until_ns: i64,
}

/// What is known of one alert.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Mark {
    acknowledgement: Option<Acknowledgement>,
    silence: Option<Silence>,
}

/// All marks, and the file that keeps them.
#[derive(Debug)]
pub(crate) struct Marks {
    marks: BTreeMap<AlertTarget, Mark>, // at most MARKS_MAX
    disk: SharedDisk,
    path: PathBuf,
}

/// Why an alert is not marked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MarkError {
    /// There are enough. Wait until silences are over.
    #[error("{MARKS_MAX} alerts are marked already; wait until silences are over")]
    TooMany,
    /// The file cannot be written. The mark does not count.
    #[error("cannot save what is marked: {0}")]
    Unsaved(#[from] io::Error),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    version: u32,
    marks: Vec<(AlertTarget, Mark)>,
}

impl Marks {
    /// As saved. If that cannot be read, it is logged, and nothing is marked.
    pub(crate) fn open(disk: SharedDisk, path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let marks = read(&disk, &path).unwrap_or_else(|problem| {
            let path = path.display();
            warn!(%path, %problem, "cannot read which alerts are acknowledged or silenced; none is now");
            BTreeMap::new()
        });
        Self { marks, disk, path }
    }

    /// Notes that somebody attends to an alert, or that nobody does.
    pub(super) fn acknowledge(
        &mut self,
        target: &AlertTarget,
        acknowledgement: Option<Acknowledgement>,
    ) -> Result<(), MarkError> {
        self.change(target, |mark| mark.acknowledgement = acknowledgement)
    }

    /// Lets an alert send no messages for a while, or ends that.
    pub(super) fn silence(
        &mut self,
        target: &AlertTarget,
        silence: Option<Silence>,
    ) -> Result<(), MarkError> {
        self.change(target, |mark| mark.silence = silence)
    }

    /// An alert that is over needs no attention any more, and neither does a silence that is over.
    pub(super) fn note(&mut self, message: &AlertMessage) {
        let target = AlertTarget::of(message);
        let Some(mark) = self.marks.get(&target) else { return };
        let is_over = message.state == "clear" && mark.acknowledgement.is_some();
        let is_due = mark.silence.as_ref().is_some_and(|of| !of.covers(message));
        let forget = |mark: &mut Mark| {
            mark.acknowledgement.take_if(|_| is_over);
            mark.silence.take_if(|_| is_due);
        };
        if (is_over || is_due)
            && let Err(problem) = self.change(&target, forget)
        {
            warn!(%problem, "an alert stays marked");
        }
    }

    /// Writes into a message what is known of its alert.
    pub(super) fn complete(&self, message: &mut AlertMessage) {
        let mark = self.marks.get(&AlertTarget::of(message));
        message.acknowledged = mark.and_then(|mark| mark.acknowledgement.clone());
        let silence = mark.and_then(|mark| mark.silence.clone());
        message.silenced = silence.filter(|silence| silence.covers(message));
    }

    /// Changes a mark and saves it; nothing is changed if that fails.
    fn change(
        &mut self,
        target: &AlertTarget,
        change: impl FnOnce(&mut Mark),
    ) -> Result<(), MarkError> {
        let mut mark = self.marks.get(target).cloned().unwrap_or_default();
        change(&mut mark);
        let mut marks = self.marks.clone();
        match mark == Mark::default() {
            true => drop(marks.remove(target)),
            false => drop(marks.insert(target.clone(), mark)),
        }
        if marks.len() > MARKS_MAX {
            return Err(MarkError::TooMany);
        }
        let list = marks.iter().map(|(target, mark)| (target.clone(), mark.clone())).collect();
        let bytes = serde_json::to_vec(&Document { version: VERSION, marks: list })
            .map_err(io::Error::from)?;
        replace_file(&self.disk, &self.path, &bytes)?;
        self.marks = marks;
        Ok(())
    }
}

impl AlertTarget {
    /// The one that a message is about.
    pub(super) fn of(message: &AlertMessage) -> Self {
        Self {
            alert: message.alert.clone(),
            domain: message.domain.clone(),
            upstream: message.upstream.clone(),
            downstream: message.downstream.clone(),
            class: message.class.clone(),
            algorithm: message.algorithm.clone(),
        }
    }
}

impl Silence {
    fn covers(&self, message: &AlertMessage) -> bool {
        message.end_ns < self.until_ns
    }
}

fn read(disk: &SharedDisk, path: &std::path::Path) -> io::Result<BTreeMap<AlertTarget, Mark>> {
    let bytes = match read_file(disk.as_ref(), path, BYTES_MAX) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        bytes => bytes?,
    };
    let document: Document = serde_json::from_slice(&bytes)?;
    if document.version > VERSION {
        let version = document.version;
        return Err(io::Error::other(format!("version {version} is from a newer release")));
    }
    Ok(document.marks.into_iter().take(MARKS_MAX).collect())
}

#[cfg(test)]
mod tests;

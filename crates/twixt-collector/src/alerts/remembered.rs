//! How alerts stood, over restarts: a small file, replaced as a whole when one of them changes, so
//! that nothing is reported twice and nothing stays raised forever.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tracing::warn;
use twixt_engine::Series;
use twixt_store::{SharedDisk, read_file, replace_file};

use super::machine::{Alarm, AlertState};

/// Format version that this release writes; it reads all up to this one.
const VERSION: u32 = 1;
/// A longer file was not written by twixt.
const BYTES_MAX: u64 = 64 << 20;

/// The file.
#[derive(Clone, Debug)]
pub(crate) struct AlertsFile {
    disk: SharedDisk,
    path: PathBuf,
}

/// An alert on a series, by names that outlive a restart.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WatchName {
    alert: String,
    domain: String,
    upstream: String,
    downstream: String,
    class: String,
    tag: u16,
    epoch_ns: Option<i64>,
}

/// How it stood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stood {
    pub(super) alarm: Alarm,
    /// The end of the window that was checked when it last changed.
    pub(super) through_ns: i64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    version: u32,
    alerts: Vec<WatchDocument>,
}

#[derive(Serialize, Deserialize)]
struct WatchDocument {
    watch: WatchName,
    state: String,
    is_known: bool,
    is_raised: bool,
    through_ns: i64,
}

impl WatchName {
    pub(super) fn new(alert: &str, series: &Series) -> Self {
        Self {
            alert: alert.to_owned(),
            domain: series.domain.clone(),
            upstream: series.segment.upstream.0.clone(),
            downstream: series.segment.downstream.0.clone(),
            class: series.class.clone(),
            tag: series.tag,
            epoch_ns: series.epoch_ns,
        }
    }

    /// The name of the alert.
    pub(super) fn alert(&self) -> &str {
        &self.alert
    }
}

impl AlertsFile {
    pub(crate) fn new(disk: SharedDisk, path: impl Into<PathBuf>) -> Self {
        Self { disk, path: path.into() }
    }

    /// The saved state of alerts. If that cannot be read, it is logged, and nothing is known.
    pub(super) fn read(&self) -> BTreeMap<WatchName, Stood> {
        match self.try_read() {
            Ok(stood) => stood,
            Err(error) if error.kind() == io::ErrorKind::NotFound => BTreeMap::new(),
            Err(problem) => {
                let path = self.path.display();
                warn!(%path, %problem, "cannot read the saved state of alerts; some may be reported again");
                BTreeMap::new()
            }
        }
    }

    /// Replaces what is written.
    pub(super) fn write<'a>(
        &self,
        stood: impl Iterator<Item = (&'a WatchName, &'a Stood)>,
    ) -> io::Result<()> {
        let alerts = stood.map(|(name, stood)| WatchDocument::new(name, stood)).collect();
        let bytes = serde_json::to_vec(&Document { version: VERSION, alerts })?;
        replace_file(&self.disk, &self.path, &bytes)
    }

    fn try_read(&self) -> io::Result<BTreeMap<WatchName, Stood>> {
        let bytes = read_file(self.disk.as_ref(), &self.path, BYTES_MAX)?;
        let document: Document = serde_json::from_slice(&bytes)?;
        if document.version > VERSION {
            let version = document.version;
            return Err(io::Error::other(format!("version {version} is from a newer release")));
        }
        let alerts = document.alerts.into_iter();
        Ok(alerts.filter_map(|watch| Some((watch.watch.clone(), watch.stood()?))).collect())
    }
}

impl WatchDocument {
    fn new(name: &WatchName, stood: &Stood) -> Self {
        let Alarm { state, is_known, is_raised } = stood.alarm;
        Self {
            watch: name.clone(),
            state: state.name().to_owned(),
            is_known,
            is_raised,
            through_ns: stood.through_ns,
        }
    }

    /// `None` for a state that we do not know.
    fn stood(&self) -> Option<Stood> {
        let states = [AlertState::Unknown, AlertState::Clear, AlertState::Raised];
        let state = states.into_iter().find(|state| state.name() == self.state)?;
        let alarm = Alarm { state, is_known: self.is_known, is_raised: self.is_raised };
        Some(Stood { alarm, through_ns: self.through_ns })
    }
}

#[cfg(test)]
mod tests {
    use twixt_store::real_disk;

    use super::*;

    fn name(alert: &str) -> WatchName {
        WatchName {
            alert: alert.to_owned(),
            domain: "lab".to_owned(),
            upstream: "a".to_owned(),
            downstream: "b".to_owned(),
            class: String::new(),
            tag: 2,
            epoch_ns: Some(1_000),
        }
    }

    #[test]
    fn what_is_written_is_read_and_what_is_damaged_is_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("alerts.json");
        let file = AlertsFile::new(real_disk(), &path);
        assert!(file.read().is_empty(), "there is none yet");
        let alarm = Alarm { state: AlertState::Unknown, is_known: true, is_raised: true };
        let stood = BTreeMap::from([(name("slow"), Stood { alarm, through_ns: 5 })]);
        file.write(stood.iter()).unwrap();
        assert_eq!(file.read(), stood);
        std::fs::write(&path, b"{").unwrap();
        assert!(file.read().is_empty());
        std::fs::write(&path, br#"{"version": 2, "alerts": []}"#).unwrap();
        assert!(file.read().is_empty());
    }
}

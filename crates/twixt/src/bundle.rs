//! Incident bundles as input of commands: opened into a temporary directory, which goes away with the
//! command, however it ends.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use tempfile::TempDir;
use twixt_collector::bundle::{ManifestDocument, check_bundle, open_bundle};
use twixt_model::Timestamp;

use crate::exit::Exit;
use crate::signals::{SecondSignal, Signals};

/// A bundle in a temporary directory, as a collector would have it.
pub(crate) struct OpenedBundle {
    pub(crate) manifest: ManifestDocument,
    /// Removed when this is dropped.
    folder: TempDir,
}

impl OpenedBundle {
    pub(crate) fn open(path: &Path) -> anyhow::Result<Self> {
        Self::open_into(temporary()?, path)
    }

    fn open_into(folder: TempDir, path: &Path) -> anyhow::Result<Self> {
        let manifest = open_bundle(opened(path)?, folder.path());
        Ok(Self { manifest: manifest.with_context(|| path.display().to_string())?, folder })
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }
}

fn temporary() -> anyhow::Result<TempDir> {
    let folder = tempfile::Builder::new().prefix("twixt-bundle-").tempdir();
    folder.context("cannot create a temporary directory")
}

/// What is in a bundle that is whole.
pub(crate) fn manifest_of(path: &Path) -> anyhow::Result<ManifestDocument> {
    let input = std::io::BufReader::new(opened(path)?);
    check_bundle(input).with_context(|| path.display().to_string())
}

fn opened(path: &Path) -> anyhow::Result<File> {
    File::open(path).with_context(|| format!("cannot read {}", path.display()))
}

/// A directory that is asked for: that of a collector or a store, or a bundle that was opened.
pub(crate) enum Directory {
    There(PathBuf),
    Bundle(Box<OpenedBundle>),
}

impl Directory {
    /// A file is taken to be a bundle.
    pub(crate) fn open(path: &Path) -> anyhow::Result<Self> {
        if !path.is_file() {
            return Ok(Self::There(path.to_owned()));
        }
        let folder = temporary()?;
        remove_when_interrupted(folder.path().to_owned())?;
        Ok(Self::Bundle(Box::new(OpenedBundle::open_into(folder, path)?)))
    }

    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::There(path) => path,
            Self::Bundle(bundle) => bundle.folder(),
        }
    }

    /// What is now, for those who ask without a time: the end of a bundle.
    pub(crate) fn now(&self) -> Option<Timestamp> {
        match self {
            Self::There(_) => None,
            Self::Bundle(bundle) => Some(bundle.manifest.span().end),
        }
    }
}

/// A signal ends the command at once; what it left behind is removed before that.
fn remove_when_interrupted(folder: PathBuf) -> anyhow::Result<()> {
    const LOOK_EVERY: Duration = Duration::from_millis(50);
    const TRIES_MAX: usize = 100;
    let signals = Signals::watch(SecondSignal::Waits)?;
    std::thread::spawn(move || {
        while !signals.came() {
            std::thread::sleep(LOOK_EVERY);
        }
        // Files may still be written to it.
        let is_gone = || std::fs::remove_dir_all(&folder).is_ok() || !folder.exists();
        let _ = (0..TRIES_MAX).any(|_| is_gone());
        std::process::exit(Exit::Interrupted as i32);
    });
    Ok(())
}

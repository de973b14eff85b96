//! Bytes of formats that were released: they must stay readable.

use std::fs;
use std::path::{Path, PathBuf};

/// The bytes of `testdata/golden/NAME`.
///
/// # Panics
///
/// If they cannot be read.
#[must_use]
pub fn golden(name: &str) -> Vec<u8> {
    fs::read(path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Checks that the format of a committed file is still written as it was. `TWIXT_BLESS=1` writes a
/// file that is missing, never one that is there.
///
/// # Panics
///
/// If it is written differently now.
#[track_caller]
pub fn check_golden(name: &str, written: &[u8]) {
    let path = path(name);
    if std::env::var_os("TWIXT_BLESS").is_some() && !path.exists() {
        fs::write(&path, written).expect("the file can be written");
    }
    assert!(golden(name) == written, "{name}: the format changed: it needs a new version");
}

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/golden").join(name)
}

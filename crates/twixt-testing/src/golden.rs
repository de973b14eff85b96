//! Files that tests read, so that crates that do no I/O need none for their tests: bytes of formats
//! that were released and must stay readable, and texts of the shared data.

use std::fs;
use std::path::{Path, PathBuf};

/// A text of the shared data, as `require!(shared …)` found it.
///
/// # Panics
///
/// If it cannot be read.
#[must_use]
pub fn text_of(path: impl AsRef<Path>) -> String {
    let path = path.as_ref();
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

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

//! Where things lie.

use std::env;
use std::path::{Path, PathBuf};

/// The root of the repository, wherever in it the command was given.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the root's folder")
}

/// Where cargo builds.
pub(crate) fn target_folder() -> PathBuf {
    let folder = env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    root().join(folder)
}

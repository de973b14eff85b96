//! The tests of the dashboard that run in a browser, and the build of the dashboard.

use std::path::PathBuf;
use std::process::Command;

/// Where the dashboard is, below the root of the repository.
const FOLDER: &str = "../../dashboard";
/// Playwright, which drives the browser.
const RUNNER: &str = "node_modules/@playwright/test/cli.js";

/// Where the sources of the dashboard are.
#[must_use]
pub fn dashboard_folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(FOLDER)
}

/// Whether its packages are installed. They are, if those that it names are.
pub(crate) fn has_packages() -> bool {
    dashboard_folder().join(RUNNER).is_file()
        && dashboard_folder().join("node_modules/vite").is_dir()
}

/// Runs a file of `dashboard/tests/` against a collector, and hands over what it printed.
///
/// # Panics
///
/// If a test fails; the output says which.
pub fn check_in_browser(file: &str, url: &str, variables: &[(&str, &str)]) -> String {
    let output = Command::new("node")
        .args([RUNNER, "test", file])
        .current_dir(dashboard_folder())
        .env("TWIXT_URL", url)
        .env("TWIXT_CHROMIUM", super::requirement::program("chromium").unwrap_or_default())
        .envs(variables.iter().copied())
        .output()
        .expect("node can be run");
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    assert!(output.status.success(), "{file}:\n{text}");
    text
}

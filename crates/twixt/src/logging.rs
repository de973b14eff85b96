//! What long-running commands say of their life, on standard error.

use std::io::{self, IsTerminal};

use tracing_subscriber::EnvFilter;

/// Which messages are wanted, such as `debug` or `twixt_collector=trace`.
const VARIABLE: &str = "TWIXT_LOG";

/// Begins to log. A second call changes nothing.
pub(crate) fn start() {
    let filter = EnvFilter::try_from_env(VARIABLE).unwrap_or_else(|_| EnvFilter::new("info"));
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .with_target(false);
    let _ = subscriber.try_init();
}

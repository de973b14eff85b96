//! What commands that run for long say while they run: on standard error, a line each.

use std::io::{self, IsTerminal};

use tracing_subscriber::EnvFilter;

/// Starts to log. `TWIXT_LOG` says how much, such as `debug` or `twixt_agent=trace`; `info` without
/// it.
pub(crate) fn start() {
    let filter = EnvFilter::try_from_env("TWIXT_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .with_target(false);
    // Another one that listens already is as good.
    let _ = subscriber.try_init();
}

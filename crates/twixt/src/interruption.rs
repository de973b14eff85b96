//! Ctrl-C and other requests to end: what was measured so far is printed.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::exit::Exit;

/// Set by signals, once they are watched.
static INTERRUPTED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// From now on, a request to end is noted. A second one ends the process without waiting.
pub(crate) fn watch() -> io::Result<()> {
    if INTERRUPTED.get().is_some() {
        return Ok(());
    }
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        let code = Exit::Interrupted as i32;
        flag::register_conditional_shutdown(signal, code, Arc::clone(&interrupted))?;
        flag::register(signal, Arc::clone(&interrupted))?;
    }
    // Nothing else sets it: the command has one thread when it starts to read.
    let _ = INTERRUPTED.set(interrupted);
    Ok(())
}

/// Whether the command was requested to end.
pub(crate) fn is_requested() -> bool {
    INTERRUPTED.get().is_some_and(|interrupted| interrupted.load(Ordering::Relaxed))
}

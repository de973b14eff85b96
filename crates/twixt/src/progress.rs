//! A progress bar for work of more than a second, when a person watches.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use twixt_offline::Progress;

/// Shared by the threads that read.
pub(crate) struct ReadProgress {
    bar: ProgressBar,
    started: Instant,
    shown: AtomicBool,
}

const SHOWN_AFTER: Duration = Duration::from_secs(1);

impl ReadProgress {
    /// Over so many bytes, of a pass with this name; hidden unless standard error is a terminal.
    pub(crate) fn new(total_bytes: u64, pass: &'static str) -> Self {
        let bar = ProgressBar::with_draw_target(Some(total_bytes), ProgressDrawTarget::hidden());
        let style = ProgressStyle::with_template("{msg} {bar:40} {bytes}/{total_bytes} {eta}");
        bar.set_style(style.expect("the template is well-formed"));
        bar.set_message(pass);
        let shown = AtomicBool::new(!std::io::stderr().is_terminal());
        Self { bar, started: Instant::now(), shown }
    }

    /// Does not show it: the terminal shows something else.
    pub(crate) fn hide(&self) {
        self.shown.store(true, Ordering::Relaxed);
    }
}

impl Progress for ReadProgress {
    fn advance(&self, bytes: u64) {
        self.bar.inc(bytes);
        if self.started.elapsed() > SHOWN_AFTER && !self.shown.swap(true, Ordering::Relaxed) {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }
}

impl Drop for ReadProgress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

//! How long something computed: without what others took of the machine meanwhile, where the kernel
//! says so, else the time that passed.

use std::time::{Duration, Instant};

/// A moment in the life of this process.
pub(crate) struct Start {
    passed: Instant,
    computed: Option<Duration>,
}

impl Start {
    pub(crate) fn now() -> Self {
        Self { passed: Instant::now(), computed: computed("self") }
    }

    /// Wall-clock time since then.
    pub(crate) fn passed(&self) -> Duration {
        self.passed.elapsed()
    }

    /// Computed since then.
    pub(crate) fn elapsed(&self) -> Duration {
        let passed = self.passed.elapsed();
        let computed = self.computed.zip(computed("self"));
        computed.map_or(passed, |(before, after)| after.saturating_sub(before))
    }
}

/// What the first thread of a process computed so far. The kernel adds up at every tick and
/// whenever another process is scheduled: good to a few milliseconds.
pub(crate) fn computed(process: &str) -> Option<Duration> {
    let text = std::fs::read_to_string(format!("/proc/{process}/schedstat")).ok()?;
    text.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}

/// Whether a child still computes: once it has ended it stays in the kernel's table until it is
/// waited for, with what it computed.
pub(crate) fn is_running(process: &str) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The name before the state is in parentheses, and may hold any other character.
    let state = status.rsplit_once(") ").map(|(_, rest)| rest.starts_with('Z'));
    state == Some(false)
}

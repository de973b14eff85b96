//! What happened, as lines and as a hash: the same seed must give the same.

use std::fmt::Display;

use twixt_model::mix;

/// The lines of a story, if they are wanted, and their hash in any case.
#[derive(Debug)]
pub(crate) struct Trace {
    hash: u64,
    lines: Option<Vec<String>>,
}

impl Trace {
    pub(crate) fn new(is_kept: bool) -> Self {
        Self { hash: 0, lines: is_kept.then(Vec::new) }
    }

    /// Notes what happened, so long after the start.
    pub(crate) fn note(&mut self, now_ns: i64, what: impl Display) {
        let line = format!("{:9.3} s  {what}", now_ns as f64 / 1e9);
        for byte in line.bytes() {
            self.hash = mix(self.hash ^ u64::from(byte));
        }
        if let Some(lines) = &mut self.lines {
            lines.push(line);
        }
    }

    pub(crate) const fn hash(&self) -> u64 {
        self.hash
    }

    pub(crate) fn into_lines(self) -> Vec<String> {
        self.lines.unwrap_or_default()
    }
}

//! The demo finds what was injected, and nothing else.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod seeds;

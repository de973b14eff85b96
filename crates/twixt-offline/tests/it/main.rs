//! Two small generated captures through the library, without the command line.

#![allow(clippy::unwrap_used, reason = "a failed test should stop where it fails")]

mod captures;
mod two_captures;

//! Every integration test of the crate, in one program.

#![allow(clippy::unwrap_used, clippy::needless_pass_by_value)]

mod file;
#[cfg(target_os = "linux")]
mod live;

//! Live capture on virtual interfaces, in network namespaces that go with the test.
//!
//! Needs root and `ip`, `tc`, `unshare`, `setpriv`; says `skipped` without them.

#![cfg(target_os = "linux")]
// A test that cannot go on should stop where it stands.
#![allow(clippy::unwrap_used)]

mod frames;
mod interfaces;
mod namespace;
mod offloads;
mod sender;
mod spreading;
mod traffic;

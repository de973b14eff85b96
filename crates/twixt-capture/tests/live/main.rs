//! Live capture on virtual interfaces, in network namespaces that go with the test.
//!
//! Needs root and `ip`, `tc`, `unshare`, `setpriv`; says `skipped` without them.

#![cfg(target_os = "linux")]
// A test that cannot go on should stop where it stands; and options read better when given away.
#![allow(clippy::unwrap_used, clippy::needless_pass_by_value)]

mod frames;
mod interfaces;
mod namespace;
mod offloads;
mod sender;
mod spreading;
mod traffic;

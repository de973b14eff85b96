//! Live capture on virtual interfaces, in network namespaces that go with the test.
//!
//! Needs root and `ip`, `tc`, `unshare`, `setpriv`; says `skipped` without them.

mod frames;
mod interfaces;
mod namespace;
mod offloads;
mod sender;
mod spreading;
mod traffic;

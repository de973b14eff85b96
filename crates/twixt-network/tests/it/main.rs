//! Every integration test of the crate, in one program.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop where it stands")]

mod topologies;

//! What the crate does, seen from outside. Frames are written byte by byte, or by etherparse
//! where it serves as referee.

// A test that unwraps fails where it should.
#![allow(clippy::unwrap_used)]

mod build;
mod digest;
mod filter;
mod hostile;
mod ip;
mod layers;
mod observer;
mod oracle;
mod selection;
mod tunnels;

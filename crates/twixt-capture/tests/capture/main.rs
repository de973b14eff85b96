//! Capture files, from bytes to frames.

// A test that cannot go on should stop where it stands; and builders read better when given away.
#![allow(clippy::unwrap_used, clippy::needless_pass_by_value)]

mod build;
mod endings;
mod hostile;
mod opening;
mod oracle;
mod pcap;
mod pcapng;
mod streams;

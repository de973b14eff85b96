//! Capture files, from bytes to frames.

mod build;
mod endings;
mod hostile;
mod opening;
mod oracle;
mod pcap;
mod pcapng;
mod streams;

//! One frame as a source hands it over.

use twixt_model::{TimeSource, Timestamp};

/// A frame and what the source knows about it. Borrows the source's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// When it was seen.
    pub time: Timestamp,
    /// The bytes that were captured, from the outermost header on.
    pub bytes: &'a [u8],
    /// The same bytes and what lies behind them in the source's memory, for readers that would
    /// rather read too much and mask it than ask before every field whether it is there. What lies
    /// behind means nothing; there may be nothing.
    pub memory: &'a [u8],
    /// Its length on the wire; never less than `bytes.len()`.
    pub wire_length: u32,
    /// What the outermost header is: a LINKTYPE number of the pcap registry.
    pub link_type: u16,
    /// Index into the source's list of interfaces.
    pub interface: u32,
    /// Which way it crossed the interface, if the source says.
    pub direction: Option<Direction>,
    /// Who took the time.
    pub time_source: TimeSource,
}

/// Which way a frame crossed the interface that captured it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Received by the capturing machine.
    Inbound,
    /// Sent by the capturing machine.
    Outbound,
}

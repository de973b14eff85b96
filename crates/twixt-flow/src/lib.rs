//! Flow records in and out.
//!
//! A meter of flows, twixt's or another, writes what it remembers of each flow as a record: when
//! its first and its last packet were seen, and how many there were. [`FlowReader`] reads such
//! records from IPFIX (RFC 7011), NetFlow v9 (RFC 3954) and NetFlow v5; [`FlowWriter`] writes them
//! as IPFIX. What both speak of is [`twixt_model::FlowRecord`].
//!
//! This crate does not know where messages come from or go to, nor what records are for. Bytes are
//! hostile: none make it panic, every table has a bound, and what is not usable is counted by
//! reason ([`ReadCounts`]).
//!
//! ```
//! use std::net::{IpAddr, Ipv4Addr, SocketAddr};
//! use twixt_flow::{FlowReader, FlowWriter, WriterConfig};
//! use twixt_model::{ClassId, FlowEnd, FlowKey, FlowRecord, Timestamp};
//!
//! let record = FlowRecord {
//!     key: "udp 10.0.0.1:5000 > 10.0.1.9:53".parse()?,
//!     class: ClassId(0),
//!     first: Timestamp::from_nanos(1_700_000_000_000_000_001),
//!     last: Timestamp::from_nanos(1_700_000_000_250_000_000),
//!     packets: 7,
//!     bytes: 700,
//!     tcp_flags: 0,
//!     first_label: None,
//!     last_label: None,
//!     end: FlowEnd::Idle,
//!     resolution_ns: 1,
//! };
//! let mut writer = FlowWriter::new(WriterConfig::default())?;
//! writer.record(&record, record.last)?;
//! writer.finish();
//!
//! let exporter = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 4739);
//! let mut reader = FlowReader::default();
//! let mut records = Vec::new();
//! while let Some(message) = writer.poll() {
//!     reader.message(exporter, &message, &mut |read| records.push(read.record))?;
//! }
//! assert_eq!(records, [record]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod bytes;
mod element;
mod notice;
mod ntp;
mod read;
mod split;
mod template;
mod write;

pub use element::{EXAMPLE_ENTERPRISE, TimeUnit, enterprise_element};
pub use notice::SelectorNotice;
pub use read::{
    FlowReader, Malformed, Protocol, ReadCounts, ReadRecord, SELECTORS_MAX, STREAMS_MAX, Unusable,
};
pub use split::{MessageSplitter, SplitEnd, looks_like_export, looks_like_ipfix};
pub use template::{FIELDS_MAX, STREAM_FIELDS_MAX, TEMPLATES_MAX};
pub use write::{DelayRecord, FlowWriteError, FlowWriter, MESSAGE_BYTES_MIN, WriterConfig};

//! Reading flow records of any exporter.
//!
//! A [`FlowReader`] takes messages with their senders, and hands over the records in
//! them. It keeps per exporter and observation domain what later messages need: templates, the
//! next sequence number, and what ties its uptime to the time of day.

mod counts;
mod draft;
mod ipfix;
mod netflow5;
mod netflow9;
mod options;
mod set;
mod stream;
mod uptime;

#[cfg(test)]
mod tests;

pub use counts::{ReadCounts, Unusable};

use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;

use twixt_model::{FlowRecord, Timestamp};

use crate::element::EXAMPLE_ENTERPRISE;
use crate::notice::SelectorNotice;
use stream::Stream;

/// Exporters and observation domains that are remembered at most. When one more comes, the one
/// that was silent longest is forgotten.
pub const STREAMS_MAX: usize = 256;
/// Selectors that are remembered of one exporter and observation domain at most.
pub const SELECTORS_MAX: usize = 64;

/// Who wrote a message, in which format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// NetFlow v5: a fixed record, IPv4 only.
    NetflowV5,
    /// NetFlow v9 (RFC 3954).
    NetflowV9,
    /// IPFIX (RFC 7011).
    Ipfix,
}

impl Protocol {
    /// The name in output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NetflowV5 => "netflow5",
            Self::NetflowV9 => "netflow9",
            Self::Ipfix => "ipfix",
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// A record, and where it came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadRecord {
    /// What it says.
    pub record: FlowRecord,
    /// Who sent it.
    pub exporter: SocketAddr,
    /// In which format.
    pub protocol: Protocol,
    /// Observation domain, source id, or engine type and id.
    pub domain: u32,
    /// observationPointId, if it says one.
    pub observation_point: Option<u64>,
    /// When the exporter sent it, on its clock.
    pub exported: Timestamp,
}

/// Why a message was not read to its end. Records before the damage were handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Malformed {
    /// It is not a flow export: another program sends to this port, or the file is something else.
    #[error("version {version} is neither NetFlow v5, v9 nor IPFIX")]
    Version {
        /// What stands where the version should.
        version: u16,
    },
    /// It ends too early: cut on its way, or by the snap length of a capture.
    #[error("{what} is truncated")]
    Truncated {
        /// Which part.
        what: &'static str,
    },
    /// A length contradicts what is around it: the exporter is broken, or hostile.
    #[error("{what} has an impossible length")]
    Length {
        /// Which part.
        what: &'static str,
    },
    /// A template cannot be: no fields with bytes, too many, or a reserved number.
    #[error("template {number} cannot be used")]
    Template {
        /// Its number.
        number: u16,
    },
}

/// What distinguishes streams of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct StreamKey {
    exporter: SocketAddr,
    protocol: Protocol,
    domain: u32,
}

/// Where records go.
type Sink<'a> = &'a mut dyn FnMut(&ReadRecord);

/// Reads the messages of many exporters.
#[derive(Clone, Debug)]
pub struct FlowReader {
    streams: HashMap<StreamKey, Stream>,
    counts: ReadCounts,
    /// Under which number our own elements come.
    enterprise: u32,
}

impl Default for FlowReader {
    fn default() -> Self {
        Self::new(EXAMPLE_ENTERPRISE)
    }
}

impl FlowReader {
    /// A reader that looks for our own elements under this enterprise number.
    #[must_use]
    pub fn new(enterprise: u32) -> Self {
        Self { streams: HashMap::new(), counts: ReadCounts::default(), enterprise }
    }

    /// Reads one message that came from `exporter`, and hands its records to `sink`.
    ///
    /// # Errors
    ///
    /// If it could not be read to its end. It is counted as well; a service goes on.
    pub fn message(
        &mut self,
        exporter: SocketAddr,
        bytes: &[u8],
        sink: Sink<'_>,
    ) -> Result<Protocol, Malformed> {
        self.counts.messages += 1;
        let result = match bytes {
            [0, 5, ..] => self.netflow5(exporter, bytes, sink).map(|()| Protocol::NetflowV5),
            [0, 9, ..] => self.netflow9(exporter, bytes, sink).map(|()| Protocol::NetflowV9),
            [0, 10, ..] => self.ipfix(exporter, bytes, sink).map(|()| Protocol::Ipfix),
            &[high, low, ..] => {
                Err(Malformed::Version { version: u16::from_be_bytes([high, low]) })
            }
            _ => Err(Malformed::Truncated { what: "the header" }),
        };
        self.counts.malformed += u64::from(result.is_err());
        result
    }

    /// What was read and what was not, so far.
    #[must_use]
    pub const fn counts(&self) -> &ReadCounts {
        &self.counts
    }

    /// How exporters say that they select, in a fixed order.
    #[must_use]
    pub fn selectors(&self) -> Vec<(SocketAddr, u32, SelectorNotice)> {
        let mut all: Vec<_> = self
            .streams
            .iter()
            .flat_map(|(key, stream)| {
                stream.selectors().map(|notice| (key.exporter, key.domain, *notice))
            })
            .collect();
        all.sort_by_key(|&(exporter, domain, notice)| (exporter, domain, notice.selector_id));
        all
    }

    /// The stream of a message, and where to count; the stream that was silent longest makes room.
    fn stream(&mut self, key: StreamKey) -> (&mut Stream, &mut ReadCounts) {
        if !self.streams.contains_key(&key) && self.streams.len() >= STREAMS_MAX {
            let silent = self.streams.iter().min_by_key(|(key, stream)| (stream.last_use, **key));
            let silent = *silent.expect("the table is full").0;
            self.streams.remove(&silent);
            self.counts.streams_forgotten += 1;
        }
        let stream = self.streams.entry(key).or_default();
        stream.last_use = self.counts.messages;
        (stream, &mut self.counts)
    }
}

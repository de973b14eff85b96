//! What an estimate is about.

use std::fmt;

use crate::{FlowKey, Prefix, protocol};

/// What an estimate is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// All traffic of the segment.
    All,
    /// The traffic of one class.
    Class(String),
    /// The traffic from one prefix to another.
    PrefixPair {
        /// Where it comes from.
        source: Prefix,
        /// Where it goes.
        destination: Prefix,
    },
    /// One directed flow.
    Flow(FlowKey),
    /// The traffic of one service, by its port.
    Port {
        /// Protocol number of IP.
        protocol: u8,
        /// The port.
        port: u16,
    },
    /// What is left when only the largest scopes are kept.
    Other,
}

impl fmt::Display for Scope {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => formatter.write_str("all"),
            Self::Class(name) => write!(formatter, "class {name}"),
            Self::PrefixPair { source, destination } => {
                write!(formatter, "{source} > {destination}")
            }
            Self::Flow(key) => key.fmt(formatter),
            Self::Port { protocol: protocol::TCP, port } => write!(formatter, "tcp port {port}"),
            Self::Port { protocol: protocol::UDP, port } => write!(formatter, "udp port {port}"),
            Self::Port { protocol, port } => write!(formatter, "ip-proto {protocol} port {port}"),
            Self::Other => formatter.write_str("other"),
        }
    }
}

//! What algorithms conclude from one point alone.

use std::fmt;
use std::str::FromStr;

use crate::{FlowHash, FlowKey, Prefix, Scope};

/// What a round trip is a trip of. Tools differ by definition more than by code, so each kind is
/// measured and reported on its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RoundTripKind {
    /// SYN to SYN-ACK, and SYN-ACK to the ACK that completes the handshake.
    TcpHandshake,
    /// Data to the ACK that covers it, by sequence numbers.
    TcpSequence,
    /// Data to the first echo of its timestamp option.
    TcpTimestamp,
    /// SYN to the FIN or RST that ends the connection.
    TcpDuration,
    /// Query to answer.
    Dns,
    /// Request to answer.
    Ntp,
    /// Echo request to reply.
    Icmp,
    /// First Initial to the first packet back.
    QuicHandshake,
    /// Edge to edge of the spin bit.
    QuicSpin,
}

impl RoundTripKind {
    /// All of them, in the order in which they are reported.
    pub const ALL: [Self; 9] = [
        Self::TcpHandshake,
        Self::TcpSequence,
        Self::TcpTimestamp,
        Self::TcpDuration,
        Self::Dns,
        Self::Ntp,
        Self::Icmp,
        Self::QuicHandshake,
        Self::QuicSpin,
    ];

    /// As users write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::TcpHandshake => "tcp-handshake",
            Self::TcpSequence => "tcp-sequence",
            Self::TcpTimestamp => "tcp-timestamp",
            Self::TcpDuration => "tcp-duration",
            Self::Dns => "dns",
            Self::Ntp => "ntp",
            Self::Icmp => "icmp",
            Self::QuicHandshake => "quic-handshake",
            Self::QuicSpin => "quic-spin",
        }
    }
}

impl fmt::Display for RoundTripKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

impl FromStr for RoundTripKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|kind| kind.name() == text).ok_or_else(|| {
            let known = Self::ALL.map(Self::name).join(", ");
            format!("no kind of round trip {text:?}; there are: {known}")
        })
    }
}

/// Round trips of one kind and scope.
#[derive(Clone, Debug, PartialEq)]
pub struct RoundTripEstimate {
    /// Whose they are.
    pub scope: Scope,
    /// What they are trips of.
    pub kind: RoundTripKind,
    /// Packets that could begin one.
    pub requests: u64,
    /// Packets that could end one.
    pub responses: u64,
    /// Round trips that were measured.
    pub matched: u64,
}

/// Reordering of one prefix.
#[derive(Clone, Debug, PartialEq)]
pub struct ReorderEstimate {
    /// Where the packets came from.
    pub prefix: Prefix,
    /// Packets that were judged.
    pub packets: u64,
    /// Those that were out of order.
    pub out_of_order: u64,
}

/// A large flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeavyFlow {
    /// Stands for it in observations.
    pub hash: FlowHash,
    /// The directed flow.
    pub key: FlowKey,
    /// Its packets, as the algorithm counts or estimates them.
    pub packets: u64,
    /// Its bytes. Where packets are estimated, the bytes of those that were counted, in
    /// proportion.
    pub bytes: u64,
    /// It certainly had so many packets.
    pub packets_at_least: u64,
    /// It certainly had no more packets, where the algorithm can promise that.
    pub packets_at_most: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_kinds_read_back() {
        for kind in RoundTripKind::ALL {
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
        assert!("tcp".parse::<RoundTripKind>().unwrap_err().contains("quic-spin"));
    }
}

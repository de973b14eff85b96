//! Directed flows.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr;

/// Protocol numbers of IP that twixt knows by name.
pub mod protocol {
    /// ICMP over IPv4.
    pub const ICMP: u8 = 1;
    /// TCP.
    pub const TCP: u8 = 6;
    /// UDP.
    pub const UDP: u8 = 17;
    /// ICMP over IPv6.
    pub const ICMPV6: u8 = 58;
    /// SCTP.
    pub const SCTP: u8 = 132;
}

/// Directed five-tuple. Protocols without ports have both ports 0, and so have fragments other
/// than the first of their packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowKey {
    /// Who sent the packet.
    pub source: IpAddr,
    /// Whom it is for.
    pub destination: IpAddr,
    /// Port at the source.
    pub source_port: u16,
    /// Port at the destination.
    pub destination_port: u16,
    /// Protocol number of IP.
    pub protocol: u8,
}

impl FlowKey {
    /// The flow of the opposite direction.
    #[must_use]
    pub const fn reversed(&self) -> Self {
        Self {
            source: self.destination,
            destination: self.source,
            source_port: self.destination_port,
            destination_port: self.source_port,
            protocol: self.protocol,
        }
    }
}

impl Default for FlowKey {
    fn default() -> Self {
        let unspecified = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        Self {
            source: unspecified,
            destination: unspecified,
            source_port: 0,
            destination_port: 0,
            protocol: 0,
        }
    }
}

/// As users read it: `tcp 10.0.0.1:40312 > 10.0.1.9:443`, `icmp 10.0.0.1 > 10.0.1.9`,
/// `ip-proto 50 10.0.0.1 > 10.0.1.9`; IPv6 addresses in brackets.
impl fmt::Display for FlowKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (source, destination) = (Host(self.source), Host(self.destination));
        let (from, to) = (self.source_port, self.destination_port);
        match named_protocol(self.protocol) {
            Some((name, true)) => write!(formatter, "{name} {source}:{from} > {destination}:{to}"),
            Some((name, false)) => write!(formatter, "{name} {source} > {destination}"),
            None => write!(formatter, "ip-proto {} {source} > {destination}", self.protocol),
        }
    }
}

/// Name, and whether it has ports.
const fn named_protocol(number: u8) -> Option<(&'static str, bool)> {
    match number {
        protocol::TCP => Some(("tcp", true)),
        protocol::UDP => Some(("udp", true)),
        protocol::SCTP => Some(("sctp", true)),
        protocol::ICMP | protocol::ICMPV6 => Some(("icmp", false)),
        _ => None,
    }
}

/// An address as scopes show it.
struct Host(IpAddr);

impl fmt::Display for Host {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            IpAddr::V4(address) => write!(formatter, "{address}"),
            IpAddr::V6(address) => write!(formatter, "[{address}]"),
        }
    }
}

/// Why a text is no flow key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseFlowKeyError(String);

impl fmt::Display for ParseFlowKeyError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{:?} is not a flow such as \"tcp 10.0.0.1:40312 > 10.0.1.9:443\"",
            self.0
        )
    }
}

impl std::error::Error for ParseFlowKeyError {}

impl FromStr for FlowKey {
    type Err = ParseFlowKeyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text).ok_or_else(|| ParseFlowKeyError(text.to_owned()))
    }
}

fn parse(text: &str) -> Option<FlowKey> {
    let mut words = text.split_whitespace();
    let name = words.next()?;
    let number = if name == "ip-proto" { Some(words.next()?.parse().ok()?) } else { None };
    let (source, arrow, destination) = (words.next()?, words.next()?, words.next()?);
    if arrow != ">" || words.next().is_some() {
        return None;
    }
    let with_ports = matches!(name, "tcp" | "udp" | "sctp");
    let (source, source_port) = endpoint(source, with_ports)?;
    let (destination, destination_port) = endpoint(destination, with_ports)?;
    let protocol = match (name, number) {
        ("tcp", _) => protocol::TCP,
        ("udp", _) => protocol::UDP,
        ("sctp", _) => protocol::SCTP,
        ("icmp", _) if source.is_ipv4() => protocol::ICMP,
        ("icmp", _) => protocol::ICMPV6,
        (_, Some(number)) => number,
        _ => return None,
    };
    Some(FlowKey { source, destination, source_port, destination_port, protocol })
}

fn endpoint(text: &str, with_port: bool) -> Option<(IpAddr, u16)> {
    let (host, port) = match with_port {
        true => text.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse().ok()?)))?,
        false => (text, 0),
    };
    let bare = host.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')).unwrap_or(host);
    Some((bare.parse().ok()?, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str) {
        let key: FlowKey = text.parse().unwrap();
        assert_eq!(key.to_string(), text);
        assert_eq!(key.reversed().reversed(), key);
    }

    #[test]
    fn what_is_shown_reads_back() {
        check("tcp 10.0.0.1:40312 > 10.0.1.9:443");
        check("udp [2001:db8::1]:53 > [2001:db8::2]:5353");
        check("sctp 10.0.0.1:1 > 10.0.1.9:2");
        check("icmp 10.0.0.1 > 10.0.1.9");
        check("icmp [2001:db8::1] > [2001:db8::2]");
        check("ip-proto 50 10.0.0.1 > 10.0.1.9");
    }

    #[test]
    fn what_is_no_flow_is_refused() {
        for text in
            ["", "tcp", "tcp 1.2.3.4 > 5.6.7.8", "tcp 1.2.3.4:1 5.6.7.8:2", "x 1.1.1.1 > 2.2.2.2"]
        {
            assert!(text.parse::<FlowKey>().is_err(), "{text}");
        }
    }
}

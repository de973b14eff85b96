//! Which packets to select, in the words of tcpdump.
//!
//! Filters look at the parsed packet, not at the frame, and so work behind VLAN tags and inside
//! tunnels alike. Evaluation neither allocates nor fails.

mod names;
mod parse;

pub use names::dscp_name;

use std::fmt;
use std::net::IpAddr;

use twixt_model::Prefix;

use crate::packet::Packet;
pub use parse::{FILTER_BYTES_MAX, FILTER_DEPTH_MAX, FilterError};

/// Selects packets. Read from text in a subset of tcpdump's language:
///
/// - `host A`, `net P`, each also after `src` or `dst`; an address or prefix alone means the same
/// - `port N`, `portrange A-B`, likewise
/// - `proto N` or `proto NAME`; `tcp`, `udp`, `sctp`, `icmp`, `icmp6`, `esp` and others by name;
///   `ip`, `ip6`
/// - `vlan`, `vlan N` (outermost tag), `mpls`, `dscp N`, `dscp ef`
/// - `less N`, `greater N`: IP length at most or at least N
/// - `and`, `or`, `not`, also `&&`, `||`, `!`, and parentheses
/// - `outer TERM`: what follows is judged by the outermost IP header of a tunnelled packet, and not
///   by that of the packet that is measured
///
/// As in tcpdump, `tcp dst port 80` joins its words, `port 80 or 443` repeats the keyword, and
/// `and` and `or` bind equally, from left to right.
///
/// ```
/// use twixt_wire::Filter;
///
/// let filter: Filter = "tcp dst port 80 or 443".parse()?;
/// assert_eq!(filter.to_string(), "(tcp and dst port 80) or (tcp and dst port 443)");
///
/// let error = "host 10.0.0.1 and prot 6".parse::<Filter>().unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "at character 19: expected an IP address, found \"prot\""
/// );
/// # Ok::<(), twixt_wire::FilterError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    expression: Expression,
}

/// The headers of a frame that a filter may look at. They are the same outside tunnels.
#[derive(Clone, Copy, Debug)]
pub struct Headers<'a> {
    /// Of the packet that is measured.
    pub measured: &'a Packet,
    /// The outermost.
    pub outermost: &'a Packet,
}

impl<'a> From<&'a Packet> for Headers<'a> {
    fn from(packet: &'a Packet) -> Self {
        Self { measured: packet, outermost: packet }
    }
}

impl Filter {
    /// Whether the packet is selected.
    #[must_use]
    #[inline]
    pub fn matches<'a>(&self, headers: impl Into<Headers<'a>>) -> bool {
        self.expression.matches(headers.into())
    }

    /// Whether it looks at the outermost header.
    #[must_use]
    pub fn needs_outermost(&self) -> bool {
        self.expression.needs_outermost()
    }
}

/// Operands of one operator are kept side by side, so that depth grows with nesting only.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Expression {
    All(Vec<Expression>),
    Any(Vec<Expression>),
    Not(Box<Expression>),
    /// By the outermost header.
    Outer(Box<Expression>),
    Is(Condition),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Condition {
    Net(AddressSide, Network),
    /// First and last port.
    Ports(AddressSide, u16, u16),
    Protocol(u8),
    Version(u8),
    /// This tag, or any.
    Vlan(Option<u16>),
    Mpls,
    Dscp(u8),
    LengthAtMost(u32),
    LengthAtLeast(u32),
}

/// Which of a packet's two ends must fulfil a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AddressSide {
    Either,
    Source,
    Destination,
    Both,
}

/// A prefix, ready for comparison with the bytes of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Network {
    prefix: Prefix,
    /// As packets hold addresses: IPv4 in the upper 32 bits, so that one mask serves both.
    first: u128,
    mask: u128,
}

impl Expression {
    fn matches(&self, headers: Headers<'_>) -> bool {
        match self {
            Self::All(parts) => parts.iter().all(|part| part.matches(headers)),
            Self::Any(parts) => parts.iter().any(|part| part.matches(headers)),
            Self::Not(part) => !part.matches(headers),
            Self::Outer(part) => part.matches(Headers::from(headers.outermost)),
            Self::Is(condition) => condition.matches(headers.measured),
        }
    }

    fn needs_outermost(&self) -> bool {
        match self {
            Self::All(parts) | Self::Any(parts) => parts.iter().any(Self::needs_outermost),
            Self::Not(part) => part.needs_outermost(),
            Self::Outer(_) => true,
            Self::Is(_) => false,
        }
    }

    fn depth(&self) -> usize {
        match self {
            Self::All(parts) | Self::Any(parts) => {
                1 + parts.iter().map(Self::depth).max().unwrap_or(0)
            }
            Self::Not(part) | Self::Outer(part) => 1 + part.depth(),
            Self::Is(_) => 0,
        }
    }
}

impl Condition {
    #[inline]
    fn matches(&self, packet: &Packet) -> bool {
        match *self {
            Self::Net(side, network) => {
                packet.version == network.version()
                    && side.holds(
                        || network.contains(packet.source),
                        || network.contains(packet.destination),
                    )
            }
            Self::Ports(side, low, high) => {
                packet.has_ports()
                    && side.holds(
                        || (low..=high).contains(&packet.source_port),
                        || (low..=high).contains(&packet.destination_port),
                    )
            }
            Self::Protocol(number) => packet.protocol == number,
            Self::Version(version) => packet.version == version,
            Self::Vlan(None) => packet.vlan().is_some(),
            Self::Vlan(number) => packet.vlan() == number,
            Self::Mpls => packet.is_mpls(),
            Self::Dscp(value) => packet.dscp() == value,
            Self::LengthAtMost(bytes) => packet.length <= bytes,
            Self::LengthAtLeast(bytes) => packet.length >= bytes,
        }
    }
}

impl AddressSide {
    #[inline]
    fn holds(self, source: impl Fn() -> bool, destination: impl Fn() -> bool) -> bool {
        match self {
            Self::Either => source() || destination(),
            Self::Source => source(),
            Self::Destination => destination(),
            Self::Both => source() && destination(),
        }
    }
}

impl Network {
    fn new(prefix: Prefix) -> Self {
        let first = match prefix.address() {
            IpAddr::V4(address) => u128::from(address.to_bits()) << 96,
            IpAddr::V6(address) => address.to_bits(),
        };
        let mask = u128::MAX.checked_shl(128 - u32::from(prefix.length())).unwrap_or(0);
        Self { prefix, first, mask }
    }

    const fn version(&self) -> u8 {
        if self.prefix.address().is_ipv4() { 4 } else { 6 }
    }

    #[inline]
    const fn contains(&self, address: u128) -> bool {
        address & self.mask == self.first
    }

    fn is_host(&self) -> bool {
        self.prefix.length() == if self.version() == 4 { 32 } else { 128 }
    }
}

/// In a form that reads back as the same filter.
impl fmt::Display for Filter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.expression.fmt(formatter)
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All(parts) => joined(parts, " and ", formatter),
            Self::Any(parts) => joined(parts, " or ", formatter),
            Self::Not(part) => write!(formatter, "not {}", Operand(part)),
            Self::Outer(part) => write!(formatter, "outer {}", Operand(part)),
            Self::Is(condition) => condition.fmt(formatter),
        }
    }
}

fn joined(parts: &[Expression], word: &str, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
    for (index, part) in parts.iter().enumerate() {
        let word = if index == 0 { "" } else { word };
        write!(formatter, "{word}{}", Operand(part))?;
    }
    Ok(())
}

/// An expression inside another.
struct Operand<'a>(&'a Expression);

impl fmt::Display for Operand<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Expression::All(_) | Expression::Any(_) => write!(formatter, "({})", self.0),
            Expression::Not(_) | Expression::Outer(_) | Expression::Is(_) => self.0.fmt(formatter),
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Net(side, network) if network.is_host() => {
                write!(formatter, "{side}host {}", network.prefix.address())
            }
            Self::Net(side, network) => write!(formatter, "{side}net {}", network.prefix),
            Self::Ports(side, low, high) if low == high => write!(formatter, "{side}port {low}"),
            Self::Ports(side, low, high) => write!(formatter, "{side}portrange {low}-{high}"),
            Self::Protocol(number) => match names::of_protocol(number) {
                Some(name) => formatter.write_str(name),
                None => write!(formatter, "proto {number}"),
            },
            Self::Version(4) => formatter.write_str("ip"),
            Self::Version(_) => formatter.write_str("ip6"),
            Self::Vlan(None) => formatter.write_str("vlan"),
            Self::Vlan(Some(number)) => write!(formatter, "vlan {number}"),
            Self::Mpls => formatter.write_str("mpls"),
            Self::Dscp(value) => write!(formatter, "dscp {value}"),
            Self::LengthAtMost(bytes) => write!(formatter, "less {bytes}"),
            Self::LengthAtLeast(bytes) => write!(formatter, "greater {bytes}"),
        }
    }
}

impl fmt::Display for AddressSide {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Either => "",
            Self::Source => "src ",
            Self::Destination => "dst ",
            Self::Both => "src and dst ",
        })
    }
}

//! What algorithms conclude from one point alone.

use std::fmt;
use std::str::FromStr;

use crate::{
    FirstByteWait, FlowHash, FlowKey, Histogram, Prefix, RoundTripPart, Scope, SpinUse, Timestamp,
};

/// What a round trip is a trip of. Tools differ by definition more than by code, so each kind is
/// measured and reported on its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RoundTripKind {
    /// SYN to the ACK that completes the handshake: both legs.
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
    /// SYN to SYN-ACK: the leg between the point and the server.
    TcpHandshakeServer,
    /// SYN-ACK to its ACK: the leg between the point and the client.
    TcpHandshakeClient,
    /// Last byte of a request to the first byte of its response.
    ServerResponse,
}

impl RoundTripKind {
    /// All of them, in the order of their numbers, which are stored: new ones come last.
    pub const ALL: [Self; 12] = [
        Self::TcpHandshake,
        Self::TcpSequence,
        Self::TcpTimestamp,
        Self::TcpDuration,
        Self::Dns,
        Self::Ntp,
        Self::Icmp,
        Self::QuicHandshake,
        Self::QuicSpin,
        Self::TcpHandshakeServer,
        Self::TcpHandshakeClient,
        Self::ServerResponse,
    ];

    /// All of them, in the order in which they are reported.
    pub const REPORTED: [Self; 12] = [
        Self::TcpHandshake,
        Self::TcpHandshakeServer,
        Self::TcpHandshakeClient,
        Self::TcpSequence,
        Self::TcpTimestamp,
        Self::ServerResponse,
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
            Self::TcpHandshakeServer => "tcp-handshake-server",
            Self::TcpHandshakeClient => "tcp-handshake-client",
            Self::ServerResponse => "server-response",
        }
    }

    /// What exactly is measured: tools differ here more than in anything else.
    #[must_use]
    pub const fn population(self) -> &'static str {
        match self {
            Self::TcpHandshake => {
                "SYN to the first ACK of its SYN-ACK: both legs; none if SYN or SYN-ACK was \
                 retransmitted before, or if that ACK carries data"
            }
            Self::TcpSequence => {
                "in-order data to the first ACK equal to its end; none after a retransmission, \
                 reordering, a gap, or a duplicate ACK"
            }
            Self::TcpTimestamp => {
                "the first data with a TSval to the first packet that echoes it; delayed ACKs included"
            }
            Self::TcpDuration => "the first SYN to the first FIN or RST of either side",
            Self::Dns => "query to the first answer with its id; none if the query was repeated",
            Self::Ntp => "client message to the server message that returns its timestamp",
            Self::Icmp => "echo request to the first reply; none if the request was repeated",
            Self::QuicHandshake => {
                "first Initial of the client to the first long header back; none if the Initial \
                 was repeated later"
            }
            Self::QuicSpin => {
                "edge to edge of the spin bit in one direction, without implausibly early edges; none \
                 of connections whose bit is constant or random"
            }
            Self::TcpHandshakeServer => {
                "SYN to SYN-ACK, from the point to the server and back; none if the SYN was \
                 retransmitted before"
            }
            Self::TcpHandshakeClient => {
                "SYN-ACK to its first ACK, from the point to the client and back; none if the \
                 SYN-ACK was retransmitted before, or if that ACK carries data"
            }
            Self::ServerResponse => {
                "last byte of a request to the first byte of its response, from the point; TCP where \
                 both sides take turns, and DNS; none after a retransmission, for pipelined requests, or \
                 if a response began before its request ended"
            }
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
            format!("unknown kind of round trip {text:?}; known are: {known}")
        })
    }
}

/// Round trips of one kind and scope.
#[derive(Clone, Debug, PartialEq)]
pub struct RoundTripEstimate {
    /// Whose they are: for flows and pairs of prefixes, in the direction of the request.
    pub scope: Scope,
    /// What they are trips of.
    pub kind: RoundTripKind,
    /// Which of them, if not all; groups are not split further.
    pub part: Option<RoundTripPart>,
    /// Packets that could begin one. Counted for all traffic only.
    pub requests: Option<u64>,
    /// Packets that could end one. Counted for all traffic only.
    pub responses: Option<u64>,
    /// Round trips that were measured.
    pub matched: u64,
    /// Packets that could begin or end one, if it were known which. Counted for all traffic
    /// only.
    pub ambiguous: Option<u64>,
    /// Round trips that there were, as estimated from those that were measured.
    pub weighted: f64,
    /// How long they took; `None` when none was measured.
    pub times: Option<RoundTripTimes>,
    /// The longest round trip of which enough could have been measured; `None` if there is no
    /// such limit.
    pub horizon_ns: Option<i64>,
    /// Flows whose state gave way to that of others; what these sent again may have been
    /// measured. `None` where no such state is needed, or none gives way.
    pub forgotten_flows: Option<u64>,
    /// What clients waited for, where that is known. For all responses only.
    pub first_byte: Option<FirstByteWait>,
    /// In how many connections the spin bit can be used. For all connections only.
    pub spin_use: Option<SpinUse>,
    /// How long each of them took, in a form that can be added up, where that was asked for.
    pub distribution: Option<Box<Histogram>>,
}

impl RoundTripEstimate {
    /// Whether it is about all round trips of its kind.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.scope == Scope::All && self.part.is_none()
    }
}

/// How long round trips took.
#[derive(Clone, Debug, PartialEq)]
pub struct RoundTripTimes {
    /// Mean.
    pub mean_ns: f64,
    /// Half the width of the 95 % confidence interval of the mean over all round trips that there
    /// were. 0 where every one was measured; `None` where the error is unknown, and then the ends
    /// of the percentiles' intervals mean nothing either.
    pub half_width_ns: Option<f64>,
    /// Standard deviation.
    pub deviation_ns: f64,
    /// Shortest that was measured.
    pub min_ns: i64,
    /// Longest that was measured.
    pub max_ns: i64,
    /// In ascending order of share.
    pub percentiles: Vec<Percentile>,
    /// Times with the share of round trips that took no longer, ascending.
    pub cdf: Vec<(i64, f64)>,
}

/// A time that a share of round trips did not exceed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Percentile {
    /// The share, such as 0.95.
    pub share: f64,
    /// The time.
    pub time_ns: i64,
    /// Lower end of its 95 % confidence interval.
    pub low_ns: i64,
    /// Upper end.
    pub high_ns: i64,
}

impl Percentile {
    /// The shares that are reported.
    pub const SHARES: [f64; 5] = [0.5, 0.9, 0.95, 0.99, 0.999];
}

/// One round trip, as it was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoundTripSample {
    /// When it ended.
    pub time: Timestamp,
    /// The flow that asked.
    pub key: FlowKey,
    /// What it is a trip of.
    pub kind: RoundTripKind,
    /// Which part of its kind it belongs to, where that is known.
    pub part: Option<RoundTripPart>,
    /// How long it took.
    pub rtt_ns: i64,
    /// How many round trips it stands for.
    pub weight: f64,
}

/// Reordering of one prefix.
#[derive(Clone, Debug, PartialEq)]
pub struct ReorderEstimate {
    /// Where the packets came from.
    pub prefix: Prefix,
    /// Packets with data that were judged.
    pub packets: u64,
    /// Those that others overtook.
    pub out_of_order: u64,
    /// Those that came late because they were sent again.
    pub retransmitted: u64,
    /// Those that came late, and nothing tells whether for the one reason or the other.
    pub undecided: u64,
    /// Copies of packets, made by the network or by a mirror port. Not among the packets.
    pub duplicates: u64,
    /// How far packets were overtaken, where the algorithm can tell.
    pub extent: Option<ReorderExtent>,
}

/// How far packets were overtaken: RFC 4737, section 4.2.3.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReorderExtent {
    /// Packets between one and the first that overtook it, on average.
    pub mean: f64,
    /// At most.
    pub largest: u32,
}

/// How the reordering of a prefix compares with a threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReorderVerdict {
    /// Surely more than that.
    Above,
    /// Surely less.
    Below,
    /// Too few packets, or too few whose lateness is explained, to tell.
    Unclear,
}

impl ReorderEstimate {
    /// The share of packets that was out of order for certain; `None` without packets.
    #[must_use]
    pub fn fraction(&self) -> Option<f64> {
        self.share_of(self.out_of_order)
    }

    /// The share that would have been if all undecided packets were overtaken.
    #[must_use]
    pub fn fraction_max(&self) -> Option<f64> {
        self.share_of(self.out_of_order_max())
    }

    fn share_of(&self, count: u64) -> Option<f64> {
        (self.packets > 0).then(|| count as f64 / self.packets as f64)
    }

    fn out_of_order_max(&self) -> u64 {
        self.out_of_order.saturating_add(self.undecided)
    }

    /// Compares the share with a threshold, two standard deviations on the safe side: as many
    /// packets out of order as counted have a deviation of about the square root of their number.
    /// Undecided packets may all have been overtaken, or none of them.
    #[must_use]
    pub fn verdict(&self, threshold: f64) -> ReorderVerdict {
        let expected = threshold * self.packets as f64;
        if is_more(self.out_of_order, expected) {
            ReorderVerdict::Above
        } else if is_less(self.out_of_order_max(), expected) {
            ReorderVerdict::Below
        } else {
            ReorderVerdict::Unclear
        }
    }

    /// Why the verdict is unclear; `None` if it is not.
    #[must_use]
    pub fn reason(&self, threshold: f64) -> Option<&'static str> {
        let expected = threshold * self.packets as f64;
        let decided =
            is_less(self.out_of_order, expected) || is_more(self.out_of_order_max(), expected);
        (self.verdict(threshold) == ReorderVerdict::Unclear).then_some(match decided {
            true => "nothing tells whether undecided packets were overtaken or retransmitted",
            false => "too few packets",
        })
    }
}

/// Whether so many are surely more than expected.
fn is_more(count: u64, expected: f64) -> bool {
    let count = count as f64;
    count - 2.0 * count.sqrt() > expected
}

/// Whether so many are surely less.
fn is_less(count: u64, expected: f64) -> bool {
    // Nothing seen may still be three expected: that is the 95 % bound.
    const NONE_SEEN: f64 = 3.0;
    let count = count as f64;
    count + 2.0 * count.sqrt() + NONE_SEEN < expected
}

impl ReorderVerdict {
    /// As users read it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Above => "above",
            Self::Below => "below",
            Self::Unclear => "unclear",
        }
    }
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

    fn estimate(packets: u64, out_of_order: u64, undecided: u64) -> ReorderEstimate {
        ReorderEstimate {
            prefix: Prefix::of(std::net::Ipv4Addr::UNSPECIFIED.into(), 24),
            packets,
            out_of_order,
            retransmitted: 0,
            undecided,
            duplicates: 0,
            extent: None,
        }
    }

    #[track_caller]
    fn check_verdict(packets: u64, out_of_order: u64, verdict: ReorderVerdict) {
        let estimate = estimate(packets, out_of_order, 0);
        assert_eq!(estimate.verdict(0.02), verdict, "{out_of_order} of {packets}");
        assert_eq!(estimate.reason(0.02).is_some(), verdict == ReorderVerdict::Unclear);
    }

    #[test]
    fn few_packets_give_no_verdict() {
        check_verdict(0, 0, ReorderVerdict::Unclear);
        check_verdict(10, 1, ReorderVerdict::Unclear);
        check_verdict(100, 4, ReorderVerdict::Unclear);
        check_verdict(100, 9, ReorderVerdict::Above);
        check_verdict(150, 0, ReorderVerdict::Unclear);
        check_verdict(200, 0, ReorderVerdict::Below);
        check_verdict(1_000_000, 20_000, ReorderVerdict::Unclear);
    }

    #[test]
    fn packets_that_are_undecided_count_on_the_safe_side() {
        assert_eq!(estimate(1000, 0, 50).verdict(0.02), ReorderVerdict::Unclear);
        assert!(estimate(1000, 0, 50).reason(0.02).unwrap().contains("undecided"));
        assert_eq!(estimate(1000, 50, 50).verdict(0.02), ReorderVerdict::Above);
        assert_eq!(estimate(1000, 0, 5).verdict(0.02), ReorderVerdict::Below);
        assert_eq!(estimate(1000, 0, 50).fraction_max(), Some(0.05));
    }

    #[test]
    fn names_of_kinds_read_back() {
        for kind in RoundTripKind::ALL {
            assert_eq!(kind.to_string().parse(), Ok(kind));
            assert_eq!(RoundTripKind::ALL[kind as usize], kind);
            assert!(RoundTripKind::REPORTED.contains(&kind));
        }
        assert!("tcp".parse::<RoundTripKind>().unwrap_err().contains("quic-spin"));
    }
}

//! Parts of a kind of round trip: toward whom, or of which protocol.

use std::fmt;

/// A part of the round trips of one kind that is worth its own row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RoundTripPart {
    /// From the point to the server and back: the client asked.
    TowardServers,
    /// From the point to the client and back: the server asked.
    TowardClients,
    /// Requests of HTTP/1 in the clear.
    Http,
    /// Application data of TLS.
    Tls,
    /// Queries of DNS.
    Dns,
    /// Requests over TCP of any other protocol.
    OtherTcp,
}

impl RoundTripPart {
    /// All of them, in the order of their numbers, which are stored: new ones come last.
    pub const ALL: [Self; 6] = [
        Self::TowardServers,
        Self::TowardClients,
        Self::Http,
        Self::Tls,
        Self::Dns,
        Self::OtherTcp,
    ];

    /// As users read it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::TowardServers => "toward-servers",
            Self::TowardClients => "toward-clients",
            Self::Http => "http",
            Self::Tls => "tls",
            Self::Dns => "dns",
            Self::OtherTcp => "other-tcp",
        }
    }
}

impl fmt::Display for RoundTripPart {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

/// What clients waited for until the first byte of a response, over the responses of connections whose
/// handshake was seen. Each connection is its own measure of the network: the shortest round trip
/// that it had, in each of the two legs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FirstByteWait {
    /// Responses whose connection gave both legs.
    pub responses: u64,
    /// From the last byte of the request to the first of the response at the point, in all.
    pub response_ns: u64,
    /// Of that, the network between the point and servers: at least.
    pub toward_servers_ns: u64,
    /// In addition, the network between the point and clients: at least.
    pub toward_clients_ns: u64,
    /// What passed between the server's acknowledgement of a request and its response: servers took
    /// at least that. Nothing where both came together.
    pub server_ns_min: u64,
}

impl FirstByteWait {
    /// Adds a response, whose request was acknowledged after so long, and the two legs of its
    /// connection: toward the server and toward the client.
    pub fn add(&mut self, response_ns: i64, acknowledged_ns: Option<i64>, legs_ns: (i64, i64)) {
        let whole = |ns: i64| u64::try_from(ns).unwrap_or(0);
        self.merge(&Self {
            responses: 1,
            response_ns: whole(response_ns),
            toward_servers_ns: whole(legs_ns.0.min(response_ns)),
            toward_clients_ns: whole(legs_ns.1),
            server_ns_min: acknowledged_ns.map_or(0, |ns| whole(response_ns.saturating_sub(ns))),
        });
    }

    /// Adds those of another.
    pub fn merge(&mut self, other: &Self) {
        self.responses = self.responses.saturating_add(other.responses);
        self.response_ns = self.response_ns.saturating_add(other.response_ns);
        self.toward_servers_ns = self.toward_servers_ns.saturating_add(other.toward_servers_ns);
        self.toward_clients_ns = self.toward_clients_ns.saturating_add(other.toward_clients_ns);
        self.server_ns_min = self.server_ns_min.saturating_add(other.server_ns_min);
    }

    /// How long clients waited in all.
    #[must_use]
    pub const fn total_ns(&self) -> u64 {
        self.response_ns.saturating_add(self.toward_clients_ns)
    }

    /// What servers took of it at most, since the network took no less than at its best.
    #[must_use]
    pub const fn server_ns_max(&self) -> u64 {
        self.response_ns.saturating_sub(self.toward_servers_ns)
    }

    /// Who took more than half of it, if that is certain.
    #[must_use]
    pub const fn mostly(&self) -> Option<WaitedFor> {
        let half_ns = self.total_ns() / 2;
        if self.server_ns_min > half_ns {
            Some(WaitedFor::Server)
        } else if self.server_ns_max() < half_ns {
            Some(WaitedFor::Network)
        } else {
            None
        }
    }
}

/// Who is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitedFor {
    /// The network, on both sides of the point.
    Network,
    /// The server.
    Server,
}

/// In how many connections the spin bit of QUIC can be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpinUse {
    /// It turns as that of a client and its server does.
    pub usable: u64,
    /// It never turned.
    pub constant: u64,
    /// It turned at random.
    pub random: u64,
    /// Too few packets to tell.
    pub undecided: u64,
}

impl SpinUse {
    /// All connections.
    #[must_use]
    pub const fn connections(&self) -> u64 {
        self.usable
            .wrapping_add(self.constant)
            .wrapping_add(self.random)
            .wrapping_add(self.undecided)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_in_the_order_of_their_numbers() {
        for (number, part) in RoundTripPart::ALL.into_iter().enumerate() {
            assert_eq!(part as usize, number);
        }
    }

    #[test]
    fn who_is_waited_for_is_told_only_if_it_is_certain() {
        let mut wait = FirstByteWait::default();
        wait.add(100, None, (30, 20));
        assert_eq!((wait.total_ns(), wait.server_ns_min, wait.server_ns_max()), (120, 0, 70));
        assert_eq!(wait.mostly(), None);
        wait.add(1000, Some(40), (30, 20));
        assert_eq!((wait.server_ns_min, wait.server_ns_max()), (960, 1040));
        assert_eq!(wait.mostly(), Some(WaitedFor::Server));
        wait.add(5000, None, (9000, 2000));
        assert_eq!((wait.total_ns(), wait.server_ns_max()), (8140, 1040), "no more than there was");
        assert_eq!(wait.mostly(), Some(WaitedFor::Network));
    }
}

//! The spin bit of QUIC: a client turns it once per round trip, a server follows.
//!
//! In either direction the time from one change of the bit to the next is a round trip (RFC 9000,
//! section 17.4; RFC 9312, section 4.1). A packet that was overtaken shows the old value and
//! makes two edges where there is none; such edges come too early and are not believed. Where
//! an endpoint does not take part, the bit is constant, which gives nothing, or random, which
//! the check can only thin out.

use twixt_model::Timestamp;

use crate::flow_table::FlowTable;

/// What is known of one direction of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Spin {
    /// A long header was seen: it is QUIC.
    is_quic: bool,
    bit: Option<bool>,
    /// When the bit last changed.
    edge: Option<Timestamp>,
    /// When the client's first Initial passed.
    hello: Option<Timestamp>,
    /// From there to the server's answer: a part of every round trip.
    handshake_ns: i64,
    /// Moving average of accepted round trips; 0 for none.
    usual_ns: i64,
}

/// An edge is early if it comes before this fraction of the usual time.
const EARLY: i64 = 8;
/// Between edges this far apart nothing was sent, rather.
const IDLE_NS: i64 = 10_000_000_000;
/// QUIC is taken for granted at this port, for connections that began before the capture.
const QUIC_PORT: u16 = 443;

/// What a packet with a short header tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// Nothing.
    None,
    /// The bit changed after so long.
    After(i64),
    /// It changed too early to be believed.
    Early,
}

impl FlowTable<Spin> {
    /// A long header passed from client to server (`forward`) or back.
    pub(super) fn heard_long(
        &mut self,
        forward: u64,
        backward: u64,
        by_client: bool,
        time: Timestamp,
    ) {
        if !self.is_kept() {
            return;
        }
        let client = if by_client { forward } else { backward };
        let spin = self.entry(client);
        spin.is_quic = true;
        let hello = *spin.hello.get_or_insert(time);
        if !by_client && spin.handshake_ns == 0 {
            spin.handshake_ns = (time - hello).as_nanos().max(0);
        }
        let handshake_ns = spin.handshake_ns;
        // In a table of one place both directions would fight for it forever.
        let server = self.entry(if by_client { backward } else { forward });
        server.is_quic = true;
        server.handshake_ns = handshake_ns;
    }

    /// What may be a packet with a short header passed.
    #[inline]
    pub(super) fn heard_short(
        &mut self,
        flow: u64,
        ports: [u16; 2],
        bit: bool,
        time: Timestamp,
    ) -> Turn {
        let spin = if self.is_kept() && ports.contains(&QUIC_PORT) {
            self.entry(flow)
        } else {
            match self.find_mut(flow) {
                Some(spin) if spin.is_quic => spin,
                _ => return Turn::None,
            }
        };
        spin.heard(bit, time)
    }
}

impl Spin {
    fn heard(&mut self, bit: bool, time: Timestamp) -> Turn {
        match self.bit {
            None => self.bit = Some(bit),
            Some(known) if known != bit => return self.turn(bit, time),
            Some(_) => {}
        }
        Turn::None
    }

    fn turn(&mut self, bit: bool, time: Timestamp) -> Turn {
        let Some(last) = self.edge else {
            (self.bit, self.edge) = (Some(bit), Some(time));
            return Turn::None;
        };
        let after_ns = (time - last).as_nanos();
        if after_ns <= (self.usual_ns / EARLY).max(self.handshake_ns / 2) {
            return Turn::Early;
        }
        (self.bit, self.edge) = (Some(bit), Some(time));
        if after_ns > IDLE_NS {
            return Turn::None;
        }
        self.usual_ns = match self.usual_ns {
            0 => after_ns,
            usual_ns => usual_ns + (after_ns - usual_ns) / 8,
        };
        Turn::After(after_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLISECOND: i64 = 1_000_000;

    fn heard(spins: &mut FlowTable<Spin>, at_ms: i64, bit: u8) -> Turn {
        let time = Timestamp::from_nanos(at_ms * MILLISECOND);
        spins.heard_short(1, [443, 50_000], bit == 1, time)
    }

    #[track_caller]
    fn check(packets: &[(i64, u8)], expected_ms: &[i64]) {
        let mut spins = FlowTable::new(Some(16));
        let turns =
            packets.iter().filter_map(|&(at_ms, bit)| match heard(&mut spins, at_ms, bit) {
                Turn::After(ns) => Some(ns / MILLISECOND),
                _ => None,
            });
        assert_eq!(turns.collect::<Vec<_>>(), expected_ms);
    }

    #[test]
    fn from_edge_to_edge_is_a_round_trip() {
        check(&[(0, 0), (5, 0), (10, 1), (30, 1), (40, 0), (55, 0), (70, 1)], &[30, 30]);
        check(&[(0, 0), (5, 0), (90, 0)], &[]);
    }

    #[test]
    fn a_packet_that_was_overtaken_makes_no_edge() {
        let overtaken = [(0, 0), (10, 1), (40, 0), (41, 1), (42, 0), (70, 1)];
        check(&overtaken, &[30, 30]);
    }

    #[test]
    fn silence_is_not_a_round_trip() {
        check(&[(0, 0), (10, 1), (20_011, 0), (20_041, 1)], &[30]);
    }

    #[test]
    fn elsewhere_a_long_header_must_have_been_seen() {
        let mut spins = FlowTable::new(None);
        let at = |ms: i64| Timestamp::from_nanos(ms * MILLISECOND);
        let ports = [4000, 50_000];
        assert_eq!(spins.heard_short(1, ports, false, at(0)), Turn::None);
        assert!(spins.find(1).is_none());
        spins.heard_long(1, 2, true, at(1));
        spins.heard_long(2, 1, false, at(21));
        spins.heard_short(1, ports, false, at(22));
        spins.heard_short(1, ports, true, at(30));
        assert_eq!(spins.heard_short(1, ports, false, at(35)), Turn::Early, "a random bit");
        assert_eq!(spins.heard_short(1, ports, false, at(60)), Turn::After(30 * MILLISECOND));
    }
}

//! The spin bit of QUIC: a client turns it once per round trip, a server follows.
//!
//! In either direction the time from one change of the bit to the next is a round trip (RFC 9000,
//! section 17.4; RFC 9312, section 4.1). A packet that was overtaken shows the old value and
//! makes two edges where there is none; such edges come too early and are not believed. An endpoint that
//! does not take part leaves the bit as it is, or sets every packet's at random, and the other end
//! follows that. So a connection gives nothing before the bit is known to spin in every
//! direction that was seen, and nothing after it is known not to.

use twixt_model::{SpinUse, Timestamp};

use crate::flow_table::FlowTable;

/// What is known of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Spin {
    /// A long header was seen: it is QUIC.
    is_quic: bool,
    /// When the client's first Initial passed.
    hello: Option<Timestamp>,
    /// From there to the server's answer: a part of every round trip.
    handshake_ns: i64,
    directions: [Direction; 2],
    /// `None` before the first packet with a short header.
    bit: Option<Bit>,
}

/// What is known of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Direction {
    /// Packets after the first, and how many of them differed from the one before.
    followed: u32,
    changed: u32,
    last: Option<bool>,
    /// As the last edge that was believed left it.
    bit: Option<bool>,
    /// When that was.
    edge: Option<Timestamp>,
    /// Moving average of accepted round trips; 0 for none.
    usual_ns: i64,
}

/// What the bit does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Bit {
    #[default]
    Undecided,
    Constant,
    Random,
    Spins,
}

/// An edge is early if it comes before this fraction of the usual time.
const EARLY: i64 = 8;
/// Between edges this far apart nothing was sent, rather.
const IDLE_NS: i64 = 10_000_000_000;
/// QUIC is taken for granted at this port, for connections that began before the capture.
const QUIC_PORT: u16 = 443;
/// A random bit changes from packet to packet as often as not: n packets make n / 2 changes with a
/// deviation of √n / 2. A bit that is four deviations away is not random; that is asked after every
/// packet, so two or three would be too few.
const DEVIATIONS: u64 = 4;
/// Packets after which a bit that may be random counts as random: fewer could hardly show that it
/// spins.
const RANDOM_AFTER: u32 = 64;

/// A packet with what may be a short header.
#[derive(Clone, Copy, Debug)]
pub(super) struct Short {
    pub(super) ports: [u16; 2],
    pub(super) bit: bool,
    /// Which way it goes, of two.
    pub(super) canonical: bool,
    pub(super) time: Timestamp,
}

/// What a packet with a short header tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// Nothing; it is no packet of QUIC, perhaps.
    None,
    /// It belongs to a connection.
    Followed,
    /// The bit changed after so long.
    After(i64),
    /// It changed too early to be believed, or it is not known to spin.
    Unclear,
}

impl FlowTable<Spin> {
    /// A long header passed, from the client or to it.
    pub(super) fn heard_long(&mut self, connection: u64, by_client: bool, time: Timestamp) {
        if !self.is_kept() {
            return;
        }
        let spin = self.entry(connection);
        spin.is_quic = true;
        let hello = *spin.hello.get_or_insert(time);
        if !by_client && spin.handshake_ns == 0 {
            spin.handshake_ns = (time - hello).as_nanos().max(0);
        }
    }

    /// What may be a packet with a short header passed. Changes what is counted of connections.
    #[inline]
    pub(super) fn heard_short(
        &mut self,
        connection: u64,
        short: Short,
        uses: &mut SpinUse,
    ) -> Turn {
        let spin = if self.is_kept() && short.ports.contains(&QUIC_PORT) {
            self.entry(connection)
        } else {
            match self.find_mut(connection) {
                Some(spin) if spin.is_quic => spin,
                _ => return Turn::None,
            }
        };
        let turn = spin.heard(short);
        let bit = spin.judge();
        if spin.bit != Some(bit) {
            if let Some(before) = spin.bit.replace(bit) {
                *before.count(uses) = before.count(uses).wrapping_sub(1);
            }
            *bit.count(uses) = bit.count(uses).wrapping_add(1);
        }
        match turn {
            Turn::After(_) if bit != Bit::Spins => Turn::Unclear,
            turn => turn,
        }
    }
}

impl Spin {
    fn heard(&mut self, short: Short) -> Turn {
        let direction = &mut self.directions[usize::from(short.canonical)];
        if let Some(last) = direction.last.replace(short.bit) {
            direction.followed = direction.followed.saturating_add(1);
            direction.changed = direction.changed.saturating_add(u32::from(last != short.bit));
        }
        match direction.bit {
            None => direction.bit = Some(short.bit),
            Some(known) if known != short.bit => {
                return direction.turn(short.bit, short.time, self.handshake_ns);
            }
            Some(_) => {}
        }
        Turn::Followed
    }

    /// The bit spins if it does in every direction that was seen.
    fn judge(&self) -> Bit {
        let seen = self.directions.iter().filter(|direction| direction.last.is_some());
        let mut bits = seen.map(Direction::judge);
        let first = bits.next().unwrap_or_default();
        bits.fold(first, |one, other| match (one, other) {
            (Bit::Random, _) | (_, Bit::Random) => Bit::Random,
            (Bit::Constant, _) | (_, Bit::Constant) => Bit::Constant,
            (Bit::Undecided, _) | (_, Bit::Undecided) => Bit::Undecided,
            (Bit::Spins, Bit::Spins) => Bit::Spins,
        })
    }
}

impl Bit {
    fn count(self, uses: &mut SpinUse) -> &mut u64 {
        match self {
            Self::Undecided => &mut uses.undecided,
            Self::Constant => &mut uses.constant,
            Self::Random => &mut uses.random,
            Self::Spins => &mut uses.usable,
        }
    }
}

impl Direction {
    fn judge(&self) -> Bit {
        let (packets, changes) = (u64::from(self.followed), u64::from(self.changed));
        let is_random = packets.abs_diff(2 * changes).pow(2) <= DEVIATIONS.pow(2) * packets;
        match (is_random, changes) {
            (true, _) if self.followed >= RANDOM_AFTER => Bit::Random,
            (true, _) => Bit::Undecided,
            (false, 0) => Bit::Constant,
            (false, _) => Bit::Spins,
        }
    }

    fn turn(&mut self, bit: bool, time: Timestamp, handshake_ns: i64) -> Turn {
        let Some(last) = self.edge else {
            (self.bit, self.edge) = (Some(bit), Some(time));
            return Turn::Followed;
        };
        let after_ns = (time - last).as_nanos();
        if after_ns <= (self.usual_ns / EARLY).max(handshake_ns / 2) {
            return Turn::Unclear;
        }
        (self.bit, self.edge) = (Some(bit), Some(time));
        if after_ns > IDLE_NS {
            return Turn::Followed;
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
    use twixt_model::mix;

    use super::*;

    const MILLISECOND: i64 = 1_000_000;

    fn short(at_ms: i64, canonical: bool, bit: bool) -> Short {
        let time = Timestamp::from_nanos(at_ms * MILLISECOND);
        Short { ports: [443, 50_000], bit, canonical, time }
    }

    /// Checks the round trips in milliseconds, and how often the bit can be used.
    #[track_caller]
    fn check(packets: impl Iterator<Item = Short>, expected_ms: &[i64], uses: SpinUse) {
        let (mut spins, mut found) = (FlowTable::new(Some(16)), SpinUse::default());
        let mut turns = Vec::new();
        for packet in packets {
            if let Turn::After(ns) = spins.heard_short(1, packet, &mut found) {
                turns.push(ns / MILLISECOND);
            }
        }
        assert_eq!((turns.as_slice(), found), (expected_ms, uses));
    }

    const USABLE: SpinUse = SpinUse { usable: 1, constant: 0, random: 0, undecided: 0 };
    const CONSTANT: SpinUse = SpinUse { usable: 0, constant: 1, ..USABLE };
    const RANDOM: SpinUse = SpinUse { usable: 0, random: 1, ..USABLE };
    const UNDECIDED: SpinUse = SpinUse { usable: 0, undecided: 1, ..USABLE };

    /// A packet a millisecond, which turns every 30.
    fn spinning(ms: std::ops::Range<i64>, canonical: bool) -> impl Iterator<Item = Short> {
        ms.map(move |at| short(at, canonical, at / 30 % 2 == 1))
    }

    #[test]
    fn from_edge_to_edge_is_a_round_trip() {
        check(spinning(0..100, true), &[30, 30], USABLE);
        check((0..100).map(|at| short(at, true, false)), &[], CONSTANT);
        check((0..10).map(|at| short(at, true, false)), &[], UNDECIDED);
    }

    #[test]
    fn a_packet_that_was_overtaken_makes_no_edge() {
        let swapped = spinning(0..100, true).map(|one| match one.time.as_nanos() / MILLISECOND {
            62 => Short { bit: true, ..one },
            _ => one,
        });
        check(swapped, &[30, 30], USABLE);
    }

    #[test]
    fn silence_is_not_a_round_trip() {
        let pause = [short(20_011, true, false), short(20_041, true, true)];
        check(spinning(0..40, true).chain(pause), &[30], USABLE);
    }

    #[test]
    fn a_random_bit_gives_nothing_in_either_direction() {
        let random = |at: i64| mix(at as u64) & 1 == 1;
        check((0..400).map(|at| short(at, true, random(at))), &[], RANDOM);
        // The server's bit is random; the client follows it, and sends ten packets for each.
        let both = (0..900).flat_map(|at| {
            let server = (at % 10 == 0).then(|| short(at, false, random(at / 10)));
            server.into_iter().chain([short(at, true, !random(at / 10))])
        });
        check(both, &[], RANDOM);
    }

    #[test]
    fn both_directions_must_spin() {
        let constant = |at: i64| [short(at, false, false)];
        let client = spinning(0..400, true).enumerate();
        let both = client.flat_map(|(at, one)| constant(at as i64).into_iter().chain([one]));
        check(both, &[], CONSTANT);
    }

    #[test]
    fn elsewhere_a_long_header_must_have_been_seen() {
        let mut spins = FlowTable::new(None);
        let mut uses = SpinUse::default();
        let at = |ms: i64| Timestamp::from_nanos(ms * MILLISECOND);
        let elsewhere = |short: Short| Short { ports: [4000, 50_000], ..short };
        let first = elsewhere(short(0, true, false));
        assert_eq!(spins.heard_short(1, first, &mut uses), Turn::None);
        assert!(spins.find(1).is_none());
        spins.heard_long(1, true, at(1));
        spins.heard_long(1, false, at(21));
        for packet in spinning(22..85, true).map(elsewhere) {
            spins.heard_short(1, packet, &mut uses);
        }
        let early = spins.heard_short(1, elsewhere(short(65, true, true)), &mut uses);
        assert_eq!((early, uses), (Turn::Unclear, USABLE), "within half of the handshake");
    }
}

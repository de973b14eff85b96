//! What one point knows of one packet.

use crate::{Delay, FlowHash, FlowKey, PacketDigest, Timestamp};

/// Which measurement equivalence class a packet belongs to: an index into the configured
/// classes. Without classes everything is class 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClassId(pub u16);

/// Stands for the pair of prefixes that a packet's source and destination lie in. Packets that
/// take other ways through a network mostly differ in it; those of one flow never do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(pub u16);

/// Identical packets so close to each other at one point are copies that the capture, or a mirror, made of one.
pub const COPIED_WITHIN: Delay = Delay::from_nanos(100_000);

/// One packet at one point, as small as it can be: batches of these live in the first-level
/// cache, and copies of them near an epoch's boundary travel with the sealed epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Observation {
    /// When the point saw it, on the point's own clock.
    pub time: Timestamp,
    /// Stands for the packet. 0 when no algorithm asked for it.
    pub digest: PacketDigest,
    /// Stands for its directed flow. 0 when no algorithm asked for it.
    pub flow: FlowHash,
    /// Length of the measured IP packet in bytes, as its header says.
    pub length: u32,
    /// Its class.
    pub class: ClassId,
    /// Stands for its prefixes. 0 when no algorithm asked for it.
    pub group: GroupId,
}

/// What only some algorithms ask for. Computed, and carried beside the observation, for those.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Detail {
    /// The directed flow.
    pub key: FlowKey,
    /// Fields of the TCP header, for TCP.
    pub tcp: Option<TcpFields>,
    /// Identification of IPv4, which most senders count up; 0 where there is none.
    pub identification: u16,
    /// A part of an exchange that another protocol begins or ends with this packet.
    pub exchange: Option<Exchange>,
    /// When it was sent, by the sender's clock, if the packet carries that, or if it is known
    /// otherwise.
    pub sent: Option<Timestamp>,
}

/// What of a packet the algorithms in use read; the rest is not computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// The packet digest; 0 otherwise.
    pub digest: bool,
    /// The flow hash; 0 otherwise.
    pub flow: bool,
    /// The flow key and fields of TCP: a [`Detail`] beside the observation.
    pub detail: bool,
    /// The group of its prefixes; 0 otherwise.
    pub group: bool,
    /// With `detail`, whether the packet asks or answers something; `None` otherwise.
    pub exchange: bool,
}

impl Needs {
    /// What at least one of the two reads.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self {
            digest: self.digest | other.digest,
            flow: self.flow | other.flow,
            detail: self.detail | other.detail,
            group: self.group | other.group,
            exchange: self.exchange | other.exchange,
        }
    }
}

/// A packet that asks something or answers: what of it tells which answer belongs to which
/// question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exchange {
    /// A message of DNS.
    Dns {
        /// Its transaction.
        id: u16,
        /// An answer, not a query.
        response: bool,
    },
    /// A message of NTP between client and server.
    Ntp {
        /// The client's transmit timestamp, which the server sends back.
        stamp: u64,
        /// An answer, not a query.
        response: bool,
    },
    /// An echo message of ICMP.
    IcmpEcho {
        /// Identifier and sequence number.
        id: u32,
        /// A reply, not a request.
        reply: bool,
    },
    /// A packet of QUIC with a long header.
    QuicLong {
        /// An Initial packet.
        initial: bool,
        /// Stands for the connection id that its sender chose for itself.
        source_id: u64,
        /// Stands for the connection id of its receiver.
        destination_id: u64,
    },
    /// What may be a packet of QUIC with a short header.
    QuicShort {
        /// The spin bit.
        spin: bool,
    },
    /// A segment that a request of HTTP/1 begins with.
    HttpRequest {
        /// Another one follows in the same segment.
        pipelined: bool,
    },
    /// A segment that a response of HTTP/1 begins with.
    HttpResponse,
    /// A segment that a record of TLS begins with.
    Tls {
        /// A record of application data begins in it. In TLS 1.3 that may be the rest of the
        /// handshake.
        application: bool,
        /// A record of the handshake begins in it, one that changes the cipher included.
        handshake: bool,
        /// What follows in later segments belongs to a record of application data.
        ends_in_application: bool,
    },
}

/// The part of a TCP header that one-point algorithms read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpFields {
    /// Sequence number.
    pub sequence: u32,
    /// Acknowledgement number; meaningful with the ACK flag.
    pub acknowledgement: u32,
    /// The eight flag bits, see [`tcp_flag`].
    pub flags: u8,
    /// Bytes of payload, by the lengths in the headers.
    pub payload_bytes: u32,
    /// TSval and TSecr of the timestamp option.
    pub timestamps: Option<(u32, u32)>,
}

/// Bits of [`TcpFields::flags`].
pub mod tcp_flag {
    /// No more data from the sender.
    pub const FIN: u8 = 0x01;
    /// Opens a connection.
    pub const SYN: u8 = 0x02;
    /// Resets a connection.
    pub const RST: u8 = 0x04;
    /// The acknowledgement number is meaningful.
    pub const ACK: u8 = 0x10;
}

/// A borrowed run of observations. `details` is empty, or as long as `observations`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Batch<'a> {
    /// The packets, in the order in which the point saw them.
    pub observations: &'a [Observation],
    /// What only some algorithms ask for, packet by packet.
    pub details: &'a [Detail],
}

impl<'a> Batch<'a> {
    /// Observations alone.
    #[must_use]
    pub const fn of(observations: &'a [Observation]) -> Self {
        Self { observations, details: &[] }
    }

    /// How many packets.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.observations.len()
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.observations.is_empty()
    }

    /// The packets `from..to`.
    #[must_use]
    pub fn slice(&self, from: usize, to: usize) -> Self {
        let details = if self.details.is_empty() { &[] } else { &self.details[from..to] };
        Self { observations: &self.observations[from..to], details }
    }
}

/// Owns what a [`Batch`] borrows; reused from batch to batch.
#[derive(Clone, Debug, Default)]
pub struct BatchBuffer {
    /// Those behind the count are left from earlier batches, to be written over in place, field by
    /// field: an observation that is built elsewhere and then copied is read before all of
    /// it is written, and the processor waits.
    observations: Vec<Observation>,
    count: usize, // <= observations.len()
    /// As many as observations, if any; likewise.
    details: Vec<Detail>,
    details_count: usize, // <= details.len()
}

impl BatchBuffer {
    /// Packets per batch at most: their observations take 8 KiB, a quarter of a common
    /// first-level cache.
    pub const MAX: usize = 256;

    /// An empty buffer with room for a whole batch.
    #[must_use]
    pub fn new() -> Self {
        let observations = vec![Observation::default(); Self::MAX];
        Self { observations, ..Self::default() }
    }

    /// Adds a packet without details.
    #[inline(always)]
    pub fn push(&mut self, observation: Observation) {
        if self.count == self.observations.len() {
            self.more_observations();
        }
        let Observation { time, digest, flow, length, class, group } = observation;
        let place = &mut self.observations[self.count];
        place.time = time;
        place.digest = digest;
        place.flow = flow;
        place.length = length;
        place.class = class;
        place.group = group;
        self.count += 1;
    }

    /// Adds a packet with details. A buffer holds packets of one kind only.
    #[inline]
    pub fn push_detailed(&mut self, observation: Observation, detail: Detail) {
        self.push_with(observation, |place| *place = detail);
    }

    /// The same, with details that are written where they stay: details are large, and copying
    /// them costs more than finding them. `write` must set all that will be read; what it leaves
    /// is of some earlier packet.
    #[inline(always)]
    pub fn push_with(&mut self, observation: Observation, write: impl FnOnce(&mut Detail)) {
        if self.details_count == self.details.len() {
            self.more_details();
        }
        write(&mut self.details[self.details_count]);
        self.details_count += 1;
        self.push(observation);
    }

    #[cold]
    #[inline(never)]
    fn more_observations(&mut self) {
        self.observations.resize(self.observations.len() + Self::MAX, Observation::default());
    }

    #[cold]
    #[inline(never)]
    fn more_details(&mut self) {
        self.details.resize(self.details.len() + Self::MAX, Detail::default());
    }

    /// Whether the batch should be handed on.
    #[must_use]
    #[inline]
    pub fn is_full(&self) -> bool {
        self.count >= Self::MAX
    }

    /// How many packets.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The packets so far.
    #[must_use]
    pub fn as_batch(&self) -> Batch<'_> {
        Batch {
            observations: &self.observations[..self.count],
            details: &self.details[..self.details_count],
        }
    }

    /// Forgets the packets, keeps the memory.
    pub fn clear(&mut self) {
        self.count = 0;
        self.details_count = 0;
    }
}

const _: () = assert!(size_of::<Observation>() <= 32, "a batch must fit the first-level cache");
const _: () =
    assert!(size_of::<Detail>() <= 128, "details of a batch must fit the second-level cache");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_cuts_observations_and_details_alike() {
        let mut buffer = BatchBuffer::new();
        for time in 0..5 {
            let observation =
                Observation { time: Timestamp::from_nanos(time), ..Observation::default() };
            buffer.push_detailed(observation, Detail::default());
        }
        let slice = buffer.as_batch().slice(1, 3);
        assert_eq!(slice.len(), 2);
        assert_eq!(slice.details.len(), 2);
        assert_eq!(slice.observations[0].time.as_nanos(), 1);
        assert!(Batch::of(&[]).slice(0, 0).is_empty());
    }
}

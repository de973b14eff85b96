//! Which packets and flows are metered, decided by a hash so that every point decides alike.
//!
//! The functions are those of PSAMP (RFC 5475), so that other meters can be configured to
//! select the same packets, and one of our own that is keyed. Selection never uses the bits that
//! label a packet: a label must not depend on having been selected.
//!
//! Nothing here knows what becomes of what is selected.

mod bob;
mod counts;
mod input;
mod ipsx;

pub use bob::bob;
pub use counts::SelectionCounts;
pub use ipsx::{IpsxInput, ipsx};

use std::fmt;
use std::str::FromStr;

use twixt_model::{FlowHash, FlowKey, PacketDigest};

use crate::packet::Packet;

/// Keeps the bits that select apart from those that label.
const SELECTION_SALT: u64 = 0x7073_616d_7073_656c;

/// Payload bytes that a selection hash covers at most.
pub const SELECTION_PAYLOAD_BYTES_MAX: u16 = 256;

/// A hash function that selects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SelectionFunction {
    /// Bits derived from the keyed packet digest or flow hash: senders who do not know the key
    /// cannot choose what is metered.
    #[default]
    Keyed,
    /// BOB, Jenkins' hash of 1996, 32 bits.
    Bob,
    /// IPSX, 16 bits; IPv4 packets only.
    Ipsx,
    /// CRC-32. Linear: regular input gives regular output.
    Crc32,
}

impl SelectionFunction {
    /// Every function.
    pub const ALL: [Self; 4] = [Self::Keyed, Self::Bob, Self::Ipsx, Self::Crc32];

    /// The name in commands and output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Keyed => "keyed",
            Self::Bob => "bob",
            Self::Ipsx => "ipsx",
            Self::Crc32 => "crc32",
        }
    }

    /// The number in the IANA registry of PSAMP selectors, which also names it in the element
    /// selectorAlgorithm; ours has none.
    #[must_use]
    pub const fn selector_id(self) -> Option<u16> {
        match self {
            Self::Keyed => None,
            Self::Bob => Some(6),
            Self::Ipsx => Some(7),
            Self::Crc32 => Some(8),
        }
    }

    /// The largest value that it gives.
    #[must_use]
    pub const fn output_max(self) -> u32 {
        match self {
            Self::Ipsx => u16::MAX as u32,
            Self::Keyed | Self::Bob | Self::Crc32 => u32::MAX,
        }
    }
}

impl fmt::Display for SelectionFunction {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for SelectionFunction {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|function| function.name() == text);
        known.ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("unknown name {text:?}; known are: {names}")
        })
    }
}

/// Hash values that select, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HashRange {
    /// The lowest.
    pub lowest: u32,
    /// The highest.
    pub highest: u32,
}

/// Which bytes of a packet are hashed, and from where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SelectorInput {
    /// Where the function starts: its initialiser. Not used by IPSX and by ours.
    pub initialiser: u32,
    /// First byte of the IP payload that is hashed.
    pub payload_offset: u16,
    /// How many of them; at most [`SELECTION_PAYLOAD_BYTES_MAX`].
    pub payload_bytes: u16,
}

impl Default for SelectorInput {
    /// Twenty bytes from the start: without identification, IPv6 needs them to tell packets of a
    /// flow apart.
    fn default() -> Self {
        Self { initialiser: 0, payload_offset: 0, payload_bytes: 20 }
    }
}

/// Why packets cannot be selected so.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SelectorError {
    /// The range is empty or outside what the function gives. Give a range within its output.
    #[error("{function} gives 0 to {}: {lowest} to {highest} is not a valid range", function.output_max())]
    Range {
        /// Which function.
        function: SelectionFunction,
        /// The lowest value asked for.
        lowest: u32,
        /// The highest value asked for.
        highest: u32,
    },
    /// So few would be selected that none are, or more than there are. Use a rate above 0, up to 1.
    #[error("a rate of {rate} is not in the range above 0 and up to 1")]
    Rate {
        /// The rate.
        rate: f64,
    },
    /// Each packet would cost too much. Hash fewer bytes.
    #[error("{found} payload bytes, at most {SELECTION_PAYLOAD_BYTES_MAX} are hashed")]
    PayloadBytes {
        /// How many were asked for.
        found: u16,
    },
}

/// What a selector decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selection {
    /// The hash lies in the range.
    Selected,
    /// It does not.
    Passed,
    /// There is no hash: IPSX of what is no IPv4 packet, or the capture lacks bytes that are
    /// hashed. Other points may have decided otherwise.
    Undefined,
}

/// Selects packets or flows by a hash of what no router changes.
///
/// For BOB and CRC-32 the input is, of IPv4: identification, flags and fragment offset (bytes
/// 4..8 of the header), source, destination; of IPv6: payload length, next header (of the fixed
/// header), source, destination; then the chosen bytes of the IP payload, or as many as the packet
/// has (RFC 5475, section 6.2). The payload begins behind the IPv4 header with its options, or
/// behind the IPv6 extension headers. It may hold transport checksums, which differ where a
/// capture was taken before the hardware filled them in: choose other bytes there, or the keyed
/// function, which leaves them out.
///
/// Of flows, the input is source, destination, ports and protocol, in this order and big-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selector {
    function: SelectionFunction,
    range: HashRange,
    input: SelectorInput,
}

impl Selector {
    /// Selects hashes in a range.
    ///
    /// # Errors
    ///
    /// If the range is none of the function's, or the input too long.
    pub fn new(
        function: SelectionFunction,
        range: HashRange,
        input: SelectorInput,
    ) -> Result<Self, SelectorError> {
        let HashRange { lowest, highest } = range;
        if lowest > highest || highest > function.output_max() {
            return Err(SelectorError::Range { function, lowest, highest });
        }
        if input.payload_bytes > SELECTION_PAYLOAD_BYTES_MAX {
            return Err(SelectorError::PayloadBytes { found: input.payload_bytes });
        }
        Ok(Self { function, range, input })
    }

    /// Selects this part of all hashes, from 0 on. The function's resolution rounds the rate to
    /// its nearest, but selects at least one hash.
    ///
    /// # Errors
    ///
    /// If the rate is not above 0 and up to 1, or the input too long.
    pub fn at_rate(
        function: SelectionFunction,
        rate: f64,
        input: SelectorInput,
    ) -> Result<Self, SelectorError> {
        if !(rate > 0.0 && rate <= 1.0) {
            return Err(SelectorError::Rate { rate });
        }
        let values = (rate * (f64::from(function.output_max()) + 1.0)).round().max(1.0);
        Self::new(function, HashRange { lowest: 0, highest: (values - 1.0) as u32 }, input)
    }

    /// The function.
    #[must_use]
    pub const fn function(&self) -> SelectionFunction {
        self.function
    }

    /// The hashes that select.
    #[must_use]
    pub const fn range(&self) -> HashRange {
        self.range
    }

    /// What is hashed.
    #[must_use]
    pub const fn input(&self) -> SelectorInput {
        self.input
    }

    /// The part of all hashes that selects. What is achieved depends on the traffic: see
    /// [`SelectionCounts::achieved_rate`].
    #[must_use]
    pub fn rate(&self) -> f64 {
        let values = f64::from(self.range.highest - self.range.lowest) + 1.0;
        values / (f64::from(self.function.output_max()) + 1.0)
    }

    /// Decides about a packet. `digest` is its packet digest; only the keyed function uses it.
    #[must_use]
    pub fn packet(&self, packet: &Packet, frame: &[u8], digest: PacketDigest) -> Selection {
        let hash = match self.function {
            SelectionFunction::Keyed => Some(keyed(digest.derive(SELECTION_SALT))),
            SelectionFunction::Ipsx => input::ipsx_of(packet, frame).map(u32::from),
            SelectionFunction::Bob | SelectionFunction::Crc32 => {
                input::of_packet(packet, frame, self.input).map(|bytes| self.hash(bytes.as_slice()))
            }
        };
        self.decide(hash)
    }

    /// Decides about a flow. `flow` is its flow hash; only the keyed function uses it. IPSX is
    /// not defined for flows.
    #[must_use]
    pub fn flow(&self, key: &FlowKey, flow: FlowHash) -> Selection {
        let hash = match self.function {
            SelectionFunction::Keyed => Some(keyed(flow.derive(SELECTION_SALT))),
            SelectionFunction::Ipsx => None,
            SelectionFunction::Bob | SelectionFunction::Crc32 => {
                Some(self.hash(input::of_flow(key).as_slice()))
            }
        };
        self.decide(hash)
    }

    fn hash(&self, bytes: &[u8]) -> u32 {
        let initialiser = self.input.initialiser;
        match self.function {
            SelectionFunction::Bob => bob(bytes, initialiser),
            _ => crc32(bytes, initialiser),
        }
    }

    fn decide(&self, hash: Option<u32>) -> Selection {
        match hash {
            None => Selection::Undefined,
            Some(hash) if (self.range.lowest..=self.range.highest).contains(&hash) => {
                Selection::Selected
            }
            Some(_) => Selection::Passed,
        }
    }
}

/// CRC-32 as of Ethernet, continued from the checksum `initialiser`; 0 is that of nothing.
#[must_use]
pub fn crc32(bytes: &[u8], initialiser: u32) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(initialiser);
    hasher.update(bytes);
    hasher.finalize()
}

fn keyed(bits: u64) -> u32 {
    (bits >> 32) as u32
}

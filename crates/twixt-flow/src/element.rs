//! The information elements that we read and write, by their numbers in the IANA registry.
//!
//! NetFlow v9 calls them field types; below 128 the numbers mean the same.

/// What a field holds: a number, and who defined it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Element {
    /// 0 is IANA.
    pub(crate) enterprise: u32,
    pub(crate) number: u16,
}

impl Element {
    pub(crate) const fn iana(number: u16) -> Self {
        Self { enterprise: 0, number }
    }
}

/// The enterprise number that is set aside for examples (RFC 5612). Ours until one is assigned.
pub const EXAMPLE_ENTERPRISE: u32 = 32_473;

/// Marks elements of the opposite direction (RFC 5103).
pub(crate) const REVERSE_ENTERPRISE: u32 = 29_305;

/// Elements that twixt defines under its enterprise number. Never used for something else.
pub mod enterprise_element {
    /// Label of a record's last packet, 8 bytes; that of the first is digestHashValue.
    pub const LAST_LABEL: u16 = 1;
    /// Number of the class, 2 bytes.
    pub const CLASS: u16 = 2;
    /// Id of the key of a keyed selector, 4 bytes.
    pub const SELECTOR_KEY_ID: u16 = 3;
}

macro_rules! elements {
    ($($name:ident = $number:literal),+ $(,)?) => { $(pub(crate) const $name: u16 = $number;)+ };
}

elements! {
    OCTET_DELTA_COUNT = 1,
    PACKET_DELTA_COUNT = 2,
    PROTOCOL = 4,
    TCP_CONTROL_BITS = 6,
    SOURCE_PORT = 7,
    SOURCE_IPV4 = 8,
    DESTINATION_PORT = 11,
    DESTINATION_IPV4 = 12,
    FLOW_END_UPTIME = 21,
    FLOW_START_UPTIME = 22,
    SOURCE_IPV6 = 27,
    DESTINATION_IPV6 = 28,
    SAMPLING_INTERVAL = 34,
    SAMPLER_RANDOM_INTERVAL = 50,
    OCTET_TOTAL_COUNT = 85,
    PACKET_TOTAL_COUNT = 86,
    FLOW_END_REASON = 136,
    OBSERVATION_POINT_ID = 138,
    FLOW_START_SECONDS = 150,
    FLOW_END_SECONDS = 151,
    FLOW_START_MILLISECONDS = 152,
    FLOW_END_MILLISECONDS = 153,
    FLOW_START_MICROSECONDS = 154,
    FLOW_END_MICROSECONDS = 155,
    FLOW_START_NANOSECONDS = 156,
    FLOW_END_NANOSECONDS = 157,
    FLOW_START_DELTA_MICROSECONDS = 158,
    FLOW_END_DELTA_MICROSECONDS = 159,
    SYSTEM_INIT_MILLISECONDS = 160,
    SELECTOR_ID = 302,
    SELECTOR_ALGORITHM = 304,
    SAMPLING_PACKET_INTERVAL = 305,
    SELECTOR_PACKETS_OBSERVED = 318,
    SELECTOR_PACKETS_SELECTED = 319,
    DIGEST_HASH_VALUE = 326,
    HASH_IP_PAYLOAD_OFFSET = 327,
    HASH_IP_PAYLOAD_SIZE = 328,
    HASH_OUTPUT_RANGE_MIN = 329,
    HASH_OUTPUT_RANGE_MAX = 330,
    HASH_SELECTED_RANGE_MIN = 331,
    HASH_SELECTED_RANGE_MAX = 332,
    HASH_INITIALISER_VALUE = 334,
    DELAY_MEAN_MICROSECONDS = 530,
    DELAY_MIN_MICROSECONDS = 531,
    DELAY_MAX_MICROSECONDS = 532,
    DELAY_SUM_MICROSECONDS = 533,
}

/// In which elements times are written; each has a pair of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TimeUnit {
    /// flowStartNanoseconds and flowEndNanoseconds.
    Nanoseconds,
    /// flowStartMicroseconds and flowEndMicroseconds.
    Microseconds,
    /// flowStartMilliseconds and flowEndMilliseconds: what every collector reads.
    Milliseconds,
}

impl TimeUnit {
    /// How exact times in it are.
    #[must_use]
    pub const fn resolution_ns(self) -> u64 {
        match self {
            Self::Nanoseconds => 1,
            Self::Microseconds => 1_000,
            Self::Milliseconds => 1_000_000,
        }
    }

    /// The coarsest unit that loses nothing of times so exact.
    pub(crate) const fn for_resolution(resolution_ns: u64) -> Self {
        match resolution_ns {
            1_000_000.. => Self::Milliseconds,
            1_000.. => Self::Microseconds,
            _ => Self::Nanoseconds,
        }
    }

    /// The element of the start; that of the end follows it.
    pub(crate) const fn start_element(self) -> u16 {
        match self {
            Self::Nanoseconds => FLOW_START_NANOSECONDS,
            Self::Microseconds => FLOW_START_MICROSECONDS,
            Self::Milliseconds => FLOW_START_MILLISECONDS,
        }
    }
}

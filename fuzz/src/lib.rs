//! Hostile bytes for every parser.
//!
//! Each harness takes arbitrary bytes, does all that the product does with such bytes, and panics
//! if something is wrong that a panic-free parser could still hide, such as a value that does not
//! survive being written and read. libFuzzer drives the harnesses through `fuzz_targets/`; a plain
//! test drives them over the files of `seeds/`.

mod bundle;
mod capture;
mod filter;
mod frame;
mod log;
mod message;
mod records;
mod synopsis;
mod topology;

pub use bundle::bundle;
pub use capture::capture;
pub use filter::filter;
pub use frame::{LINK_TYPES, frame};
pub use log::log;
pub use message::message;
pub use records::records;
pub use synopsis::synopsis;
pub use topology::topology;

use xxhash_rust::xxh3::xxh3_64;

/// What became of the bytes. Fuzzing ignores it; seeds carry it in their names, so that a seed
/// which no longer reaches what it was made for is found out.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FuzzResult {
    /// They are what the parser reads, wholly or up to some damage.
    Accepted,
    /// They are something else.
    Refused,
}

impl FuzzResult {
    fn of(accepted: bool) -> Self {
        if accepted { Self::Accepted } else { Self::Refused }
    }
}

/// A harness.
pub type Harness = fn(&[u8]) -> FuzzResult;

/// Every harness by its name, which is also that of its target and of its folder of seeds.
pub const HARNESSES: &[(&str, Harness)] = &[
    ("bundle", bundle),
    ("capture", capture),
    ("filter", filter),
    ("frame", frame),
    ("log", log),
    ("message", message),
    ("records", records),
    ("synopsis", synopsis),
    ("topology", topology),
];

/// `bytes` with the checksum that makes a decoder look at them: no fuzzer guesses one.
fn checksummed(mut bytes: Vec<u8>) -> Vec<u8> {
    let checksum = xxh3_64(&bytes);
    bytes.extend_from_slice(&checksum.to_le_bytes());
    bytes
}

#[cfg(test)]
mod tests;

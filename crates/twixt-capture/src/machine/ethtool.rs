//! Questions to the driver of an adapter, and what the answers mean; linux/ethtool.h.
//!
//! Every answer is a C struct that begins with the number of the question and, but for texts, has
//! members of four bytes only. Here it is an array of words.

use super::{AdapterRings, AdapterStamps, Offloads};

/// Which driver it is: `struct ethtool_drvinfo`.
pub(super) const DRIVER: u32 = 0x03;
/// Sizes of its rings: `struct ethtool_ringparam`.
pub(super) const RINGS: u32 = 0x10;
/// Segmentation of TCP by the adapter: `struct ethtool_value`, as the next ones.
pub(super) const TSO: u32 = 0x1e;
/// Segmentation by the kernel.
pub(super) const GSO: u32 = 0x23;
/// Flags, of which one is [`FLAG_LRO`].
pub(super) const FLAGS: u32 = 0x25;
/// Joining by the kernel.
pub(super) const GRO: u32 = 0x2b;
/// Who can take times: `struct ethtool_ts_info`.
pub(super) const STAMPS: u32 = 0x41;

const FLAG_LRO: u32 = 1 << 15;
/// Of what `so_timestamping` says: times by the adapter, of received frames.
const STAMPS_RECEIVED: u32 = libc::SOF_TIMESTAMPING_RX_HARDWARE;

/// Words of each answer.
pub(super) type ValueWords = [u32; 2];
pub(super) type DriverWords = [u32; 49];
pub(super) type RingWords = [u32; 9];
pub(super) type StampWords = [u32; 11];

/// The driver's name: 32 bytes after the first word, ended by a zero.
pub(super) fn driver(words: &DriverWords) -> Option<String> {
    let bytes: Vec<u8> = words[1..9].iter().flat_map(|word| word.to_ne_bytes()).collect();
    let name = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
    let name = String::from_utf8_lossy(name).into_owned();
    (!name.is_empty()).then_some(name)
}

/// Cmd, then the most for received, mini, jumbo and sent frames, then what is set of each.
pub(super) const fn rings(words: &RingWords) -> Option<AdapterRings> {
    let rings = AdapterRings {
        received: words[5],
        received_max: words[1],
        sent: words[8],
        sent_max: words[4],
    };
    // Virtual adapters answer with zeros.
    if rings.received_max == 0 { None } else { Some(rings) }
}

/// Cmd, abilities, number of the clock or -1, kinds for sent frames, three reserved, kinds for
/// received frames.
pub(super) fn stamps(words: &StampWords) -> AdapterStamps {
    let [abilities, clock, kinds_received] = [words[1], words[2], words[7]];
    let stamps_all = kinds_received & 1 << libc::HWTSTAMP_FILTER_ALL != 0;
    AdapterStamps {
        can_stamp_all_received: stamps_all && abilities & STAMPS_RECEIVED != 0,
        clock: u32::try_from(clock.cast_signed()).ok(),
    }
}

/// Each answer may be missing.
pub(super) fn offloads(ask: impl Fn(u32) -> Option<ValueWords>) -> Offloads {
    let is_on = |question, mask: u32| ask(question).map(|words| words[1] & mask != 0);
    Offloads {
        gro: is_on(GRO, u32::MAX),
        gso: is_on(GSO, u32::MAX),
        tso: is_on(TSO, u32::MAX),
        lro: is_on(FLAGS, FLAG_LRO),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_has_a_name() {
        let mut words = [0; 49];
        assert_eq!(driver(&words), None);
        words[1] = u32::from_ne_bytes(*b"ixgb");
        words[2] = u32::from_ne_bytes(*b"e\0xx");
        assert_eq!(driver(&words).as_deref(), Some("ixgbe"));
        // Nothing says that it must end.
        assert_eq!(driver(&[0x4141_4141; 49]).map(|name| name.len()), Some(32));
    }

    #[test]
    fn rings_of_size_zero_are_none() {
        let set = AdapterRings { received: 512, received_max: 4096, sent: 256, sent_max: 2048 };
        assert_eq!(rings(&[RINGS, 4096, 0, 0, 2048, 512, 0, 0, 256]), Some(set));
        assert_eq!(rings(&[RINGS, 0, 0, 0, 0, 0, 0, 0, 0]), None);
    }

    #[track_caller]
    fn check_stamps(abilities: u32, clock: i32, kinds: u32, expected: (bool, Option<u32>)) {
        let mut words = [0; 11];
        [words[1], words[2], words[7]] = [abilities, clock.cast_unsigned(), kinds];
        let stamps = stamps(&words);
        assert_eq!((stamps.can_stamp_all_received, stamps.clock), expected);
    }

    #[test]
    fn an_adapter_stamps_all_frames_some_or_none() {
        check_stamps(0b10_1000, -1, 0, (false, None)); // veth: software only
        check_stamps(0b101_1111, 0, 0b11, (true, Some(0))); // none and all
        check_stamps(0b101_1111, 3, 0b1_0001, (false, Some(3))); // some PTP messages only
    }

    #[test]
    fn offloads_are_on_off_or_unknown() {
        let answers = |question| match question {
            GRO => Some([GRO, 1]),
            TSO => Some([TSO, 0]),
            FLAGS => Some([FLAGS, 1 << 15 | 1 << 7]),
            _ => None,
        };
        let expected = Offloads { gro: Some(true), gso: None, tso: Some(false), lro: Some(true) };
        assert_eq!(offloads(answers), expected);
    }
}

//! Records of what most traffic consists of: TCP and UDP with a whole header.
//!
//! The same words as [`record::words`](super::record::words) under a mask, but computed in one
//! straight line: no branch asks whether it is TCP or UDP, nor where a packet ends, which no
//! processor could foresee.

use twixt_model::protocol;

use super::mask::Mask;
use super::record::{
    HEADER_AT, OPTIONS_BYTES, PAYLOAD_BYTES_MAX, TCP_CHECKSUM, UDP_CHECKSUM, Words, first_bytes,
    ip_words, word,
};
use crate::packet::Packet;
use crate::window::Window;

const TCP_BYTES: usize = 20;
const UDP_BYTES: usize = 8;
/// Header bytes that a record holds at most.
const KEPT_MAX: usize = TCP_BYTES + OPTIONS_BYTES;

/// Which bits of a record are kept.
#[derive(Clone, Debug)]
pub(super) struct UsualMasks {
    ip: [u64; HEADER_AT / 8],
    /// By how many bytes of header there are.
    header: [[u64; 4]; KEPT_MAX + 1],
    /// By how many bytes of payload there are.
    payload: [[u64; 3]; PAYLOAD_BYTES_MAX as usize + 1],
}

impl UsualMasks {
    /// What `mask` keeps.
    pub(super) fn new(mask: &Mask) -> Self {
        let [ip @ .., _, _, _, _, _, _, _] = mask.keep;
        let [_, _, _, _, _, header @ .., _, _, _] = mask.keep;
        let [.., first, second, third] = mask.keep;
        Self {
            ip,
            header: std::array::from_fn(|kept| header_mask(header, kept)),
            payload: std::array::from_fn(|kept| up_to([first, second, third], kept)),
        }
    }

    /// The masked record; `None` for packets that are not of this kind.
    #[inline(always)]
    pub(super) fn words(&self, packet: &Packet, window: Window<'_>) -> Option<Words> {
        let (is_tcp, is_udp) = (packet.protocol == protocol::TCP, packet.protocol == protocol::UDP);
        let (at, end) = (packet.transport_at as usize, packet.end as usize);
        let fixed_bytes = if is_tcp { TCP_BYTES } else { UDP_BYTES };
        let is_usual = (is_tcp | is_udp) & packet.is_first_fragment();
        if !is_usual | (end < at + fixed_bytes) {
            return None;
        }
        let header: &[u8; KEPT_MAX] = window.chunk(at)?;
        let tcp_bytes = (usize::from(header[12] >> 4) * 4).max(TCP_BYTES);
        let header_bytes = if is_tcp { tcp_bytes } else { UDP_BYTES };
        let payload: &[u8; PAYLOAD_BYTES_MAX as usize] = window.chunk(at + header_bytes)?;
        let kept = if packet.is_syn() { TCP_BYTES } else { header_bytes };
        let header_mask = &self.header[kept.min(KEPT_MAX).min(end - at)];
        let payload_bytes = end.saturating_sub(at + header_bytes);
        let payload_mask = &self.payload[payload_bytes.min(PAYLOAD_BYTES_MAX as usize)];
        let header = |index: usize| word(header, index) & header_mask[index];
        let payload = |index: usize| word(payload, index) & payload_mask[index];
        let ip = ip_words(packet);
        Some([
            ip[0] & self.ip[0],
            ip[1] & self.ip[1],
            ip[2] & self.ip[2],
            ip[3] & self.ip[3],
            ip[4] & self.ip[4],
            header(0),
            header(1),
            header(2),
            header(3),
            payload(0),
            payload(1),
            payload(2),
        ])
    }
}

/// What is kept of a header of which so many bytes are there: of UDP 8, of TCP more.
fn header_mask(keep: [u64; 4], kept: usize) -> [u64; 4] {
    let mut keep = up_to(keep, kept);
    if kept == UDP_BYTES {
        keep[0] &= !UDP_CHECKSUM;
    } else {
        keep[2] &= !TCP_CHECKSUM;
    }
    keep
}

fn up_to<const WORDS: usize>(keep: [u64; WORDS], count: usize) -> [u64; WORDS] {
    std::array::from_fn(|index| keep[index] & first_bytes(count, index))
}

#[cfg(test)]
mod tests {
    use twixt_model::{DigestProfile, mix};

    use super::super::record;
    use super::*;
    use crate::window::Space;
    use crate::{LinkType, ParseOptions, parse};

    /// A frame of raw IPv4 drawn from `seed`: TCP or UDP, any data offset, flags and content, and
    /// a capture that may end anywhere.
    fn drawn(seed: u64) -> Vec<u8> {
        let mut frame: Vec<u8> = (0..120).map(|at| mix(seed << 8 | at) as u8).collect();
        let draw = mix(!seed);
        let length = 28 + (draw % 90) as u8;
        frame[..4].copy_from_slice(&[0x45, 0, 0, length]);
        frame[6..8].fill(0);
        frame[9] = if draw >> 32 & 1 == 0 { protocol::TCP } else { protocol::UDP };
        frame.truncate(28 + (draw >> 40) as usize % 92);
        frame
    }

    #[test]
    fn equal_to_the_general_record() {
        let mut usual = 0;
        for seed in 0..20_000 {
            let profile = DigestProfile::ALL[seed as usize % DigestProfile::ALL.len()];
            let mask = Mask::new(profile, (seed % 25) as u8);
            let frame = drawn(seed);
            let packet = parse(LinkType::RAW, &frame, ParseOptions::default()).unwrap();
            let general = mask.applied(&packet, record::words(&packet, &frame));
            let mut space = Space::default();
            let window = Window::of((&frame).into(), &mut space);
            if let Some(words) = UsualMasks::new(&mask).words(&packet, window) {
                assert_eq!(words, general, "seed {seed}, {profile:?}, {packet:?}");
                usual += 1;
            }
        }
        assert!(usual > 15_000, "{usual} of 20000");
    }
}

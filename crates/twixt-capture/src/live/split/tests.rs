//! Super-packets made by hand. That they are split as the kernel does is tested on interfaces.

use proptest::prelude::*;

use super::*;

const ROOM: usize = 16;
const TCP_V4: u8 = 1;
const TCP_V6: u8 = 4;
const UDP: u8 = 5;

/// Ethernet, IPv4 with identification 5, TCP with sequence 100 and all flags, payload 0, 1, 2, …
fn tcp(payload_bytes: u8) -> Vec<u8> {
    let mut frame = vec![0; 12];
    frame.extend([8, 0, 0x45, 0, 0, 0, 0, 5, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    frame.extend([0, 80, 0, 81, 0, 0, 0, 100, 0, 0, 0, 0, 0x50, 0xff, 0, 0, 0, 0, 0, 0]);
    frame.extend(0..payload_bytes);
    frame
}

struct Case<'a> {
    frame: &'a [u8],
    kind: u8,
    piece_bytes: u16,
    wire_length: usize,
    tag: Option<[u8; 4]>,
}

impl<'a> Case<'a> {
    fn new(frame: &'a [u8], kind: u8, piece_bytes: u16) -> Self {
        Self { frame, kind, piece_bytes, wire_length: frame.len(), tag: None }
    }

    fn split(&self, flows: &mut CountingFlows) -> Result<Vec<(Vec<u8>, u32)>, Unsplittable> {
        let mut bytes = [&[0xee; ROOM], self.frame].concat();
        let mut pieces = Vec::new();
        let super_packet = SuperPacket {
            bytes: &mut bytes,
            start: ROOM,
            wire_length: self.wire_length as u32,
            has_ethernet: true,
            tag: self.tag,
            offload: Offload { kind: self.kind, piece_bytes: self.piece_bytes },
        };
        let count = super_packet
            .split(flows, |piece| pieces.push((piece.bytes.to_vec(), piece.wire_length)))?;
        assert_eq!(count as usize, pieces.len());
        Ok(pieces)
    }

    #[track_caller]
    fn pieces(&self) -> Vec<(Vec<u8>, u32)> {
        self.split(&mut CountingFlows::new()).expect("it can be split")
    }

    #[track_caller]
    fn refused(&self) {
        assert_eq!(self.split(&mut CountingFlows::new()), Err(Unsplittable));
    }
}

#[test]
fn every_packet_has_headers_of_its_own() {
    let pieces = Case::new(&tcp(25), TCP_V4, 10).pieces();
    let described: Vec<_> = pieces
        .iter()
        .map(|(bytes, wire_length)| {
            let payload = &bytes[54..];
            (bytes[17], bytes[19], bytes[41], bytes[47], payload[0], payload.len(), *wire_length)
        })
        .collect();
    // IP length, identification, sequence, flags, payload; all but FIN and PSH, then but CWR.
    assert_eq!(
        described,
        [
            (50, 5, 100, 0b1111_0110, 0, 10, 64),
            (50, 6, 110, 0b0111_0110, 10, 10, 64),
            (45, 7, 120, 0b0111_1111, 20, 5, 59),
        ]
    );
}

#[test]
fn a_tag_is_in_every_packet() {
    let frame = tcp(20);
    let tag = Some([0x81, 0, 0, 7]);
    for (bytes, wire_length) in (Case { tag, ..Case::new(&frame, TCP_V4, 10) }).pieces() {
        assert_eq!(&bytes[12..18], [0x81, 0, 0, 7, 8, 0]);
        assert_eq!((bytes.len(), wire_length), (68, 68));
    }
}

#[test]
fn packets_beyond_what_was_captured_have_headers_only() {
    let frame = tcp(14);
    let case = Case { wire_length: 54 + 30, ..Case::new(&frame, TCP_V4, 10) };
    let lengths: Vec<_> =
        case.pieces().iter().map(|(bytes, wire_length)| (bytes.len(), *wire_length)).collect();
    assert_eq!(lengths, [(64, 64), (58, 64), (54, 64)]);
    assert_eq!(case.pieces()[2].0[41], 120, "they have sequence numbers all the same");
}

#[test]
fn the_option_of_jumbo_packets_is_left_out() {
    let mut frame = vec![0; 12];
    frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 0, 0, 64]);
    frame.extend([1; 32]);
    frame.extend([6, 0, 0xc2, 4, 0, 0, 0, 48]);
    frame.extend(&tcp(20)[34..]);
    let pieces = Case::new(&frame, TCP_V6, 10).pieces();
    assert_eq!(pieces.len(), 2);
    for (bytes, _) in pieces {
        assert_eq!(&bytes[12..22], [0x86, 0xdd, 0x60, 0, 0, 0, 0, 30, 6, 64]);
        assert_eq!(bytes.len(), 14 + 40 + 20 + 10);
    }
}

#[test]
fn a_flow_without_identification_keeps_it_so() {
    let mut frame = tcp(20);
    frame[19] = 0;
    let identifications = |flows: &mut CountingFlows, frame: &[u8]| -> Vec<u8> {
        let pieces = Case::new(frame, TCP_V4, 10).split(flows).unwrap();
        pieces.iter().map(|(bytes, _)| bytes[19]).collect()
    };
    let mut flows = CountingFlows::new();
    assert_eq!(identifications(&mut flows, &frame), [0, 0]);
    assert_eq!(identifications(&mut flows, &tcp(20)), [5, 6]);
    assert_eq!(identifications(&mut flows, &frame), [0, 1], "it was seen to count");
    frame[20] = 0;
    assert_eq!(identifications(&mut CountingFlows::new(), &frame), [0, 1], "may be fragmented");
}

#[test]
fn what_cannot_be_split_stays_whole() {
    let frame = tcp(20);
    Case::new(&frame, 3, 10).refused();
    Case::new(&frame, UDP, 10).refused();
    Case::new(&frame, TCP_V4, 0).refused();
    Case::new(&frame[..53], TCP_V4, 10).refused();
    Case::new(&frame[..54], TCP_V4, 10).refused();
    Case { wire_length: 10, ..Case::new(&frame, TCP_V4, 10) }.refused();
    Case { wire_length: 1 << 20, ..Case::new(&frame, TCP_V4, 1) }.refused();
    Case { wire_length: 1 << 20, ..Case::new(&frame, TCP_V4, u16::MAX) }.refused();
    let with = |at: usize, value: u8| {
        let mut frame = tcp(20);
        frame[at] = value;
        frame
    };
    Case::new(&with(14, 0x44), TCP_V4, 10).refused(); // IP header of 16 bytes
    Case::new(&with(20, 0x20), TCP_V4, 10).refused(); // a fragment
    Case::new(&with(23, 47), TCP_V4, 10).refused(); // a tunnel
    Case::new(&with(46, 0x40), TCP_V4, 10).refused(); // TCP header of 16 bytes
    Case::new(&with(13, 6), TCP_V4, 10).refused(); // not IP
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(
        mut noise in proptest::collection::vec(any::<u8>(), 0..300),
        keep in 0_usize..60,
        kind in 0_u8..8,
        piece_bytes in 0_u16..200,
        more in 0_usize..3000,
        tagged in any::<bool>(),
    ) {
        // The front of a right one, so that some get far.
        let front = tcp(0);
        let kept = keep.min(front.len()).min(noise.len());
        noise[..kept].copy_from_slice(&front[..kept]);
        let tag = tagged.then_some([0x81, 0, 0, 7]);
        let case =
            Case { wire_length: noise.len() + more, tag, ..Case::new(&noise, kind, piece_bytes) };
        if let Ok(pieces) = case.split(&mut CountingFlows::new()) {
            for (bytes, wire_length) in pieces {
                prop_assert!(bytes.len() <= wire_length as usize);
            }
        }
    }
}

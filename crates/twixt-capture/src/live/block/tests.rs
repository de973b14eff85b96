//! Blocks made by hand, right and wrong.

use proptest::prelude::*;

use super::*;

const FIRST: usize = 16;
const FRAME_AT: u16 = 96;

/// A block of frames as the kernel writes them, all of the same bytes.
fn block(frames: &[&[u8]]) -> Vec<u8> {
    let mut block = vec![0; FIRST];
    for (number, frame) in frames.iter().enumerate() {
        let slot_bytes = (usize::from(FRAME_AT) + frame.len()).next_multiple_of(16);
        let step = if number + 1 == frames.len() { 0 } else { slot_bytes };
        let mut slot = vec![0; slot_bytes];
        put(&mut slot, 0, &(step as u32).to_ne_bytes());
        put(&mut slot, 4, &7_u32.to_ne_bytes());
        put(&mut slot, 8, &9_u32.to_ne_bytes());
        put(&mut slot, 12, &(frame.len() as u32).to_ne_bytes());
        put(&mut slot, 16, &1500_u32.to_ne_bytes());
        put(&mut slot, 24, &FRAME_AT.to_ne_bytes());
        slot[PACKET_TYPE_AT] = 4;
        put(&mut slot, usize::from(FRAME_AT), frame);
        block.extend(slot);
    }
    block
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

/// Frames that are found, or that the block is malformed, after how many.
fn walk(mut block: Vec<u8>, frames: u32) -> Result<Vec<Vec<u8>>, usize> {
    let mut found = Vec::new();
    let walked = for_each_slot(&mut block, Some(FIRST), frames, |slot| {
        found.push(slot.bytes[slot.start..].to_vec());
    });
    walked.map_err(|_| found.len())?;
    Ok(found)
}

#[test]
fn frames_are_found_one_after_the_other() {
    let frames: [&[u8]; 3] = [b"first frame", b"", b"third"];
    assert_eq!(walk(block(&frames), 3).unwrap(), frames.map(<[u8]>::to_vec));
    assert_eq!(walk(block(&frames), 0).unwrap().len(), 0);
}

#[test]
fn what_the_kernel_says_is_read() {
    let mut bytes = block(&[b"frame"]);
    let status = libc::TP_STATUS_VLAN_VALID | libc::TP_STATUS_VLAN_TPID_VALID;
    put(&mut bytes, FIRST + 20, &status.to_ne_bytes());
    put(&mut bytes, FIRST + 32, &0x2007_u32.to_ne_bytes());
    put(&mut bytes, FIRST + 36, &0x88a8_u16.to_ne_bytes());
    put(&mut bytes, FIRST + usize::from(FRAME_AT) - 9, &[5]);
    put(&mut bytes, FIRST + usize::from(FRAME_AT) - 6, &1000_u16.to_ne_bytes());
    for_each_slot(&mut bytes, Some(FIRST), 1, |slot| {
        assert_eq!((slot.seconds, slot.nanoseconds), (7, 9));
        assert_eq!((slot.wire_length, slot.packet_type), (1500, 4));
        assert_eq!(slot.tag, Some([0x88, 0xa8, 0x20, 0x07]));
        assert_eq!(slot.offload, Offload { kind: 5, piece_bytes: 1000 });
    })
    .unwrap();
}

#[track_caller]
fn check_tag(frame: &[u8], has_ethernet: bool, expected: &[u8]) {
    let mut bytes = [&[0; 20], frame].concat();
    let slot = Slot {
        seconds: 0,
        nanoseconds: 0,
        status: 0,
        wire_length: 100,
        tag: Some([0x81, 0, 0, 7]),
        packet_type: 0,
        offload: Offload::default(),
        bytes: &mut bytes,
        start: 20,
    };
    let (tagged, wire_length) = slot.with_tag(has_ethernet);
    assert_eq!(tagged, expected);
    assert_eq!(wire_length as usize, 100 + expected.len() - frame.len());
}

#[test]
fn tags_go_between_addresses_and_type() {
    check_tag(b"addresses...type", true, b"addresses...\x81\x00\x00\x07type");
    check_tag(b"addresses...", true, b"addresses...\x81\x00\x00\x07");
    check_tag(b"too short", true, b"too short");
    check_tag(b"without addresses", false, b"without addresses");
}

/// Changes one field of the second of three frames.
#[track_caller]
fn check_malformed(at: usize, value: &[u8]) {
    let mut bytes = block(&[b"first", b"second", b"third"]);
    let second = FIRST + (usize::from(FRAME_AT) + 5).next_multiple_of(16);
    put(&mut bytes, second + at, value);
    assert_eq!(walk(bytes, 3), Err(1));
}

#[test]
fn lengths_that_contradict_each_other_end_the_block() {
    check_malformed(0, &0_u32.to_ne_bytes());
    check_malformed(0, &8_u32.to_ne_bytes());
    check_malformed(0, &u32::MAX.to_ne_bytes());
    check_malformed(12, &1000_u32.to_ne_bytes());
    check_malformed(12, &u32::MAX.to_ne_bytes());
    check_malformed(24, &0_u16.to_ne_bytes());
    check_malformed(24, &70_u16.to_ne_bytes());
    check_malformed(24, &u16::MAX.to_ne_bytes());
    assert_eq!(walk(block(&[b"only"]), 2), Err(0));
    assert_eq!(walk(block(&[b"only"]), u32::MAX), Err(0));
    let mut bytes = block(&[b"only"]);
    assert_eq!(for_each_slot(&mut bytes, None, 1, |_| {}), Err(Malformed));
    assert_eq!(for_each_slot(&mut bytes, Some(1 << 20), 1, |_| {}), Err(Malformed));
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(
        mut bytes in proptest::collection::vec(any::<u8>(), 0..400),
        small in proptest::collection::vec((0_usize..400, 0_u8..3), 0..200),
        first in 0_usize..420,
        frames in 0_u32..9,
    ) {
        // Mostly small numbers, so that some lengths fit.
        for (at, value) in small {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = value;
            }
        }
        let _ = for_each_slot(&mut bytes, Some(first), frames, |slot| {
            slot.with_tag(true);
        });
    }
}

//! The pcap format and its dialects.

use twixt_capture::ByteOrder::{self, Big, Little};
use twixt_capture::{Ending, MAX_FRAME_BYTES, PcapWriter, SourceCounts};
use twixt_model::Timestamp;

use crate::file::build::{Pcap, Seen, open, read, seen};

const MICROSECONDS: u32 = 0xa1b2_c3d4;
const NANOSECONDS: u32 = 0xa1b2_3c4d;
const KUZNETZOV: u32 = 0xa1b2_cd34;

#[track_caller]
fn check(file: Pcap, frames: &[Seen], counts: SourceCounts) {
    let (found, ending, found_counts) = read(&file.bytes);
    assert_eq!(found, frames);
    assert_eq!(ending, Ending::Complete);
    let bytes = frames.iter().map(|frame| frame.bytes.len() as u64).sum();
    assert_eq!(found_counts, SourceCounts { frames: frames.len() as u64, bytes, ..counts });
}

#[test]
fn both_byte_orders_and_both_resolutions() {
    for order in [Little, Big] {
        let file = |magic| Pcap::new(order, magic);
        let counts = SourceCounts::default();
        check(file(MICROSECONDS), &[], counts);
        check(
            file(MICROSECONDS).record(1_700_000_000, 123_456, b"abc", 60).record(7, 0, b"", 0),
            &[seen(1_700_000_000_123_456_000, b"abc", 60), seen(7_000_000_000, b"", 0)],
            counts,
        );
        check(
            file(NANOSECONDS).record(1_700_000_000, 123_456_789, b"abc", 60),
            &[seen(1_700_000_000_123_456_789, b"abc", 60)],
            counts,
        );
    }
}

#[test]
fn the_header_is_told() {
    let told = |order: ByteOrder, magic, snap_length| {
        let file = Pcap::with_header(order, magic, (2, 4), snap_length, 0xf000_0071);
        let file = open(&file.bytes).unwrap();
        let interface = file.interfaces().next().unwrap().clone();
        let resolution = interface.resolution.to_string();
        (file.byte_order(), resolution, interface.snap_length, interface.link_type)
    };
    assert_eq!(told(Little, MICROSECONDS, 96), (Little, "1 µs".to_owned(), Some(96), 0x71));
    assert_eq!(told(Big, NANOSECONDS, 0), (Big, "1 ns".to_owned(), None, 0x71));
}

#[test]
fn seconds_are_unsigned() {
    check(
        Pcap::new(Little, NANOSECONDS).record(u32::MAX, 999_999_999, b"a", 1),
        &[seen(4_294_967_295_999_999_999, b"a", 1)],
        SourceCounts::default(),
    );
}

#[test]
fn a_fraction_of_more_than_a_second_is_carried_and_counted() {
    let counts = SourceCounts { odd_times: 1, ..SourceCounts::default() };
    check(
        Pcap::new(Little, MICROSECONDS).record(5, 1_000_001, b"a", 1).record(5, 999_999, b"a", 1),
        &[seen(6_000_001_000, b"a", 1), seen(5_999_999_000, b"a", 1)],
        counts,
    );
    check(
        Pcap::new(Little, MICROSECONDS).record(u32::MAX, u32::MAX, b"a", 1),
        &[seen(i64::from(u32::MAX) * 1_000_001_000, b"a", 1)],
        counts,
    );
    check(
        Pcap::new(Big, NANOSECONDS).record(5, 1_000_000_000, b"a", 1),
        &[seen(6_000_000_000, b"a", 1)],
        counts,
    );
}

#[test]
fn odd_lengths_are_tolerated_and_counted() {
    let file = Pcap::with_header(Little, MICROSECONDS, (2, 4), 2, 1);
    check(
        file.record(1, 0, b"abc", 2).record(1, 0, b"ab", 9),
        &[seen(1_000_000_000, b"abc", 3), seen(1_000_000_000, b"ab", 9)],
        SourceCounts { longer_than_wire: 1, longer_than_snap: 1, ..SourceCounts::default() },
    );
}

#[test]
fn old_versions_may_swap_the_lengths() {
    let file = Pcap::with_header(Little, MICROSECONDS, (2, 3), 100, 1);
    check(
        file.raw(&[1, 0, 60, 3], b"abc").raw(&[1, 0, 3, 60], b"abc"),
        &[seen(1_000_000_000, b"abc", 60), seen(1_000_000_000, b"abc", 60)],
        SourceCounts::default(),
    );
}

#[test]
fn kuznetzov_has_longer_record_headers() {
    check(
        Pcap::new(Big, KUZNETZOV).raw(&[1, 2, 3, 60, 77, 88], b"abc").raw(&[1, 3, 0, 0, 7, 8], b""),
        &[seen(1_000_002_000, b"abc", 60), seen(1_000_003_000, b"", 0)],
        SourceCounts::default(),
    );
}

#[test]
fn an_absurd_length_is_damage_and_keeps_what_came_before() {
    let file = |link_type, captured| {
        let file = Pcap::with_header(Little, MICROSECONDS, (2, 4), 100, link_type);
        read(&file.record(1, 0, b"abc", 3).raw(&[1, 0, captured, captured], b"x").bytes)
    };
    let (frames, ending, _) = file(1, MAX_FRAME_BYTES + 1);
    assert_eq!(frames.len(), 1);
    let detail = "a packet of 262145 bytes, at most 262144 are possible".to_owned();
    assert_eq!(ending, Ending::Damaged { offset: 24 + 19, detail });
    assert!(matches!(file(1, MAX_FRAME_BYTES).1, Ending::Truncated { offset: 43, .. }));
    assert!(matches!(file(249, MAX_FRAME_BYTES + 1).1, Ending::Truncated { offset: 43, .. }));
    assert!(matches!(file(249, u32::MAX).1, Ending::Damaged { offset: 43, .. }));
}

#[test]
fn what_is_written_is_read_again() {
    let mut writer = PcapWriter::new(Vec::new(), 113, 10).unwrap();
    let mut expected = Vec::new();
    for number in 0..5_000_u32 {
        let nanos = i64::from(number) * 858_993_317_003_001;
        let frame = vec![number as u8; number as usize % 20];
        writer.write(Timestamp::from_nanos(nanos), &frame, 20 + number).unwrap();
        let kept = &frame[..frame.len().min(10)];
        expected.push(Seen { link_type: 113, ..seen(nanos, kept, 20 + number) });
    }
    writer.flush().unwrap();
    let (found, ending, counts) = read(&writer.into_inner());
    assert_eq!(found, expected);
    assert_eq!(ending, Ending::Complete);
    assert_eq!((counts.frames, counts.odd_times, counts.dropped), (5_000, 0, None));
}

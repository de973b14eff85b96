//! The pcapng format.

use twixt_capture::ByteOrder::{Big, Little};
use twixt_capture::{Ending, FrameDirection, MAX_INTERFACES, SourceCounts};

use crate::file::build::{Pcapng, Seen, open, read, seen};

#[track_caller]
fn check(file: Pcapng, frames: &[Seen], counts: SourceCounts) {
    let (found, ending, found_counts) = read(&file.bytes);
    assert_eq!(found, frames);
    assert_eq!(ending, Ending::Complete);
    let bytes = frames.iter().map(|frame| frame.bytes.len() as u64).sum();
    assert_eq!(found_counts, SourceCounts { frames: frames.len() as u64, bytes, ..counts });
}

#[track_caller]
fn check_time(resolution: u8, offset: Option<i64>, units: u64, nanos: i64) {
    for order in [Little, Big] {
        let file = Pcapng::new(order).interface(1, |body| {
            let body = body.option(9, &[resolution]);
            match (offset, order) {
                (None, _) => body,
                (Some(offset), Little) => body.option(14, &offset.to_le_bytes()),
                (Some(offset), Big) => body.option(14, &offset.to_be_bytes()),
            }
        });
        check(file.enhanced(0, units, b"a"), &[seen(nanos, b"a", 1)], SourceCounts::default());
    }
}

#[test]
fn every_resolution_and_offset() {
    check_time(0, None, 1_700_000_000, 1_700_000_000_000_000_000);
    check_time(3, None, 1_700_000_000_001, 1_700_000_000_001_000_000);
    check_time(6, None, 1_700_000_000_000_001, 1_700_000_000_000_001_000);
    check_time(9, None, 1_700_000_000_000_000_001, 1_700_000_000_000_000_001);
    check_time(12, None, 17_000_000_000_000_001_999, 17_000_000_000_000_001);
    check_time(0x80 + 10, None, 1_700_000_000 * 1024 + 256, 1_700_000_000_250_000_000);
    check_time(0x80 + 20, None, (1_700_000_000 << 20) + (1 << 18), 1_700_000_000_250_000_000);
    check_time(0x80 + 32, None, (1_700_000_000 << 32) + (1 << 30), 1_700_000_000_250_000_000);
    check_time(6, Some(100), 5, 100_000_005_000);
    check_time(6, Some(-100), 5, -99_999_995_000);
    check_time(9, Some(-1_700_000_000), 1_700_000_000_000_000_007, 7);
}

#[test]
fn without_a_resolution_times_are_microseconds() {
    check(
        Pcapng::new(Little).interface(1, |body| body).enhanced(0, 1_700_000_000_123_456, b"abcde"),
        &[seen(1_700_000_000_123_456_000, b"abcde", 5)],
        SourceCounts::default(),
    );
}

#[test]
fn a_time_beyond_all_times_is_counted() {
    check(
        Pcapng::new(Little).resolution(1, 0).enhanced(0, u64::MAX, b"a"),
        &[seen(i64::MAX, b"a", 1)],
        SourceCounts { odd_times: 1, ..SourceCounts::default() },
    );
}

#[test]
fn interfaces_differ_and_are_told() {
    let file = Pcapng::new(Big)
        .interface(1, |body| body.option(2, b"eth0").option(9, &[9]))
        .interface(113, |body| body.option(2, b"any\0"))
        .enhanced(1, 3, b"b")
        .enhanced(0, 3, b"a");
    let told: Vec<_> = open(&file.bytes)
        .unwrap()
        .interfaces()
        .map(|interface| {
            let name = interface.name.clone().unwrap_or_default();
            format!(
                "{name} {} {:?} {}",
                interface.link_type, interface.snap_length, interface.resolution
            )
        })
        .collect();
    assert_eq!(told, ["eth0 1 Some(100) 1 ns", "any 113 Some(100) 1 µs"]);
    let second = Seen { link_type: 113, interface: 1, ..seen(3_000, b"b", 1) };
    check(file, &[second, seen(3, b"a", 1)], SourceCounts::default());
}

#[test]
fn a_section_begins_anew_in_its_own_byte_order() {
    let file = Pcapng::new(Little)
        .resolution(1, 9)
        .enhanced(0, 5, b"first")
        .section(Big)
        .resolution(101, 6)
        .enhanced(0, 5, b"second")
        .enhanced(1, 5, b"not described in this section");
    check(
        file,
        &[seen(5, b"first", 5), Seen { link_type: 101, interface: 1, ..seen(5_000, b"second", 6) }],
        SourceCounts { skipped_without_interface: 1, ..SourceCounts::default() },
    );
}

#[test]
fn flags_tell_the_direction() {
    for (flags, direction) in [
        (0_u32, None),
        (1, Some(FrameDirection::Inbound)),
        (2, Some(FrameDirection::Outbound)),
        (3, None),
        (0xffff_fffd, Some(FrameDirection::Inbound)),
    ] {
        let file = Pcapng::new(Big).interface(1, |body| body).enhanced_with(0, 1, b"abc", |body| {
            body.option(1, b"a comment").option(2, &flags.to_be_bytes()).u32(0)
        });
        let frame = Seen { direction, ..seen(1_000, b"abc", 3) };
        check(file, &[frame], SourceCounts::default());
    }
}

#[test]
fn obsolete_packets_are_read() {
    let file = Pcapng::new(Little).interface(1, |body| body).resolution(113, 9);
    let packet = |dropped| {
        let body = file.body().u16(1).u16(dropped).u32(0).u32(7).u32(2).u32(60).padded(b"ab");
        body.option(2, &2_u32.to_le_bytes()).u32(0)
    };
    let frame = Seen {
        link_type: 113,
        interface: 1,
        direction: Some(FrameDirection::Outbound),
        ..seen(7, b"ab", 60)
    };
    check(
        file.clone().block(2, packet(u16::MAX)),
        std::slice::from_ref(&frame),
        SourceCounts::default(),
    );
    let dropped = SourceCounts { dropped: Some(3), ..SourceCounts::default() };
    check(file.clone().block(2, packet(3)), &[frame], dropped);
}

#[test]
fn a_packet_without_time_is_skipped() {
    let file = Pcapng::new(Little).interface(1, |body| body);
    let body = file.body().u32(3).padded(b"abc");
    check(
        file.block(3, body).enhanced(0, 1, b"a"),
        &[seen(1_000, b"a", 1)],
        SourceCounts { skipped_without_time: 1, ..SourceCounts::default() },
    );
}

#[test]
fn drops_are_told_by_statistics_and_by_packets() {
    let file = Pcapng::new(Little).interface(1, |body| body).interface(1, |body| body);
    let statistics = |interface, drops: u64| {
        let body = file.body().u32(interface).u64(0).option(4, &9_u64.to_le_bytes());
        body.option(5, &drops.to_le_bytes()).option(7, &1_u64.to_le_bytes()).u32(0)
    };
    let dropped = |dropped| SourceCounts { dropped: Some(dropped), ..SourceCounts::default() };
    check(file.clone().block(5, statistics(0, 10)), &[], dropped(11));
    check(file.clone().block(5, statistics(0, 10)).block(5, statistics(0, 12)), &[], dropped(13));
    check(file.clone().block(5, statistics(0, 10)).block(5, statistics(1, 12)), &[], dropped(24));
    check(file.clone().block(5, statistics(7, 10)), &[], SourceCounts::default());
    check(
        file.clone().enhanced_with(1, 1, b"", |body| body.option(4, &5_u64.to_le_bytes())),
        &[Seen { interface: 1, ..seen(1_000, b"", 0) }],
        dropped(5),
    );
}

#[test]
fn other_blocks_and_broken_options_do_not_matter() {
    let file = Pcapng::new(Little).interface(1, |body| body);
    let body = || file.body().u32(0xdead_beef);
    let file = file.clone().block(0xbad, body()).block(0x4000_0bad, body()).block(4, body());
    let file = file.block(0x8000_0001, body().u64(1)).block(10, body());
    check(
        file.enhanced_with(0, 1, b"a", |body| body.u16(2).u16(4_000).u32(1)),
        &[seen(1_000, b"a", 1)],
        SourceCounts::default(),
    );
}

#[test]
fn odd_lengths_are_tolerated_and_counted() {
    let file = Pcapng::new(Little).interface(1, |body| body);
    let body = file.body().u32(0).u64(0).u32(101).u32(100).padded(&[7; 101]);
    check(
        file.block(6, body),
        &[seen(0, &[7; 101], 101)],
        SourceCounts { longer_than_wire: 1, longer_than_snap: 1, ..SourceCounts::default() },
    );
}

#[test]
fn interfaces_beyond_the_limit_are_refused_and_counted() {
    let mut file = Pcapng::new(Little);
    for _ in 0..MAX_INTERFACES + 2 {
        file = file.interface(1, |body| body);
    }
    let last = MAX_INTERFACES as u32 - 1;
    let file = file.enhanced(last, 1, b"a").enhanced(last + 1, 1, b"b");
    let file = file.section(Little).interface(1, |body| body).enhanced(0, 1, b"c");
    check(
        file,
        &[Seen { interface: last, ..seen(1_000, b"a", 1) }],
        SourceCounts {
            interfaces_refused: 3,
            skipped_without_interface: 2,
            ..SourceCounts::default()
        },
    );
}

//! What is captured: all of it, the right way round, with time and tags.

use std::num::NonZeroU32;
use std::time::{Duration, Instant, SystemTime};

use twixt_capture::{
    BatchEnd, FrameDirection, LiveEnding, LiveOptions, LiveSource, RingSize, Stop, TimePreference,
};
use twixt_model::TimeSource;

use crate::live::frames::{Packet, Seen, datagram, frames_of, open, read};
use crate::live::namespace::in_namespace;
use crate::live::sender::Sender;

const FRAMES: u32 = 1000;

#[test]
fn every_frame_is_captured_once_in_its_direction() {
    in_namespace(|| {
        let mut sources = [
            ("left", None, Some(FrameDirection::Outbound)),
            ("left", Some(FrameDirection::Outbound), Some(FrameDirection::Outbound)),
            ("right", None, Some(FrameDirection::Inbound)),
            ("right", Some(FrameDirection::Inbound), Some(FrameDirection::Inbound)),
            // Looked at last, when all frames have passed.
            ("left", Some(FrameDirection::Inbound), None),
            ("right", Some(FrameDirection::Outbound), None),
        ]
        .map(|(interface, direction, expected)| {
            (open(interface, LiveOptions { direction, ..LiveOptions::default() }), expected)
        });
        let before = now();
        let sender = Sender::new("left");
        let sent: Vec<Vec<u8>> = (0..FRAMES).map(|number| datagram(number, 100)).collect();
        sent.iter().for_each(|frame| sender.send(frame));
        for (source, expected) in &mut sources {
            let Some(direction) = expected else {
                let seen = frames_of(source, 0);
                assert!(seen.is_empty(), "{} frames came", seen.len());
                continue;
            };
            let seen = frames_of(source, sent.len());
            check_captured(&seen, &sent, *direction, before);
            let counts = source.0.counts();
            assert_eq!((counts.frames, counts.dropped), (u64::from(FRAMES), Some(0)));
            assert_eq!(source.0.ending(), Some(LiveEnding::Stopped));
        }
    });
}

#[track_caller]
fn check_captured(seen: &[Seen], sent: &[Vec<u8>], direction: FrameDirection, before: i64) {
    assert_eq!(seen.len(), sent.len());
    for (seen, sent) in seen.iter().zip(sent) {
        assert_eq!(&seen.bytes, sent);
        assert_eq!(seen.wire_length as usize, sent.len());
        assert_eq!((seen.direction, seen.time_source), (Some(direction), TimeSource::Kernel));
        let nanos = seen.time.as_nanos();
        assert!((before..=now()).contains(&nanos), "{nanos}");
    }
    assert!(seen.is_sorted_by_key(|seen| seen.time));
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    since.as_nanos().try_into().unwrap()
}

#[test]
fn tags_that_the_kernel_took_out_are_put_back() {
    in_namespace(|| {
        let tagged = |tags: &[u8]| {
            let mut frame = datagram(7, 100);
            frame.splice(12..12, tags.iter().copied());
            frame
        };
        let sent = [
            tagged(&[]),
            tagged(&[0x81, 0, 0x20, 7]),
            tagged(&[0x81, 0, 0, 0]),
            tagged(&[0x88, 0xa8, 0, 5, 0x81, 0, 0, 9]),
        ];
        let mut source = open("right", LiveOptions::default());
        let sender = Sender::new("left");
        sent.iter().for_each(|frame| sender.send(frame));
        let seen = frames_of(&mut source, sent.len());
        let bytes: Vec<&Vec<u8>> = seen.iter().map(|seen| &seen.bytes).collect();
        assert_eq!(bytes, sent.each_ref());
        assert!(seen.iter().all(|seen| seen.wire_length as usize == seen.bytes.len()));
        assert_eq!(source.0.live_counts().tags_restored, 3, "the kernel did take them out");
    });
}

#[test]
fn frames_are_cut_at_the_snap_length() {
    in_namespace(|| {
        let snap_length = NonZeroU32::new(60);
        let mut source = open("right", LiveOptions { snap_length, ..LiveOptions::default() });
        let (short, long) = (datagram(1, 10), datagram(2, 1000));
        let giant = Packet { payload_bytes: 4000, ..Packet::default() };
        let sender = Sender::new("left");
        sender.send(&short);
        sender.send(&long);
        sender.send_super_packet(&giant.frame(), giant.offload(1000));
        let seen = frames_of(&mut source, 6);
        let lengths: Vec<_> =
            seen.iter().map(|seen| (seen.bytes.len(), seen.wire_length)).collect();
        let piece = (60, 14 + 20 + 32 + 1000);
        assert_eq!(lengths, [(52, 52), (60, 1042), piece, piece, piece, piece]);
        assert_eq!(seen[0].bytes, short);
        assert_eq!(seen[1].bytes, long[..60]);
    });
}

#[test]
fn a_reader_that_sleeps_learns_what_was_dropped() {
    in_namespace(|| {
        let ring = RingSize::of_bytes(0);
        let mut source = open("right", LiveOptions { ring, ..LiveOptions::default() });
        let sender = Sender::new("left");
        for number in 0..5 * FRAMES {
            sender.send(&datagram(number, 1000));
        }
        let dropped = |source: &LiveSource| source.counts().dropped.unwrap();
        let all = u64::from(5 * FRAMES);
        let seen =
            read(&mut source.0, |seen, source| seen.len() as u64 + dropped(source) >= all).len();
        assert!(dropped(&source.0) > u64::from(FRAMES), "{seen} were captured");
        assert_eq!(seen as u64 + dropped(&source.0), all);
        assert!(source.0.live_counts().freezes > 0);
    });
}

#[test]
fn a_silent_interface_gives_empty_batches_in_time() {
    in_namespace(|| {
        let wait = Duration::from_millis(30);
        let (mut source, stop) = open("right", LiveOptions { wait, ..LiveOptions::default() });
        let start = Instant::now();
        for _ in 0..3 {
            let end = source.read_batch(|frame| panic!("{frame:?}")).unwrap();
            assert_eq!(end, BatchEnd::More);
        }
        assert!(start.elapsed() >= 3 * wait, "it waits, and does not spin");
        let stopper = {
            let stop: Stop = stop.clone();
            std::thread::spawn(move || stop.set())
        };
        while source.read_batch(|_| {}).unwrap() == BatchEnd::More {}
        stopper.join().unwrap();
        assert_eq!(source.ending(), Some(LiveEnding::Stopped));
        assert_eq!(source.read_batch(|_| {}).unwrap(), BatchEnd::End, "it stays ended");
    });
}

#[test]
fn the_loopback_interface_shows_each_packet_once() {
    in_namespace(|| {
        let mut source = open("lo", LiveOptions::default());
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        for _ in 0..10 {
            socket.send_to(b"hello", socket.local_addr().unwrap()).unwrap();
        }
        assert_eq!(frames_of(&mut source, 10).len(), 10);
    });
}

#[test]
fn an_adapter_without_a_clock_is_told_apart() {
    in_namespace(|| {
        for times in [TimePreference::Adapter, TimePreference::SwitchOnAdapter] {
            let mut source = open("right", LiveOptions { times, ..LiveOptions::default() });
            Sender::new("left").send(&datagram(1, 10));
            assert_eq!(source.0.time_source(), TimeSource::Kernel);
            let remark = source.0.time_remark().unwrap();
            assert!(remark.contains("adapter"), "{remark}");
            assert_eq!(frames_of(&mut source, 1)[0].time_source, TimeSource::Kernel);
            assert_eq!(source.0.live_counts().kernel_times, 1);
        }
    });
}

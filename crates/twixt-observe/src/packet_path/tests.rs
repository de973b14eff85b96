//! Which frames reach a sink, and what is counted of the others.

use twixt_model::{DigestHash, DigestProfile, Epoch, Needs, TimeSource};
use twixt_wire::{Digester, HashKey, ObserverOptions};

use super::*;

const ETHERNET: u16 = 1;

/// An Ethernet frame with a datagram for this address.
fn frame_for(destination: [u8; 4], payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![2; 12];
    frame.extend([0x08, 0x00, 0x45, 0]);
    frame.extend((28 + payload.len() as u16).to_be_bytes());
    frame.extend([0, 0, 0, 0, 64, protocol::UDP, 0, 0, 10, 0, 0, 1]);
    frame.extend(destination);
    frame.extend([0x10, 0, 0x20, 0]);
    frame.extend((8 + payload.len() as u16).to_be_bytes());
    frame.extend([0, 0]);
    frame.extend(payload);
    frame
}

fn observer() -> Observer {
    let digester =
        Digester::new(DigestProfile::Default, DigestHash::Xxh3, 24, HashKey::from_seed(1));
    let needs = Needs { digest: true, ..Needs::default() };
    let classes = Vec::new();
    Observer::new(ObserverOptions { needs, outer: false, filter: None, classes, digester }).unwrap()
}

/// Takes packets at even times only, and notes everything.
#[derive(Debug, Default)]
struct EvenTimes {
    seen: u64,
    markers: u64,
    taken: Vec<i64>,
}

impl PacketSink for EvenTimes {
    fn see(&mut self, _time: Timestamp) {
        self.seen += 1;
    }

    fn take(&mut self, _observer: &Observer, seen: SeenPacket<'_>) -> Result<(), Skip> {
        let nanos = seen.frame.time.as_nanos();
        if nanos % 2 != 0 {
            return Err(Skip::OutsideStretch);
        }
        self.taken.push(nanos);
        Ok(())
    }

    fn take_marker(&mut self, _marker: &Marker) {
        self.markers += 1;
    }
}

fn take(path: &mut PacketPath<EvenTimes>, nanos: i64, bytes: &[u8]) {
    path.take(&Frame {
        time: Timestamp::from_nanos(nanos),
        bytes,
        memory: bytes,
        wire_length: bytes.len() as u32,
        link_type: ETHERNET,
        interface: 0,
        direction: None,
        time_source: TimeSource::File,
    });
}

/// Frames at the times 1 to `last`, in turn for 10.0.1.1 and 10.0.2.1.
fn run(mut path: PacketPath<EvenTimes>, last: i64) -> PacketPath<EvenTimes> {
    for nanos in 1..=last {
        let destination = [10, 0, if nanos % 4 < 2 { 1 } else { 2 }, 1];
        take(&mut path, nanos, &frame_for(destination, b"packet"));
    }
    path
}

#[track_caller]
fn check(path: &PacketPath<EvenTimes>, taken: &[i64], skipped: &[(&str, u64)]) {
    assert_eq!(path.sink().taken, taken);
    let counts = path.counts(SourceCounts::default());
    assert_eq!(counts.packets, taken.len() as u64);
    let skipped = skipped.iter().map(|&(name, count)| (name.to_owned(), count)).collect();
    assert_eq!(counts.skipped, skipped);
}

#[test]
fn what_the_sink_refuses_is_skipped_for_its_reason() {
    let path = run(PacketPath::new(observer(), EvenTimes::default()), 5);
    check(&path, &[2, 4], &[("outside-stretch", 3)]);
    assert_eq!(path.sink().seen, 5);
}

#[test]
fn packets_for_other_prefixes_go_the_wrong_way() {
    let path = PacketPath::new(observer(), EvenTimes::default());
    let path = run(path.toward(Some("10.0.1.0/24".parse().unwrap())), 5);
    check(&path, &[4], &[("outside-stretch", 2), ("wrong-direction", 2)]);
}

#[test]
fn after_enough_packets_frames_are_neither_taken_nor_skipped() {
    let path = run(PacketPath::new(observer(), EvenTimes::default()).at_most(Some(2)), 9);
    assert!(path.has_enough());
    check(&path, &[2, 4], &[("outside-stretch", 2)]);
    assert!(PacketPath::new(observer(), EvenTimes::default()).at_most(Some(0)).has_enough());
}

#[test]
fn frames_without_a_time_and_frames_of_no_packet_are_counted_apart() {
    let mut path = PacketPath::new(observer(), EvenTimes::default());
    take(&mut path, i64::MAX, &frame_for([10, 0, 1, 1], b""));
    take(&mut path, 2, &[0; 14]);
    let source = SourceCounts { skipped_without_time: 3, dropped: Some(7), ..Default::default() };
    let counts = path.counts(source);
    assert_eq!((counts.packets, counts.dropped), (0, Some(7)));
    assert_eq!(counts.skipped["no-time"], 4);
    assert_eq!(counts.skipped.values().sum::<u64>(), 5);
}

#[test]
fn markers_go_to_the_sink_if_it_follows_them_and_are_packets_if_not() {
    let marker = Marker { stream: 1, run: 2, sequence: 3, ends: Epoch(4), starts: Epoch(5) };
    let frame = frame_for([10, 0, 1, 1], &marker.to_bytes());
    let mut path = PacketPath::new(observer(), EvenTimes::default()).following_markers(true);
    take(&mut path, 2, &frame);
    check(&path, &[], &[("marker", 1)]);
    assert_eq!(path.sink().markers, 1);
    let mut path = PacketPath::new(observer(), EvenTimes::default());
    take(&mut path, 2, &frame);
    check(&path, &[2], &[]);
}

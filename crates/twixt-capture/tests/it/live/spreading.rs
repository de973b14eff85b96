//! Several sources for one interface.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use twixt_capture::{Frame, LiveOptions, LiveSource};
use twixt_testing::DEADLINE;

use crate::live::frames::{Packet, Transport};
use crate::live::namespace::in_namespace;
use crate::live::sender::Sender;

const SOURCES: usize = 4;
const FLOWS: u16 = 200;

/// The flow that [`packets`] gave it.
fn flow_of(frame: &[u8]) -> u16 {
    let v6 = frame[12] == 0x86;
    let ports_at = if v6 { 54 } else { 34 };
    let port = |at: usize| u16::from_be_bytes([frame[at], frame[at + 1]]);
    port(ports_at).min(port(ports_at + 2))
}

/// Two packets of each flow in each direction; every kind of flow.
fn packets() -> impl Iterator<Item = Packet> {
    (0..FLOWS * 4).map(|number| {
        let flow = number % FLOWS;
        let mut ends = [(1, 1000 + flow), (2, 50_000 + flow * 3)];
        if number / FLOWS % 2 == 1 {
            ends.reverse();
        }
        let transport = if flow.is_multiple_of(2) { Transport::Tcp } else { Transport::Udp };
        Packet { transport, v6: flow.is_multiple_of(3), ends, ..Packet::default() }
    })
}

#[test]
fn both_directions_of_a_flow_reach_the_same_source() {
    in_namespace(|| {
        let options = LiveOptions { wait: Duration::ZERO, ..LiveOptions::default() };
        let mut sources = LiveSource::open_group("right", &options, SOURCES).unwrap();
        assert_eq!(sources.len(), SOURCES);
        // One direction comes in, the other goes out, as on a host or a router.
        let (left, right) = (Sender::new("left"), Sender::new("right"));
        for packet in packets() {
            let sender = if packet.ends[0].0 == 1 { &left } else { &right };
            sender.send(&packet.frame());
        }
        let mut places: BTreeMap<u16, BTreeSet<usize>> = BTreeMap::new();
        let mut loads = [0; SOURCES];
        let start = Instant::now();
        while loads.iter().sum::<u32>() < u32::from(FLOWS) * 4 && start.elapsed() < DEADLINE {
            for (place, source) in sources.iter_mut().enumerate() {
                let each = |frame: Frame<'_>| {
                    places.entry(flow_of(frame.bytes)).or_default().insert(place);
                    loads[place] += 1;
                };
                source.read_batch(each).unwrap();
            }
        }
        assert_eq!(loads.iter().sum::<u32>(), u32::from(FLOWS) * 4);
        assert_eq!(places.len(), usize::from(FLOWS));
        assert!(places.values().all(|places| places.len() == 1), "{places:?}");
        // 800 frames over 4 sources by a hash of 200 flows: far from empty.
        assert!(loads.iter().all(|&load| load > 80), "{loads:?}");
    });
}

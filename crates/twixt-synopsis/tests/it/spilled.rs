//! The referee whose packets lie in files, and the one whose packets are in memory, tell the same.

use std::sync::{Arc, Mutex};

use twixt_model::{
    ClassId, Detail, EpochRule, FlowHash, FlowKey, Observation, PacketDigest, Span, Timestamp, mix,
};
use twixt_synopsis::{
    By, Exact, ExactConfig, Pair, Question, SpillFile, SpillPlace, Synopsis, TwoPoint, encode,
};

/// Keeps the bytes of files in memory.
#[derive(Debug)]
struct Bytes {
    memory_bytes: usize,
    files: Mutex<usize>,
}

#[derive(Debug, Default)]
struct File(Mutex<Vec<u8>>);

impl SpillPlace for Bytes {
    fn file(&self) -> Arc<dyn SpillFile> {
        *self.files.lock().unwrap() += 1;
        Arc::new(File::default())
    }

    fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }
}

impl SpillFile for File {
    fn append(&self, bytes: &[u8]) -> Option<u64> {
        let mut file = self.0.lock().unwrap();
        file.extend_from_slice(bytes);
        Some((file.len() - bytes.len()) as u64)
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> bool {
        let file = self.0.lock().unwrap();
        let end = offset as usize + bytes.len();
        file.get(offset as usize..end).map(|found| bytes.copy_from_slice(found)).is_some()
    }
}

/// What two points see: flows of very different lengths, some packets identical to others, some lost, some
/// overtaken, some twice, and some that come from elsewhere. `constant` delays let identical packets be
/// told apart where others do not.
struct Segment {
    sent: Vec<Observation>,
    received: Vec<Observation>,
}

const SEED: u64 = 0x7370_696c;

fn segment(case: u64, packets: u64) -> Segment {
    let random = |packet: u64, what: u64| mix(mix(SEED ^ case << 50 | packet << 5) ^ what);
    let share = |packet: u64, what: u64| (random(packet, what) >> 11) as f64 / (1_u64 << 53) as f64;
    let (mut sent, mut received) = (Vec::new(), Vec::new());
    for packet in 0..packets {
        let flow = (share(packet, 0).powi(3) * 40.0) as u64;
        let digest = match share(packet, 1) {
            // Heartbeats of every fourth flow.
            part if part < 0.2 && flow.is_multiple_of(4) => mix(flow),
            // Sent again within the next packets.
            part if part > 0.97 => mix(packet / 16 * 16 + 1_000_000),
            _ => mix(packet + 1_000_000),
        };
        let time_ns = packet as i64 * 10_000 + (random(packet, 2) % 4 * 30_000) as i64;
        let observation = Observation {
            time: Timestamp::from_nanos(time_ns),
            digest: PacketDigest(digest),
            flow: FlowHash(mix(flow)),
            length: 40 + (random(packet, 3) % 3 * 500) as u32,
            class: ClassId(0),
            ..Observation::default()
        };
        if share(packet, 4) > 0.01 {
            sent.push(observation);
        }
        let delay_ns = match case % 2 {
            0 => 5_000_000 + (-(1.0 - share(packet, 5)).ln() * 400_000.0) as i64,
            _ => 5_000_000 + (random(packet, 5) % 2_000) as i64,
        };
        let arrived =
            Observation { time: Timestamp::from_nanos(time_ns + delay_ns), ..observation };
        if share(packet, 6) > 0.02 {
            received.push(arrived);
        }
        if share(packet, 7) < 0.01 {
            received.push(Observation {
                time: Timestamp::from_nanos(time_ns + delay_ns + 3_000),
                ..arrived
            });
        }
    }
    received.sort_by_key(|packet| packet.time);
    Segment { sent, received }
}

fn exact(packets: &[Observation], place: Option<&Arc<dyn SpillPlace>>) -> Exact {
    let mut exact = Exact::new(&ExactConfig::default());
    if let Some(place) = place {
        exact.spill_to(place);
    }
    for packet in packets {
        let key = FlowKey {
            source_port: (packet.flow.0 % 50_000) as u16,
            destination_port: 443,
            protocol: 6,
            ..FlowKey::default()
        };
        exact.update_detailed(packet, &Detail { key, ..Detail::default() });
    }
    exact
}

/// Everything that is told, to the last bit.
fn told(segment: &Segment, memory_bytes: Option<usize>) -> (Vec<String>, usize) {
    let place =
        memory_bytes.map(|memory_bytes| Arc::new(Bytes { memory_bytes, files: Mutex::default() }));
    let any = place.clone().map(|place| place as Arc<dyn SpillPlace>);
    let (upstream, downstream) =
        (exact(&segment.sent, any.as_ref()), exact(&segment.received, any.as_ref()));
    let pair = Pair { upstream: &upstream, downstream: &downstream };
    let mut all = Vec::new();
    for by in [By::All, By::Flow, By::Port] {
        for cut in [EpochRule::WHOLE, EpochRule::every(3_000_000).unwrap()] {
            for packets in [false, true] {
                let question = Question::about(Span::at(segment.sent[0].time));
                let question = Question { by, cut, packets, ..question };
                let estimates = Exact::estimate(pair, &question);
                all.extend(estimates.iter().map(|estimate| format!("{estimate:?}")));
            }
        }
    }
    all.push(format!("{:x?}", encode(&upstream)));
    (all, place.map_or(0, |place| *place.files.lock().unwrap()))
}

#[test]
fn what_lies_in_files_is_told_to_the_last_bit() {
    println!("seed {SEED}");
    for case in 0..4 {
        let segment = segment(case, 1_500 + case * 500);
        let (expected, _) = told(&segment, None);
        // From a few packets in memory to all but some.
        for memory_bytes in [700, 10_000, 30_000] {
            let (found, files) = told(&segment, Some(memory_bytes));
            assert!(files >= 2, "nothing was written: {files}");
            for (found, expected) in found.iter().zip(&expected) {
                assert_eq!(found, expected, "case {case}, {memory_bytes} bytes");
            }
            assert_eq!(found.len(), expected.len());
        }
    }
}

/// The first packet that is taken out lies in a file.
#[test]
fn packets_in_files_are_taken_out_and_merged() {
    let Segment { sent, .. } = segment(0, 2_000);
    let place: Arc<dyn SpillPlace> =
        Arc::new(Bytes { memory_bytes: 5_000, files: Mutex::default() });
    let (first, rest) = sent.split_at(500);
    let mut whole = exact(first, Some(&place));
    whole.merge(&exact(rest, Some(&place)));
    assert!(whole == exact(&sent, None));
    whole.remove(&sent[3]);
    let without: Vec<Observation> =
        (0..).zip(&sent).filter(|(index, _)| *index != 3).map(|(_, packet)| *packet).collect();
    assert_eq!(encode(&whole), encode(&exact(&without, None)));
}

/// A file that cannot be written or read.
#[derive(Debug)]
struct Broken;

impl SpillPlace for Broken {
    fn file(&self) -> Arc<dyn SpillFile> {
        Arc::new(Self)
    }

    fn memory_bytes(&self) -> usize {
        4_000
    }
}

impl SpillFile for Broken {
    fn append(&self, bytes: &[u8]) -> Option<u64> {
        (bytes.len() < 900).then_some(0)
    }

    fn read_at(&self, _offset: u64, _bytes: &mut [u8]) -> bool {
        false
    }
}

/// Whoever made the place knows of it; nothing panics until that is asked.
#[test]
fn files_that_fail_do_not_stop_the_program() {
    let Segment { sent, received } = segment(1, 2_000);
    let place: Arc<dyn SpillPlace> = Arc::new(Broken);
    let (upstream, downstream) = (exact(&sent, Some(&place)), exact(&received, Some(&place)));
    let question = Question { by: By::Flow, ..Question::about(Span::at(sent[0].time)) };
    let pair = Pair { upstream: &upstream, downstream: &downstream };
    assert!(Exact::estimate(pair, &question).len() <= 40);
}

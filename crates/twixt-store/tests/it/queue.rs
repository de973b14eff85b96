//! The queue on a disk that fails on purpose: every record is handed out once, or counted.

use std::collections::BTreeMap;
use std::path::Path;

use proptest::prelude::*;
use twixt_model::{Timestamp, mix};
use twixt_store::{CHUNKS, Faults, Operation, Queue, SimulatedDisk, StoreError};

use crate::support::disk_faults;

const FOLDER: &str = "/spool/paris";
const LARGE: u64 = 1 << 24;
/// Of the queues that anything happens to: a full one is no exception.
const BYTES_MAX: u64 = 1 << 16;

fn open(disk: &SimulatedDisk, bytes_max: u64) -> Queue {
    Queue::open(disk.mount(), Path::new(FOLDER), bytes_max).expect("nothing is wrong with the disk")
}

/// Bytes that do not compress.
fn payload(label: u64, bytes: usize) -> Vec<u8> {
    let words = (0..bytes as u64 / 8).map(|at| mix(label * 1_000_003 + at));
    words.flat_map(u64::to_le_bytes).collect()
}

fn append(queue: &mut Queue, labels: std::ops::Range<u64>, bytes: usize) {
    for label in labels {
        let at = Timestamp::from_nanos(label as i64);
        queue.append(label as i64, at, &payload(label, bytes)).expect("there is room");
    }
}

fn labels(queue: &mut Queue, records_max: usize) -> Vec<i64> {
    let peeked = queue.peek(records_max, usize::MAX).expect("the disk can be read");
    peeked.records.iter().map(|record| record.label).collect()
}

fn chunks(disk: &SimulatedDisk) -> Vec<std::path::PathBuf> {
    let is_chunk = |path: &Path| path.extension().is_some_and(|ending| ending == "twxq");
    disk.files().into_iter().map(|(path, _)| path).filter(|path| is_chunk(path)).collect()
}

/// The budget of a batch is for records that are read: damage uses up none of it, and what was not
/// read is not confirmed.
#[test]
fn one_damaged_record_costs_one() {
    let disk = SimulatedDisk::new(1);
    let bytes_max = 1 << 20;
    let mut queue = open(&disk, bytes_max);
    append(&mut queue, 0..1200, 700);
    assert!(chunks(&disk).len() > 4, "it has several chunks");
    // Within the fourth record of the first chunk.
    disk.flip_bit(&chunks(&disk)[0], 8 * (16 + 3 * 756 + 100));
    let mut read = Vec::new();
    let mut damaged: Vec<u64> = Vec::new();
    while queue.counts().records > 0 {
        let peeked = queue.peek(256, usize::MAX).unwrap();
        read.extend(peeked.records.iter().map(|record| record.label as u64));
        damaged.extend(peeked.damaged.into_iter().flatten());
        queue.confirm(peeked.records.last().unwrap().number).unwrap();
    }
    let expected: Vec<u64> = (0..1200).filter(|label| *label != 3).collect();
    assert_eq!((read, damaged), (expected, vec![3]));
    assert_eq!((queue.counts().damaged, queue.counts().discarded), (1, 0));
}

#[test]
fn what_cannot_be_read_now_is_read_later() {
    let disk = SimulatedDisk::new(1);
    let mut queue = open(&disk, LARGE);
    append(&mut queue, 0..5, 100);
    let failing = |operation| Faults { failing: vec![(operation, 1)], ..Faults::default() };
    let faults = [
        Faults { open_files_max: Some(0), ..Faults::default() },
        failing(Operation::Open),
        failing(Operation::Read),
    ];
    for fault in faults {
        disk.set_faults(fault.clone());
        let refused = queue.peek(10, usize::MAX).unwrap_err();
        assert!(matches!(refused, StoreError::Open { .. }), "{fault:?}: {refused}");
        queue.confirm(4).unwrap();
        assert_eq!((queue.counts().records, queue.counts().damaged), (5, 0), "{fault:?}");
        disk.set_faults(Faults::default());
    }
    assert_eq!(labels(&mut queue, 10), [0, 1, 2, 3, 4]);
    // The same at a start: an error, and nothing is counted or deleted.
    drop(queue);
    disk.set_faults(failing(Operation::Read));
    assert!(Queue::open(disk.mount(), Path::new(FOLDER), LARGE).is_err());
    disk.set_faults(Faults::default());
    assert_eq!(labels(&mut open(&disk, LARGE), 10), [0, 1, 2, 3, 4]);
}

#[test]
fn all_chunks_are_synced() {
    for seed in 0..20 {
        let disk = SimulatedDisk::new(seed);
        let mut queue = open(&disk, 1 << 16);
        append(&mut queue, 0..30, 1000);
        assert!(chunks(&disk).len() > 2);
        queue.sync().unwrap();
        append(&mut queue, 30..31, 1000);
        disk.crash();
        let mut queue = open(&disk, 1 << 16);
        assert_eq!(labels(&mut queue, 30), (0..30).collect::<Vec<_>>(), "seed {seed}");
    }
}

#[test]
fn a_queue_is_bounded_and_counts_what_it_discards() {
    let disk = SimulatedDisk::new(1);
    let bytes_max = 200_000;
    let mut queue = open(&disk, bytes_max);
    for label in 0..200 {
        append(&mut queue, label..label + 1, 8000);
        assert!(queue.counts().bytes <= bytes_max);
    }
    let counts = queue.counts();
    assert_eq!(counts.records + counts.discarded, 200);
    assert!((10..25).contains(&counts.records), "{counts:?}");
    assert_eq!(labels(&mut queue, 1000), (200 - counts.records as i64..200).collect::<Vec<_>>());
    let refused = queue.append(0, Timestamp::from_nanos(0), &payload(0, 300_000)).unwrap_err();
    assert!(matches!(refused, StoreError::NoRoom { .. }), "{refused}");
    assert_eq!(queue.counts().discarded, counts.discarded + 1);
    drop(queue);
    let smaller = open(&disk, bytes_max / 2);
    assert!(smaller.counts().bytes <= bytes_max / 2 && smaller.counts().discarded > 0);
}

#[test]
fn confirmed_chunks_are_deleted_and_a_full_disk_takes_the_oldest() {
    let disk = SimulatedDisk::new(1);
    let mut queue = open(&disk, LARGE);
    for label in 0..300 {
        append(&mut queue, label..label + 1, 80_000);
        let peeked = queue.peek(1, 1).unwrap();
        queue.confirm(peeked.records[0].number).unwrap();
        assert!(queue.counts().bytes < LARGE / CHUNKS + 100_000);
    }
    let other = disk.mount();
    let file = other.open(Path::new("/other"), twixt_store::Access::Extend).unwrap();
    append(&mut queue, 300..340, 80_000);
    file.write_all_at(&[1; 1000], 0).unwrap();
    let used: u64 = disk.files().iter().map(|(_, bytes)| bytes).sum();
    disk.set_faults(Faults { bytes_max: Some(used + 1000), ..Faults::default() });
    append(&mut queue, 340..341, 80_000);
    let counts = queue.counts();
    assert!(counts.discarded > 0 && counts.records + counts.discarded == 41, "{counts:?}");
}

#[test]
fn files_of_others_and_of_newer_releases_are_refused_and_stay() {
    #[track_caller]
    fn check(name: &str, content: &[u8], expected: &str) {
        let disk = SimulatedDisk::new(1);
        let mut queue = open(&disk, LARGE);
        append(&mut queue, 0..1, 100);
        drop(queue);
        let path = Path::new(FOLDER).join(name);
        twixt_store::replace_file(&disk.mount(), &path, content).unwrap();
        let before = disk.files();
        let refused = Queue::open(disk.mount(), Path::new(FOLDER), LARGE).unwrap_err().to_string();
        assert!(refused.contains(expected) && refused.contains(name), "{refused}");
        assert_eq!(disk.files(), before);
    }
    let newer = |magic: &[u8; 4]| {
        let mut header = [magic.as_slice(), &[9, 0, 0, 0]].concat();
        header.extend(xxhash_rust::xxh3::xxh3_64(&header).to_le_bytes());
        header
    };
    let chunk = "00000000000000000007.twxq";
    check(chunk, b"a text of another program, not a chunk", "move it away");
    check(chunk, &newer(b"TWXQ"), "upgrade");
    check("confirmed.twxc", &newer(b"TWXC"), "upgrade");
}

#[test]
fn a_queue_has_one_owner() {
    let disk = SimulatedDisk::new(1);
    let _queue = open(&disk, LARGE);
    let refused = Queue::open(disk.mount(), Path::new(FOLDER), LARGE).unwrap_err();
    assert!(matches!(refused, StoreError::Busy { .. }), "{refused}");
}

#[derive(Clone, Debug)]
enum Event {
    Append {
        records: u64,
        bytes: usize,
    },
    Sync,
    Peek {
        records_max: usize,
        bytes_max: usize,
    },
    /// Of what was handed out, this share.
    Confirm {
        share: u8,
    },
    Fault(Faults),
    Rot,
    Crash,
    Kill,
    CrashWithin(u64),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        6 => (1..6_u64, 8..900_usize)
            .prop_map(|(records, bytes)| Event::Append { records, bytes }),
        4 => Just(Event::Sync),
        4 => (1..20_usize, 1..4_000_usize)
            .prop_map(|(records_max, bytes_max)| Event::Peek { records_max, bytes_max }),
        3 => any::<u8>().prop_map(|share| Event::Confirm { share }),
        3 => disk_faults(20_000).prop_map(Event::Fault),
        1 => Just(Event::Rot),
        1 => Just(Event::Crash),
        1 => Just(Event::Kill),
        1 => (0..12_u64).prop_map(Event::CrashWithin),
    ]
}

/// What must hold of the queue, by what was seen of it.
#[derive(Default)]
struct Model {
    appended: u64,
    /// By number: the label of every record that is durable and not confirmed.
    synced: BTreeMap<u64, u64>,
    /// By number: those that may be lost if the machine dies.
    unsynced: BTreeMap<u64, u64>,
    /// By number: those that were confirmed or discarded, of which a restart may know nothing.
    settled: BTreeMap<u64, u64>,
    /// The last numbers that were handed out, in order.
    handed_out: Vec<u64>,
}

impl Model {
    fn append(&mut self, queue: &mut Queue, bytes: usize) {
        self.appended += 1;
        let label = self.appended;
        let at = Timestamp::from_nanos(label as i64);
        let before = queue.counts().discarded;
        let appended = queue.append(label as i64, at, &payload(label, bytes));
        self.note_discarded(queue, before);
        if let Ok(number) = appended {
            let last = self.synced.keys().chain(self.unsynced.keys()).max();
            assert!(last.is_none_or(|last| *last < number), "{number} was used before");
            self.unsynced.insert(number, label);
        }
    }

    /// Records that went for lack of room are counted.
    fn note_discarded(&mut self, queue: &Queue, before: u64) {
        let counts = queue.counts();
        let mut lost = 0;
        for map in [&mut self.synced, &mut self.unsynced] {
            let left = map.split_off(&counts.first);
            let mut gone = std::mem::replace(map, left);
            lost += gone.len() as u64;
            // A crash may bring back a file that was deleted just before.
            self.settled.append(&mut gone);
        }
        assert!(lost <= counts.discarded - before, "{lost} went, {before} to {counts:?}");
        self.handed_out.retain(|number| *number >= counts.first);
    }

    /// What is handed out comes in order and as it was appended, and leaves out only what is counted.
    fn peek(&mut self, queue: &mut Queue, records_max: usize, bytes_max: usize) {
        let Ok(peeked) = queue.peek(records_max, bytes_max) else { return };
        self.handed_out.clear();
        for range in &peeked.damaged {
            self.synced.retain(|number, _| !range.contains(number));
            self.unsynced.retain(|number, _| !range.contains(number));
        }
        for record in &peeked.records {
            assert!(self.handed_out.last().is_none_or(|last| *last < record.number));
            let label = record.label as u64;
            assert_eq!(record.payload, payload(label, record.payload.len()));
            let maps = [&self.synced, &self.unsynced, &self.settled];
            let known = maps.iter().find_map(|map| map.get(&record.number));
            assert_eq!(known, Some(&label), "record {}", record.number);
            self.handed_out.push(record.number);
        }
        if let (Some(first), Some(last)) = (self.handed_out.first(), self.handed_out.last()) {
            let skipped: Vec<_> = self
                .synced
                .range(..=last)
                .filter(|(number, _)| !self.handed_out.contains(number))
                .collect();
            assert!(skipped.is_empty(), "before {last}, from {first}: {skipped:?} were left out");
        }
    }

    fn confirm(&mut self, queue: &mut Queue, share: u8) {
        let count = self.handed_out.len() * usize::from(share) / 255;
        let Some(last) = self.handed_out[..count].last() else { return };
        // In vain or not: it may be handed out again after a restart, but need not.
        let _ = queue.confirm(*last);
        for map in [&mut self.synced, &mut self.unsynced] {
            let left = map.split_off(&(last + 1));
            self.settled.append(&mut std::mem::replace(map, left));
        }
        self.handed_out.drain(..count);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn every_synced_record_is_handed_out_or_counted(
        seed in any::<u64>(),
        events in proptest::collection::vec(event(), 1..80),
    ) {
        let disk = SimulatedDisk::new(seed);
        let mut queue = open(&disk, BYTES_MAX);
        let mut model = Model::default();
        let mut is_rotten = false;
        for event in events {
            match event {
                Event::Append { records, bytes } => {
                    (0..records).for_each(|_| model.append(&mut queue, bytes));
                }
                Event::Sync => {
                    if queue.sync().is_ok() {
                        model.synced.append(&mut model.unsynced);
                    }
                }
                Event::Peek { records_max, bytes_max } => {
                    model.peek(&mut queue, records_max, bytes_max);
                }
                Event::Confirm { share } => model.confirm(&mut queue, share),
                Event::Fault(faults) => disk.set_faults(faults),
                // One bit: if several records in a row lose their headers, they cannot be counted.
                Event::Rot if is_rotten => {}
                Event::Rot => is_rotten = disk.rot().is_some(),
                Event::CrashWithin(operations) => {
                    disk.set_faults(Faults { stops_after: Some(operations), ..Faults::default() });
                    model.append(&mut queue, 300);
                    if queue.sync().is_ok() {
                        model.synced.append(&mut model.unsynced);
                    }
                    drop(queue);
                    queue = restarted(&disk, &mut model, true);
                }
                Event::Crash | Event::Kill => {
                    let is_crash = matches!(event, Event::Crash);
                    drop(queue);
                    queue = restarted(&disk, &mut model, is_crash);
                }
            }
        }
        disk.set_faults(Faults::default());
        // All heals: what is left is handed out, in order, until nothing is left.
        while queue.counts().records > 0 {
            model.peek(&mut queue, 7, usize::MAX);
            model.confirm(&mut queue, 255);
        }
        prop_assert!(model.synced.is_empty(), "never handed out: {:?}", model.synced);
        prop_assert!(model.unsynced.is_empty(), "never handed out: {:?}", model.unsynced);
    }
}

/// After the end of the process, or of the machine: what was not synced may then be lost, or not.
fn restarted(disk: &SimulatedDisk, model: &mut Model, is_crash: bool) -> Queue {
    match is_crash {
        true => disk.crash(),
        false => disk.kill(),
    }
    disk.set_faults(Faults::default());
    model.handed_out.clear();
    let mut queue = open(disk, BYTES_MAX);
    if is_crash {
        let peeked = queue.peek(usize::MAX, usize::MAX).expect("the disk can be read");
        let survived = |number: &u64| peeked.records.iter().any(|record| record.number == *number);
        let is_damaged = |number: &u64| peeked.damaged.iter().any(|range| range.contains(number));
        model.unsynced.retain(|number, _| survived(number));
        model.synced.retain(|number, _| !is_damaged(number));
    }
    queue
}

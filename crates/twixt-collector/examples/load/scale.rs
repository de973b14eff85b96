//! What pairing costs, for networks of different sizes.

use std::process::Command;
use std::time::Duration;

use twixt_engine::{Engine, EngineConfig, EngineEvent, SegmentConfig};
use twixt_measure::{Meter, MeterConfig, Sealed};
use twixt_model::{
    Batch, Delay, EpochRule, FlowHash, Observation, PacketDigest, PointId, Segment, Timestamp,
};
use twixt_synopsis::{Purpose, find};

use crate::serving::{load_average, memory_kib};

const EPOCH_NS: i64 = 1_000_000_000;
/// Packets of an epoch, which all points see.
const PACKETS: i64 = 40;
/// Epochs before anything is measured, and epochs that are.
const WARMING: i64 = 90;
const MEASURED: i64 = 20;
/// How often it is given the time in an epoch, and how often its progress is queried.
const TICKS: u32 = 5;

/// One network after the other, each in a process of its own: memory that was given back counts
/// for nobody.
pub(crate) fn run() {
    println!(
        "points, segments: processor time per epoch, per epoch and segment, per tick and segment"
    );
    for (points, segments) in [(100, 500), (300, 1_500), (1_000, 5_000)] {
        let status = Command::new(std::env::current_exe().unwrap())
            .args(["scale", &points.to_string(), &segments.to_string()])
            .status();
        assert!(status.unwrap().success());
    }
    println!("load average {}", load_average());
}

/// A network in which every point is an end of as many segments as every other.
pub(crate) fn run_one(points: usize, segments: usize) {
    let mut engine = Engine::new(EngineConfig {
        segments: (0..segments).map(|number| segment(number, points)).collect(),
        ..EngineConfig::default()
    });
    let mut meters: Vec<Meter> = (0..points).map(meter).collect();
    let empty_kib = memory_kib(std::process::id());
    let mut measured = Measured::default();
    for epoch in 0..WARMING + MEASURED {
        if epoch == WARMING {
            measured = Measured::default();
        }
        let sealed = seal(&mut meters, epoch);
        measured.take(&mut engine, sealed, Timestamp::from_nanos((epoch + 1) * EPOCH_NS));
    }
    let (epochs, halves) = (measured.epochs.max(1), 2 * measured.estimated.max(1));
    let micros = |time: Duration, count: u64| time.as_secs_f64() * 1e6 / count as f64;
    let kib = memory_kib(std::process::id()) - empty_kib;
    let ticks = u64::from(TICKS) * MEASURED as u64 * segments as u64;
    assert_eq!(engine.counts().series_refused, 0);
    println!(
        "{points}, {segments}: {:.1} µs, {:.2} µs, {:.2} µs; {:.1} KiB per segment, {} MiB; {} \
         estimates",
        micros(measured.receiving, epochs),
        micros(measured.receiving, halves),
        micros(measured.ticking, ticks),
        kib as f64 / segments as f64,
        kib / 1024,
        measured.estimated,
    );
}

#[derive(Default)]
struct Measured {
    epochs: u64,
    estimated: u64,
    receiving: Duration,
    ticking: Duration,
}

impl Measured {
    fn take(&mut self, engine: &mut Engine, sealed: Vec<Sealed>, now: Timestamp) {
        self.epochs += sealed.len() as u64;
        let started = processor_time();
        for sealed in sealed {
            engine.receive(sealed);
            while let Some(event) = engine.poll() {
                self.estimated += u64::from(matches!(event, EngineEvent::Estimated(_)));
            }
        }
        self.receiving += processor_time() - started;
        let started = processor_time();
        for _ in 0..TICKS {
            engine.advance(now);
            drop(engine.progress());
        }
        self.ticking += processor_time() - started;
        std::iter::from_fn(|| engine.poll()).for_each(drop);
    }
}

/// What this thread has used of a processor, by the kernel's books: others may use the machine too.
fn processor_time() -> Duration {
    let books = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let used_ns = books.split_whitespace().next().and_then(|used| used.parse().ok());
    Duration::from_nanos(used_ns.unwrap_or(0))
}

fn name(point: usize) -> PointId {
    PointId(format!("point-{point:04}"))
}

/// From a point to one of those behind it, around a ring.
fn segment(number: usize, points: usize) -> SegmentConfig {
    let (from, hop) = (number % points, 1 + number / points);
    let segment = Segment { upstream: name(from), downstream: name((from + hop) % points) };
    SegmentConfig { segment, class: None }
}

fn meter(point: usize) -> Meter {
    let config = MeterConfig {
        domain: "load".to_owned(),
        run: point as u64 + 1,
        guard: Delay::from_nanos(20_000_000),
        ..MeterConfig::new(name(point), EpochRule::every(EPOCH_NS).unwrap())
    };
    let settings = toml::toml! { rows = 64 };
    Meter::new(config, (find(Purpose::Delay, "lda").unwrap().start)(&settings).unwrap()).unwrap()
}

/// What was over before an epoch at every point: packets pass one after the other.
fn seal(meters: &mut [Meter], epoch: i64) -> Vec<Sealed> {
    let mut sealed = Vec::new();
    for (point, meter) in meters.iter_mut().enumerate() {
        let packet = |number: i64| {
            let left_ns = epoch * EPOCH_NS + number * (EPOCH_NS / PACKETS);
            let digest = (epoch * PACKETS + number + 1) as u64;
            Observation {
                time: Timestamp::from_nanos(left_ns + 10_000 * point as i64),
                digest: PacketDigest(digest.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
                flow: FlowHash(digest % 7),
                length: 100,
                ..Observation::default()
            }
        };
        let packets: Vec<Observation> = (0..PACKETS).map(packet).collect();
        meter.observe(Batch::of(&packets));
        sealed.extend(std::iter::from_fn(|| meter.poll()));
    }
    sealed
}

//! Memory of a collector that reads back after its start what it had not estimated.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use twixt_collector::EPOCHS_FOLDER;
use twixt_delivery::UploadWriter;
use twixt_measure::{Meter, MeterConfig, Sealed};
use twixt_model::{Batch, EpochRule, FlowHash, Observation, PacketDigest, PointId, Timestamp};
use twixt_synopsis::{Purpose, find};
use twixt_testing::{pace, resident_kib, wait_for};

use super::crowd::metric;
use super::process::Process;
use super::sender::post;

const SEGMENTS: usize = 4;
const CLASSES: [&str; 4] = ["gold", "silver", "bronze", "lead"];
const ALGORITHMS: [&str; 4] = ["lda", "lds", "colate", "sample"];
const EPOCHS: i64 = 12;
const PACKETS: i64 = 100;
const SECOND_NS: i64 = 1_000_000_000;
/// `memory_max` of the collector.
const ALLOWED_MIB: u64 = 64;

fn points() -> impl Iterator<Item = (usize, String)> {
    (0..SEGMENTS)
        .flat_map(|number| [(number, format!("up{number}")), (number, format!("down{number}"))])
}

fn start(folder: &Path, round: u32) -> Process {
    let config = folder.join("collector.toml");
    fs::write(&config, format!("[limits]\nmemory_max = \"{ALLOWED_MIB}MiB\"\n")).unwrap();
    let segments: Vec<String> =
        (0..SEGMENTS).map(|number| format!("up{number}:down{number}")).collect();
    let mut options = vec!["--metrics", "127.0.0.1:0", "--config", config.to_str().unwrap()];
    options.extend(segments.iter().flat_map(|segment| ["--segment", segment]));
    Process::start_with(folder, round, &options)
}

/// Epochs of a point, oldest first.
fn epochs(point: &str, delay_ns: i64, first: i64) -> Vec<Sealed> {
    let mut sealed: Vec<Sealed> = Vec::new();
    for (class, algorithm) in
        CLASSES.iter().flat_map(|class| ALGORITHMS.map(|algorithm| (class, algorithm)))
    {
        let config = MeterConfig {
            domain: "lab".to_owned(),
            class: (*class).to_owned(),
            run: 1,
            ..MeterConfig::new(PointId(point.to_owned()), EpochRule::every(SECOND_NS).unwrap())
        };
        let start = find(Purpose::Delay, algorithm).unwrap().start;
        let mut meter = Meter::new(config, start(&toml::Table::new()).unwrap()).unwrap();
        for number in 0..EPOCHS * PACKETS {
            let digest = (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let left_ns = first * SECOND_NS + number * (SECOND_NS / PACKETS);
            let packet = Observation {
                time: Timestamp::from_nanos(left_ns + delay_ns),
                digest: PacketDigest(digest),
                flow: FlowHash(digest % 7),
                length: 100,
                ..Observation::default()
            };
            meter.observe(Batch::of(&[packet]));
        }
        meter.finish();
        sealed.extend(std::iter::from_fn(|| meter.poll()));
    }
    sealed.sort_by_key(|sealed| sealed.epoch);
    sealed
}

fn deliver(process: &Process, sealed: &[Sealed]) {
    for part in sealed.chunks(4) {
        let mut writer = UploadWriter::new();
        part.iter().for_each(|sealed| writer.push(&sealed.to_bytes()).unwrap());
        let body = writer.into_body();
        wait_for("a receipt", || match post(process.address, &body) {
            Ok(answer) if answer.starts_with("HTTP/1.1 200") => Ok(()),
            other => Err(other),
        });
    }
}

/// Waits until it estimates no more; memory then, and at most.
fn settle(process: &Process) -> (u64, u64) {
    let (mut most_kib, mut before, mut since) = (0, 0.0, Instant::now());
    while since.elapsed() < Duration::from_secs(4) {
        most_kib = most_kib.max(resident_kib(process.id()));
        let events = metric(process, "events_total{kind=\"estimated\"}")
            + metric(process, "epochs_replayed_total");
        if events != before {
            (before, since) = (events, Instant::now());
        }
        pace(Duration::from_millis(20));
    }
    (resident_kib(process.id()), most_kib)
}

/// As much as if it had been there all the while, within twice, and never more than allowed.
#[test]
fn a_replay_takes_no_more_memory_than_allowed_and_gives_it_back() {
    let folder = tempfile::tempdir().unwrap();
    let [live_folder, replayed_folder] = ["live", "replayed"].map(|name| folder.path().join(name));
    fs::create_dir_all(&live_folder).unwrap();
    let epoch_now = super::sender::epoch_now() / 10;
    let live = start(&live_folder, 0);
    let mut records = 0;
    for (number, point) in points() {
        let delay_ns = if point.starts_with("down") { 1_000_000 } else { 0 };
        let sealed = epochs(&point, delay_ns, epoch_now - EPOCHS - 5 - number as i64);
        records += sealed.len();
        deliver(&live, &sealed);
    }
    let (live_kib, live_most_kib) = settle(&live);
    drop(live);
    let directory = replayed_folder.join("collector");
    fs::create_dir_all(&directory).unwrap();
    fs::rename(live_folder.join("collector").join(EPOCHS_FOLDER), directory.join(EPOCHS_FOLDER))
        .unwrap();
    let replayed = start(&replayed_folder, 0);
    let (end_kib, most_kib) = settle(&replayed);
    println!(
        "{records} epochs. Delivered: {live_kib} KiB, at most {live_most_kib}. Read back: {end_kib} \
         KiB, at most {most_kib}"
    );
    assert_eq!(metric(&replayed, "epochs_replayed_total"), records as f64);
    assert!(end_kib < 2 * live_kib, "{end_kib} KiB");
    assert!(most_kib < live_kib + ALLOWED_MIB * 1024, "{most_kib} KiB at most");
}

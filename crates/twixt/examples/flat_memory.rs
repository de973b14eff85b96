//! Whether memory stays flat: an hour of one-second epochs through two agents' packet threads and
//! spools, and through a collector, as fast as the machine can.
//!
//! ```text
//! cargo run --release -p twixt --example flat_memory [EPOCHS]
//! ```
//!
//! Frames and clocks come from a script; meters, spool, requests, log and pairing are the real ones.
//! Prints the resident memory of the process, which is agents and collector together, ten times on
//! the way.

#![allow(clippy::unwrap_used, reason = "a program that cannot go on should stop there")]

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, SystemTime};

use twixt_agent::rehearsal::{Moment, rehearse};
use twixt_agent::{
    AgentConfig, BATCH_BYTES_MAX, BATCH_EPOCHS_MAX, PointConfig, SpoolConfig, Spools,
};
use twixt_capture::LiveOptions;
use twixt_collector::{Collector, CollectorConfig, EventSink, StopRequest};
use twixt_delivery::{UPLOAD_PATH, UploadWriter};
use twixt_engine::{EngineEvent, SegmentConfig};
use twixt_measure::Sealed;
use twixt_model::{DigestHash, DigestProfile, EpochRule, PointId, Segment, Timestamp};
use twixt_synopsis::{Purpose, find};
use twixt_wire::{Digester, HashKey};

const SECOND: i64 = 1_000_000_000;
const EPOCHS: i64 = 3600;
/// Blocks of frames in a second, and frames in a block.
const BLOCKS: i64 = 20;
const FRAMES: i64 = 25;
const DELAY: i64 = 2_000_000;
/// Epochs that wait before they are sent.
const BATCH: usize = 60;

fn main() {
    let epochs = std::env::args().nth(1).map_or(EPOCHS, |text| text.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let estimated = Arc::new(AtomicU64::new(0));
    let (stop, address, collector) = start_collector(folder.path(), &estimated);
    let start = now_ns() / SECOND * SECOND - (epochs + 10) * SECOND;
    println!("epochs sent  estimates  resident KiB");
    thread::scope(|scope| {
        // Each sends when it has a minute, so that neither runs far ahead of the other.
        let (up_turn, up_waits) = mpsc::sync_channel::<()>(1);
        let (down_turn, down_waits) = mpsc::sync_channel::<()>(1);
        down_turn.send(()).unwrap();
        let (estimated, folder) = (&estimated, folder.path());
        scope.spawn(move || {
            let mut told = 0;
            observe(folder, "up", script(start, epochs, 0), |sent, body| {
                let _ = down_waits.recv();
                post(address, &body).unwrap();
                if sent * 10 / epochs > told {
                    told = sent * 10 / epochs;
                    let estimates = estimated.load(Ordering::Relaxed);
                    println!("{sent:>11} {estimates:>10} {:>13}", resident_kib());
                }
                let _ = up_turn.send(());
            });
        });
        scope.spawn(move || {
            observe(folder, "down", script(start, epochs, DELAY), |_, body| {
                let _ = up_waits.recv();
                post(address, &body).unwrap();
                let _ = down_turn.send(());
            });
        });
    });
    thread::sleep(Duration::from_secs(8));
    println!("estimates at the end: {}", estimated.load(Ordering::Relaxed));
    stop.request();
    collector.join().unwrap();
}

/// Counts estimates.
struct Counting(Arc<AtomicU64>);

impl EventSink for Counting {
    fn take(&mut self, event: &EngineEvent) -> io::Result<()> {
        let is_estimate = matches!(event, EngineEvent::Estimated(_));
        self.0.fetch_add(u64::from(is_estimate), Ordering::Relaxed);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn start_collector(
    folder: &Path,
    estimated: &Arc<AtomicU64>,
) -> (StopRequest, SocketAddr, thread::JoinHandle<()>) {
    let mut config = CollectorConfig::new("127.0.0.1:0".parse().unwrap(), folder.join("collector"));
    let point = |name: &str| PointId(name.to_owned());
    let segment = Segment { upstream: point("up"), downstream: point("down") };
    config.engine.segments = vec![SegmentConfig { segment, class: None }];
    config.limits.epochs_per_second = 1_000_000;
    config.limits.epochs_burst = 1_000_000;
    let (stop, sink) = (StopRequest::new(), Counting(Arc::clone(estimated)));
    let (sender, receiver) = mpsc::channel();
    let stopped = stop.clone();
    let thread = thread::spawn(move || {
        let ready = |addresses: twixt_collector::Addresses| sender.send(addresses.listen).unwrap();
        Collector::new(config).unwrap().run(Box::new(sink), &stopped, ready).unwrap();
    });
    (stop, receiver.recv().unwrap(), thread)
}

/// What a point sees, on a steady clock.
fn script(start: i64, epochs: i64, delay: i64) -> impl Iterator<Item = Moment> {
    let block_ns = SECOND / BLOCKS;
    (0..epochs * BLOCKS).map(move |block| {
        let end = (block + 1) * block_ns;
        let frame = |index: i64| {
            let number = block * FRAMES + index;
            let sent = block * block_ns + index * (block_ns / FRAMES);
            (Timestamp::from_nanos(start + sent + delay), frame(number))
        };
        Moment {
            steady: Duration::from_nanos((end + delay) as u64),
            wall: Timestamp::from_nanos(start + end + delay),
            frames: (0..FRAMES).map(frame).collect(),
            dropped: 0,
        }
    })
}

/// A UDP datagram of one of many flows, without checksums.
fn frame(number: i64) -> Vec<u8> {
    let mut bytes = vec![0; 14 + 20 + 8 + 32];
    bytes[12..14].copy_from_slice(&[8, 0]);
    let ip = &mut bytes[14..];
    ip[0] = 0x45;
    ip[2..4].copy_from_slice(&60_u16.to_be_bytes());
    ip[4..6].copy_from_slice(&(number as u16).to_be_bytes());
    ip[8] = 64;
    ip[9] = 17;
    ip[12..16].copy_from_slice(&[10, 0, 0, 1]);
    ip[16..20].copy_from_slice(&[10, 0, 1, (number % 200) as u8]);
    ip[20..22].copy_from_slice(&(1024 + (number % 5000) as u16).to_be_bytes());
    ip[22..24].copy_from_slice(&5000_u16.to_be_bytes());
    ip[24..26].copy_from_slice(&40_u16.to_be_bytes());
    ip[28..36].copy_from_slice(&number.to_be_bytes());
    bytes
}

/// Runs a point; what it seals goes through its spool, and in requests to `send`.
fn observe(
    folder: &Path,
    point: &str,
    script: impl Iterator<Item = Moment>,
    mut send: impl FnMut(i64, Vec<u8>),
) {
    let config = config(folder, point);
    let algorithms = config.synopses.len() as i64;
    let spools = Spools::open(&config.spool.folder, [point], config.spool.bytes_max).unwrap();
    let mut sent = 0;
    let mut empty = |spools: &Spools| {
        let (_, spool) = spools.iter().next().unwrap();
        loop {
            let batch = spool.batch(BATCH_EPOCHS_MAX, BATCH_BYTES_MAX).unwrap();
            let Some(last) = batch.last() else { return };
            let mut writer = UploadWriter::new();
            batch.iter().for_each(|spooled| writer.push(&spooled.payload).unwrap());
            sent += batch.len() as i64;
            send(sent / algorithms, writer.into_body());
            spool.confirm(last);
        }
    };
    let take = |_, sealed: Sealed| {
        spools.append(0, sealed.epoch, &sealed.to_bytes()).unwrap();
        if spools.counts().epochs as usize >= BATCH * algorithms as usize {
            empty(&spools);
        }
    };
    rehearse(&config, script, take).unwrap();
    empty(&spools);
}

fn config(folder: &Path, point: &str) -> AgentConfig {
    let digester =
        Digester::new(DigestProfile::Default, DigestHash::Xxh3, 32, HashKey::from_seed(1));
    let start =
        |name: &str| (find(Purpose::Delay, name).unwrap().start)(&Default::default()).unwrap();
    AgentConfig {
        domain: "lab".to_owned(),
        rule: EpochRule::every(SECOND).unwrap(),
        guard: None,
        digester,
        classes: Vec::new(),
        synopses: ["exact", "lda", "lds", "colate"].map(start).into(),
        points: vec![PointConfig {
            name: point.to_owned(),
            interface: "none".to_owned(),
            options: LiveOptions::default(),
            filter: None,
            outer: false,
            threads: 1,
        }],
        spool: SpoolConfig { folder: folder.join(format!("spool-{point}")), bytes_max: 1 << 30 },
        delivery: twixt_agent::DeliveryConfig::default(),
        metrics: None,
        user: None,
    }
}

fn post(address: SocketAddr, body: &[u8]) -> io::Result<()> {
    let mut stream = TcpStream::connect(address)?;
    let length = body.len();
    write!(
        stream,
        "POST {UPLOAD_PATH} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\
         content-length: {length}\r\n\r\n"
    )?;
    stream.write_all(body)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    match answer.starts_with("HTTP/1.1 200") && answer.contains("\"refused\":[]") {
        true => Ok(()),
        false => Err(io::Error::other(answer)),
    }
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn now_ns() -> i64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos() as i64
}

//! Questions of a dashboard to a history of weeks, while epochs come in.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use twixt_collector::ESTIMATES_FOLDER;
use twixt_history::{History, HistoryConfig, HistoryRetention};
use twixt_model::Timestamp;

use crate::agents::{Agent, Observing, client, now_ns};
use crate::month::{DAY_NS, HOUR_NS, SEGMENTS, fill, points};
use crate::serving::{Serving, load_average};
use crate::summary::times;

/// Epochs of a second that come in meanwhile: of both points of each of these segments.
const LIVE_SEGMENTS: usize = 250;

pub(crate) fn run(days: i64, seconds: usize) {
    let folder = tempfile::tempdir().unwrap();
    let estimates = folder.path().join(ESTIMATES_FOLDER);
    // Until the last full hour, so that what comes in now is an hour of its own.
    let end_ns = now_ns() / HOUR_NS * HOUR_NS;
    let started = Instant::now();
    let epochs = fill(folder.path(), end_ns - days * DAY_NS, end_ns);
    let took = started.elapsed().as_secs_f64();
    let bytes = size(&estimates);
    let per_day = bytes as f64 / (SEGMENTS as f64 * days as f64) / 1024.0;
    println!(
        "filled: {days} days, {SEGMENTS} segments in {took:.0} s, by {epochs} epochs over HTTP"
    );
    println!("size: {:.1} MiB, {per_day:.1} KiB per segment and day", bytes as f64 / 1048576.0);
    println!("  epochs {:.1} MiB", size(&estimates.join("epochs")) as f64 / 1048576.0);
    println!("  minutes and hours {:.1} MiB", size(&estimates.join("rollups")) as f64 / 1048576.0);
    ask(folder.path(), end_ns, seconds);
    bound(&estimates, bytes / 2, end_ns);
}

fn ask(folder: &Path, end_ns: i64, seconds: usize) {
    let serving = Serving::start(folder, LIVE_SEGMENTS);
    let (stop, sent) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut asked = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| feed(&serving.address, &stop, &sent));
        // The first questions open every file once.
        std::thread::sleep(Duration::from_secs(3));
        let client = client();
        let (used, began) = (serving.processor_time(), Instant::now());
        let until = Instant::now() + Duration::from_secs(seconds as u64);
        let mut number = 0;
        while Instant::now() < until {
            let [upstream, downstream] = points(number * 7 % SEGMENTS);
            let start = (end_ns - DAY_NS) / 1_000_000_000;
            let url = format!(
                "http://{}/v1/estimates?segment={upstream}:{downstream}&algorithm=sample\
                 &start={start}&end={}&step=minute",
                serving.address,
                end_ns / 1_000_000_000 - 1
            );
            let started = Instant::now();
            let mut response = client.get(&url).call().unwrap();
            let text = response.body_mut().with_config().limit(1 << 30).read_to_string().unwrap();
            asked.push(started.elapsed());
            assert_eq!(text.matches("\"start_ns\"").count() - 2, 1_440, "{}", &text[..500]);
            number += 1;
            std::thread::sleep(Duration::from_millis(20));
        }
        let used = (serving.processor_time() - used).as_secs_f64();
        println!("processor: {:.2} s in {:.0?}", used, began.elapsed());
        stop.store(true, Ordering::Relaxed);
    });
    println!("load average {}", load_average());
    println!("a day of minutes of one segment: {}", times(asked));
    let sent = sent.load(Ordering::Relaxed);
    println!("meanwhile {sent} epochs came in; memory {} MiB", serving.memory_mib());
    serving.kill();
}

/// Agents of all live segments, an epoch a second each.
fn feed(address: &str, stop: &AtomicBool, sent: &AtomicU64) {
    let observing = Observing { epoch_ns: 1_000_000_000, rows: 64 };
    let first = now_ns() / observing.epoch_ns - 2;
    let agent = |number: usize| Agent::new(number / 2, number % 2, first, observing);
    let mut agents: Vec<Agent> = (0..2 * LIVE_SEGMENTS).map(agent).collect();
    let client = client();
    while !stop.load(Ordering::Relaxed) {
        for agent in &mut agents {
            agent.observe(now_ns());
            agent.send(&client, address);
        }
        sent.store(agents.iter().map(|agent| agent.acknowledged).sum(), Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Whether the bound on bytes holds.
fn bound(folder: &Path, bytes_max: u64, end_ns: i64) {
    let retention = HistoryRetention { bytes_max: Some(bytes_max), ..HistoryRetention::default() };
    let config = HistoryConfig { retention, ..HistoryConfig::default() };
    let history = History::open(folder, config).unwrap();
    // What came in while questions were asked is sealed first.
    let removed = history.keep(Timestamp::from_nanos(end_ns + 10 * HOUR_NS)).unwrap().removed;
    let left = size(folder);
    assert!(left <= bytes_max + (1 << 20), "{left} of {bytes_max}");
    println!("a bound of {bytes_max} bytes: {} files deleted, {left} bytes left", removed.files);
}

fn size(folder: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let sizes = entries.map(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() { size(&path) } else { std::fs::metadata(&path).map_or(0, |of| of.len()) }
    });
    sizes.sum()
}

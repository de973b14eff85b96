//! Questions of a dashboard to a history of weeks, while epochs come in.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use twixt_collector::ESTIMATES_FOLDER;
use twixt_history::{
    DelayPart, History, HistoryConfig, Quantile, Retention, Row, SeriesKey, histogram,
};
use twixt_model::{Histogram, Timestamp};

use crate::agents::{Agent, Observing, client, now_ns};
use crate::serving::{Serving, load_average, points};
use crate::summary::times;

const SEGMENTS: usize = 200;
const MINUTE_NS: i64 = 60_000_000_000;
const DAY_NS: i64 = 1_440 * MINUTE_NS;
const HOUR_NS: i64 = 60 * MINUTE_NS;
/// Epochs of a second that come in meanwhile: of both points of each of these segments.
const LIVE_SEGMENTS: usize = 250;

pub(crate) fn run(days: i64, seconds: usize) {
    let folder = tempfile::tempdir().unwrap();
    let estimates = folder.path().join(ESTIMATES_FOLDER);
    // Until the last full hour, so that what comes in now is an hour of its own.
    let end_ns = now_ns() / HOUR_NS * HOUR_NS;
    let started = Instant::now();
    fill(&estimates, end_ns - days * DAY_NS, end_ns);
    let took = started.elapsed().as_secs_f64();
    let bytes = size(&estimates);
    let per_day = bytes as f64 / (SEGMENTS as f64 * days as f64) / 1024.0;
    println!(
        "filled: {days} days, {SEGMENTS} segments in {took:.0} s, straight through the history"
    );
    println!("size: {:.1} MiB, {per_day:.1} KiB per segment and day", bytes as f64 / 1048576.0);
    println!("  epochs {:.1} MiB", size(&estimates.join("epochs")) as f64 / 1048576.0);
    println!("  minutes and hours {:.1} MiB", size(&estimates.join("rollups")) as f64 / 1048576.0);
    ask(folder.path(), end_ns, seconds);
    bound(&estimates, bytes / 2, end_ns);
}

/// One row a minute for every segment, an hour at a time.
fn fill(folder: &Path, start_ns: i64, end_ns: i64) {
    let history = History::open(folder, HistoryConfig::default()).unwrap();
    let mut hour_ns = start_ns;
    while hour_ns < end_ns {
        for minute in 0..60 {
            let start_ns = hour_ns + minute * MINUTE_NS;
            let rows: Vec<Row> = (0..SEGMENTS).map(|segment| row(segment, start_ns)).collect();
            history.append(&rows, Timestamp::from_nanos(hour_ns)).unwrap();
        }
        history.seal_all().unwrap();
        hour_ns += HOUR_NS;
    }
}

/// A minute with 200 delays that rise and fall with the day.
fn row(segment: usize, start_ns: i64) -> Row {
    let mut histogram = Histogram::new(256);
    let mut state = start_ns as u64 ^ (segment as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let phase = (start_ns % DAY_NS) as f64 / DAY_NS as f64 * std::f64::consts::TAU;
    let base_ns = 1e6 * (1.0 + segment as f64 / 50.0) * (1.5 + phase.sin());
    let (mut sum_ns, mut smallest, mut largest) = (0_i128, i64::MAX, i64::MIN);
    for _ in 0..200 {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let uniform = ((state >> 11) as f64 + 1.0) / (1_u64 << 53) as f64;
        let delay = (base_ns * (1.0 - 0.3 * uniform.ln())) as i64;
        histogram.add(delay, 1.0);
        sum_ns += i128::from(delay);
        (smallest, largest) = (smallest.min(delay), largest.max(delay));
    }
    let quantile = |share| Quantile::of(histogram.percentile(share).unwrap());
    let [upstream, downstream] = points(segment);
    let series = SeriesKey {
        upstream,
        downstream,
        class: String::new(),
        algorithm: "sample".to_owned(),
        domain: "load".to_owned(),
        epoch_ns: MINUTE_NS,
    };
    Row {
        packets: Some(10_000),
        used: Some(200),
        lost: Some(state % 5),
        delay: Some(DelayPart {
            count: 200,
            sum_ns,
            squares_ns2: Some(200.0 * (0.3 * base_ns).powi(2)),
            half_width_ns: Some(0.04 * base_ns),
            min_ns: Some(smallest),
            quantiles: [0.5, 0.95, 0.99, 0.999].map(quantile),
            max_ns: Some(largest),
            histogram: Some(histogram::encode(&histogram)),
            steps: None,
        }),
        ..Row::untold(series, start_ns / MINUTE_NS)
    }
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
    let retention = Retention { bytes_max: Some(bytes_max), ..Retention::default() };
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

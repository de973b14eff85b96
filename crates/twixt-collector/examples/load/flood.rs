//! A thousand agents at once, and a kill in the middle.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;
use twixt_collector::EPOCHS_FOLDER;
use twixt_store::{Depth, Log, Options, Query};

use crate::agents::{Agent, Observing, client, now_ns};
use crate::serving::{Serving, load_average, points};
use crate::summary::times;

const SEGMENTS: usize = 500;
const AGENTS: usize = 2 * SEGMENTS;
/// Half a second: two epochs a second of every agent.
const EPOCH_NS: i64 = 500_000_000;
/// Connections are shared by agents.
const THREADS: usize = 50;
/// Until all epochs are concluded, the last too, whose successor is waited for. Late ones are waited
/// for as long as others.
const CONCLUDING_MAX: Duration = Duration::from_secs(180);

/// Synopses of 4 to 16 KiB.
fn observing(segment: usize) -> Observing {
    Observing { epoch_ns: EPOCH_NS, rows: 64 + (segment as i64 * 37) % 193 }
}

pub(crate) fn run(seconds: usize) {
    let undisturbed = flood(seconds, None);
    let killed = flood(seconds, Some(seconds / 2));
    let (mut same, mut differing) = (0, Vec::new());
    for (key, one) in &undisturbed {
        match killed.get(key) {
            Some(other) if one == other => same += 1,
            other => differing.push((key, one, other)),
        }
    }
    let only = killed.keys().filter(|key| !undisturbed.contains_key(*key)).count();
    println!("answers: {same} rows the same, {} differ, {only} only after a kill", differing.len());
    for difference in differing.iter().take(5) {
        println!("  {difference:?}");
    }
}

/// What is answered after so many seconds of epochs. Rows are numbered from the first epoch, so
/// that two runs can be compared.
fn flood(seconds: usize, kill_after: Option<usize>) -> BTreeMap<String, String> {
    let folder = tempfile::tempdir().unwrap();
    let serving = Serving::start(folder.path(), SEGMENTS);
    let address = Mutex::new(serving.address.clone());
    let (stop, first) = (AtomicBool::new(false), now_ns() / EPOCH_NS);
    let end_ns = first * EPOCH_NS + seconds as i64 * 1_000_000_000;
    let acknowledged = Mutex::new((Vec::new(), BTreeMap::new()));
    let mut memory = Vec::new();
    let answers = std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (address, acknowledged, stop) = (&address, &acknowledged, &stop);
            scope.spawn(move || {
                let replies = send(thread, first, end_ns, address, stop);
                let mut all = acknowledged.lock().unwrap();
                all.0.extend(replies.0);
                all.1.extend(replies.1);
            });
        }
        let (mut serving, mut kill_after, started) = (serving, kill_after, Instant::now());
        while started.elapsed() < Duration::from_secs(seconds as u64 + 5) {
            std::thread::sleep(Duration::from_secs(1));
            memory.push(serving.memory_mib());
            if kill_after.is_some_and(|after| started.elapsed().as_secs() >= after as u64) {
                kill_after = None;
                serving.kill();
                serving = Serving::start(folder.path(), SEGMENTS);
                address.lock().unwrap().clone_from(&serving.address);
            }
        }
        stop.store(true, Ordering::Relaxed);
        let answers = concluded(&serving.address, first, seconds);
        serving.kill();
        answers
    });
    let (took, counts) = acknowledged.into_inner().unwrap();
    let sent: u64 = counts.values().sum();
    let lost = lost(folder.path(), &counts);
    let name = if kill_after.is_some() { "killed in the middle" } else { "undisturbed" };
    println!("{name}: {sent} epochs of {AGENTS} agents acknowledged, {lost} of them lost");
    println!("  acknowledged after: {}", times(took));
    let at = |tenths: usize| memory.get(memory.len() * tenths / 10).copied().unwrap_or(0);
    let (most, last) = (memory.iter().max().unwrap_or(&0), memory.last().unwrap_or(&0));
    println!(
        "  memory: {} MiB after a tenth, {} after a half, {most} at most, {last} at the end",
        at(1),
        at(5)
    );
    println!("  load average {}", load_average());
    answers
}

type Replies = (Vec<Duration>, BTreeMap<String, u64>);

/// The agents of one thread.
fn send(
    thread: usize,
    first: i64,
    end_ns: i64,
    address: &Mutex<String>,
    stop: &AtomicBool,
) -> Replies {
    let numbers = (0..AGENTS).filter(|number| number % THREADS == thread);
    let agent = |number: usize| Agent::new(number / 2, number % 2, first, observing(number / 2));
    let mut agents: Vec<Agent> = numbers.map(agent).collect();
    let (client, mut took) = (client(), Vec::new());
    loop {
        let is_over = stop.load(Ordering::Relaxed);
        for agent in &mut agents {
            agent.observe(now_ns().min(end_ns));
            let address = address.lock().unwrap().clone();
            took.extend(agent.send(&client, &address));
        }
        if is_over && agents.iter().all(Agent::is_empty) {
            let counts = agents.iter().map(|agent| (agent.point().to_owned(), agent.acknowledged));
            return (took, counts.collect());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Acknowledged epochs that the log does not have.
fn lost(folder: &Path, counts: &BTreeMap<String, u64>) -> u64 {
    let log = Log::open(folder.join(EPOCHS_FOLDER), Options::default());
    let lost = counts.iter().map(|(point, acknowledged)| {
        let query = Query::all().at_point(point).to_depth(Depth::Checks);
        let mut scan = log.scan(query).unwrap();
        let stored = scan.by_ref().count() as u64;
        assert_eq!(scan.report().damaged, 0);
        acknowledged.saturating_sub(stored)
    });
    lost.sum()
}

/// Every row, when all epochs are concluded.
fn concluded(address: &str, first: i64, seconds: usize) -> BTreeMap<String, String> {
    // Of the last two of each agent a part is not over.
    let expected = SEGMENTS * (seconds * 2 - 2);
    let started = Instant::now();
    loop {
        std::thread::sleep(Duration::from_secs(5));
        let is_late = started.elapsed() > CONCLUDING_MAX;
        // The last is concluded last: as soon as it is there, everything is.
        let rows = answers(address, first);
        if is_late || rows.len() >= expected {
            println!("  {} of {expected} rows after {:.0?}", rows.len(), started.elapsed());
            return rows;
        }
    }
}

/// Every row, as integers.
fn answers(address: &str, first: i64) -> BTreeMap<String, String> {
    let client = client();
    let mut rows = BTreeMap::new();
    for segment in 0..SEGMENTS {
        let [upstream, downstream] = points(segment);
        let url =
            format!("http://{address}/v1/estimates?segment={upstream}:{downstream}&step=epoch");
        let mut response = client.get(&url).call().unwrap();
        let text = response.body_mut().with_config().limit(1 << 30).read_to_string().unwrap();
        let document: Value = serde_json::from_str(&text).unwrap();
        for row in document["estimates"].as_array().unwrap() {
            if row["epochs"] == 1 {
                let values =
                    ["packets", "used", "lost", "mean_ns", "stddev_ns", "ci95_low_ns", "reason"];
                let values: Vec<String> = values.iter().map(|key| row[key].to_string()).collect();
                let number = row["start_ns"].as_i64().unwrap() / EPOCH_NS - first;
                rows.insert(format!("{segment} {number}"), values.join(" "));
            }
        }
    }
    rows
}

//! `top` of a large network.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::json;
use twixt_history::{DelayPart, History, HistoryConfig, Quantile, Row, SeriesKey};
use twixt_model::{Histogram, Timestamp};
use twixt_testing::{pace, require, resident_kib};

use super::on_terminal;
use crate::collector::process::Process;
use crate::support::folder;

const SECOND_NS: i64 = 1_000_000_000;

/// Writes what a collector in this folder would know of the last seconds of so many segments.
pub(super) fn store_now(folder: &Path, segments: i64, classes: &[&str], seconds: i64) {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let last = since.as_nanos() as i64 / SECOND_NS;
    let history = History::open(&folder.join("estimates"), HistoryConfig::default()).unwrap();
    for second in last - seconds..last {
        let now = Timestamp::from_nanos(second * SECOND_NS);
        for number in 0..segments {
            for class in classes {
                history.append(&[row(number, class, second)], now).unwrap();
            }
        }
    }
    history.sync().unwrap();
}

/// The larger its number, the slower a segment.
fn row(segment: i64, class: &str, second: i64) -> Row {
    let base_ns = 1_000_000 + 20_000 * segment + 1_000 * (second % 60) * (segment % 7);
    let mut histogram = Histogram::new(Histogram::BUCKETS_MIN);
    (0..100).for_each(|number| histogram.add(base_ns + number * number * 300, 1.0));
    let known = |more_ns: i64| Quantile {
        value_ns: Some(base_ns + more_ns),
        low_ns: Some(base_ns + more_ns - 20_000),
        high_ns: Some(base_ns + more_ns + 30_000),
    };
    let series = SeriesKey {
        upstream: format!("r{segment:03}-a"),
        downstream: format!("r{:03}-b", segment + 1),
        class: class.to_owned(),
        algorithm: "sample".to_owned(),
        domain: "lab".to_owned(),
        epoch_ns: SECOND_NS,
    };
    Row {
        packets: Some(6_000),
        used: Some(100),
        lost: Some((second % 5) as u64),
        delay: Some(DelayPart {
            count: 100,
            sum_ns: i128::from(100 * base_ns),
            squares_ns2: Some(1e12),
            half_width_ns: Some(5e3),
            min_ns: Some(base_ns),
            quantiles: [500_000, 2_400_000, 2_900_000, 3_000_000].map(known),
            max_ns: Some(base_ns + 3_000_000),
            histogram: Some(twixt_history::histogram::encode(&histogram)),
            steps: None,
        }),
        ..Row::untold(series, second)
    }
}

#[test]
fn hundreds_of_segments_are_sorted_filtered_and_scrolled() {
    require!(program "python3");
    let folder = folder();
    store_now(&folder.path().join("collector"), 200, &["voice", "web"], 20);
    let process = Process::start(folder.path(), 0);
    let arguments = format!("top --collector http://{} --window 10m", process.address);
    let mut screen = on_terminal((80, 24), &arguments);
    let shown = screen.wait("400 of 400 by p99");
    assert!(shown.contains("r199-a > r200-b"), "the slowest is first: {shown}");
    screen.keys("G");
    screen.wait("r000-a > r001-b");
    screen.keys("/r15\r");
    let shown = screen.wait("by p99 · filter: r15");
    // 150 to 159, and 149 by the point where it ends.
    assert!(shown.contains("22 of 400") && !shown.contains("r000-out"), "{shown}");
    screen.keys("\u{1b}");
    screen.gone("filter: r15");
    screen.keys("o");
    let shown = screen.wait("400 of 400 by p99, reversed");
    assert!(shown.contains("r000-a > r001-b"), "{shown}");
    screen.keys("q");
    assert_eq!(screen.ends(0), "");
}

/// What a frame costs, to be read: it depends on the machine.
#[test]
#[ignore = "prints figures"]
fn what_a_frame_of_many_segments_costs() {
    require!(program "python3");
    const KEYS: usize = 300;
    let folder = folder();
    store_now(&folder.path().join("collector"), 300, &["voice", "web", "backup"], 60);
    let process = Process::start(folder.path(), 0);
    for size in [(80, 24), (200, 50)] {
        let arguments =
            format!("top --collector http://{} --interval 10m --window 4m", process.address);
        let mut screen = on_terminal(size, &arguments);
        screen.wait("900 of 900");
        screen.wait("▀");
        let id = screen.step(&json!({ "show": true }))["process"].as_u64().unwrap() as u32;
        let (begun, before) = (Instant::now(), worked(id));
        for number in 0..KEYS {
            screen.keys(if number % 2 == 0 { "j" } else { "k" });
            // One frame for each key.
            pace(Duration::from_millis(60));
        }
        screen.keys("/r299\r");
        screen.wait("filter: r299");
        println!(
            "{size:?}: {:.1} ms of processor time for a key and its frame, over {:.0} s; {} KiB resident",
            (worked(id) - before).as_secs_f64() * 1e3 / KEYS as f64,
            begun.elapsed().as_secs_f64(),
            resident_kib(id),
        );
        screen.keys("q");
        screen.ends(0);
    }
}

/// Processor time of a process so far, from `/proc`.
fn worked(id: u32) -> Duration {
    let text = fs::read_to_string(format!("/proc/{id}/stat")).unwrap();
    let fields: Vec<&str> = text.rsplit(')').next().unwrap().split_whitespace().collect();
    // Fields 14 and 15, of which two precede the name's end; a hundred ticks are a second.
    let ticks = |at: usize| fields[at].parse::<u64>().unwrap();
    Duration::from_millis(10 * (ticks(11) + ticks(12)))
}

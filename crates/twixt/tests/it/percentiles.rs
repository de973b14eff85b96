//! `twixt delay --sample-budget`, `--algorithm sample` and `--clock`: what single packets tell.

use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;
use twixt_testing::{check_coverage, require};

use crate::support::{folder, number, twixt_in};

/// Two captures of ten seconds, made with these options.
fn simulated(options: &str) -> TempDir {
    let folder = folder();
    let traffic = "--out . --seed 4 --flows 200 --rate 2kpps --packets 20000 --propagation 1ms";
    twixt_in(folder.path(), &format!("simulate {traffic} {options}")).expect(0);
    folder
}

#[track_caller]
fn delay(folder: &Path, options: &str) -> Value {
    let line = format!("delay upstream.pcap downstream.pcap -F json {options}");
    twixt_in(folder, &line).expect(0).json()
}

fn first(document: &Value, key: &str) -> i64 {
    number(document, &format!("/estimates/0/{key}"))
}

/// Of so many digest keys, those with which each interval holds the exact percentile, per
/// percentile.
fn held(folder: &Path, keys: std::ops::Range<u64>) -> [u64; 3] {
    let exact = delay(folder, "");
    let mut held = [0; 3];
    for key in keys {
        let sampled = delay(folder, &format!("-a lda --sample-budget 4KiB --key {key}"));
        for (held, name) in held.iter_mut().zip(["p50", "p95", "p99"]) {
            let truth = first(&exact, &format!("{name}_ns"));
            let [low, high] =
                ["low", "high"].map(|end| first(&sampled, &format!("{name}_{end}_ns")));
            *held += u64::from((low..=high).contains(&truth));
        }
        assert!(sampled["estimates"][0]["p999_ns"].is_null());
        let reason = sampled["estimates"][0]["reason"].as_str().expect("a reason");
        assert!(reason.contains("p99.9 needs 3688 sampled packets"), "{reason}");
    }
    held
}

#[test]
fn percentiles_of_a_real_queue_lie_in_their_intervals() {
    let traces = require!(shared "traces");
    for held in held(&traces.join("tbf-queue"), 0..20) {
        check_coverage("percentiles", held, 20, 0.95);
    }
}

/// By hand: as above, a hundred times.
#[test]
#[ignore = "takes a minute"]
fn percentiles_of_a_real_queue_lie_in_their_intervals_a_hundred_times() {
    let traces = require!(shared "traces");
    for held in held(&traces.join("tbf-queue"), 0..100) {
        check_coverage("percentiles", held, 100, 0.95);
    }
}

#[test]
fn a_sample_fills_what_a_sketch_does_not_know() {
    let folder = simulated("--delay weibull:shape=0.6,scale=100us --loss uniform:0.01");
    let exact = delay(folder.path(), "--by all");
    let alone = delay(folder.path(), "-a lda");
    let beside = delay(folder.path(), "-a lda --sample-budget 4KiB");
    for key in ["packets", "used", "lost", "mean_ns", "stddev_ns"] {
        assert_eq!(first(&alone, key), first(&beside, key), "{key}");
    }
    assert!(alone["sample"].is_null() && alone["estimates"][0]["p50_ns"].is_null());
    // Ten seconds of 4 KiB.
    let bytes = number(&beside, "/sample/synopsis_bytes");
    assert!((38_000..=41_000).contains(&bytes), "{bytes}");
    for key in ["p50_ns", "p95_ns", "p99_ns"] {
        let (found, truth) = (first(&beside, key), first(&exact, key));
        // About 2 000 of 20 000 packets: five deviations of p99 are a sixth of it.
        assert!((found - truth).abs() * 5 < truth, "{key}: {found} and {truth}");
    }
    assert!(first(&beside, "jitter_ns") > 0);
    assert!(beside["estimates"][0]["min_ns"].is_null());
}

#[test]
fn epochs_classes_and_prefixes_have_percentiles_too() {
    let folder = simulated("--delay weibull:shape=0.6,scale=100us");
    let epochs = delay(folder.path(), "-a lda --sample-budget 4KiB --epoch 2s");
    let rows = epochs["estimates"].as_array().expect("epochs");
    assert!(rows.len() >= 4, "{} epochs", rows.len());
    assert!(rows.iter().filter(|row| row["p95_ns"].is_i64()).count() >= 4);
    let sampled = delay(folder.path(), "-a sample --memory 64KiB --by prefix/8");
    let rows = sampled["estimates"].as_array().expect("prefixes");
    assert!(!rows.is_empty() && rows.iter().all(|row| row["p50_ns"].is_i64()));
    let classes = delay(folder.path(), "-a sample --class all=ip --by class");
    assert_eq!(classes["estimates"][0]["scope"], "class all");
    assert!(classes["estimates"][0]["p50_ns"].is_i64());
}

#[test]
fn what_makes_no_sense_is_a_usage_error() {
    let folder = simulated("--delay constant:1ms");
    let check = |options: &str, says: &str| {
        let line = format!("delay upstream.pcap downstream.pcap {options}");
        let run = twixt_in(folder.path(), &line).expect(2);
        assert!(run.stderr.contains(says), "{}", run.stderr);
    };
    check("-a sample --sample-budget 4KiB", "--memory");
    check("-a lda --sample-budget 4KiB --one-pass udp or tcp", "--epoch");
    check("-a lda --sample-budget 1", "too few");
    check("-a sample --memory 3KiB --budget-bytes 2048", "either --memory");
    check("-a sample --memory 3KiB --parts 512", "either --memory");
    check("--clock correct --one-pass udp or tcp", "--one-pass");
}

#[test]
fn a_recorded_sample_tells_percentiles_and_skew() {
    let folder = simulated("--delay weibull:shape=0.6,scale=100us --clock skew=10ppm");
    for point in ["upstream", "downstream"] {
        let line = format!("record -r {point}.pcap -w {point}.epochs -a sample --epoch 1s");
        twixt_in(folder.path(), &line).expect(0);
    }
    let line = "delay upstream.epochs downstream.epochs -F json";
    let document = twixt_in(folder.path(), line).expect(0).json();
    let rows = document["estimates"].as_array().expect("epochs");
    assert!(rows.len() >= 9 && rows[4]["p95_ns"].is_i64());
    let skew = document["clock"]["skew_ppm"].as_f64().expect("a skew");
    // 200 packets a second: its interval is at most a tenth of it.
    assert!((skew - 10.0).abs() < 0.1, "{skew}");
}

#[test]
fn skew_shows_in_one_direction_and_can_be_taken_out() {
    let straight = simulated("--delay weibull:shape=0.6,scale=100us");
    let skewed = simulated("--delay weibull:shape=0.6,scale=100us --clock skew=10ppm");
    let truth = first(&delay(straight.path(), ""), "mean_ns");
    let seen = delay(skewed.path(), "");
    // 10 ppm over ten seconds: 50 µs more on average.
    let more = first(&seen, "mean_ns") - truth;
    assert!((more - 50_000).abs() < 5_000, "{more}");
    let skew = seen["clock"]["skew_ppm"].as_f64().expect("a skew");
    let error = seen["clock"]["skew_error_ppm"].as_f64().expect("its error");
    assert!((skew - 10.0).abs() < 0.1 && error < 0.1, "{skew} ± {error}");
    assert_eq!(
        (&seen["clock"]["offset_ns"], &seen["clock"]["corrected"]),
        (&Value::Null, &false.into())
    );
    for algorithm in ["exact", "lda", "sample"] {
        let corrected = delay(skewed.path(), &format!("--clock correct -a {algorithm}"));
        assert_eq!(corrected["clock"]["corrected"], true);
        let beside = delay(straight.path(), &format!("-a {algorithm}"));
        let off = first(&corrected, "mean_ns") - first(&beside, "mean_ns");
        assert!(off.abs() < 1_000, "{algorithm}: {off} ns");
    }
}

#[test]
fn an_offset_shows_where_packets_go_both_ways_only() {
    let model = "--delay weibull:shape=0.6,scale=100us --clock offset=5ms";
    let one_way = simulated(model);
    assert!(delay(one_way.path(), "")["clock"]["offset_ns"].is_null());
    let both = simulated(&format!("{model} --reverse weibull:shape=0.6,scale=100us"));
    let seen = delay(both.path(), "");
    let mean = first(&seen, "mean_ns") - 5_000_000;
    let off = number(&seen, "/clock/offset_ns") - 5_000_000;
    assert!(off.abs() * 100 < mean, "{off} ns of {mean} ns");
    assert!(number(&seen, "/clock/error_bound_ns") >= off.abs());
    let corrected = delay(both.path(), "--clock correct");
    assert!((first(&corrected, "mean_ns") - mean).abs() * 100 < mean);
    assert!(first(&corrected, "min_ns") > 0);
}

#[test]
fn people_see_percentiles_and_clocks() {
    let folder = simulated("--delay weibull:shape=0.6,scale=100us --clock skew=10ppm");
    let line = "delay upstream.pcap downstream.pcap -a lda --sample-budget 4KiB --clock correct";
    let run = twixt_in(folder.path(), line).expect(0);
    for part in [
        "p99.9",
        "jitter",
        "downstream gains 10.0",
        "ppm",
        "delays are corrected",
        "– all: p99.9 needs",
    ] {
        assert!(run.stdout.contains(part), "{part}: {}", run.stdout);
    }
}

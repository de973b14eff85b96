//! Real captures, compared with what an independent matcher found in them, packet by packet.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;
use twixt_testing::require;

use crate::series::check_adds_up;
use crate::support::{Run, evidence, folder, number, twixt, twixt_in};

/// Runs `twixt delay` on the captures around a real token bucket.
#[track_caller]
fn tbf_queue(traces: &Path, arguments: &str) -> Value {
    let run = twixt_in(&traces.join("tbf-queue"), &format!("delay {arguments} -F json"));
    run.expect(0).json()
}

/// Checks that a value in nanoseconds, in milliseconds, rounds to what is stated.
#[track_caller]
fn check_ms(document: &Value, key: &str, stated: &str) {
    let decimals = stated.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    let found_ms = number(document, &format!("/estimates/0/{key}")) as f64 / 1e6;
    assert_eq!(format!("{found_ms:.decimals$}"), stated, "{key}");
}

/// Checks that a value is within a fraction of another.
#[track_caller]
fn check_near(found: i64, expected: i64, fraction: f64) {
    let error = (found - expected).unsigned_abs() as f64 / expected as f64;
    assert!(error <= fraction, "{found} is {:.2} % away from {expected}", 100.0 * error);
}

#[test]
fn exact_finds_what_is_known_of_a_real_queue() {
    let traces = require!(shared "traces");
    let document = tbf_queue(&traces, "upstream.pcap downstream.pcap --algorithm exact");
    assert_eq!(evidence(&document), [8349, 8042, 307]);
    for (key, stated_ms) in [
        ("mean_ns", "19.98"),
        ("stddev_ns", "8.75"),
        ("min_ns", "0.00"),
        ("p50_ns", "17.6"),
        ("p95_ns", "42.2"),
        ("p99_ns", "42.4"),
    ] {
        check_ms(&document, key, stated_ms);
    }
}

#[test]
fn lda_comes_close_in_a_fraction_of_the_memory() {
    let traces = require!(shared "traces");
    let exact = tbf_queue(&traces, "upstream.pcap downstream.pcap");
    let lda = tbf_queue(&traces, "upstream.pcap downstream.pcap -a lda");
    let of = |document: &Value, key: &str| number(document, &format!("/estimates/0/{key}"));
    check_near(of(&lda, "mean_ns"), of(&exact, "mean_ns"), 0.01);
    check_near(of(&lda, "stddev_ns"), of(&exact, "stddev_ns"), 0.1);
    assert_eq!((of(&lda, "packets"), of(&lda, "lost")), (8349, 307));
    assert!(number(&lda, "/synopsis_bytes") < 128 * 1024);
    let (low, high) = (of(&lda, "ci95_low_ns"), of(&lda, "ci95_high_ns"));
    assert!((low..=high).contains(&of(&exact, "mean_ns")), "{low} to {high}");
}

#[test]
fn epochs_add_up_to_the_whole() {
    let traces = require!(shared "traces");
    for algorithm in ["exact", "lda"] {
        let files = "upstream.pcap downstream.pcap";
        let document = tbf_queue(&traces, &format!("{files} -a {algorithm} --epoch 500ms"));
        let estimates = document["estimates"].as_array().expect("there are estimates");
        assert!(estimates.len() >= 10, "{} epochs of five seconds", estimates.len());
        assert_eq!(number(&document, "/epochs"), estimates.len() as i64);
        let sum =
            |key: &str| estimates.iter().map(|row| number(row, &format!("/{key}"))).sum::<i64>();
        assert_eq!((sum("packets"), sum("lost")), (8349, 307), "{algorithm}");
        if algorithm == "exact" {
            assert_eq!(sum("used"), 8042);
        }
    }
}

#[test]
fn both_directions_are_the_same_whichever_capture_is_named_first() {
    let traces = require!(shared "traces");
    let segments = |arguments: &str| tbf_queue(&traces, arguments)["segments"].clone();
    let straight = segments("upstream.pcap downstream.pcap --both");
    let swapped = segments("downstream.pcap upstream.pcap --both");
    assert_eq!(evidence(&straight[0]), [8349, 8042, 307]);
    assert_eq!(evidence(&straight[1]), [4466, 4466, 0]);
    assert_eq!(straight.as_array().map(Vec::len), Some(2));
    for key in ["segment", "estimates", "upstream", "downstream", "stretch", "synopsis_bytes"] {
        assert_eq!(straight[0][key], swapped[1][key], "{key}");
        assert_eq!(straight[1][key], swapped[0][key], "{key}");
    }
    let alone = tbf_queue(&traces, "downstream.pcap upstream.pcap");
    assert_eq!(alone["estimates"], straight[1]["estimates"]);
}

/// A pair of captures with a truth file.
struct Pair {
    truth: &'static str,
    /// What the truth is about; it leaves out IPv6.
    filter: &'static str,
    captures: [&'static str; 2],
    /// Packets from the first to the second that only the first saw, and the other way round:
    /// lost, but for those that left when the other capture had ended.
    alone: [Alone; 2],
}

#[derive(Clone, Copy)]
struct Alone {
    lost: i64,
    /// Left within a delay of the end of the other capture: skipped, not lost.
    outside: i64,
}

const NONE: Alone = Alone { lost: 0, outside: 0 };

const PAIRS: &[Pair] = &[
    Pair {
        truth: "mptcp-1",
        filter: "tcp",
        captures: [
            "mptcp-twoside/client_1_tcp_only.pcapng",
            "mptcp-twoside/server_1_tcp_only.pcapng",
        ],
        alone: [Alone { lost: 17, outside: 0 }, Alone { lost: 11, outside: 0 }],
    },
    Pair {
        truth: "mptcp-2-20180613",
        filter: "tcp",
        captures: [
            "mptcp-twoside/client_2_20180613.pcapng",
            "mptcp-twoside/server_2_20180613.pcapng",
        ],
        alone: [Alone { lost: 7, outside: 0 }, Alone { lost: 13, outside: 0 }],
    },
    // The simulation stopped while one packet was in flight each way.
    Pair {
        truth: "qns-tcp",
        filter: "ip",
        captures: ["qns-twoside/tcp-13ms-left.pcap", "qns-twoside/tcp-13ms-right.pcap"],
        alone: [Alone { lost: 0, outside: 1 }, Alone { lost: 0, outside: 1 }],
    },
    Pair {
        truth: "qns-quic",
        filter: "ip",
        captures: ["qns-twoside/quic-15ms-left.pcap", "qns-twoside/quic-15ms-right.pcap"],
        alone: [NONE, NONE],
    },
    Pair {
        truth: "qns-quic-fast",
        filter: "ip",
        captures: ["qns-twoside/quic-fast-left.pcap", "qns-twoside/quic-fast-right.pcap"],
        alone: [NONE, NONE],
    },
    // In these captures `in` and `out` are exchanged: frames leave through `_in`.
    Pair {
        truth: "intsight-link-s1-s3",
        filter: "ip",
        captures: [
            "bmv2-intsight-multipoint/s1-eth5_in.pcap",
            "bmv2-intsight-multipoint/s3-eth4_out.pcap",
        ],
        alone: [NONE, NONE],
    },
    Pair {
        truth: "intsight-link-s3-s1",
        filter: "ip",
        captures: [
            "bmv2-intsight-multipoint/s3-eth4_in.pcap",
            "bmv2-intsight-multipoint/s1-eth5_out.pcap",
        ],
        alone: [NONE, NONE],
    },
];

/// Delays from the first capture to the second, and from the second to the first, ascending.
///
/// The file has the second time less the first: negative for what goes the other way. All of
/// these pairs share one clock, and no delay is zero.
fn true_delays(traces: &Path, name: &str) -> [Vec<i64>; 2] {
    let path = traces.join(format!("truth/owd-{name}.tsv.gz"));
    let mut text = String::new();
    let file = fs::File::open(&path).expect("the truth is there");
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).expect("it is gzip of text");
    let difference = |line: &str| -> i64 {
        line.split('\t').nth(2).and_then(|field| field.parse().ok()).expect("a column of numbers")
    };
    let (mut there, mut back): (Vec<i64>, Vec<i64>) =
        text.lines().skip(1).map(difference).partition(|&difference_ns| difference_ns > 0);
    back.iter_mut().for_each(|difference_ns| *difference_ns = -*difference_ns);
    there.sort_unstable();
    back.sort_unstable();
    [there, back]
}

/// Checks one direction against the true delays.
#[track_caller]
fn check_segment(name: &str, segment: &Value, delays_ns: &[i64], alone: Alone) {
    let matched = delays_ns.len() as i64;
    assert_eq!(evidence(segment), [matched + alone.lost, matched, alone.lost], "{name}");
    let outside = segment["upstream"]["skipped"]["outside-stretch"].as_i64().unwrap_or(0);
    assert_eq!(outside, alone.outside, "{name}");
    let at = |percent: usize| delays_ns[(percent * delays_ns.len() / 100).min(delays_ns.len() - 1)];
    for (key, expected_ns) in [
        ("min_ns", delays_ns[0]),
        ("p50_ns", at(50)),
        ("p95_ns", at(95)),
        ("p99_ns", at(99)),
        ("max_ns", at(100)),
        ("mean_ns", (delays_ns.iter().sum::<i64>() as f64 / matched as f64).round() as i64),
    ] {
        assert_eq!(number(segment, &format!("/estimates/0/{key}")), expected_ns, "{name} {key}");
    }
}

#[test]
fn every_pair_of_captures_gives_the_delays_that_an_independent_matcher_found() {
    let traces = require!(shared "traces");
    for pair in PAIRS {
        let [first, second] = pair.captures;
        let arguments = format!("delay {first} {second} --both -F json {}", pair.filter);
        let document = twixt_in(&traces, &arguments).expect(0).json();
        let segments = document["segments"].as_array().expect("there are segments");
        let expected = true_delays(&traces, pair.truth);
        let seen = expected.iter().zip(pair.alone).filter(|(delays, _)| !delays.is_empty());
        assert_eq!(segments.len(), seen.clone().count(), "{}", pair.truth);
        for (segment, (delays_ns, alone)) in segments.iter().zip(seen) {
            check_segment(pair.truth, segment, delays_ns, alone);
        }
    }
}

#[test]
fn rows_add_up_to_the_whole_on_every_pair_of_captures() {
    let traces = require!(shared "traces");
    let tbf = ["tbf-queue/upstream.pcap", "tbf-queue/downstream.pcap"];
    let pairs = PAIRS.iter().map(|pair| (pair.captures, pair.filter)).chain([(tbf, "ip")]);
    for ([first, second], filter) in pairs {
        let segments = |options: &str| {
            let arguments = format!("delay {first} {second} --both -F json {options} {filter}");
            twixt_in(&traces, &arguments).expect(0).json()["segments"].clone()
        };
        let whole = segments("");
        for length in ["100ms", "1s", "auto"] {
            let series = segments(&format!("--epoch {length}"));
            let (whole, series) = (whole.as_array().unwrap(), series.as_array().unwrap());
            assert_eq!(whole.len(), series.len(), "{first}");
            series.iter().zip(whole).for_each(|(series, whole)| check_adds_up(series, whole));
        }
    }
}

/// Flow records of both directions: each is told apart, and has delays that packets of it had.
#[test]
fn two_way_records_of_every_pair_give_the_delays_of_their_direction() {
    let traces = require!(shared "traces");
    let folder = folder();
    for pair in PAIRS {
        for (capture, point) in pair.captures.iter().zip(["a", "b"]) {
            let file = folder.path().join(point).display().to_string();
            let export = format!("flow export -r {capture} -w {file}.ipfix {}", pair.filter);
            twixt_in(&traces, &export).expect(0);
        }
        let ways = [("a.ipfix b.ipfix", 0), ("b.ipfix a.ipfix", 1)];
        let expected = true_delays(&traces, pair.truth);
        for (files, way) in ways.into_iter().filter(|(_, way)| !expected[*way].is_empty()) {
            let delays_ns = &expected[way];
            for estimator in ["hybrid", "multiflow", "endpoint"] {
                let arguments =
                    format!("flow pair {files} --by all --estimator {estimator} -F json");
                let document = twixt_in(folder.path(), &arguments).expect(0).json();
                let estimate = &document["estimates"][0];
                let mean_ns = number(estimate, "/mean_ns");
                let possible = delays_ns[0]..=delays_ns[delays_ns.len() - 1];
                assert!(possible.contains(&mean_ns), "{} {files}: {estimate}", pair.truth);
                assert!(number(estimate, "/used") <= number(estimate, "/packets"), "{estimate}");
            }
        }
    }
}

/// Runs a command on every capture there is, on as many threads as the machine has processors.
fn on_every_capture(traces: &Path, run: impl Fn(&str) -> Run + Sync) {
    let files = files_below(traces);
    assert!(files.len() > 900, "only {} captures", files.len());
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            let shown = file.display().to_string();
            check_survives(&shown, &run(&shown));
        }
    };
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(2, usize::from);
        for _ in 0..threads.min(4) {
            scope.spawn(work);
        }
    });
}

/// Checks that a failure states its reason, and that nothing panics.
fn check_survives(file: &str, run: &Run) {
    let Run { code, stderr, .. } = run;
    assert!(!stderr.contains("panicked"), "{file}: {stderr}");
    assert!(code.is_some_and(|code| (0..=4).contains(&code)), "{file}: {code:?}, {stderr}");
    assert!(*code == Some(0) || !stderr.is_empty(), "{file}: {code:?} without a word");
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("the folder can be read") {
            let path = entry.expect("the folder can be read").path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files
}

#[test]
fn info_survives_every_capture_and_says_what_is_wrong() {
    let traces = require!(shared "traces");
    on_every_capture(&traces, |path| twixt(["info", path]));
}

#[test]
fn record_survives_every_capture() {
    let traces = require!(shared "traces");
    on_every_capture(&traces, |path| twixt(["record", "-r", path, "-w", "-", "--memory", "4KiB"]));
}

//! `twixt path` on chains of captures whose truth is known.

use std::path::Path;

use serde_json::Value;
use twixt_testing::require;

use crate::support::{Run, folder, number, twixt_in};

/// Three points: a short way with some loss, then a queue that loses more.
fn chain() -> tempfile::TempDir {
    let folder = folder();
    let run = |words: &str| twixt_in(folder.path(), words).expect(0);
    run("simulate --out 1 --seed 1 --flows 200 --flow-size fixed:packets=50 --rate 50kpps \
         --delay weibull:shape=0.6,scale=100us --propagation 1ms --loss uniform:0.01");
    run("simulate --out 2 --seed 2 --arrivals 1/downstream.pcap \
         --delay droptail:drain=130mbit,queue=200 --propagation 2ms");
    folder
}

const POINTS: &str = "1/upstream.pcap 1/downstream.pcap 2/downstream.pcap --toward 198.18.0.0/15";

#[track_caller]
fn path(folder: &Path, options: &str) -> Run {
    twixt_in(folder, &format!("path {options}"))
}

/// What the truth file of a segment says of all flows: packets, lost, and the sum of delays.
fn truth(folder: &Path, segment: &str) -> (i64, i64, f64) {
    let text = std::fs::read_to_string(folder.join(segment).join("truth.csv")).unwrap();
    let mut all = (0, 0, 0.0);
    for line in text.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let [packets, lost] = [fields[1], fields[2]].map(|field| field.parse::<i64>().unwrap());
        let mean_ns: f64 = fields[3].parse().unwrap_or(0.0);
        all = (all.0 + packets, all.1 + lost, all.2 + mean_ns * (packets - lost) as f64);
    }
    all
}

#[track_caller]
fn check_segment(folder: &Path, document: &Value, index: usize, truth_of: &str) {
    let (packets, lost, sum_ns) = truth(folder, truth_of);
    let at = |key: &str| number(document, &format!("/segments/{index}/estimates/0/{key}"));
    // What is lost near the ends of the capture lies outside of the overlap.
    assert!((packets - at("packets")).abs() <= 20, "{packets} packets");
    assert!((lost - at("lost")).abs() <= 20, "{lost} lost");
    let mean_ns = sum_ns / (packets - lost) as f64;
    assert!((mean_ns - at("mean_ns") as f64).abs() < 0.001 * mean_ns, "mean {mean_ns}");
}

#[test]
fn every_segment_is_measured_and_so_is_the_whole() {
    let folder = chain();
    let document = path(folder.path(), &format!("{POINTS} -F json")).expect(0).json();
    check_segment(folder.path(), &document, 0, "1");
    check_segment(folder.path(), &document, 1, "2");
    assert_eq!(document["segments"][1]["segment"]["upstream"], "1/downstream.pcap");
    let mean = |pointer: &str| number(&document, &format!("{pointer}/mean_ns"));
    let segments = mean("/segments/0/estimates/0") + mean("/segments/1/estimates/0");
    assert_eq!(mean("/rest"), mean("/total/0") - segments);
    // Packets that the queue loses have crossed the first segment all the same: there they took
    // no longer than others, to within 5 deviations of a mean of some hundred.
    assert!(mean("/rest").abs() < 100_000, "{}", mean("/rest"));
    assert!(number(&document, "/rest/lost").abs() <= 20);
    for part in ["delay", "variance", "loss"] {
        assert_eq!(document["most"][part]["downstream"], "2/downstream.pcap", "{part}");
    }
}

#[test]
fn a_synopsis_gives_intervals_for_segments_whole_and_rest() {
    let folder = chain();
    let options = format!("{POINTS} -F json --algorithm lda");
    let document = path(folder.path(), &options).expect(0).json();
    let [low, high] = ["low", "high"].map(|end| number(&document, &format!("/rest/ci95_{end}_ns")));
    assert!(low < high && low < 100_000 && high > -100_000, "{low} to {high}");
}

#[test]
fn people_read_who_added_the_most() {
    let folder = chain();
    let run = path(folder.path(), POINTS).expect(0);
    for line in ["unexplained rest", "most of the delay     1/downstream.pcap → 2/downstream.pcap"]
    {
        assert!(run.stdout.contains(line), "{}", run.stdout);
    }
    let rows = path(folder.path(), &format!("{POINTS} -F jsonl")).expect(0).json_lines();
    let ends: Vec<&str> = rows.iter().map(|row| row["downstream"].as_str().unwrap()).collect();
    assert_eq!(ends, ["1/downstream.pcap", "2/downstream.pcap", "2/downstream.pcap"]);
}

#[test]
fn epoch_files_make_a_path_as_well() {
    let folder = chain();
    let points = ["1/upstream", "1/downstream", "2/downstream"];
    for point in points {
        let name = point.replace('/', "-");
        twixt_in(
            folder.path(),
            &format!(
                "record -r {point}.pcap -w {name}.epochs --point {name} -a lda --epoch 100ms \
                 --guard 40ms dst net 198.18.0.0/15"
            ),
        )
        .expect(0);
    }
    let options = "1-upstream.epochs 1-downstream.epochs 2-downstream.epochs -F json";
    let document = path(folder.path(), options).expect(0).json();
    assert_eq!(document["most"]["delay"]["downstream"], "2-downstream.epochs");
    path(folder.path(), "1-upstream.epochs 1-downstream.epochs 2/downstream.pcap")
        .expect(2)
        .says(&["record the captures first"]);
}

#[test]
fn what_cannot_be_a_path_is_refused() {
    let folder = chain();
    path(folder.path(), "1/upstream.pcap").expect(2);
    path(folder.path(), "1/upstream.pcap - 2/downstream.pcap")
        .expect(2)
        .says(&["not standard input"]);
    path(folder.path(), "1/upstream.pcap 1/downstream.pcap nowhere.pcap").expect(2);
    // The other way round no packet goes downstream.
    path(folder.path(), "2/downstream.pcap 1/downstream.pcap 1/upstream.pcap").expect(4);
}

/// Two software switches and the link between them; payloads change, headers do not. Those who
/// take this way are seen at all three points, so nothing is left unexplained.
#[test]
fn a_real_path_over_three_ports_adds_up() {
    let traces = require!(shared "traces");
    let options = "s1-eth5_in.pcap s3-eth4_out.pcap s3-eth7_in.pcap --digest headers -F json \
                   dst net 10.0.5.0/24";
    let folder = traces.join("bmv2-intsight-multipoint");
    let document = path(&folder, options).expect(0).json();
    assert_eq!(number(&document, "/rest/lost"), 0);
    assert!(number(&document, "/rest/mean_ns").abs() <= 1);
}

//! What a collector tells of single flows, against what `delay` finds in the same captures.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;
use twixt_delivery::{UPLOAD_PATH, UploadWriter};
use twixt_measure::RecordReader;
use twixt_testing::wait_for;

use crate::collector::process::Process;
use crate::support::{number, twixt, twixt_in};

/// Seven seconds of forty flows, each with a delay of its own, and some loss.
const TRAFFIC: &str = "--flows 40 --flow-size fixed:packets=350 --rate 2kpps --seed 3 \
                       --delay per-flow:median=2ms,spread=0.8,jitter=0.3 --loss uniform:0.02";

/// Two captures, and a collector that has their epochs.
struct Lab {
    folder: tempfile::TempDir,
    process: Process,
}

impl Lab {
    /// With the epochs of these algorithms and their settings.
    fn new(algorithms: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        twixt_in(folder.path(), &format!("simulate --out . {TRAFFIC}")).expect(0);
        let process = Process::start(folder.path(), 0);
        for (run, algorithm) in algorithms.iter().enumerate() {
            for (point, capture) in [("up", "upstream"), ("down", "downstream")] {
                let file = format!("{point}-{run}.epochs");
                let options = format!("-a {algorithm} --epoch 1s --guard 100ms --point {point}");
                let record = format!("record -r {capture}.pcap -w {file} {options}");
                twixt_in(folder.path(), &record).expect(0);
                send(&process, &folder.path().join(file));
            }
        }
        Self { folder, process }
    }

    fn delay(&self, options: &str) -> Value {
        let captures = "delay upstream.pcap downstream.pcap -F json --epoch 1s --by flow";
        twixt_in(self.folder.path(), &format!("{captures} {options}")).expect(0).json()
    }

    fn query(&self, options: &str) -> crate::support::Run {
        let url = format!("--collector http://{} --segment up:down", self.process.address);
        twixt_in(self.folder.path(), &format!("query {url} {options}"))
    }

    /// Checks that a flow has a row for each epoch, which come to what the list of flows has.
    fn check_one_flow(&self, listed: &Value, epochs: i64, range: &std::ops::Range<i64>) {
        let scope = listed["scope"].as_str().unwrap();
        let ask = |source: &str, format: &str| {
            let line = format!("query {source} --segment up:down --by flow -F {format}");
            let words = line.split_whitespace().map(str::to_owned);
            let time = between(range).split(' ').map(str::to_owned).collect::<Vec<_>>();
            let words: Vec<String> =
                words.chain(["--scope".to_owned(), scope.to_owned()]).chain(time).collect();
            twixt(words).expect(0)
        };
        let url = format!("--collector http://{}", self.process.address);
        let document = ask(&url, "json").json();
        assert_eq!(document["total"], Value::from(vec![listed.clone()]));
        let rows = document["estimates"].as_array().unwrap();
        assert!(!rows.is_empty() && rows.len() as i64 <= epochs, "{document}");
        let packets: i64 = rows.iter().map(|row| number(row, "/packets")).sum();
        assert_eq!(packets, number(listed, "/packets"));
        let directory = format!("--directory {}", self.folder.path().join("collector").display());
        assert_eq!(ask(&directory, "json").json(), document);
        assert_eq!(ask(&url, "jsonl").json_lines(), *rows);
    }

    /// Waits until the collector has estimated so many epochs.
    fn wait(&self, epochs: i64) {
        wait_for("the estimates", || {
            let run = self.query("--step hour -F json");
            let document: Value = serde_json::from_str(&run.stdout).unwrap_or_default();
            let known = document["completeness"]["epochs"].as_i64();
            if known >= Some(epochs) { Ok(()) } else { Err(document) }
        });
    }
}

fn send(process: &Process, file: &Path) {
    let mut reader = RecordReader::new();
    reader.feed(&std::fs::read(file).unwrap());
    let mut writer = UploadWriter::new();
    while let Some(sealed) = reader.next_sealed().unwrap() {
        writer.push(&sealed.to_bytes()).unwrap();
    }
    let url = format!("http://{}{UPLOAD_PATH}", process.address);
    let mut answer = ureq::post(&url).send(writer.into_body()).unwrap();
    let text = answer.body_mut().read_to_string().unwrap();
    assert!(text.contains(r#""refused":[]"#), "{text}");
}

/// Packets, used, lost, and the sum of delays.
type Sums = [i64; 4];

/// What `delay` reports for each flow in the epochs of an interval, added up.
fn expected(document: &Value, within: std::ops::Range<i64>) -> BTreeMap<String, Sums> {
    let mut flows: BTreeMap<String, Sums> = BTreeMap::new();
    let rows = document["estimates"].as_array().unwrap().iter();
    for row in rows.filter(|row| within.contains(&number(row, "/start_ns"))) {
        let sums = flows.entry(row["scope"].as_str().unwrap().to_owned()).or_default();
        let used = number(row, "/used");
        let delays = row["mean_ns"].as_i64().unwrap_or(0) * used;
        let values = [number(row, "/packets"), used, number(row, "/lost"), delays];
        sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
    }
    flows
}

fn flows(document: &Value) -> &[Value] {
    document["flows"].as_array().unwrap()
}

/// The first and the last moment of the epochs that have neighbours on both sides.
fn inner(document: &Value) -> std::ops::Range<i64> {
    const SECOND: i64 = 1_000_000_000;
    let start = number(document, "/stretch/start_ns").div_euclid(SECOND) + 1;
    let end = number(document, "/stretch/end_ns").div_euclid(SECOND);
    start * SECOND..end * SECOND
}

fn between(range: &std::ops::Range<i64>) -> String {
    let seconds = |ns: i64| format!("@{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
    format!("--start {} --end {}", seconds(range.start), seconds(range.end - 1))
}

#[test]
fn flows_of_exact_epochs_are_those_of_the_captures() {
    let lab = Lab::new(&["exact"]);
    let delay = lab.delay("-a exact");
    let range = inner(&delay);
    let epochs = (range.end - range.start) / 1_000_000_000;
    lab.wait(epochs);
    let expected = expected(&delay, range.clone());
    let asked = format!("--by flow --top 1000 -F json {}", between(&range));
    let document = lab.query(&asked).expect(0).json();
    assert_eq!(document["completeness"]["complete"], true, "{}", document["completeness"]);
    assert_eq!(number(&document, "/completeness/epochs"), epochs);
    assert_eq!((flows(&document).len(), document["reason"].as_str()), (expected.len(), None));
    for flow in flows(&document) {
        let [packets, used, lost, delays] = expected[flow["scope"].as_str().unwrap()];
        let found = ["/packets", "/used", "/lost"].map(|key| number(flow, key));
        assert_eq!(found, [packets, used, lost], "{flow}");
        // Means of epochs were rounded to nanoseconds, and so was their mean.
        let off = number(flow, "/mean_ns") - delays / used;
        assert!(off.abs() <= 1, "{flow}: {delays} ns of {used} packets");
        assert_eq!(flow["ci95_low_ns"], flow["mean_ns"], "each was measured: {flow}");
    }
    let means: Vec<i64> = flows(&document).iter().map(|flow| number(flow, "/mean_ns")).collect();
    assert!(means.is_sorted_by(|one, other| one >= other), "{means:?}");
    let loss = lab.query(&asked.replace("--top 1000", "--top 3 --order loss")).expect(0).json();
    let most = expected.values().map(|[packets, _, lost, _]| *lost as f64 / *packets as f64);
    let first = &flows(&loss)[0];
    let found = number(first, "/lost") as f64 / number(first, "/packets") as f64;
    assert_eq!((flows(&loss).len(), found), (3, most.fold(0.0, f64::max)));
    // The folder says the same.
    let folder = format!("query --directory collector --segment up:down {asked}");
    assert_eq!(twixt_in(lab.folder.path(), &folder).expect(0).json(), document);
    lab.check_one_flow(&flows(&document)[5], epochs, &range);
    let human = lab.query(&format!("--by flow {}", between(&range))).expect(0).stdout;
    assert!(human.contains("20 of 40 flows") && human.contains("\ncomplete: "), "{human}");
}

#[test]
fn flows_of_sketches_have_the_intervals_of_the_captures() {
    let lab = Lab::new(&["lds --heavy-entries 16", "lda"]);
    let delay = lab.delay("-a lds --heavy-entries 16 --flows heavy");
    let range = inner(&delay);
    lab.wait(2 * (range.end - range.start) / 1_000_000_000);
    // One epoch: nothing is added up, so every number is the same.
    let second = range.start + 2_000_000_000..range.start + 3_000_000_000;
    let asked = format!("--by flow --top 1000 -F json {}", between(&second));
    let document = lab.query(&asked).expect(0).json();
    let rows = delay["estimates"].as_array().unwrap().iter();
    let rows: Vec<&Value> = rows.filter(|row| second.contains(&number(row, "/start_ns"))).collect();
    assert_eq!(flows(&document).len(), rows.len());
    assert!(rows.len() >= 10, "{}", rows.len());
    for row in rows {
        let same = |flow: &&Value| flow["scope"] == row["scope"];
        let flow = flows(&document).iter().find(same).unwrap();
        for key in ["packets", "used", "lost", "mean_ns", "ci95_low_ns", "ci95_high_ns"] {
            assert_eq!(flow[key], row[key], "{key}: {flow} {row}");
        }
    }
    let reason = document["reason"].as_str().unwrap();
    assert!(reason.contains("lda does not separate flows"), "{reason}");
    assert!(reason.contains("lds keeps the keys of its large flows only"), "{reason}");
    let lda = lab.query(&format!("{asked} -a lda")).expect(4).json();
    assert_eq!((flows(&lda).len(), &lda["reason"]), (0, &"lda does not separate flows".into()));
}

#[test]
fn what_makes_no_sense_about_flows_is_a_usage_error() {
    let lab = Lab::new(&[]);
    for options in [
        "--by flow --step minute",
        "--by flow --scope all",
        "--by flow --scope tcp10.0.0.1:1>10.0.0.2:2",
        "--by flow -F parquet",
        "--by flow --order size",
        "--by flow --top 0",
        "--by class",
        "--order loss",
        "--top 3",
    ] {
        lab.query(options).expect(2);
    }
    let nothing = lab.query("--by flow -F json").expect(4).json();
    assert_eq!(nothing["reason"], "no estimate of that segment and time is stored");
}

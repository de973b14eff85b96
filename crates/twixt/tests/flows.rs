//! Algorithms that tell flows apart without keeping their keys: lds.

mod support;

use support::twixt_in;

/// A pair of captures of a few hundred flows, with truth.csv.
fn simulated(options: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let delay = "--delay per-flow:median=1ms,spread=0.5,jitter=0.5";
    let made = format!("simulate --out . --flows 300 --packets 20000 {delay} {options}");
    twixt_in(folder.path(), &made).expect(0);
    folder
}

#[test]
fn every_flow_is_answered_exactly_where_there_are_more_cells_than_flows() {
    let folder = simulated("");
    let verified = twixt_in(folder.path(), "verify upstream.pcap downstream.pcap -a lds -F json");
    let document = verified.expect(0).json();
    assert_eq!(document["flows"], document["answered"]);
    for size in document["by_size"].as_array().expect("there are sizes") {
        if size["flows"] != 0 {
            let error = size["median_relative_error"].as_f64().expect("it is known");
            assert!(error < 0.001, "{size}");
        }
    }
}

#[test]
fn delays_of_flows_come_with_intervals_and_names() {
    let folder = simulated("--loss uniform:0.001");
    let command = "delay upstream.pcap downstream.pcap -a lds --by flow -F json";
    let document = twixt_in(folder.path(), command).expect(0).json();
    let rows = document["estimates"].as_array().expect("there are estimates");
    assert!(rows.len() > 250, "{} flows", rows.len());
    let answered = rows.iter().filter(|row| !row["mean_ns"].is_null()).count();
    assert!(answered * 10 > rows.len() * 8, "{answered} of {}", rows.len());
    for row in rows.iter().filter(|row| !row["mean_ns"].is_null()) {
        assert!(row["scope"].as_str().is_some_and(|scope| scope.contains(" > ")), "{row}");
        assert!(row["ci95_low_ns"].as_i64() <= row["mean_ns"].as_i64(), "{row}");
    }
}

#[test]
fn a_series_of_epochs_knows_the_flows_of_each() {
    let folder = simulated("--rate 100kpps");
    let command = "delay upstream.pcap downstream.pcap -a lds --by flow --epoch 50ms -F json";
    let document = twixt_in(folder.path(), command).expect(0).json();
    let epochs = document["epochs"].as_i64().expect("it is a number");
    let rows = document["estimates"].as_array().expect("there are estimates").len() as i64;
    assert!(epochs > 2 && rows > 100, "{rows} rows in {epochs} epochs");
}

#[test]
fn flows_can_be_asked_for_by_name_even_of_a_recording() {
    let folder = simulated("");
    for point in ["upstream", "downstream"] {
        let record = format!("record -r {point}.pcap -w {point}.epochs -a lds udp or tcp");
        twixt_in(folder.path(), &record).expect(0);
    }
    let delay = |files: &str, flows: &str| {
        let command = format!("delay {files} --by flow --flows {flows} -F json");
        twixt_in(folder.path(), &command)
    };
    let asked = delay("upstream.epochs downstream.epochs", "truth.csv").expect(0).json();
    let rows = asked["estimates"].as_array().expect("there are estimates").len();
    assert_eq!(rows, 300);
    let refused = delay("upstream.epochs downstream.epochs", "all").expect(2);
    refused.says(&["--flows FILE"]);
    std::fs::write(folder.path().join("bad.txt"), "nonsense\n").expect("it can be written");
    delay("upstream.pcap downstream.pcap -a lds", "bad.txt").expect(2).says(&["bad.txt, line 1"]);
}

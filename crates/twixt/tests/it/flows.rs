//! Algorithms that distinguish flows without keeping their keys: lds.

use crate::support::twixt_in;

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

/// The referee beside an algorithm: every size class that has flows, with its median error.
fn errors_of(document: &serde_json::Value) -> Vec<f64> {
    let sizes = document["by_size"].as_array().expect("there are sizes").iter();
    let filled = sizes.filter(|size| size["flows"] != 0);
    filled.map(|size| size["median_relative_error"].as_f64().expect("it is known")).collect()
}

#[test]
fn with_stamps_loss_costs_no_answer_and_deviations_are_known() {
    let folder = simulated("--loss uniform:0.02 --rate 100kpps");
    for estimator in ["joint", "min", "printed"] {
        let command = "verify upstream.pcap downstream.pcap -a sds -F json --estimator";
        let document = twixt_in(folder.path(), &format!("{command} {estimator}")).expect(0).json();
        assert_eq!(document["flows"], document["answered"], "{estimator}");
        assert!(errors_of(&document).iter().all(|&error| error < 0.01), "{document}");
        let mean = document["all"]["relative_error_mean"].as_f64().expect("it is known");
        assert!(mean < 0.001, "{estimator}: {mean}");
    }
    let command = "verify upstream.pcap downstream.pcap -a sds -F json";
    let document = twixt_in(folder.path(), command).expect(0).json();
    let large = &document["by_size"][2]["median_relative_error_stddev"];
    assert!(large.as_f64().is_some_and(|error| error < 0.01), "{document}");
    let epochs = "delay upstream.pcap downstream.pcap -a sds --epoch 50ms -F json";
    let document = twixt_in(folder.path(), epochs).expect(0).json();
    assert!(document["epochs"].as_u64().is_some_and(|epochs| epochs > 1), "{document}");
}

/// Median error of what `delay` says of the flows of UDP, against truth.csv.
fn udp_error(folder: &std::path::Path, options: &str) -> f64 {
    let truth = std::fs::read_to_string(folder.join("truth.csv")).expect("simulate wrote it");
    let truth: std::collections::BTreeMap<&str, f64> = truth
        .lines()
        .skip(1)
        .map(|line| line.split(',').collect::<Vec<_>>())
        .filter_map(|row| Some((row[0], row[3].parse().ok()?)))
        .collect();
    let command = "delay upstream.pcap downstream.pcap -a lds --estimator paper --by flow -F json";
    let document = twixt_in(folder, &format!("{command} {options}")).expect(0).json();
    let rows = document["estimates"].as_array().expect("there are estimates").iter();
    let error = |row: &serde_json::Value| {
        let scope = row["scope"].as_str().filter(|scope| scope.starts_with("udp"))?;
        Some((row["mean_ns"].as_f64()? / truth.get(scope)? - 1.0).abs())
    };
    let mut errors: Vec<f64> = rows.filter_map(error).collect();
    errors.sort_by(f64::total_cmp);
    errors[errors.len() / 2]
}

#[test]
fn flows_of_heavy_rules_are_measured_better() {
    let folder = simulated("");
    let rules = folder.path().join("rules");
    std::fs::write(&rules, "# a comment\nudp: 1000\n").expect("it is written");
    let crowded = "--rows 2 --columns 60";
    let plain = udp_error(folder.path(), crowded);
    let weighed = udp_error(folder.path(), &format!("{crowded} --weights rules"));
    assert!(weighed < 0.5 * plain, "{weighed} with weights, {plain} without");
    let verify = "verify upstream.pcap downstream.pcap --weights rules -a";
    let refused = |options: &str, why: &str| {
        twixt_in(folder.path(), &format!("{verify} {options}")).expect(2).says(&[why]);
    };
    refused("lds --class all=tcp", "--class");
    refused("lds --flows truth.csv", "column `class`");
    refused("lda", "lda has no option --weights");
    std::fs::write(&rules, "udp: 1000\nnonsense\n").expect("it is written");
    refused("lds", "rules, line 2");
}

#[test]
fn a_table_beside_the_sketch_names_large_flows() {
    let folder = simulated("");
    let verify = "verify upstream.pcap downstream.pcap -a lds --flows heavy -F json";
    twixt_in(folder.path(), verify).expect(2).says(&["--heavy-entries"]);
    let with_table = format!("{verify} --heavy-entries 60");
    let document = twixt_in(folder.path(), &with_table).expect(0).json();
    assert!(document["answered"].as_u64().is_some_and(|flows| (30..=60).contains(&flows)));
    let largest = document["by_size"].as_array().expect("sizes").last().expect("some").clone();
    assert_eq!(largest["flows"], largest["answered"], "{largest}");
    for point in ["upstream", "downstream"] {
        let record = format!("record -r {point}.pcap -w {point}.twx -a lds --heavy-entries 60");
        twixt_in(folder.path(), &record).expect(0);
    }
    let recorded = "delay upstream.twx downstream.twx --by flow -F json";
    twixt_in(folder.path(), recorded).expect(2).says(&["--flows heavy"]);
    let heavy = format!("{recorded} --flows heavy");
    let document = twixt_in(folder.path(), &heavy).expect(0).json();
    assert_eq!(document["estimates"].as_array().map(Vec::len), Some(60));
}

#[test]
fn a_sketch_is_planned_from_a_capture() {
    let folder = simulated("");
    let document = twixt_in(folder.path(), "plan lds -r upstream.pcap -F json").expect(0).json();
    assert!(document["flows"].as_u64().is_some_and(|flows| flows <= 300), "{document}");
    assert!(document["synopsis_bytes"].as_u64().is_some_and(|bytes| bytes > 0));
    let expected = document["expected"].as_array().expect("there are sizes");
    for key in ["packets", "survival", "relative_error"] {
        assert!(expected.iter().all(|size| size[key].is_number()), "{key}");
    }
    twixt_in(folder.path(), "plan lds").expect(2).says(&["--flows"]);
    twixt_in(folder.path(), "plan lds --flows 1000 --memory 16").expect(2).says(&["too few"]);
}

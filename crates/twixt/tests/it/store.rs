//! `twixt record --store`, `twixt query` and `twixt info` of a store.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::support::{Crossing, MILLISECOND, Packet, SECOND, START, Scene, number};

/// Records both captures in a store.
#[track_caller]
fn store(scene: &Scene, options: &str) {
    for point in ["up", "down"] {
        scene.run(&format!("record -r {point}.pcap --store s {options}")).expect(0);
    }
}

fn query(options: &str) -> String {
    format!("query --store s --from up --to down {options}")
}

/// The only day's file of a point.
fn day_file(scene: &Scene, point: &str, ending: &str) -> PathBuf {
    scene.path().join(format!("s/{point}/2023-11-14.{ending}"))
}

fn rows(document: &Value) -> &[Value] {
    document["estimates"].as_array().expect("there are estimates")
}

/// Checks that what is stored gives the same answer as epoch files.
#[track_caller]
fn check_same(options: &str) {
    let scene = Crossing::varied().scene();
    for point in ["up", "down"] {
        let record = format!("record -r {point}.pcap {options}");
        scene.run(&format!("{record} -w {point}.epochs")).expect(0);
        scene.run(&format!("{record} --store s")).expect(0).says(&["recorded in s"]);
    }
    let files = scene.run("delay up.epochs down.epochs -F json").expect(0).json();
    let stored = scene.run(&query("-F json")).expect(0).silent().json();
    for key in ["estimates", "algorithm", "config", "synopsis_bytes", "epochs", "stretch", "clock"]
    {
        assert_eq!(stored[key], files[key], "{key} with {options}");
    }
    assert_eq!(stored["upstream"], files["upstream"]);
    assert_eq!(stored["segment"]["downstream"], "down");
    let [packets, _, lost] = Crossing::varied().evidence();
    assert_eq!(number(&stored, "/total/0/packets"), packets, "{options}");
    assert_eq!(number(&stored, "/total/0/lost"), lost, "{options}");
}

#[test]
fn a_store_gives_the_same_as_epoch_files() {
    check_same("-a exact");
    check_same("-a lda --rows 64 --banks 2");
    check_same("-a exact --epoch 100ms");
    check_same("-a lda --epoch 100ms");
    check_same("-a lda --key secret --hash siphash --domain office");
}

#[test]
fn the_total_is_that_of_all_packets() {
    let scene = Crossing::varied().scene();
    store(&scene, "-a exact --epoch 100ms");
    let document = scene.run(&query("-F json")).expect(0).json();
    assert_eq!(rows(&document).len(), 11);
    assert_eq!(number(&document, "/total/0/mean_ns"), Crossing::varied().mean_ns());
    let document = scene.run(&query("-F json --total")).expect(0).json();
    assert_eq!(document["estimates"], document["total"]);
    assert_eq!(scene.run(&query("-F jsonl")).expect(0).json_lines().len(), 11);
    assert_eq!(scene.run(&query("-F jsonl --total")).expect(0).json_lines().len(), 1);
    assert_eq!(scene.run(&query("-F csv")).expect(0).stdout.lines().count(), 12);
    let human = scene.run(&query("")).expect(0).silent().stdout;
    for part in ["up → down", "all 11 epochs together", "980", "2.00 %"] {
        assert!(human.contains(part), "{part:?} is missing in:\n{human}");
    }
}

/// The ends of the interval cut epochs off, but not packets in flight at their boundaries.
#[test]
fn a_part_of_the_time_gives_the_same_epochs() {
    let scene = Crossing::varied().scene();
    store(&scene, "-a exact --epoch 100ms");
    let all = scene.run(&query("-F json")).expect(0).json();
    let (from, to) = (START + 250 * MILLISECOND, START + 450 * MILLISECOND);
    let part = scene.run(&query(&format!("-F json --start {from} --end {to}"))).expect(0).json();
    let overlaps = |row: &&Value| number(row, "/start_ns") <= to && number(row, "/end_ns") >= from;
    let expected: Vec<&Value> = rows(&all).iter().filter(overlaps).collect();
    assert_eq!(rows(&part).iter().collect::<Vec<_>>(), expected);
    assert_eq!(expected.len(), 3);
    assert_eq!(number(&part, "/upstream/packets"), 300);
    let day = scene.run(&query("-F json --start 2023-11-14T22:13:20Z --end 2023-11-15")).expect(0);
    assert_eq!(day.json()["estimates"], all["estimates"]);
    scene.run(&query("--start -1d")).expect(4).says(&["no recording in common at that time"]);
    scene.run(&query("--start 2 --end 1")).expect(2);
    scene.run(&query("--start yesterday")).expect(2).says(&["-15m"]);
}

#[test]
fn flows_are_asked_for_by_name() {
    let scene = Crossing::names_and_transfer(200, Some(MILLISECOND)).scene();
    for algorithm in ["exact", "lds"] {
        store(&scene, &format!("-a {algorithm}"));
        let arguments =
            format!("query --store s --from up --to down -F json -a {algorithm} --flow");
        let mut arguments: Vec<&str> = arguments.split(' ').collect();
        arguments.push("tcp 10.0.0.1:40000 > 10.0.1.9:443");
        let mut command = crate::support::command();
        let output = command.args(arguments).current_dir(scene.path()).output().expect("it runs");
        let document: Value = serde_json::from_slice(&output.stdout).expect("it writes JSON");
        let [row] = rows(&document) else { panic!("{algorithm}: {document}") };
        assert_eq!(row["scope"], "tcp 10.0.0.1:40000 > 10.0.1.9:443");
        let mean_ns = number(row, "/mean_ns");
        assert!((mean_ns - 2 * MILLISECOND).abs() < MILLISECOND / 50, "{algorithm}: {mean_ns}");
    }
    scene.run(&query("")).expect(2).says(&["several recordings match", "exact.", "lds."]);
    scene.run(&query("-a lds --by flow")).expect(2).says(&["--flow"]);
    scene.run(&query("-a lda")).expect(4);
    fs::write(scene.path().join("flows"), "tcp 10.0.0.1:40000 > 10.0.1.9:443\n").expect("it can");
    scene.run(&query("-a lds --flows flows --key other")).expect(2).says(&["--key"]);
}

/// Flow records know how many packets came in each epoch; a list knows only how many there were.
#[test]
fn sizes_come_from_flow_records() {
    let mut crossing = Crossing::of(0, |_| None);
    for number in 0..300 {
        // The second epoch has twice the packets of the first, after a silence.
        let time_ns = if number < 100 { 0 } else { 60 * SECOND } + i64::from(number) * MILLISECOND;
        let transfer = Packet::tcp("10.0.0.1:40000", "10.0.1.9:443", number);
        crossing.send(time_ns, &transfer, Some(MILLISECOND));
    }
    let scene = crossing.scene();
    store(&scene, "-a colate --counters 4096 --epoch 10s");
    scene.run("flow export -r up.pcap -w up.ipfix --inactive-timeout 15s").expect(0);
    let document = scene.run(&query("--flows up.ipfix -F json")).expect(0).json();
    let packets: Vec<i64> = rows(&document).iter().map(|row| number(row, "/packets")).collect();
    assert_eq!(packets, [100, 200]);
    for row in rows(&document) {
        assert!((number(row, "/mean_ns") - MILLISECOND).abs() < 1000, "{row}");
    }
    let list = "scope,packets\ntcp 10.0.0.1:40000 > 10.0.1.9:443,300\n";
    fs::write(scene.path().join("list"), list).expect("it can be written");
    let sized = scene.run(&query("--flows list --sizes known"));
    sized.expect(2).says(&["not those of each epoch"]);
    scene.run(&query("--flows list")).expect(0);
}

/// Flows with delays of their own, from 1 to 3 ms, forty packets each.
fn many_flows() -> Crossing {
    let mut crossing = Crossing::of(0, |_| None);
    for number in 0..200 * 40_u16 {
        let flow = number % 200;
        let source = format!("10.0.0.1:{}", 40_000 + flow);
        let packet = Packet::tcp(&source, "10.0.1.9:443", number / 200);
        let delay_ns = MILLISECOND + i64::from(flow % 5) * MILLISECOND / 2;
        crossing.send(i64::from(number) * MILLISECOND / 4, &packet, Some(delay_ns));
    }
    crossing
}

/// What is read for one flow are few of the counters; epoch files are read whole. The true delay of
/// the flow is 2 ms, and lies within the interval; the two answers differ by far less than that.
#[test]
fn few_counters_tell_of_a_flow_what_all_of_them_do() {
    let scene = many_flows().scene();
    store(&scene, "-a colate --counters 8192");
    for point in ["up", "down"] {
        let record = format!("record -r {point}.pcap -a colate --counters 8192");
        scene.run(&format!("{record} -w {point}.epochs")).expect(0);
    }
    fs::write(scene.path().join("flow"), "tcp 10.0.0.1:40002 > 10.0.1.9:443\n").expect("it can");
    for estimator in ["joint", "median"] {
        let options = format!("--flows flow --estimator {estimator} -F json");
        let part = scene.run(&query(&options)).expect(0).json();
        let whole = format!("delay up.epochs down.epochs --sizes estimated {options}");
        let whole = scene.run(&whole).expect(0).json();
        let [mean, low, high] = ["mean_ns", "ci95_low_ns", "ci95_high_ns"]
            .map(|key| number(&part, &format!("/estimates/0/{key}")));
        assert!((low..=high).contains(&(2 * MILLISECOND)), "{estimator}: {low} to {high}");
        let difference = (mean - number(&whole, "/estimates/0/mean_ns")).abs();
        assert!(difference < (high - low) / 4, "{estimator}: {difference} of {low} to {high}");
        assert_eq!(part["synopsis_bytes"], whole["synopsis_bytes"]);
    }
}

/// Points that differ in memory are compared by folding the larger.
#[test]
fn points_may_have_different_numbers_of_counters() {
    let scene = many_flows().scene();
    scene.run("record -r up.pcap --store s -a colate --counters 16384").expect(0);
    scene.run("record -r down.pcap --store s -a colate --counters 8192").expect(0);
    fs::write(scene.path().join("flow"), "tcp 10.0.0.1:40002 > 10.0.1.9:443\n").expect("it can");
    let folded = scene.run(&query("--flows flow -F json")).expect(0).json();
    let [low, high] =
        ["ci95_low_ns", "ci95_high_ns"].map(|key| number(&folded, &format!("/estimates/0/{key}")));
    assert!((low..=high).contains(&(2 * MILLISECOND)), "{low} to {high}");
    scene.run("record -r down.pcap --store t -a colate --counters 6144").expect(0);
    scene.run("record -r up.pcap --store t -a colate --counters 16384").expect(0);
    let other = "query --store t --from up --to down --flows flow";
    scene.run(other).expect(4).says(&["settings differ"]);
}

#[test]
fn classes_are_stored_apart_and_found_together() {
    let mut crossing = Crossing::of(0, |_| None);
    for number in 0..100 {
        let name = Packet::udp("10.0.0.1:5000", "10.0.1.9:53", number);
        crossing.send(i64::from(number) * MILLISECOND, &name, Some(MILLISECOND));
    }
    let scene = crossing.scene();
    store(&scene, "-a lda --by class --class names=udp --class a/b=tcp");
    let document = scene.run(&query("-F json --by class")).expect(0).json();
    let found: Vec<_> = rows(&document).iter().map(|row| row["packets"].as_i64()).collect();
    assert_eq!(found.iter().flatten().sum::<i64>(), 100);
}

/// Two captures that follow each other make one recording, though they meet within an epoch.
#[test]
fn captures_that_follow_each_other_are_one_recording() {
    let whole = Crossing::varied();
    let scene = whole.scene();
    let half = 550 * MILLISECOND;
    for (point, capture) in [("up", &whole.upstream), ("down", &whole.downstream)] {
        capture.clone().between(0, half).write(scene.path().join("first.pcap"));
        capture.clone().between(half + 1, 9 * SECOND).write(scene.path().join("second.pcap"));
        for part in ["first", "second", "second"] {
            let record = format!("record -r {part}.pcap --store s --point {point}");
            scene.run(&format!("{record} -a exact --epoch 100ms --guard 20ms")).expect(0);
        }
    }
    let document = scene.run(&query("-F json")).expect(0).json();
    let [packets, used, lost] = whole.evidence();
    for (key, expected) in [("packets", packets), ("used", used), ("lost", lost)] {
        assert_eq!(number(&document, &format!("/total/0/{key}")), expected, "{key}");
    }
}

#[test]
fn recording_twice_changes_nothing() {
    let scene = Crossing::varied().scene();
    store(&scene, "-a lda --epoch 100ms");
    let once = fs::read(day_file(&scene, "up", "twxl")).expect("it was written");
    let again = scene.run("record -r up.pcap --store s -a lda --epoch 100ms").expect(0);
    again.says(&["11 epochs were already stored"]);
    assert_eq!(fs::read(day_file(&scene, "up", "twxl")).expect("it is there"), once);
}

#[test]
fn info_tells_what_is_in_a_store() {
    let scene = Crossing::varied().scene();
    store(&scene, "-a lda --epoch 100ms --domain office");
    let human = scene.run("info s").expect(0).silent().stdout;
    for part in ["up", "down", "lda.", "/office", "11", "2023-11-14 22:13:20.123"] {
        assert!(human.contains(part), "{part:?} is missing in:\n{human}");
    }
    let document = scene.run("info s -F json").expect(0).json();
    assert_eq!(
        (&document["format"], &document["points"][1]["point"]),
        (&"store".into(), &"up".into())
    );
    assert_eq!(document["points"][0]["days"][0], "2023-11-14");
    assert_eq!(number(&document, "/points/1/streams/0/records"), 11);
    assert_eq!(number(&document, "/points/1/streams/0/start_ns"), START);
    fs::create_dir(scene.path().join("empty")).expect("it can be made");
    scene.run("info empty").expect(1).says(&["no records"]);
}

#[test]
fn damage_is_said_and_the_rest_is_answered() {
    let scene = Crossing::varied().scene();
    store(&scene, "-a exact --epoch 100ms");
    let data = day_file(&scene, "down", "twxl");
    let whole = fs::read(&data).expect("it was written");
    let mut bytes = whole.clone();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&data, &bytes).expect("it can be changed");
    let run = scene.run(&query("-F json")).expect(3).says(&["down, 2023-11-14", "epoch"]);
    let document = run.json();
    let damaged = document["missing"]["damaged"].as_array().expect("it is a list");
    assert_eq!(damaged.len(), 1, "{damaged:?}");
    assert!(damaged[0]["epoch"].is_i64() && damaged[0]["start_ns"].is_i64());
    assert_eq!(rows(&document).len(), 10);
    scene.run("info s").expect(3).says(&["a record is damaged"]);

    fs::write(&data, &whole[..whole.len() - 3]).expect("it can be cut");
    scene.run(&query("-F json")).expect(3).says(&["down, 2023-11-14"]);
    fs::remove_file(day_file(&scene, "down", "twxi")).expect("it is there");
    scene.run(&query("-F json")).expect(3).says(&["unfinished record"]);
    scene.run("info s").expect(3).says(&["unfinished record"]);

    // The next writer repairs what can be, and here that is everything.
    scene.run("record -r down.pcap --store s -a exact --epoch 100ms").expect(0).says(&["cut off"]);
    let document = scene.run(&query("-F json")).expect(0).silent().json();
    assert_eq!(rows(&document).len(), 11);
}

#[test]
fn a_deleted_day_is_missed() {
    let scene = Crossing::varied().scene();
    store(&scene, "-a lda --epoch 100ms");
    fs::remove_file(day_file(&scene, "down", "twxl")).expect("it is there");
    let index_alone = scene.run(&query(""));
    index_alone.expect(4).says(&["no recording in common"]);
    fs::remove_dir_all(scene.path().join("s/down")).expect("it is there");
    scene.run(&query("")).expect(4).says(&["no point \"down\"", "there are: up"]);
    scene.run("query --store nowhere --from up --to down").expect(1).says(&["nowhere"]);
}

#[test]
fn epochs_that_one_point_lacks_are_said() {
    let whole = Crossing::varied();
    let scene = whole.scene();
    let late = whole.downstream.clone().between(500 * MILLISECOND, 9 * SECOND);
    late.write(scene.path().join("down.pcap"));
    store(&scene, "-a exact --epoch 100ms");
    let run = scene.run(&query("-F json")).expect(3).says(&["down: ", "epochs are missing"]);
    let document = run.json();
    let absent = document["missing"]["downstream"].as_array().expect("it is a list");
    assert_eq!(absent.len(), 1);
    assert_eq!(document["missing"]["upstream"].as_array().map(Vec::len), Some(0));
}

/// Both points were off for a while: nothing tells but the gap.
#[test]
fn epochs_that_both_points_lack_are_said() {
    let whole = Crossing::varied();
    let scene = whole.scene();
    for (point, capture) in [("up", &whole.upstream), ("down", &whole.downstream)] {
        for (part, from, to) in [("first", 0, 295), ("second", 600, 9000)] {
            let path = scene.path().join(format!("{part}.pcap"));
            capture.clone().between(from * MILLISECOND, to * MILLISECOND).write(path);
            let record = format!("record -r {part}.pcap --store s --point {point}");
            scene.run(&format!("{record} -a exact --epoch 100ms")).expect(0);
        }
    }
    let run = scene.run(&query("-F json")).expect(3);
    let run = run.says(&["up: 2 epochs are missing", "down: 2 epochs are missing"]);
    let document = run.json();
    for point in ["upstream", "downstream"] {
        assert_eq!(document["missing"][point].as_array().map(Vec::len), Some(1), "{document}");
    }
}

#[test]
fn old_days_are_deleted_as_new_ones_are_recorded() {
    let whole = Crossing::varied();
    let scene = whole.scene();
    let day = 24 * 3600 * SECOND;
    for number in 0..4 {
        let later = whole.upstream.clone().shifted(number * day);
        later.write(scene.path().join(format!("{number}.pcap")));
    }
    let record = |number: i64, keep: &str| {
        scene.run(&format!("record -r {number}.pcap --store s --point up -a lda {keep}")).expect(0)
    };
    let days = || {
        let document = scene.run("info s -F json").expect(0).json();
        document["points"][0]["days"].as_array().expect("it is a list").len()
    };
    (0..3).for_each(|number| drop(record(number, "")));
    assert_eq!(days(), 3);
    record(3, "--keep-days 1").says(&["2 old days of points were deleted"]);
    assert_eq!(days(), 2);
    record(2, "--keep-days 1");
    assert_eq!(days(), 2, "what is recorded late deletes nothing newer");
    record(0, "--keep-bytes 1").says(&["more than --keep-bytes"]);
    assert_eq!(days(), 1);
    scene.run("record -r 0.pcap -w x --keep-days 1").expect(2);
    scene.run("record -r 0.pcap --store s --keep-days 0").expect(2);
}

/// A query of some epochs in the middle reads those and their neighbours, and no others.
#[test]
fn a_query_reads_no_more_than_it_needs() {
    const EPOCHS: i64 = 100;
    let mut crossing = Crossing::of(0, |_| None);
    for number in 0..EPOCHS as u16 * 10 {
        let packet = Packet::tcp("10.0.0.1:40000", "10.0.1.9:443", number);
        crossing.send(i64::from(number) * 6 * SECOND, &packet, Some(MILLISECOND));
    }
    let scene = crossing.scene();
    store(&scene, "-a colate --counters 4096 --epoch 60s --guard 10ms");
    let ask = |minutes: i64| {
        let from = (START / (60 * SECOND) + 40) * 60 * SECOND;
        let to = from + minutes * 60 * SECOND - 1;
        let flow = "tcp 10.0.0.1:40000 > 10.0.1.9:443\n";
        fs::write(scene.path().join("flow"), flow).expect("it can be written");
        let options = format!("--flows flow --start {from} --end {to} -F json");
        let document = scene.run(&query(&options)).expect(0).json();
        assert_eq!(rows(&document).len() as i64, minutes);
        (number(&document, "/read/records"), number(&document, "/read/data_bytes"))
    };
    let stored: u64 = ["up", "down"]
        .map(|point| fs::metadata(day_file(&scene, point, "twxl")).expect("it is there").len())
        .iter()
        .sum();
    let (few, few_bytes) = ask(5);
    let (many, many_bytes) = ask(50);
    // A neighbour on each side, at both points; and one epoch twice for a first look.
    assert!((14..=16).contains(&few) && (104..=106).contains(&many), "{few} {many}");
    // Heads, a good part of these small records, are looked at several times.
    let per_record = stored as i64 / (2 * EPOCHS);
    assert!(few_bytes < few * per_record * 2, "{few_bytes} of {stored}");
    assert!(many_bytes < many * per_record * 2, "{many_bytes} of {stored}");
}

#[test]
fn a_store_that_cannot_be_written_is_an_error() {
    let scene = Crossing::varied().scene();
    fs::write(scene.path().join("file"), "in the way").expect("it can be written");
    scene.run("record -r up.pcap --store file").expect(1).says(&["file"]);
    scene.run("record -r up.pcap").expect(2);
    scene.run("record -r up.pcap -w x --store s").expect(2);
    let long = "!".repeat(100);
    scene.run(&format!("record -r up.pcap --store s --point {long}")).expect(2).says(&["too long"]);
}

//! Order, limits, times, scopes and files of a point: what people ask of a table.

use std::fs;

use serde_json::Value;

use crate::support::{Crossing, MILLISECOND, Packet, SECOND, START, Scene, number};

/// Names take 5 ms and transfers 2 ms; every tenth transfer is lost.
fn scene() -> Scene {
    let mut crossing = Crossing::default();
    for count in 0..200_u16 {
        let time_ns = i64::from(count) * 10 * MILLISECOND;
        let name = Packet::udp("10.0.0.1:5000", "10.0.1.9:53", count);
        let transfer = Packet::tcp("10.0.0.2:40000", "10.0.1.9:443", count);
        crossing.send(time_ns, &name, Some(5 * MILLISECOND));
        crossing.send(time_ns + 9, &transfer, (count % 10 != 3).then_some(2 * MILLISECOND));
        if count % 2 == 0 {
            let more = Packet::tcp("10.0.0.2:40000", "10.0.1.9:443", 1000 + count);
            crossing.send(time_ns + 20, &more, Some(2 * MILLISECOND));
        }
    }
    crossing.scene()
}

fn scopes(scene: &Scene, options: &str) -> Vec<String> {
    let rows = scene.delay(&format!("-F jsonl {options}")).expect(0).json_lines();
    rows.iter().map(|row| row["scope"].as_str().expect("it is text").to_owned()).collect()
}

#[test]
fn rows_come_in_the_order_that_was_asked_for() {
    let scene = scene();
    let first = |key: &str| scopes(&scene, &format!("--by port --sort {key}")).swap_remove(0);
    assert_eq!(first("mean"), "udp port 53");
    assert_eq!(first("p95"), "udp port 53");
    assert_eq!(first("packets"), "tcp port 443");
    assert_eq!(first("loss"), "tcp port 443");
    scene.delay("--sort size").expect(2);
    let shown = scene.delay("--by port --sort packets").expect(0).stdout;
    assert!(shown.find("tcp port 443") < shown.find("udp port 53"), "{shown}");
}

#[test]
fn hosts_ports_and_code_points_are_scopes() {
    let scene = scene();
    assert_eq!(
        scopes(&scene, "--by host --sort packets"),
        ["10.0.0.2/32 > 10.0.1.9/32", "10.0.0.1/32 > 10.0.1.9/32"]
    );
    assert_eq!(scopes(&scene, "--by dscp"), ["class dscp be"]);
    scene.delay("--by dscp --class a=udp").expect(2).says(&["--by dscp makes classes of its own"]);
    scene.delay("--by hosts").expect(2).says(&["use all, flow, host, port, dscp, class"]);
}

#[test]
fn a_limit_that_is_exceeded_ends_with_code_10() {
    let scene = scene();
    scene.delay("--fail-above mean=10ms,loss=10%").expect(0).silent();
    let broken = scene.delay("--by port --fail-above mean=4ms,loss=1%").expect(10);
    broken.says(&["udp port 53: mean is 5.000 ms, above 4.000 ms", "tcp port 443: loss is 6.67 %"]);
    scene.delay("--fail-above gaps=1%").expect(2).says(&["this command does not report gaps"]);
    scene.delay("--fail-above mean=4").expect(2);
    // What the algorithm does not know is not kept.
    scene
        .delay("-a lda --fail-above p99=1s")
        .expect(4)
        .says(&["all: p99 is unknown, limit 1.000 s"]);
}

#[test]
fn round_trips_and_reordering_have_limits_too() {
    let mut crossing = Crossing::default();
    for count in 0..20 {
        let query = Packet::tcp("10.0.0.1:40000", "10.0.1.9:443", count);
        crossing.upstream.add(i64::from(count) * MILLISECOND, query.frame());
    }
    let scene = crossing.scene();
    scene.run("reorder -r up.pcap --fail-above share=1%").expect(0);
    scene.run("reorder -r up.pcap --fail-above mean=1ms").expect(2).says(&["does not report mean"]);
    scene.run("rtt -r up.pcap --fail-above loss=1%").expect(2).says(&["does not report loss"]);
    scene.run("rtt -r up.pcap --sort loss").expect(2).says(&["by mean, p95 or packets"]);
}

#[test]
fn only_packets_of_the_time_that_was_asked_for_are_measured() {
    let scene = scene();
    let (start, end) = (START + SECOND / 2, START + SECOND);
    let document = scene.delay(&format!("-F json --start {start} --end {end}")).expect(0).json();
    let packets = number(&document, "/estimates/0/packets");
    // 51 moments from 0.5 to 1.0 s, with 2.5 packets each, less those that arrive after the end.
    assert!((122..=127).contains(&packets), "{packets}");
    assert!(number(&document, "/upstream/skipped/outside-stretch") > 350);
    let begins = number(&document, "/estimates/0/start_ns");
    assert!(begins >= start, "{begins} is before {start}");
    let heavy = scene.run(&format!("heavy -r up.pcap -F json --end {end}")).expect(0).json();
    assert_eq!(number(&heavy, "/packets"), 2 * 101 + 51 - 2);
    scene.delay(&format!("--start {end} --end {start}")).expect(2).says(&["is after --end"]);
    scene.delay("--start tuesday").expect(2);
    let beyond = scene.delay(&format!("--start {}", START + 60 * SECOND)).expect(4);
    beyond.says(&["nothing to measure, it has no packets between --start and --end"]);
}

/// The capture in four files, in the order of names that is not that of time.
fn ring(scene: &Scene, capture: &crate::support::Capture, name: &str) {
    for (place, part) in [(2, 0), (0, 1), (3, 2), (1, 3)] {
        let (from, to) = (part * SECOND / 2, (part + 1) * SECOND / 2 - 1);
        capture.clone().between(from, to).write(scene.path().join(format!("{name}-{place}.pcap")));
    }
}

#[test]
fn a_capture_in_several_files_is_one_capture() {
    let mut crossing = Crossing::default();
    for count in 0..190_u16 {
        let packet = Packet::udp("10.0.0.1:5000", "10.0.1.9:53", count);
        let time_ns = i64::from(count) * 10 * MILLISECOND;
        crossing.send(
            time_ns,
            &packet,
            (count % 10 != 3).then_some(5 * MILLISECOND + i64::from(count)),
        );
    }
    let scene = crossing.scene();
    ring(&scene, &crossing.upstream, "u");
    ring(&scene, &crossing.downstream, "d");
    let whole = scene.delay("-F json").expect(0).json();
    let pieces = scene.run("delay u-*.pcap d-?.pcap -F json").expect(0).json();
    assert_eq!(whole["estimates"], pieces["estimates"]);
    assert_eq!(whole["upstream"], pieces["upstream"]);
    let heavy = |files: &str| scene.run(&format!("heavy -F json {files}")).expect(0).json();
    let repeated = "-r u-0.pcap -r u-1.pcap -r u-2.pcap -r u-3.pcap";
    for files in ["-r u-*.pcap", repeated] {
        assert_eq!(heavy(files)["flows"], heavy("-r up.pcap")["flows"], "{files}");
    }
    scene.run("delay u-0.pcap u-1.pcap u-2.pcap").expect(2).says(&["quote the pattern"]);
    scene.run("heavy -r none-*.pcap").expect(1).says(&["none-*.pcap"]);
    scene
        .run("heavy -r - -r u-0.pcap")
        .expect(2)
        .says(&["standard input cannot be one of several"]);
}

#[test]
fn tables_fit_the_terminal() {
    let scene = scene();
    let shown = |columns: &str| {
        let mut command = crate::support::command();
        command.args(["delay", "up.pcap", "down.pcap", "--by", "port"]);
        let output = command.current_dir(scene.path()).env("COLUMNS", columns).output();
        String::from_utf8(output.expect("it runs").stdout).expect("it is text")
    };
    let rows = |text: &str| -> Vec<usize> {
        let lines = text.lines().skip(2).take_while(|line| !line.is_empty());
        lines.map(|line| line.chars().count()).collect()
    };
    assert!(rows(&shown("200")).iter().any(|&width| width > 100));
    let narrow = shown("80");
    assert!(rows(&narrow).iter().all(|&width| width <= 80), "{narrow}");
    assert!(narrow.contains("not shown, for lack of room: over time, jitter"), "{narrow}");
    assert!(!narrow.contains('\u{1b}'), "colours are for terminals");
}

#[test]
fn the_course_over_time_is_a_column() {
    let shown = scene().delay("").expect(0).stdout;
    assert!(shown.contains("over time"), "{shown}");
    assert!(shown.lines().any(|line| line.contains("▁") && line.contains("all")), "{shown}");
}

/// The first bytes of each kind of file, and words that are in those that are text.
#[test]
fn every_command_draws_what_it_found() {
    let scene = scene();
    for command in [
        "delay up.pcap down.pcap",
        "delay up.pcap down.pcap --by flow",
        "delay up.pcap down.pcap -a lda --epoch 500ms",
        "delay up.pcap down.pcap -a lda --sample-budget 64KiB",
        "path up.pcap down.pcap",
        "verify up.pcap down.pcap -a lds",
        "reorder -r up.pcap",
        "plan lda --rate 5Mpps",
        "plan lds --flows 20000",
        "plan fridge --rate 10kpps",
        "plan colate",
    ] {
        for file in ["a.svg", "a.png", "a.html"] {
            scene.run(&format!("{command} --plot {file}")).expect(0);
            let drawn = fs::read(scene.path().join(file)).unwrap_or_else(|_| panic!("{command}"));
            fs::remove_file(scene.path().join(file)).expect("it was there");
            check_drawn(command, file, &drawn);
        }
    }
    scene.delay("--plot a.pdf").expect(2).says(&["ends in .svg, .png or .html"]);
    scene.delay("--plot no/a.svg").expect(1).says(&["cannot write no/a.svg"]);
    scene.delay("-a lda --plot a.svg").expect(2).says(&["--plot needs more than one mean"]);
}

#[track_caller]
fn check_drawn(command: &str, file: &str, drawn: &[u8]) {
    if file == "a.png" {
        return assert!(drawn.starts_with(b"\x89PNG"), "{command}");
    }
    let text = String::from_utf8_lossy(drawn);
    let start = if file == "a.svg" { "<svg" } else { "<!doctype html>" };
    assert!(text.starts_with(start) && text.contains("prefers-color-scheme"), "{command}");
    assert!(!text.contains("NaN") && !text.contains("inf\""), "{command}: {text}");
    // The name of the format is an address, and the only one: nothing is loaded.
    let addresses = text.matches("http").count();
    assert!(addresses <= text.matches("http://www.w3.org/").count(), "{command}");
}

#[test]
fn a_picture_has_the_order_of_the_table() {
    let scene = scene();
    let order = |options: &str| {
        scene.delay(&format!("--by port --plot d.svg {options}")).expect(0);
        let svg = fs::read_to_string(scene.path().join("d.svg")).expect("it was drawn");
        let place = |scope: &str| svg.find(scope).expect("it is in the legend");
        place("udp port 53") < place("tcp port 443")
    };
    assert!(!order(""), "the largest first");
    assert!(order("--sort mean"), "the slowest first");
}

#[test]
fn a_picture_has_the_panels_that_its_packets_tell() {
    let scene = scene();
    scene.delay("--plot d.svg").expect(0);
    let svg = fs::read_to_string(scene.path().join("d.svg")).expect("it was drawn");
    for word in [
        "Delay from up.pcap to down.pcap",
        "all packets: p50 2.000 ms",
        "p5 to p95",
        "Loss: 20 packets",
        "Packets by time and delay",
        "delay (ms)",
        "time (UTC, 2023-11-14)",
    ] {
        assert!(svg.contains(word), "{word}");
    }
}

#[test]
fn flows_are_rows_with_columns_of_their_own() {
    let rows = scene().delay("--by flow -F jsonl").expect(0).json_lines();
    let row = rows.iter().find(|row| row["protocol"] == "udp").expect("one is of UDP");
    let expected = [("source", "10.0.0.1"), ("destination", "10.0.1.9")];
    for (key, value) in expected {
        assert_eq!(row[key], Value::from(value), "{key}");
    }
    assert_eq!((number(row, "/source_port"), number(row, "/destination_port")), (5000, 53));
}

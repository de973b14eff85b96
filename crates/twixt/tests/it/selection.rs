//! `--toward`, filters and pipes: what they select, and what they leave alone.

use std::process::{Command, Stdio};

use serde_json::Value;
use twixt_testing::require;

use crate::support::{Crossing, MILLISECOND, Packet, Run, Scene, command, number, twixt_in};

/// Questions that take 2 ms, and answers that take 3 ms back; the downstream clock is 40 ms ahead.
fn conversation() -> Scene {
    let mut crossing = Crossing::default();
    for index in 0..500_u16 {
        let time_ns = i64::from(index) * 10 * MILLISECOND;
        let packet = Packet::udp("10.0.0.1:5000", "10.0.1.9:53", index);
        crossing.send(time_ns, &packet, Some(2 * MILLISECOND));
        crossing.send_back(time_ns + 4 * MILLISECOND, &packet.reversed(), 3 * MILLISECOND);
    }
    crossing.downstream = crossing.downstream.shifted(40 * MILLISECOND);
    crossing.scene()
}

fn clock(scene: &Scene, options: &str) -> [Option<i64>; 2] {
    let document = scene.delay(&format!("{options} -F json")).expect(0).json();
    ["offset_ns", "error_bound_ns"].map(|key| document["clock"][key].as_i64())
}

#[test]
fn packets_that_are_not_selected_still_tell_of_the_clocks() {
    let scene = conversation();
    let all = clock(&scene, "");
    assert!(all[0].is_some_and(|ns| (ns - 40 * MILLISECOND).abs() <= 3 * MILLISECOND), "{all:?}");
    assert!(all[1].is_some(), "{all:?}");
    for selection in ["--toward 10.0.1.0/24", "dst host 10.0.1.9", "--both dst host 10.0.1.9"] {
        if selection.contains("--both") {
            let document = scene.delay(&format!("{selection} -F json")).expect(0).json();
            assert_eq!(document["segments"][0]["clock"]["offset_ns"].as_i64(), all[0]);
        } else {
            assert_eq!(clock(&scene, selection), all, "{selection}");
        }
    }
    // Delays are put right by what the others tell.
    let options = "--toward 10.0.1.0/24 --clock correct -F json";
    let document = scene.delay(options).expect(0).json();
    let mean_ns = number(&document, "/estimates/0/mean_ns");
    assert!((0..=5 * MILLISECOND).contains(&mean_ns), "{mean_ns}");
}

#[test]
fn clocks_are_reported_once_for_both_directions() {
    let human = conversation().delay("--both").expect(0).stdout;
    assert_eq!(human.matches("clocks").count(), 1, "{human}");
    assert!(human.trim_end().lines().last().is_some_and(|line| line.starts_with("clocks")));
}

/// The route becomes 20 ms longer, halfway, in one direction.
#[test]
fn a_path_that_changes_is_named_by_its_end() {
    let mut crossing = Crossing::default();
    for index in 0..2000_u16 {
        let time_ns = i64::from(index) * 10 * MILLISECOND;
        let packet = Packet::udp("10.0.0.1:5000", "10.0.1.9:53", index);
        let jitter_ns = i64::from(index) * 7_919_317 % (MILLISECOND / 10);
        let longer_ns = if index < 1000 { 0 } else { 20 * MILLISECOND };
        crossing.send(time_ns, &packet, Some(2 * MILLISECOND + jitter_ns + longer_ns));
        let back_ns = 2 * MILLISECOND + jitter_ns;
        crossing.send_back(time_ns + 4 * MILLISECOND, &packet.reversed(), back_ns);
    }
    let human = crossing.scene().delay("--both").expect(0).stdout;
    let line = human.lines().find(|line| line.contains("the path toward")).expect("it is reported");
    assert!(line.contains("the path toward down.pcap became 20.0"), "{line}");
    assert!(line.contains("longer at 2023-11-14"), "{line}");
}

#[test]
fn a_prefix_of_the_other_end_is_reported() {
    let scene = conversation();
    let run = scene.delay("--toward 10.0.0.1");
    assert!(run.stderr.contains("by ttl, 1 of the selected flows go the other way"), "{run:?}");
    let right = scene.delay("--toward 10.0.1.9").expect(0);
    assert!(!right.stderr.contains("other way"), "{}", right.stderr);
}

/// Heartbeats are equal byte for byte: without a direction, nothing can be said of them.
#[test]
fn toward_prevails_where_all_packets_look_alike() {
    let mut crossing = Crossing::default();
    for index in 0..200 {
        let packet = Packet::udp("10.0.0.1:5000", "10.0.1.9:53", 7);
        let arrives = index % 50 != 20;
        crossing.send(index * 100 * MILLISECOND, &packet, arrives.then_some(2 * MILLISECOND));
    }
    let scene = crossing.scene();
    scene.delay("").expect(4).says(&["look alike"]);
    let run = scene.delay("--toward 10.0.1.9 -F json");
    assert!([Some(0), Some(4)].contains(&run.code), "{run:?}");
    let estimate: Value = run.json()["estimates"][0].clone();
    assert_eq!((number(&estimate, "/packets"), number(&estimate, "/lost")), (200, 4), "{estimate}");
    if !estimate["mean_ns"].is_null() {
        let [low, high] = ["/ci95_low_ns", "/ci95_high_ns"].map(|key| number(&estimate, key));
        assert!((low..=high).contains(&(2 * MILLISECOND)), "{estimate}");
    }
}

/// Runs a line of the shell, in which `twixt` is the command.
fn shell(scene: &Scene, line: &str) -> Run {
    let twixt = command().get_program().to_string_lossy().into_owned();
    let output = Command::new("bash")
        .args(["-c", &line.replace("twixt", &twixt)])
        .current_dir(scene.path())
        .stdin(Stdio::null())
        .output()
        .expect("the shell starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Run { code: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) }
}

#[test]
fn process_substitution_works_where_standard_input_does() {
    require!(program "bash");
    let scene = conversation();
    let piped = "twixt delay <(cat up.pcap) <(cat down.pcap)";
    shell(&scene, piped).expect(2).says(&["only once", "--one-pass"]);
    let options = "--one-pass --toward 10.0.1.9 -F json";
    let document = shell(&scene, &format!("{piped} {options}")).expect(0).json();
    let of_files = scene.delay(options).expect(0).json();
    assert_eq!(document["estimates"], of_files["estimates"]);
    shell(&scene, "twixt info <(cat up.pcap)").expect(0);
    shell(&scene, "twixt heavy -r <(cat up.pcap)").expect(0);
    shell(&scene, "twixt record -r <(cat up.pcap) -w up.epochs").expect(0);
    shell(&scene, "mkfifo pipe; cat up.pcap > pipe & twixt info pipe").expect(0);
    shell(&scene, "twixt path up.pcap <(cat down.pcap)").expect(2).says(&["pipes"]);
}

#[test]
fn a_path_says_what_it_cannot_do() {
    let scene = conversation();
    let path = |options: &str| twixt_in(scene.path(), &format!("path up.pcap down.pcap {options}"));
    path("missing.pcap").expect(2).says(&["missing.pcap: no such file"]);
    path("nonsense").expect(2).says(&["nonsense"]);
    path("--both").expect(2).says(&["in reverse"]);
    for rows in ["--by flow", "--epoch 1s", "--epoch auto"] {
        path(rows).expect(2).says(&["-F json"]);
        let document = path(&format!("{rows} -F json")).expect(0).json();
        assert!(document["segments"][0]["estimates"].is_array(), "{document}");
    }
}

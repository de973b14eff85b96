//! `twixt record` and what reads its files; configuration files; generated files.

use std::fs;

use serde_json::Value;

use crate::support::{Crossing, MILLISECOND, Run, START, Scene, evidence, number};

/// Records both captures with the same options.
#[track_caller]
fn record(scene: &Scene, options: &str) {
    for point in ["up", "down"] {
        scene.run(&format!("record -r {point}.pcap -w {point}.epochs {options}")).expect(0);
    }
}

/// What `delay` finds in the two epoch files.
#[track_caller]
fn paired(scene: &Scene, options: &str) -> Value {
    scene.run(&format!("delay up.epochs down.epochs -F json {options}")).expect(0).json()
}

/// The sums of a document's estimates: packets, used, lost.
#[track_caller]
fn sums(document: &Value) -> [i64; 3] {
    let estimates = document["estimates"].as_array().expect("there are estimates");
    ["packets", "used", "lost"]
        .map(|key| estimates.iter().map(|row| number(row, &format!("/{key}"))).sum())
}

/// Checks that recording first and comparing later is the same as comparing at once.
#[track_caller]
fn check_same(options: &str) {
    let scene = Crossing::varied().scene();
    record(&scene, &format!("{options} udp"));
    let later = paired(&scene, "");
    let at_once = scene.delay(&format!("--one-pass -F json {options} udp")).expect(0).json();
    for key in ["estimates", "algorithm", "config", "epochs", "stretch"] {
        assert_eq!(later[key], at_once[key], "{key} with {options}");
    }
    // Of captures, packets of all epochs are kept until they are matched.
    if !(options.contains("exact") && options.contains("--epoch")) {
        assert_eq!(later["synopsis_bytes"], at_once["synopsis_bytes"], "{options}");
    }
    let [packets, used, lost] = Crossing::varied().evidence();
    let [later_packets, later_used, later_lost] = sums(&later);
    assert_eq!((later_packets, later_lost), (packets, lost), "{options}");
    if options.contains("exact") {
        assert_eq!(later_used, used, "{options}");
    }
}

#[test]
fn recordings_give_the_same_as_the_captures() {
    check_same("-a exact");
    check_same("-a lda");
    check_same("-a lda --rows 100 --banks 2 --key secret --hash siphash");
    check_same("-a exact --epoch 100ms");
    check_same("-a lda --epoch 100ms");
}

#[test]
fn a_recording_is_exact_where_the_algorithm_is() {
    let scene = Crossing::varied().scene();
    record(&scene, "-a exact");
    let document = paired(&scene, "");
    assert_eq!(evidence(&document), Crossing::varied().evidence());
    assert_eq!(number(&document, "/estimates/0/mean_ns"), Crossing::varied().mean_ns());
    assert_eq!(document["direction"]["decided_by"], "recording");
}

#[test]
fn packets_in_flight_at_the_boundary_of_epochs_are_not_lost() {
    // Up to 5 ms under way: at each of the boundaries some are.
    let crossing = Crossing::of(1000, |number| Some(MILLISECOND * (1 + i64::from(number) % 5)));
    let scene = crossing.scene();
    for algorithm in ["exact", "lda"] {
        record(&scene, &format!("--epoch 100ms -a {algorithm}"));
        let document = paired(&scene, "");
        assert_eq!(number(&document, "/epochs"), 11, "a second that begins within an epoch");
        assert_eq!(sums(&document), [1000, 1000, 0], "{algorithm}");
    }
}

#[test]
fn epochs_make_a_series() {
    // From 500 ms on everything takes 9 ms longer.
    let crossing = Crossing::of(1000, |number| {
        Some(if number < 500 { MILLISECOND } else { 10 * MILLISECOND })
    });
    let scene = crossing.scene();
    record(&scene, "--epoch 100ms -a exact --guard 20ms");
    let document = paired(&scene, "");
    let rows = document["estimates"].as_array().expect("there are estimates");
    let turned_ns = START + 500 * MILLISECOND;
    for row in rows {
        let mean_ns = number(row, "/mean_ns");
        let (start_ns, end_ns) = (number(row, "/start_ns"), number(row, "/end_ns"));
        if end_ns < turned_ns {
            assert_eq!(mean_ns, MILLISECOND, "{row}");
        } else if start_ns >= turned_ns {
            assert_eq!(mean_ns, 10 * MILLISECOND, "{row}");
        }
    }
    let starts: Vec<i64> = rows.iter().map(|row| number(row, "/start_ns")).collect();
    assert!(starts.is_sorted(), "{starts:?}");
    assert_eq!(sums(&document), [1000, 1000, 0]);
}

#[test]
fn classes_are_recorded_apart() {
    let scene = Crossing::names_and_transfer(200, Some(MILLISECOND)).scene();
    record(&scene, "-a lda --by class --class names=udp");
    let document = paired(&scene, "--by class");
    let found: Vec<(&str, i64)> = document["estimates"]
        .as_array()
        .expect("there are estimates")
        .iter()
        .map(|row| (row["scope"].as_str().unwrap_or_default(), number(row, "/mean_ns")))
        .collect();
    assert_eq!(found, [("class names", MILLISECOND), ("class other", 2 * MILLISECOND)]);
}

/// No name arrives. Downstream has empty epochs of that class: nothing is missing, though without
/// a single delay, late packets cannot be distinguished from lost ones.
#[test]
fn epochs_of_a_class_of_which_nothing_arrives_are_compared() {
    let scene = Crossing::names_and_transfer(400, None).scene();
    record(&scene, "-a lda --epoch 100ms --by class --class names=udp");
    let document = paired(&scene, "--by class");
    let rows = document["estimates"].as_array().expect("there are estimates");
    let names = rows.iter().filter(|row| row["scope"] == "class names");
    assert_eq!(names.map(|row| number(row, "/packets")).sum::<i64>(), 400, "{document}");
}

#[test]
fn only_as_many_packets_are_recorded_as_were_asked_for() {
    let scene = Crossing::varied().scene();
    scene.run("record -r up.pcap -w up.epochs -c 100").expect(0).says(&["100 packets recorded"]);
    let document = scene.run("info up.epochs -F json").expect(0).json();
    assert_eq!(number(&document, "/epochs/0/packets"), 100);
}

#[test]
fn the_same_capture_is_recorded_to_the_same_bytes() {
    let scene = Crossing::varied().scene();
    scene.run("record -r up.pcap -w one --point a").expect(0);
    scene.run("record -r up.pcap -w other --point a").expect(0);
    let read = |name: &str| fs::read(scene.path().join(name)).expect("it was written");
    assert_eq!(read("one"), read("other"));
}

#[test]
fn info_tells_what_is_in_an_epoch_file() {
    let scene = Crossing::varied().scene();
    let options = "--epoch 500ms --rows 64 --banks 2 --point border --domain office udp";
    scene.run(&format!("record -r up.pcap -w up.epochs {options}")).expect(0);
    let human = scene.run("info up.epochs").expect(0).silent().stdout;
    for part in ["border", "lda", "rows = 64", "500", "3, length"] {
        assert!(human.contains(part), "{part:?} is missing in:\n{human}");
    }
    let document = scene.run("info up.epochs -F json").expect(0).json();
    assert_eq!(document["format"], "epochs");
    let epochs = document["epochs"].as_array().expect("there are epochs");
    assert_eq!(epochs.iter().map(|epoch| number(epoch, "/packets")).sum::<i64>(), 1000);
    let first = &epochs[0];
    assert_eq!((&first["point"], &first["domain"]), (&"border".into(), &"office".into()));
    assert_eq!(first["config"]["rows"], 64);
    assert_eq!(number(first, "/epoch_length_ns"), 500 * MILLISECOND);
    assert_eq!(number(first, "/start_ns"), START);
}

#[test]
fn info_tells_what_is_in_a_capture() {
    let crossing = Crossing::varied();
    let scene = Scene::new(&crossing.upstream.clone().cut(60), &crossing.downstream);
    let document = scene.run("info up.pcap -F json").expect(0).json();
    assert_eq!(number(&document, "/frames"), 1000);
    assert_eq!(number(&document, "/cut_frames"), 1000);
    assert_eq!(number(&document, "/captured_bytes"), 60_000);
    assert_eq!(number(&document, "/packets"), 1000);
    assert_eq!(number(&document, "/flows"), 1);
    assert_eq!(number(&document, "/start_ns"), START);
    assert_eq!(number(&document, "/end_ns"), START + 999 * MILLISECOND);
    assert_eq!(number(&document, "/protocols/ipv4 udp"), 1000);
    let human = scene.run("info -r up.pcap").expect(0).silent().stdout;
    assert!(human.contains("1 000 in 1 flows"), "{human}");
}

/// A scene with a configuration file `twixt.toml`.
fn configured(text: &str) -> Scene {
    let scene = Crossing::varied().scene();
    fs::write(scene.path().join("twixt.toml"), text).expect("the folder can be written to");
    scene
}

#[track_caller]
fn configured_delay(scene: &Scene, options: &str) -> Value {
    scene.delay(&format!("--config twixt.toml -F json {options}")).expect(0).json()
}

#[test]
fn the_configuration_to_start_from_is_valid_and_changes_nothing() {
    let start = crate::support::twixt(["config", "init"]).expect(0).silent().stdout;
    let scene = configured(&start);
    scene.run("config check twixt.toml").expect(0).says(&["twixt.toml is valid"]);
    let with = configured_delay(&scene, "");
    let without = scene.delay("-F json").expect(0).json();
    assert_eq!(with["estimates"], without["estimates"]);
    assert_eq!(with["algorithm"], without["algorithm"]);
}

#[test]
fn what_is_in_effect_can_be_shown_and_used_again_but_not_the_key() {
    let scene = configured(
        "[digest]\nkey = \"very secret\"\nhash = \"siphash\"\n[epoch]\nlength = \"250ms\"\n",
    );
    let shown = scene.run("config dump --config twixt.toml").expect(0).stdout;
    assert!(!shown.contains("very secret"), "{shown}");
    for part in ["hash = \"siphash\"", "length = \"250ms\"", "algorithm = \"lda\""] {
        assert!(shown.contains(part), "{part:?} is missing in:\n{shown}");
    }
    fs::write(scene.path().join("again.toml"), shown).expect("the folder can be written to");
    scene.run("config check again.toml").expect(0);
}

#[test]
fn a_configuration_is_what_the_command_line_leaves_out() {
    let scene = configured(
        "algorithm = \"lda\"\n[epoch]\nlength = \"250ms\"\n\
         [[synopsis]]\nalgorithm = \"lda\"\nrows = 77\nbanks = 2\n",
    );
    let document = configured_delay(&scene, "");
    assert_eq!(document["algorithm"], "lda");
    assert_eq!(document["config"]["rows"], 77);
    assert!(number(&document, "/epochs") > 1);
    let document = configured_delay(&scene, "-a exact --epoch whole");
    assert_eq!((&document["algorithm"], &document["epochs"]), (&"exact".into(), &1.into()));
    let document = configured_delay(&scene, "-a lda --rows 99");
    assert_eq!(
        (&document["config"]["rows"], &document["config"]["banks"]),
        (&99.into(), &2.into())
    );
    scene.run("record --config twixt.toml -r up.pcap -w up.epochs").expect(0);
    let recorded = scene.run("info up.epochs -F json").expect(0).json();
    assert_eq!(number(&recorded, "/epochs/0/config/rows"), 77);
    assert_eq!(number(&recorded, "/epochs/0/epoch_length_ns"), 250 * MILLISECOND);
}

#[test]
fn classes_of_the_configuration_are_used() {
    let scene = configured("[[class]]\nname = \"names\"\nfilter = \"udp port 53\"\n");
    let document = configured_delay(&scene, "--by class");
    let rows = document["estimates"].as_array().expect("there are estimates");
    let names = rows.iter().find(|row| row["scope"] == "class names").expect("the class is there");
    assert_eq!(number(names, "/packets"), 1000);
}

#[test]
fn a_configuration_with_mistakes_is_refused_and_the_mistake_named() {
    let check = |text: &str, named: &str| {
        let scene = configured(text);
        for command in ["config check twixt.toml", "delay up.pcap down.pcap --config twixt.toml"] {
            scene.run(command).expect(2).says(&["twixt.toml", named]);
        }
    };
    check("colour = 1\n", "colour");
    check("[digest]\nprofil = \"nat\"\n", "profil");
    check("[[synopsis]]\nalgorithm = \"lda\"\ncolumns = 3\n", "columns");
    check("[[synopsis]]\nalgorithm = \"guess\"\n", "guess");
    check("[epoch]\nlength = \"soon\"\n", "epoch.length");
    check("not toml", "twixt.toml");
    let scene = configured("");
    let missing: Run = scene.run("config check missing.toml");
    missing.expect(1).says(&["missing.toml"]);
}

#[test]
fn a_manual_page_and_completions_can_be_generated() {
    let manual = crate::support::twixt(["generate", "man"]).expect(0).stdout;
    assert!(manual.contains(".TH") && manual.contains("delay"), "{manual}");
    for shell in ["bash", "zsh", "fish"] {
        let completions =
            crate::support::twixt(["generate", "completions", shell]).expect(0).stdout;
        for word in ["twixt", "delay", "record", "algorithm"] {
            assert!(completions.contains(word), "{shell} does not know {word}");
        }
    }
}

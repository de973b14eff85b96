//! Bad input and bad command lines: a message, the right exit code, and never a panic.

use std::fs;
use std::io::{Read, Write};
use std::process::Stdio;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::support::{
    Capture, Crossing, MILLISECOND, Packet, SECOND, Scene, evidence, folder, number, twixt_fed,
};

const FAILED: i32 = 1;
const USAGE: i32 = 2;
const PARTLY: i32 = 3;
const NO_ANSWER: i32 = 4;

/// Delays from 1 to 1.1 ms; every fortieth packet is lost.
fn crossing() -> Crossing {
    Crossing::of(400, |number| (number % 40 != 20).then_some(MILLISECOND + 250 * i64::from(number)))
}

/// Checks what `delay` with these arguments says and how it ends, in a folder with two captures.
#[track_caller]
fn check(arguments: &str, code: i32, said: &[&str]) {
    check_in(&crossing().scene(), arguments, code, said);
}

#[track_caller]
fn check_in(scene: &Scene, arguments: &str, code: i32, said: &[&str]) {
    scene.run(&format!("delay {arguments}")).expect(code).says(said);
}

/// Checks what becomes of a file in place of either capture.
#[track_caller]
fn check_file(content: &[u8], code: i32, said: &[&str]) {
    let scene = crossing().scene();
    fs::write(scene.path().join("odd"), content).expect("the folder can be written to");
    check_in(&scene, "odd down.pcap", code, said);
    check_in(&scene, "up.pcap odd", code, said);
}

#[test]
fn a_missing_file_is_named() {
    check("missing.pcap down.pcap", FAILED, &["missing.pcap", "no such file"]);
    check("up.pcap missing.pcap", FAILED, &["missing.pcap", "no such file"]);
}

#[test]
fn a_folder_is_not_a_capture() {
    check(". down.pcap", FAILED, &["is a directory"]);
}

#[test]
fn text_is_not_a_capture() {
    check_file(b"time,delay\n1,2\nthree,four\n", FAILED, &["odd", "not a pcap or pcapng capture"]);
}

#[test]
fn an_empty_file_is_not_a_capture() {
    check_file(b"", FAILED, &["odd", "empty"]);
}

#[test]
fn a_capture_without_packets_says_so() {
    check_file(&Capture::default().bytes(), NO_ANSWER, &["odd", "no packets"]);
}

#[test]
fn captures_without_a_common_packet_get_advice() {
    let mut other = Capture::default();
    for number in 0..100 {
        let packet = Packet::udp("10.5.0.1:5000", "10.6.1.9:53", number);
        other.add(i64::from(number) * MILLISECOND, packet.frame());
    }
    check_file(&other.bytes(), NO_ANSWER, &["no packet in common", "--digest nat"]);
}

#[test]
fn unequal_snap_lengths_are_noticed_and_do_not_matter() {
    // 60 bytes of a frame hold 18 bytes of payload, 96 all of the 24 that a digest may cover.
    for (up_bytes, down_bytes, shorter) in [(60, 96, "up.pcap"), (96, 60, "down.pcap")] {
        let truth = crossing();
        let scene = Scene::new(
            &truth.upstream.clone().cut(up_bytes),
            &truth.downstream.clone().cut(down_bytes),
        );
        let run = scene
            .delay("-F json")
            .expect(0)
            .says(&[&format!("{shorter} has a shorter snap length"), "18 bytes of payload"]);
        assert_eq!(evidence(&run.json()), truth.evidence());
        assert_eq!(number(&run.json(), "/estimates/0/mean_ns"), truth.mean_ns());
    }
}

#[test]
fn clocks_may_be_years_apart() {
    const TEN_YEARS: i64 = 10 * 365 * 24 * 3600 * SECOND;
    // Sums of times wrap: what they mean must be found relative to the clocks' difference.
    for ahead_ns in [TEN_YEARS, -TEN_YEARS] {
        let truth = Crossing::of(400, |number| Some(MILLISECOND + 250 * i64::from(number)));
        let scene = Scene::new(&truth.upstream, &truth.downstream.clone().shifted(ahead_ns));
        for algorithm in ["exact", "lda"] {
            let run = scene.delay(&format!("-F json -a {algorithm}")).expect(0);
            let document = run.json();
            assert_eq!(evidence(&document), truth.evidence());
            let mean_ns = number(&document, "/estimates/0/mean_ns");
            assert_eq!(mean_ns, ahead_ns + truth.mean_ns(), "{algorithm}");
            let offset_ns = number(&document, "/clock/offset_ns");
            assert_eq!(offset_ns, ahead_ns + truth.range_ns().0, "{algorithm}");
        }
    }
}

#[test]
fn a_capture_that_ends_within_a_packet_is_used_up_to_there() {
    let truth = Crossing::of(400, |_| Some(MILLISECOND));
    let whole = truth.upstream.bytes();
    let scene = truth.scene();
    fs::write(scene.path().join("up.pcap"), &whole[..whole.len() - 10])
        .expect("the folder can be written to");
    let run = scene.delay("-F json").expect(PARTLY).says(&["up.pcap", "399 frames"]);
    assert_eq!(evidence(&run.json()), [399, 399, 0]);
    scene.run("info up.pcap").expect(PARTLY);
    scene.run("record -r up.pcap -w up.epochs").expect(PARTLY).says(&["up.pcap"]);
}

#[test]
fn a_truncated_gzip_is_used_up_to_there() {
    let truth = Crossing::of(4000, |_| Some(MILLISECOND));
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(&truth.downstream.bytes()).expect("memory can be written to");
    let whole = encoder.finish().expect("memory can be written to");
    let scene = truth.scene();
    fs::write(scene.path().join("down.pcap"), &whole[..whole.len() / 2])
        .expect("the folder can be written to");
    let run = scene.delay("-F json").expect(PARTLY).says(&["down.pcap"]);
    let [packets, used, lost] = evidence(&run.json());
    assert!((1000..3900).contains(&used), "{used} packets used");
    assert_eq!((packets, lost), (used, 0), "the rest is skipped, not lost");
}

#[test]
fn standard_input_cannot_be_read_twice() {
    let scene = crossing().scene();
    let bytes = crossing().upstream.bytes();
    let fed = |arguments: &str| twixt_fed(scene.path(), arguments, &bytes).expect(USAGE);
    fed("delay - down.pcap").says(&["--one-pass"]);
    fed("delay up.pcap -").says(&["--one-pass"]);
    fed("delay - down.pcap --one-pass").says(&["--toward"]);
    fed("delay - - --one-pass udp").says(&["only one"]);
}

#[test]
fn what_makes_no_sense_is_refused_with_what_would() {
    check("up.pcap down.pcap -a guess", USAGE, &["\"guess\"", "exact", "lda"]);
    check("up.pcap down.pcap -a lda --window 1s", USAGE, &["lda", "--window", "--banks", "--rows"]);
    check("up.pcap down.pcap -a exact --rows 5", USAGE, &["exact", "--rows", "--window"]);
    check("up.pcap down.pcap -a exact --memory 1MiB", USAGE, &["--memory"]);
    check("up.pcap down.pcap -a lda --memory 1MiB --rows 5", USAGE, &["--memory"]);
    check("up.pcap down.pcap -a lda --rows many", USAGE, &["--rows", "many"]);
    check("up.pcap down.pcap -a lda --sampling 2", USAGE, &["sampling"]);
    check("up.pcap down.pcap -a lda --estimator guess", USAGE, &["guess", "centred"]);
    check("up.pcap down.pcap -a lda --by flow", USAGE, &["lda", "--by all", "--by class"]);
    check("up.pcap down.pcap -a lda --by prefix/24", USAGE, &["lda", "--by all"]);
    check("up.pcap down.pcap --by size", USAGE, &["--by", "prefix/24"]);
    check("up.pcap down.pcap --by prefix/33", USAGE, &["--by"]);
    check("up.pcap down.pcap host", USAGE, &["filter", "address"]);
    check("up.pcap down.pcap tcp and and udp", USAGE, &["filter", "at character"]);
    check("up.pcap down.pcap --epoch 0s", USAGE, &["--epoch"]);
    check("up.pcap down.pcap --epoch soon", USAGE, &["--epoch", "soon"]);
    check("up.pcap down.pcap --toward 10.0.0.0/99", USAGE, &["--toward"]);
    check("up.pcap down.pcap --class voice", USAGE, &["--class"]);
    check("up.pcap down.pcap --digest magic", USAGE, &["--digest"]);
    check("up.pcap down.pcap --one-pass", USAGE, &["--toward"]);
    check("up.pcap down.pcap --both --one-pass udp", USAGE, &["--both"]);
    check("up.pcap", USAGE, &["DOWN"]);
}

/// Makes `up.epochs` and `down.epochs` of the two captures, with further options for each.
#[track_caller]
fn record(scene: &Scene, up_options: &str, down_options: &str) {
    scene.run(&format!("record -r up.pcap -w up.epochs {up_options}")).expect(0);
    scene.run(&format!("record -r down.pcap -w down.epochs {down_options}")).expect(0);
}

#[test]
fn an_epoch_file_beside_a_capture_is_refused() {
    let scene = crossing().scene();
    record(&scene, "", "");
    check_in(&scene, "up.epochs down.pcap", USAGE, &["record the capture first"]);
    check_in(&scene, "up.pcap down.epochs", USAGE, &["record the capture first"]);
}

#[test]
fn options_for_recording_are_refused_afterwards() {
    let scene = crossing().scene();
    record(&scene, "", "");
    check_in(&scene, "up.epochs down.epochs -a exact", USAGE, &["lda", "exact"]);
    for option in ["--epoch 1s", "--both", "--toward 10.0.0.0/8", "udp"] {
        check_in(&scene, &format!("up.epochs down.epochs {option}"), USAGE, &["to recording"]);
    }
}

#[test]
fn an_epoch_file_cut_in_the_middle_is_used_up_to_there() {
    let scene = crossing().scene();
    let options = "--epoch 50ms -a exact";
    record(&scene, options, options);
    let path = scene.path().join("down.epochs");
    let whole = fs::read(&path).expect("it was written");
    fs::write(&path, &whole[..whole.len() / 2]).expect("the folder can be written to");
    let run = scene.run("delay up.epochs down.epochs -F json").expect(PARTLY);
    let document = run.says(&["down.epochs", "unfinished record"]).json();
    let epochs = number(&document, "/epochs");
    assert!((3..6).contains(&epochs), "{epochs} of nine epochs");
    for estimate in document["estimates"].as_array().expect("there are estimates") {
        let in_flight = number(estimate, "/packets") - number(estimate, "/used");
        assert!(in_flight <= 4, "what came through is not lost: {estimate}");
    }
    scene.run("info down.epochs").expect(PARTLY).says(&["unfinished record"]);
}

#[test]
fn a_damaged_epoch_file_never_panics() {
    let scene = crossing().scene();
    record(&scene, "--memory 2KiB", "--memory 2KiB");
    let whole = fs::read(scene.path().join("down.epochs")).expect("it was written");
    for index in (0..whole.len()).step_by(61) {
        let mut damaged = whole.clone();
        damaged[index] ^= 0x55;
        fs::write(scene.path().join("down.epochs"), damaged).expect("it can be written again");
        let run = scene.run("delay up.epochs down.epochs");
        assert!(!run.stderr.contains("panicked"), "byte {index}: {}", run.stderr);
        assert!(run.code.is_some_and(|code| (1..=4).contains(&code)), "byte {index}: {run:?}");
    }
}

#[test]
fn formulas_known_to_be_wrong_are_for_comparisons_only() {
    let scene = crossing().scene();
    let refused = |command: &str, sound: &str| {
        let run = scene.run(&format!("{command} --estimator printed"));
        run.expect(USAGE).says(&["printed", "verify and evaluate", sound]);
    };
    refused("delay up.pcap down.pcap -a lda", "use centred");
    refused("delay up.pcap down.pcap -a lds --by flow", "use joint or paper");
    refused("path up.pcap down.pcap -a sds", "use joint or min");
    refused("record -r up.pcap -w up.epochs -a lda", "use centred");
    for point in ["up", "down"] {
        scene.run(&format!("record -r {point}.pcap --store s -a lda")).expect(0);
    }
    refused("query --store s --from up --to down", "use centred");
    let run = scene.run("delay --help-algorithms").expect(0);
    assert!(!run.stdout.contains("printed") && run.stdout.contains("centred"), "{}", run.stdout);
    scene.run("verify up.pcap down.pcap -a lda --estimator printed").expect(0);
}

/// Checks that recordings with unlike settings give no estimate, with a reason.
#[track_caller]
fn check_unlike(up_options: &str, down_options: &str, said: &[&str]) {
    let scene = crossing().scene();
    record(&scene, up_options, down_options);
    let run = scene.run("delay up.epochs down.epochs -F json");
    assert!(matches!(run.code, Some(PARTLY | NO_ANSWER)), "{run:?}");
    let code = run.code.unwrap_or_default();
    let run = run.expect(code).says(said);
    if !run.stdout.is_empty() {
        assert_eq!(run.json()["estimates"].as_array().map(Vec::len), Some(0), "{}", run.stdout);
    }
}

#[test]
fn recordings_with_unlike_settings_give_no_estimate() {
    check_unlike("--key one", "--key another", &["key"]);
    check_unlike("--rows 512", "--rows 256", &["rows"]);
    check_unlike("-a exact", "-a lda", &["exact", "lda"]);
    check_unlike("--digest headers", "--digest default", &["digest"]);
    check_unlike("--epoch 100ms", "--epoch 50ms", &["epoch"]);
}

#[test]
fn whoever_stops_reading_early_is_not_an_error() {
    let mut crossing = Crossing::of(0, |_| None);
    for number in 0..3000 {
        let packet = Packet::udp(&format!("10.0.0.1:{}", 1000 + number), "10.0.1.9:53", number);
        crossing.send(i64::from(number) * MILLISECOND, &packet, Some(MILLISECOND));
    }
    let scene = crossing.scene();
    for format in ["jsonl", "json", "csv", "human --rows-shown 3000"] {
        let mut child = crate::support::command()
            .args(format!("delay up.pcap down.pcap --by flow -F {format}").split(' '))
            .current_dir(scene.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command starts");
        let mut first = [0; 10];
        let mut output = child.stdout.take().expect("it was asked for");
        output.read_exact(&mut first).expect("there is output");
        drop(output);
        let ended = child.wait_with_output().expect("the command ends");
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!((ended.status.code(), &*said), (Some(0), ""), "{format}");
    }
}

#[test]
fn where_nothing_can_be_written_nothing_is_claimed() {
    let scene = crossing().scene();
    scene.run("record -r up.pcap -w missing/up.epochs").expect(FAILED).says(&["missing/up.epochs"]);
    scene.run("record -r missing.pcap -w up.epochs").expect(FAILED).says(&["missing.pcap"]);
    assert!(!scene.path().join("up.epochs").exists(), "nothing read, nothing written");
}

#[test]
fn info_says_what_a_file_is_not() {
    let folder = folder();
    fs::write(folder.path().join("text"), "hello, world").expect("the folder can be written to");
    let info = |name: &str| crate::support::twixt_in(folder.path(), &format!("info {name}"));
    info("text").expect(FAILED).says(&["text", "not a pcap"]);
    info("missing").expect(FAILED).says(&["missing"]);
    info(".").expect(FAILED);
}

#[test]
fn clocks_may_be_years_apart_in_one_pass_too() {
    const TEN_YEARS: i64 = 10 * 365 * 24 * 3600 * SECOND;
    let truth = Crossing::of(2000, |number| Some(MILLISECOND + 250 * i64::from(number)));
    let scene = Scene::new(&truth.upstream, &truth.downstream.clone().shifted(TEN_YEARS));
    let run = scene.delay("-F json --one-pass -a lda --rows 4 --banks 1 udp").expect(0);
    assert_eq!(number(&run.json(), "/estimates/0/mean_ns"), TEN_YEARS + truth.mean_ns());
}

/// A collector does not start where its files cannot be, and says which, once.
#[test]
fn a_file_in_the_place_of_a_folder_stops_a_collector() {
    for name in ["epochs", "estimates"] {
        let scene = crossing().scene();
        fs::create_dir(scene.path().join("d")).unwrap();
        fs::write(scene.path().join("d").join(name), "notes").unwrap();
        let run = scene.run("collector --listen 127.0.0.1:0 --directory d --segment a:b");
        let run = run.expect(FAILED).says(&[&format!("d/{name}"), "ot a directory"]);
        assert_eq!(run.stderr.to_lowercase().matches("not a directory").count(), 1);
        let content = fs::read_to_string(scene.path().join("d").join(name)).unwrap();
        assert_eq!(content, "notes");
    }
}

//! Incident bundles as users make and open them: from a collector that runs, on "another machine".

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use twixt_testing::{check_in_browser, golden, require, wait_until};

use crate::demo::Running;
use crate::support::{Run, command, folder, twixt};

const SEGMENT: &str = "bru-par:par-bru";
const MINUTE_NS: i64 = 60_000_000_000;

/// A program that prints where it can be looked at, and goes on until it is ended.
struct Served {
    running: Running,
    url: String,
    errors: BufReader<std::process::ChildStderr>,
    /// Its temporary files are here.
    temporary: tempfile::TempDir,
}

impl Served {
    fn start(arguments: &[&str]) -> (Self, Output) {
        let temporary = folder();
        let mut child = command()
            .args(arguments)
            .env("TMPDIR", temporary.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let mut errors = BufReader::new(child.stderr.take().unwrap());
        let mut said = String::new();
        errors.read_line(&mut said).unwrap();
        let (_, said) = said.split_once(" on ").unwrap_or_else(|| panic!("{said}"));
        let url = said.split(';').next().unwrap().split("/#").next().unwrap().to_owned();
        (Self { running: Running(child), url, errors, temporary }, stdout)
    }

    /// The demo, when the first minute is estimated.
    fn demo() -> Self {
        let (demo, stdout) = Self::start(&["demo", "--listen", "127.0.0.1:0", "--seed", "1"]);
        let mut lines = stdout.lines().map(Result::unwrap);
        assert!(lines.any(|line| line.contains("Ctrl-C")), "no summary");
        // What it prints later has somewhere to go.
        std::thread::spawn(move || lines.for_each(drop));
        demo
    }

    fn view(bundle: &Path) -> Self {
        Self::start(&["view", bundle.to_str().unwrap()]).0
    }

    /// Ends it as Ctrl-C does.
    fn interrupt(mut self) {
        let id = self.running.0.id().to_string();
        let _ = Command::new("kill").args(["-s", "INT", &id]).status().unwrap();
        assert_eq!(self.running.0.wait().unwrap().code(), Some(130));
        let mut rest = String::new();
        self.errors.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "");
        let left: Vec<_> = fs::read_dir(self.temporary.path()).unwrap().collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

/// What it prints.
type Output = BufReader<std::process::ChildStdout>;

fn query(arguments: &str) -> Run {
    twixt(["query"].into_iter().chain(arguments.split_whitespace()))
}

/// A bundle of the demo's first minute; its time, and that of the first minute of the clock in it, as options.
fn made(demo: &Served, folder: &Path) -> (PathBuf, [String; 2]) {
    let path = folder.join("incident.twxb");
    let whole =
        query(&format!("--collector {} --segment {SEGMENT} --step epoch -F json", demo.url));
    let rows = whole.json();
    let first_ns = rows["estimates"][0]["start_ns"].as_i64().unwrap();
    // From the start of a minute on, which is over.
    let start_ns = first_ns.div_euclid(MINUTE_NS) * MINUTE_NS;
    let end_ns = first_ns + 50_000_000_000;
    let times = [end_ns, end_ns.min(start_ns + MINUTE_NS - 1)]
        .map(|end_ns| format!("--start {start_ns} --end {end_ns}"));
    let time = &times[0];
    let place = path.to_str().unwrap();
    let run =
        query(&format!("--collector {} --segment {SEGMENT} {time} --bundle {place}", demo.url));
    let run = run.expect(0).says(&["bundle: wrote", "rows of epochs", "raw epochs"]);
    assert_eq!(run.stdout, "");
    (path, times)
}

#[test]
fn a_bundle_of_a_collector_answers_as_it_does() {
    let (demo, folder) = (Served::demo(), folder());
    let (path, [time, first_minute]) = made(&demo, folder.path());
    let place = path.to_str().unwrap();
    // Of minutes, the first: later ones were not over when the bundle was made.
    let check = |options: &str| {
        let time = if options == "--step minute" { &first_minute } else { &time };
        let asked = |source: &str| {
            query(&format!("{source} --segment {SEGMENT} {time} {options} -F json"))
                .expect(0)
                .stdout
        };
        let expected = asked(&format!("--collector {}", demo.url));
        assert_eq!(asked(&format!("--directory {place}")), expected, "{options}");
    };
    for options in [
        "--step epoch",
        "--step minute",
        "--step epoch --scope *",
        "--step epoch --class backup --algorithm lda",
        "--by flow --class backup --order loss",
    ] {
        check(options);
    }
    // As a store too: its raw epochs, paired anew.
    let (up, down) = SEGMENT.split_once(':').unwrap();
    let run =
        query(&format!("--store {place} --from {up} --to {down} -a lda --total -F json {time}"));
    let document = run.json();
    assert!(document["total"][0]["packets"].as_i64() > Some(100), "{document}");
    let info = twixt(["info", place]).expect(0).stdout;
    assert!(info.contains("bru-par > par-bru") && info.contains("rows of"), "{info}");
    let info = twixt(["info", place, "-F", "json"]).expect(0).json();
    assert_eq!((&info["format"], &info["problems"]), (&"bundle".into(), &Value::Array(vec![])));
    assert_eq!(info["classes"].as_array().unwrap().len(), 3, "{info}");

    let viewed = Served::view(&path);
    let asked = query(&format!(
        "--collector {} --segment {SEGMENT} {time} --step epoch -F json",
        viewed.url
    ));
    let expected =
        query(&format!("--collector {} --segment {SEGMENT} {time} --step epoch -F json", demo.url));
    assert_eq!(asked.stdout, expected.stdout);
    viewed.interrupt();
}

#[test]
fn a_bundle_of_a_bundle_needs_no_time() {
    let folder = folder();
    let golden = golden_in(folder.path());
    let place = golden.to_str().unwrap();
    let again = folder.path().join("again.twxb");
    let again = again.to_str().unwrap();
    query(&format!("--directory {place} --segment up:down --bundle {again}")).expect(0);
    let of = |place: &str| twixt(["info", place, "-F", "json"]).expect(0).json();
    let (first, second) = (of(place), of(again));
    for key in ["estimates", "clocks", "configuration"] {
        assert_eq!(first[key], second[key], "{key}");
    }
    assert_eq!(second["written_by"]["reader"], Value::Null);
}

#[test]
fn what_makes_no_sense_is_refused_and_no_file_is_left() {
    let folder = folder();
    let golden = golden_in(folder.path());
    let (place, out) = (golden.to_str().unwrap(), folder.path().join("out.twxb"));
    let out_text = out.to_str().unwrap();
    let check = |options: &str, code: i32, problem: &str| {
        query(&format!("{options} --bundle {out_text}")).expect(code).says(&[problem]);
        assert!(!out.exists(), "{options}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "{options}");
    };
    check(&format!("--directory {place}"), 2, "--bundle needs --segment");
    check(
        &format!("--directory {place} --segment up:down --class x"),
        2,
        "--class cannot be combined",
    );
    check(
        &format!("--directory {place} --segment up:down --by flow"),
        2,
        "--by cannot be combined",
    );
    check(&format!("--directory {place} --segment no:where"), 4, "nothing is stored");
    check(&format!("--directory {place} --segment up:down --start 0"), 2, "31 days at most");
    check(&format!("--store {place} --from up --to down"), 2, "--bundle is for --collector");
    let elsewhere = folder.path().join("no/such/place.twxb");
    let run =
        query(&format!("--directory {place} --segment up:down --bundle {}", elsewhere.display()));
    run.expect(1).says(&["cannot write"]);
    let run = twixt(["view", place, "--listen", "192.0.2.1:0"]).expect(2);
    run.says(&["not a loopback address"]);
}

/// The golden bundle as a file.
fn golden_in(folder: &Path) -> PathBuf {
    let path = folder.join("incident.twxb");
    fs::write(&path, golden("bundle-v1.twxb")).unwrap();
    path
}

/// Every command that takes a bundle refuses a bad one with one line, and leaves nothing behind.
#[test]
fn bad_bundles_are_refused_by_every_command() {
    let [folder, temporary] = [folder(), folder()];
    let path = folder.path().join("bad.twxb");
    let place = path.to_str().unwrap();
    let commands = [
        format!("info {place}"),
        format!("view {place}"),
        format!("query --directory {place}"),
        format!("query --directory {place} --segment up:down --by flow"),
        format!("query --store {place} --from up --to down"),
    ];
    let check = |bytes: &[u8], problem: &str, commands: &[String]| {
        fs::write(&path, bytes).unwrap();
        for line in commands {
            let output = command()
                .args(line.split_whitespace())
                .env("TMPDIR", temporary.path())
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{line}: {said}");
            assert!(said.contains(problem) && said.lines().count() == 1, "{line}: {said}");
            assert!(said.starts_with("twixt: ") && said.contains(place), "{line}: {said}");
            assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 0, "{line}");
        }
    };
    let bundle = golden("bundle-v1.twxb");
    check(&bundle[..bundle.len() / 2], "damaged", &commands);
    let mut flipped = bundle.clone();
    flipped[bundle.len() / 3] ^= 1;
    check(&flipped, "damaged", &commands);
    let mut newer = bundle[..16].to_vec();
    newer[4] = 9;
    let checksum = xxhash_rust::xxh3::xxh3_64(&newer[..8]);
    newer[8..].copy_from_slice(&checksum.to_le_bytes());
    check(&newer, "version 9 is newer than 1", &commands);
    // `info` takes it for a capture.
    check(b"this is a text", "not a bundle", &commands[1..]);
    let info = twixt(["info", place]);
    assert!(info.code == Some(1) && info.stderr.lines().count() == 1, "{info:?}");
}

#[test]
fn a_browser_downloads_a_bundle_and_another_shows_the_same() {
    require!(browser);
    let (demo, folder) = (Served::demo(), folder());
    let path = folder.path().join("incident.twxb");
    let numbers = folder.path().join("numbers.json");
    let files =
        [("TWIXT_BUNDLE", path.to_str().unwrap()), ("TWIXT_NUMBERS", numbers.to_str().unwrap())];
    check_in_browser("download.spec.ts", &demo.url, &files);
    drop(demo);
    let viewed = Served::view(&path);
    check_in_browser("bundle.spec.ts", &viewed.url, &files);
    viewed.interrupt();
}

/// A signal ends a query at once; its temporary directory goes with it.
#[test]
fn a_query_that_is_interrupted_leaves_nothing_behind() {
    let [folder, temporary] = [folder(), folder()];
    let place = golden_in(folder.path());
    let mut child = command()
        .args(["query", "--directory", place.to_str().unwrap(), "--step", "epoch", "--scope", "*"])
        .args(["-F", "json"])
        .env("TMPDIR", temporary.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let is_there = || fs::read_dir(temporary.path()).unwrap().count() > 0;
    wait_until("the temporary directory is there, or it is over", || {
        is_there() || child.try_wait().unwrap().is_some()
    });
    let _ = Command::new("kill").args(["-s", "INT", &child.id().to_string()]).status().unwrap();
    let mut rest = Vec::new();
    let _ = child.stdout.take().unwrap().read_to_end(&mut rest);
    let code = child.wait().unwrap().code();
    assert!(matches!(code, Some(130 | 0)), "{code:?}");
    assert!(!is_there());
}

//! Incident bundles: what a collector packs answers as the collector does, wherever it is opened; and a
//! file that is not what it should be is refused, whatever it says.

use std::fs;
use std::io::Cursor;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use serde_json::{Value, json};
use twixt_collector::StopRequest;
use twixt_collector::access::{PointPattern, ReaderConfig, TokenConfig, TokenHash};
use twixt_collector::bundle::{
    EPOCHS_MAX, ManifestDocument, check_bundle, open_bundle, view_bundle,
};
use twixt_history::{Row, SeriesKey, moment_text, rows_to_bytes};
use twixt_measure::Sealed;
use twixt_model::{Delay, Timestamp};
use twixt_store::{Section, SectionReader, SectionWriter};
use twixt_synopsis::Purpose;
use twixt_testing::{golden, wait_for};

use crate::api::{ask, ask_until, ask_well};
use crate::epochs::{Agent, DELAY_NS, EPOCH_NS, body, epoch_now};
use crate::running::{Running, client, config, send};

const EPOCHS: i64 = 40;
/// Those of which both halves are there, at both ends of the time as well.
const SETTLED: i64 = EPOCHS - 6;
const MANIFEST: u16 = 1;
const EPOCH_ROWS: u16 = 3;
const UPSTREAM: u16 = 4;
const DOWNSTREAM: u16 = 5;

/// A collector with epochs of a segment whose downstream clock is epochs ahead, of two algorithms; and
/// the first epoch. It is patient: what is sealed on a busy machine may come late.
fn fed(folder: &Path) -> (Running, i64) {
    const TURN: usize = 20;
    let mut config = config(folder);
    config.engine.patience = Delay::from_nanos(15_000_000_000);
    let collector = Running::start(config);
    let first = epoch_now() - EPOCHS;
    let ahead_ns = 3 * EPOCH_NS + DELAY_NS;
    let ends = [Agent::at("up"), Agent::at("down").after(ahead_ns).spread(400_000)];
    let keeping = |name| ends.clone().map(|agent: Agent| agent.keeping(Purpose::Delay, name));
    let sealed: Vec<Vec<Sealed>> =
        ["exact", "sample"].map(keeping).concat().iter().map(|of| of.seal(first, EPOCHS)).collect();
    for turn in 0..(EPOCHS as usize).div_ceil(TURN) {
        for part in sealed.iter().filter_map(|sealed| sealed.chunks(TURN).nth(turn)) {
            collector.send(&body(part)).counts();
        }
    }
    let known = |document: &Value| document["completeness"]["epochs"].as_i64() >= Some(2 * SETTLED);
    ask_until(&collector, "/v1/estimates?segment=up:down&step=hour", known);
    (collector, first)
}

fn moment(epoch: i64) -> String {
    moment_text(Timestamp::from_nanos(epoch * EPOCH_NS))
}

fn download(collector: &Running, question: &str) -> Vec<u8> {
    let url = format!("http://{}/v1/bundle?{question}", collector.addresses.listen);
    let mut response = client().get(&url).call().unwrap();
    let found = response.body_mut().read_to_vec().unwrap();
    assert_eq!(response.status().as_u16(), 200, "{}", String::from_utf8_lossy(&found));
    let length = response.headers()["content-length"].to_str().unwrap();
    assert_eq!(length, found.len().to_string());
    found
}

/// A bundle that is served.
struct Viewed {
    address: SocketAddr,
    stop: StopRequest,
    thread: Option<JoinHandle<()>>,
}

impl Viewed {
    fn start(bundle: &[u8]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let manifest = open_bundle(Cursor::new(bundle), folder.path()).unwrap();
        let (stop, (sender, receiver)) = (StopRequest::new(), mpsc::channel());
        let stopped = stop.clone();
        let thread = thread::spawn(move || {
            let ready = |address| sender.send(address).unwrap();
            let listen = "127.0.0.1:0".parse().unwrap();
            view_bundle(&manifest, folder.path(), listen, &stopped, ready).unwrap();
        });
        Self { address: receiver.recv().unwrap(), stop, thread: Some(thread) }
    }

    fn ask(&self, path: &str) -> Value {
        let mut response = client().get(&format!("http://{}{path}", self.address)).call().unwrap();
        let text = response.body_mut().read_to_string().unwrap();
        assert_eq!(response.status().as_u16(), 200, "{path}: {text}");
        serde_json::from_str(&text).unwrap()
    }
}

impl Drop for Viewed {
    fn drop(&mut self) {
        self.stop.request();
        let _ = self.thread.take().unwrap().join();
    }
}

#[test]
fn a_bundle_answers_as_the_collector_did() {
    let folder = tempfile::tempdir().unwrap();
    let (collector, first) = fed(folder.path());
    // From within a minute, and an epoch, to another.
    let (start, end) = (moment(first + 5), moment(first + 28));
    let time = format!("start={start}&end={end}");
    let inner = format!("start={}&end={}", moment(first + 11), moment(first + 23));
    let mut questions = Vec::new();
    for time in [&time, &inner] {
        for step in ["epoch", "minute", "hour"] {
            for about in ["estimates", "heatmap", "histogram", "totals"] {
                questions.push(format!("/v1/{about}?segment=up:down&step={step}&{time}"));
            }
            let every = format!("/v1/estimates?segment=up:down&scope=*&step={step}&{time}");
            questions.push(every + "&algorithm=sample");
        }
        questions.push(format!("/v1/gaps?segment=up:down&{time}"));
        questions.push(format!("/v1/evidence?segment=up:down&limit=1000&{time}"));
        questions.push(format!("/v1/flows?segment=up:down&limit=1000&{time}"));
    }
    let answers = || -> Vec<Value> {
        questions.iter().map(|question| ask_until(&collector, question, |_| true)).collect()
    };
    // The last epochs may still be on their way.
    let (bundle, expected) = wait_for("a collector at rest", || {
        let before = answers();
        let bundle = download(&collector, &format!("segment=up:down&{time}"));
        let after = answers();
        if before == after { Ok((bundle, after)) } else { Err("answers still change") }
    });
    let viewed = Viewed::start(&bundle);
    for (question, expected) in questions.iter().zip(&expected) {
        assert_eq!(viewed.ask(question), *expected, "{question}");
    }
    let known = &expected[0]["completeness"];
    assert_eq!((&known["epochs"], &known["complete"]), (&json!(2 * 24), &json!(true)), "{known}");
    let flows = expected.last().unwrap();
    assert_eq!(flows["flows"].as_array().unwrap().len(), 7, "{flows}");
}

#[test]
fn a_bundle_says_what_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let (collector, first) = fed(folder.path());
    let (start, end) = (moment(first + 5), moment(first + 28));
    let bundle = download(&collector, &format!("segment=up:down&start={start}&end={end}"));
    let manifest = check_bundle(bundle.as_slice()).unwrap();
    assert_eq!(manifest.range.start, start);
    assert_eq!(manifest.written_by.reader.as_deref(), Some("anybody"));
    assert_eq!(manifest.written_by.version, env!("CARGO_PKG_VERSION"));
    assert_eq!(
        (manifest.classes.clone(), manifest.algorithms.clone()),
        (vec![String::new()], vec!["exact".to_owned(), "sample".to_owned()],)
    );
    // With an epoch before and after, of each algorithm.
    assert_eq!(manifest.upstream.epochs, 2 * (24 + 2));
    assert!(manifest.downstream.epochs >= manifest.upstream.epochs, "{manifest:?}");
    let configured = manifest.configuration.clone().unwrap();
    assert_eq!(configured.segments.len(), 1);
    assert_eq!((manifest.left_out.len(), manifest.problems.len()), (0, 0));
    let clocks: Vec<_> = manifest.clocks.iter().map(|of| of.realigned_epochs).collect();
    assert_eq!(clocks, [3, 3]);

    let viewed = Viewed::start(&bundle);
    let source = viewed.ask("/v1/source");
    assert_eq!(
        (&source["kind"], &source["bundle"]["range"]["end"]),
        (&json!("bundle"), &json!(end))
    );
    assert_eq!(viewed.ask("/v1/clocks")["clocks"][0]["realigned_epochs"], 3);
    assert_eq!(viewed.ask("/v1/segments")["segments"].as_array().unwrap().len(), 2);
    assert_eq!(viewed.ask("/v1/points")["points"][0]["last_ns"], Value::Null);
    assert_eq!(viewed.ask("/v1/alerts")["rules"], json!([]));
    // The last hour is that of the bundle.
    let last = viewed.ask("/v1/histogram?segment=up:down");
    assert_eq!(last["range"]["end"], json!(end));
    let own = ask_well(&collector, "/v1/source");
    assert_eq!(own, json!({ "kind": "collector", "bundle": null }));
}

#[test]
fn nothing_can_be_written_to_a_bundle_that_is_served() {
    let viewed = Viewed::start(&golden("bundle-v1.twxb"));
    let page = client().get(&format!("http://{}/", viewed.address)).call().unwrap();
    assert_eq!(page.status().as_u16(), 200);
    for path in ["/v1/epochs", "/v1/alerts/silence"] {
        let response =
            client().post(&format!("http://{}{path}", viewed.address)).send("x").unwrap();
        assert!((400..500).contains(&response.status().as_u16()), "{path}");
    }
}

#[test]
fn bundles_need_a_reader_and_something_to_pack() {
    let folder = tempfile::tempdir().unwrap();
    let (reader, writer) = ("a-token-of-a-reader", "a-token-of-a-writer");
    let mut config = config(folder.path());
    config.engine.patience = Delay::from_nanos(6_000_000_000);
    config.readers = vec![ReaderConfig {
        name: "wall".to_owned(),
        hash: TokenHash::of_token(reader).unwrap(),
        may_silence: false,
    }];
    config.tokens = vec![TokenConfig {
        name: "agent".to_owned(),
        hash: TokenHash::of_token(writer).unwrap(),
        points: vec![PointPattern::all()],
    }];
    let collector = Running::start(config);
    let first = epoch_now() - 20;
    let authorization = format!("Bearer {writer}");
    for agent in [Agent::at("up"), Agent::at("down").after(DELAY_NS)] {
        let body = body(&agent.seal(first, 20));
        send(&client(), &collector.url(), &[("Authorization", &authorization)], &body).counts();
    }
    collector.estimated(18);
    let asked = |question: &str, token: &str| {
        let url = format!("http://{}/v1/bundle?{question}", collector.addresses.listen);
        let request = client().get(&url).header("Authorization", format!("Bearer {token}"));
        let mut response = request.call().unwrap();
        let body = response.body_mut().read_to_vec().unwrap();
        (response.status().as_u16(), body)
    };
    assert_eq!(asked("segment=up:down", "wrong-token-of-nobody").0, 401);
    assert_eq!(asked("segment=up:down", writer).0, 401);
    let (status, bundle) = asked("segment=up:down", reader);
    assert_eq!(status, 200);
    let manifest = check_bundle(bundle.as_slice()).unwrap();
    assert_eq!(manifest.written_by.reader.as_deref(), Some("reader wall"));
    for secret in [reader, writer, folder.path().to_str().unwrap()] {
        let text = serde_json::to_string(&manifest).unwrap();
        assert!(!text.contains(secret), "{secret} in {text}");
    }
    for (question, problem) in [
        ("segment=no:where", "nothing is stored of that segment and time"),
        ("segment=up:down&start=0&end=1", "nothing is stored of that segment and time"),
        ("segment=up:down&start=0", "31 days at most"),
        ("segment=up", "write UPSTREAM:DOWNSTREAM"),
        ("", "missing field"),
        ("segment=up:down&class=x", "unknown field"),
    ] {
        let (status, body) = asked(question, reader);
        let text = String::from_utf8_lossy(&body).into_owned();
        assert!(status == 400 && text.contains(problem), "{question}: {status} {text}");
    }
    // What was packed lay in files without a name.
    let left: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|of| of.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().starts_with('.')), "{left:?}");
}

#[test]
fn what_damage_made_unreadable_is_said_in_the_bundle() {
    let folder = tempfile::tempdir().unwrap();
    let (collector, first) = fed(folder.path());
    let epochs = files(&folder.path().join("epochs"), ".twxl");
    let mut bytes = fs::read(&epochs[0]).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0xff;
    fs::write(&epochs[0], bytes).unwrap();
    let (start, end) = (moment(first), moment(first + EPOCHS));
    let bundle = download(&collector, &format!("segment=up:down&start={start}&end={end}"));
    let manifest = check_bundle(bundle.as_slice()).unwrap();
    assert!(!manifest.problems.is_empty());
    let text = manifest.problems.join("\n");
    assert!(!text.contains(folder.path().to_str().unwrap()), "{text}");
}

fn files(folder: &Path, ending: &str) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        match entry.is_dir() {
            true => found.extend(files(&entry, ending)),
            false if entry.to_string_lossy().ends_with(ending) => found.push(entry),
            false => {}
        }
    }
    found.sort();
    found
}

/// Bytes of released bundles are read for ever.
#[test]
fn bundles_of_every_release_are_read() {
    const NAME: &str = "bundle-v1.twxb";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/golden").join(NAME);
    if std::env::var_os("TWIXT_BLESS").is_some() && !path.exists() {
        let folder = tempfile::tempdir().unwrap();
        let (collector, first) = fed(folder.path());
        let (start, end) = (moment(first + 10), moment(first + 13));
        let bundle = download(&collector, &format!("segment=up:down&start={start}&end={end}"));
        let mut sections = sections_of(&bundle);
        // Not the name of the machine that the test ran on.
        let manifest = &mut sections.last_mut().unwrap().content;
        let mut document: Value = serde_json::from_slice(manifest).unwrap();
        document["written_by"]["host"] = json!("collector.example");
        *manifest = serde_json::to_vec(&document).unwrap();
        fs::write(path, written(&sections)).unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let manifest = open_bundle(Cursor::new(golden(NAME)), folder.path()).unwrap();
    assert_eq!((manifest.segment.upstream.as_str(), manifest.upstream.epochs), ("up", 12));
    let viewed = Viewed::start(&golden(NAME));
    let question = "/v1/estimates?segment=up:down&step=epoch&algorithm=exact";
    let rows = viewed.ask(question)["estimates"].as_array().unwrap().clone();
    assert_eq!(rows.len(), 4);
    let mean = |row: &Value| row["mean_ns"].as_i64().unwrap() - 3 * EPOCH_NS;
    assert!(rows.iter().all(|row| (DELAY_NS..DELAY_NS + 400_000).contains(&mean(row))), "{rows:?}");
}

/// The sections of the golden bundle.
fn sections() -> Vec<Section> {
    sections_of(&golden("bundle-v1.twxb"))
}

fn sections_of(bundle: &[u8]) -> Vec<Section> {
    let mut reader = SectionReader::new(bundle).unwrap();
    std::iter::from_fn(|| reader.next().unwrap()).collect()
}

fn written(sections: &[Section]) -> Vec<u8> {
    let mut writer = SectionWriter::new(Vec::new()).unwrap();
    sections.iter().for_each(|Section { kind, content }| writer.add(*kind, content).unwrap());
    writer.finish().unwrap()
}

/// Checks that a bundle is refused with one line, and that nothing is written outside of the folder.
#[track_caller]
fn check_refused(bundle: &[u8], problem: &str) {
    let around = tempfile::tempdir().unwrap();
    let folder = around.path().join("inside");
    fs::create_dir(&folder).unwrap();
    let error = open_bundle(Cursor::new(bundle), &folder).unwrap_err().to_string();
    assert!(error.contains(problem) && !error.contains('\n'), "{problem}: {error}");
    let names: Vec<_> = fs::read_dir(around.path()).unwrap().map(Result::unwrap).collect();
    assert_eq!(names.len(), 1, "{names:?}");
}

/// The golden bundle with another manifest.
fn with_manifest(change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let mut sections = sections();
    let manifest = sections.last_mut().unwrap();
    let mut document: Value = serde_json::from_slice(&manifest.content).unwrap();
    change(&mut document);
    manifest.content = serde_json::to_vec(&document).unwrap();
    written(&sections)
}

/// The golden bundle with a further section at its beginning.
fn with_section(kind: u16, content: Vec<u8>) -> Vec<u8> {
    let mut sections = sections();
    sections.insert(0, Section { kind, content });
    written(&sections)
}

#[test]
fn damaged_bundles_are_refused_before_anything_is_written() {
    let bundle = golden("bundle-v1.twxb");
    for length in (0..bundle.len()).step_by(997) {
        let problem = if length < 4 { "not a bundle" } else { "damaged" };
        check_refused(&bundle[..length], problem);
    }
    for at in (4..bundle.len()).step_by(991) {
        let mut changed = bundle.clone();
        changed[at] ^= 0x10;
        check_refused(&changed, "damaged");
    }
    check_refused(b"PK\x03\x04 something else", "not a bundle");
}

#[test]
fn forged_manifests_are_refused() {
    check_refused(&written(&[]), "no manifest");
    check_refused(&written(&[Section { kind: MANIFEST, content: b"{}".to_vec() }]), "its manifest");
    let deep = Section { kind: MANIFEST, content: vec![b'['; 1 << 20] };
    check_refused(&written(&[deep]), "its manifest");
    let twice = [sections(), sections().split_off(sections().len() - 1)].concat();
    check_refused(&written(&twice), "follows its manifest");
    let set = |path: &'static str, value: Value| {
        with_manifest(move |document| *document.pointer_mut(path).unwrap() = value)
    };
    check_refused(&set("/range/start_ns", json!(i64::MAX)), "ends before it starts");
    check_refused(&set("/range/start_ns", json!(i64::MIN)), "time is too long");
    check_refused(&set("/series/0/stored/end_ns", json!(i64::MAX)), "outside its time");
    check_refused(&set("/series/0/upstream", json!("other")), "other segments");
    check_refused(&set("/series/0/epoch_ns", json!(-1)), "no length");
    check_refused(&set("/segment/upstream", json!("a\u{1b}[2J")), "other segments");
    check_refused(&set("/written_by/host", json!("a\nb")), "cannot be shown");
    check_refused(&set("/problems", json!(vec!["x"; 10_001])), "lists too much");
    // A name is never that of a file: this one only matches nothing.
    let hostile = with_manifest(|document| {
        let text = document.to_string().replace("\"up\"", "\"../../../up\"");
        *document = serde_json::from_str(&text).unwrap();
    });
    check_refused(&hostile, "a series that is not listed");
}

#[test]
fn forged_sections_are_refused() {
    let far = i64::MAX.to_le_bytes().to_vec();
    check_refused(&with_section(EPOCH_ROWS, Vec::new()), "without an hour");
    check_refused(&with_section(EPOCH_ROWS, far), "outside its time");
    let manifest: ManifestDocument = check_bundle(golden("bundle-v1.twxb").as_slice()).unwrap();
    const HOUR_NS: i64 = 3_600_000_000_000;
    let hour_ns = manifest.range.start_ns.div_euclid(HOUR_NS) * HOUR_NS;
    let rows = |bytes: &[u8]| [&hour_ns.to_le_bytes()[..], bytes].concat();
    check_refused(&with_section(EPOCH_ROWS, rows(b"")), "too short");
    check_refused(&with_section(EPOCH_ROWS, rows(&[1, 0, 1, 0, 255, 255, 255, 255])), "ends early");
    let unknown = Row {
        start_ns: hour_ns,
        end_ns: hour_ns + 1,
        series: SeriesKey { epoch_ns: 1, ..SeriesKey::default() },
        ..Row::default()
    };
    check_refused(&with_section(EPOCH_ROWS, rows(&rows_to_bytes(&[unknown]))), "not listed");
    check_refused(&with_section(UPSTREAM, b"short".to_vec()), "a raw epoch that is none");
    // Behind the epochs of the same hour: in no order.
    let mut sections = sections();
    let at = sections.iter().position(|of| of.kind == EPOCH_ROWS).unwrap();
    let sums = sections.remove(0);
    sections.insert(at, sums);
    check_refused(&written(&sections), "in no order");
}

#[test]
fn more_raw_epochs_than_a_bundle_has_are_refused() {
    let of_epochs = |count: usize| {
        let mut sections = sections();
        let epoch = sections.iter().find(|of| of.kind == UPSTREAM).unwrap().clone();
        sections.retain(|of| ![UPSTREAM, DOWNSTREAM].contains(&of.kind));
        sections.splice(0..0, std::iter::repeat_n(epoch, count));
        written(&sections)
    };
    let folder = tempfile::tempdir().unwrap();
    open_bundle(Cursor::new(of_epochs(EPOCHS_MAX)), folder.path()).unwrap();
    check_refused(&of_epochs(EPOCHS_MAX + 1), "too many raw epochs");
}

#[test]
fn sections_of_a_later_release_are_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    let bundle = with_section(77, b"something new".to_vec());
    let manifest = open_bundle(Cursor::new(bundle), folder.path()).unwrap();
    assert_eq!(manifest.upstream.epochs, 12);
}

#[test]
fn a_bundle_of_a_bundle_is_the_same() {
    let viewed = Viewed::start(&golden("bundle-v1.twxb"));
    let manifest = check_bundle(golden("bundle-v1.twxb").as_slice()).unwrap();
    let (start, end) = (&manifest.range.start, &manifest.range.end);
    let url =
        format!("http://{}/v1/bundle?segment=up:down&start={start}&end={end}", viewed.address);
    let again = client().get(&url).call().unwrap().body_mut().read_to_vec().unwrap();
    let again = check_bundle(again.as_slice()).unwrap();
    assert_eq!(again.estimates, manifest.estimates);
    assert_eq!((again.upstream, again.downstream), (manifest.upstream, manifest.downstream));
    assert_eq!((again.series, again.clocks), (manifest.series, manifest.clocks));
    assert_eq!(again.configuration, manifest.configuration);
}

#[test]
fn bundles_are_listed_in_the_description_of_the_interface() {
    let folder = tempfile::tempdir().unwrap();
    let collector = Running::start(config(folder.path()));
    let (status, document) = ask(&collector, "/v1/openapi.json");
    assert_eq!(status, 200);
    for path in ["/v1/bundle", "/v1/source"] {
        assert!(document["paths"][path]["get"].is_object(), "{path}");
    }
}

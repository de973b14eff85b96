//! The pages that the collector serves, and what a browser makes of them.

use std::fs;
use std::path::Path;
use std::process::Command;

use twixt_collector::ESTIMATES_FOLDER;
use twixt_collector::access::{PointPattern, ReaderConfig, TokenConfig, TokenHash};
use twixt_engine::SegmentConfig;
use twixt_history::{History, HistoryConfig, moment_text};
use twixt_model::{Delay, PointId, Segment, Timestamp};
use twixt_synopsis::Purpose;
use twixt_testing::{check_in_browser, dashboard_folder, require};

use crate::api::ask_until;
use crate::epochs::{Agent, DELAY_NS, EPOCH_NS, body, epoch_now};
use crate::large_network::{MINUTE_NS, row_of};
use crate::one_point::Asking;
use crate::running::{Running, client, config, send};

const READER: &str = "a-token-of-a-reader";
const WRITER: &str = "a-token-of-a-writer";
/// Names that a page must show as they are.
const HOSTILE: [&str; 2] =
    ["<img src=x onerror=alert(1)>", "\"'`{{7*7}}${7*7} مرحبا </script> &lt;b&gt;"];
const EPOCHS: i64 = 20;

#[test]
fn the_bundle_is_the_build_of_its_sources() {
    require!(dashboard);
    let built = tempfile::tempdir().unwrap();
    let run = |words: &[&str]| {
        let ended = Command::new("node").args(words).current_dir(dashboard_folder()).output();
        let ended = ended.unwrap();
        let said = [ended.stdout, ended.stderr].concat();
        assert!(ended.status.success(), "{words:?}: {}", String::from_utf8_lossy(&said));
    };
    run(&["node_modules/svelte-check/bin/svelte-check", "--fail-on-warnings"]);
    let out = built.path().to_str().unwrap();
    run(&["node_modules/vite/bin/vite.js", "build", "--outDir", out, "--emptyOutDir"]);
    let committed = dashboard_folder().join("dist");
    assert_eq!(names(&committed), names(built.path()));
    for name in names(&committed) {
        let is_same =
            fs::read(committed.join(&name)).unwrap() == fs::read(built.path().join(&name)).unwrap();
        assert!(is_same, "{name} is not what its sources give: run `npm run build` in dashboard/");
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn pages_compute_what_they_should() {
    require!(dashboard);
    check_in_browser("compute.spec.ts", "http://needs.no.collector", &[]);
}

/// Who installs packages chooses where they come from.
#[test]
fn the_lock_file_names_no_registry() {
    let text = fs::read_to_string(dashboard_folder().join("package-lock.json")).unwrap();
    assert!(text.contains("\"integrity\": \"sha512-"));
    assert!(!text.contains("\"resolved\""));
}

#[test]
fn pages_are_served_to_everybody_and_load_nothing_from_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let collector = guarded(folder.path());
    let ask = |path: &str, header: (&str, &str)| {
        let url = format!("http://{}{path}", collector.addresses.listen);
        client().get(&url).header(header.0, header.1).call().unwrap()
    };
    for path in ["/", "/dashboard.js", "/dashboard.css", "/icon.svg"] {
        let response = ask(path, ("accept-encoding", "identity"));
        let header = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
        assert_eq!(response.status().as_u16(), 200, "{path}");
        assert!(header("content-security-policy").starts_with("default-src 'self';"), "{path}");
        assert_eq!(header("x-content-type-options"), "nosniff");
        let again = ask(path, ("if-none-match", &header("etag")));
        assert_eq!(again.status().as_u16(), 304, "{path}");
    }
    assert_eq!(ask("/dashboard.map", ("accept", "*/*")).status().as_u16(), 401);
}

#[test]
fn a_browser_shows_hostile_names_as_text_to_who_has_a_token() {
    require!(browser);
    let folder = tempfile::tempdir().unwrap();
    let collector = guarded(folder.path());
    let first = epoch_now() - EPOCHS;
    let authorization = format!("Bearer {WRITER}");
    let headers = [("Authorization", authorization.as_str())];
    let [up, down] = HOSTILE;
    for agent in [Agent::at(up), Agent::at(down).after(DELAY_NS).spread(100_000)] {
        for agent in [agent.clone(), agent.sampling()] {
            let body = body(&agent.seal(first, EPOCHS));
            send(&client(), &collector.url(), &headers, &body).counts();
        }
    }
    collector.estimated(2 * (EPOCHS as usize - 2));
    let url = format!("http://{}", collector.addresses.listen);
    check_in_browser("collector.spec.ts", &url, &[("TWIXT_TOKEN", READER)]);
}

#[test]
fn a_browser_shows_what_single_points_measure() {
    require!(browser);
    let folder = tempfile::tempdir().unwrap();
    let collector = Running::start(config(folder.path()));
    let first = epoch_now() / 10 - 130;
    for (purpose, algorithm) in [(Purpose::RoundTrip, "fridge"), (Purpose::Heavy, "space-saving")] {
        collector.send(&body(&Asking::new(purpose, algorithm).seal(first, 125))).counts();
    }
    collector.send(&body(&Agent::at("up").seal(epoch_now() - EPOCHS, EPOCHS))).counts();
    for path in ["/v1/round-trips?point=edge", "/v1/heavy?point=edge"] {
        ask_until(&collector, path, |document| document["completeness"]["epochs"] == 125);
    }
    let url = format!("http://{}", collector.addresses.listen);
    check_in_browser("onepoint.spec.ts", &url, &[]);
}

#[test]
fn a_browser_is_told_that_nothing_is_stored() {
    require!(browser);
    let folder = tempfile::tempdir().unwrap();
    let collector = Running::start(config(folder.path()));
    let url = format!("http://{}", collector.addresses.listen);
    check_in_browser("empty.spec.ts", &url, &[]);
}

/// One epoch of everything: a segment, and a path of two that was measured from end to end as well.
#[test]
fn a_browser_shows_single_epochs_and_what_a_path_does_not_explain() {
    require!(browser);
    let folder = tempfile::tempdir().unwrap();
    let epoch = epoch_now() - 30;
    let now = Timestamp::from_nanos(epoch * EPOCH_NS);
    let ends = [
        ["lon-out", "par-in"],
        ["fra-out", "ams-in"],
        ["ams-out", "lon-in"],
        ["fra-out", "lon-in"],
    ];
    let delays_ns = [(4_000_000, 60), (4_000_000, 60), (5_000_000, 60), (10_000_000, 600)];
    let history =
        History::open(&folder.path().join(ESTIMATES_FOLDER), HistoryConfig::default()).unwrap();
    for (ends, (delay_ns, lost)) in ends.into_iter().zip(delays_ns) {
        history.append(&[row_of(ends, (EPOCH_NS, epoch), delay_ns, lost)], now).unwrap();
    }
    drop(history);
    let collector = Running::start(config(folder.path()));
    let url = format!("http://{}", collector.addresses.listen);
    let moment = |epoch: i64| moment_text(Timestamp::from_nanos(epoch * EPOCH_NS));
    let (start, end) = (moment(epoch - 30), moment(epoch + 30));
    let times = [("TWIXT_START", start.as_str()), ("TWIXT_END", end.as_str())];
    check_in_browser("small.spec.ts", &url, &times);
}

/// 25 hours and a half of minutes, of which the last hour differs from that of the day before in two segments of three.
#[test]
fn a_browser_shows_what_changed_since_yesterday() {
    require!(browser);
    let folder = tempfile::tempdir().unwrap();
    let now = Timestamp::from_nanos(epoch_now() * EPOCH_NS);
    let last = now.as_nanos() / MINUTE_NS - 1;
    let history =
        History::open(&folder.path().join(ESTIMATES_FOLDER), HistoryConfig::default()).unwrap();
    for minute in last - 25 * 60 - 30..=last {
        let is_today = minute > last - 60;
        let (slower_ns, lossy) = if is_today { (6_000_000, 300) } else { (4_000_000, 30) };
        let rows =
            [("slower", slower_ns, 30), ("lossy", 4_000_000, lossy), ("steady", 4_000_000, 30)];
        let rows = rows.map(|(name, delay_ns, lost)| {
            let ends = [format!("{name}-out"), format!("{name}-in")];
            row_of([&ends[0], &ends[1]], (MINUTE_NS, minute), delay_ns, lost)
        });
        history.append(&rows, now).unwrap();
    }
    drop(history);
    let collector = Running::start(config(folder.path()));
    let url = format!("http://{}", collector.addresses.listen);
    check_in_browser("yesterday.spec.ts", &url, &[]);
}

/// A collector that wants tokens, for the segment between the hostile names.
fn guarded(folder: &Path) -> Running {
    let mut config = config(folder);
    let point = |name: &str| PointId(name.to_owned());
    let segment = Segment { upstream: point(HOSTILE[0]), downstream: point(HOSTILE[1]) };
    config.engine.segments = vec![SegmentConfig { segment, class: None }];
    config.engine.patience = Delay::from_nanos(6_000_000_000);
    config.readers = vec![ReaderConfig {
        name: "wall".to_owned(),
        hash: TokenHash::of_token(READER).unwrap(),
        may_silence: false,
    }];
    config.tokens = vec![TokenConfig {
        name: "agent".to_owned(),
        hash: TokenHash::of_token(WRITER).unwrap(),
        points: vec![PointPattern::all()],
    }];
    Running::start(config)
}

//! What the running collector answers.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::Value;
use twixt_collector::ESTIMATES_FOLDER;
use twixt_collector::access::{PointPattern, ReaderConfig, TokenConfig, TokenHash};
use twixt_history::{History, HistoryConfig, moment_text};
use twixt_model::Timestamp;
use twixt_testing::{check_wording, wait_for};

use crate::epochs::{Agent, DELAY_NS, EPOCH_NS, body, epoch_now};
use crate::running::{Running, client, config, send};

const EPOCHS: i64 = 12;
const READER: &str = "a-token-of-a-reader";
const WRITER: &str = "a-token-of-a-writer";

/// A collector that waits long enough for both ends, even on a busy machine.
pub(crate) fn patient(folder: &std::path::Path) -> Running {
    let mut config = config(folder);
    config.engine.patience = twixt_model::Delay::from_nanos(6_000_000_000);
    Running::start(config)
}

/// A collector that has paired some epochs; the first of them.
fn fed(folder: &std::path::Path) -> (Running, i64) {
    let collector = patient(folder);
    let first = epoch_now() - EPOCHS;
    for agent in [Agent::at("up"), Agent::at("down").after(DELAY_NS)] {
        collector.send(&body(&agent.seal(first, EPOCHS))).counts();
    }
    collector.estimated(EPOCHS as usize - 2);
    (collector, first)
}

pub(crate) fn ask(collector: &Running, path: &str) -> (u16, Value) {
    ask_as(collector, path, None)
}

fn ask_as(collector: &Running, path: &str, token: Option<&str>) -> (u16, Value) {
    let url = format!("http://{}{path}", collector.addresses.listen);
    let mut request = client().get(&url);
    if let Some(token) = token {
        request = request.header("Authorization", format!("Bearer {token}"));
    }
    let mut response = request.call().unwrap();
    let text = response.body_mut().read_to_string().unwrap();
    (response.status().as_u16(), serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

#[track_caller]
pub(crate) fn ask_well(collector: &Running, path: &str) -> Value {
    let (status, document) = ask(collector, path);
    assert_eq!(status, 200, "{path}: {document}");
    document
}

/// Asks until the answer is there: estimates are stored just after they are reported. A reader who
/// asks too often is refused for a second, and asks again.
pub(crate) fn ask_until(
    collector: &Running,
    path: &str,
    is_there: impl Fn(&Value) -> bool,
) -> Value {
    wait_for(path, || {
        let (status, document) = ask(collector, path);
        assert!(matches!(status, 200 | 429), "{path}: {status} {document}");
        if status == 200 && is_there(&document) { Ok(document) } else { Err(document) }
    })
}

fn rows(document: &Value) -> &[Value] {
    document["estimates"].as_array().unwrap()
}

#[test]
fn estimates_are_answered_by_epoch_minute_and_hour() {
    let folder = tempfile::tempdir().unwrap();
    let (collector, first) = fed(folder.path());
    let known = |document: &Value| document["completeness"]["epochs"].as_u64();
    let epochs = ask_until(&collector, "/v1/estimates?segment=up:down&step=epoch", |document| {
        known(document) >= Some(EPOCHS as u64 - 2)
    });
    let inner = rows(&epochs).iter().filter(|row| row["epochs"] == 1);
    for row in inner {
        assert_eq!(row["mean_ns"], DELAY_NS);
        assert_eq!((&row["scope"], &row["upstream"]), (&"all".into(), &"up".into()));
    }
    for step in ["minute", "hour"] {
        let document = ask_well(&collector, &format!("/v1/estimates?segment=up:down&step={step}"));
        assert_eq!(known(&document), known(&epochs), "{step}");
        assert!(rows(&document).iter().all(|row| row["mean_ns"] == DELAY_NS));
        assert_eq!(document["completeness"]["stored"], epochs["completeness"]["stored"]);
    }
    // Half of them, by a time in another zone.
    let middle_ns = (first + EPOCHS / 2) * EPOCH_NS;
    let text = moment_text(Timestamp::from_nanos(middle_ns + 3_600_000_000_000));
    let end = text.replace('Z', "%2B01:00");
    let half = ask_well(&collector, &format!("/v1/estimates?step=epoch&end={end}"));
    assert_eq!(rows(&half).last().unwrap()["start_ns"], middle_ns);
    assert_eq!(half["range"]["end_ns"], middle_ns);
}

#[test]
fn pages_and_restarts_change_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (collector, _) = fed(folder.path());
    let path = "/v1/estimates?step=epoch&segment=up:down";
    let whole = ask_until(&collector, path, |document| rows(document).len() >= 10);
    let mut paged: Vec<Value> = Vec::new();
    let mut next = String::new();
    loop {
        let page = ask_well(&collector, &format!("{path}&limit=3{next}"));
        paged.extend_from_slice(rows(&page));
        match page["next"].as_str() {
            Some(cursor) => next = format!("&cursor={cursor}"),
            None => break,
        }
    }
    let told = rows(&whole).len();
    assert_eq!(&paged[..told], rows(&whole));
    collector.stop();
    let collector = patient(folder.path());
    let after = ask_well(&collector, path);
    assert_eq!(&rows(&after)[..told], rows(&whole));
}

/// Sealed hours, of which one file cannot be read.
#[test]
fn a_damaged_hour_is_named_and_missed() {
    let folder = tempfile::tempdir().unwrap();
    let (collector, _) = fed(folder.path());
    let (minutes, epochs) = ("/v1/estimates?segment=up:down", "/v1/estimates?step=epoch");
    let is_there = |document: &Value| rows(document).len() >= 10;
    let before = ask_until(&collector, epochs, is_there);
    collector.stop();
    let estimates = folder.path().join(ESTIMATES_FOLDER);
    History::open(&estimates, HistoryConfig::default()).unwrap().seal_all().unwrap();
    let day = std::fs::read_dir(estimates.join("rollups")).unwrap().next().unwrap().unwrap();
    let file = std::fs::read_dir(day.path()).unwrap().next().unwrap().unwrap().path();
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 4;
    std::fs::write(&file, bytes).unwrap();
    let collector = patient(folder.path());
    let damaged = ask_well(&collector, minutes);
    assert_eq!(damaged["completeness"]["complete"], false);
    let problem = damaged["completeness"]["problems"][0].as_str().unwrap();
    assert!(problem.starts_with("estimates/rollups/") && problem.contains("damaged"), "{problem}");
    let lost = |row: &Value| row["reason"] == "stored data cannot be read";
    assert!(rows(&damaged).iter().any(|row| lost(row) && row["mean_ns"].is_null()));
    // Epochs are in another file.
    let whole = ask_well(&collector, epochs);
    assert_eq!(&rows(&whole)[..rows(&before).len()], rows(&before));
    assert_eq!(whole["completeness"]["problems"], Value::Array(vec![]));
}

#[test]
fn everything_else_can_be_asked() {
    let folder = tempfile::tempdir().unwrap();
    let (collector, first) = fed(folder.path());
    ask_until(&collector, "/v1/estimates?step=epoch", |document| rows(document).len() >= 10);
    let points = ask_well(&collector, "/v1/points");
    let names: Vec<&Value> =
        points["points"].as_array().unwrap().iter().map(|point| &point["name"]).collect();
    assert_eq!(names, ["down", "up"]);
    let segments = ask_well(&collector, "/v1/segments");
    assert_eq!(segments["segments"][0]["downstream"], "down");
    assert_eq!(segments["segments"][0]["epoch_ns"], EPOCH_NS);
    let clocks = ask_well(&collector, "/v1/clocks");
    assert_eq!(clocks["clocks"][0]["upstream"]["bound_ns"], 1_000);
    let flows = ask_well(&collector, "/v1/flows?segment=up:down&order=loss");
    assert!(flows["flows"].as_array().unwrap().is_empty() && flows["reason"].is_string());
    let histogram = ask_well(&collector, "/v1/histogram?segment=up:down");
    assert!(histogram["buckets"].is_null() && histogram["reason"].is_string());
    assert_eq!(histogram["total"][0]["mean_ns"], DELAY_NS);
    let totals = ask_well(&collector, "/v1/totals?step=epoch");
    let total = &totals["totals"][0];
    assert_eq!((&total["mean_ns"], &total["class"]), (&Value::from(DELAY_NS), &Value::from("")));
    assert_eq!(
        total["loss_known"]["lost_max"], 0,
        "the first epoch does not know its loss: {total}"
    );
    assert!(total["loss_known"]["packets"].as_u64() < total["packets"].as_u64(), "{total}");
    let heatmap = ask_well(&collector, "/v1/heatmap?segment=up:down&step=epoch");
    assert!(heatmap["columns"].as_array().unwrap().is_empty() && heatmap["reason"].is_string());
    let alerts = ask_well(&collector, "/v1/alerts");
    assert_eq!(alerts["rules"].as_array().map(Vec::len), Some(0), "none is configured");
    let start = moment_text(Timestamp::from_nanos(first * EPOCH_NS));
    let evidence =
        ask_well(&collector, &format!("/v1/evidence?segment=up:down&start={start}&limit=5"));
    assert_eq!(evidence["upstream"].as_array().unwrap().len(), 5);
    assert_eq!(evidence["upstream"][0]["epoch"], first);
    assert_eq!(evidence["completeness"]["complete"], false, "there are more");
}

#[test]
fn gaps_say_why() {
    let folder = tempfile::tempdir().unwrap();
    let collector = patient(folder.path());
    let first = epoch_now() - EPOCHS;
    let up = Agent::at("up").seal(first, EPOCHS);
    let mut down = Agent::at("down").after(DELAY_NS).seal(first, EPOCHS);
    down.drain(5..8);
    collector.send(&body(&up)).counts();
    collector.send(&body(&down)).counts();
    let gaps = ask_until(&collector, "/v1/gaps?segment=up:down", |document| {
        document["gaps"].as_array().unwrap().len() >= 3
    });
    let reason = gaps["gaps"][0]["reason"].as_str().unwrap();
    assert!(reason.starts_with("up") || reason.starts_with("down"), "{reason}");
    let estimates = ask_well(&collector, "/v1/estimates?segment=up:down&step=epoch");
    assert_eq!(estimates["completeness"]["complete"], false);
    let gap = rows(&estimates).iter().find(|row| row["epochs"] == 0).unwrap();
    assert!(gap["mean_ns"].is_null() && gap["packets"].is_null() && gap["reason"].is_string());
}

#[test]
fn invalid_requests_are_refused_with_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    let collector = Running::start(config(folder.path()));
    let mut messages = String::new();
    for request in [
        "estimates?segment=up",
        "estimates?segment=:x",
        "estimates?step=day",
        "estimates?start=yesterday",
        "estimates?start=2024-01-31T10:00:00",
        "estimates?start=10&end=9",
        "estimates?limit=0",
        "estimates?limit=100001",
        "estimates?limit=x",
        "estimates?cursor=x",
        "estimates?colour=red",
        "flows?order=delay",
        "flows?segment=a:b&order=size",
        "points?x=y",
    ] {
        let (status, document) = ask(&collector, &format!("/v1/{request}"));
        let error = document["error"].as_str().unwrap_or_default();
        assert!(status == 400 && !error.is_empty(), "{request}: {status} {document}");
        messages += &format!("{request}\n  {error}\n");
    }
    check_wording("api-requests", &messages);
    assert_eq!(ask(&collector, "/v1/estimates").0, 200, "nothing is stored, which is no error");
    assert_eq!(ask(&collector, "/v1/nothing").0, 404);
    let url = format!("http://{}/v1/estimates", collector.addresses.listen);
    assert_eq!(send(&client(), &url, &[], b"x").status, 405);
}

#[test]
fn readers_read_and_writers_write() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(folder.path());
    let hash = |token| TokenHash::of_token(token).unwrap();
    config.readers =
        vec![ReaderConfig { name: "grafana".to_owned(), hash: hash(READER), may_silence: false }];
    config.tokens = vec![TokenConfig {
        name: "agents".to_owned(),
        hash: hash(WRITER),
        points: vec![PointPattern::all()],
    }];
    config.limits.queries_burst = 5;
    config.limits.queries_per_second = 1;
    let collector = Running::start(config);
    let path = "/v1/segments";
    assert_eq!(ask(&collector, path).0, 401);
    assert_eq!(ask_as(&collector, path, Some(WRITER)).0, 401);
    assert_eq!(ask_as(&collector, path, Some(READER)).0, 200);
    let mark = |token: Option<&str>| {
        let url = format!("http://{}/v1/alerts/silence", collector.addresses.listen);
        let header = token.map(|token| format!("Bearer {token}")).unwrap_or_default();
        send(&client(), &url, &[("Authorization", &header)], b"{}").status
    };
    assert_eq!([mark(None), mark(Some(WRITER)), mark(Some(READER))], [401, 401, 403]);
    let epochs = body(&Agent::at("up").seal(epoch_now() - 5, 2));
    let write = |token: &str| {
        let header = format!("Bearer {token}");
        send(&client(), &collector.url(), &[("Authorization", &header)], &epochs).status
    };
    assert_eq!((write(READER), write(WRITER)), (401, 200));
    let statuses: Vec<u16> = (0..8).map(|_| ask_as(&collector, path, Some(READER)).0).collect();
    assert!(statuses.contains(&429), "{statuses:?}");
    assert_eq!(ask(&collector, "/v1/openapi.json").0, 401, "a stranger is told nothing");
}

#[test]
fn who_follows_is_told_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let collector = patient(folder.path());
    let mut stream = TcpStream::connect(collector.addresses.listen).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all(b"GET /v1/live HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
    assert_eq!(lines.next().unwrap(), "HTTP/1.1 200 OK");
    assert!(
        lines
            .by_ref()
            .take_while(|line| !line.is_empty())
            .any(|line| { line.eq_ignore_ascii_case("content-type: text/event-stream") })
    );
    let first = epoch_now() - EPOCHS;
    for agent in [Agent::at("up"), Agent::at("down").after(DELAY_NS)] {
        collector.send(&body(&agent.seal(first, EPOCHS))).counts();
    }
    let line = lines.find(|line| line.starts_with("event: estimate")).unwrap();
    assert_eq!(line, "event: estimate");
    let told = lines.next().unwrap();
    let told: Value = serde_json::from_str(told.strip_prefix("data: ").unwrap()).unwrap();
    assert_eq!((&told["step"], &told["mean_ns"]), (&"epoch".into(), &DELAY_NS.into()));
    // A collector that stops does not wait for those who follow.
    let started = Instant::now();
    collector.stop();
    assert!(started.elapsed() < Duration::from_secs(8), "{:?}", started.elapsed());
}

#[test]
fn the_description_is_the_committed_one() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/openapi.json");
    let description = twixt_collector::api::openapi();
    if std::env::var_os("TWIXT_BLESS").is_some() {
        std::fs::write(path, &description).unwrap();
    }
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(committed, description, "renew it with TWIXT_BLESS=1, or twixt generate openapi");
}

#[test]
fn points_show_what_their_agents_said_of_themselves() {
    let folder = tempfile::tempdir().unwrap();
    let collector = patient(folder.path());
    let first = epoch_now() - 20;
    let said = [
        ("up", "twixt-agent/9.8.7", "epochs=12, bytes=3456, discarded=1"),
        ("down", "twixt-agent/<script>", "epochs=all"),
    ];
    for (point, product, spool) in said {
        let headers = [("user-agent", product), ("twixt-spool", spool)];
        let agent = Agent::at(point).after(if point == "up" { 0 } else { DELAY_NS });
        send(&client(), &collector.url(), &headers, &body(&agent.seal(first, 10))).counts();
    }
    ask_until(&collector, "/v1/estimates?step=epoch", |document| rows(document).len() >= 5);
    let document = ask_well(&collector, "/v1/points");
    let of = |name: &str| {
        let mut points = document["points"].as_array().unwrap().iter();
        points.find(|point| point["name"] == name).unwrap()
    };
    assert_eq!(of("up")["agent_version"], "9.8.7");
    assert_eq!((&of("up")["spool_epochs"], &of("up")["spool_bytes"]), (&12.into(), &3456.into()));
    assert_eq!(of("up")["spool_discarded"], 1);
    for key in ["agent_version", "spool_epochs", "spool_bytes", "spool_discarded"] {
        assert!(of("down")[key].is_null(), "what cannot be trusted is unknown: {}", of("down"));
    }
}

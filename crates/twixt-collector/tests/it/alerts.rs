//! Alerts of a running collector, and who hears of them.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use twixt_collector::CollectorConfig;
use twixt_collector::alerts::{AlertConfig, Measure, SegmentPattern, Thresholds};
use twixt_engine::EngineEvent;
use twixt_testing::{DEADLINE, wait_for};

use crate::api::{ask_until, ask_well};
use crate::epochs::{Agent, DELAY_NS, body, epoch_now};
use crate::running::{Answer, Running, client, config, send};

/// Answers the first request with the given status, if any, all others with 200, and hands over
/// those.
fn webhook(first: Option<&'static str>) -> (String, Receiver<Value>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let (sender, receiver) = channel();
    thread::spawn(move || {
        for (number, stream) in listener.incoming().flatten().enumerate() {
            let mut stream = stream;
            let (mut request, mut piece) = (Vec::new(), [0; 4_096]);
            let body = loop {
                let length = stream.read(&mut piece).unwrap();
                request.extend_from_slice(&piece[..length]);
                let text = String::from_utf8_lossy(&request).into_owned();
                let Some((_, body)) = text.split_once("\r\n\r\n") else { continue };
                if body.ends_with('}') {
                    break body.to_owned();
                }
            };
            let refused = first.filter(|_| number == 0);
            let status = refused.unwrap_or("200 OK");
            let answer =
                format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            // Before the answer: an answered message counts as delivered.
            if refused.is_none() && sender.send(serde_json::from_str(&body).unwrap()).is_err() {
                return;
            }
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    (url, receiver)
}

#[test]
fn a_webhook_is_told_once_and_told_again_if_it_was_unwell() {
    let folder = tempfile::tempdir().unwrap();
    let (url, heard) = webhook(Some("503 Service Unavailable"));
    let collector = raised(folder.path(), url);
    let told = heard.recv_timeout(DEADLINE).unwrap();
    assert_eq!(told["alert"], "slow");
    assert_eq!((&told["state"], &told["before"]), (&"raised".into(), &"unknown".into()));
    assert_eq!((&told["upstream"], &told["downstream"]), (&"up".into(), &"down".into()));
    assert_eq!((&told["measure"], &told["unit"]), (&"mean".into(), &"ns".into()));
    assert_eq!(told["value"], DELAY_NS as f64);
    assert_eq!((&told["reason"], &told["late"]), (&Value::Null, &false.into()));
    let shown = ask_well(&collector, "/v1/alerts");
    assert_eq!(shown["changes"], Value::from(vec![told]), "what webhooks hear is shown");
    assert_eq!(
        (&shown["rules"][0]["alert"], &shown["rules"][0]["unit"]),
        (&"slow".into(), &"ns".into())
    );
    assert_eq!(shown["standing"][0]["state"], "raised");
    let metrics = collector.metrics();
    for line in [
        "twixt_collector_alert_transitions_total{to=\"raised\"} 1\n",
        "twixt_collector_webhook_retries_total 1\n",
    ] {
        assert!(metrics.contains(line), "{line}{metrics}");
    }
}

/// A point was cut off while delays were long: that is reported when its epochs are there, and changes
/// nothing at present.
#[test]
fn an_alert_that_was_due_is_reported_late() {
    let folder = tempfile::tempdir().unwrap();
    let (url, heard) = webhook(None);
    let collector = Running::start(with_short_windows(folder.path(), url));
    let first = (epoch_now() / 2 - 30) * 2;
    let [up, down] = [Agent::at("up"), Agent::at("down").after(DELAY_NS)];
    collector.send(&body(&up.seal(first, 8))).counts();
    wait_for("gaps", || {
        let is_gap = |event: &EngineEvent| matches!(event, EngineEvent::Gap(_));
        let gaps = collector.events().iter().filter(|event| is_gap(event)).count();
        if gaps >= 8 { Ok(()) } else { Err(gaps) }
    });
    collector.send(&body(&down.seal(first, 4))).counts();
    collector.estimated(4);
    // Something happens, as always in a network.
    collector.send(&body(&up.seal(epoch_now(), 1))).counts();
    let told = heard.recv_timeout(DEADLINE).unwrap();
    assert_eq!((&told["state"], &told["before"]), (&"raised".into(), &"unknown".into()));
    assert_eq!((&told["late"], &told["value"]), (&true.into(), &(DELAY_NS as f64).into()));
    assert_eq!((&told["epochs"], &told["gaps"]), (&2.into(), &0.into()));
    let metrics = collector.metrics();
    for line in [
        "twixt_collector_alerts{state=\"raised\"} 0\n",
        "twixt_collector_alert_transitions_total{to=\"raised\"} 0\n",
    ] {
        assert!(metrics.contains(line), "{line}{metrics}");
    }
}

/// What an operator asks for.
fn mark(collector: &Running, what: &str, document: &Value) -> Answer {
    let url = format!("http://{}/v1/alerts/{what}", collector.addresses.listen);
    let json = [("Content-Type", "application/json")];
    send(&client(), &url, &json, document.to_string().as_bytes())
}

fn is_in_state(state: &'static str) -> impl Fn(&Value) -> bool {
    move |document| document["standing"][0]["state"] == state
}

#[test]
fn a_silenced_alert_is_shown_and_sends_no_message() {
    let folder = tempfile::tempdir().unwrap();
    let (url, heard) = webhook(None);
    let collector = Running::start(with_short_windows(folder.path(), url));
    let first = (epoch_now() / 2 - 30) * 2;
    let feed = |first: i64, delay_ns: i64| {
        for agent in [Agent::at("up"), Agent::at("down").after(delay_ns)] {
            collector.send(&body(&agent.seal(first, 10))).counts();
        }
    };
    feed(first, DELAY_NS);
    assert_eq!(heard.recv_timeout(DEADLINE).unwrap()["state"], "raised");
    let shown = ask_well(&collector, "/v1/alerts");
    assert_eq!(shown["may_silence"], true, "anybody on this machine");
    let stands = &shown["standing"][0];
    let names = ["alert", "domain", "upstream", "downstream", "class", "algorithm"];
    let target: serde_json::Map<String, Value> =
        names.iter().map(|&name| (name.to_owned(), stands[name].clone())).collect();

    let acknowledge = json!({"target": target, "acknowledged": true});
    let answer = mark(&collector, "acknowledge", &acknowledge);
    assert_eq!((answer.status, &answer.json()["acknowledged"]["by"]), (200, &"anybody".into()));
    let hour = json!({"target": target, "seconds": 3_600});
    assert_eq!(mark(&collector, "silence", &hour).status, 200);
    feed(first + 10, 0);
    let shown = ask_until(&collector, "/v1/alerts", is_in_state("clear"));
    let stands = &shown["standing"][0];
    assert_eq!(stands["acknowledged"], Value::Null, "nothing is left to attend to");
    assert_eq!(stands["silenced"]["by"], "anybody");

    let ended = json!({"target": target, "seconds": 0});
    assert_eq!(mark(&collector, "silence", &ended).json()["silenced"], Value::Null);
    feed(first + 20, DELAY_NS);
    let told = heard.recv_timeout(DEADLINE).unwrap();
    assert_eq!((&told["state"], &told["before"]), (&"raised".into(), &"clear".into()));
}

#[test]
fn what_cannot_be_marked_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (url, _heard) = webhook(None);
    let collector = raised(folder.path(), url);
    let target = json!({"alert": "slow", "domain": "x", "upstream": "up", "downstream": "down",
        "class": "", "algorithm": "lda"});
    for (what, document, reason) in [
        ("silence", json!({"target": target, "seconds": 60}), "no alert of this name"),
        ("silence", json!({"target": target, "seconds": 2_592_001}), "at most 30 days"),
        ("silence", json!({"target": target}), "missing field"),
        ("acknowledge", json!({"target": {}, "acknowledged": true}), "missing field"),
        (
            "acknowledge",
            json!({"target": target, "acknowledged": true, "x": "y".repeat(20_000)}),
            "unreadable body",
        ),
    ] {
        let answer = mark(&collector, what, &document);
        let problem = answer.json()["error"].to_string();
        assert_eq!(answer.status, 400, "{what}: {problem}");
        assert!(problem.contains(reason), "{what}: {problem}");
    }
    // What a page of somebody else may send without being asked.
    let url = format!("http://{}/v1/alerts/silence", collector.addresses.listen);
    let form = send(&client(), &url, &[("Content-Type", "text/plain")], b"{}");
    assert_eq!(form.status, 400);
    assert!(form.json()["error"].to_string().contains("application/json"));
}

/// An alert of two epochs on long delays.
fn with_short_windows(folder: &std::path::Path, url: String) -> CollectorConfig {
    let mut config = config(folder);
    let (window, segment) = (Duration::from_millis(200), "u*:down".parse().unwrap());
    config.alerts = vec![AlertConfig { segment, window, minimum_packets: 50, ..slow(url) }];
    config
}

/// A collector with an alert that is raised by now.
fn raised(folder: &std::path::Path, url: String) -> Running {
    let collector = Running::start(with_short_windows(folder, url));
    let first = epoch_now() - 12;
    for agent in [Agent::at("up"), Agent::at("down").after(DELAY_NS)] {
        collector.send(&body(&agent.seal(first, 12))).counts();
    }
    collector.estimated(10);
    collector
}

#[test]
fn a_webhook_that_says_nothing_holds_up_nobody() {
    let folder = tempfile::tempdir().unwrap();
    // It takes connections, and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let collector = raised(folder.path(), format!("http://{}/", silent.local_addr().unwrap()));
    assert!(collector.metrics().contains("alert_transitions_total{to=\"raised\"} 1\n"));
    let answer = collector.send(&body(&Agent::at("up").seal(epoch_now() + 1, 1)));
    assert_eq!(answer.counts(), (1, 0));
    let started = Instant::now();
    collector.stop();
    assert!(started.elapsed() < Duration::from_secs(15), "what waits is tried once more");
}

#[test]
fn a_webhook_is_not_followed_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let (elsewhere, told) = webhook(None);
    let redirection = format!("307 Temporary Redirect\r\nlocation: {elsewhere}");
    let (url, heard) = webhook(Some(redirection.leak()));
    let collector = raised(folder.path(), url);
    wait_for("the metric", || {
        let metrics = collector.metrics();
        if metrics.contains("webhook_messages_total{outcome=\"dropped\"} 1\n") {
            Ok(())
        } else {
            Err(metrics)
        }
    });
    assert!(heard.try_recv().is_err() && told.try_recv().is_err());
}

/// An alert that is raised, and cleared by half of what raises it.
fn slow(url: String) -> AlertConfig {
    AlertConfig {
        name: "slow".to_owned(),
        segment: SegmentPattern::all(),
        round_trips: None,
        class: None,
        algorithm: None,
        measure: Measure::Mean,
        thresholds: Thresholds { above: DELAY_NS as f64 / 2.0, clear_below: None },
        // As long as all epochs of a run: one that is cut in two by a restart must be whole.
        window: Duration::from_secs(2),
        minimum_packets: 20 * 50 - 100,
        webhook: Some(url),
    }
}

/// A collector that gets epochs from both points, with this delay, until it has paired all but
/// the last.
fn fed(
    alert: &AlertConfig,
    folder: &std::path::Path,
    delay_ns: i64,
    first: i64,
    count: i64,
) -> Running {
    let mut config = config(folder);
    config.alerts = vec![alert.clone()];
    config.engine.patience = twixt_model::Delay::from_nanos(6_000_000_000);
    let collector = Running::start(config);
    for agent in [Agent::at("up"), Agent::at("down").after(delay_ns)] {
        collector.send(&body(&agent.seal(first, count))).counts();
    }
    collector.estimated(count as usize - 2);
    collector
}

#[test]
fn a_restart_changes_nothing_about_alerts() {
    let folder = tempfile::tempdir().unwrap();
    let (url, heard) = webhook(None);
    let alert = slow(url);
    // A window has 20 epochs. They are sent in parts, and between parts the collector restarts.
    let first = (epoch_now() / 20 - 6) * 20;
    let run = |delay_ns: i64, from: i64, count: i64, expected: Option<&str>| {
        let collector = fed(&alert, folder.path(), delay_ns, first + from, count);
        if let Some(expected) = expected {
            let told = heard.recv_timeout(DEADLINE).unwrap();
            assert_eq!(told["state"], expected, "epochs from {from} on");
        }
        // It ends when everything was delivered.
        collector.stop();
        assert_eq!(heard.try_recv().ok(), None, "epochs from {from} on");
    };
    run(DELAY_NS, 0, 30, Some("raised"));
    // The second window was cut in two by the restart; it is as slow as the first.
    run(DELAY_NS, 30, 20, None);
    // Half of the third was slow, and half fast: a mean of 5/8 does not clear it.
    run(DELAY_NS / 4, 50, 30, None);
    run(DELAY_NS / 4, 80, 30, Some("clear"));
    assert!(folder.path().join("alerts.json").is_file());
}

#[test]
fn what_makes_no_sense_is_refused() {
    let alert = AlertConfig {
        name: "slow".to_owned(),
        segment: SegmentPattern::all(),
        round_trips: None,
        class: None,
        algorithm: None,
        measure: Measure::Loss,
        thresholds: Thresholds { above: 0.01, clear_below: None },
        window: Duration::from_secs(60),
        minimum_packets: 1,
        webhook: None,
    };
    #[track_caller]
    fn check(alerts: Vec<AlertConfig>, problem: Option<&str>) {
        let mut config = config(std::path::Path::new("nowhere"));
        config.alerts = alerts;
        let found = config.check().err().map(|error| error.to_string());
        assert_eq!(found.is_some(), problem.is_some(), "{found:?}");
        assert!(found.unwrap_or_default().contains(problem.unwrap_or_default()));
    }
    check(vec![alert.clone()], None);
    check(vec![alert.clone(), alert.clone()], Some("duplicate name"));
    let hysteresis = Thresholds { above: 0.01, clear_below: Some(0.02) };
    check(vec![AlertConfig { thresholds: hysteresis, ..alert.clone() }], Some("clear_below"));
    check(vec![AlertConfig { window: Duration::ZERO, ..alert.clone() }], Some("window"));
    let ftp = Some("ftp://x".to_owned());
    check(vec![AlertConfig { webhook: ftp, ..alert }], Some("http"));
    assert!("r-in".parse::<SegmentPattern>().is_err());
    assert!("r-*:x*y".parse::<SegmentPattern>().is_err());
}

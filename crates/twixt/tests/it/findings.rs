//! What captures are like, in one line each, with what to do about it.

use serde_json::Value;
use twixt_testing::require;

use crate::support::{Capture, Crossing, MILLISECOND, Packet, SECOND, Scene, number, twixt};

const UP: &str = "10.0.0.1:40000";
const DOWN: &str = "10.0.1.9:443";

/// A second of segments, a millisecond apart.
fn capture(mut each: impl FnMut(u16, i64, Packet, &mut Capture)) -> Capture {
    let mut capture = Capture::default();
    for index in 0..1000_u16 {
        let packet = Packet::tcp(UP, DOWN, index);
        each(index, i64::from(index) * MILLISECOND, packet, &mut capture);
    }
    capture
}

/// The kinds of what `info` finds in a capture; each has its line, with the words that are asked for.
#[track_caller]
fn check(capture: &Capture, expected: &[(&str, i64, &str)]) {
    let scene = Scene::new(capture, capture);
    let document = scene.run("info up.pcap -F json").expect(0).json();
    let findings = document["findings"].as_array().expect("there is a list");
    let found: Vec<(&str, i64)> = findings
        .iter()
        .map(|finding| (finding["kind"].as_str().unwrap(), number(finding, "/count")))
        .collect();
    let kinds: Vec<(&str, i64)> = expected.iter().map(|&(kind, count, _)| (kind, count)).collect();
    assert_eq!(found, kinds);
    let human = scene.run("info up.pcap").expect(0).stdout;
    for (_, _, words) in expected {
        let is_said = |line: &str| line.starts_with("finding") && line.contains(words);
        assert!(human.lines().any(is_said), "{words} is not in: {human}");
    }
}

#[test]
fn an_ordinary_capture_is_nothing_to_speak_of() {
    check(&capture(|_, time_ns, packet, capture| capture.add(time_ns, packet.frame())), &[]);
}

#[test]
fn merged_segments_are_reported() {
    let merged = |bytes: usize| {
        capture(move |index, time_ns, packet, capture| {
            let payload = vec![index as u8; if index % 10 == 0 { bytes } else { 64 }];
            capture.add(time_ns, packet.payload(&payload).frame());
        })
    };
    check(&merged(2_900), &[("offload", 100, "gro off gso off tso off lro off")]);
    check(&merged(2_900), &[("offload", 100, "unless the MTU is larger")]);
    check(&merged(40_000), &[("offload", 100, "up to 40 040: segments merged by an offload;")]);
}

/// Speed tests on real servers, captured with offloads on.
#[test]
fn merged_segments_of_real_captures_are_reported() {
    let traces = require!(shared "traces");
    let captures = std::fs::read_dir(traces.join("mlab-ndt")).expect("the folder can be read");
    let mut found = 0;
    for capture in captures {
        let path = capture.expect("the folder can be read").path();
        let document = twixt(["info", &path.display().to_string(), "-F", "json"]).json();
        let findings = document["findings"].as_array().expect("there is a list");
        found += usize::from(findings.iter().any(|finding| finding["kind"] == "offload"));
    }
    assert!(found >= 4, "in {found} captures");
}

#[test]
fn frames_of_a_mirror_are_reported() {
    let mirrored = capture(|_, time_ns, packet, capture| {
        capture.add(time_ns, packet.frame());
        capture.add(time_ns + 2_000, packet.ttl(63).frame());
    });
    check(&mirrored, &[("copies", 1000, "mirror one port or one direction only")]);
}

#[test]
fn drops_and_steps_of_a_clock_are_reported() {
    let whole = || capture(|_, time_ns, packet, capture| capture.add(time_ns, packet.frame()));
    let dropped = whole().dropping(100 * MILLISECOND, 200 * MILLISECOND);
    check(&dropped, &[("dropped", 100, "tcpdump -B")]);
    let stepped = capture(|index, time_ns, packet, capture| {
        let back_ns = if index < 990 { 0 } else { 3 * SECOND };
        capture.add(time_ns - back_ns, packet.frame());
    });
    check(&stepped.in_order_added(), &[("clock-step", 10, "the clock was stepped back")]);
}

#[test]
fn one_capture_is_not_taken_for_two() {
    let crossing = Crossing::varied();
    let run = crossing.scene().run("delay up.pcap up.pcap");
    assert!(run.stderr.contains("the same packets at the same times"), "{run:?}");
    crossing.scene().delay("").expect(0).silent();
}

/// A flow of a hundred packets takes another path.
#[test]
fn flows_that_never_arrive_are_reported_beside_their_loss() {
    let mut crossing = Crossing::varied();
    for index in 0..100 {
        let packet = Packet::tcp(UP, DOWN, index);
        let time_ns = 300 * MILLISECOND + i64::from(index) * MILLISECOND;
        crossing.send(time_ns, &packet, None);
    }
    let run = crossing.scene().delay("-F json").expect(0);
    assert!(run.stderr.contains("1 of 2 flows that go downstream were not seen"), "{}", run.stderr);
    let document: Value = run.json();
    assert_eq!(number(&document, "/estimates/0/lost"), 120);
}

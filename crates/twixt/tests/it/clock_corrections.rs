//! `twixt delay --clock report` and `correct` on captures whose clocks were set, drift or agree, and
//! whose paths change: every delay, every loss and both clocks are known.

use serde_json::Value;

use twixt_testing::require;

use crate::support::dice::Dice;
use crate::support::{Capture, MILLISECOND, Packet, Scene, number, twixt_in};

const PACKETS: i64 = 1500;
const EVERY: i64 = 5 * MILLISECOND;

/// A conversation through a router, as two points see it.
struct Story {
    scene: Scene,
    /// True means of both directions, and true losses of the first.
    means_ns: [f64; 2],
    lost: i64,
}

/// What a clock shows beyond the truth, by true time after the start.
type Clock = Box<dyn Fn(i64) -> i64>;

fn right() -> Clock {
    Box::new(|_| 0)
}

/// Stepped after half of the time.
fn stepped(step_ns: i64) -> Clock {
    Box::new(move |time_ns| if time_ns >= PACKETS * EVERY / 2 { step_ns } else { 0 })
}

/// Packets there take 5 ms or more, and longer since half of the time; packets back 4 ms or more.
fn story(clocks: &[Clock; 2], longer_ns: i64, lost_in: u64, both: bool) -> Story {
    let mut dice = Dice::new(77);
    let mut events: Vec<(i64, usize, Vec<u8>)> = Vec::new();
    let (mut sums, mut counts, mut lost) = ([0.0; 2], [0.0; 2], 0);
    for number in 0..PACKETS {
        let sent = number * EVERY + dice.roll(100_000) as i64;
        let late = if number >= PACKETS / 2 { longer_ns } else { 0 };
        let took = 5 * MILLISECOND + late + (dice.roll(1000) * dice.roll(1000)) as i64;
        let packet = Packet::udp("10.0.0.1:4000", "10.0.1.9:5000", number as u16);
        events.push((sent, 0, packet.frame()));
        if lost_in > 0 && dice.roll(lost_in) == 0 {
            lost += 1;
        } else {
            events.push((sent + took, 1, packet.ttl(63).frame()));
            sums[0] += took as f64;
            counts[0] += 1.0;
        }
        if both {
            let sent = sent + 2 * MILLISECOND;
            let took = 4 * MILLISECOND + (dice.roll(1000) * dice.roll(600)) as i64;
            let packet = Packet::udp("10.0.1.9:5000", "10.0.0.1:4000", number as u16);
            events.push((sent, 1, packet.frame()));
            events.push((sent + took, 0, packet.ttl(63).frame()));
            sums[1] += took as f64;
            counts[1] += 1.0;
        }
    }
    events.sort_by_key(|(time_ns, ..)| *time_ns);
    let mut captures = [Capture::default(), Capture::default()];
    for (time_ns, point, frame) in events {
        captures[point].add(time_ns + clocks[point](time_ns), frame);
    }
    let [up, down] = captures.map(Capture::in_order_added);
    let means_ns = [sums[0] / counts[0], sums[1] / counts[1]];
    Story { scene: Scene::new(&up, &down), means_ns, lost }
}

/// Both directions, as reported and as corrected.
fn measured(story: &Story, options: &str) -> [Value; 2] {
    ["report", "correct"].map(|clock| {
        let run = story.scene.delay(&format!("-F json --both --clock {clock} {options}"));
        run.expect(0).json()["segments"].clone()
    })
}

fn ns(segment: &Value, key: &str) -> f64 {
    number(segment, &format!("/estimates/0/{key}")) as f64
}

/// Counts and losses are right, if not all packets could be measured; the rest was skipped.
#[track_caller]
fn check_counts(segment: &Value, lost: i64) {
    let packets = number(segment, "/estimates/0/packets");
    let found = number(segment, "/estimates/0/lost");
    let skipped = segment["upstream"]["skipped"]["outside-stretch"].as_i64().unwrap_or(0);
    assert_eq!(packets + skipped, PACKETS, "{segment}");
    // Of those that were not measured, some were lost.
    assert!(found <= lost && lost - found <= skipped, "{found} lost, in truth {lost}: {segment}");
    assert_eq!(number(segment, "/upstream/packets"), packets, "{segment}");
    assert_eq!(number(segment, "/downstream/packets"), packets - found, "{segment}");
}

/// Corrected delays of both directions are the true ones, give or take what is said of the offset, and
/// none is negative beyond that.
#[track_caller]
fn check_corrected(story: &Story, corrected: &Value) {
    let bound = number(&corrected[0], "/clock/error_bound_ns") as f64;
    for (segment, truth) in corrected.as_array().unwrap().iter().zip(story.means_ns) {
        assert_eq!(segment["clock"]["corrected"], true, "{segment}");
        assert!((ns(segment, "mean_ns") - truth).abs() <= bound, "{truth}, {segment}");
        assert!(ns(segment, "min_ns") >= -bound, "{segment}");
    }
    // What is taken from one direction is added to the other. Packets that were skipped have other
    // delays than the mean, by much less than 50 µs on average.
    let sum = ns(&corrected[0], "mean_ns") + ns(&corrected[1], "mean_ns");
    let truth = story.means_ns[0] + story.means_ns[1];
    assert!((sum - truth).abs() < 50_000.0, "{sum}, in truth {truth}");
}

#[track_caller]
fn check_step(clocks: &[Clock; 2], step_ns: i64, lost_in: u64) {
    let story = story(clocks, 0, lost_in, true);
    let [report, correct] = measured(&story, "");
    for document in [&report, &correct] {
        check_counts(&document[0], story.lost);
        check_counts(&document[1], 0);
        for (segment, sign) in document.as_array().unwrap().iter().zip([1, -1]) {
            let steps = segment["clock"]["steps"].as_array().unwrap();
            assert_eq!(steps.len(), 1, "{segment}");
            let found = steps[0]["step_ns"].as_i64().unwrap();
            assert!((found - sign * step_ns).abs() < MILLISECOND / 2, "{found} {step_ns}");
        }
    }
    check_corrected(&story, &correct);
    // As the clocks were: without the step before it, with it after it.
    let mean = ns(&report[0], "mean_ns");
    let share = (mean - story.means_ns[0]) / step_ns as f64;
    assert!((0.35..0.65).contains(&share), "{mean} {share}");
}

#[test]
fn a_step_of_the_downstream_clock_is_no_loss_and_is_corrected_on_both_sides() {
    for ms in [7, -7, -2000, 120_000, -120_000] {
        check_step(&[right(), stepped(ms * MILLISECOND)], ms * MILLISECOND, 0);
    }
    check_step(&[right(), stepped(120_000 * MILLISECOND)], 120_000 * MILLISECOND, 30);
}

#[test]
fn a_step_of_the_upstream_clock_is_no_loss_and_is_corrected_on_both_sides() {
    for ms in [7, -7, -2000, 120_000] {
        check_step(&[stepped(ms * MILLISECOND), right()], -ms * MILLISECOND, 30);
    }
}

#[test]
fn epochs_on_both_sides_of_a_step_lose_nothing() {
    for ms in [-2000, 120_000] {
        let story = story(&[right(), stepped(ms * MILLISECOND)], 0, 0, true);
        for document in measured(&story, "--epoch 500ms") {
            for segment in document.as_array().unwrap() {
                let rows = segment["estimates"].as_array().unwrap();
                let sum = |key: &str| -> i64 {
                    rows.iter().map(|row| row[key].as_i64().unwrap_or(0)).sum()
                };
                assert_eq!(sum("lost"), 0, "{ms}: {segment}");
                let skipped =
                    segment["upstream"]["skipped"]["outside-stretch"].as_i64().unwrap_or(0);
                assert_eq!(sum("packets") + skipped, PACKETS, "{ms}: {segment}");
                // Two seconds on either side show times twice.
                assert!(sum("packets") > PACKETS / 3, "{ms}: {segment}");
            }
        }
    }
}

#[test]
fn one_direction_alone_shows_no_loss_at_a_step_either() {
    for ms in [7, -7, -2000, 120_000] {
        let story = story(&[right(), stepped(ms * MILLISECOND)], 0, 0, false);
        for clock in ["report", "correct"] {
            let document = story.scene.delay(&format!("-F json --clock {clock}")).expect(0).json();
            check_counts(&document, 0);
            let steps = document["clock"]["steps"].as_array().unwrap().len();
            let shifts = document["clock"]["shifts"].as_array().unwrap().len();
            // No path is longer than another by two seconds; by 7 ms it may be.
            let expected = if ms.abs() > 1000 { (1, 0) } else { (0, 1) };
            assert_eq!((steps, shifts), expected, "{ms}: {document}");
            if clock == "correct" && ms.abs() > 1000 {
                let off = (ns(&document, "mean_ns") - story.means_ns[0]).abs();
                assert!(off < 50_000.0, "{ms}: {document}");
            }
        }
    }
}

#[test]
fn a_longer_route_is_neither_skew_nor_step_and_the_sum_of_both_means_stays() {
    let story = story(&[right(), right()], 3 * MILLISECOND, 0, true);
    let [report, correct] = measured(&story, "");
    for document in [&report, &correct] {
        for segment in document.as_array().unwrap() {
            let clock = &segment["clock"];
            let [ppm, error] = ["skew_ppm", "skew_error_ppm"].map(|key| clock[key].as_f64());
            assert!(ppm.is_none_or(|ppm| ppm.abs() <= error.unwrap()), "{clock}");
            assert_eq!(clock["steps"].as_array().unwrap().len(), 0);
            assert_eq!(clock["shifts"][0]["cause"], "path", "{clock}");
        }
    }
    check_corrected(&story, &correct);
    check_same_sum(&report, &correct);
}

/// The sum of both means is what it was, to the nanosecond that each is rounded to.
#[track_caller]
fn check_same_sum(report: &Value, correct: &Value) {
    let sum = |document: &Value| -> i64 {
        (0..2).map(|side| number(&document[side], "/estimates/0/mean_ns")).sum()
    };
    assert!((sum(report) - sum(correct)).abs() <= 2, "{report}\n{correct}");
    let offsets = [0, 1].map(|side| number(&report[side], "/clock/offset_ns"));
    assert!((offsets[0] + offsets[1]).abs() <= 1, "{offsets:?}");
    for segment in correct.as_array().unwrap() {
        let bound = number(segment, "/clock/error_bound_ns");
        assert!(number(segment, "/estimates/0/min_ns") >= -bound, "{segment}");
    }
}

#[test]
fn a_drifting_clock_is_corrected_in_both_directions() {
    let drifts: Clock = Box::new(|time_ns| 5 * MILLISECOND + time_ns / 20_000);
    let story = story(&[right(), drifts], 0, 0, true);
    let [_, correct] = measured(&story, "");
    check_corrected(&story, &correct);
    for (segment, sign) in correct.as_array().unwrap().iter().zip([1.0, -1.0]) {
        let ppm = segment["clock"]["skew_ppm"].as_f64().unwrap();
        let error = segment["clock"]["skew_error_ppm"].as_f64().unwrap();
        assert!((ppm - sign * 50.0).abs() <= error && error < 10.0, "{ppm} {error}");
    }
}

/// Both ends of each of these pairs had one clock: no skew, no step, the smallest delays of both
/// directions decide what the offset may be, and a correction changes no sum.
#[test]
fn real_pairs_of_one_clock_are_told_to_agree() {
    let traces = require!(shared "traces");
    let pairs = [
        ["tbf-queue/upstream.pcap", "tbf-queue/downstream.pcap"],
        ["mptcp-twoside/client_1_tcp_only.pcapng", "mptcp-twoside/server_1_tcp_only.pcapng"],
        ["mptcp-twoside/client_2_20180613.pcapng", "mptcp-twoside/server_2_20180613.pcapng"],
        ["qns-twoside/tcp-13ms-left.pcap", "qns-twoside/tcp-13ms-right.pcap"],
        ["qns-twoside/quic-15ms-left.pcap", "qns-twoside/quic-15ms-right.pcap"],
        ["qns-twoside/quic-fast-left.pcap", "qns-twoside/quic-fast-right.pcap"],
    ];
    for [up, down] in pairs {
        let [report, correct] = ["report", "correct"].map(|clock| {
            let arguments = format!("delay {up} {down} --both -F json --clock {clock}");
            twixt_in(&traces, &arguments).expect(0).json()["segments"].clone()
        });
        check_same_sum(&report, &correct);
        for segment in report.as_array().unwrap() {
            let clock = &segment["clock"];
            let bound = number(segment, "/clock/error_bound_ns");
            assert!(number(segment, "/clock/offset_ns").abs() <= bound, "{up}: {clock}");
            let [ppm, error] = ["skew_ppm", "skew_error_ppm"].map(|key| clock[key].as_f64());
            assert!(ppm.is_none_or(|ppm| ppm.abs() <= error.unwrap()), "{up}: {clock}");
            assert_eq!(clock["steps"].as_array().unwrap().len(), 0, "{up}: {clock}");
        }
    }
}

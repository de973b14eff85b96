//! TCP segments that offloads merged: captures that hold the same bytes in other segments.
//!
//! Captures and truth are made here, byte by byte. The wire carries equal segments; each point merges
//! those that follow each other, as offloads do: sent ones have the time of the first, received ones
//! that of the last.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::support::dice::Dice;
use crate::support::{Capture, MILLISECOND, Packet, Scene, number};

const FROM: &str = "10.0.0.1:40000";
const TO: &str = "10.0.1.9:443";
const SEGMENTS: u32 = 4_000;
const SEGMENT_BYTES: u32 = 1_448;
/// Sequence numbers begin again within the first segments.
const FIRST: u32 = u32::MAX - 100_000;
const BURST: u32 = 10;

/// What the wire carried, in the order in which it was sent.
struct Wire {
    /// Which segment, when it left, and when it came.
    sent: Vec<(u32, i64, Option<i64>)>,
}

/// How many segments are merged at most, at both points.
#[derive(Clone, Copy)]
struct Merging {
    upstream: u32,
    downstream: u32,
}

impl Wire {
    /// Bursts through a queue that fills and empties. One in a hundred is lost, and sent again.
    fn new(dice: &mut Dice) -> Self {
        let (mut sent, mut again, mut latest) = (Vec::new(), Vec::new(), 0);
        for segment in 0..SEGMENTS {
            let left =
                i64::from(segment / BURST) * MILLISECOND + i64::from(segment % BURST) * 1_200;
            let waits = i64::from((segment / 200) % 8) * 300_000;
            if dice.roll(100) == 0 {
                let later = left + 40 * MILLISECOND;
                sent.push((segment, left, None));
                again.push((segment, later, Some(later + 3 * MILLISECOND)));
                continue;
            }
            latest = (left + 2 * MILLISECOND + waits).max(latest + 1_000);
            sent.push((segment, left, Some(latest)));
        }
        sent.extend(again);
        Self { sent }
    }
}

/// Adds segments that follow each other to a capture, merged, with this time.
fn merge(capture: &mut Capture, segments: std::ops::Range<u32>, time_ns: i64, ttl: u8) {
    let sequence = FIRST.wrapping_add(segments.start * SEGMENT_BYTES);
    let payload: Vec<u8> = segments
        .clone()
        .flat_map(|segment| (0..SEGMENT_BYTES).map(move |byte| (segment * 7 + byte / 64) as u8))
        .collect();
    let packet = Packet::tcp(FROM, TO, segments.start as u16).sequence(sequence);
    capture.add(time_ns, packet.payload(&payload).ttl(ttl).frame());
}

/// Runs of segments that follow each other, of random length. `breaks` says where none goes on.
fn runs(
    count: usize,
    most: u32,
    dice: &mut Dice,
    breaks: impl Fn(usize) -> bool,
) -> Vec<std::ops::Range<usize>> {
    let (mut runs, mut start) = (Vec::new(), 0);
    while start < count {
        let wanted = start + 1 + dice.roll(u64::from(most)) as usize;
        let end =
            (start + 1..wanted.min(count)).find(|&at| breaks(at)).unwrap_or(wanted.min(count));
        runs.push(start..end);
        start = end;
    }
    runs
}

/// What both points saw, and the delays of all segments that arrived, by their timestamps.
fn scene(wire: &Wire, merging: Merging, dice: &mut Dice) -> (Scene, Vec<i64>) {
    let (mut upstream, mut downstream) = (Capture::default(), Capture::default());
    let (mut left, mut delays) = (BTreeMap::new(), Vec::new());
    let sent = &wire.sent;
    let ends = |at: usize| sent[at].0 != sent[at - 1].0 + 1 || sent[at].0.is_multiple_of(BURST);
    for run in runs(sent.len(), merging.upstream, dice, ends) {
        let time_ns = sent[run.start].1;
        merge(&mut upstream, sent[run.start].0..sent[run.end - 1].0 + 1, time_ns, 64);
        run.for_each(|index| _ = left.insert(index, time_ns));
    }
    let arrived: Vec<usize> = (0..sent.len()).filter(|&at| sent[at].2.is_some()).collect();
    let ends = |at: usize| sent[arrived[at]].0 != sent[arrived[at - 1]].0 + 1;
    for run in runs(arrived.len(), merging.downstream, dice, ends) {
        let (first, last) = (sent[arrived[run.start]], sent[arrived[run.end - 1]]);
        let time_ns = last.2.expect("it arrived");
        merge(&mut downstream, first.0..last.0 + 1, time_ns, 63);
        delays.extend(run.map(|at| time_ns - left[&arrived[at]]));
    }
    (Scene::new(&upstream, &downstream), delays)
}

#[track_caller]
fn check(merging: Merging, options: &str) {
    const SEED: u64 = 5;
    println!("seed {SEED}");
    let mut dice = Dice::new(SEED);
    let wire = Wire::new(&mut dice);
    let (scene, delays) = scene(&wire, merging, &mut dice);
    let run = scene.delay(&format!("-F json {options}")).expect(0);
    let run = run.says(&["those of 1 flow are matched by byte range"]);
    let document: Value = run.json();
    let estimate = |key: &str| number(&document, &format!("/estimates/0/{key}"));
    let lost = wire.sent.len() - delays.len();
    assert!(lost > 20, "{lost} lost");
    let counts = ["packets", "used", "lost", "strays"].map(estimate);
    assert_eq!(counts, [wire.sent.len() as i64, delays.len() as i64, lost as i64, 0]);
    // Rounded to nanoseconds.
    let mean_ns = delays.iter().sum::<i64>() as f64 / delays.len() as f64;
    assert!((estimate("mean_ns") as f64 - mean_ns).abs() <= 1.0, "{mean_ns}");
    let bounds = ["ci95_low_ns", "ci95_high_ns"].map(|key| estimate(key) as f64);
    assert!(bounds[0] <= mean_ns + 1.0 && mean_ns - 1.0 <= bounds[1], "{mean_ns} in {bounds:?}");
    let (least, most) = (delays.iter().min(), delays.iter().max());
    assert_eq!([estimate("min_ns"), estimate("max_ns")], [*least.unwrap(), *most.unwrap()]);
}

#[test]
fn segments_merged_downstream_are_those_of_the_wire() {
    check(Merging { upstream: 1, downstream: 17 }, "");
}

#[test]
fn segments_that_the_adapter_cuts_are_those_of_the_wire() {
    check(Merging { upstream: 10, downstream: 1 }, "");
}

#[test]
fn segments_merged_differently_at_both_points_are_those_of_the_wire() {
    check(Merging { upstream: 10, downstream: 17 }, "");
    check(Merging { upstream: 10, downstream: 17 }, "--toward 10.0.1.0/24");
    check(Merging { upstream: 10, downstream: 17 }, "--by flow");
}

/// Sums of sketches are made of the same pieces.
#[test]
fn sketches_count_the_segments_of_the_wire() {
    let mut dice = Dice::new(9);
    println!("seed 9");
    let wire = Wire::new(&mut dice);
    let (scene, delays) = scene(&wire, Merging { upstream: 10, downstream: 17 }, &mut dice);
    let document = scene.delay("-F json -a lda").expect(0).json();
    let counts = ["packets", "lost"].map(|key| number(&document, &format!("/estimates/0/{key}")));
    assert_eq!(counts, [wire.sent.len(), wire.sent.len() - delays.len()].map(|count| count as i64));
}

/// Both points saw the same merged segments: packets are identified as always.
#[test]
fn segments_that_are_merged_alike_are_packets() {
    let (mut upstream, mut downstream) = (Capture::default(), Capture::default());
    for number in 0..400 {
        let (segments, time_ns) = (number * 4..number * 4 + 4, i64::from(number) * MILLISECOND);
        merge(&mut upstream, segments.clone(), time_ns, 64);
        merge(&mut downstream, segments, time_ns + 2 * MILLISECOND, 63);
    }
    let run = Scene::new(&upstream, &downstream).delay("-F json").expect(0).silent();
    assert_eq!(crate::support::evidence(&run.json()), [400, 400, 0]);
}

/// Nobody saw how many packets the segments were: they are compared, and counted as what they are.
#[test]
fn pieces_of_unknown_packets_are_reported_as_such() {
    let (mut upstream, mut downstream) = (Capture::default(), Capture::default());
    for number in 0..400 {
        let (start, time_ns) = (number * 8, i64::from(number) * MILLISECOND);
        merge(&mut upstream, start..start + 8, time_ns, 64);
        merge(&mut downstream, start..start + 3, time_ns + 2 * MILLISECOND, 63);
        merge(&mut downstream, start + 3..start + 8, time_ns + 3 * MILLISECOND, 63);
    }
    let run = Scene::new(&upstream, &downstream).delay("-F json").expect(0);
    let run = run.says(&["in 1 flow, both captures hold merged segments of unknown packets"]);
    assert_eq!(crate::support::evidence(&run.json()), [800, 800, 0]);
}

/// Real captures of long segments that both points saw alike, some lost and sent again in other segments.
#[test]
fn long_segments_of_real_captures_stay_packets() {
    let traces = twixt_testing::require!(shared "traces");
    let path = |name: &str| traces.join("mptcp-twoside").join(name).display().to_string();
    let [client, server] = ["client_1_tcp_only.pcapng", "server_1_tcp_only.pcapng"].map(path);
    let run = crate::support::twixt(["delay", &client, &server, "-F", "json"]).expect(0).silent();
    assert_eq!(crate::support::evidence(&run.json()), [1_422, 1_405, 17]);
}

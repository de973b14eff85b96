//! Packets that only downstream saw: counted, told apart from loss, and named by what made them.

use serde_json::Value;

use crate::support::{Crossing, MILLISECOND, Packet, Scene};

const UP: &str = "10.0.0.1:5000";
const DOWN: &str = "10.0.1.9:53";
const DELAY: i64 = 2 * MILLISECOND;
const PACKETS: u16 = 1000;
/// Strays of the first milliseconds are skipped: they may have passed before upstream captured.
const AT_ENDS: u64 = 4;

/// A second of packets of a flow; `arrive` puts what becomes of each into the downstream capture.
fn scene(arrive: impl Fn(u16, i64, &Packet, &mut Crossing)) -> Scene {
    let mut crossing = Crossing::default();
    for number in 0..PACKETS {
        let packet = Packet::udp(UP, DOWN, number);
        let time_ns = i64::from(number) * MILLISECOND;
        arrive(number, time_ns, &packet, &mut crossing);
    }
    crossing.scene()
}

fn arrived(packet: &Packet) -> Vec<u8> {
    packet.clone().ttl(63).frame()
}

const ALGORITHMS: [&str; 7] = ["exact", "lda", "lds", "sds", "colate", "sample", "cnf"];

#[track_caller]
fn estimate(scene: &Scene, options: &str) -> Value {
    // Without a delay, the exit code says that there is no answer.
    let run = scene.delay(&format!("{options} -F json"));
    let document = if run.code == Some(4) { run.json() } else { run.expect(0).json() };
    assert_eq!(document["estimates"].as_array().map(Vec::len), Some(1), "{document}");
    document["estimates"][0].clone()
}

/// What is claimed of a number, in bounds that are always there.
#[track_caller]
fn range(estimate: &Value, key: &str) -> Option<[u64; 2]> {
    let [exact, min, max] =
        ["", "_min", "_max"].map(|end| estimate[format!("{key}{end}")].as_u64());
    if let Some(exact) = exact {
        assert_eq!((min, max), (Some(exact), Some(exact)), "{estimate}");
    }
    min.zip(max).map(|(min, max)| [min, max])
}

/// Every algorithm: loss and strays as the network made them lie within what is claimed, or are
/// unknown with a reason; `exact` counts strays, and names the cause.
#[track_caller]
fn check(scene: &Scene, lost: [u64; 2], strays: u64, cause: &str) {
    for algorithm in ALGORITHMS {
        let estimate = estimate(scene, &format!("-a {algorithm}"));
        let is_within = |range: [u64; 2], truth: u64| range[0] <= truth && truth <= range[1];
        match range(&estimate, "lost") {
            Some(range) => assert!(lost.iter().any(|lost| is_within(range, *lost)), "{estimate}"),
            None => assert!(estimate["reason"].is_string(), "{algorithm}: {estimate}"),
        }
        match range(&estimate, "strays") {
            Some([min, max]) => {
                let range = [min, max + AT_ENDS];
                assert!(is_within(range, strays), "{algorithm}: {estimate}");
            }
            None => assert!(estimate["reason"].is_string(), "{algorithm}: {estimate}"),
        }
        let reason = estimate["reason"].as_str().unwrap_or_default();
        if ["exact", "lda"].contains(&algorithm) && strays > 0 {
            assert!(reason.contains(cause), "{algorithm}: {reason}");
        }
    }
    let exact = estimate(scene, "");
    let found = exact["strays"].as_u64().expect("they are counted");
    assert!(strays - found.min(strays) <= AT_ENDS && found <= strays, "{exact}");
}

#[test]
fn without_strays_there_are_none_and_loss_is_known() {
    let scene = scene(|number, time_ns, packet, crossing| {
        crossing.send(time_ns, packet, (number % 50 != 20).then_some(DELAY));
    });
    check(&scene, [20, 20], 0, "");
    for algorithm in ALGORITHMS {
        let estimate = estimate(&scene, &format!("-a {algorithm}"));
        assert_eq!(estimate["lost"], 20, "{algorithm}: {estimate}");
    }
    let human = scene.delay("").expect(0).stdout;
    assert!(!human.contains("strays"), "{human}");
}

/// Later fragments have no ports, and so another flow.
fn fragments(packet: &Packet) -> [Vec<u8>; 2] {
    let whole = arrived(packet);
    let (header, payload) = whole.split_at(34);
    let part = |bytes: &[u8], fragment: u16| {
        let mut frame = [header, bytes].concat();
        frame[16..18].copy_from_slice(&(20 + bytes.len() as u16).to_be_bytes());
        frame[20..22].copy_from_slice(&fragment.to_be_bytes());
        frame
    };
    [part(&payload[..40], 0x2000), part(&payload[40..], 5)]
}

#[test]
fn fragments_made_by_a_router_are_not_loss() {
    let scene = scene(|number, time_ns, packet, crossing| match number % 10 {
        _ if number % 50 == 20 => crossing.pass(time_ns, packet.frame(), None),
        3 => {
            crossing.pass(time_ns, packet.frame(), None);
            for fragment in fragments(packet) {
                crossing.downstream.add(time_ns + DELAY, fragment);
            }
        }
        _ => crossing.send(time_ns, packet, Some(DELAY)),
    });
    check(&scene, [20, 20], 200, "fragmented between the points");
}

#[test]
fn segments_that_an_adapter_merged_are_not_loss() {
    let long: Vec<u8> = (0..=255).collect();
    let scene = scene(|number, time_ns, packet, crossing| match number % 10 {
        4 | 5 => crossing.pass(time_ns, packet.frame(), None),
        6 => {
            crossing.pass(time_ns, packet.frame(), None);
            let merged = packet.clone().payload(&long);
            crossing.downstream.add(time_ns + DELAY, arrived(&merged));
        }
        _ => crossing.send(time_ns, packet, Some(DELAY)),
    });
    // Of 300 packets that 100 became, at least 200 seem lost, and none was.
    check(&scene, [200, 300], 100, "gro off");
}

#[test]
fn packets_that_an_adapter_cut_are_not_loss() {
    let long: Vec<u8> = (0..=255).collect();
    let scene = scene(|number, time_ns, packet, crossing| match number % 10 {
        4 => {
            let whole = packet.clone().payload(&[&number.to_be_bytes()[..], &long].concat());
            crossing.pass(time_ns, whole.frame(), None);
            for part in 0..3 {
                let cut = packet.clone().payload(&[number as u8, part, 7, 7]);
                crossing.downstream.add(time_ns + DELAY + i64::from(part), arrived(&cut));
            }
        }
        _ => crossing.send(time_ns, packet, Some(DELAY)),
    });
    check(&scene, [0, 0], 300, "tso off");
}

#[test]
fn frames_that_a_mirror_doubled_change_no_delay() {
    let doubled = |every: u16, gap_ns: i64| {
        scene(move |number, time_ns, packet, crossing| {
            crossing.send(time_ns, packet, (number % 50 != 20).then_some(DELAY));
            if number % 50 != 20 && number % every == 0 {
                crossing.downstream.add(time_ns + DELAY + gap_ns, arrived(packet));
            }
        })
    };
    check(&doubled(1, 3_000), [20, 20], 980, "frames twice");
    check(&doubled(9, 500_000), [20, 20], 110, "duplicates packets");
    let estimate = estimate(&doubled(1, 3_000), "");
    assert_eq!((&estimate["lost"], &estimate["mean_ns"]), (&20.into(), &DELAY.into()));
    let human = doubled(1, 3_000).delay("").expect(0).stdout;
    assert!(human.contains("strays"), "{human}");
}

#[test]
fn rewritten_fields_are_not_loss() {
    let scene = scene(|number, time_ns, packet, crossing| match number % 10 {
        7 => {
            crossing.pass(time_ns, packet.frame(), None);
            let rewritten = packet.clone().payload(&[number as u8; 64]);
            crossing.downstream.add(time_ns + DELAY, arrived(&rewritten));
        }
        _ => crossing.send(time_ns, packet, (number % 50 != 20).then_some(DELAY)),
    });
    check(&scene, [20, 20], 100, "fields are rewritten");
}

#[test]
fn traffic_from_elsewhere_leaves_loss_known() {
    let scene = scene(|number, time_ns, packet, crossing| {
        crossing.send(time_ns, packet, (number % 50 != 20).then_some(DELAY));
        // Of the same hosts, by another way.
        let other = Packet::udp("10.0.0.1:6000", DOWN, number);
        crossing.downstream.add(time_ns + DELAY + 500, arrived(&other));
    });
    check(&scene, [20, 20], PACKETS.into(), "other traffic");
    // No flow misses packets that may be among them.
    assert_eq!(estimate(&scene, "")["lost"], 20);
}

/// Near both ends of the overlap packets are compared one by one, and strays count there too.
#[test]
fn strays_near_the_ends_of_the_overlap_count() {
    let scene = scene(|number, time_ns, packet, crossing| {
        // Delays so different that all of the overlap is near an end.
        let delay_ns = DELAY + i64::from(number % 7) * 90 * MILLISECOND;
        crossing.send(time_ns, packet, Some(delay_ns));
        if (690..710).contains(&number) {
            let other = packet.clone().payload(&[1, 2, 3, number as u8]);
            crossing.downstream.add(time_ns + DELAY, arrived(&other));
        }
    });
    assert_eq!(estimate(&scene, "")["strays"], 20);
}

#[test]
fn flows_have_their_own_strays() {
    let scene = scene(|number, time_ns, packet, crossing| {
        crossing.send(time_ns, packet, Some(DELAY));
        let other = Packet::tcp("10.0.0.1:40000", "10.0.1.9:443", number);
        crossing.send(time_ns + 9, &other, Some(DELAY));
        if number % 20 == 5 {
            crossing.downstream.add(time_ns + DELAY + 400_000, arrived(packet));
        }
    });
    let document = scene.delay("--by flow -F json").expect(0).json();
    let mut strays: Vec<u64> = document["estimates"]
        .as_array()
        .unwrap()
        .iter()
        .map(|estimate| estimate["strays"].as_u64().unwrap())
        .collect();
    strays.sort_unstable();
    assert_eq!(strays, [0, 50]);
}

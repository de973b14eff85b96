//! Packets that were sent and did not arrive, none of them or none of a flow: 100 % loss, not
//! "nothing to measure".

use serde_json::Value;

use crate::support::{Crossing, MILLISECOND, Packet, SECOND, Scene, evidence, number};

const PACKETS: u16 = 200;

/// A conversation of which nothing arrives downstream; answers take 5 ms.
fn answers_only(through_a_router: bool) -> Crossing {
    let mut crossing = Crossing::of(0, |_| None);
    for number in 0..PACKETS {
        let packet = Packet::tcp("10.0.0.1:40000", "10.0.1.9:443", number);
        let time_ns = i64::from(number) * 3 * MILLISECOND;
        crossing.send(time_ns, &packet, None);
        let answer = packet.reversed();
        if through_a_router {
            crossing.send_back(time_ns + 7, &answer, 5 * MILLISECOND);
        } else {
            crossing.downstream.add(time_ns + 7, answer.frame());
            crossing.upstream.add(time_ns + 7 + 5 * MILLISECOND, answer.frame());
        }
    }
    crossing
}

#[track_caller]
fn measured(scene: &Scene, options: &str) -> Value {
    scene.delay(&format!("-F json {options}")).expect(0).json()
}

/// All that was sent is lost, and no delay is claimed. A packet is sent every 3 ms.
#[track_caller]
fn check_all_lost(segment: &Value) {
    check_lost(segment, 8);
}

/// The same, where it is not known to so many milliseconds when packets would have arrived: those
/// sent near the ends of the captures may have passed while the other point was not capturing.
#[track_caller]
fn check_lost(segment: &Value, unsure_ms: i64) {
    let [packets, used, lost] = evidence(segment);
    let least = i64::from(PACKETS) - unsure_ms / 3 - 1;
    assert!((least..=PACKETS.into()).contains(&packets), "{packets}");
    assert_eq!((used, lost), (0, packets));
    assert_eq!(segment["estimates"][0]["mean_ns"], Value::Null);
    assert_eq!(segment["estimates"][0]["p50_ns"], Value::Null);
}

#[test]
fn when_only_answers_arrive_everything_sent_is_lost() {
    for through_a_router in [true, false] {
        let scene = answers_only(through_a_router).scene();
        for algorithm in ["exact", "lda", "lds", "colate", "sample"] {
            let document = measured(&scene, &format!("-a {algorithm}"));
            check_all_lost(&document);
            let decided_by = if through_a_router { "ttl" } else { "delay-sign" };
            assert_eq!(document["direction"]["decided_by"], decided_by, "{algorithm}");
        }
    }
}

#[test]
fn both_directions_are_in_the_answer_though_one_is_dead() {
    let scene = answers_only(true).scene();
    let run = scene.delay("-F json --both").expect(0);
    assert!(
        run.stderr.contains("either all were lost, or they take another path"),
        "{}",
        run.stderr
    );
    let document = run.json();
    let segments = document["segments"].as_array().unwrap();
    check_all_lost(&segments[0]);
    assert_eq!(evidence(&segments[1]), [PACKETS.into(), PACKETS.into(), 0]);
    assert_eq!(number(&segments[1], "/estimates/0/mean_ns"), 5 * MILLISECOND);
    // Seen from the other end it is the second segment that is dead.
    let swapped = scene.run("delay down.pcap up.pcap --both -F json").expect(0).json();
    check_all_lost(&swapped["segments"][1]);
}

#[test]
fn clocks_that_differ_hide_no_outage() {
    // Answers that seem to take 25 ms may do so: then the packets would have taken as long.
    for (ahead_ns, unsure_ms) in
        [(-3600 * SECOND, 8), (-20 * MILLISECOND, 50), (20 * MILLISECOND, 8), (2 * SECOND, 8)]
    {
        let Crossing { upstream, downstream, .. } = answers_only(true);
        let scene = Scene::new(&upstream, &downstream.shifted(ahead_ns));
        check_lost(&measured(&scene, ""), unsure_ms);
    }
}

#[test]
fn a_destination_tells_an_outage_if_the_other_point_was_capturing() {
    let scene = answers_only(true).scene();
    let document = measured(&scene, "--toward 10.0.1.9");
    check_all_lost(&document);
    assert_eq!(document["direction"]["decided_by"], "toward");
    // An empty capture may as well have been stopped.
    let crossing = answers_only(true);
    let nothing = crossing.downstream.clone().between(0, -1);
    Scene::new(&crossing.upstream, &nothing).delay("--toward 10.0.1.9").expect(4);
}

/// A flow of a source of its own, all of which is lost, beside one that arrives.
#[test]
fn a_flow_that_is_lost_whole_is_lost_where_all_others_go_one_way() {
    let mut crossing = Crossing::varied();
    for number in 0..PACKETS {
        let packet = Packet::udp("10.0.0.7:5000", "10.0.2.2:53", number);
        crossing.send(i64::from(number) * 4 * MILLISECOND + 11, &packet, None);
        // Not of this segment: it comes from elsewhere, and passes downstream only.
        let other = Packet::udp("10.0.7.7:5000", "10.0.1.9:53", number);
        crossing.downstream.add(i64::from(number) * 4 * MILLISECOND + 13, other.frame());
        // No router forwards this.
        let group = Packet::udp("10.0.0.7:5353", "224.0.0.251:5353", number);
        crossing.upstream.add(i64::from(number) * 4 * MILLISECOND + 17, group.frame());
    }
    for algorithm in ["exact", "lda"] {
        let document = measured(&crossing.scene(), &format!("-a {algorithm}"));
        let [sent, _, lost] = crossing.evidence();
        assert_eq!((evidence(&document)[0], evidence(&document)[2]), (sent, lost), "{algorithm}");
        assert_eq!(document["direction"]["unknown_flows"], 2, "{algorithm}");
    }
    let flows = measured(&crossing.scene(), "--by flow");
    let estimates = flows["estimates"].as_array().unwrap();
    let dead = estimates.iter().find(|flow| flow["scope"].to_string().contains("10.0.0.7"));
    assert_eq!(dead.unwrap()["lost"], i64::from(PACKETS));
}

/// Where flows go both ways, nothing says which way a flow went that has no match.
#[test]
fn a_flow_of_unknown_direction_is_skipped_and_counted() {
    let mut crossing = answers_only(true);
    for number in 0..PACKETS {
        let packet = Packet::udp("10.0.0.7:5000", "10.0.2.2:53", number);
        crossing.upstream.add(i64::from(number) * 3 * MILLISECOND + 11, packet.frame());
    }
    let document = measured(&crossing.scene(), "");
    check_all_lost(&document);
    assert_eq!(document["upstream"]["skipped"]["direction-unknown"], PACKETS);
}

//! `twixt delay` on captures made by hand, where every delay is known.

use serde_json::Value;

use crate::support::{
    Crossing, MILLISECOND, Packet, SECOND, START, Scene, evidence, number, twixt_fed,
};

/// Delays that no two packets share, from 1 to 3.997 ms, and no loss.
fn varied(number: u16) -> Option<i64> {
    Some(MILLISECOND + 13 * i64::from(number) * i64::from(number) % (3 * MILLISECOND))
}

/// Runs `delay -F json` with further options.
#[track_caller]
fn measured(scene: &Scene, options: &str) -> Value {
    scene.delay(&format!("-F json {options}")).expect(0).json()
}

/// Checks counts, mean and range of the only estimate, exact to the nanosecond.
#[track_caller]
fn check(crossing: &Crossing, document: &Value) {
    assert_eq!(evidence(document), crossing.evidence());
    assert_eq!(number(document, "/estimates/0/mean_ns"), crossing.mean_ns());
    let (min_ns, max_ns) = crossing.range_ns();
    assert_eq!(number(document, "/estimates/0/min_ns"), min_ns);
    assert_eq!(number(document, "/estimates/0/max_ns"), max_ns);
}

#[test]
fn delays_and_losses_are_exact_to_the_nanosecond_and_the_packet() {
    let crossing = Crossing::of(500, |number| varied(number).filter(|_| number % 50 != 7));
    let document = measured(&crossing.scene(), "");
    assert_eq!(crossing.evidence(), [500, 490, 10]);
    check(&crossing, &document);
    assert_eq!(document["stretch"]["start_ns"], START);
    assert_eq!(document["stretch"]["end_ns"], START + 499 * MILLISECOND);
}

/// Traffic both ways between two hosts: there in about 2 ms, back in about 5.
fn conversation(through_a_router: bool) -> Crossing {
    let mut crossing = Crossing::of(0, |_| None);
    for number in 0..200 {
        let packet = Packet::tcp("10.0.0.1:40000", "10.0.1.9:443", number);
        let time_ns = i64::from(number) * 3 * MILLISECOND;
        let (there_ns, back_ns) = (2 * MILLISECOND + i64::from(number), 5 * MILLISECOND);
        let answer = packet.clone().reversed();
        if through_a_router {
            crossing.send(time_ns, &packet, Some(there_ns));
            crossing.send_back(time_ns + 7, &answer, back_ns);
        } else {
            crossing.pass(time_ns, packet.frame(), Some((there_ns, packet.frame())));
            crossing.downstream.add(time_ns + 7, answer.frame());
            crossing.upstream.add(time_ns + 7 + back_ns, answer.frame());
        }
    }
    crossing
}

/// Checks that what goes downstream is measured, and how its direction was decided.
#[track_caller]
fn check_direction(crossing: &Crossing, options: &str, decided_by: &str) {
    let document = measured(&crossing.scene(), options);
    check(crossing, &document);
    assert_eq!(document["direction"]["decided_by"], decided_by);
    assert_eq!(document["direction"]["unknown_flows"], 0);
}

#[test]
fn the_time_to_live_tells_the_direction() {
    check_direction(&conversation(true), "", "ttl");
}

#[test]
fn without_a_router_the_sign_of_the_delays_tells_the_direction() {
    check_direction(&conversation(false), "", "delay-sign");
}

#[test]
fn the_user_may_tell_the_direction_by_destination() {
    check_direction(&conversation(false), "--toward 10.0.1.0/24", "toward");
}

#[test]
fn the_user_may_tell_the_direction_by_filter() {
    let scene = conversation(false).scene();
    let document = measured(&scene, "dst port 443");
    check(&conversation(false), &document);
    assert_eq!(document["upstream"]["skipped"]["filtered"], 200);
}

#[test]
fn both_directions_are_two_segments_with_their_own_names() {
    let crossing = conversation(true);
    let segments = measured(&crossing.scene(), "--both")["segments"].clone();
    check(&crossing, &segments[0]);
    assert_eq!(segments[0]["segment"]["upstream"], "up.pcap");
    assert_eq!(segments[1]["segment"]["upstream"], "down.pcap");
    assert_eq!(evidence(&segments[1]), [200, 200, 0]);
    assert_eq!(number(&segments[1], "/estimates/0/mean_ns"), 5 * MILLISECOND);
    // Half of the shortest round trip bounds what the clocks may differ; a few nanoseconds more,
    // as delays that grow by one with every packet look like a clock that gains.
    let bound = number(&segments[0], "/clock/error_bound_ns");
    assert!((0..10).contains(&(bound - 7 * MILLISECOND / 2)), "{bound}");
}

#[test]
fn identical_packets_are_not_taken_for_one_another() {
    // The same bytes, sent again 200 ms later; the first of number 20 and the second of 30 are lost.
    let mut crossing = Crossing::of(0, |_| None);
    for number in 0..100 {
        let packet = Packet::tcp("10.0.0.1:40000", "10.0.1.9:443", number);
        let time_ns = i64::from(number) * MILLISECOND;
        crossing.send(time_ns, &packet, varied(number).filter(|_| number != 20));
        if number % 10 == 0 {
            let again_ns = time_ns + 200 * MILLISECOND;
            crossing.send(again_ns, &packet, varied(number + 1).filter(|_| number != 30));
        }
    }
    assert_eq!(crossing.evidence(), [110, 108, 2]);
    check(&crossing, &measured(&crossing.scene(), ""));
}

#[test]
fn what_only_one_capture_could_see_is_skipped_and_not_lost() {
    let mut crossing = Crossing::of(1000, |number| varied(number).filter(|_| number % 100 != 50));
    crossing.upstream = crossing.upstream.between(0, 899 * MILLISECOND);
    crossing.downstream = crossing.downstream.between(100 * MILLISECOND, SECOND);
    let document = measured(&crossing.scene(), "");
    // Lost in the overlap: 150, 250, … 850.
    let [packets, used, lost] = evidence(&document);
    assert_eq!((packets - used, lost), (8, 8));
    let both = |number: &u16| {
        let sent_ns = i64::from(*number) * MILLISECOND;
        *number < 900
            && number % 100 != 50
            && varied(*number).is_some_and(|delay_ns| sent_ns + delay_ns >= 100 * MILLISECOND)
    };
    assert_eq!(used, (0..1000).filter(both).count() as i64);
    let skipped = |point: &str| number(&document, &format!("/{point}/skipped/outside-stretch"));
    assert_eq!(skipped("upstream"), 900 - packets);
    assert_eq!(skipped("downstream"), crossing.downstream.len() as i64 - used);
}

#[test]
fn negative_delays_stay_negative_and_are_counted() {
    let mut crossing = Crossing::of(300, varied);
    crossing.downstream = crossing.downstream.shifted(-2 * MILLISECOND);
    let document = measured(&crossing.scene(), "");
    assert_eq!(number(&document, "/estimates/0/mean_ns"), crossing.mean_ns() - 2 * MILLISECOND);
    assert_eq!(number(&document, "/estimates/0/min_ns"), -MILLISECOND);
    let negative = (0..300).filter(|&number| varied(number) < Some(2 * MILLISECOND)).count();
    assert_eq!(number(&document, "/clock/negative_delays"), negative as i64);
    assert_eq!(number(&document, "/clock/offset_ns"), -MILLISECOND);
    let human = crossing.scene().delay("").expect(0).stdout;
    assert!(human.contains("downstream seems behind by about 1.000 ms"), "{human}");
    assert!(human.contains(" -1.000 ms"), "{human}");
}

/// Names and DNS at 1 ms, transfers at 4 ms, two hosts of another network at 9 ms.
fn mixed() -> Scene {
    let mut crossing = Crossing::of(0, |_| None);
    for number in 0..100 {
        let time_ns = i64::from(number) * MILLISECOND;
        let dns = Packet::udp("10.0.0.1:5000", "10.0.1.9:53", number);
        let transfer = Packet::tcp("10.0.0.2:40000", "10.0.1.8:443", number);
        let other = Packet::udp("10.0.0.3:5000", "10.9.2.7:123", number);
        crossing.send(time_ns, &dns, Some(MILLISECOND));
        crossing.send(time_ns + 5, &transfer, Some(4 * MILLISECOND).filter(|_| number != 50));
        crossing.send(time_ns + 9, &other, Some(9 * MILLISECOND));
    }
    crossing.scene()
}

/// Checks what an estimate says for each scope: packets, lost, mean in milliseconds.
#[track_caller]
fn check_scopes(document: &Value, expected: &[(&str, i64, i64, i64)]) {
    let rows = document["estimates"].as_array().expect("there are estimates");
    let mut found: Vec<(&str, i64, i64, i64)> = rows
        .iter()
        .map(|row| {
            let mean_ms = number(row, "/mean_ns") / MILLISECOND;
            (
                row["scope"].as_str().expect("a name"),
                number(row, "/packets"),
                number(row, "/lost"),
                mean_ms,
            )
        })
        .collect();
    found.sort_unstable();
    assert_eq!(found, expected);
}

#[test]
fn classes_are_told_apart_and_the_first_match_wins() {
    let scene = mixed();
    for algorithm in ["exact", "lda"] {
        let run = crate::support::twixt([
            "delay",
            &scene.path().join("up.pcap").display().to_string(),
            &scene.path().join("down.pcap").display().to_string(),
            "--class",
            "names=udp port 53",
            "--class",
            "transfers=tcp or port 53",
            "--by",
            "class",
            "-F",
            "json",
            "-a",
            algorithm,
        ]);
        check_scopes(
            &run.expect(0).json(),
            &[
                ("class names", 100, 0, 1),
                ("class other", 100, 0, 9),
                ("class transfers", 100, 1, 4),
            ],
        );
    }
}

#[test]
fn prefixes_are_told_apart() {
    check_scopes(
        &measured(&mixed(), "--by prefix/24"),
        &[("10.0.0.0/24 > 10.0.1.0/24", 200, 1, 2), ("10.0.0.0/24 > 10.9.2.0/24", 100, 0, 9)],
    );
}

#[test]
fn flows_are_told_apart() {
    check_scopes(
        &measured(&mixed(), "--by flow"),
        &[
            ("tcp 10.0.0.2:40000 > 10.0.1.8:443", 100, 1, 4),
            ("udp 10.0.0.1:5000 > 10.0.1.9:53", 100, 0, 1),
            ("udp 10.0.0.3:5000 > 10.9.2.7:123", 100, 0, 9),
        ],
    );
}

/// The keys of an estimate, in the order in which they are written.
const ESTIMATE_KEYS: [&str; 42] = [
    "scope",
    "packets",
    "used",
    "lost",
    "mean_ns",
    "stddev_ns",
    "ci95_low_ns",
    "ci95_high_ns",
    "min_ns",
    "p50_ns",
    "p95_ns",
    "p99_ns",
    "max_ns",
    "start_ns",
    "end_ns",
    "reason",
    "bytes",
    "p999_ns",
    "p50_low_ns",
    "p50_high_ns",
    "p95_low_ns",
    "p95_high_ns",
    "p99_low_ns",
    "p99_high_ns",
    "p999_low_ns",
    "p999_high_ns",
    "jitter_ns",
    "lost_min",
    "lost_max",
    "strays",
    "strays_min",
    "strays_max",
    "jitter_max_ns",
    "ipdv_mean_ns",
    "ipdv_p99_ns",
    "pdv_p99_ns",
    "pdv_p999_ns",
    "source",
    "destination",
    "source_port",
    "destination_port",
    "protocol",
];

#[test]
fn csv_has_a_header_and_a_row_per_estimate() {
    let run = Crossing::of(100, |_| Some(MILLISECOND)).scene().delay("-F csv").expect(0);
    let lines: Vec<&str> = run.stdout.lines().collect();
    assert_eq!(lines[0], ESTIMATE_KEYS.join(","));
    let one = MILLISECOND;
    let end = START + 99 * one;
    // Without a reason; 100 packets of 92 bytes; percentiles and their intervals; no jitter; none
    // lost at least, nor at most; no strays; no variation; and a scope without addresses.
    let row = format!(
        "all,100,100,0,{one},0,{one},{one},{one},{one},{one},{one},{one},{START},{end},,9200,{}{},,,,",
        format!("{one},").repeat(9),
        "0,".repeat(11)
    );
    assert_eq!(lines[1..], [row]);
}

#[test]
fn json_lines_are_one_estimate_each() {
    let lines = mixed().delay("-F jsonl --by flow").expect(0).json_lines();
    assert_eq!(lines.len(), 3);
    for line in &lines {
        assert_eq!(keys(line), ESTIMATE_KEYS);
    }
}

#[track_caller]
fn keys(value: &Value) -> Vec<&str> {
    value.as_object().expect("an object").keys().map(String::as_str).collect()
}

#[test]
fn the_keys_of_the_document_are_those_that_users_were_promised() {
    let scene = conversation(true).scene();
    for algorithm in ["exact", "lda"] {
        let document = measured(&scene, &format!("-a {algorithm}"));
        let promised = [
            "segment",
            "algorithm",
            "config",
            "synopsis_bytes",
            "epochs",
            "upstream",
            "downstream",
            "direction",
            "stretch",
            "clock",
            "sample",
            "estimates",
            "whole",
        ];
        assert_eq!(keys(&document), promised);
        assert_eq!(keys(&document["segment"]), ["upstream", "downstream"]);
        assert_eq!(keys(&document["upstream"])[..2], ["packets", "skipped"]);
        assert_eq!(keys(&document["direction"]), ["decided_by", "unknown_flows"]);
        assert_eq!(keys(&document["stretch"]), ["start_ns", "end_ns"]);
        let clock = ["offset_ns", "error_bound_ns", "negative_delays"];
        let more = ["skew_ppm", "skew_error_ppm", "skew_by", "steps", "corrected"];
        let newer = ["skew_reason", "shifts"];
        assert_eq!(keys(&document["clock"]), [&clock[..], &more, &newer].concat());
        let estimate = &document["estimates"][0];
        assert_eq!(keys(estimate), ESTIMATE_KEYS);
        for key in &ESTIMATE_KEYS[1..15] {
            let value = &estimate[key];
            assert!(value.is_i64() || value.is_null(), "{key} is {value}");
        }
        let order = ["min_ns", "p50_ns", "p95_ns", "p99_ns", "max_ns"];
        let unknown = order.iter().all(|&key| estimate[key].is_null());
        assert_eq!(unknown, algorithm == "lda", "unknown is null, and what is known is not");
    }
}

/// As [`Crossing::of`], with what arrives made by `arriving`.
fn rewritten(arriving: impl Fn(&Packet) -> Vec<u8>) -> Crossing {
    let mut crossing = Crossing::of(0, |_| None);
    for number in 0..200 {
        let packet = Packet::udp("10.0.0.1:5000", "10.0.1.9:53", number);
        let arrival = varied(number).map(|delay_ns| (delay_ns, arriving(&packet)));
        crossing.pass(i64::from(number) * MILLISECOND, packet.frame(), arrival);
    }
    crossing
}

#[test]
fn translated_addresses_need_their_own_digest() {
    let crossing = rewritten(|packet| packet.clone().translated("192.0.2.1:61000").ttl(63).frame());
    let scene = crossing.scene();
    scene.delay("").expect(4).says(&["no packet in common", "--digest nat"]);
    check(&crossing, &measured(&scene, "--digest nat"));
}

#[test]
fn a_tunnel_at_one_point_is_looked_into() {
    let crossing = rewritten(|packet| packet.vxlan("172.16.0.1", "172.16.0.2"));
    let scene = crossing.scene();
    check(&crossing, &measured(&scene, ""));
    scene.delay("--outer").expect(4).says(&["no packet in common"]);
}

#[test]
fn every_hash_and_key_finds_the_same() {
    let crossing = Crossing::of(200, varied);
    let scene = crossing.scene();
    for options in ["--hash siphash --key x", "--hash xxh3 --key x", "--hash siphash"] {
        check(&crossing, &measured(&scene, options));
    }
}

#[test]
fn one_capture_may_come_from_standard_input_in_one_pass() {
    let crossing = Crossing::of(200, |number| varied(number).filter(|_| number % 20 != 3));
    let scene = crossing.scene();
    let fed = |arguments: &str, capture: &crate::support::Capture| {
        twixt_fed(scene.path(), arguments, &capture.bytes()).expect(0).json()
    };
    let options = "--one-pass -F json dst port 53";
    check(&crossing, &fed(&format!("delay - down.pcap {options}"), &crossing.upstream));
    check(&crossing, &fed(&format!("delay up.pcap - {options}"), &crossing.downstream));
}

#[test]
fn identical_packets_next_to_each_other_are_not_lost_at_the_ends_of_the_stretch() {
    // As repeated acknowledgements are: of ten packets, five have the same bytes.
    for phase in 0..10 {
        let mut crossing = Crossing::of(0, |_| None);
        for number in 0..1000 {
            let place = (number + phase) % 10;
            let alike = if place < 5 { 10 + number } else { 15 + number - place };
            let packet = Packet::tcp("10.0.0.1:40000", "10.0.1.9:443", alike);
            crossing.send(i64::from(number) * 3 * MILLISECOND / 2, &packet, Some(3 * MILLISECOND));
        }
        check(&crossing, &measured(&crossing.scene(), ""));
    }
}

#[test]
fn packets_under_way_at_the_end_of_an_epoch_are_not_lost() {
    let crossing =
        Crossing::of(1000, |number| Some(MILLISECOND * (1 + i64::from(number) * 37 % 150)));
    let document = measured(&crossing.scene(), "--epoch 500ms");
    let rows = document["estimates"].as_array().expect("there are estimates");
    let lost: i64 = rows.iter().map(|row| number(row, "/lost")).sum();
    assert_eq!(lost, 0);
    // Delays differ by 149 ms: with shorter epochs, sums could not tell delay from loss.
    for epoch in ["290ms", "100ms", "10ms"] {
        let refused = crossing.scene().delay(&format!("-a lda --epoch {epoch}")).expect(2);
        refused.says(&["too short", "--epoch 297ms or more", "--algorithm exact"]);
    }
}

#[test]
fn negative_delays_are_counted_for_the_opposite_direction_too() {
    let mut crossing = conversation(true);
    crossing.downstream = crossing.downstream.shifted(10 * MILLISECOND);
    let segments = measured(&crossing.scene(), "--both")["segments"].clone();
    assert_eq!(number(&segments[1], "/estimates/0/mean_ns"), -5 * MILLISECOND);
    assert_eq!(number(&segments[1], "/clock/negative_delays"), 200);
}

#[test]
fn a_class_without_packets_has_the_times_of_the_stretch() {
    let document = measured(&Crossing::of(100, varied).scene(), "--class names=udp --by class");
    for row in document["estimates"].as_array().expect("there are estimates") {
        assert_eq!(number(row, "/start_ns"), START, "{row}");
    }
}

#[test]
fn rows_of_both_directions_say_which_segment_they_belong_to() {
    let rows = conversation(true).scene().delay("--both -F csv").expect(0).stdout;
    let mut lines = rows.lines();
    assert!(lines.next().is_some_and(|header| header.starts_with("upstream,downstream,scope,")));
    let ends: Vec<String> =
        lines.map(|line| line.split(',').take(2).collect::<Vec<_>>().join(" to ")).collect();
    assert_eq!(ends, ["up.pcap to down.pcap", "down.pcap to up.pcap"]);
}

#[test]
fn many_short_epochs_all_find_their_counterparts() {
    let crossing = Crossing::of(3000, |_| Some(MILLISECOND));
    let document = measured(&crossing.scene(), "--epoch 1ms");
    let rows = document["estimates"].as_array().expect("there are estimates");
    let used: i64 = rows.iter().map(|row| number(row, "/used")).sum();
    assert_eq!(used, 3000);
}

/// Heartbeats are equal byte for byte: which arrived is not known, and the direction is not to blame.
#[test]
fn packets_that_all_look_alike_are_reported_as_such() {
    let mut crossing = Crossing::of(0, |_| None);
    for number in 0..200 {
        let packet = Packet::udp("10.0.0.1:5000", "10.0.1.9:53", 7);
        crossing.send(number * 10 * MILLISECOND, &packet, Some(MILLISECOND * (1 + number % 30)));
    }
    let run = crossing.scene().delay("").expect(4);
    assert!(run.stderr.contains("look alike"), "{}", run.stderr);
}

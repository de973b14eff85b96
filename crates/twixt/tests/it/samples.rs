//! Every packet, and how delays vary from packet to packet, against what was sent.

use serde_json::Value;

use crate::support::{Crossing, MILLISECOND, Packet, START, number};

/// Two flows: one whose delays alternate by 160 µs, one that is level; every tenth of it is lost.
fn crossing() -> Crossing {
    let mut crossing = Crossing::default();
    for count in 0..100_u16 {
        let time_ns = i64::from(count) * MILLISECOND;
        let swinging = Packet::udp("10.0.0.1:5000", "10.0.1.9:53", count);
        let delay_ns = MILLISECOND + i64::from(count % 2) * 160_000;
        crossing.send(time_ns, &swinging, Some(delay_ns));
        let level = Packet::tcp("10.0.0.2:40000", "10.0.1.9:443", count);
        crossing.send(time_ns + 9, &level, (count % 10 != 3).then_some(2 * MILLISECOND));
    }
    crossing
}

#[test]
fn every_packet_is_printed_with_its_fate() {
    let scene = crossing().scene();
    let rows = scene.delay("--samples -F jsonl").expect(0).json_lines();
    assert_eq!(rows.len(), 200);
    assert_eq!(rows.iter().filter(|row| row["lost"] == true).count(), 10);
    assert!(rows.iter().all(|row| row["delay_ns"].is_null() == (row["lost"] == true)));
    let times: Vec<i64> = rows.iter().map(|row| number(row, "/time_ns")).collect();
    assert!(times.is_sorted() && times[0] == START, "{times:?}");
    let expected = serde_json::json!({
        "time_ns": START + MILLISECOND, "scope": "udp 10.0.0.1:5000 > 10.0.1.9:53",
        "delay_ns": 1_160_000, "length": 92, "lost": false, "source": "10.0.0.1",
        "destination": "10.0.1.9", "source_port": 5000, "destination_port": 53, "protocol": "udp",
    });
    assert_eq!(rows[2], expected);
}

#[test]
fn the_same_packets_are_in_csv_and_parquet() {
    let scene = crossing().scene();
    let csv = scene.delay("--samples -F csv").expect(0).stdout;
    assert_eq!(csv.lines().count(), 201);
    assert!(csv.starts_with("time_ns,scope,delay_ns,length,lost,source,"), "{csv}");
    let lost =
        csv.lines().filter(|line| line.contains(",,92,true,") || line.contains(",,104,true,"));
    assert_eq!(lost.count(), 10);
    // The bytes of a Parquet file are not text, but its ends are.
    let parquet = scene.delay("--samples -F parquet").expect(0).stdout;
    assert!(parquet.starts_with("PAR1") && parquet.ends_with("PAR1"), "{}", parquet.len());
}

#[test]
fn rows_of_estimates_are_parquet_too() {
    let scene = crossing().scene();
    for arguments in [
        "delay up.pcap down.pcap --by flow -F parquet",
        "path up.pcap down.pcap -F parquet",
        "heavy -r up.pcap -F parquet",
        "reorder -r up.pcap -F parquet",
    ] {
        let printed = scene.run(arguments).expect(0).stdout;
        assert!(printed.starts_with("PAR1") && printed.ends_with("PAR1"), "{arguments}");
    }
}

#[test]
fn what_cannot_be_printed_packet_by_packet_is_refused() {
    let scene = crossing().scene();
    scene.delay("--samples").expect(2).says(&["--samples needs -F jsonl, -F csv or -F parquet"]);
    scene.delay("--samples -F csv -a lda").expect(2).says(&["lda does not, exact does"]);
    scene.delay("--samples -F csv --by flow").expect(2);
}

#[test]
fn variation_is_that_of_each_flow_by_the_formulas_of_the_rfcs() {
    let document = crossing().scene().delay("--by flow -F json").expect(0).json();
    let flow = |name: &str| -> &Value {
        let estimates = document["estimates"].as_array().expect("it is a list");
        estimates.iter().find(|row| row["scope"] == name).expect("the flow is there")
    };
    let swinging = flow("udp 10.0.0.1:5000 > 10.0.1.9:53");
    // J approaches 160 µs by a sixteenth of what is left, 99 times: its mean is 160 µs times
    // 1 - (q + ... + q^99) / 99 with q = 15/16.
    let q = 15.0_f64 / 16.0;
    let mean = 160_000.0 * (1.0 - (q - q.powi(100)) / (1.0 - q) / 99.0);
    assert_eq!(number(swinging, "/jitter_ns"), mean.round() as i64);
    let last = 160_000.0 * (1.0 - q.powi(99));
    assert_eq!(number(swinging, "/jitter_max_ns"), last.round() as i64);
    assert_eq!(number(swinging, "/ipdv_mean_ns"), 160_000);
    assert_eq!(number(swinging, "/ipdv_p99_ns"), 160_000);
    assert_eq!(number(swinging, "/pdv_p99_ns"), 160_000);
    let level = flow("tcp 10.0.0.2:40000 > 10.0.1.9:443");
    assert_eq!((number(level, "/jitter_ns"), number(level, "/pdv_p999_ns")), (0, 0));
}

#[test]
fn a_packet_alone_has_no_variation() {
    let document = Crossing::of(1, |_| Some(5)).scene().delay("-F json").expect(0).json();
    let estimate = &document["estimates"][0];
    assert_eq!((&estimate["jitter_ns"], &estimate["ipdv_mean_ns"]), (&Value::Null, &Value::Null));
}

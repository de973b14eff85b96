//! Series: what epochs tell, and that they add up to the whole.

use serde_json::Value;

use crate::support::{Crossing, MILLISECOND, Packet, Run, SECOND, START, Scene, number};

/// Ten seconds of a path whose delays reach from 1 ms to 2 s, in no order; every fiftieth packet is lost,
/// and some arrive that upstream did not see. Two seconds pass without a packet.
fn jittery() -> Scene {
    let mut crossing = Crossing::default();
    for index in 0..1000_u16 {
        let pause_ns = if index < 500 { 0 } else { 2 * SECOND };
        let time_ns = i64::from(index) * 10 * MILLISECOND + pause_ns;
        let packet = Packet::udp("10.0.0.1:5000", "10.0.1.9:53", index);
        let extra_ns = match index % 9 {
            4 => i64::from(index) * 7_919_317 % (2 * SECOND),
            _ => i64::from(index) * 7_919_317 % (20 * MILLISECOND),
        };
        let delay_ns = (index % 50 != 20).then_some(MILLISECOND + extra_ns);
        crossing.send(time_ns, &packet, delay_ns);
        if index % 100 == 71 {
            let other = packet.clone().payload(&[1, 2, 3, index as u8]).ttl(63);
            crossing.downstream.add(time_ns + 5 * MILLISECOND, other.frame());
        }
    }
    crossing.scene()
}

fn rows(document: &Value) -> &[Value] {
    document["estimates"].as_array().expect("there are estimates")
}

fn sum(document: &Value, key: &str) -> i64 {
    rows(document).iter().map(|row| number(row, &format!("/{key}"))).sum()
}

/// Rows of one scope follow each other without a gap, add up to what is stated beside them, and that is
/// what is measured without epochs.
#[track_caller]
pub(crate) fn check_adds_up(series: &Value, whole: &Value) {
    let length_ns = rows(series).windows(2).map(|pair| {
        assert_eq!(number(&pair[1], "/start_ns"), number(&pair[0], "/end_ns") + 1, "{pair:?}");
        number(&pair[1], "/start_ns") - number(&pair[0], "/start_ns")
    });
    let lengths: std::collections::BTreeSet<i64> = length_ns.collect();
    assert!(lengths.len() <= 1, "{lengths:?}");
    assert_eq!(number(series, "/epochs"), rows(series).len() as i64);
    for key in ["packets", "used", "lost_max", "strays", "bytes"] {
        assert_eq!(sum(series, key), number(whole, &format!("/estimates/0/{key}")), "{key}");
    }
    if whole["estimates"][0]["lost"].is_u64() {
        assert_eq!(sum(series, "lost"), number(whole, "/estimates/0/lost"));
    }
    assert_eq!(series["whole"], whole["estimates"]);
    assert_eq!(whole["whole"], Value::Null);
}

#[track_caller]
fn json(run: Run) -> Value {
    run.expect(0).json()
}

#[test]
fn rows_of_any_length_add_up_to_the_whole() {
    let scene = jittery();
    let whole = json(scene.delay("-F json"));
    assert_eq!((number(&whole, "/estimates/0/packets"), sum(&whole, "lost_max")), (1000, 20));
    for length in ["1s", "100ms", "7ms", "3s", "1h", "auto"] {
        let series = json(scene.delay(&format!("-F json --epoch {length}")));
        check_adds_up(&series, &whole);
    }
    let auto = json(scene.delay("-F json --epoch auto"));
    assert!((30..=100).contains(&rows(&auto).len()), "{} rows", rows(&auto).len());
    // In the pause, nothing is said of delays.
    let silent = rows(&auto).iter().filter(|row| row["packets"] == 0);
    assert!(silent.clone().count() > 5);
    silent.for_each(|row| {
        assert_eq!((&row["mean_ns"], &row["reason"]), (&Value::Null, &"no packets".into()));
    });
    // Read once, and by flow.
    let once = "--one-pass --toward 10.0.1.9 -F json";
    check_adds_up(&json(scene.delay(&format!("{once} --epoch 1s"))), &json(scene.delay(once)));
    let flows = json(scene.delay("--by flow --epoch 1s -F json"));
    for key in ["packets", "used", "lost_max", "strays"] {
        assert_eq!(sum(&flows, key), sum(&whole, key), "{key}");
    }
}

#[test]
fn a_row_has_the_packets_that_left_in_it() {
    let crossing =
        Crossing::of(1000, |number| Some(MILLISECOND * (1 + i64::from(number) * 37 % 150)));
    let series = json(crossing.scene().delay("-F json --epoch 10ms"));
    let first = &rows(&series)[1];
    let start_ns = number(first, "/start_ns") - START;
    // One packet leaves each millisecond.
    let expected: Vec<i64> = (0..1000)
        .filter(|index| (start_ns..start_ns + 10 * MILLISECOND).contains(&(index * MILLISECOND)))
        .map(|index| MILLISECOND * (1 + index * 37 % 150))
        .collect();
    assert_eq!(number(first, "/packets"), expected.len() as i64);
    let mean_ns = expected.iter().sum::<i64>() / expected.len() as i64;
    assert_eq!(number(first, "/mean_ns"), mean_ns);
}

/// Two of 4,000 packets take two seconds longer than others.
fn outliers() -> Scene {
    let mut crossing = Crossing::default();
    for index in 0..4000_u16 {
        let packet = Packet::udp("10.0.0.1:5000", "10.0.1.9:53", index);
        let late_ns = if index % 2000 == 777 { 2 * SECOND } else { 0 };
        let delay_ns = MILLISECOND + i64::from(index) * 7_919_317 % MILLISECOND + late_ns;
        let delay_ns = (index % 100 != 20).then_some(delay_ns);
        crossing.send(i64::from(index) * 2 * MILLISECOND, &packet, delay_ns);
    }
    crossing.scene()
}

#[test]
fn an_outlier_costs_its_epochs_their_certainty_and_not_the_answer() {
    let scene = outliers();
    let truth = json(scene.delay("-F json --epoch 500ms"));
    for algorithm in ["lda", "lds", "colate", "sample"] {
        let found = json(scene.delay(&format!("-a {algorithm} -F json --epoch 500ms")));
        assert_eq!(rows(&found).len(), rows(&truth).len(), "{algorithm}");
        let (mut touched, mut doubtful) = (0, 0);
        for (row, exact) in rows(&found).iter().zip(rows(&truth)) {
            assert_eq!(row["packets"], exact["packets"], "{algorithm}");
            if is_touched(row) {
                touched += 1;
                let known = [&row["lost"], &row["ci95_low_ns"]];
                assert_eq!(known, [&Value::Null; 2], "{algorithm}: {row}");
            }
            if row["lost"].is_null() {
                doubtful += 1;
                let reason = row["reason"].as_str().unwrap();
                assert!(reason.contains("use longer epochs, or --algorithm exact"), "{reason}");
            } else {
                assert_eq!(row["lost"], exact["lost"], "{algorithm}: {row}");
            }
        }
        // Beside them, one more may be doubtful at either side.
        assert_eq!(touched, 4, "{algorithm}");
        assert!(doubtful <= 8 && doubtful < rows(&found).len(), "{algorithm}: {doubtful}");
    }
}

/// Whether one of the two left in the row, or arrived in it.
fn is_touched(row: &Value) -> bool {
    let span = number(row, "/start_ns")..=number(row, "/end_ns");
    [777, 2777].into_iter().any(|index| {
        let left_ns = START + index * 2 * MILLISECOND;
        // As epochs are cut, downstream is ahead by the shortest delay.
        span.contains(&left_ns) || span.contains(&(left_ns + 2 * SECOND))
    })
}

/// Every third packet takes up to 600 ms longer.
#[test]
fn the_length_that_is_advised_is_the_shortest_that_works() {
    let crossing = Crossing::of(4000, |index| {
        let late_ns = if index % 3 == 0 { i64::from(index) % 600 * MILLISECOND } else { 0 };
        Some(MILLISECOND + late_ns)
    });
    let scene = crossing.scene();
    let refused = scene.delay("-a lda --epoch 100ms").expect(2);
    assert!(refused.stderr.contains("too short"), "{}", refused.stderr);
    let (_, advised) = refused.stderr.split_once("use --epoch ").expect("there is advice");
    let (advised_ms, _) = advised.split_once("ms").expect("in milliseconds");
    let advised_ms: i64 = advised_ms.parse().expect("a number");
    scene.delay(&format!("-a lda --epoch {advised_ms}ms")).expect(0);
    scene.delay(&format!("-a lda --epoch {}ms", advised_ms - 1)).expect(2);
    scene.delay("-a lda --epoch auto").expect(0);
    scene.delay("-a exact --epoch 1ms").expect(0);
    scene.delay("--epoch auto --one-pass --toward 10.0.1.9").expect(2).says(&["--epoch DURATION"]);
}

/// With `--one-pass`, a guard cannot be chosen: no option that is advised is missing.
#[test]
fn advice_for_series_names_options_that_exist() {
    let crossing =
        Crossing::of(1000, |index| Some(MILLISECOND * (1 + i64::from(index) * 37 % 150)));
    let run = crossing.scene().delay("-a lda --epoch 200ms --one-pass --toward 10.0.1.9 -F json");
    let document = run.json();
    let reasons: Vec<&str> =
        rows(&document).iter().filter_map(|row| row["reason"].as_str()).collect();
    assert!(reasons.iter().any(|reason| reason.contains("--algorithm exact")), "{reasons:?}");
    assert!(!reasons.iter().any(|reason| reason.contains("larger")), "{reasons:?}");
}

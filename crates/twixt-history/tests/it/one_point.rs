//! What is known of one point alone is kept as estimates are: durably, once, and in sums of
//! distributions and counts.

use std::path::Path;

use twixt_history::{
    FlowRange, HeavySums, History, HistoryConfig, HistoryReader, PointSums, ReorderSums,
    RoundTripSums, Row, RowQuestion, SCOPES_MAX, SeriesKey, Step, Table, to_parquet,
};
use twixt_model::{Histogram, RoundTripEstimate, RoundTripKind, Scope, Span, Timestamp};

use crate::support::{HOUR, SECOND_NS, START_NS, at, between};

const STEPS: [Step; 3] = [Step::Epoch, Step::Minute, Step::Hour];

fn series() -> SeriesKey {
    SeriesKey {
        upstream: "edge".to_owned(),
        downstream: "edge".to_owned(),
        algorithm: "exact".to_owned(),
        domain: "lab".to_owned(),
        epoch_ns: SECOND_NS,
        ..SeriesKey::default()
    }
}

/// What the point observed in a second in all.
fn of_all(second: i64) -> Row {
    let epoch = at(second).as_nanos() / SECOND_NS;
    let span =
        Span { start: at(second), end: Timestamp::from_nanos(at(second + 1).as_nanos() - 1) };
    Row { run: Some(1), packets: Some(10), ..Row::observed(series(), epoch, span) }
}

/// Handshakes of a second, of so many milliseconds.
fn handshakes(second: i64, times_ms: &[i64]) -> Row {
    let mut distribution = Histogram::new(Histogram::BUCKETS_DEFAULT);
    times_ms.iter().for_each(|ms| distribution.add(ms * 1_000_000, 1.0));
    let estimate = RoundTripEstimate {
        scope: Scope::All,
        kind: RoundTripKind::TcpHandshake,
        part: None,
        requests: Some(times_ms.len() as u64 + 1),
        responses: Some(times_ms.len() as u64),
        matched: times_ms.len() as u64,
        ambiguous: Some(0),
        weighted: times_ms.len() as f64,
        times: distribution.times(),
        horizon_ns: None,
        forgotten_flows: None,
        first_byte: None,
        spin_use: None,
        distribution: Some(Box::new(distribution)),
    };
    let point = PointSums::RoundTrips(Box::new(RoundTripSums::of(&estimate)));
    let kind = RoundTripKind::TcpHandshake.name().to_owned();
    Row { kind, packets: None, point: Some(point), ..of_all(second) }
}

fn reordered(second: i64, prefix: u8) -> Row {
    let sums =
        ReorderSums { packets: 100, out_of_order: u64::from(prefix), ..ReorderSums::default() };
    Row {
        scope_kind: "prefix".to_owned(),
        scope: format!("10.0.{prefix}.0/24"),
        packets: None,
        point: Some(PointSums::Reordering(sums)),
        ..of_all(second)
    }
}

fn flow(second: i64, port: u32, packets: u64) -> Row {
    let sums = HeavySums {
        packets,
        bytes: 100 * packets,
        packets_min: packets,
        packets_max: packets + 1,
        unlisted_max: 2,
        listed: 0,
    };
    Row {
        scope_kind: "flow".to_owned(),
        scope: format!("tcp 10.0.0.1:{port} > 10.0.0.2:443"),
        packets: None,
        point: Some(PointSums::Heavy(sums)),
        ..of_all(second)
    }
}

/// The rows of a second in a table.
fn rows(table: Table, second: i64) -> Vec<Row> {
    match table {
        Table::RoundTrips => {
            vec![of_all(second), handshakes(second, &[10, 10, 10, 90 + second % 7])]
        }
        Table::Reordering => {
            let sums = ReorderSums { packets: 200, out_of_order: 8, ..ReorderSums::default() };
            let all = Row { point: Some(PointSums::Reordering(sums)), ..of_all(second) };
            vec![all, reordered(second, 3), reordered(second, 5)]
        }
        _ => {
            let sums = HeavySums { unlisted_max: 2, listed: 1, ..HeavySums::default() };
            let all = Row { point: Some(PointSums::Heavy(sums)), ..of_all(second) };
            vec![all, flow(second, 1_000 + (second % 2) as u32, 40)]
        }
    }
}

fn open(folder: &Path, table: Table) -> History {
    History::open_table(twixt_store::real_disk(), folder, table, HistoryConfig::default()).unwrap()
}

fn question(step: Step) -> RowQuestion {
    RowQuestion { histograms: true, ..RowQuestion::all(step) }
}

/// What is answered by who writes, which who reads answers too.
fn answers(history: &History, folder: &Path, table: Table) -> Vec<Vec<Row>> {
    let reader = HistoryReader::open_table(twixt_store::real_disk(), folder, table);
    let answer = |step: Step| {
        let live = history.answer(&question(step)).unwrap().rows;
        assert!(live == reader.answer(&question(step)).unwrap().rows, "{table:?}, {step}");
        live
    };
    STEPS.map(answer).into()
}

#[test]
fn answers_are_the_same_open_reopened_and_sealed() {
    for table in Table::OF_ONE_POINT {
        let folder = tempfile::tempdir().unwrap();
        let history = open(folder.path(), table);
        for second in 3_500..3_700 {
            history.append(&rows(table, second), at(second)).unwrap();
        }
        history.sync().unwrap();
        let before = answers(&history, folder.path(), table);
        let minutes = before[1].iter().filter(|row| row.is_of_all()).count();
        assert_eq!(minutes, 4, "{table:?}");
        drop(history);
        let history = open(folder.path(), table);
        // A replay after a crash repeats epochs: they count once.
        for second in 3_500..3_700 {
            history.append(&rows(table, second), at(second)).unwrap();
        }
        assert!(answers(&history, folder.path(), table) == before, "{table:?}");
        history.seal_all().unwrap();
        for second in 3_500..3_700 {
            history.append(&rows(table, second), at(second)).unwrap();
        }
        assert!(answers(&history, folder.path(), table) == before, "{table:?}");
        assert!(!to_parquet(table, &before[0]).unwrap().is_empty());
        let stored = history.answer(&question(Step::Hour)).unwrap();
        let of_kinds: u64 =
            stored.rows.iter().filter(|row| row.is_of_all()).map(|row| row.epochs).sum();
        assert_eq!((of_kinds, stored.point_epochs()), (200, (200, 0)), "{table:?}");
    }
}

#[test]
fn an_hour_has_the_distribution_of_its_epochs() {
    let folder = tempfile::tempdir().unwrap();
    let history = open(folder.path(), Table::RoundTrips);
    for second in 0..HOUR {
        let slow = if second % 10 == 0 { 200 } else { 10 };
        history.append(&[of_all(second), handshakes(second, &[10, slow])], at(second)).unwrap();
    }
    history.seal_all().unwrap();
    let answer = history.answer(&question(Step::Hour)).unwrap();
    let kind = answer.rows.iter().find(|row| row.kind == "tcp-handshake").unwrap();
    let sums = kind.point.as_ref().and_then(PointSums::round_trips).unwrap();
    assert_eq!((sums.matched, sums.requests), (7_200, Some(10_800)));
    let share = sums.share_above(50_000_000).unwrap();
    assert!(
        (share.share - 0.05).abs() < 1e-9 && share.low < 0.05 && share.high > 0.05,
        "{share:?}"
    );
    let times = sums.times.as_ref().unwrap();
    assert!((times.mean_ns - 19.5e6).abs() < 1.0, "{times:?}");
}

#[test]
fn a_second_run_of_an_epoch_is_kept_too() {
    let folder = tempfile::tempdir().unwrap();
    let history = open(folder.path(), Table::RoundTrips);
    let second_run = |row: Row| Row { run: Some(2), ..row };
    let first = [of_all(1), handshakes(1, &[10])];
    let second = [second_run(of_all(1)), second_run(handshakes(1, &[20, 30]))];
    for rows in [&first, &second, &first] {
        history.append(rows, at(2)).unwrap();
    }
    for _ in 0..2 {
        let answer = history.answer(&question(Step::Minute)).unwrap();
        let kind = answer.rows.iter().find(|row| !row.kind.is_empty()).unwrap();
        assert_eq!(kind.point.as_ref().unwrap().round_trips().unwrap().matched, 3);
        history.seal_all().unwrap();
        history.append(&second, at(2)).unwrap();
    }
}

#[test]
fn where_there_was_nothing_to_measure_is_no_gap() {
    let folder = tempfile::tempdir().unwrap();
    let history = open(folder.path(), Table::RoundTrips);
    history.append(&[of_all(0), handshakes(0, &[10])], at(0)).unwrap();
    history.append(&[of_all(1)], at(1)).unwrap();
    history.append(&[of_all(5)], at(5)).unwrap();
    for sealed in [false, true] {
        if sealed {
            history.seal_all().unwrap();
        }
        let asked = RowQuestion {
            kind: Some("tcp-handshake".to_owned()),
            of_all: true,
            span: between(0, 5),
            ..question(Step::Epoch)
        };
        let answer = history.answer(&asked).unwrap();
        assert_eq!(answer.point_epochs(), (3, 3));
        assert_eq!(answer.rows.iter().filter(|row| !row.kind.is_empty()).count(), 1);
        let gaps: Vec<&Row> = answer.rows.iter().filter(|row| row.is_gap()).collect();
        assert_eq!((gaps.len(), gaps[0].start_ns), (1, START_NS + 2 * SECOND_NS));
        let minute = RowQuestion { step: Step::Minute, ..asked };
        let answer = history.answer(&minute).unwrap();
        assert_eq!(answer.point_epochs(), (3, 3), "{:?}", answer.rows);
    }
}

/// Two flows take turns: each had packets in the other's epochs, but no more than the bound.
#[test]
fn flows_that_come_and_go_have_bounds() {
    let folder = tempfile::tempdir().unwrap();
    let history = open(folder.path(), Table::Heavy);
    for second in 0..60 {
        history.append(&rows(Table::Heavy, second), at(second)).unwrap();
    }
    let answer = history.answer(&question(Step::Minute)).unwrap();
    let sums = |row: &Row| *row.point.as_ref().unwrap().heavy().unwrap();
    let all = sums(answer.rows.iter().find(|row| row.is_of_all()).unwrap());
    let flows: Vec<&Row> = answer.rows.iter().filter(|row| row.scope_kind == "flow").collect();
    assert_eq!(flows.len(), 2);
    for flow in flows {
        assert_eq!((flow.epochs, sums(flow).packets), (30, 1_200));
        assert_eq!(sums(flow).range(&all), FlowRange { min: 1_200, max: 30 * 41 + 30 * 2 });
    }
}

/// Three large flows among thousands that are seen once: the large stay, no packet is forgotten, and
/// memory does not grow with the number of flows.
#[test]
fn too_many_scopes_become_other() {
    let folder = tempfile::tempdir().unwrap();
    let history = open(folder.path(), Table::Heavy);
    let seconds = 120;
    for second in 0..seconds {
        let mut rows = rows(Table::Heavy, second);
        rows.truncate(1);
        rows.extend((0..3).map(|port| flow(second, port, 1_000)));
        rows.extend((0..97).map(|number| flow(second, 1_000 + second as u32 * 97 + number, 1)));
        history.append(&rows, at(second)).unwrap();
    }
    assert!(history.counts().folded > 0);
    for sealed in [false, true] {
        if sealed {
            history.seal_all().unwrap();
        }
        let answer = history.answer(&question(Step::Hour)).unwrap();
        let sums = |row: &Row| *row.point.as_ref().unwrap().heavy().unwrap();
        let (mut flows, mut packets) = (0, 0);
        for row in answer.rows.iter().filter(|row| !row.is_of_all()) {
            flows += 1;
            packets += sums(row).packets;
        }
        assert!(flows <= SCOPES_MAX + 1, "{flows}");
        assert_eq!(packets, seconds as u64 * (3 * 1_000 + 97));
        let largest = answer.rows.iter().filter(|row| row.scope_kind == "flow");
        let whole = largest.filter(|row| sums(row).packets == seconds as u64 * 1_000);
        assert_eq!(whole.count(), 3);
        assert!(answer.rows.iter().any(|row| row.scope_kind == "other" && row.reason.is_some()));
    }
}

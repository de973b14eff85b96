//! Single points: what they tell is stored once, answered, merged and scraped, whatever happens.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use twixt_collector::alerts::{AlertConfig, Measure, SegmentPattern, SlowRoundTrips, Thresholds};
use twixt_collector::stepped::SteppedCollector;
use twixt_collector::{CollectorConfig, WallClock};
use twixt_history::{HeavySums, PointSums, RowQuestion, Step, Table};
use twixt_measure::{Meter, MeterConfig, Sealed};
use twixt_model::{
    BatchBuffer, Detail, EpochRule, Exchange, FlowHash, FlowKey, Observation, PointId,
    RoundTripKind, Timestamp,
};
use twixt_store::{SimulatedDisk, real_disk};
use twixt_synopsis::{Purpose, find};
use twixt_testing::{peak_kib, run_again};

use crate::api::{ask_until, ask_well};
use crate::epochs::{Agent, body, epoch_now};
use crate::running::{Running, config};

const SECOND_NS: i64 = 1_000_000_000;
const MS: i64 = 1_000_000;
/// Queries of an epoch. One in so many takes long.
const QUERIES: i64 = 40;
const SLOW: i64 = 8;

/// Seals epochs in which a client asks a server for names.
pub(crate) struct Asking {
    purpose: Purpose,
    algorithm: &'static str,
    run: u64,
    epoch_ns: i64,
}

impl Asking {
    pub(crate) const fn new(purpose: Purpose, algorithm: &'static str) -> Self {
        Self { purpose, algorithm, run: 1, epoch_ns: SECOND_NS }
    }

    /// So many epochs from this one on.
    pub(crate) fn seal(&self, first: i64, count: i64) -> Vec<Sealed> {
        let config = MeterConfig {
            domain: "lab".to_owned(),
            run: self.run,
            ..MeterConfig::new(PointId("edge".to_owned()), EpochRule::every(self.epoch_ns).unwrap())
        };
        let start = find(self.purpose, self.algorithm).unwrap().start;
        let mut meter = Meter::new(config, start(&toml::Table::new()).unwrap()).unwrap();
        let mut sealed = Vec::new();
        for epoch in first..first + count {
            let mut buffer = BatchBuffer::new();
            for number in 0..QUERIES {
                let asked_ns = epoch * self.epoch_ns + number * (self.epoch_ns / (2 * QUERIES));
                let took_ns = if number % SLOW == 0 { 90 * MS } else { 10 * MS };
                exchange(&mut buffer, asked_ns, (epoch * QUERIES + number) as u16, false);
                exchange(&mut buffer, asked_ns + took_ns, (epoch * QUERIES + number) as u16, true);
            }
            let mut messages: Vec<(Observation, Detail)> = {
                let batch = buffer.as_batch();
                batch.observations.iter().copied().zip(batch.details.iter().copied()).collect()
            };
            messages.sort_by_key(|(observation, _)| observation.time);
            let mut ordered = BatchBuffer::new();
            messages.into_iter().for_each(|(seen, detail)| ordered.push_detailed(seen, detail));
            meter.observe(ordered.as_batch());
            sealed.extend(std::iter::from_fn(|| meter.poll()));
        }
        meter.finish();
        sealed.extend(std::iter::from_fn(|| meter.poll()));
        sealed
    }
}

/// A query, or the answer to it.
fn exchange(buffer: &mut BatchBuffer, time_ns: i64, id: u16, response: bool) {
    let asked: FlowKey = "udp 10.0.0.1:4000 > 10.0.0.2:53".parse().unwrap();
    let key = if response { asked.reversed() } else { asked };
    let seen = Observation {
        time: Timestamp::from_nanos(time_ns),
        flow: FlowHash(u64::from(response)),
        length: 100,
        ..Observation::default()
    };
    let detail =
        Detail { key, exchange: Some(Exchange::Dns { id, response }), ..Detail::default() };
    buffer.push_detailed(seen, detail);
}

#[test]
fn round_trips_are_answered_over_time_and_in_all() {
    let folder = tempfile::tempdir().unwrap();
    let collector = Running::start(config(folder.path()));
    let (first, epochs) = (epoch_now() / 10 - 20, 12);
    for algorithm in ["exact", "fridge"] {
        let sealed = Asking::new(Purpose::RoundTrip, algorithm).seal(first, epochs);
        collector.send(&body(&sealed)).counts();
    }
    let path = "/v1/round-trips?point=edge&kind=dns&above_ns=50000000";
    let epoch_path = format!("{path}&step=epoch");
    let document = ask_until(&collector, &epoch_path, |document| {
        document["round_trips"].as_array().map(Vec::len) >= Some(2 * epochs as usize)
    });
    assert_eq!(document["completeness"]["complete"], true, "{}", document["completeness"]);
    for step in ["epoch", "minute", "hour"] {
        let document = ask_well(&collector, &format!("{path}&step={step}"));
        for total in document["total"].as_array().unwrap() {
            // In a fridge a query may take the place of another that waits.
            let missed = epochs * QUERIES - total["matched"].as_i64().unwrap();
            let missed_max = if total["algorithm"] == "exact" { 0 } else { epochs * QUERIES / 50 };
            assert!((0..=missed_max).contains(&missed), "{missed} by {step}: {total}");
            assert_eq!(total["requests"], epochs * QUERIES);
            let share = |key: &str| total[key].as_f64().unwrap();
            let (low, high) = (share("share_above_low"), share("share_above_high"));
            assert!(low < 0.125 && 0.125 < high && high - low < 0.07, "{low} to {high}");
            if total["algorithm"] == "exact" {
                assert!((share("share_above") - 0.125).abs() < 1e-9, "{total}");
                assert_eq!(total["mean_ns"], 20 * MS, "{total}");
            }
            let ends = ["ci95_low_ns", "ci95_high_ns"].map(|key| total[key].as_i64().unwrap());
            assert!(ends[0] <= 20 * MS && 20 * MS <= ends[1], "{total}");
        }
        assert_eq!(document["total"].as_array().unwrap().len(), 2, "one for each algorithm");
    }
    // Of another kind there were none, which is known.
    let none = ask_well(&collector, "/v1/round-trips?point=edge&kind=tcp-handshake");
    assert_eq!(none["completeness"]["epochs"], 2 * epochs);
    assert!(none["round_trips"].as_array().unwrap().is_empty());
    let elsewhere = ask_well(&collector, "/v1/round-trips?point=nowhere");
    assert!(elsewhere["completeness"]["stored"].is_null());
    let scraped = collector.metrics();
    let line = "twixt_point_round_trips_measured_total{domain=\"lab\",point=\"edge\",class=\"\",\
                algorithm=\"exact\",kind=\"dns\",part=\"\"} 480";
    assert!(scraped.contains(line), "{scraped}");
}

/// One query in eight takes 90 ms: an alert on more than 5 % above 50 ms is raised, one on 20 % is not.
#[test]
fn slow_round_trips_raise_an_alert() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(folder.path());
    let alert = |name: &str, above: f64| AlertConfig {
        name: name.to_owned(),
        segment: SegmentPattern::of_points("ed*").unwrap(),
        round_trips: Some(SlowRoundTrips {
            kind: RoundTripKind::Dns,
            longer_than: Duration::from_millis(50),
        }),
        class: None,
        algorithm: None,
        measure: Measure::Share,
        thresholds: Thresholds { above, clear_below: None },
        window: Duration::from_secs(10),
        minimum_packets: 1,
        webhook: None,
    };
    config.alerts = vec![alert("five", 0.05), alert("twenty", 0.2)];
    let collector = Running::start(config);
    let first = (epoch_now() / 100 - 4) * 10;
    let sealed = Asking::new(Purpose::RoundTrip, "exact").seal(first, 22);
    collector.send(&body(&sealed)).counts();
    let standing = |document: &Value| document["standing"].as_array().map(Vec::len);
    let alerts = ask_until(&collector, "/v1/alerts", |document| standing(document) == Some(2));
    for alert in alerts["standing"].as_array().unwrap() {
        let expected = if alert["alert"] == "five" { "raised" } else { "clear" };
        assert_eq!(alert["state"], expected, "{alert}");
        assert_eq!((&alert["upstream"], &alert["kind"]), (&"edge".into(), &"dns".into()));
        assert_eq!(
            (&alert["packets"], &alert["longer_than_ns"]),
            (&400.into(), &50_000_000.into())
        );
    }
}

#[test]
fn large_flows_have_bounds() {
    let folder = tempfile::tempdir().unwrap();
    let collector = Running::start(config(folder.path()));
    let (first, epochs) = (epoch_now() - 20, 10);
    let agent = Agent::at("edge").keeping(Purpose::Heavy, "exact").of_flows(5);
    collector.send(&body(&agent.seal(first, epochs))).counts();
    let document = ask_until(&collector, "/v1/heavy?point=edge", |document| {
        document["completeness"]["epochs"] == epochs
    });
    let total = document["total"].as_array().unwrap();
    let packets = |flow: &Value| flow["packets"].as_u64().unwrap();
    assert_eq!(total.len(), 5);
    assert_eq!(total.iter().map(packets).sum::<u64>(), 50 * epochs as u64);
    for flow in total {
        assert_eq!(flow["packets_min"], flow["packets"], "every packet is counted: {flow}");
        assert_eq!(flow["packets_max"], flow["packets"], "{flow}");
    }
    let wrong = crate::api::ask(&collector, "/v1/reordering?threshold=2");
    assert_eq!(wrong.0, 400, "{wrong:?}");
}

fn open(directory: &Path, disk: &SimulatedDisk, clock: &WallClock) -> SteppedCollector {
    let config = CollectorConfig { clock: clock.clone(), ..config(directory) };
    SteppedCollector::open(config, &disk.mount(), Box::new(std::io::sink())).unwrap()
}

fn show(clock: &WallClock, start_ns: i64, elapsed: Duration) {
    clock.set(Timestamp::from_nanos(start_ns + elapsed.as_nanos() as i64), elapsed);
}

/// Round trips of all that is stored.
fn stored(collector: &SteppedCollector, step: Step) -> (u64, u64) {
    let question = RowQuestion {
        kind: Some(RoundTripKind::Dns.name().to_owned()),
        of_all: true,
        ..RowQuestion::all(step)
    };
    let answer = collector.answer_table(Table::RoundTrips, &question).unwrap();
    let matched = |row: &twixt_history::Row| {
        row.point.as_ref().and_then(PointSums::round_trips).map_or(0, |sums| sums.matched)
    };
    (answer.rows.iter().map(matched).sum(), answer.point_epochs().0)
}

/// The collector is killed after every few steps; the agent sends again what was not acknowledged, and
/// some of what was.
#[test]
fn a_kill_at_any_moment_loses_and_doubles_nothing() {
    let (first, epochs) = (1_700_000_000, 60);
    let sealed = Asking::new(Purpose::RoundTrip, "exact").seal(first, epochs);
    let expected = (epochs * QUERIES) as u64;
    for steps in 1..=9 {
        let (disk, clock) = (SimulatedDisk::new(steps), WallClock::standing());
        let start_ns = (first + epochs) * SECOND_NS;
        show(&clock, start_ns, Duration::ZERO);
        let mut tick = 0;
        let mut next = 0;
        while next < sealed.len() {
            let mut collector = open("/collector".as_ref(), &disk, &clock);
            let from = next - next.min(3);
            for epoch in &sealed[from..(from + 12).min(sealed.len())] {
                let body = zstd::bulk::compress(&body(std::slice::from_ref(epoch)), 1).unwrap();
                assert_eq!(collector.receive(epoch.epoch.0 as u64, &body, true), None);
            }
            assert!(!collector.commit().is_empty());
            next = (from + 12).min(sealed.len());
            for _ in 0..steps {
                tick += 1;
                show(&clock, start_ns, tick * Duration::from_millis(700));
                collector.estimate().unwrap();
            }
            disk.kill();
        }
        let mut collector = open("/collector".as_ref(), &disk, &clock);
        for _ in 0..60 {
            tick += 1;
            show(&clock, start_ns, tick * Duration::from_millis(700));
            collector.estimate().unwrap();
        }
        assert_eq!(stored(&collector, Step::Epoch), (expected, epochs as u64), "{steps} steps");
        assert_eq!(stored(&collector, Step::Minute), (expected, epochs as u64), "{steps} steps");
    }
}

/// A day of epochs of ten seconds, sealed hour by hour: what the second half of it takes in memory is no
/// more than noise, and all of it is answered.
#[test]
fn a_day_takes_no_more_memory_than_its_first_hours() {
    // A closure, whose name has that of the test.
    run_again(&["env"], || {
        a_day();
    });
}

fn a_day() {
    const EPOCH_NS: i64 = 10 * SECOND_NS;
    const HOURS: i64 = 24;
    const HOUR_EPOCHS: i64 = 360;
    let folder = tempfile::tempdir().unwrap();
    let clock = WallClock::standing();
    let first = 1_700_006_400 / 10;
    let start_ns = first * EPOCH_NS;
    show(&clock, start_ns, Duration::ZERO);
    let config = CollectorConfig { clock: clock.clone(), ..config(folder.path()) };
    let mut collector =
        SteppedCollector::open(config, &real_disk(), Box::new(std::io::sink())).unwrap();
    let mut hours = |from: i64, to: i64| {
        for hour in from..to {
            let first = first + hour * HOUR_EPOCHS;
            let [trips, heavy] = [(Purpose::RoundTrip, "fridge"), (Purpose::Heavy, "space-saving")]
                .map(|(purpose, algorithm)| {
                    let asking = Asking { epoch_ns: EPOCH_NS, ..Asking::new(purpose, algorithm) };
                    asking.seal(first, HOUR_EPOCHS)
                });
            for (number, sealed) in [trips, heavy].into_iter().enumerate() {
                for (part, epochs) in sealed.chunks(60).enumerate() {
                    let body = zstd::bulk::compress(&body(epochs), 1).unwrap();
                    let request = (hour * 100 + number as i64 * 10 + part as i64) as u64;
                    assert_eq!(collector.receive(request, &body, true), None);
                    collector.commit();
                    for step in 0..6 {
                        let elapsed_s =
                            (hour + 1) * 3_600 + number as i64 * 60 + part as i64 * 6 + step;
                        show(&clock, start_ns, Duration::from_secs(elapsed_s as u64));
                        collector.estimate().unwrap();
                    }
                }
            }
            collector.keep();
        }
    };
    let ((), early_kib) = peak_kib(|| hours(0, HOURS / 2));
    let ((), late_kib) = peak_kib(|| hours(HOURS / 2, HOURS));
    println!("{early_kib} KiB in the first half, {late_kib} KiB more in the second");
    // Measured: some hundred KiB. An hour of one-point rows in memory would be 1.5 MiB of round trips alone.
    assert!(late_kib < 12 << 10, "{late_kib} KiB");
    let expected = (HOURS * HOUR_EPOCHS * QUERIES) as u64;
    // A fridge misses a few of them, for which others stand.
    let found = stored(&collector, Step::Hour).0;
    assert!(found <= expected && found > expected - expected / 1_000, "{found} of {expected}");
    let question = RowQuestion::all(Step::Hour);
    let answer = collector.answer_table(Table::Heavy, &question).unwrap();
    let mut total = HeavySums::default();
    for row in answer.rows.iter().filter(|row| row.scope_kind == "flow") {
        total.add(row.point.as_ref().unwrap().heavy().unwrap());
    }
    assert_eq!(total.packets, 2 * expected);
    assert!(folder.path().join("round-trips/rollups").is_dir());
}

use twixt_model::{
    Delay, DelayEstimate, DelaySample, Evidence, RoundTripKind, SampleLevel, SampledDelay, Scope,
    Timestamp,
};

use super::*;

const SECOND: i64 = 1_000_000_000;
const MINUTE: i64 = 60 * SECOND;
const THRESHOLDS: Thresholds = Thresholds { above: 0.02, clear_below: None };

fn span(start_ns: i64, length_ns: i64) -> Span {
    let moment = Timestamp::from_nanos;
    Span { start: moment(start_ns), end: moment(start_ns + length_ns - 1) }
}

/// An epoch of so many packets, each with this delay, all sampled at a level.
fn epoch(packets: u64, lost: Option<u64>, delay_ns: i64, level: Option<u16>) -> Estimate {
    let used = packets - lost.unwrap_or(0);
    let delay = (used > 0).then(|| DelayEstimate {
        count: used,
        sum_ns: i128::from(delay_ns) * i128::from(used),
        deviation_ns: Some(0.0),
        half_width_ns: None,
        order: None,
        order_range: None,
    });
    let sample = level.map(|level| {
        let level = SampleLevel::from_number(level).unwrap();
        let packet = |number: u64| SampledDelay {
            delay: Delay::from_nanos(delay_ns + number as i64 % 2 * 1_000),
            time: Timestamp::from_nanos(number as i64),
            flow: 0,
            reach: level,
            level,
        };
        Box::new(DelaySample::new((0..packets).map(packet).collect()))
    });
    Estimate {
        scope: Scope::All,
        span: span(0, SECOND),
        evidence: Evidence { packets, used, lost, ..Evidence::default() },
        delay,
        reason: delay.is_none().then(|| "nothing came through".to_owned()),
        sample,
        crossings: None,
    }
}

/// One minute of these epochs, and what it comes to.
#[track_caller]
fn check(measure: Measure, epochs: &[Estimate], expected: Result<f64, &str>) {
    let mut window = Window::new(MINUTE, measure, THRESHOLDS);
    for (number, epoch) in epochs.iter().enumerate() {
        assert_eq!(window.add(span(number as i64 * SECOND, SECOND), epoch, 10), None);
    }
    let reading = window.add(span(MINUTE, SECOND), &epochs[0], 10).expect("the minute is over");
    assert_eq!(reading.epochs, epochs.len() as u64);
    assert_eq!(reading.span, span(0, MINUTE));
    match (reading.value, expected) {
        (Ok(value), Ok(expected)) => {
            // Within half a bucket of a histogram.
            assert!((value - expected).abs() <= expected * 0.0111, "{value} for {expected}");
        }
        (Err(reason), Err(expected)) => assert!(reason.contains(expected), "{reason}"),
        (value, expected) => panic!("{value:?} for {expected:?}"),
    }
}

#[test]
fn sums_are_compared_not_means() {
    let epochs = [epoch(30, Some(0), 1_000_000, None), epoch(10, Some(0), 5_000_000, None)];
    check(Measure::Mean, &epochs, Ok(2_000_000.0));
    let epochs = [epoch(30, Some(1), 1_000, None), epoch(10, Some(3), 1_000, None)];
    check(Measure::Loss, &epochs, Ok(0.1));
    check(Measure::Gaps, &epochs, Ok(0.0));
}

#[test]
fn what_is_not_known_has_a_reason() {
    check(Measure::Mean, &[epoch(4, Some(0), 1_000, None)], Err("4 packets are too few"));
    check(Measure::Loss, &[epoch(20, None, 1_000, None)], Err("loss is unknown"));
    let between = |min, max| {
        let mut bounded = epoch(1_000, None, 1_000, None);
        bounded.limit_loss(Some(LossRange { min, max }), "drops");
        bounded
    };
    check(Measure::Loss, &[between(0, 20)], Ok(0.02));
    check(Measure::Loss, &[between(21, 90)], Ok(0.021));
    check(Measure::Loss, &[between(0, 21)], Err("drops: loss is between 0 and 21"));
    // Certain loss beside it, which the drops cannot explain.
    check(Measure::Loss, &[epoch(1_000, Some(90), 1_000, None), between(0, 21)], Ok(0.045));
    check(Measure::P95, &[epoch(20, Some(0), 1_000, None)], Err("need the algorithm sample"));
    check(Measure::P95, &[epoch(20, Some(0), 1_000, Some(3))], Err("too few: p95 needs 72"));
    check(Measure::Jitter, &[epoch(20, Some(0), 1_000, None)], Err("jitter is unknown"));
    let nothing = epoch(20, Some(20), 0, None);
    check(Measure::Mean, &[nothing], Err("0 packets are too few"));
}

#[test]
fn samples_tell_percentiles_and_jitter() {
    let sampled = [epoch(60, Some(0), 1_000_000, Some(3)), epoch(40, Some(0), 9_000_000, Some(3))];
    check(Measure::P50, &sampled, Ok(1_000_000.0));
    check(Measure::P95, &sampled, Ok(9_000_000.0));
    check(Measure::Jitter, &sampled, Ok(1_000.0));
    // All packets are in the sample: nothing is left to doubt.
    check(Measure::P99, &[epoch(20, Some(0), 1_000_000, Some(0))], Ok(1_000_000.0));
    let holed = [epoch(60, Some(0), 1_000, Some(3)), epoch(40, Some(0), 1_000, None)];
    check(Measure::P50, &holed, Err("need the algorithm sample"));
}

#[test]
fn gaps_end_stretches_and_one_speaks_for_many() {
    let mut window = Window::new(MINUTE, Measure::Gaps, THRESHOLDS);
    let known = epoch(20, Some(0), 1_000, None);
    assert_eq!(window.add(span(0, SECOND), &known, 10), None);
    let readings = window.add_gap(span(30 * SECOND, 4 * MINUTE), 240, 10);
    let ends: Vec<i64> = readings.iter().map(|reading| reading.span.end.as_nanos()).collect();
    assert_eq!(ends, [MINUTE - 1, 4 * MINUTE - 1], "the first, and the last that is over");
    assert_eq!(readings[1].value, Ok(1.0));
    let mut window = Window::new(MINUTE, Measure::Mean, THRESHOLDS);
    assert_eq!(window.add(span(0, SECOND), &known, 10), None);
    let readings = window.add_gap(span(30 * SECOND, 2 * MINUTE), 120, 10);
    assert!(readings[0].value.is_ok());
    assert!(readings[1].value.is_err());
    // What comes late changes nothing that was reported.
    assert_eq!(window.add(span(0, SECOND), &known, 10), None);
}

#[test]
fn an_epoch_that_comes_late_closes_its_gap_while_its_window_is_open() {
    let known = epoch(20, Some(0), 1_000, None);
    let mut window = Window::new(MINUTE, Measure::Gaps, THRESHOLDS);
    assert_eq!(window.add(span(0, SECOND), &known, 10), None);
    assert_eq!(window.add_gap(span(SECOND, 3 * SECOND), 3, 10), vec![]);
    assert!(window.add_late(span(2 * SECOND, SECOND), &known));
    let reading = window.add(span(MINUTE, SECOND), &known, 10).expect("the minute is over");
    assert_eq!((reading.epochs, reading.gaps, reading.value), (2, 2, Ok(0.5)));
    // Of one that is over, nothing changes.
    assert!(!window.add_late(span(3 * SECOND, SECOND), &known));
    let reading = window.add(span(2 * MINUTE, SECOND), &known, 10).expect("the minute is over");
    assert_eq!((reading.epochs, reading.gaps), (1, 0));
}

/// Round trips of a minute: so many of 10 ms, and of 90 ms.
fn minute_of(short: u64, long: u64, minimum: u64) -> Result<f64, String> {
    let mut times = Histogram::new(640);
    (0..short).for_each(|_| times.add(10_000_000, 1.0));
    (0..long).for_each(|_| times.add(90_000_000, 1.0));
    let estimate = RoundTripEstimate {
        scope: Scope::All,
        kind: RoundTripKind::TcpHandshake,
        part: None,
        requests: None,
        responses: None,
        matched: short + long,
        ambiguous: None,
        weighted: (short + long) as f64,
        times: times.times(),
        horizon_ns: None,
        forgotten_flows: None,
        first_byte: None,
        spin_use: None,
        distribution: Some(Box::new(times)),
    };
    let window = Window::new(MINUTE, Measure::Share, THRESHOLDS);
    let mut window = window.longer_than(50_000_000);
    assert_eq!(window.add_round_trips(span(0, SECOND), Some(&estimate), minimum), None);
    assert_eq!(window.add_round_trips(span(SECOND, SECOND), None, minimum), None);
    let reading = window.add_round_trips(span(MINUTE, SECOND), None, minimum).unwrap();
    assert_eq!((reading.epochs, reading.packets), (2, short + long));
    reading.value
}

#[test]
fn few_slow_round_trips_raise_nothing() {
    // Above 2 % for certain, below it for certain, and neither.
    assert!(minute_of(90, 10, 1).unwrap() > 0.02);
    assert!(minute_of(1_000, 1, 1).unwrap() < 0.02);
    assert!(minute_of(99, 1, 1).unwrap_err().contains("between"));
    assert!(minute_of(0, 1, 1).unwrap() > 0.02, "one of one: 2.5 % at least");
    assert!(minute_of(90, 10, 101).unwrap_err().contains("too few"));
    assert!(minute_of(0, 0, 1).unwrap_err().contains("too few"));
}

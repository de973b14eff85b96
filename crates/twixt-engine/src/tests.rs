mod bounds;
mod clocks;
mod discovery;
mod late;
mod percentiles;
mod replay;

use std::collections::BTreeMap;

use expect_test::{Expect, expect};
use twixt_measure::{Meter, MeterConfig, Sealed};
use twixt_model::{
    Batch, Delay, Detail, EpochRule, FlowHash, Observation, PacketDigest, PointId, Segment,
    Timestamp,
};
use twixt_synopsis::{AnySynopsis, Purpose, find};

use super::*;

/// Epochs of a second, guard of a tenth.
pub(super) const SECOND_NS: i64 = 1_000_000_000;
pub(super) const MS: i64 = 1_000_000;
/// Packets per second of simulated traffic.
const RATE: i64 = 400;

/// A point, and how it sees packets that all leave at the same place.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) point: &'static str,
    /// Later than where they leave, at least; up to as much again at random.
    pub(super) delay_ns: i64,
    /// How far its clock is ahead.
    pub(super) clock_ns: i64,
    /// Every so-manieth packet does not come.
    pub(super) lost: Option<u64>,
    /// Only every so-manieth packet is there at all.
    pub(super) sparse: u64,
    /// Added to digests: other than 0, the packets are others.
    pub(super) stream: u64,
    pub(super) run: u64,
    pub(super) clock_bound: Option<Delay>,
}

impl Seen {
    pub(super) fn at(point: &'static str, delay_ns: i64) -> Self {
        Self {
            point,
            delay_ns,
            clock_ns: 0,
            lost: None,
            sparse: 1,
            stream: 0,
            run: 1,
            clock_bound: None,
        }
    }

    pub(super) fn clock(self, clock_ns: i64) -> Self {
        Self { clock_ns, ..self }
    }
}

/// What depends on a number as if drawn at random.
pub(super) fn mixed(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// The packets that a point sees of those that leave in these seconds.
pub(super) fn packets(seen: &Seen, seconds: std::ops::Range<i64>) -> Vec<Observation> {
    let mut packets = Vec::new();
    for number in seconds.start * RATE..seconds.end * RATE {
        let digest = mixed(number as u64 ^ (seen.stream << 40));
        if !mixed(digest).is_multiple_of(seen.sparse) {
            continue;
        }
        if seen.lost.is_some_and(|lost| digest.is_multiple_of(lost)) {
            continue;
        }
        let (spread, jitter) = (SECOND_NS / RATE, mixed(digest ^ 1) as i64 & i64::MAX);
        let left_ns = number * spread + jitter % spread;
        let varying_ns = mixed(digest ^ 2) as i64 & i64::MAX;
        let delay_ns = seen.delay_ns + varying_ns % seen.delay_ns.max(1);
        packets.push(Observation {
            time: Timestamp::from_nanos(left_ns + delay_ns + seen.clock_ns),
            digest: PacketDigest(digest),
            flow: FlowHash(digest % 7),
            length: 100,
            ..Observation::default()
        });
    }
    packets.sort_unstable();
    packets
}

/// All epochs of a point that are whole.
pub(super) fn seal(seen: &Seen, seconds: std::ops::Range<i64>, algorithm: &str) -> Vec<Sealed> {
    let start = find(Purpose::Delay, algorithm).unwrap().start;
    seal_with(seen, seconds, start(&toml::Table::new()).unwrap())
}

pub(super) fn seal_with(
    seen: &Seen,
    seconds: std::ops::Range<i64>,
    synopsis: Box<dyn AnySynopsis>,
) -> Vec<Sealed> {
    let rule = EpochRule::every(SECOND_NS).unwrap();
    let config = MeterConfig {
        domain: "lab".to_owned(),
        run: seen.run,
        clock_bound: seen.clock_bound,
        ..MeterConfig::new(PointId(seen.point.to_owned()), rule)
    };
    let mut meter = Meter::new(config, synopsis).unwrap();
    for batch in packets(seen, seconds).chunks(64) {
        let details = vec![Detail::default(); batch.len()];
        meter.observe(Batch { observations: batch, details: &details });
    }
    std::iter::from_fn(|| meter.poll()).collect()
}

pub(super) fn segment(upstream: &str, downstream: &str) -> SegmentConfig {
    let point = |name: &str| PointId(name.to_owned());
    let segment = Segment { upstream: point(upstream), downstream: point(downstream) };
    SegmentConfig { segment, class: None }
}

pub(super) fn config(segments: &[(&str, &str)]) -> EngineConfig {
    EngineConfig {
        segments: segments.iter().map(|(up, down)| segment(up, down)).collect(),
        minute: Delay::from_nanos(5 * SECOND_NS),
        ..EngineConfig::default()
    }
}

/// Epochs in the order in which they would come, if agents sent them at once.
pub(super) fn in_order(points: Vec<Vec<Sealed>>, clocks_ns: &[i64]) -> Vec<Sealed> {
    let mut all: Vec<(i64, Sealed)> = Vec::new();
    for (sealed, clock_ns) in points.into_iter().zip(clocks_ns) {
        all.extend(
            sealed.into_iter().map(|sealed| {
                (sealed.rule.span_of(sealed.epoch).end.as_nanos() - clock_ns, sealed)
            }),
        );
    }
    all.sort_by_key(|(end_ns, _)| *end_ns);
    all.into_iter().map(|(_, sealed)| sealed).collect()
}

pub(super) fn drain(engine: &mut Engine) -> Vec<EngineEvent> {
    std::iter::from_fn(|| engine.poll()).collect()
}

pub(super) fn at(second: i64) -> Timestamp {
    Timestamp::from_nanos(second * SECOND_NS)
}

/// Hands epochs over one by one, then lets patience end.
pub(super) fn run(engine: &mut Engine, epochs: Vec<Sealed>) -> Vec<EngineEvent> {
    for sealed in epochs {
        engine.receive(sealed);
    }
    engine.advance(at(1_000));
    engine.advance(at(1_010));
    engine.advance(at(1_020));
    drain(engine)
}

pub(super) fn show(event: &EngineEvent) -> String {
    match event {
        EngineEvent::Estimated(estimate) => {
            let first = &estimate.estimates[0];
            let mean = first.delay.map(|delay| delay.mean().as_nanos() as f64 / 1e6);
            let mean = mean.map_or("unknown".to_owned(), |ms| format!("{ms:.2} ms"));
            let lost = first.evidence.lost.map_or("unknown".to_owned(), |lost| lost.to_string());
            let (segment, epoch) = (&estimate.series.segment, estimate.epoch.0);
            let packets = first.evidence.packets;
            format!("{segment} epoch {epoch}: {mean}, {packets} packets, lost {lost}")
        }
        EngineEvent::Observed(estimate) => {
            format!(
                "{} epoch {}: {} packets",
                estimate.point, estimate.epoch.0, estimate.counts.packets
            )
        }
        EngineEvent::ObservedSummary(estimate) => format!(
            "{} minute of {} epochs: {} packets",
            estimate.point, estimate.epochs, estimate.counts.packets
        ),
        EngineEvent::Gap(gap) => {
            let point = gap.point.as_ref().map_or(String::new(), |point| format!("{point}: "));
            let (segment, first, last) = (&gap.series.segment, gap.first.0, gap.last.0);
            format!("{segment} gap {first}-{last}: {point}{}", gap.reason)
        }
        EngineEvent::Warning(warning) => format!("warning: {}", warning.text),
        EngineEvent::MinuteOver(minute) => {
            format!("minute from {} s is over", minute.span.start.as_nanos() / SECOND_NS)
        }
    }
}

pub(super) fn list(events: &[EngineEvent]) -> String {
    events.iter().map(|event| show(event) + "\n").collect()
}

#[track_caller]
fn check(segments: &[(&str, &str)], epochs: Vec<Sealed>, expected: &Expect) {
    let mut engine = Engine::new(config(segments));
    expected.assert_eq(&list(&run(&mut engine, epochs)));
}

fn two_points(seconds: std::ops::Range<i64>) -> Vec<Sealed> {
    let up = seal(&Seen::at("up", 0), seconds.clone(), "lda");
    let down = seal(&Seen { lost: Some(50), ..Seen::at("down", 5 * MS) }, seconds, "lda");
    in_order(vec![up, down], &[0, 0])
}

#[test]
fn epochs_become_estimates_and_minutes() {
    check(
        &[("up", "down")],
        two_points(100..108),
        &expect![[r#"
            up > down epoch 100: 7.51 ms, 400 packets, lost unknown
            up > down epoch 101: 7.48 ms, 400 packets, lost 12
            up > down epoch 102: 7.53 ms, 400 packets, lost 11
            up > down epoch 103: 7.45 ms, 400 packets, lost 7
            up > down epoch 104: 7.47 ms, 400 packets, lost 6
            minute from 100 s is over
            up > down epoch 105: 7.56 ms, 400 packets, lost 8
            up > down epoch 106: 7.44 ms, 400 packets, lost unknown
            up > down gap 107-107: up: its epoch did not arrive in time
        "#]],
    );
}

#[test]
fn a_point_in_the_middle_is_an_end_of_two_segments() {
    let seconds = 100..103;
    let points = [("a", 0), ("b", 2 * MS), ("c", 9 * MS)];
    let sealed =
        points.map(|(point, delay_ns)| seal(&Seen::at(point, delay_ns), seconds.clone(), "lda"));
    let epochs = in_order(sealed.into(), &[0; 3]);
    check(
        &[("a", "b"), ("b", "c")],
        epochs,
        &expect![[r#"
            a > b epoch 100: 2.98 ms, 400 packets, lost unknown
            b > c epoch 100: 10.17 ms, 399 packets, lost unknown
            b > c epoch 101: 10.57 ms, 400 packets, lost 0
            a > b epoch 101: 3.02 ms, 400 packets, lost unknown
            a > b gap 102-102: a: its epoch did not arrive in time
            b > c epoch 102: 10.56 ms, 400 packets, lost unknown
        "#]],
    );
}

#[test]
fn what_is_missing_is_a_gap() {
    let mut epochs = two_points(100..109);
    let is = |sealed: &Sealed, point: &str, epoch: i64| {
        sealed.point.0 == point && sealed.epoch.0 == epoch
    };
    epochs.retain(|sealed| !is(sealed, "down", 101) && !(104..=105).contains(&sealed.epoch.0));
    check(
        &[("up", "down")],
        epochs,
        &expect![[r#"
            up > down epoch 100: 7.52 ms, 400 packets, lost unknown
            up > down gap 101-101: down: its epoch did not arrive in time
            up > down epoch 102: 7.53 ms, 400 packets, lost unknown
            up > down epoch 103: 7.45 ms, 400 packets, lost unknown
            up > down gap 104-105: no epoch arrived from either point
            minute from 100 s is over
            up > down epoch 106: 7.44 ms, 400 packets, lost unknown
            up > down epoch 107: 7.47 ms, 400 packets, lost unknown
            up > down gap 108-108: up: its epoch did not arrive in time
        "#]],
    );
}

/// Large flows at one point: epochs at once, minutes from synopses combined.
#[test]
fn one_point_tells_by_itself() {
    let heavy = |seconds| {
        let start = find(Purpose::Heavy, "exact").unwrap().start;
        seal_with(&Seen::at("up", 0), seconds, start(&toml::Table::new()).unwrap())
    };
    let mut engine = Engine::new(config(&[]));
    let mut epochs: Vec<Sealed> = heavy(100..107);
    epochs.swap(1, 3);
    epochs.extend(heavy(100..103));
    let events = run(&mut engine, epochs);
    assert_eq!(engine.counts().duplicates, 2);
    expect![[r#"
        up epoch 100: 400 packets
        up epoch 103: 400 packets
        up epoch 102: 400 packets
        up epoch 101: 400 packets
        up epoch 104: 400 packets
        up epoch 105: 400 packets
        up minute of 5 epochs: 2000 packets
        up minute of 1 epochs: 400 packets
    "#]]
    .assert_eq(&list(&events));
    let EngineEvent::ObservedSummary(minute) = &events[6] else { panic!("{:?}", events[6]) };
    let Conclusions::Heavy(flows) = &minute.conclusions else { panic!("{minute:?}") };
    assert_eq!(flows.iter().map(|flow| flow.packets).sum::<u64>(), 2_000);
    let mut again = Engine::resume(config(&[]), engine.progress());
    assert_eq!(list(&run(&mut again, heavy(100..107))), "");
    assert_eq!(again.counts().replayed, 6);
}

#[test]
fn one_point_that_goes_mad_leaves_room() {
    let mut engine = Engine::new(config(&[("up", "down")]));
    let sealed = seal(&Seen::at("up", 0), 100..102, "lda").remove(0);
    for class in 0..SERIES_PER_SEGMENT_MAX + 5 {
        engine.receive(Sealed { class: class.to_string(), ..sealed.clone() });
    }
    assert_eq!(engine.counts().series_refused, 5);
}

/// Late, twice, and one point ahead of the other: each sends its own epochs in order.
#[test]
fn order_and_repetition_do_not_matter() {
    let sorted = |epochs: Vec<Sealed>| {
        let mut engine = Engine::new(config(&[("up", "down")]));
        let events = run(&mut engine, epochs);
        let mut reported: Vec<String> = list(&events).lines().map(str::to_owned).collect();
        reported.sort_unstable();
        reported
    };
    let in_order = sorted(two_points(100..108));
    for seed in 0..20 {
        let (mut ups, mut downs): (Vec<Sealed>, Vec<Sealed>) =
            two_points(100..108).into_iter().partition(|sealed| sealed.point.0 == "up");
        let mut epochs = Vec::new();
        for draw in 0.. {
            let drawn = mixed(seed * 1_000 + draw);
            let point = if drawn.is_multiple_of(2) { &mut ups } else { &mut downs };
            if !point.is_empty() {
                let sealed = point.remove(0);
                let times = 1 + usize::from(drawn.is_multiple_of(7));
                epochs.extend(std::iter::repeat_n(sealed, times));
            } else if ups.is_empty() && downs.is_empty() {
                break;
            }
        }
        assert_eq!(sorted(epochs), in_order, "seed {seed}");
    }
}

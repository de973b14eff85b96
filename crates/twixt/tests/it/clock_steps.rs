//! The clock of one point is stepped while both ends of a segment are observed: what the agent
//! seals, through its own thread, and what the collector's engine makes of it.
//!
//! A machine's clock cannot be set for a test, and no namespace has one of its own. So frames and
//! clocks come from a script, in place of the interface; all that is behind them is the agent's.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use twixt_agent::rehearsal::{Moment, rehearse};
use twixt_agent::{AgentConfig, DeliveryConfig, PointConfig, SpoolConfig};
use twixt_capture::LiveOptions;
use twixt_engine::{Engine, EngineConfig, EngineEvent, SegmentConfig};
use twixt_measure::Sealed;
use twixt_model::{DigestHash, DigestProfile, EpochRule, PointId, Segment, Timestamp};
use twixt_synopsis::{Purpose, find};
use twixt_wire::{Digester, HashKey};

use crate::support::Packet;

const MS: i64 = 1_000_000;
const SECOND: i64 = 1000 * MS;
/// When the script begins.
const START: i64 = 1_700_000_000 * SECOND;
/// How long it lasts, and how often frames are handed over.
const LENGTH: i64 = 40 * SECOND;
const TICK: i64 = 10 * MS;
/// A packet each so often; downstream sees it so much later.
const EVERY: i64 = 5 * MS;
const DELAY: i64 = 2 * MS;

/// By how much a clock is ahead from a moment on, counted from the start.
type Steps = &'static [(i64, i64)];

fn offset_at(steps: Steps, since_start: i64) -> i64 {
    let passed = steps.iter().rfind(|(from, _)| *from <= since_start);
    passed.map_or(0, |(_, offset)| *offset)
}

/// What one point sees, by a clock that is set.
fn script(delay: i64, steps: Steps) -> impl Iterator<Item = Moment> {
    (1..=LENGTH / TICK).map(move |tick| {
        let (from, to) = ((tick - 1) * TICK, tick * TICK);
        let sent = (from - delay).div_euclid(EVERY) + 1..=(to - delay).div_euclid(EVERY);
        let frame = |number: i64| {
            let since_start = number * EVERY + delay;
            let time = START + since_start + offset_at(steps, since_start);
            (Timestamp::from_nanos(time), frame_of(number))
        };
        Moment {
            steady: Duration::from_nanos(to as u64),
            wall: Timestamp::from_nanos(START + to + offset_at(steps, to)),
            frames: sent.filter(|number| *number >= 0).map(frame).collect(),
            dropped: 0,
        }
    })
}

/// The frame of a packet unlike all others.
pub(crate) fn frame_of(number: i64) -> Vec<u8> {
    let packet = Packet::udp("10.0.0.1:4000", "10.0.0.2:5000", number as u16);
    packet.payload(&number.to_be_bytes()).frame()
}

fn agent(point: &str) -> AgentConfig {
    let digester =
        Digester::new(DigestProfile::Default, DigestHash::Xxh3, 32, HashKey::from_seed(1));
    let start = |name: &str| (find(Purpose::Delay, name).unwrap().start)(&Default::default());
    AgentConfig {
        domain: "lab".to_owned(),
        rule: EpochRule::every(SECOND).unwrap(),
        guard: None,
        digester,
        classes: Vec::new(),
        synopses: vec![start("exact").unwrap(), start("lda").unwrap()],
        points: vec![PointConfig {
            name: point.to_owned(),
            interface: "none".to_owned(),
            options: LiveOptions::default(),
            filter: None,
            outer: false,
            threads: 1,
        }],
        spool: SpoolConfig { folder: "none".into(), bytes_max: u64::MAX },
        delivery: DeliveryConfig::default(),
        metrics: None,
        user: None,
    }
}

/// What a point seals, with the time at which it is on its way.
pub(crate) fn sealed(point: &str, script: impl Iterator<Item = Moment>) -> Vec<(Duration, Sealed)> {
    let mut all = Vec::new();
    rehearse(&agent(point), script, |at, sealed| all.push((at, sealed))).unwrap();
    all
}

/// What became of the epochs of upstream, by algorithm.
#[derive(Debug, Default)]
struct Outcome {
    /// Epoch and mean delay.
    estimated: BTreeMap<i64, i64>,
    gaps: BTreeSet<i64>,
}

/// Both points through their agents, and what they sealed through the engine as it comes.
fn outcome(up: &[(Duration, Sealed)], down: &[(Duration, Sealed)]) -> BTreeMap<String, Outcome> {
    let point = |name: &str| PointId(name.to_owned());
    let segment = Segment { upstream: point("up"), downstream: point("down") };
    let segments = vec![SegmentConfig { segment, class: None }];
    let mut engine = Engine::new(EngineConfig { segments, ..EngineConfig::default() });
    let mut arriving: Vec<&(Duration, Sealed)> = up.iter().chain(down).collect();
    arriving.sort_by_key(|(at, _)| *at);
    for (at, sealed) in &arriving {
        // As they travel.
        engine.receive(Sealed::from_bytes(&sealed.to_bytes()).unwrap());
        engine.advance(Timestamp::from_nanos(START + at.as_nanos() as i64));
    }
    for second in 0..30 {
        engine.advance(Timestamp::from_nanos(START + LENGTH + second * SECOND));
    }
    let mut outcomes: BTreeMap<String, Outcome> = BTreeMap::new();
    while let Some(event) = engine.poll() {
        match event {
            EngineEvent::Estimated(pair) => {
                let outcome = outcomes.entry(pair.series.algorithm.to_owned()).or_default();
                let estimate = &pair.estimates[0];
                let lost = estimate.evidence.lost;
                assert!(lost.is_none_or(|lost| lost == 0), "nothing was lost: {pair:?}");
                assert_eq!(estimate.evidence.packets, (SECOND / EVERY) as u64, "{pair:?}");
                let mean = estimate.delay.unwrap().mean().as_nanos();
                let before = outcome.estimated.insert(pair.epoch.0, mean);
                assert_eq!(before, None, "told twice: {pair:?}");
            }
            EngineEvent::Gap(gap) => {
                let outcome = outcomes.entry(gap.series.algorithm.to_owned()).or_default();
                outcome.gaps.extend(gap.first.0..=gap.last.0);
            }
            _ => {}
        }
    }
    outcomes
}

/// The means that can be measured: the delay, and by how much the clocks differ at some moment.
fn possible_means(up_steps: Steps, down_steps: Steps) -> BTreeSet<i64> {
    let difference = |at: i64| offset_at(down_steps, at) - offset_at(up_steps, at);
    (0..LENGTH / SECOND).map(|second| DELAY + difference(second * SECOND)).collect()
}

/// The epoch that a clock shows in the midst of a second of the script, and whether it has shown
/// that one before.
fn number_of(steps: Steps, second: i64) -> (i64, bool) {
    let shown = |second: i64| {
        let at = second * SECOND + SECOND / 2;
        (START + at + offset_at(steps, at)).div_euclid(SECOND)
    };
    (shown(second), (0..second).any(|before| shown(before) == shown(second)))
}

/// Checks that estimates are true, at least so many, and that whatever else happened is reported as
/// a gap. A clock that is set far back shows numbers that were concluded long ago: then the other
/// point's numbers tell.
#[track_caller]
fn check(up_steps: Steps, down_steps: Steps, estimates_min: usize) {
    let means = possible_means(up_steps, down_steps);
    let up = sealed("up", script(0, up_steps));
    let down = sealed("down", script(DELAY, down_steps));
    check_numbers(&up);
    check_numbers(&down);
    for (algorithm, Outcome { estimated, gaps }) in outcome(&up, &down) {
        let wrong: Vec<_> = estimated.iter().filter(|(_, mean)| !means.contains(mean)).collect();
        assert!(wrong.is_empty(), "{algorithm}: {wrong:?}");
        assert!(estimated.len() >= estimates_min, "{algorithm}: {estimated:?} {gaps:?}");
        let untold: Vec<i64> = (1..LENGTH / SECOND - 2)
            .filter(|&second| {
                let is_told =
                    |number: i64| estimated.contains_key(&number) || gaps.contains(&number);
                let (up, again) = number_of(up_steps, second);
                let (down, _) = number_of(down_steps, second);
                !(is_told(down) || is_told(up) && !again)
            })
            .collect();
        assert_eq!(untold, [0; 0], "{algorithm}: {estimated:?} {gaps:?}");
        println!("{algorithm}: {} estimated, {} gaps", estimated.len(), gaps.len());
    }
}

/// Checks that no number stands for two epochs that could be compared.
#[track_caller]
fn check_numbers(sealed: &[(Duration, Sealed)]) {
    let mut whole = BTreeSet::new();
    for (_, sealed) in sealed.iter().filter(|(_, sealed)| !sealed.torn) {
        assert!(whole.insert((sealed.synopsis.name(), sealed.epoch)), "{:?} twice", sealed.epoch);
        assert_eq!(sealed.packets, (SECOND / EVERY) as u64, "{:?} is not whole", sealed.epoch);
    }
}

const AT: i64 = 13 * SECOND + 370 * MS;

#[test]
fn clocks_that_nobody_sets_are_no_trouble() {
    check(&[], &[], 37);
}

#[test]
fn one_clock_is_set_by_whole_epochs() {
    for steps in [
        &[(AT, 7 * SECOND)] as Steps,
        &[(AT, -7 * SECOND)],
        &[(AT, 3600 * SECOND)],
        &[(AT, -3600 * SECOND)],
        &[(AT, 7 * SECOND), (AT + 9 * SECOND, 0)],
        &[(AT, -3 * SECOND), (AT + 9 * SECOND, 0)],
    ] {
        check(steps, &[], 8);
        check(&[], steps, 8);
    }
}

#[test]
fn both_clocks_are_set_as_on_one_machine() {
    for steps in [&[(AT, 7 * SECOND)] as Steps, &[(AT, -7 * SECOND)], &[(AT, 1234 * MS)]] {
        check(steps, steps, 20);
    }
}

#[test]
fn a_clock_that_is_set_by_half_an_epoch_ends_estimates() {
    for steps in [&[(AT, 500 * MS)] as Steps, &[(AT, -500 * MS)], &[(AT, 7500 * MS)]] {
        check(steps, &[], 10);
        check(&[], steps, 10);
    }
}

#[test]
fn a_clock_that_is_set_a_little_is_wrong_by_that() {
    // Within the guard of a tenth of an epoch, so epochs can be compared; this cannot be
    // distinguished from a longer delay.
    const LITTLE: i64 = 60 * MS;
    check(&[], &[(AT, LITTLE)], 20);
}

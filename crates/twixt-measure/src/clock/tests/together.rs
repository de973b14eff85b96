//! Clock, path and queue, in all combinations: what is claimed holds.

use super::super::*;
use super::world::{MS, Noise, Path, World};

/// What came of one story.
#[derive(Clone, Copy, Debug, Default)]
struct Outcome {
    /// What was claimed of the skew, and whether it holds.
    skew_sure: bool,
    skew_holds: bool,
    offset_known: bool,
    offset_holds: bool,
    steps: usize,
    /// A delay without what the clock is ahead is negative, beyond the stated error.
    negative: bool,
}

/// Diagnoses a story. `skew_ppm` is the true one; `None` where it has no single one.
fn tell(world: &World, skew_ppm: Option<f64>) -> Outcome {
    let [there, back] = world.points();
    let strip = |points: &[(f64, ClockPoint)]| -> Vec<ClockPoint> {
        points.iter().map(|(_, point)| *point).collect()
    };
    let (forward, backward) = (strip(&there), strip(&back));
    let report = diagnose(&forward, &backward).expect("packets went downstream");
    let sure = report.sure_skew();
    let skew_holds = match (sure, report.skew, skew_ppm) {
        (Some(skew), _, Some(truth)) | (None, Some(skew), Some(truth)) => {
            (skew.ppm - truth).abs() <= skew.error_ppm
        }
        (Some(_), _, None) => false,
        _ => true,
    };
    let mut outcome = Outcome {
        skew_sure: sure.is_some(),
        skew_holds,
        offset_known: report.offset.is_some(),
        offset_holds: true,
        steps: report.steps.len(),
        negative: false,
    };
    if let Some(offset) = report.offset {
        let bound = offset.error_bound.as_nanos() as f64 + 1.0;
        // Times that a clock which was set back shows twice, and packets under way at a step, are
        // left to the tests of steps.
        let sharp = |second: f64| {
            let around = [-4.1, -3.0, -2.0, -1.0, -0.3, -0.1, 0.1, 0.3, 1.0, 2.0, 3.0, 4.1]
                .map(|off| world.ahead_ns(second + off));
            around.iter().any(|ns| (ns - world.ahead_ns(second)).abs() > 3.0 * MS)
        };
        for (second, point) in there.iter().chain(&back).filter(|(second, _)| !sharp(*second)) {
            let said = report.ahead(point.time).as_nanos() as f64;
            let off = (said - world.ahead_ns(*second)).abs();
            outcome.offset_holds &= off <= bound;
        }
        let left = |point: &ClockPoint| (point.difference - report.ahead(point.time)).as_nanos();
        let told = |points: &[(f64, ClockPoint)]| -> Vec<f64> {
            let told = points.iter().filter(|(second, _)| !sharp(*second));
            told.map(|(_, point)| left(point) as f64).collect()
        };
        outcome.negative |= told(&there).iter().any(|left| *left < -bound);
        outcome.negative |= told(&back).iter().any(|left| *left > bound);
    }
    outcome
}

struct Row {
    name: String,
    all: u64,
    sure: u64,
    skew_wrong: u64,
    offset: u64,
    offset_wrong: u64,
    negative: u64,
    steps: Vec<usize>,
}

fn run(name: &str, skew_ppm: Option<f64>, seeds: u64, world: impl Fn() -> World) -> Row {
    let first = twixt_testing::seed(1) % (1 << 32);
    let mut row = Row {
        name: name.to_owned(),
        all: 0,
        sure: 0,
        skew_wrong: 0,
        offset: 0,
        offset_wrong: 0,
        negative: 0,
        steps: Vec::new(),
    };
    for seed in first..first + seeds {
        let outcome = tell(&world().seed(seed), skew_ppm);
        row.all += 1;
        row.sure += u64::from(outcome.skew_sure);
        row.skew_wrong += u64::from(!outcome.skew_holds);
        row.offset += u64::from(outcome.offset_known);
        row.offset_wrong += u64::from(!outcome.offset_holds);
        row.negative += u64::from(outcome.negative);
        row.steps.push(outcome.steps);
    }
    println!(
        "{:<58} sure {:>2}/{} wrong {:>2}; offset {:>2} wrong {:>2} negative {:>2}; steps {:?}",
        row.name,
        row.sure,
        row.all,
        row.skew_wrong,
        row.offset,
        row.offset_wrong,
        row.negative,
        row.steps
    );
    row
}

/// What the clock does.
#[derive(Clone, Copy, Debug)]
enum Clock {
    Right,
    Skew(f64),
    /// At half of the time, in milliseconds, and a skew.
    Step(f64, f64),
    UpStep(f64),
    Twice,
    Bends,
}

impl Clock {
    fn set(self, world: World) -> World {
        let half = world.seconds / 2.0;
        let third = world.seconds / 3.0;
        match self {
            Self::Right => world,
            Self::Skew(ppm) => world.down(move |second| 5.0 * MS + second * ppm * 1e3),
            Self::Step(ms, ppm) => world.down(move |second| {
                second * ppm * 1e3 + if second >= half { ms * MS } else { 0.0 }
            }),
            Self::UpStep(ms) => world.up(move |second| if second >= half { ms * MS } else { 0.0 }),
            Self::Twice => world.down(move |second| match second {
                second if second < third => 0.0,
                second if second < 2.0 * third => 20.0 * MS,
                _ => -13.0 * MS,
            }),
            Self::Bends => world.down(move |second| 50e3 * (half - (second - half).abs())),
        }
    }

    fn skew(self) -> Option<f64> {
        match self {
            Self::Skew(ppm) | Self::Step(_, ppm) => Some(ppm),
            Self::Bends => None,
            _ => Some(0.0),
        }
    }

    fn steps(self) -> usize {
        match self {
            Self::Step(..) | Self::UpStep(_) => 1,
            Self::Twice => 2,
            _ => 0,
        }
    }
}

/// What the network does: to packets that go downstream, and to others.
#[derive(Clone, Copy, Debug)]
enum Network {
    Still,
    Heavy,
    Busy,
    Route,
    RouteBack,
    RouteBoth,
    Ramp,
    RampBoth,
    /// A long queue that drains until the end.
    Draining,
    Filling,
    FillingBoth,
}

impl Network {
    const ALL: [Self; 11] = [
        Self::Still,
        Self::Heavy,
        Self::Busy,
        Self::Route,
        Self::RouteBack,
        Self::RouteBoth,
        Self::Ramp,
        Self::RampBoth,
        Self::Draining,
        Self::Filling,
        Self::FillingBoth,
    ];

    fn paths(self, seconds: f64) -> [Path; 2] {
        let light = || [Path::new(1.0, Noise::Light), Path::new(2.0, Noise::Light)];
        let of = |there, back| [Path::new(1.0, there), Path::new(2.0, back)];
        let route = move |second: f64| if second >= seconds / 2.0 { 3.0 * MS } else { 0.0 };
        let ramp = move |second: f64| second / seconds * 4.3 * MS;
        let [there, back] = light();
        match self {
            Self::Still => [there, back],
            Self::Heavy => of(Noise::Heavy, Noise::Heavy),
            Self::Busy => of(Noise::Queue(0.8), Noise::Queue(0.6)),
            Self::Route => [there.with(route), back],
            Self::RouteBack => [there, back.with(route)],
            Self::RouteBoth => [there.with(route), back.with(route)],
            Self::Ramp => [there.with(ramp), back],
            Self::RampBoth => [there.with(ramp), back.with(ramp)],
            Self::Draining => {
                let drains = move |second: f64| (seconds - second) * 958e3;
                [Path { floor_ns: 2600.0, ..there.with(drains) }, Path { floor_ns: 1900.0, ..back }]
            }
            Self::Filling => of(Noise::Filling(1.02), Noise::Light),
            Self::FillingBoth => of(Noise::Filling(1.02), Noise::Filling(1.01)),
        }
    }
}

fn world(clock: Clock, network: Network, seconds: f64) -> World {
    let [there, back] = network.paths(seconds);
    clock.set(World::new(seconds, there, Some(back)))
}

const CLOCKS: [Clock; 12] = [
    Clock::Right,
    Clock::Skew(10.0),
    Clock::Skew(50.0),
    Clock::Skew(-500.0),
    Clock::Step(7.0, 0.0),
    Clock::Step(-7.0, 0.0),
    Clock::Step(-7.0, 50.0),
    Clock::Step(-2000.0, 0.0),
    Clock::Step(120_000.0, 0.0),
    Clock::UpStep(-2000.0),
    Clock::Twice,
    Clock::Bends,
];

/// Whether all that is claimed of these stories holds, in 99 of 100.
#[track_caller]
fn check_all(seconds: f64, seeds: u64, networks: &[Network]) {
    let (mut all, mut skew, mut offset, mut negative) = (0, 0, 0, 0);
    let mut surplus = Vec::new();
    for (clock, network) in
        CLOCKS.iter().flat_map(|&clock| networks.iter().map(move |&network| (clock, network)))
    {
        let name = format!("{seconds} s {clock:?} {network:?}");
        let row = run(&name, clock.skew(), seeds, || world(clock, network, seconds));
        negative += row.negative;
        all += row.all;
        skew += row.all - row.skew_wrong;
        offset += row.all - row.offset_wrong;
        let too_many = row.steps.iter().any(|&steps| steps > clock.steps());
        surplus.extend(too_many.then_some(row.name));
    }
    assert_eq!((negative, surplus), (0, Vec::new()));
    twixt_testing::check_coverage("skew", skew, all, 0.99);
    twixt_testing::check_coverage("offset", offset, all, 0.99);
}

#[test]
fn whatever_clocks_and_paths_do_in_ten_seconds_what_is_claimed_holds() {
    check_all(10.0, 2, &Network::ALL);
}

#[test]
fn whatever_clocks_and_paths_do_in_a_minute_what_is_claimed_holds() {
    use Network::{Busy, FillingBoth, Ramp, Route, Still};
    check_all(60.0, 1, &[Still, Busy, Route, Ramp, FillingBoth]);
}

/// How often a skew is found that shows, out of so many seeds.
#[track_caller]
fn check_found(ppm: f64, network: Network, both: bool, least: u64) {
    let seeds = 10;
    let name = format!("{ppm} ppm, {network:?}, {}", if both { "both ways" } else { "one way" });
    let row = run(&name, Some(ppm), seeds, || {
        let mut world = world(Clock::Skew(ppm), network, 10.0);
        world.backward = world.backward.filter(|_| both);
        world
    });
    assert_eq!(row.skew_wrong, 0, "{name}");
    assert!(row.sure >= least, "{name}: {} of {seeds}", row.sure);
}

/// As often as when each direction was judged by itself.
#[test]
fn a_true_skew_is_found() {
    for both in [true, false] {
        for ppm in [10.0, 50.0, 500.0] {
            for network in [Network::Still, Network::Heavy, Network::Busy] {
                check_found(ppm, network, both, 10);
            }
        }
    }
}

#[test]
fn a_longer_route_of_one_direction_is_no_skew_and_no_step() {
    for network in [Network::Route, Network::RouteBack, Network::RouteBoth] {
        let row =
            run(&format!("{network:?}"), Some(0.0), 30, || world(Clock::Right, network, 10.0));
        assert_eq!((row.sure, row.skew_wrong, row.steps.iter().sum::<usize>()), (0, 0, 0));
        assert_eq!((row.offset, row.offset_wrong), (30, 0));
    }
}

/// Steps of a clock are found where both directions show them, with their size, whichever clock was set.
#[track_caller]
fn check_step(clock: Clock, step_ms: f64) {
    for network in [Network::Still, Network::Heavy, Network::Busy, Network::Ramp] {
        let world = world(clock, network, 10.0);
        let [there, back] = world
            .points()
            .map(|points| -> Vec<ClockPoint> { points.iter().map(|(_, point)| *point).collect() });
        let report = diagnose(&there, &back).unwrap();
        let [step] = *report.steps.as_slice() else { panic!("{clock:?} {network:?}: {report:?}") };
        let off_ms = step.step.as_nanos() as f64 / MS - step_ms;
        // What each side's offset can be off: at most half of its shortest round trip of 3 ms,
        // and what the ramp of 4.3 ms adds to that.
        assert!(off_ms.abs() < 3.0, "{clock:?} {network:?}: {step:?}");
        let [before, after] = report.pieces.as_slice() else { panic!("{report:?}") };
        assert!(before.offset.is_some() && after.offset.is_some());
        // Seen from the other point it is the same.
        let turned = report.turned();
        assert_eq!(turned.steps.len(), 1);
        let sum = turned.steps[0].step + step.step;
        assert!(sum.as_nanos().abs() < 1000, "{sum:?}");
    }
}

#[test]
fn a_step_that_both_directions_show_is_one_whichever_clock_was_set() {
    for ms in [7.0, -7.0, -2000.0, 2000.0, 120_000.0, -120_000.0] {
        check_step(Clock::Step(ms, 0.0), ms);
        check_step(Clock::UpStep(ms), -ms);
    }
}

#[test]
fn one_direction_cannot_tell_a_step_from_another_path() {
    let alone = |ms: f64| {
        let world = world(Clock::Step(ms, 0.0), Network::Still, 10.0);
        let [there, _] = world.points();
        let points: Vec<ClockPoint> = there.iter().map(|(_, point)| *point).collect();
        diagnose(&points, &[]).unwrap()
    };
    for ms in [7.0, -7.0, 300.0] {
        let report = alone(ms);
        assert_eq!(report.steps, [], "{ms}");
        assert_eq!(report.sure_skew(), None, "{ms}");
        let [shift] = *report.shifts.as_slice() else { panic!("{ms}: {report:?}") };
        assert_eq!((shift.cause, shift.downstream), (ShiftCause::Unknown, true));
        assert!((shift.change.as_nanos() as f64 / MS - ms).abs() < 0.1, "{shift:?}");
    }
    // No path is so much longer than another.
    for ms in [-2000.0, 120_000.0] {
        let report = alone(ms);
        let [step] = *report.steps.as_slice() else { panic!("{ms}: {report:?}") };
        assert!((step.step.as_nanos() as f64 / MS - ms).abs() < 0.1, "{step:?}");
    }
}

/// Whatever is taken out of one direction is put into the other.
#[test]
fn the_sum_of_both_means_is_the_same_under_any_correction() {
    for clock in CLOCKS {
        for network in [Network::Still, Network::Busy, Network::Route, Network::Ramp] {
            let world = world(clock, network, 10.0);
            let [there, back] = world.points();
            let strip = |points: &[(f64, ClockPoint)]| -> Vec<ClockPoint> {
                points.iter().map(|(_, point)| *point).collect()
            };
            let report = diagnose(&strip(&there), &strip(&back)).unwrap();
            let turned = report.turned();
            for (number, piece) in report.pieces.iter().enumerate() {
                let span = piece.downstream;
                for share in 0..=10 {
                    let down = span.start
                        + Delay::from_nanos((span.end - span.start).as_nanos() / 10 * share);
                    let up = report.upstream_time(number, down);
                    // A packet that takes no time at all, there and back: both delays are zero.
                    let again = turned.upstream_time(number, up);
                    let sum = (up - up) + (again - down);
                    assert!(sum.as_nanos().abs() <= 2, "{clock:?} {network:?}: {sum:?}");
                }
            }
        }
    }
}

//! Restarts: nothing twice, nothing lost.

use proptest::prelude::*;

use super::*;

/// What a collector does: writes down, hands over, fetches, notes how far it came.
struct Collector {
    config: EngineConfig,
    log: Vec<Sealed>,
    engine: Engine,
    events: Vec<EngineEvent>,
    concluded: Vec<SeriesProgress>,
}

impl Collector {
    fn new() -> Self {
        let config = config(&[("up", "down")]);
        let engine = Engine::new(config.clone());
        Self { config, log: Vec::new(), engine, events: Vec::new(), concluded: Vec::new() }
    }

    fn receive(&mut self, sealed: Sealed, now: Timestamp) {
        self.log.push(sealed.clone());
        self.engine.receive(sealed);
        self.tick(now);
    }

    fn tick(&mut self, now: Timestamp) {
        self.engine.advance(now);
        self.events.extend(drain(&mut self.engine));
        self.concluded = self.engine.progress();
    }

    /// Dies, and starts again from what it wrote.
    fn restart(&mut self) {
        self.engine = Engine::resume(self.config.clone(), self.concluded.clone());
        let known = |sealed: &Sealed| {
            let tag = sealed.synopsis.tag();
            self.concluded.iter().find(|concluded| concluded.series.tag == tag)
        };
        let needed = |sealed: &&Sealed| {
            known(sealed).is_none_or(|concluded| {
                let later = match sealed.point.0.as_str() {
                    "down" => concluded.realigned_epochs.unwrap_or(0),
                    _ => 0,
                };
                sealed.epoch.0 - later >= concluded.replay_from.0
            })
        };
        let mut again: Vec<Sealed> = self.log.iter().filter(needed).cloned().collect();
        again.sort_by_key(|sealed| sealed.epoch);
        again.into_iter().for_each(|sealed| self.engine.receive(sealed));
        self.events.extend(drain(&mut self.engine));
    }
}

/// Epochs of two points and when each comes: as it ends, or up to so many seconds later.
fn stream(seed: u64, missing: u64, clock_ns: i64, late: i64) -> Vec<(Timestamp, Sealed)> {
    sparse_stream(seed, missing, clock_ns, late, 1)
}

/// The same, of every so-manieth packet only: it takes long to learn how long delays are.
fn sparse_stream(
    seed: u64,
    missing: u64,
    clock_ns: i64,
    late: i64,
    sparse: u64,
) -> Vec<(Timestamp, Sealed)> {
    let seconds = 100..118;
    let up = seal(&Seen { sparse, ..Seen::at("up", 0) }, seconds.clone(), "lda");
    let lossy =
        Seen { lost: Some(if sparse > 1 { 6 } else { 60 }), sparse, ..Seen::at("down", 5 * MS) };
    let down = seal(&lossy.clock(clock_ns), seconds, "lda");
    let mut all = Vec::new();
    for (number, sealed) in up.into_iter().chain(down).enumerate() {
        let drawn = mixed(seed ^ (number as u64) << 8);
        if drawn % 100 < missing {
            continue;
        }
        let ahead_ns = if sealed.point.0 == "down" { clock_ns } else { 0 };
        let late_ns = (drawn >> 8) as i64 % (late * SECOND_NS);
        let end = sealed.rule.span_of(sealed.epoch).end;
        all.push((end + Delay::from_nanos(late_ns.abs() - ahead_ns), sealed));
    }
    // A point sends its epochs in order: one that is late holds up those behind it.
    let mut sent: BTreeMap<PointId, Timestamp> = BTreeMap::new();
    for (time, sealed) in &mut all {
        let last = sent.entry(sealed.point.clone()).or_insert(*time);
        *time = (*time).max(*last);
        *last = *time;
    }
    all.sort_by_key(|(time, _)| *time);
    all
}

/// All that is reported, but for warnings, in an order of its own.
fn reported(events: &[EngineEvent]) -> Vec<String> {
    let mut reported: Vec<String> = events
        .iter()
        .filter(|event| !matches!(event, EngineEvent::Warning(_)))
        .map(|event| format!("{} {event:?}", show(event)))
        .collect();
    reported.sort_unstable();
    reported
}

fn run_with_restarts(stream: &[(Timestamp, Sealed)], restarts: &[usize]) -> Vec<EngineEvent> {
    let mut collector = Collector::new();
    for (number, (time, sealed)) in stream.iter().enumerate() {
        if restarts.contains(&number) {
            collector.restart();
        }
        collector.receive(sealed.clone(), *time);
    }
    for second in 118..150 {
        collector.tick(at(second));
    }
    collector.events
}

/// How often something was reported of each epoch.
fn coverage(events: &[EngineEvent]) -> BTreeMap<i64, u64> {
    let mut coverage = BTreeMap::new();
    for event in events {
        let epochs = match event {
            EngineEvent::Estimated(estimate) => estimate.epoch.0..=estimate.epoch.0,
            EngineEvent::Gap(gap) => gap.first.0..=gap.last.0,
            _ => continue,
        };
        epochs.for_each(|epoch| *coverage.entry(epoch).or_default() += 1);
    }
    coverage
}

proptest! {
    #![proptest_config(twixt_testing::cases(64))]

    #[test]
    fn restarts_change_nothing(
        seed in 0_u64..1 << 40,
        missing in prop_oneof![Just(0_u64), Just(8_u64)],
        clock_epochs in prop_oneof![Just(0_i64), Just(2_i64), Just(-3_i64)],
        restarts in proptest::collection::vec(0_usize..36, 1..4),
    ) {
        let stream = stream(seed, missing, clock_epochs * SECOND_NS, 3);
        let expected = run_with_restarts(&stream, &[]);
        let found = run_with_restarts(&stream, &restarts);
        prop_assert_eq!(reported(&found), reported(&expected));
    }

    /// Nothing is learnt twice from a boundary that is replayed.
    #[test]
    fn restarts_do_not_make_delays_known_sooner(
        seed in 0_u64..1 << 40,
        restarts in proptest::collection::vec(0_usize..36, 1..4),
    ) {
        let stream = sparse_stream(seed, 0, 0, 3, 80);
        let expected = run_with_restarts(&stream, &[]);
        let found = run_with_restarts(&stream, &restarts);
        prop_assert_eq!(reported(&found), reported(&expected));
    }

    /// Epochs that come after patience has ended may be used after a restart, when they were not
    /// before. Of every epoch something is reported all the same, and once.
    #[test]
    fn of_every_epoch_something_is_told_once(
        seed in 0_u64..1 << 40,
        restarts in proptest::collection::vec(0_usize..36, 0..4),
    ) {
        let stream = stream(seed, 20, 0, 14);
        let coverage = coverage(&run_with_restarts(&stream, &restarts));
        prop_assert!(coverage.values().all(|&times| times == 1), "{coverage:?}");
        let (first, last) = (coverage.keys().next(), coverage.keys().last());
        let span = last.zip(first).map(|(last, first)| last - first + 1);
        prop_assert_eq!(span, Some(coverage.len() as i64));
        // Those before the first that came in time are late ones, and counted as such.
        prop_assert!(coverage.len() >= 6, "{coverage:?}");
    }
}

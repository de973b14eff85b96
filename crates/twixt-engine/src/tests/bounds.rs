//! What an engine holds does not grow with the hours.

use super::*;

/// Bytes of all that an engine holds, written out.
fn size(engine: &Engine) -> usize {
    format!("{engine:?}").len()
}

#[test]
fn hours_of_epochs_leave_nothing_behind() {
    // As few rows as there can be, and one in sixteen packets: it is the number of epochs that
    // matters.
    let synopsis = || {
        let settings = toml::toml! { rows = 8 };
        (find(Purpose::Delay, "lda").unwrap().start)(&settings).unwrap()
    };
    let seconds = 100..3700;
    let seen = |point, delay_ns| Seen { sparse: 16, ..Seen::at(point, delay_ns) };
    let up = seal_with(&seen("up", 0), seconds.clone(), synopsis());
    let down = seal_with(&seen("down", 5 * MS), seconds, synopsis());
    // Discovery remembers digests up to a number of its own, which takes longer than an hour.
    let mut engine = Engine::new(config(&[("up", "down")]));
    let (mut estimates, mut sizes) = (0, Vec::new());
    for sealed in in_order(vec![up, down], &[0, 0]) {
        engine.advance(sealed.rule.span_of(sealed.epoch).end);
        if sealed.epoch.0 % 100 == 0 && sealed.point.0 == "up" {
            sizes.push(size(&engine));
        }
        engine.receive(sealed);
        let events = drain(&mut engine);
        estimates +=
            events.iter().filter(|event| matches!(event, EngineEvent::Estimated(_))).count();
    }
    assert!(estimates > 3500, "{estimates}");
    // After some minutes every table has what it will have; numbers have a digit more or less.
    let (early, latest) = (sizes[5], *sizes.last().unwrap());
    assert!(latest < early + early / 5, "{sizes:?}");
}

/// One point is away. What the others keep for it stays within the budget, and what was given up
/// comes late when it is back.
#[test]
fn what_waits_is_bounded_in_bytes() {
    let seconds = 100..160;
    let up = seal(&Seen::at("up", 0), seconds.clone(), "lda");
    let downs = [("down", 5 * MS), ("other", 7 * MS)]
        .map(|(point, delay_ns)| seal(&Seen::at(point, delay_ns), seconds.clone(), "lda"));
    let epoch_bytes = up.iter().map(Sealed::memory_bytes).max().unwrap();
    let waiting_bytes_max = 20 * epoch_bytes;
    let segments = [("up", "down"), ("up", "other")];
    let mut engine = Engine::new(EngineConfig { waiting_bytes_max, ..config(&segments) });
    let points = [up, downs.concat()];
    let (first, rest): (Vec<Sealed>, Vec<Sealed>) =
        points.concat().into_iter().partition(|sealed| sealed.epoch.0 < 110);
    first.into_iter().for_each(|sealed| engine.receive(sealed));
    let (up, downs): (Vec<Sealed>, Vec<Sealed>) =
        rest.into_iter().partition(|sealed| sealed.point.0 == "up");
    let mut most = 0;
    for sealed in up {
        engine.receive(sealed);
        most = most.max(engine.waiting_bytes());
    }
    assert!(most <= waiting_bytes_max, "{most} bytes of {waiting_bytes_max}");
    assert!(most > waiting_bytes_max / 2, "{most} bytes of {waiting_bytes_max}: used as well");
    assert!(engine.counts().crowded_out > 50, "{:?}", engine.counts());
    for sealed in downs {
        engine.receive(sealed);
        assert!(engine.waiting_bytes() <= waiting_bytes_max);
    }
    let late: i64 = engine
        .late()
        .iter()
        .flat_map(|late| &late.ranges)
        .map(|(first, last)| last.0 - first.0 + 1)
        .sum();
    assert_eq!(late as u64, engine.counts().late, "all of it can be paired from the store");
    assert!(late > 50, "{late} epochs");
}

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

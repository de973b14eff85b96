//! What hours that are over leave in memory: nothing, once the footers of files that are remembered
//! are as many as may be.

use allocation_counter::measure;
use twixt_history::Step;

use crate::support::{Fixture, HOUR, ask, at, between};

/// An epoch of a segment is stored so often, in seconds.
const EVERY: usize = 600;
/// Until nothing more is remembered, and as many again.
const HOURS: i64 = 100;
/// What the footers of files may take is 8 MiB. The roll-ups of an open hour and the names of files
/// are less than the rest of this.
const MEMORY_MAX: i64 = 10 << 20;

/// Hours are sealed when they are due. Someone asks for what was before that, as dashboards do.
fn pass(fixture: &Fixture, hour: i64) {
    fixture.store("b", (hour * HOUR..(hour + 1) * HOUR).step_by(EVERY));
    let last = (hour + 1) * HOUR - 1;
    fixture.history.keep(at(last)).unwrap();
    for step in [Step::Epoch, Step::Minute] {
        let question = ask("b", step, between(last - 2 * HOUR, last));
        assert_eq!(fixture.history.answer(&question).unwrap().problems, []);
    }
}

#[test]
fn an_hour_that_is_over_leaves_nothing_in_memory() {
    let fixture = Fixture::new();
    let pass_all = |hours: std::ops::Range<i64>| {
        measure(|| hours.for_each(|hour| pass(&fixture, hour))).bytes_current
    };
    let (first, later) = (pass_all(0..HOURS), pass_all(HOURS..2 * HOURS));
    println!("{HOURS} hours left {first} bytes in memory, as many again {later}");
    assert_eq!(fixture.history.counts().sealed, 2 * HOURS as u64 - 1);
    assert!(first < MEMORY_MAX, "{first}");
    // A footer more or less, of 65 KB.
    assert!(later < first / 10, "{later}");
}

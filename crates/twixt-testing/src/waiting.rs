//! Waiting for a state. A length of time is never long enough on a busy machine, and always too
//! long on an idle one.

use std::fmt::Debug;
use std::time::{Duration, Instant};

/// What never takes so long, however busy the machine is.
pub const DEADLINE: Duration = Duration::from_secs(120);
/// How long to wait until the first look again; then twice as long each time, up to the longest: a
/// collector refuses readers who ask too often.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(200);

/// Waits until something is so.
///
/// # Panics
///
/// After [`DEADLINE`], with `what` was waited for.
#[track_caller]
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let outcome = poll(DEADLINE, || if is_so() { Ok(()) } else { Err(()) });
    assert!(outcome.is_ok(), "waited {DEADLINE:?} in vain until {what}");
}

/// Waits until there is a value, and returns it. As long as there is none, `look` returns what
/// there is instead.
///
/// # Panics
///
/// After [`DEADLINE`], with `what` was waited for and the last state.
#[track_caller]
pub fn wait_for<T, State: Debug>(what: &str, look: impl FnMut() -> Result<T, State>) -> T {
    match poll(DEADLINE, look) {
        Ok(value) => value,
        Err(state) => panic!("waited {DEADLINE:?} in vain for {what}; last: {state:?}"),
    }
}

/// Lets time pass between two packets, or until the moment of a fault. It waits for nothing: what a
/// test asserts may not depend on how long it takes.
pub fn pace(length: Duration) {
    std::thread::sleep(length);
}

fn poll<T, State>(
    deadline: Duration,
    mut look: impl FnMut() -> Result<T, State>,
) -> Result<T, State> {
    let (start, mut pause) = (Instant::now(), FIRST_PAUSE);
    loop {
        match look() {
            Err(state) if start.elapsed() >= deadline => return Err(state),
            Err(_) => std::thread::sleep(pause),
            found => return found,
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_looks_until_there_is_a_value() {
        let mut looks = 0;
        let value = wait_for("the third look", || {
            looks += 1;
            if looks == 3 { Ok(looks) } else { Err(looks) }
        });
        assert_eq!(value, 3);
    }

    #[test]
    fn it_gives_up_with_the_last_state() {
        let outcome: Result<(), &str> = poll(Duration::ZERO, || Err("not yet"));
        assert_eq!(outcome.unwrap_err(), "not yet");
    }
}

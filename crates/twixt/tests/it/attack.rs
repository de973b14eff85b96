//! Hostile traffic, of an independent generator that knows the truth.

use twixt_attack::{Attack, delay_questions, gate};

/// The processors of a continuous integration machine.
const THREADS: usize = 2;

#[test]
fn what_is_claimed_of_hostile_traffic_holds_or_is_known_not_to() {
    let program = env!("CARGO_BIN_EXE_twixt").into();
    let problems = gate(&Attack { program, questions: delay_questions(None) }, THREADS).unwrap();
    assert!(problems.is_empty(), "{}\nrepeat with: cargo xtask attack --gate", problems.join("\n"));
}

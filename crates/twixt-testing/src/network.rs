//! A network namespace for a test. It goes with the process, and every interface with it.

use std::process::Command;

use crate::isolation::{is_just_inside, run_again};
use crate::requirement::{Requirement, obtain};
use crate::waiting::wait_until;

/// Runs `body` in a network namespace of its own, after `prepare`. `body` must be a closure of the
/// test itself.
#[track_caller]
pub fn in_namespace<Body: FnOnce()>(prepare: impl FnOnce(), body: Body) {
    if is_just_inside::<Body>() {
        prepare();
    }
    if obtain(Requirement::Namespaces).is_some() {
        run_again(&["unshare", "--net"], body);
    }
}

/// Makes a virtual cable, whose ends send nothing by themselves, and waits until both are up.
#[track_caller]
pub fn lay_cable(ends: [&str; 2]) {
    let [near, far] = ends;
    run(&format!("ip link add {near} type veth peer name {far}"));
    for end in ends {
        run(&format!("ip link set {end} addrgenmode none"));
        run(&format!("ip link set {end} up"));
    }
    await_up(ends);
}

/// Waits until both ends of a cable have noticed that the other is up.
#[track_caller]
pub fn await_up(ends: [&str; 2]) {
    wait_until("both ends of the cable are up", || ends.into_iter().all(is_up));
}

fn is_up(interface: &str) -> bool {
    let shown = Command::new("ip").args(["link", "show", interface]).output();
    shown.is_ok_and(|shown| String::from_utf8_lossy(&shown.stdout).contains("state UP"))
}

/// Runs a command, by its words, that must not fail.
///
/// # Panics
///
/// If it fails.
#[track_caller]
pub fn run(line: &str) {
    let mut words = line.split_whitespace();
    let program = words.next().expect("a line has a word");
    let ended = Command::new(program).args(words).output();
    let ended = ended.unwrap_or_else(|error| panic!("{line}: {error}"));
    assert!(ended.status.success(), "{line}: {}", String::from_utf8_lossy(&ended.stderr));
}

//! Instructions per packet, counted by valgrind where it is installed: the same on every run,
//! whatever else the machine does.

use std::process::Command;

use super::capture::Capture;
use super::whole::{Whole, binary};

/// Packets to count over; valgrind is some fifty times slower than the machine.
pub(crate) const PACKETS: u64 = 100_000;

/// Of a stage: what two more rounds cost, so that starting up does not count.
pub(crate) fn of_stage(name: &str, small: &Capture) -> Option<f64> {
    let own = std::env::current_exe().unwrap();
    let count = |times: &str| {
        let mut command = valgrind();
        command.arg(&own).args(["--stage", name]).arg(small.path()).arg(times);
        collected(command)
    };
    let (more, less) = (count("3")?, count("1")?);
    Some((more - less) as f64 / (2 * small.packets) as f64)
}

/// Of a whole twixt command, including its start.
pub(crate) fn of_command(whole: &Whole, small: &Capture) -> Option<f64> {
    if whole.program() != binary() {
        return None;
    }
    let mut command = valgrind();
    command.arg(whole.program()).args(whole.arguments(small));
    Some(collected(command)? as f64 / small.packets as f64)
}

fn valgrind() -> Command {
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    command
}

fn collected(mut command: Command) -> Option<u64> {
    let output = command.output().ok()?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let line = text.lines().find(|line| line.contains("Collected : "))?;
    line.split("Collected : ").nth(1)?.trim().parse().ok()
}

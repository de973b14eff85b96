//! Whether agents and a collector stay as they are: memory, open files and threads, over hours.
//!
//! Ten virtual cables, an agent at each of their twenty ends, one collector: processes of the
//! release build. Datagrams pass all the while, and so do questions to the API. Each process is
//! looked at once a minute. Ends with what the last tenth of the time took at most, and the same
//! minutes an hour before (in a short run, the first tenth), and with code 1 if something grew, an
//! epoch is missing, or a question failed.
//!
//! `cargo xtask soak [MINUTES]`, as root; it runs in a network namespace of its own.

#![allow(clippy::unwrap_used, reason = "a program that cannot go on should stop there")]

mod asking;
mod looking;
mod system;
mod traffic;

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use asking::Asked;
use looking::Looks;
use system::System;

/// Segments; each has an agent at either end.
const SEGMENTS: usize = 10;
const MINUTES: u64 = 120;
const LOOK_EVERY: Duration = Duration::from_secs(60);

fn main() -> ExitCode {
    let minutes = std::env::args().nth(1).map_or(MINUTES, |text| text.parse().unwrap());
    let end = Instant::now() + Duration::from_secs(60 * minutes);
    let system = System::start();
    // The first minute lacks the epochs before the last agent was there.
    let whole_s = (asking::now_s() / 60 + 2) * 60;
    let (over, mut looks) = (AtomicBool::new(false), Looks::default());
    let (sent, asked) = thread::scope(|scope| {
        let traffic = scope.spawn(|| traffic::send_until(&over));
        let asking = scope.spawn(|| asking::ask_until(&over, system.address));
        println!("{}", Looks::HEADING);
        while Instant::now() < end {
            thread::sleep(LOOK_EVERY.min(end - Instant::now()));
            looks.look(&system);
        }
        over.store(true, Ordering::Relaxed);
        (traffic.join().unwrap(), asking.join().unwrap())
    });
    let counted = asking::counted(system.address, whole_s);
    system.stop();
    println!("{sent} datagrams sent; {counted}");
    println!("{asked}");
    verdict(&looks, &asked, counted.gaps)
}

fn verdict(looks: &Looks, asked: &Asked, gaps: u64) -> ExitCode {
    let grown = looks.grown();
    grown.iter().for_each(|what| println!("grew: {what}"));
    let is_flat = grown.is_empty() && gaps == 0 && asked.failed == 0;
    println!("{}", if is_flat { "flat" } else { "not flat" });
    if is_flat { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

//! How a collector bears load. Run by hand, in release, on a machine that does nothing else:
//!
//! ```sh
//! cargo run --release -p twixt-collector --example load -- dashboard [DAYS [SECONDS]]
//! cargo run --release -p twixt-collector --example load -- flood [SECONDS]
//! cargo run --release -p twixt-collector --example load -- scale
//! ```
//!
//! `dashboard`: DAYS (30) of one-minute estimates of 200 segments with percentiles, made of epochs
//! that come over HTTP as fast as the collector takes them, then questions of a dashboard for
//! SECONDS (60), while 500 epochs per second come in. `flood`: 2 000 epochs of 4 to 16 KiB per second
//! from 1 000 agents for SECONDS (120), undisturbed, and once more with a kill in the middle; both
//! must answer the same. `scale`: what pairing costs in time and memory, for networks of up to 1 000
//! points and 5 000 segments.

#![allow(clippy::unwrap_used, reason = "a failure ends the run")]

mod agents;
mod dashboard;
mod flood;
mod month;
mod scale;
mod serving;
mod summary;

use std::path::PathBuf;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let number = |text: &str| text.parse().unwrap();
    match words.as_slice() {
        ["serve", folder, segments] => serving::serve(&PathBuf::from(folder), number(segments)),
        ["dashboard"] => dashboard::run(30, 60),
        ["dashboard", days] => dashboard::run(number(days) as i64, 60),
        ["dashboard", days, seconds] => dashboard::run(number(days) as i64, number(seconds)),
        ["flood"] => flood::run(120),
        ["flood", seconds] => flood::run(number(seconds)),
        ["scale"] => scale::run(),
        ["scale", points, segments] => scale::run_one(number(points), number(segments)),
        _ => eprintln!("load dashboard [DAYS [SECONDS]] | load flood [SECONDS] | load scale"),
    }
}

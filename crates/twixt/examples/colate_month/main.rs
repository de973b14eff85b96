//! How long `twixt query` takes to find a day, an hour, and a few minutes, in a month of COLATE.
//!
//! Some minutes of simulated traffic are recorded at two points by `twixt record`, in epochs of a
//! minute and with 65 536 counters. They are stored over and over, each time later, until the month
//! is full; counters are postponed with their packets, so that every epoch is what a recorder would
//! have written. Then `twixt query` is asked for one flow. Prints what it read, how long it took,
//! and how long it takes to read as many bytes at the same place, in the same run: with the files
//! in memory, and without. The folder is deleted.
//!
//! `cargo build --release && cargo run --release --example colate_month -- FOLDER [DAYS] [PACKETS PER SECOND]`

mod ask;
mod month;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Whatever goes wrong ends it.
type Outcome<T> = Result<T, Box<dyn Error>>;

const POINTS: [&str; 2] = ["paris", "rome"];
const MINUTE_NS: i64 = 60_000_000_000;
const DAY_MINUTES: i64 = 1440;
/// 2024-01-01.
const START_NS: i64 = 1_704_067_200_000_000_000;

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("name a folder to write to; it is deleted afterwards")?;
    let days = arguments.next().map_or(Ok(30), |text| text.parse())?;
    let rate = arguments.next().map_or(Ok(5000), |text| text.parse())?;
    let folder = Path::new(&folder);
    if folder.exists() {
        return Err(format!("{} is there already", folder.display()).into());
    }
    std::fs::create_dir_all(folder)?;
    let outcome = month::fill(folder, days, rate).and_then(|flow| ask::all(folder, days, &flow));
    std::fs::remove_dir_all(folder)?;
    outcome
}

/// The store within the folder.
fn store(folder: &Path) -> PathBuf {
    folder.join("store")
}

/// What the program that was built beside this one prints.
fn twixt(arguments: &[&str]) -> Outcome<Vec<u8>> {
    let beside = std::env::current_exe()?;
    let program = beside.ancestors().nth(2).ok_or("there is no folder of programs")?.join("twixt");
    let run = Command::new(&program).args(arguments).output();
    let run = run.map_err(|error| format!("{}: {error}; build it first", program.display()))?;
    match run.status.success() {
        true => Ok(run.stdout),
        false => Err(String::from_utf8_lossy(&run.stderr).into_owned().into()),
    }
}

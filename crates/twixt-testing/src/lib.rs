//! What the tests of all crates share, so that none of them can pass without testing anything.
//!
//! - [`require!`] skips a test that cannot run here. The skip is recorded, and an error where
//!   nothing may be skipped.
//! - [`wait_until`] and [`wait_for`] wait for a state instead of a length of time.
//! - [`seed`] and [`cases`] give the same random numbers in every run, unless a run explores.
//! - [`check_coverage`] tells a confidence interval that holds from one that does not.
//! - [`check_snapshot`] and [`check_wording`] compare texts with committed files.
//! - [`peak_kib`] and [`resident_kib`] tell what a process takes in memory.
//! - [`check_in_browser`] lets a browser look at the dashboard of a collector.
//! - [`OnTerminal`] runs a program on a terminal, types keys and reads the screen.
//! - [`in_namespace`] and [`SmallDisk`] make a network and a disk that a test may break.

mod browser;
mod coverage;
mod disk;
mod golden;
mod isolation;
mod memory;
mod network;
mod requirement;
mod seed;
mod snapshot;
mod terminal;
mod waiting;

pub use browser::{check_in_browser, dashboard_folder};
pub use coverage::{FALSE_ALARM, check_coverage};
pub use disk::{SmallDisk, copy_folder};
pub use golden::{check_golden, golden, text_of};
pub use isolation::{run_again, without_capabilities};
pub use memory::{peak_kib, resident_kib};
pub use network::{await_up, in_namespace, lay_cable, run};
pub use requirement::{Requirement, obtain};
pub use seed::{cases, seed};
pub use snapshot::{check_snapshot, check_wording};
pub use terminal::OnTerminal;
pub use waiting::{DEADLINE, pace, wait_for, wait_until};

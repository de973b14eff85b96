//! What a process takes in memory, as the kernel counts it.

use std::fs;

/// Memory of a process now.
///
/// # Panics
///
/// If it does not run.
#[must_use]
pub fn resident_kib(process: u32) -> u64 {
    status_kib(process, "VmRSS:")
}

/// What some work takes at most beside what this process had before. Nothing else may run in it:
/// see [`run_again`](crate::run_again).
///
/// # Panics
///
/// If the kernel does not let a process forget its greatest memory so far.
pub fn peak_kib<T>(work: impl FnOnce() -> T) -> (T, u64) {
    fs::write("/proc/self/clear_refs", "5").expect("a process may reset its own peak");
    let process = std::process::id();
    let before_kib = resident_kib(process);
    let done = work();
    (done, status_kib(process, "VmHWM:").saturating_sub(before_kib))
}

fn status_kib(process: u32, field: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("the process runs");
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let kib = line.and_then(|text| text.split_whitespace().next()?.parse().ok());
    kib.expect("the kernel reports memory")
}

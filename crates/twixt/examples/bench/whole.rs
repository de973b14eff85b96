//! Whole commands, run as users run them.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use twixt_synopsis::{ALGORITHMS, Algorithm, Purpose};

use super::capture::Capture;

/// A command over one capture.
pub(crate) struct Whole {
    pub(crate) name: String,
    algorithm: &'static Algorithm,
}

/// The one-pass pipeline with every algorithm.
pub(crate) fn commands() -> Vec<Whole> {
    let served = |entry: &&Algorithm| matches!(entry.purpose, Purpose::Delay | Purpose::RoundTrip);
    let whole = |algorithm: &'static Algorithm| Whole {
        name: format!("{} with {}", command(algorithm), algorithm.name),
        algorithm,
    };
    ALGORITHMS.iter().filter(served).map(whole).collect()
}

/// The command that runs an algorithm in one pass.
fn command(algorithm: &Algorithm) -> &'static str {
    match algorithm.purpose {
        Purpose::Delay => "record",
        purpose => purpose.name(),
    }
}

impl Whole {
    /// The command line.
    pub(crate) fn arguments(&self, file: &Capture) -> Vec<String> {
        let path = |path: PathBuf| path.display().to_string();
        let (name, out) = (self.algorithm.name, path(file.folder().join("out.epochs")));
        let mut arguments = vec![command(self.algorithm), "-a", name, "-r"];
        let read = path(file.path());
        arguments.push(&read);
        if self.algorithm.purpose == Purpose::Delay {
            arguments.extend(["-w", &out]);
        }
        arguments.into_iter().map(str::to_owned).collect()
    }

    /// Nanoseconds per packet (median) and peak memory.
    pub(crate) fn measure(
        &self,
        file: &Capture,
        packets: u64,
        repeats: usize,
    ) -> (f64, Option<u64>) {
        let mut runs: Vec<(Duration, Option<u64>)> = (0..repeats).map(|_| self.run(file)).collect();
        runs.sort();
        let memory = runs.iter().filter_map(|run| run.1).max();
        (runs[repeats / 2].0.as_nanos() as f64 / packets as f64, memory)
    }

    fn run(&self, file: &Capture) -> (Duration, Option<u64>) {
        let start = Instant::now();
        let mut child = Command::new(binary())
            .args(self.arguments(file))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut peak = None;
        while child.try_wait().unwrap().is_none() {
            peak = peak.max(peak_memory(child.id()));
            std::thread::sleep(Duration::from_millis(1));
        }
        (start.elapsed(), peak)
    }
}

/// The release binary, beside which the examples are built.
pub(crate) fn binary() -> PathBuf {
    let examples = std::env::current_exe().unwrap();
    examples.parent().and_then(|folder| folder.parent()).unwrap().join("twixt")
}

/// What the kernel says of a process that still runs.
fn peak_memory(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kibibytes * 1024)
}

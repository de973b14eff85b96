//! Whole commands, run as users run them.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use twixt_synopsis::{ALGORITHMS, Algorithm, Purpose};

use super::capture::Capture;
use super::clock;

/// A command over one capture.
pub(crate) struct Whole {
    pub(crate) name: String,
    program: PathBuf,
    /// Its first thread does not do all the work, so the time that passes counts.
    has_threads: bool,
    /// `CAPTURE`, `DOWNSTREAM` and `OUT` stand for files.
    arguments: Vec<String>,
}

const CAPTURE: &str = "CAPTURE";
const DOWNSTREAM: &str = "DOWNSTREAM";
const OUT: &str = "OUT";

/// Every command that reads a capture: in one pass with every algorithm, `delay`, and what else there is.
pub(crate) fn commands(file: &Capture) -> Vec<Whole> {
    let of = |purpose: Purpose| ALGORITHMS.iter().filter(move |entry| entry.purpose == purpose);
    let record = of(Purpose::Delay)
        .map(|entry| own("record", entry, &["record", "-a", entry.name, "-r", CAPTURE, "-w", OUT]));
    let one_point = [Purpose::RoundTrip, Purpose::Reorder, Purpose::Heavy].into_iter().flat_map(of);
    let one_pass = one_point.map(|entry| {
        let command = entry.purpose.name();
        own(command, entry, &[command, "-a", entry.name, "-r", CAPTURE])
    });
    let info = Whole::new("info", binary(), &["info", CAPTURE]);
    let one_capture = record.chain(one_pass).chain([info]);
    match file.downstream().exists() {
        true => one_capture.chain(of(Purpose::Delay).flat_map(delay)).collect(),
        false => one_capture.collect(),
    }
}

/// `delay`, and the same on one core, where it takes as long as two captures take one after the
/// other: half of it is the time of one.
fn delay(entry: &Algorithm) -> [Whole; 2] {
    let arguments = ["delay", "-a", entry.name, CAPTURE, DOWNSTREAM];
    let free = Whole { has_threads: true, ..own("delay", entry, &arguments) };
    let mut on_one_core = vec!["--cpu-list".to_owned(), "0".to_owned()];
    on_one_core.push(binary().display().to_string());
    on_one_core.extend(arguments.map(str::to_owned));
    let name = format!("delay with {}, one core", entry.name);
    [free, Whole { name, program: "taskset".into(), has_threads: true, arguments: on_one_core }]
}

/// Other people's programs for round trips, where they are installed.
pub(crate) fn peers() -> Vec<Whole> {
    const PEERS: [(&str, &[&str]); 2] = [
        ("tcptrace", &["-n", "-r", "-l", CAPTURE]),
        ("tshark", &["-n", "-r", CAPTURE, "-T", "fields", "-e", "tcp.analysis.ack_rtt"]),
    ];
    PEERS
        .into_iter()
        .filter(|(program, _)| Command::new(program).arg("-h").output().is_ok())
        .map(|(program, arguments)| Whole::new(program, program.into(), arguments))
        .collect()
}

fn own(command: &str, algorithm: &Algorithm, arguments: &[&str]) -> Whole {
    Whole::new(&format!("{command} with {}", algorithm.name), binary(), arguments)
}

impl Whole {
    fn new(name: &str, program: PathBuf, arguments: &[&str]) -> Self {
        let arguments = arguments.iter().map(|&argument| argument.to_owned()).collect();
        Self { name: name.to_owned(), program, has_threads: false, arguments }
    }

    /// What is run.
    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    /// The command line behind it.
    pub(crate) fn arguments(&self, file: &Capture) -> Vec<String> {
        let path = |path: PathBuf| path.display().to_string();
        let filled = |argument: &String| match argument.as_str() {
            CAPTURE => path(file.path()),
            DOWNSTREAM => path(file.downstream()),
            OUT => path(file.folder().join("out.epochs")),
            other => other.to_owned(),
        };
        self.arguments.iter().map(filled).collect()
    }

    /// How long one run computes, or takes if it has threads.
    pub(crate) fn time(&self, file: &Capture) -> Duration {
        let start = Instant::now();
        let mut child = self.spawn(file, Stdio::piped());
        // Ends when the process does, and does not disturb it before that.
        let mut printed = child.stdout.take().unwrap();
        std::io::copy(&mut printed, &mut std::io::sink()).unwrap();
        let process = child.id().to_string();
        while clock::is_running(&process) {
            std::thread::sleep(Duration::from_micros(100));
        }
        let passed = start.elapsed();
        let computed = clock::computed(&process).filter(|_| !self.has_threads);
        child.wait().unwrap();
        computed.unwrap_or(passed)
    }

    /// The most memory of one run, in bytes. To look so often costs time: not for a run that is timed.
    pub(crate) fn peak_memory(&self, file: &Capture) -> Option<u64> {
        let mut child = self.spawn(file, Stdio::null());
        let mut peak = None;
        while child.try_wait().unwrap().is_none() {
            peak = peak.max(peak_memory(child.id()));
            std::thread::sleep(Duration::from_millis(1));
        }
        peak
    }

    fn spawn(&self, file: &Capture, stdout: Stdio) -> Child {
        let mut command = Command::new(&self.program);
        command.args(self.arguments(file)).stdout(stdout).stderr(Stdio::null()).spawn().unwrap()
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

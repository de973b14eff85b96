//! A collector in a process of its own, which can be killed.

use std::io;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use twixt_collector::{Collector, CollectorConfig, StopRequest};
use twixt_engine::SegmentConfig;
use twixt_model::{Delay, PointId, Segment};

/// The two points of a segment.
pub(crate) fn points(segment: usize) -> [String; 2] {
    [format!("up-{segment:04}"), format!("down-{segment:04}")]
}

/// Runs a collector until it is killed.
pub(crate) fn serve(folder: &Path, segments: usize) {
    let config = config(folder, (0..segments).map(points));
    let ready = |addresses: twixt_collector::Addresses| println!("{}", addresses.listen);
    Collector::new(config).unwrap().run(Box::new(io::sink()), &StopRequest::new(), ready).unwrap();
}

/// A collector for segments between these points, which bears whatever comes.
pub(crate) fn config(
    folder: &Path,
    segments: impl Iterator<Item = [String; 2]>,
) -> CollectorConfig {
    let mut config = CollectorConfig::new("127.0.0.1:0".parse().unwrap(), folder.to_owned());
    let segment = |points: [String; 2]| {
        let [upstream, downstream] = points.map(PointId);
        SegmentConfig { segment: Segment { upstream, downstream }, class: None }
    };
    config.engine.segments = segments.map(segment).collect();
    // A busy machine makes agents late, which is not what is measured here.
    config.engine.patience = Delay::from_nanos(30_000_000_000);
    config.limits.connections_max = 4_096;
    config.limits.connections_per_address_max = 4_096;
    config.limits.requests_per_caller_max = 4_096;
    config.limits.epochs_per_second = 1_000_000;
    config.limits.epochs_burst = 1_000_000;
    config.limits.points_max = 4_096;
    config.limits.queries_per_second = 100_000;
    config.limits.queries_burst = 100_000;
    config
}

/// Memory that a process holds.
pub(crate) fn memory_kib(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).unwrap_or(0)
}

/// How many wait for a processor, as the system says: figures of a busy machine mean little.
pub(crate) fn load_average() -> String {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split_whitespace().take(3).collect::<Vec<_>>().join(" ")
}

/// A collector.
pub(crate) struct Serving {
    child: Child,
    pub(crate) address: String,
}

impl Serving {
    pub(crate) fn start(folder: &Path, segments: usize) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["serve", folder.to_str().unwrap(), &segments.to_string()])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut address = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut address).unwrap();
        Self { child, address: address.trim().to_owned() }
    }

    /// SIGKILL.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Memory that it holds, in MiB.
    pub(crate) fn memory_mib(&self) -> u64 {
        memory_kib(self.child.id()) / 1024
    }

    /// Processor time that it has used.
    pub(crate) fn processor_time(&self) -> Duration {
        const TICKS_PER_SECOND: u64 = 100;
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()));
        let stat = stat.unwrap_or_default();
        // Behind the name, which may have blanks: the 12th and 13th are those of user and system.
        let behind = stat.rsplit(')').next().unwrap_or_default();
        let ticks = behind.split_whitespace().skip(11).take(2);
        let ticks: u64 = ticks.filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
        Duration::from_millis(ticks * 1_000 / TICKS_PER_SECOND)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

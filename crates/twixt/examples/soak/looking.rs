//! What processes take, minute by minute.

use std::fs;
use std::process::Child;

use twixt_testing::resident_kib;

use crate::system::System;

/// The collector keeps the roll-ups of the open hours, and seals an hour some minutes after its end:
/// what it takes is compared with what it took at the same minute of the hour before.
const CYCLE: usize = 60;
/// A tenth more than before is growth, and this many KiB at least.
const SPARE: f64 = 1.1;
const SPARE_KIB: u64 = 8 * 1024;

/// What was seen so far.
#[derive(Default)]
pub(crate) struct Looks {
    seen: Vec<[Taken; 2]>,
}

/// What processes take: the collector, and the agents together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Taken {
    resident_kib: u64,
    files: u64,
    threads: u64,
}

impl Looks {
    pub(crate) const HEADING: &str =
        "minute  collector: KiB  files  threads  20 agents: KiB  files  threads";

    /// Looks at all processes, and prints a line.
    pub(crate) fn look(&mut self, system: &System) {
        let minute = self.seen.len() + 1;
        let collector = Taken::by(&system.collector);
        let agents = system.agents.iter().map(Taken::by).fold(Taken::default(), Taken::plus);
        println!("{minute:>6}  {}  {}", collector.columns(15), agents.columns(14));
        self.seen.push([collector, agents]);
    }

    /// What is larger in the last tenth of the time than an hour before, or, in a shorter run, than
    /// in the first tenth. The first two minutes fill caches.
    pub(crate) fn grown(&self) -> Vec<String> {
        let seen = self.seen.get(2..).unwrap_or_default();
        let tenth = (seen.len() / 10).max(1).min(seen.len());
        let last = seen.len() - tenth;
        let first = last.saturating_sub(CYCLE);
        let (first, last) = (&seen[first..first + tenth], &seen[last..]);
        let names = ["collector", "agents"];
        let grown = (0..2).filter_map(|index| {
            let [before, after] = [first, last].map(|looks| Taken::of(looks, index));
            println!("{}: before {before:?}, in the end {after:?}", names[index]);
            after.is_more_than(before).then(|| names[index].to_owned())
        });
        grown.collect()
    }
}

impl Taken {
    fn by(process: &Child) -> Self {
        let folder = format!("/proc/{}", process.id());
        let entries = |name: &str| {
            fs::read_dir(format!("{folder}/{name}")).expect("the process runs").count() as u64
        };
        let resident_kib = resident_kib(process.id());
        Self { resident_kib, files: entries("fd"), threads: entries("task") }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            resident_kib: self.resident_kib + other.resident_kib,
            files: self.files + other.files,
            threads: self.threads + other.threads,
        }
    }

    /// The most memory and files, over some looks at the collector (0) or the agents (1), and the fewest
    /// threads: those that answer questions end with the work, and a look may meet several of them.
    fn of(looks: &[[Self; 2]], index: usize) -> Self {
        let looks = || looks.iter().map(|look| look[index]);
        Self {
            resident_kib: looks().map(|look| look.resident_kib).max().unwrap_or_default(),
            files: looks().map(|look| look.files).max().unwrap_or_default(),
            threads: looks().map(|look| look.threads).min().unwrap_or_default(),
        }
    }

    fn is_more_than(self, before: Self) -> bool {
        let bound = |value: u64| (value as f64 * SPARE) as u64;
        let bound_kib = bound(before.resident_kib).max(before.resident_kib + SPARE_KIB);
        // A question or an upload under way has a file.
        self.resident_kib > bound_kib
            || self.files > bound(before.files).max(before.files + 4)
            || self.threads > before.threads
    }

    fn columns(self, width: usize) -> String {
        let Self { resident_kib, files, threads } = self;
        format!("{resident_kib:>width$}  {files:>5}  {threads:>7}")
    }
}

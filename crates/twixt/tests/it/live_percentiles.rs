//! Percentiles of live agents and a collector, beside captures of the same traffic.
//!
//! Each repeat is an agent with a digest key of its own, so that its two points choose other packets
//! than those of all others: a budget of 4 KiB per second and point. Exact percentiles are those of
//! tcpdump's captures, matched by independent code.
//!
//! Needs root, `ip`, `tc`, `ethtool` and `tcpdump`. With `TWIXT_LONG=1`
//! there are 100 keys, 20 at a time. See `docs/howto/testbed.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use twixt_testing::{check_coverage, require, wait_for};

use crate::support::testbed::load::Traffic;
use crate::support::testbed::referee::{TCP, Tcpdump, UDP, delays};
use crate::support::testbed::system::{Process, wait_for_epochs};
use crate::support::testbed::{FILTER, Offloads, Place, Testbed};
use crate::support::{folder, number};

const SECOND_NS: i64 = 1_000_000_000;
const LENGTH: Duration = Duration::from_secs(10);
const SHARES: [(&str, f64); 3] = [("p50", 0.5), ("p95", 0.95), ("p99", 0.99)];

const COLLECTOR: &str = r#"
listen = "127.0.0.1:9443"
directory = "collector"
patience = "5s"
[[segment]]
upstream = "r-in"
downstream = "r-out"
"#;

/// An agent at both sides of R whose digests have a key of their own.
fn agent(key: usize) -> String {
    let point = |name: &str, direction: &str| {
        format!(
            "[[point]]\nname = \"{name}\"\ninterface = \"{name}\"\ndirection = \"{direction}\"\n\
             ring = \"4MiB\"\nfilter = \"{FILTER}\"\n"
        )
    };
    format!(
        "domain = \"key-{key}\"\n[epoch]\nlength = \"1s\"\nguard = \"300ms\"\n\
         [digest]\nkey = \"secret-{key}\"\n\
         [[synopsis]]\nalgorithm = \"sample\"\nbudget_bytes = 4096\n{}{}\
         [spool]\ndirectory = \"spool-{key}\"\n[collector]\nurl = \"http://127.0.0.1:9443\"\n",
        point("r-in", "in"),
        point("r-out", "out")
    )
}

/// How many intervals held, of how many, by percentile.
type Held = BTreeMap<&'static str, [u64; 2]>;

/// One run with an agent for each key: intervals of the whole run, and of single epochs.
fn run(keys: std::ops::Range<usize>) -> [Held; 2] {
    let (bed, folder) = (Testbed::new(Offloads::Off), folder());
    let collector = bed.start_collector(folder.path(), COLLECTOR);
    let agents: Vec<Process> = keys
        .clone()
        .map(|key| {
            let (name, file) = (format!("agent-{key}"), format!("agent-{key}.toml"));
            fs::write(folder.path().join(&file), agent(key)).unwrap();
            let mut command = bed.twixt(Place::R, folder.path());
            command.args(["agent", "--config", &file]);
            Process::start(command, folder.path(), &name, "r-out: capturing")
        })
        .collect();
    let dumps = [("r-in", "in"), ("r-out", "out")].map(|(point, direction)| {
        bed.start_tcpdump(point, direction, &folder.path().join(format!("{point}.pcap")))
    });
    wait_for_epochs(1);
    let load = bed.start_load(Traffic::Heavy, LENGTH);
    bed.finish_load(load, folder.path());
    assert_eq!(dumps.map(Tcpdump::end), [0; 2], "tcpdump missed packets");
    let truth = Truth::read(folder.path());
    let told = wait(&bed, folder.path(), keys.len(), truth.last_epoch());
    let hours = ask(&bed, folder.path(), "hour");
    agents.into_iter().for_each(Process::stop);
    collector.stop();
    [truth.held(&hours, &told), truth.held(&told, &told)]
}

fn ask(bed: &Testbed, folder: &Path, step: &str) -> Vec<Value> {
    let line = "query --collector http://127.0.0.1:9443 --segment r-in:r-out -a sample -F jsonl";
    let mut command = bed.twixt(Place::R, folder);
    let output = command.args(line.split(' ')).args(["--step", step]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Waits until every key has an estimate of an epoch.
fn wait(bed: &Testbed, folder: &Path, keys: usize, epoch: i64) -> Vec<Value> {
    wait_for("an estimate of every key", || {
        let told = ask(bed, folder, "epoch");
        let has = |row: &&Value| number(row, "/start_ns") / SECOND_NS >= epoch;
        let domain = |row: &Value| row["domain"].as_str().unwrap().to_owned();
        let there: BTreeSet<String> = told.iter().filter(has).map(domain).collect();
        if there.len() == keys { Ok(told) } else { Err(there) }
    })
}

/// What captures tell.
struct Truth {
    /// Delays of packets that arrived, by the epoch of their upstream time.
    delays_ns: BTreeMap<i64, Vec<i64>>,
}

impl Truth {
    fn read(folder: &Path) -> Self {
        let captures = ["r-in.pcap", "r-out.pcap"].map(|name| folder.join(name));
        let mut delays_ns: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
        for protocol in [TCP, UDP] {
            for (time_ns, delay_ns) in delays(&captures[0], &captures[1], protocol) {
                delays_ns.entry(time_ns / SECOND_NS).or_default().push(delay_ns);
            }
        }
        Self { delays_ns }
    }

    fn last_epoch(&self) -> i64 {
        *self.delays_ns.last_key_value().unwrap().0
    }

    /// Which intervals of rows hold the exact percentile of their epochs: those of which the
    /// collector reported something.
    fn held(&self, rows: &[Value], epochs: &[Value]) -> Held {
        let mut held: Held = SHARES.iter().map(|(name, _)| (*name, [0; 2])).collect();
        for row in rows.iter().filter(|row| number(row, "/epochs") > 0) {
            let within = number(row, "/start_ns")..=number(row, "/end_ns");
            let told = epochs.iter().filter(|epoch| {
                epoch["domain"] == row["domain"]
                    && number(epoch, "/epochs") > 0
                    && within.contains(&number(epoch, "/start_ns"))
            });
            let told = told.map(|epoch| number(epoch, "/start_ns") / SECOND_NS);
            let mut delays_ns: Vec<i64> =
                told.filter_map(|epoch| self.delays_ns.get(&epoch)).flatten().copied().collect();
            delays_ns.sort_unstable();
            for (name, share) in SHARES {
                let end = |end: &str| row[format!("{name}_{end}_ns")].as_i64();
                let (Some(low), Some(high)) = (end("low"), end("high")) else { continue };
                // Where every packet was kept, an interval has no width; but each socket stamps
                // packets for itself, some microseconds after the last.
                if low == high {
                    continue;
                }
                let at = (share * delays_ns.len() as f64) as usize;
                let counts = held.get_mut(name).unwrap();
                counts[0] += u64::from((low..=high).contains(&delays_ns[at]));
                counts[1] += 1;
            }
        }
        held
    }
}

#[test]
fn exact_percentiles_lie_in_the_intervals_of_live_agents() {
    require!(namespaces);
    require!(program "tcpdump");
    require!(program "ethtool");
    let is_long = std::env::var_os("TWIXT_LONG").is_some();
    let (keys, at_a_time) = if is_long { (100, 20) } else { (6, 6) };
    let mut held: [Held; 2] = Default::default();
    for first in (0..keys).step_by(at_a_time) {
        for (sum, held) in held.iter_mut().zip(run(first..first + at_a_time)) {
            for (name, [inside, all]) in held {
                let counts = sum.entry(name).or_default();
                *counts = [counts[0] + inside, counts[1] + all];
            }
        }
    }
    let [runs, epochs] = held;
    println!("{keys} keys, intervals of a run that hold the exact percentile: {runs:?}");
    println!("{keys} keys, intervals of single epochs: {epochs:?}");
    for (name, [inside, all]) in &runs {
        assert_eq!(*all, keys as u64, "{name} is known for every key");
        check_coverage(&format!("{name} of the run"), *inside, *all, 0.95);
    }
    // Of the 99th percentile single epochs know nothing at this rate.
    assert!(!epochs.is_empty());
    for (name, [inside, all]) in epochs.iter().filter(|(_, [_, all])| *all > 0) {
        check_coverage(&format!("{name} of epochs"), *inside, *all, 0.95);
    }
}

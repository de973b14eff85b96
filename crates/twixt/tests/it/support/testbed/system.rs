//! Agents and a collector in the network, as processes that can be stopped, killed and started
//! again, and what the collector tells.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::SystemTime;

use serde_json::Value;

use twixt_testing::{run, wait_for, wait_until};

use super::{Place, Testbed};

/// Configuration of every agent.
const COMMON: &str = r#"
domain = "testbed"
[epoch]
length = "1s"
guard = "300ms"
[[synopsis]]
algorithm = "lda"
[[synopsis]]
algorithm = "lds"
virtual_cells = 512
[[class]]
name = "tcp"
filter = "tcp"
[[class]]
name = "udp"
filter = "udp"
"#;

/// The epochs of all agents and recordings.
const EPOCH_NS: i64 = 1_000_000_000;
/// What an agent must be there before an epoch begins for it to be whole, with room.
const GUARD_NS: i64 = 500_000_000;

pub(crate) fn now_ns() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    since.as_nanos() as i64
}

/// Waits until so many epochs have begun of which who captures now sees all.
pub(crate) fn wait_for_epochs(count: i64) {
    let begun = |time_ns: i64| time_ns.div_euclid(EPOCH_NS);
    let last = begun(now_ns() + GUARD_NS) + count;
    wait_until("the next epochs have begun", || begun(now_ns()) >= last);
}

/// A process with its output in files, one pair for each start.
pub(crate) struct Process {
    child: Child,
    stderr: PathBuf,
}

impl Process {
    /// Starts it, and waits until it has printed `ready` on standard error.
    #[track_caller]
    pub(crate) fn start(mut command: Command, folder: &Path, name: &str, ready: &str) -> Self {
        let is_free = |number: &u32| !folder.join(format!("{name}-{number}.err")).exists();
        let number = (1..).find(is_free).unwrap();
        let path = |ending: &str| folder.join(format!("{name}-{number}.{ending}"));
        let (stdout, stderr) = (path("out"), path("err"));
        command.stdout(File::create(stdout).unwrap()).stderr(File::create(&stderr).unwrap());
        let mut process = Self { child: command.spawn().unwrap(), stderr };
        wait_until(&format!("{name} says {ready:?}"), || {
            let ended = process.child.try_wait().unwrap();
            assert!(ended.is_none(), "{name}: {}", process.said());
            process.said().contains(ready)
        });
        process
    }

    /// Ends it as SIGTERM does, and checks that all went well.
    #[track_caller]
    pub(crate) fn stop(mut self) {
        run(&format!("kill -TERM {}", self.child.id()));
        let ended = self.child.wait().unwrap();
        let said = self.said();
        assert!(ended.success() && !said.contains("panicked"), "{ended}: {said}");
    }

    /// Ends it as nothing else does.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        let said = self.said();
        assert!(!said.contains("panicked"), "{said}");
    }

    /// Its standard error so far.
    pub(crate) fn said(&self) -> String {
        fs::read_to_string(&self.stderr).unwrap()
    }
}

/// An agent to be started, once or again and again, with its spool.
pub(crate) struct AgentPlan {
    pub(crate) name: &'static str,
    pub(crate) place: Place,
    /// Interfaces, by whose names the points go, and directions.
    pub(crate) points: &'static [(&'static str, &'static str)],
    /// The section of the collector, without its heading.
    pub(crate) collector: String,
}

impl AgentPlan {
    /// Starts it.
    #[track_caller]
    pub(crate) fn start(&self, bed: &Testbed, folder: &Path) -> Process {
        let Self { name, place, points, collector } = self;
        let mut text = COMMON.to_owned();
        for (point, direction) in *points {
            text += &format!(
                "[[point]]\nname = \"{point}\"\ninterface = \"{point}\"\n\
                 direction = \"{direction}\"\nfilter = \"{}\"\n",
                super::FILTER
            );
        }
        text += &format!("[spool]\ndirectory = \"spool-{name}\"\n[collector]\n{collector}");
        fs::write(folder.join(format!("{name}.toml")), text).unwrap();
        let mut command = bed.twixt(*place, folder);
        command.args(["agent", "--config", &format!("{name}.toml")]);
        let (last, _) = points.last().unwrap();
        Process::start(command, folder, name, &format!("{last}: capturing"))
    }
}

impl Testbed {
    /// Starts a collector at R, with a configuration file of that text.
    #[track_caller]
    pub(crate) fn start_collector(&self, folder: &Path, config: &str) -> Process {
        fs::write(folder.join("collector.toml"), config).unwrap();
        let mut command = self.twixt(Place::R, folder);
        command.args("collector --config collector.toml --follow -F jsonl".split(' '));
        Process::start(command, folder, "collector", "collector: listening on")
    }
}

/// The reports on one epoch of a segment, class and algorithm.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    /// As `r-in:r-out`.
    pub(crate) segment: String,
    pub(crate) class: String,
    pub(crate) algorithm: String,
    pub(crate) epoch: i64,
}

/// Epochs of which nothing is known.
#[derive(Clone, Debug)]
pub(crate) struct Gap {
    /// With the first epoch.
    key: Key,
    epochs: i64,
    reason: String,
}

/// Everything that a collector reported, over all its starts.
pub(crate) struct Reports {
    pub(crate) estimates: BTreeMap<Key, Value>,
    pub(crate) gaps: Vec<Gap>,
    /// Estimates that were repeated, with the same content.
    pub(crate) repeated: usize,
}

impl Reports {
    /// Reads the reports so far. Whatever a killed collector did not write to its end is left out.
    #[track_caller]
    pub(crate) fn read(folder: &Path) -> Self {
        let mut reports = Self { estimates: BTreeMap::new(), gaps: Vec::new(), repeated: 0 };
        let file = |number: u32| folder.join(format!("collector-{number}.out"));
        for path in (1..).map(file).take_while(|path| path.exists()) {
            let text = fs::read_to_string(path).unwrap();
            for line in text.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
                reports.take(serde_json::from_str(line).unwrap());
            }
        }
        reports
    }

    #[track_caller]
    fn take(&mut self, row: Value) {
        let text = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
        let segment = format!("{}:{}", text("upstream"), text("downstream"));
        let (class, algorithm) = (text("class"), text("algorithm"));
        let key = Key { segment, class, algorithm, epoch: row["epoch"].as_i64().unwrap_or(0) };
        match row["event"].as_str() {
            Some("estimate") => match self.estimates.get(&key) {
                None => drop(self.estimates.insert(key, row)),
                Some(before) => {
                    assert_eq!(*before, row, "an epoch is told twice, and differently");
                    self.repeated += 1;
                }
            },
            Some("gap") => {
                let (epochs, reason) = (row["epochs"].as_i64().unwrap(), text("gap"));
                self.gaps.push(Gap { key, epochs, reason });
            }
            _ => {}
        }
    }

    /// Estimates of a segment, class and algorithm, in order.
    pub(crate) fn of(&self, segment: &str, class: &str, algorithm: &str) -> Vec<&Value> {
        let is_it =
            |key: &Key| key.segment == segment && key.class == class && key.algorithm == algorithm;
        self.estimates.iter().filter(|(key, _)| is_it(key)).map(|(_, row)| row).collect()
    }

    /// The epochs of which a segment, class and algorithm have a gap, and why.
    pub(crate) fn gaps(&self, segment: &str, class: &str, algorithm: &str) -> BTreeMap<i64, &str> {
        let is_it =
            |key: &Key| key.segment == segment && key.class == class && key.algorithm == algorithm;
        let gaps = self.gaps.iter().filter(|gap| is_it(&gap.key));
        gaps.flat_map(|Gap { key, epochs, reason }| {
            (key.epoch..key.epoch + epochs).map(|epoch| (epoch, reason.as_str()))
        })
        .collect()
    }

    /// Waits until an epoch or a later one is reported, by all algorithms, and returns
    /// all reports.
    #[track_caller]
    pub(crate) fn wait_for(folder: &Path, segment: &str, class: &str, epoch: i64) -> Self {
        wait_for(&format!("epoch {epoch} of {segment} {class}"), || {
            let reports = Self::read(folder);
            let is_over = |algorithm: &str| {
                let last = reports.of(segment, class, algorithm).last().map(|row| &row["epoch"]);
                let gap = reports
                    .gaps(segment, class, algorithm)
                    .last_key_value()
                    .map(|(epoch, _)| *epoch);
                last.and_then(Value::as_i64).max(gap) >= Some(epoch)
            };
            if ["lda", "lds"].into_iter().all(is_over) { Ok(reports) } else { Err(reports.gaps) }
        })
    }
}

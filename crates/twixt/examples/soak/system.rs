//! The cables, the agents and the collector.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::SEGMENTS;

/// Processes under observation, and where the collector answers.
pub(crate) struct System {
    pub(crate) collector: Child,
    pub(crate) agents: Vec<Child>,
    pub(crate) address: SocketAddr,
    folder: tempfile::TempDir,
}

/// What every agent keeps.
const AGENT: &str = r#"
[epoch]
length = "1s"
[[synopsis]]
algorithm = "lda"
[[synopsis]]
algorithm = "lds"
virtual_cells = 512
[[synopsis]]
algorithm = "sample"
budget_bytes = 4096
"#;

impl System {
    /// Lays the cables, and starts all processes.
    pub(crate) fn start() -> Self {
        run("ip link set lo up");
        (0..SEGMENTS).for_each(lay_cable);
        let folder = tempfile::tempdir().unwrap();
        let (collector, address) = start_collector(folder.path());
        let ends = (0..SEGMENTS).flat_map(|segment| [("up", segment), ("down", segment)]);
        let agents = ends.map(|(end, segment)| start_agent(folder.path(), end, segment, address));
        Self { agents: agents.collect(), collector, address, folder }
    }

    /// Ends everything, agents first, and keeps nothing.
    pub(crate) fn stop(self) {
        for mut process in self.agents.into_iter().chain([self.collector]) {
            run(&format!("kill -TERM {}", process.id()));
            let ended = process.wait().unwrap();
            assert!(ended.success(), "{ended}");
        }
        self.folder.close().unwrap();
    }
}

/// Two interfaces, and an address behind the far one to send to.
fn lay_cable(segment: usize) {
    let (near, far) = (format!("up-{segment}"), format!("down-{segment}"));
    run(&format!("ip link add {near} type veth peer name {far}"));
    run(&format!("ip address add 10.0.{segment}.1/24 dev {near}"));
    run(&format!("ip link set {near} up"));
    run(&format!("ip link set {far} up"));
    run(&format!("ip neighbour add 10.0.{segment}.2 lladdr 02:00:00:00:00:02 dev {near}"));
}

fn start_collector(folder: &Path) -> (Child, SocketAddr) {
    let segment = |number: usize| {
        format!("[[segment]]\nupstream = \"up-{number}\"\ndownstream = \"down-{number}\"\n")
    };
    let segments: String = (0..SEGMENTS).map(segment).collect();
    let config = format!("listen = \"127.0.0.1:0\"\ndirectory = \"collector\"\n{segments}");
    fs::write(folder.join("collector.toml"), config).unwrap();
    let (child, said) = start(folder, "collector", "collector --config collector.toml", "on ");
    let (_, address) = said.split_once("listening on ").unwrap();
    (child, address.parse().unwrap())
}

fn start_agent(folder: &Path, end: &str, segment: usize, collector: SocketAddr) -> Child {
    let name = format!("{end}-{segment}");
    let direction = if end == "up" { "out" } else { "in" };
    let config = format!(
        "{AGENT}[[point]]\nname = \"{name}\"\ninterface = \"{name}\"\ndirection = \"{direction}\"\n\
         filter = \"udp\"\nring = \"4MiB\"\n[spool]\ndirectory = \"spool-{name}\"\n\
         [collector]\nurl = \"http://{collector}\"\n"
    );
    fs::write(folder.join(format!("{name}.toml")), config).unwrap();
    start(folder, &name, &format!("--config {name}.toml agent"), "capturing").0
}

/// Starts `twixt`, and waits until it says `ready`; the rest of what it says goes to a file.
fn start(folder: &Path, name: &str, line: &str, ready: &str) -> (Child, String) {
    let mut child = Command::new(twixt())
        .args(line.split(' '))
        .current_dir(folder)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains(ready) {
        line.clear();
        assert!(said.read_line(&mut line).unwrap() > 0, "{name} does not start");
    }
    let mut log = File::create(folder.join(format!("{name}.log"))).unwrap();
    std::thread::spawn(move || std::io::copy(&mut said, &mut log));
    (child, line.trim().to_owned())
}

/// The release build, which lies beside the folder of this program.
fn twixt() -> PathBuf {
    let here = std::env::current_exe().unwrap();
    here.ancestors().nth(2).unwrap().join("twixt")
}

fn run(line: &str) {
    let mut words = line.split(' ');
    let status = Command::new(words.next().unwrap()).args(words).status().unwrap();
    assert!(status.success(), "{line}: run this as root, in a network namespace");
}

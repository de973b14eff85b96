//! A small network on real kernel paths: three namespaces A, R and B, and a queue in the middle.
//!
//! ```text
//! A ── a-out ══ r-in ── R ── [token bucket] r-out ══ b-in ── B
//! 10.0.1.1      10.0.1.254         10.0.2.254       10.0.2.1
//!                       R ── r-side ══ b-side ── B
//!                      10.0.3.254     10.0.3.1
//! ```
//!
//! R forwards. What it sends to B waits in a token bucket, which drops what it has no room for.
//! Dropped packets never reach the packet sockets of `r-out`, so a point there sees what left.
//! Neighbours are known beforehand and IPv6 is silent: nothing passes that was not sent on purpose. What
//! a collector in R sends to an agent in B takes the cable at the side: the bucket would drop it too, and
//! nobody would count it but the bucket.
//!
//! The network goes away with the value, also when a test fails, and with it every process in it.

pub(crate) mod load;
pub(crate) mod referee;
pub(crate) mod system;

use std::ffi::OsStr;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

use twixt_testing::{run, wait_until};

use super::live::Capturing;

/// What everything from A to B has in common, and nothing that R itself sends.
pub(crate) const FILTER: &str = "src net 10.0.1.0/24 and dst net 10.0.2.0/24";
/// So slow that no capture on a busy machine drops anything. The bucket holds a packet of the wire
/// and no super-packet, so that each is split before it is queued or dropped. The queue holds 40 ms.
const QUEUE: &str = "tbf rate 30mbit burst 1516 limit 150kb";
const PREFIX: &str = "twixt-test";

/// A namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    A,
    R,
    B,
}

/// Whether interfaces join and split packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Offloads {
    On,
    Off,
}

/// One end of a cable.
struct End {
    place: Place,
    interface: &'static str,
    address: &'static str,
    hardware_address: &'static str,
}

const CABLES: [[End; 2]; 3] = [
    [
        End {
            place: Place::A,
            interface: "a-out",
            address: "10.0.1.1",
            hardware_address: "02:00:00:00:01:01",
        },
        End {
            place: Place::R,
            interface: "r-in",
            address: "10.0.1.254",
            hardware_address: "02:00:00:00:01:fe",
        },
    ],
    [
        End {
            place: Place::R,
            interface: "r-out",
            address: "10.0.2.254",
            hardware_address: "02:00:00:00:02:fe",
        },
        End {
            place: Place::B,
            interface: "b-in",
            address: "10.0.2.1",
            hardware_address: "02:00:00:00:02:01",
        },
    ],
    [
        End {
            place: Place::R,
            interface: "r-side",
            address: "10.0.3.254",
            hardware_address: "02:00:00:00:03:fe",
        },
        End {
            place: Place::B,
            interface: "b-side",
            address: "10.0.3.1",
            hardware_address: "02:00:00:00:03:01",
        },
    ],
];

/// The network. There is one at a time on a machine: others would take its processors away.
pub(crate) struct Testbed {
    prefix: String,
    /// Locked as long as the network is there.
    _turn: File,
}

impl Testbed {
    /// Waits for its turn, and makes the network.
    pub(crate) fn new(offloads: Offloads) -> Self {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let turn = File::create(std::env::temp_dir().join("twixt-testbed.lock")).unwrap();
        turn.lock().unwrap();
        remove_abandoned();
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let prefix = format!("{PREFIX}-{}-{number}", std::process::id());
        // From here on, whatever fails, it is taken away again.
        let bed = Self { prefix, _turn: turn };
        for place in [Place::A, Place::R, Place::B] {
            run(&format!("ip netns add {}", bed.namespace(place)));
        }
        CABLES.iter().for_each(|cable| bed.lay(cable));
        bed.run(Place::R, "ip link set lo up");
        bed.run(Place::A, "ip route add default via 10.0.1.254");
        bed.run(Place::B, "ip route add default via 10.0.2.254");
        let forward = "echo 1 > /proc/sys/net/ipv4/ip_forward";
        assert!(bed.command(Place::R, "sh").args(["-c", forward]).status().unwrap().success());
        bed.run(Place::R, &format!("tc qdisc add dev r-out root {QUEUE}"));
        CABLES.iter().flatten().for_each(|end| bed.set_offloads(end, offloads));
        bed.await_up();
        bed
    }

    /// Runs a program in one of the namespaces, which must not fail.
    #[track_caller]
    pub(crate) fn run(&self, place: Place, line: &str) {
        run(&format!("ip netns exec {} {line}", self.namespace(place)));
    }

    /// A program to be run in one of the namespaces. It has the number of the process that is
    /// started.
    pub(crate) fn command(&self, place: Place, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespace(place)]).arg(program).stdin(Stdio::null());
        command.env_remove("TWIXT_CONFIG").env_remove("TWIXT_KEY");
        command
    }

    /// Starts `twixt` in one of the namespaces, and waits until it captures.
    pub(crate) fn capture(&self, place: Place, folder: &Path, arguments: &str) -> Capturing {
        let mut command = self.twixt(place, folder);
        command.args(arguments.split_whitespace());
        Capturing::spawn(command)
    }

    /// `twixt` in one of the namespaces.
    pub(crate) fn twixt(&self, place: Place, folder: &Path) -> Command {
        let mut command = self.command(place, env!("CARGO_BIN_EXE_twixt"));
        command.current_dir(folder);
        command
    }

    /// How many packets the token bucket has dropped.
    pub(crate) fn drops(&self) -> u64 {
        let mut command = self.command(Place::R, "tc");
        let shown = command.args("-s -j qdisc show dev r-out".split(' ')).output().unwrap();
        let queues: Value = serde_json::from_slice(&shown.stdout).unwrap();
        queues[0]["drops"].as_u64().unwrap_or_else(|| panic!("no drops in {queues}"))
    }

    fn namespace(&self, place: Place) -> String {
        let suffix = match place {
            Place::A => "a",
            Place::R => "r",
            Place::B => "b",
        };
        format!("{}-{suffix}", self.prefix)
    }

    fn lay(&self, [left, right]: &[End; 2]) {
        let [near, far] = [left, right].map(|end| self.namespace(end.place));
        run(&format!(
            "ip -n {near} link add {} address {} type veth peer name {} address {} netns {far}",
            left.interface, left.hardware_address, right.interface, right.hardware_address
        ));
        for (end, other) in [(left, right), (right, left)] {
            let End { place, interface, address, .. } = end;
            let End { address: other, hardware_address, .. } = other;
            self.run(*place, &format!("ip link set {interface} addrgenmode none"));
            self.run(*place, &format!("ip address add {address}/24 dev {interface}"));
            self.run(*place, &format!("ip link set {interface} up"));
            let neighbour = format!("{other} lladdr {hardware_address} dev {interface}");
            self.run(*place, &format!("ip neighbour add {neighbour}"));
        }
    }

    fn set_offloads(&self, end: &End, offloads: Offloads) {
        let to = if offloads == Offloads::On { "on" } else { "off" };
        let interface = end.interface;
        self.run(end.place, &format!("ethtool -K {interface} gro {to} gso {to} tso {to}"));
    }

    fn await_up(&self) {
        for End { place, interface, .. } in CABLES.iter().flatten() {
            wait_until("a cable is up", || {
                let mut command = self.command(*place, "ip");
                let shown = command.args(["link", "show", interface]).output().unwrap();
                String::from_utf8_lossy(&shown.stdout).contains("state UP")
            });
        }
    }
}

impl Drop for Testbed {
    fn drop(&mut self) {
        for place in [Place::A, Place::R, Place::B] {
            remove(&self.namespace(place));
        }
    }
}

/// Takes a namespace away, and every process in it.
fn remove(namespace: &str) {
    let pids = Command::new("ip").args(["netns", "pids", namespace]).output();
    let pids = pids.map(|ended| String::from_utf8_lossy(&ended.stdout).into_owned());
    for pid in pids.unwrap_or_default().split_whitespace() {
        let _ = Command::new("kill").args(["-KILL", pid]).status();
    }
    let _ = Command::new("ip").args(["netns", "delete", namespace]).output();
}

/// Takes away what tests left that were killed.
fn remove_abandoned() {
    let listed = Command::new("ip").args(["netns", "list"]).output().unwrap();
    for line in String::from_utf8_lossy(&listed.stdout).lines() {
        let namespace = line.split(' ').next().unwrap_or_default();
        let Some(rest) = namespace.strip_prefix(PREFIX) else { continue };
        let pid = rest.trim_start_matches('-').split('-').next().unwrap_or_default();
        // Of a process that is dead but not yet buried, it is empty.
        let command = std::fs::read(Path::new("/proc").join(pid).join("cmdline"));
        if command.unwrap_or_default().is_empty() {
            remove(namespace);
        }
    }
}

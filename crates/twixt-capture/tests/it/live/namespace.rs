//! A network namespace for a test, with a pair of interfaces in it.
//!
//! The test starts itself again in a namespace of its own, which goes away with that process,
//! and all interfaces with it.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const INSIDE: &str = "TWIXT_TEST_INSIDE_NAMESPACE";

/// Runs `body` in a network namespace, where `left` and `right` are the ends of a virtual cable.
/// `name` is that of the test that calls. Says so where that is not possible.
#[track_caller]
pub(crate) fn in_namespace(name: &str, body: impl FnOnce()) {
    if std::env::var_os(INSIDE).is_some() {
        run("ip link set lo up");
        lay_cable();
        return body();
    }
    if let Some(reason) = obstacle() {
        return println!("skipped: {reason}");
    }
    let program = std::env::current_exe().unwrap();
    let ended = Command::new("unshare")
        .arg("--net")
        .arg(program)
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(INSIDE, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ended.stdout);
    assert!(said.contains("1 passed"), "{said}\n{}", String::from_utf8_lossy(&ended.stderr));
}

/// Makes `left` and `right`, which send nothing by themselves, and waits until they can.
pub(crate) fn lay_cable() {
    run("ip link add left type veth peer name right");
    for end in ["left", "right"] {
        run(&format!("ip link set {end} addrgenmode none"));
        run(&format!("ip link set {end} up"));
    }
    await_up();
}

/// Waits until both ends of the cable have noticed that the other is up.
pub(crate) fn await_up() {
    let is_up = |end: &str| {
        let shown = words(&format!("ip link show {end}")).output().unwrap();
        String::from_utf8_lossy(&shown.stdout).contains("state UP")
    };
    let start = Instant::now();
    while !["left", "right"].into_iter().all(is_up) {
        assert!(start.elapsed() < Duration::from_secs(10), "the interfaces do not come up");
    }
}

/// Runs a command that must work.
#[track_caller]
pub(crate) fn run(command: &str) {
    let ended = words(command).output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{command}: {said}");
}

/// A command, by its words.
pub(crate) fn words(command: &str) -> Command {
    let mut words = command.split_whitespace();
    let mut command = Command::new(words.next().unwrap());
    command.args(words);
    command
}

/// Another namespace, which goes with the value.
pub(crate) struct Peer(Child);

impl Peer {
    pub(crate) fn new() -> Self {
        let child = words("unshare --net sleep 60").stdout(Stdio::null()).spawn().unwrap();
        let peer = Self(child);
        let own = std::fs::read_link("/proc/self/ns/net").unwrap();
        let theirs = format!("/proc/{}/ns/net", peer.pid());
        while std::fs::read_link(&theirs).is_ok_and(|theirs| theirs == own) {
            std::thread::sleep(Duration::from_millis(1));
        }
        peer
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Runs a command there.
    #[track_caller]
    pub(crate) fn run(&self, command: &str) {
        run(&format!("nsenter --target {} --net {command}", self.pid()));
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn obstacle() -> Option<String> {
    let works = |command: &str| {
        let command = words(command).stdout(Stdio::null()).stderr(Stdio::null()).status();
        command.is_ok_and(|status| status.success())
    };
    let needed = ["ip -V", "tc -V", "setpriv --version", "nsenter --version"];
    if let Some(missing) = needed.into_iter().find(|command| !works(command)) {
        return Some(format!("{missing} does not work"));
    }
    let namespace = "unshare --net ip link add left type veth peer name right";
    (!works(namespace)).then(|| "network namespaces with interfaces need root".to_owned())
}

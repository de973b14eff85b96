//! A network namespace for a test, with a pair of interfaces in it, and another beside it.

use std::process::{Child, Command, Stdio};

use twixt_testing::{run, wait_until};

/// The ends of the virtual cable.
pub(crate) const ENDS: [&str; 2] = ["left", "right"];

/// Runs `body` in a network namespace, where `left` and `right` are the ends of a virtual cable.
/// `body` must be a closure of the test itself.
#[track_caller]
pub(crate) fn in_namespace(body: impl FnOnce()) {
    let prepare = || {
        run("ip link set lo up");
        twixt_testing::lay_cable(ENDS);
    };
    twixt_testing::in_namespace(prepare, body);
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
        let child = words("unshare --net sleep 600").stdout(Stdio::null()).spawn().unwrap();
        let peer = Self(child);
        let own = std::fs::read_link("/proc/self/ns/net").unwrap();
        let theirs = format!("/proc/{}/ns/net", peer.pid());
        wait_until("the peer has a namespace of its own", || {
            std::fs::read_link(&theirs).is_ok_and(|theirs| theirs != own)
        });
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

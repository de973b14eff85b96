//! A network namespace with a cable in it, and commands that capture there.

use std::io::{BufRead, BufReader, Read};
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use super::{Run, command};

const INSIDE: &str = "TWIXT_TEST_INSIDE_NAMESPACE";
/// How many datagrams [`send`] sends.
pub(crate) const PACKETS: u32 = 400;

/// Runs `body` in a network namespace with a virtual cable from `near` to `far`.
pub(crate) fn in_namespace(name: &str, body: impl FnOnce()) {
    if std::env::var_os(INSIDE).is_some() {
        lay_cable();
        return body();
    }
    let works = Command::new("unshare").args(["--net", "ip", "-V"]).output();
    if !works.is_ok_and(|ended| ended.status.success()) {
        return println!("skipped: network namespaces need root, unshare and ip");
    }
    let ended = Command::new("unshare")
        .arg("--net")
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(INSIDE, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ended.stdout);
    assert!(said.contains("1 passed"), "{said}{}", String::from_utf8_lossy(&ended.stderr));
}

fn lay_cable() {
    for line in [
        "ip link add near type veth peer name far",
        "ip link set near addrgenmode none",
        "ip link set far addrgenmode none",
        "ip address add 10.0.0.1/24 dev near",
        "ip link set near up",
        "ip link set far up",
        "ip neighbour add 10.0.0.2 lladdr 02:00:00:00:00:02 dev near",
    ] {
        run(line);
    }
    wait_until("both ends are up", || {
        let shown = Command::new("ip").args(["link", "show"]).output().unwrap();
        String::from_utf8_lossy(&shown.stdout).matches("state UP").count() == 2
    });
}

/// Runs a program that must not fail.
#[track_caller]
pub(crate) fn run(line: &str) {
    let mut words = line.split(' ');
    assert!(Command::new(words.next().unwrap()).args(words).status().unwrap().success(), "{line}");
}

/// Waits for something that takes moments only.
#[track_caller]
pub(crate) fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(10), "it never happened that {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A command that captures. A test that fails does not leave it behind.
pub(crate) struct Capturing {
    child: Child,
    stderr: BufReader<ChildStderr>,
}

impl Drop for Capturing {
    fn drop(&mut self) {
        // It has mostly ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Capturing {
    /// Starts a command, and waits until it captures.
    pub(crate) fn start(folder: &Path, arguments: &str) -> Self {
        let mut command = command();
        command.args(arguments.split_whitespace()).current_dir(folder);
        Self::spawn(command)
    }

    /// As [`Capturing::start`].
    pub(crate) fn spawn(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut said = String::new();
        stderr.read_line(&mut said).unwrap();
        assert!(said.ends_with(": capturing\n"), "{said}");
        Self { child, stderr }
    }

    /// Lines of standard output, as soon as they are written.
    pub(crate) fn lines(&mut self) -> Receiver<String> {
        let (sender, receiver) = channel();
        let stdout: ChildStdout = self.child.stdout.take().expect("nobody took it");
        std::thread::spawn(move || {
            let lines = BufReader::new(stdout).lines().map_while(Result::ok);
            lines.for_each(|line| drop(sender.send(line)));
        });
        receiver
    }

    /// As Ctrl-C does.
    pub(crate) fn interrupt(&self) {
        self.signal("INT");
    }

    /// Sends a signal by its name.
    pub(crate) fn signal(&self, name: &str) {
        run(&format!("kill -{name} {}", self.child.id()));
    }

    /// Number of the process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, and what it said after it began to capture.
    pub(crate) fn ended(mut self) -> Run {
        let mut said = String::new();
        self.stderr.read_to_string(&mut said).unwrap();
        let mut stdout = String::new();
        let taken = self.child.stdout.take();
        taken.map(|mut stream| stream.read_to_string(&mut stdout).unwrap());
        Run { code: self.child.wait().unwrap().code(), stdout, stderr: said }
    }
}

/// Sends datagrams through the cable, over a good third of a second.
pub(crate) fn send() {
    let socket = UdpSocket::bind("10.0.0.1:4000").unwrap();
    for number in 0..PACKETS {
        socket.send_to(&number.to_be_bytes(), "10.0.0.2:5000").unwrap();
        std::thread::sleep(Duration::from_millis(1));
    }
}

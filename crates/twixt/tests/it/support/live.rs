//! A network namespace with a cable in it, and commands that capture there.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use twixt_testing::{lay_cable, pace, run};

use super::{Run, command};

/// How many datagrams [`send`] sends.
pub(crate) const PACKETS: u32 = 400;

/// Runs `body` in a network namespace with a virtual cable from `near` to `far`, whose loopback
/// interface is down. `body` must be a closure of the test itself.
#[track_caller]
pub(crate) fn in_namespace(body: impl FnOnce()) {
    let prepare = || {
        lay_cable(["near", "far"]);
        run("ip address add 10.0.0.1/24 dev near");
        run("ip neighbour add 10.0.0.2 lladdr 02:00:00:00:00:02 dev near");
    };
    twixt_testing::in_namespace(prepare, body);
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

    /// How it ended, and its output after it began to capture.
    pub(crate) fn ended(mut self) -> Run {
        let mut said = String::new();
        self.stderr.read_to_string(&mut said).unwrap();
        let mut stdout = String::new();
        let taken = self.child.stdout.take();
        taken.map(|mut stream| stream.read_to_string(&mut stdout).unwrap());
        Run { code: self.child.wait().unwrap().code(), stdout, stderr: said }
    }
}

/// What the agent in the namespace, which serves metrics on port 9470, answers.
pub(crate) fn agent_page(path: &str) -> String {
    let mut stream = TcpStream::connect("127.0.0.1:9470").unwrap();
    write!(stream, "GET {path} HTTP/1.0\r\n\r\n").unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    page
}

/// A number among its metrics.
#[track_caller]
pub(crate) fn agent_metric(name: &str) -> f64 {
    let page = agent_page("/metrics");
    let line = page.lines().find(|line| line.starts_with(name));
    let line = line.unwrap_or_else(|| panic!("no {name} in {page}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

/// A last datagram. Once it has passed an interface, every other capture there has all that was
/// sent before: the kernel hands a packet to all of them, one after the other.
pub(crate) struct Marker {
    capture: Capturing,
    address: &'static str,
}

impl Marker {
    /// Waits for one on `lo` or `far`.
    pub(crate) fn on(interface: &str) -> Self {
        let line = format!("info -i {interface} -c 1 udp port 5001");
        let capture = Capturing::start(Path::new("."), &line);
        let address = if interface == "lo" { "127.0.0.1:5001" } else { "10.0.0.2:5001" };
        Self { capture, address }
    }

    /// Sends it, and returns when it has passed.
    pub(crate) fn pass(self) {
        UdpSocket::bind("0.0.0.0:0").unwrap().send_to(b"that was all", self.address).unwrap();
        self.capture.ended().expect(0);
    }
}

/// Sends datagrams through the cable, over a good third of a second.
pub(crate) fn send() {
    let socket = UdpSocket::bind("10.0.0.1:4000").unwrap();
    for number in 0..PACKETS {
        socket.send_to(&number.to_be_bytes(), "10.0.0.2:5000").unwrap();
        pace(Duration::from_millis(1));
    }
}

//! A collector as a process of its own.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A collector that runs until it is dropped.
pub(crate) struct Process {
    child: Child,
    pub(crate) address: SocketAddr,
    /// Where metrics are, if `--metrics` was given.
    pub(crate) metrics: Option<SocketAddr>,
}

impl Process {
    /// For the segment from `up` to `down`; what it prints goes to a file of that round.
    pub(crate) fn start(folder: &Path, round: u32) -> Self {
        Self::start_with(folder, round, &[])
    }

    /// With further options.
    pub(crate) fn start_with(folder: &Path, round: u32, options: &[&str]) -> Self {
        let out = File::create(printed(folder, round)).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_twixt"))
            .args(["collector", "--listen", "127.0.0.1:0", "--segment", "up:down"])
            .args(["--patience", "6s", "--follow", "-F", "jsonl", "--directory"])
            .arg(folder.join("collector"))
            .args(options)
            .stdout(out)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut said = |what: &str| -> SocketAddr {
            loop {
                let line = lines.next().expect("it says where it listens").unwrap();
                if let Some((_, address)) = line.split_once(what) {
                    return address.parse().unwrap();
                }
            }
        };
        let address = said("collector: listening on ");
        let metrics = options.contains(&"--metrics").then(|| said("collector: metrics on "));
        // Whatever it still says must not fill the pipe.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, address, metrics }
    }

    /// Number of the process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&mut self, name: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &id]).status().unwrap().success());
    }

    /// At once, with no chance to tidy up.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(crate) fn wait(&mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What the collector of a round printed.
pub(crate) fn printed(folder: &Path, round: u32) -> PathBuf {
    folder.join(format!("printed-{round}.jsonl"))
}

//! What becomes of an agent when one of its threads fails.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::mpsc;

use twixt_capture::{BatchEnd, CaptureError, Frame, LiveCounts, LiveEnding, SourceCounts};
use twixt_model::{DigestHash, DigestProfile, EpochRule};
use twixt_synopsis::{Purpose, find};
use twixt_wire::{Digester, HashKey};

use super::*;
use crate::config::SpoolConfig;
use crate::sender::DeliveryConfig;

/// An interface whose driver misbehaves: the thread that reads it panics when it
/// is asked to.
struct Panicking {
    now: mpsc::Receiver<()>,
}

impl LiveFrames for Panicking {
    fn read_batch(&mut self, _: impl FnMut(Frame<'_>)) -> Result<BatchEnd, CaptureError> {
        match self.now.recv() {
            Ok(()) => panic!("a frame of no length"),
            Err(_) => Ok(BatchEnd::More),
        }
    }

    fn ending(&self) -> Option<LiveEnding> {
        None
    }

    fn time_source(&self) -> TimeSource {
        TimeSource::Kernel
    }

    fn counts(&self) -> SourceCounts {
        SourceCounts::default()
    }

    fn live_counts(&self) -> LiveCounts {
        LiveCounts::default()
    }

    fn longest_wait(&self) -> Duration {
        Duration::ZERO
    }

    fn reopen(&mut self) -> Result<(), LiveError> {
        Ok(())
    }
}

fn config(spool: &std::path::Path) -> AgentConfig {
    let point = PointConfig {
        name: "up".to_owned(),
        interface: "none".to_owned(),
        options: LiveOptions::default(),
        filter: None,
        outer: false,
        threads: 1,
    };
    let key = HashKey::from_seed(1);
    AgentConfig {
        domain: String::new(),
        rule: EpochRule::every(1_000_000_000).unwrap(),
        guard: None,
        digester: Digester::new(DigestProfile::Default, DigestHash::Xxh3, 24, key),
        classes: Vec::new(),
        synopses: vec![(find(Purpose::Delay, "lda").unwrap().start)(&Default::default()).unwrap()],
        points: vec![point],
        spool: SpoolConfig { folder: spool.to_owned(), bytes_max: 1 << 20 },
        delivery: DeliveryConfig {
            // No collector listens there.
            url: "http://127.0.0.1:1".to_owned(),
            ..DeliveryConfig::default()
        },
        metrics: None,
        user: None,
    }
}

fn health(listener: &TcpListener) -> String {
    let mut stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    write!(stream, "GET /healthz HTTP/1.0\r\n\r\n").unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    page
}

/// The other threads went on, and the agent called itself healthy.
#[test]
fn a_packet_thread_that_panics_ends_the_agent() {
    let folder = tempfile::tempdir().unwrap();
    let (config, stop) = (config(folder.path()), Stop::default());
    let spools = Spools::open(folder.path(), ["up"], 1 << 20).unwrap();
    spools.append(0, twixt_model::Epoch(1), b"spooled").unwrap();
    let sender = Sender::new(&config.delivery, 1).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (panic_now, now) = mpsc::channel();
    let clock = PointClock::after(0);
    let observer = observer(&config, &config.points[0]).unwrap();
    let meters = meters(&config, &config.points[0], &observer, TimeSource::Kernel);
    let synopses = copies(&config.synopses);
    let share = PointShare::new(0, meters, synopses, observer, clock.era(), clock.now()).unwrap();
    let point = OpenPoint { clock, shares: vec![(Panicking { now }, share)] };
    let ended = thread::scope(|scope| {
        let (spools, sender, stop, listener) = (&spools, &sender, &stop, &listener);
        let run = move || run_threads(&config, vec![point], Some(listener), spools, sender, stop);
        let running = scope.spawn(run);
        while !health(listener).contains("200 OK") {
            thread::yield_now();
        }
        panic_now.send(()).unwrap();
        running.join().unwrap()
    });
    let failure = ended.unwrap_err().to_string();
    assert_eq!(failure, "thread \"packets\" panicked: a frame of no length");
    assert_eq!(spools.counts().epochs, 1, "what is spooled stays");
}

#[test]
fn health_is_never_green_without_all_threads() {
    let folder = tempfile::tempdir().unwrap();
    let spools = Spools::open(folder.path(), ["up"], 1 << 20).unwrap();
    let (metrics, quality) = (Metrics::new(), Mutex::new(ClockQuality::ask()));
    let supervisor = supervisor_of(&Stop::default());
    let health = || page("/healthz", &metrics, &spools, &quality, &supervisor).unwrap();
    assert_eq!(health().status, "200 OK");
    let _ = supervisor.run("sealing", || panic!("no disk"));
    assert_eq!(health().status, "503 Service Unavailable");
    assert!(health().text.contains("thread \"sealing\" panicked: no disk"), "{:?}", health());
}

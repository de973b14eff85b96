//! An agent that does not observe all packets: it stands still until the kernel drops some, ends, is
//! killed, and begins again. The network loses nothing, and nothing must be called lost. Needs root,
//! `ip` and `unshare`.

use std::net::UdpSocket;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use twixt_engine::{Conclusion, PairEstimate, Series, StoredHalf, StoredSeries, StreamCheck};
use twixt_measure::{QuestionTemplate, Sealed};
use twixt_model::{LossRange, PointId, Segment};
use twixt_testing::{pace, run, wait_until};

use crate::support::collector::{Mood, TestCollector};
use crate::support::folder;
use crate::support::live::{Capturing, in_namespace};

const ALGORITHMS: [&str; 2] = ["exact", "lda"];
/// Both classes belong to one interface.
const CLASSES: [&str; 2] = ["even", "other"];

/// An agent with one point, in a folder of its own. The smallest ring that there is fills at once.
fn start(folder: &Path, point: &str, collector: &TestCollector) -> Capturing {
    let (interface, direction, ring) = match point {
        "up" => ("near", "out", "64MiB"),
        _ => ("far", "in", "128KiB"),
    };
    let folder = folder.join(point);
    std::fs::create_dir_all(&folder).unwrap();
    let config = format!(
        "[epoch]\nlength = \"200ms\"\nguard = \"50ms\"\n\
         [[synopsis]]\nalgorithm = \"exact\"\n[[synopsis]]\nalgorithm = \"lda\"\n\
         [[class]]\nname = \"even\"\nfilter = \"udp dst port 5000\"\n\
         [[point]]\nname = \"{point}\"\ninterface = \"{interface}\"\ndirection = \"{direction}\"\n\
         filter = \"udp\"\nring = \"{ring}\"\n\
         [spool]\ndirectory = \"spool\"\n[collector]\nurl = \"http://{}\"\n",
        collector.address
    );
    std::fs::write(folder.join("agent.toml"), config).unwrap();
    Capturing::start(&folder, "--config agent.toml agent")
}

/// Datagrams through the cable, to two ports in turn, until the value goes away.
struct Traffic {
    sent: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Traffic {
    fn start() -> Self {
        let (sent, is_over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (count, ended) = (Arc::clone(&sent), Arc::clone(&is_over));
        let socket = UdpSocket::bind("10.0.0.1:4000").unwrap();
        let thread = std::thread::spawn(move || {
            let mut datagram = [0; 1000];
            while !ended.load(Ordering::Relaxed) {
                let number = count.fetch_add(1, Ordering::Relaxed);
                datagram[..8].copy_from_slice(&number.to_be_bytes());
                let port = if number.is_multiple_of(2) { 5000 } else { 5002 };
                socket.send_to(&datagram, ("10.0.0.2", port)).unwrap();
                pace(Duration::from_micros(500));
            }
        });
        Self { sent, is_over, thread: Some(thread) }
    }

    /// Waits until so many more have been sent.
    fn wait_for(&self, packets: u64) {
        let until = self.sent.load(Ordering::Relaxed) + packets;
        wait_until("traffic goes on", || self.sent.load(Ordering::Relaxed) >= until);
    }
}

impl Drop for Traffic {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.take().map(JoinHandle::join);
    }
}

/// What both points sent of an algorithm and a class, paired as the collector does.
fn paired(collector: &TestCollector, algorithm: &str, class: &str) -> Vec<PairEstimate> {
    let halves = ["up", "down"].map(|point| collector.epochs(point, algorithm));
    let mut halves: Vec<Sealed> =
        halves.into_iter().flatten().filter(|sealed| sealed.class == class).collect();
    halves.sort_by_key(|sealed| (sealed.epoch, sealed.run));
    let point = |name: &str| PointId(name.to_owned());
    let segment = Segment { upstream: point("up"), downstream: point("down") };
    let config = StoredSeries {
        series: Series::of(segment, &halves[0]),
        question: QuestionTemplate::default(),
        realigned_epochs: 0,
        check: StreamCheck::Boundaries,
    };
    let mut estimates = Vec::new();
    let halves = halves.into_iter().map(|sealed| StoredHalf { sealed, flows: None });
    twixt_engine::pair_stored(config, halves, |conclusion| {
        if let Conclusion::Estimate(pair) = conclusion {
            estimates.push(pair);
        }
    });
    estimates
}

/// Checks that no packet is called lost, and that loss is known of most epochs. Returns of how many
/// epochs it is a range.
#[track_caller]
fn check_nothing_lost(collector: &TestCollector, algorithm: &str, class: &str) -> usize {
    let (mut known, mut ranges) = (0, 0);
    for pair in paired(collector, algorithm, class) {
        let estimate = &pair.estimates[0];
        match estimate.evidence.loss_range() {
            Some(LossRange { min: 0, max: 0 }) => known += 1,
            Some(LossRange { min: 0, max }) => {
                ranges += 1;
                let reason = estimate.reason.as_deref().unwrap_or_default();
                assert!(reason.contains("dropped"), "between 0 and {max}: {reason}");
            }
            Some(range) => panic!("{algorithm} {class}: {range:?} lost: {pair:?}"),
            None => assert!(estimate.reason.is_some(), "{pair:?}"),
        }
    }
    println!("{algorithm} {class}: loss known of {known} epochs, a range of {ranges}");
    assert!(known >= 10, "{algorithm} {class}");
    ranges
}

/// Frames that a point noticed to be dropped, in one class.
fn dropped(collector: &TestCollector, point: &str, class: &str) -> u64 {
    let epochs = collector.epochs(point, "lda");
    epochs.iter().filter(|sealed| sealed.class == class).map(|sealed| sealed.tally.dropped).sum()
}

#[test]
fn what_the_kernel_drops_while_the_agent_stands_still_is_not_lost() {
    in_namespace(|| {
        run("ip link set lo up");
        let (folder, collector) = (folder(), TestCollector::start(Mood::Well));
        let up = start(folder.path(), "up", &collector);
        let down = start(folder.path(), "down", &collector);
        let traffic = Traffic::start();
        traffic.wait_for(3_000);
        for packets in [1_400, 2_000] {
            down.signal("STOP");
            traffic.wait_for(packets);
            down.signal("CONT");
            traffic.wait_for(3_000);
        }
        drop(traffic);
        for agent in [up, down] {
            agent.signal("TERM");
            agent.ended().expect(0);
        }
        let drops = dropped(&collector, "down", "even");
        assert!(drops > 0, "the ring was full");
        assert_eq!(drops, dropped(&collector, "down", "other"), "they are of the interface");
        for algorithm in ALGORITHMS {
            for class in CLASSES {
                assert!(check_nothing_lost(&collector, algorithm, class) > 0);
            }
        }
    });
}

#[test]
fn what_passes_while_no_agent_runs_is_not_lost() {
    in_namespace(|| {
        run("ip link set lo up");
        let (folder, collector) = (folder(), TestCollector::start(Mood::Well));
        let up = start(folder.path(), "up", &collector);
        let down = start(folder.path(), "down", &collector);
        let traffic = Traffic::start();
        traffic.wait_for(3_000);
        down.signal("TERM");
        down.ended().expect(0);
        traffic.wait_for(300);
        let down = start(folder.path(), "down", &collector);
        traffic.wait_for(3_000);
        down.signal("KILL");
        assert_eq!(down.ended().code, None, "killed");
        traffic.wait_for(1_000);
        let down = start(folder.path(), "down", &collector);
        traffic.wait_for(3_000);
        drop(traffic);
        for agent in [up, down] {
            agent.signal("TERM");
            agent.ended().expect(0);
        }
        for algorithm in ALGORITHMS {
            for class in CLASSES {
                check_nothing_lost(&collector, algorithm, class);
            }
        }
    });
}

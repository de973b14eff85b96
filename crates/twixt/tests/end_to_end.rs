//! Two points of a router, measured while traffic passes, beside tcpdump, the queue's own counter
//! and the numbers in datagrams.
//!
//! Needs root, `ip`, `tc`, `ethtool` and `tcpdump`; says `skipped` without them. With `TWIXT_LONG=1`
//! traffic lasts 30 s. See `docs/howto/testbed.md`.

#![cfg(target_os = "linux")]
// A test that cannot go on should stop where it stands.
#![allow(clippy::unwrap_used)]

mod support;

use std::collections::BTreeMap;
use std::path::Path;
use std::thread;
use std::time::Duration;

use serde_json::Value;
use support::live::Capturing;
use support::testbed::load::{self, Datagrams};
use support::testbed::referee::{Counted, TCP, Tcpdump, UDP, longest_frame, truth};
use support::testbed::{FILTER, Offloads, Place, Testbed};
use support::{folder, number, twixt_in};

/// Not a test: this program is started again through it, to send or to receive.
#[test]
fn traffic() {
    load::play_role();
}

/// How far a mean may be from the referee's: what users are promised. LDA and LDS leave out cells
/// that lost a packet, which makes them less exact than clocks are here.
const TOLERANCE: f64 = 0.02;
/// A cell of LDS that holds a whole flow is lost with the flow's first lost packet. Spread, it is
/// usable.
const ALGORITHMS: [(&str, &str); 2] = [("lda", "-a lda"), ("lds", "-a lds --virtual-cells 512")];
const POINTS: [(&str, &str); 2] = [("r-in", "in"), ("r-out", "out")];
/// Beyond any delay: a full queue, and a machine that has other things to do.
const EPOCHS: &str = "--epoch 1s --guard 300ms";
const CLASSES: &str = "--by class --class tcp=tcp --class udp=udp";
/// A recording begins the epochs of classes without packets when it first finds nothing to read.
const QUIET: Duration = Duration::from_millis(500);
/// tcpdump and the rings hand over what they have after a second.
const SETTLING: Duration = Duration::from_millis(1500);

/// How long traffic lasts.
fn length() -> Duration {
    let is_long = std::env::var_os("TWIXT_LONG").is_some();
    Duration::from_secs(if is_long { 30 } else { 8 })
}

/// What an algorithm says of a class, or the referee of a protocol.
type ByClass = BTreeMap<&'static str, Counted>;

/// One run of everything.
struct Measured {
    datagrams: Datagrams,
    queue_drops: u64,
    /// By algorithm.
    told: BTreeMap<&'static str, ByClass>,
    folder: tempfile::TempDir,
}

impl Measured {
    fn capture(&self, point: &str) -> std::path::PathBuf {
        self.folder.path().join(format!("{point}.pcap"))
    }

    fn truth(&self, protocol: u8) -> Counted {
        truth(&self.capture("r-in"), &self.capture("r-out"), protocol)
    }
}

/// Measures; once more if the machine was too busy for the captures themselves.
fn measure(offloads: Offloads) -> Measured {
    measure_once(offloads)
        .or_else(|reason| {
            println!("once more: {reason}");
            measure_once(offloads)
        })
        .unwrap_or_else(|reason| panic!("{reason}, twice"))
}

fn measure_once(offloads: Offloads) -> Result<Measured, String> {
    let bed = Testbed::new(offloads);
    let folder = folder();
    let dumps = POINTS.map(|(point, direction)| {
        bed.start_tcpdump(point, direction, &folder.path().join(format!("{point}.pcap")))
    });
    let recordings: Vec<Capturing> = ALGORITHMS
        .iter()
        .flat_map(|algorithm| POINTS.map(|point| record(&bed, folder.path(), algorithm, point)))
        .collect();
    thread::sleep(QUIET);
    let datagrams = bed.start_load(length()).finish();
    thread::sleep(SETTLING);
    let queue_drops = bed.drops();
    let missed: u64 = dumps.map(Tcpdump::end).into_iter().sum();
    for recording in recordings {
        recording.interrupt();
        let ended = recording.ended().expect(130);
        if ended.stderr.contains("the kernel dropped") {
            return Err(ended.stderr);
        }
    }
    if missed > 0 {
        return Err(format!("tcpdump missed {missed} packets"));
    }
    let told = ALGORITHMS.map(|(name, _)| (name, told(folder.path(), name))).into();
    Ok(Measured { datagrams, queue_drops, told, folder })
}

fn record(
    bed: &Testbed,
    folder: &Path,
    (name, options): &(&str, &str),
    (point, direction): (&str, &str),
) -> Capturing {
    let line = format!(
        "record -i {point} --direction {direction} --ring 16MiB -w {name}-{point}.epochs \
         {options} {EPOCHS} {CLASSES} {FILTER}"
    );
    bed.capture(Place::R, folder, &line)
}

/// What an algorithm says of each class, over all epochs.
fn told(folder: &Path, algorithm: &str) -> ByClass {
    let line = format!("delay {algorithm}-r-in.epochs {algorithm}-r-out.epochs -F json");
    let document = twixt_in(folder, &line).expect(0).json();
    let estimates = document["estimates"].as_array().unwrap();
    let of = |scope: &str| total(estimates.iter().filter(|row| row["scope"] == scope));
    [("tcp", of("class tcp")), ("udp", of("class udp"))].into()
}

/// Puts epochs together. An estimate speaks for every packet that arrived.
#[track_caller]
fn total<'a>(estimates: impl Iterator<Item = &'a Value>) -> Counted {
    let (mut total, mut delays_ns, mut arrived) = (Counted::default(), 0.0, 0);
    for row in estimates {
        let [packets, lost] = ["/packets", "/lost"].map(|key| number(row, key) as u64);
        total.packets += packets;
        total.lost += lost;
        if let Some(mean_ns) = row["mean_ns"].as_f64() {
            delays_ns += mean_ns * (packets - lost) as f64;
            arrived += packets - lost;
        }
    }
    let without_answer = total.packets - total.lost - arrived;
    assert!(without_answer * 50 <= total.packets, "no mean for {without_answer} of {total:?}");
    total.mean_ns = delays_ns / arrived as f64;
    total
}

/// Checks that counts are equal, and the mean within [`TOLERANCE`].
#[track_caller]
fn check(what: &str, told: Counted, truth: Counted) {
    let error = (told.mean_ns - truth.mean_ns) / truth.mean_ns;
    println!("{what}: {told}; referee: {truth}; off by {:.3} %", 100.0 * error);
    assert_eq!([told.packets, told.lost], [truth.packets, truth.lost], "{what}");
    assert!(error.abs() <= TOLERANCE, "{what}: {told} is not {truth}");
}

#[test]
fn means_and_losses_are_those_of_captures() {
    if let Some(obstacle) = Testbed::obstacle() {
        return println!("skipped: {obstacle}");
    }
    let measured = measure(Offloads::Off);
    let truths: ByClass = [("tcp", measured.truth(TCP)), ("udp", measured.truth(UDP))].into();
    for (algorithm, told) in &measured.told {
        for (class, truth) in &truths {
            check(&format!("{algorithm} {class}"), told[class], *truth);
        }
    }
    let lost: u64 = truths.values().map(|truth| truth.lost).sum();
    assert!(lost > 0, "the queue overflows, or nothing was tested");
    assert_eq!(lost, measured.queue_drops);
    check_datagrams(measured.datagrams, truths["udp"]);
}

#[test]
fn super_packets_are_measured_as_the_packets_of_the_wire() {
    if let Some(obstacle) = Testbed::obstacle() {
        return println!("skipped: {obstacle}");
    }
    let measured = measure(Offloads::On);
    let longest = longest_frame(&measured.capture("r-in"));
    assert!(longest > 1514, "R received super-packets, or nothing was tested");
    assert!(longest_frame(&measured.capture("r-out")) <= 1514, "they are split in the queue");
    // Datagrams are no super-packets: tcpdump tells the truth about them.
    let datagrams = measured.truth(UDP);
    for (algorithm, told) in &measured.told {
        check(&format!("{algorithm} udp"), told["udp"], datagrams);
        check_datagrams(measured.datagrams, told["udp"]);
        println!("{algorithm} tcp: {}; the queue dropped {}", told["tcp"], measured.queue_drops);
        assert_eq!(told["tcp"].lost + told["udp"].lost, measured.queue_drops);
    }
    assert!(measured.queue_drops > 0, "the queue overflows, or nothing was tested");
    let [lda, lds] = ["lda", "lds"].map(|algorithm| measured.told[algorithm]["tcp"]);
    check("lds beside lda, tcp", lds, lda);
}

/// Checks counts of datagrams by the numbers in them.
#[track_caller]
fn check_datagrams(datagrams: Datagrams, counted: Counted) {
    let lost = datagrams.sent - datagrams.received;
    assert_eq!([counted.packets, counted.lost], [datagrams.sent, lost]);
}

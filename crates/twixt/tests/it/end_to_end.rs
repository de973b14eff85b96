//! Two points of a router, measured while traffic passes, beside tcpdump, the queue's own counter
//! and the numbers in datagrams.
//!
//! Needs root, `ip`, `tc`, `ethtool` and `tcpdump`. With `TWIXT_LONG=1`
//! traffic lasts 30 s. See `docs/howto/testbed.md`.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use twixt_testing::require;

use crate::support::live::Capturing;
use crate::support::testbed::load::{Datagrams, Traffic};
use crate::support::testbed::referee::{Counted, TCP, Tcpdump, UDP, longest_frame, truth};
use crate::support::testbed::system::wait_for_epochs;
use crate::support::testbed::{FILTER, Offloads, Place, Testbed};
use crate::support::{folder, twixt_in};

/// A cell of LDS that holds a whole flow is lost with the flow's first lost packet. Spread, it is
/// usable.
const ALGORITHMS: [(&str, &str); 2] = [("lda", "-a lda"), ("lds", "-a lds --virtual-cells 512")];
const POINTS: [(&str, &str); 2] = [("r-in", "in"), ("r-out", "out")];
/// Beyond any delay: a full queue, and a machine that has other things to do.
const EPOCHS: &str = "--epoch 1s --guard 300ms";
const CLASSES: &str = "--by class --class tcp=tcp --class udp=udp";

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

/// One run: records, captures and counts what passes R.
fn measure(offloads: Offloads) -> Measured {
    let bed = Testbed::new(offloads);
    let folder = folder();
    let dumps = POINTS.map(|(point, direction)| {
        bed.start_tcpdump(point, direction, &folder.path().join(format!("{point}.pcap")))
    });
    let recordings: Vec<Capturing> = ALGORITHMS
        .iter()
        .flat_map(|algorithm| POINTS.map(|point| record(&bed, folder.path(), algorithm, point)))
        .collect();
    wait_for_epochs(1);
    let load = bed.start_load(Traffic::Heavy, length());
    let datagrams = bed.finish_load(load, folder.path());
    let queue_drops = bed.drops();
    assert_eq!(dumps.map(Tcpdump::end), [0; 2], "tcpdump missed packets");
    for recording in recordings {
        recording.interrupt();
        let ended = recording.ended().expect(130);
        assert!(!ended.stderr.contains("the kernel dropped"), "{}", ended.stderr);
    }
    let told = ALGORITHMS.map(|(name, _)| (name, told(folder.path(), name))).into();
    Measured { datagrams, queue_drops, told, folder }
}

fn record(
    bed: &Testbed,
    folder: &Path,
    (name, options): &(&str, &str),
    (point, direction): (&str, &str),
) -> Capturing {
    let line = format!(
        "record -i {point} --direction {direction} --ring 64MiB -w {name}-{point}.epochs \
         {options} {EPOCHS} {CLASSES} {FILTER}"
    );
    bed.capture(Place::R, folder, &line)
}

/// What an algorithm says of each class, over all epochs.
fn told(folder: &Path, algorithm: &str) -> ByClass {
    let line = format!("delay {algorithm}-r-in.epochs {algorithm}-r-out.epochs -F json");
    let document = twixt_in(folder, &line).expect(0).json();
    let estimates = document["estimates"].as_array().unwrap();
    let of = |scope: &str| Counted::in_epochs(estimates.iter().filter(|row| row["scope"] == scope));
    [("tcp", of("class tcp")), ("udp", of("class udp"))].into()
}

#[test]
fn means_and_losses_are_those_of_captures() {
    require!(namespaces);
    require!(program "tcpdump");
    require!(program "ethtool");
    let measured = measure(Offloads::Off);
    let truths: ByClass = [("tcp", measured.truth(TCP)), ("udp", measured.truth(UDP))].into();
    for (algorithm, told) in &measured.told {
        for (class, truth) in &truths {
            told[class].check(&format!("{algorithm} {class}"), *truth);
        }
    }
    let lost: u64 = truths.values().map(|truth| truth.lost).sum();
    assert!(lost > 0, "the queue overflows, or nothing was tested");
    assert_eq!(lost, measured.queue_drops);
    truths["udp"].check_datagrams(measured.datagrams);
}

#[test]
fn super_packets_are_measured_as_the_packets_of_the_wire() {
    require!(namespaces);
    require!(program "tcpdump");
    require!(program "ethtool");
    let measured = measure(Offloads::On);
    let longest = longest_frame(&measured.capture("r-in"));
    assert!(longest > 1514, "R received super-packets, or nothing was tested");
    assert!(longest_frame(&measured.capture("r-out")) <= 1514, "they are split in the queue");
    // Datagrams are no super-packets: tcpdump tells the truth about them.
    let datagrams = measured.truth(UDP);
    for (algorithm, told) in &measured.told {
        told["udp"].check(&format!("{algorithm} udp"), datagrams);
        told["udp"].check_datagrams(measured.datagrams);
        println!("{algorithm} tcp: {}; the queue dropped {}", told["tcp"], measured.queue_drops);
        assert_eq!(told["tcp"].lost + told["udp"].lost, measured.queue_drops);
    }
    assert!(measured.queue_drops > 0, "the queue overflows, or nothing was tested");
    let [lda, lds] = ["lda", "lds"].map(|algorithm| measured.told[algorithm]["tcp"]);
    lds.check("lds beside lda, tcp", lda);
    // The captures of tcpdump hold them whole upstream, and as the wire carries them downstream.
    let line = format!("delay r-in.pcap r-out.pcap -F json {CLASSES}");
    let document = twixt_in(measured.folder.path(), &line).expect(0).json();
    let rows = document["estimates"].as_array().expect("there are estimates");
    let of = |scope: &str| Counted::in_epochs(rows.iter().filter(|row| row["scope"] == scope));
    of("class udp").check("captures, udp", datagrams);
    of("class tcp").check("captures, tcp, beside lda", lda);
}

//! Agents and a collector on a network of real kernel paths: what they tell, and what is left when
//! they are stopped or killed.
//!
//! Needs root, `ip`, `tc`, `ethtool` and `tcpdump`. With `TWIXT_LONG=1`
//! traffic lasts 30 s, and processes are killed 50 times, or `TWIXT_KILL_ROUNDS`. See `docs/howto/testbed.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::path::Path;
use std::time::Duration;

use twixt_testing::{SmallDisk, pace, require, seed};

use crate::support::dice::{Dice, kill_rounds};
use crate::support::testbed::load::Traffic;
use crate::support::testbed::referee::{Counted, TCP, Tcpdump, UDP, times_ns, truth};
use crate::support::testbed::system::{AgentPlan, Process, Reports, now_ns, wait_for_epochs};
use crate::support::testbed::{Offloads, Place, Testbed};
use crate::support::{folder, number, twixt_in};

const SECOND_NS: i64 = 1_000_000_000;
const CLASSES: [&str; 2] = ["tcp", "udp"];
const ALGORITHMS: [&str; 2] = ["lda", "lds"];
/// What is left of a full disk: a record fits, a file does not.
const LEFT_BYTES: u64 = 4_096;

fn is_long() -> bool {
    std::env::var_os("TWIXT_LONG").is_some()
}

/// How long traffic lasts.
fn length() -> Duration {
    Duration::from_secs(if is_long() { 30 } else { 10 })
}

/// A collector that only this machine can reach.
const LOCAL_COLLECTOR: &str = r#"
listen = "127.0.0.1:9443"
directory = "collector"
patience = "5s"
resume_wait = "10s"
[[segment]]
upstream = "r-in"
downstream = "r-out"
"#;

/// An agent at R that sends to it.
fn local_agent(name: &'static str, points: &'static [(&'static str, &'static str)]) -> AgentPlan {
    let collector = "url = \"http://127.0.0.1:9443\"\n".to_owned();
    AgentPlan { name, place: Place::R, points, collector }
}

fn start_dumps(bed: &Testbed, folder: &Path) -> [Tcpdump; 2] {
    [("r-in", "in"), ("r-out", "out")].map(|(point, direction)| {
        bed.start_tcpdump(point, direction, &folder.join(format!("{point}.pcap")))
    })
}

/// What tcpdump says of R.
fn referee(folder: &Path, protocol: u8) -> Counted {
    truth(&folder.join("r-in.pcap"), &folder.join("r-out.pcap"), protocol)
}

/// The last epoch in which R received something that was measured.
fn last_epoch(folder: &Path) -> i64 {
    let times = [TCP, UDP].map(|protocol| times_ns(&folder.join("r-in.pcap"), protocol));
    times.iter().flatten().max().unwrap() / SECOND_NS
}

#[test]
fn agents_and_collector_tell_what_captures_tell() {
    require!(namespaces);
    require!(program "tcpdump");
    require!(program "ethtool");
    let (bed, folder) = (Testbed::new(Offloads::Off), folder());
    let collector = bed.start_collector(folder.path(), LOCAL_COLLECTOR);
    let plan = local_agent("agent", &[("r-in", "in"), ("r-out", "out")]);
    let agent = plan.start(&bed, folder.path());
    let dumps = start_dumps(&bed, folder.path());
    wait_for_epochs(1);
    let load = bed.start_load(Traffic::Heavy, length());
    let datagrams = bed.finish_load(load, folder.path());
    assert_eq!(dumps.map(Tcpdump::end), [0; 2], "tcpdump missed packets");
    for (class, protocol) in [("tcp", TCP), ("udp", UDP)] {
        let truth = referee(folder.path(), protocol);
        let reports =
            Reports::wait_for(folder.path(), "r-in:r-out", class, last_epoch(folder.path()));
        assert_eq!(reports.repeated, 0, "estimates that were told twice");
        for algorithm in ALGORITHMS {
            let counted = Counted::in_epochs(reports.of("r-in:r-out", class, algorithm));
            counted.check(&format!("{algorithm} {class}"), truth);
        }
        check_no_gap(&reports, "r-in:r-out", class);
    }
    referee(folder.path(), UDP).check_datagrams(datagrams);
    agent.stop();
    collector.stop();
}

/// Checks that there is an estimate for every epoch from the first to the last with packets.
#[track_caller]
fn check_no_gap(reports: &Reports, segment: &str, class: &str) {
    for algorithm in ALGORITHMS {
        let rows = reports.of(segment, class, algorithm);
        let busy = rows.iter().filter(|row| number(row, "/packets") > 0);
        let epochs: BTreeSet<i64> = busy.map(|row| number(row, "/epoch")).collect();
        let (first, last) = (*epochs.first().unwrap(), *epochs.last().unwrap());
        let missing: Vec<i64> = (first..=last).filter(|epoch| !epochs.contains(epoch)).collect();
        assert_eq!(missing, [0; 0], "{segment} {class} {algorithm}: {:?}", reports.gaps);
    }
}

/// Names and folders as the collector's own authority makes them.
const CHAIN_COLLECTOR: &str = r#"
listen = "0.0.0.0:9443"
directory = "collector"
patience = "5s"
resume_wait = "10s"
[tls]
certificate = "ca/collector.pem"
key = "ca/collector-key.pem"
client_ca = "ca/ca.pem"
[[segment]]
upstream = "a-out"
downstream = "r-in"
[[segment]]
upstream = "r-in"
downstream = "r-out"
[[segment]]
upstream = "r-out"
downstream = "b-in"
"#;
const CHAIN: [&str; 3] = ["a-out:r-in", "r-in:r-out", "r-out:b-in"];

/// An agent with a certificate for its points.
fn chain_agent(
    folder: &Path,
    name: &'static str,
    place: Place,
    points: &'static [(&'static str, &'static str)],
) -> AgentPlan {
    let allowed: String = points.iter().map(|(point, _)| format!(" --point {point}")).collect();
    twixt_in(folder, &format!("collector ca issue ca {name}{allowed}")).expect(0);
    let host = if place == Place::A { "10.0.1.254" } else { "10.0.3.254" };
    let collector = format!(
        "url = \"https://{host}:9443\"\nca = \"ca/ca.pem\"\n\
         certificate = \"ca/{name}.pem\"\nkey = \"ca/{name}-key.pem\"\n"
    );
    AgentPlan { name, place, points, collector }
}

/// Checks that `doctor` finds all that the agent in A needs.
#[track_caller]
fn check_doctor(bed: &Testbed, folder: &Path) {
    let line = "doctor -i a-out --spool spool-agent-a --collector https://10.0.1.254:9443 \
                --ca ca/ca.pem";
    let mut command = bed.twixt(Place::A, folder);
    let ended = command.args(line.split_whitespace()).output().unwrap();
    let shown = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success() && shown.contains("its certificate is valid"), "{shown}");
}

#[test]
fn a_chain_of_points_survives_a_restart_of_the_collector() {
    require!(namespaces);
    require!(program "tcpdump");
    require!(program "ethtool");
    let (bed, folder) = (Testbed::new(Offloads::Off), folder());
    let folder = folder.path();
    twixt_in(folder, "collector ca init ca --name 10.0.1.254 --name 10.0.3.254").expect(0);
    let plans = [
        chain_agent(folder, "agent-a", Place::A, &[("a-out", "out")]),
        chain_agent(folder, "agent-r", Place::R, &[("r-in", "in"), ("r-out", "out")]),
        chain_agent(folder, "agent-b", Place::B, &[("b-in", "in")]),
    ];
    let collector = bed.start_collector(folder, CHAIN_COLLECTOR);
    let agents = plans.each_ref().map(|plan| plan.start(&bed, folder));
    check_doctor(&bed, folder);
    let dumps = start_dumps(&bed, folder);
    wait_for_epochs(1);
    let load = bed.start_load(Traffic::Heavy, length());
    wait_for_epochs(3);
    collector.stop();
    wait_for_epochs(2);
    let collector = bed.start_collector(folder, CHAIN_COLLECTOR);
    let datagrams = bed.finish_load(load, folder);
    let queue_drops = bed.drops();
    assert_eq!(dumps.map(Tcpdump::end), [0; 2], "tcpdump missed packets");
    let last = last_epoch(folder);
    for segment in CHAIN {
        CLASSES.iter().for_each(|class| drop(Reports::wait_for(folder, segment, class, last)));
    }
    let reports = Reports::read(folder);
    assert_eq!(reports.repeated, 0, "estimates that were told twice");
    let [before, within, behind] = CHAIN.map(|segment| {
        CLASSES.iter().for_each(|class| check_no_gap(&reports, segment, class));
        CLASSES.map(|class| Counted::in_epochs(reports.of(segment, class, "lda")))
    });
    // What one segment lets through, the next receives; only the queue loses.
    for (before, (within, behind)) in before.into_iter().zip(within.into_iter().zip(behind)) {
        println!("before R: {before}; in R: {within}; behind R: {behind}");
        assert_eq!([before.lost, behind.lost], [0; 2]);
        assert_eq!(within.packets, before.packets);
        assert_eq!(behind.packets, within.packets - within.lost);
    }
    assert_eq!(within[0].lost + within[1].lost, queue_drops);
    within[1].check_datagrams(datagrams);
    agents.into_iter().for_each(Process::stop);
    collector.stop();
}

/// What befalls the system.
const TROUBLES: u64 = 5;

#[test]
fn nothing_that_was_acknowledged_is_lost_when_processes_are_killed() {
    const SEED: u64 = 0x7717_0001;
    require!(namespaces);
    require!(mounts);
    require!(program "tcpdump");
    require!(program "ethtool");
    let (bed, folder, mut dice) = (Testbed::new(Offloads::Off), folder(), Dice::new(seed(SEED)));
    let folder = folder.path();
    let disk = SmallDisk::mount(&folder.join("collector"), "size=1g");
    let plans =
        [local_agent("agent-in", &[("r-in", "in")]), local_agent("agent-out", &[("r-out", "out")])];
    let mut collector = bed.start_collector(folder, LOCAL_COLLECTOR);
    let mut agents = plans.each_ref().map(|plan| plan.start(&bed, folder));
    let dumps = start_dumps(&bed, folder);
    let rounds = kill_rounds(if is_long() { 50 } else { 10 });
    wait_for_epochs(1);
    let load = bed.start_load(Traffic::Light, Duration::from_millis(3500) * rounds);
    let mut outages = Vec::new();
    for _ in 0..rounds {
        pace(Duration::from_millis(500 + dice.roll(2000)));
        let (trouble, start) = (dice.roll(TROUBLES) as usize, now_ns());
        let length = Duration::from_millis(200 + dice.roll(1500));
        match trouble {
            0 | 1 => {
                agents[trouble].kill();
                agents[trouble] = plans[trouble].start(&bed, folder);
                outages.push(Outage::of(start, now_ns()));
            }
            2 => {
                collector.kill();
                collector = bed.start_collector(folder, LOCAL_COLLECTOR);
            }
            3 => {
                disk.fill_but(LEFT_BYTES);
                pace(length);
                disk.empty();
            }
            _ => {
                bed.run(Place::R, "ip link set lo down");
                pace(length);
                bed.run(Place::R, "ip link set lo up");
            }
        }
    }
    let datagrams = bed.finish_load(load, folder);
    assert_eq!(datagrams.sent, datagrams.received, "nothing fills the queue");
    assert_eq!(dumps.map(Tcpdump::end), [0; 2], "tcpdump missed packets");
    let reports = Reports::wait_for(folder, "r-in:r-out", "udp", last_epoch(folder));
    check_epochs(&reports, &packets_by_epoch(folder), &outages);
    agents.into_iter().for_each(Process::stop);
    collector.stop();
}

/// Epochs of which an agent that was killed may have lost something.
#[derive(Debug)]
struct Outage(RangeInclusive<i64>);

impl Outage {
    /// What was not sealed is lost; an epoch is sealed within a second of its end. An epoch is
    /// whole if the agent was there a guard before it began.
    fn of(killed_ns: i64, started_ns: i64) -> Self {
        let first = (killed_ns - SECOND_NS).div_euclid(SECOND_NS);
        Self(first..=(started_ns + SECOND_NS / 2).div_euclid(SECOND_NS))
    }
}

/// How many datagrams R received in each epoch.
fn packets_by_epoch(folder: &Path) -> BTreeMap<i64, i64> {
    let mut packets = BTreeMap::new();
    for time_ns in times_ns(&folder.join("r-in.pcap"), UDP) {
        *packets.entry(time_ns.div_euclid(SECOND_NS)).or_default() += 1;
    }
    packets
}

/// Checks that whatever is reported of an epoch is true of all of it, that every other epoch is
/// reported to be a gap, and that nothing is missing of which no agent's death is the reason.
#[track_caller]
fn check_epochs(reports: &Reports, packets: &BTreeMap<i64, i64>, outages: &[Outage]) {
    let (mut estimated, mut missing) = (0, 0);
    for algorithm in ALGORITHMS {
        let rows = reports.of("r-in:r-out", "udp", algorithm);
        let rows: BTreeMap<i64, _> =
            rows.into_iter().map(|row| (number(row, "/epoch"), row)).collect();
        let gaps = reports.gaps("r-in:r-out", "udp", algorithm);
        for (epoch, packets) in packets {
            let is_excused = outages.iter().any(|outage| outage.0.contains(epoch));
            match rows.get(epoch) {
                Some(row) => {
                    let is_true = number(row, "/packets") == *packets
                        && row["lost"].as_i64().is_none_or(|lost| lost == 0);
                    assert!(is_true, "{packets} passed, nothing was lost: {row}, {outages:?}");
                    estimated += 1;
                }
                None => {
                    let Some(reason) = gaps.get(epoch) else {
                        panic!("nothing is told of epoch {epoch}: {gaps:?}");
                    };
                    assert!(is_excused, "epoch {epoch}: {reason}; {outages:?}");
                    missing += 1;
                }
            }
        }
    }
    println!("{estimated} estimates, {missing} gaps, {} told again", reports.repeated);
    assert!(estimated > 0);
}

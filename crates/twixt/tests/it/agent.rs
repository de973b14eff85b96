//! The agent on interfaces, in a network namespace that goes with the test, with a collector that
//! can be unwell. Needs root, `ip` and `unshare`.

use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::path::Path;
use std::time::Duration;

use twixt_agent::Spools;
use twixt_measure::Sealed;
use twixt_model::mix;
use twixt_testing::{pace, run, seed, wait_until};

use crate::support::collector::{Mood, TestCollector};
use crate::support::live::{Capturing, PACKETS, agent_metric, agent_page, in_namespace, send};
use crate::support::{folder, twixt_in};

const SEED: u64 = 11;

/// An agent with one point at the far end of the cable.
fn start(folder: &Path, collector: &TestCollector, options: &str) -> Capturing {
    let url = collector.address;
    let line =
        format!("agent -i far --direction in --collector http://{url} --spool spool {options}");
    Capturing::start(folder, &line)
}

/// Checks that of every run the epochs came in order, with none missing, and that only the first
/// and the last may be torn. Returns how many runs there are.
#[track_caller]
fn check_complete(epochs: &[Sealed]) -> usize {
    let mut runs: BTreeMap<u64, Vec<&Sealed>> = BTreeMap::new();
    for sealed in epochs {
        runs.entry(sealed.run).or_default().push(sealed);
    }
    for epochs in runs.values() {
        let numbers: Vec<i64> = epochs.iter().map(|sealed| sealed.epoch.0).collect();
        let expected: Vec<i64> = (numbers[0]..numbers[0] + numbers.len() as i64).collect();
        assert_eq!(numbers, expected, "in order and complete");
        assert!(epochs[0].torn, "the agent began in its midst");
    }
    runs.len()
}

#[test]
fn two_points_send_all_that_they_see() {
    in_namespace(|| {
        run("ip link set lo up");
        let (folder, collector) = (folder(), TestCollector::start(Mood::Well));
        let config = format!(
            "[epoch]\nlength = \"100ms\"\nguard = \"30ms\"\n\
             [[synopsis]]\nalgorithm = \"exact\"\n[[synopsis]]\nalgorithm = \"lda\"\n\
             [[class]]\nname = \"test\"\nfilter = \"udp port 5000\"\n\
             [[point]]\nname = \"up\"\ninterface = \"near\"\ndirection = \"out\"\nfilter = \"udp\"\n\
             [[point]]\nname = \"down\"\ninterface = \"far\"\ndirection = \"in\"\nfilter = \"udp\"\n\
             [spool]\ndirectory = \"spool\"\n[collector]\nurl = \"http://{}\"\n\
             [metrics]\nlisten = \"127.0.0.1:9470\"\n",
            collector.address
        );
        std::fs::write(folder.path().join("agent.toml"), config).unwrap();
        twixt_in(folder.path(), "--config agent.toml agent --check").expect(0).says(&["up, down"]);
        let agent = Capturing::start(folder.path(), "--config agent.toml agent");
        wait_until("whole epochs come", || collector.stored() > 20);
        send();
        let packets = u64::from(PACKETS);
        for point in ["up", "down"] {
            wait_until("all packets are there", || collector.packets(point, "exact") == packets);
            wait_until("LDA counts them too", || collector.packets(point, "lda") == packets);
        }
        assert!(agent_page("/healthz").starts_with("HTTP/1.0 200"));
        assert_eq!(agent_metric("twixt_agent_packets_total{point=\"up\"}"), packets as f64);
        assert_eq!(agent_metric("twixt_agent_dropped_total{point=\"down\"}"), 0.0);
        agent.signal("TERM");
        agent.ended().expect(0);
        for point in ["up", "down"] {
            let epochs = collector.epochs(point, "exact");
            let named = epochs.iter().filter(|sealed| sealed.class == "test");
            let named: Vec<Sealed> = named.cloned().collect();
            assert_eq!(check_complete(&named), 1);
            assert!(named.last().unwrap().torn, "it ended in its midst");
            let inner = named.iter().filter(|sealed| sealed.packets > 0);
            assert!(inner.clone().count() >= 4);
            assert!(inner.into_iter().all(|sealed| !sealed.torn), "packets came in whole epochs");
        }
    });
}

#[test]
fn two_threads_see_what_one_sees() {
    in_namespace(|| {
        run("ip link set lo up");
        let (folder, collector) = (folder(), TestCollector::start(Mood::Well));
        let point = |name: &str, threads: usize| {
            format!(
                "[[point]]\nname = \"{name}\"\ninterface = \"far\"\ndirection = \"in\"\n\
                 filter = \"udp\"\nthreads = {threads}\n"
            )
        };
        let config = format!(
            "[epoch]\nlength = \"100ms\"\n[[synopsis]]\nalgorithm = \"exact\"\n\
             [spool]\ndirectory = \"spool\"\n[collector]\nurl = \"http://{}\"\n{}{}",
            collector.address,
            point("one", 1),
            point("two", 2)
        );
        std::fs::write(folder.path().join("agent.toml"), config).unwrap();
        let agent = Capturing::start(folder.path(), "--config agent.toml agent");
        let socket = UdpSocket::bind("10.0.0.1:4000").unwrap();
        for number in 0..PACKETS {
            let port = 5000 + (number % 40) as u16;
            socket.send_to(&number.to_be_bytes(), ("10.0.0.2", port)).unwrap();
            pace(Duration::from_millis(1));
        }
        for point in ["one", "two"] {
            wait_until("all packets are there", || {
                collector.packets(point, "exact") == u64::from(PACKETS)
            });
        }
        agent.interrupt();
        agent.ended().expect(130);
        let by_epoch = |point: &str| -> BTreeMap<i64, Vec<u8>> {
            let epochs = collector.epochs(point, "exact");
            check_complete(&epochs);
            let some = epochs.iter().filter(|sealed| sealed.packets > 0);
            let bytes = |sealed: &Sealed| twixt_synopsis::encode(sealed.synopsis.as_ref());
            some.map(|sealed| (sealed.epoch.0, bytes(sealed))).collect()
        };
        assert_eq!(by_epoch("one"), by_epoch("two"), "to the bit");
    });
}

#[test]
fn epochs_wait_for_a_collector_that_is_unwell() {
    in_namespace(|| {
        run("ip link set lo up");
        let (folder, collector) = (folder(), TestCollector::start(Mood::Refuses(503)));
        let agent = start(folder.path(), &collector, "-a exact --epoch 100ms udp port 5000");
        send();
        let moods = [
            Mood::Refuses(429),
            Mood::Refuses(401),
            Mood::HangsUp,
            Mood::Forgetful,
            Mood::Slow(Duration::from_millis(700)),
            Mood::Narrow(4_096),
        ];
        for mood in moods {
            collector.set_mood(mood);
            let before = collector.requests();
            wait_until("the agent tries again", || collector.requests() > before);
        }
        collector.set_mood(Mood::Well);
        wait_until("all packets are there", || {
            collector.packets("far", "exact") == u64::from(PACKETS)
        });
        agent.signal("TERM");
        agent.ended().expect(0).says(&["503", "accepts epochs again"]);
        check_complete(&collector.epochs("far", "exact"));
        assert!(collector.duplicates() > 0, "what it forgot to answer was sent again");
    });
}

#[test]
fn nothing_is_lost_when_the_agent_is_killed() {
    in_namespace(|| {
        run("ip link set lo up");
        let (folder, collector) = (folder(), TestCollector::start(Mood::Well));
        let (rounds, seed) = (6, seed(SEED));
        let mut spooled = 0;
        for round in 0..rounds {
            // Half of the time a collector runs.
            let mood = if round % 2 == 0 { Mood::Refuses(503) } else { Mood::Well };
            collector.set_mood(mood);
            let agent = start(folder.path(), &collector, "-a lda --epoch 50ms udp port 5000");
            let moment_ms = 300 + mix(seed.wrapping_add(round)) % 700;
            pace(Duration::from_millis(moment_ms));
            agent.signal("KILL");
            agent.ended();
            let waiting = Spools::open(&folder.path().join("spool"), ["far"], 1 << 30).unwrap();
            spooled = waiting.counts().epochs;
        }
        let answered = || collector.stored() as u64 + collector.duplicates();
        let before = answered();
        collector.set_mood(Mood::Well);
        let agent = start(folder.path(), &collector, "-a lda --epoch 50ms udp port 5000");
        wait_until("all that was spooled is there", || answered() > before + spooled);
        wait_until("the last run has come", || {
            let epochs = collector.epochs("far", "lda");
            epochs.iter().map(|sealed| sealed.run).collect::<std::collections::BTreeSet<_>>().len()
                == rounds as usize + 1
        });
        agent.signal("TERM");
        agent.ended().expect(0);
        let runs = check_complete(&collector.epochs("far", "lda"));
        assert_eq!(runs, rounds as usize + 1, "every run left something");
    });
}

#[test]
fn a_full_spool_discards_the_oldest_and_says_so() {
    in_namespace(|| {
        run("ip link set lo up");
        let (folder, collector) = (folder(), TestCollector::start(Mood::Refuses(503)));
        let options = "-a exact --epoch 100ms --guard 50ms --spool-bytes 64KiB \
                       --metrics 127.0.0.1:9470 udp port 5000";
        let agent = start(folder.path(), &collector, options);
        let discarded = || agent_metric("twixt_agent_epochs_discarded_total");
        for _ in 0..20 {
            if discarded() > 0.0 {
                break;
            }
            send();
            let bytes = agent_metric("twixt_agent_spool_bytes");
            assert!(bytes <= 65_536.0, "{bytes}");
        }
        assert!(discarded() > 0.0);
        collector.set_mood(Mood::Well);
        wait_until("the rest is there", || collector.stored() > 0);
        agent.signal("TERM");
        agent.ended().expect(0);
        let epochs = collector.epochs("far", "exact");
        let numbers: Vec<i64> = epochs.iter().map(|sealed| sealed.epoch.0).collect();
        let expected: Vec<i64> = (numbers[0]..numbers[0] + numbers.len() as i64).collect();
        assert_eq!(numbers, expected, "the oldest went, and nothing else");
        assert!(!epochs[0].torn, "the first epoch of all was the oldest");
    });
}

#[test]
fn an_interface_may_go_away_and_come_back_though_rights_were_given_up() {
    in_namespace(|| {
        run("ip link set lo up");
        let (folder, collector) = (folder(), TestCollector::start(Mood::Well));
        run(&format!("chmod 755 {}", folder.path().display()));
        let options = "-a lda --epoch 100ms --user nobody --metrics 127.0.0.1:9470 udp port 5000";
        let agent = start(folder.path(), &collector, options);
        let status = std::fs::read_to_string(format!("/proc/{}/status", agent.id())).unwrap();
        let line = |name: &str| status.lines().find(|line| line.starts_with(name)).unwrap();
        assert!(!line("Uid:").split_whitespace().any(|id| id == "0"), "{status}");
        assert!(line("CapEff:").ends_with("0000000000002000"), "CAP_NET_RAW only: {status}");
        send();
        let packets = || collector.packets("far", "lda");
        wait_until("the first packets are there", || packets() == u64::from(PACKETS));
        run("ip link del near");
        wait_until("it is noticed", || agent_page("/healthz").starts_with("HTTP/1.0 503"));
        for line in [
            "ip link add near type veth peer name far",
            "ip address add 10.0.0.1/24 dev near",
            "ip link set near up",
            "ip link set far up",
            "ip neighbour add 10.0.0.2 lladdr 02:00:00:00:00:02 dev near",
        ] {
            run(line);
        }
        wait_until("it captures again", || agent_page("/healthz").starts_with("HTTP/1.0 200"));
        send();
        wait_until("the others are there too", || packets() == 2 * u64::from(PACKETS));
        assert_eq!(agent_metric("twixt_agent_gaps_total"), 1.0);
        agent.signal("TERM");
        agent.ended().expect(0).says(&["the interface is gone", "the interface is back"]);
        let epochs = collector.epochs("far", "lda");
        assert_eq!(check_complete(&epochs), 1, "epochs went on meanwhile");
        let inner = &epochs[1..epochs.len() - 1];
        assert!(inner.iter().filter(|sealed| sealed.torn).count() >= 1, "there was a gap");
    });
}

#[test]
fn wrong_configurations_are_explained() {
    let folder = folder();
    let check = |config: &str, code: i32, says: &str| {
        std::fs::write(folder.path().join("agent.toml"), config).unwrap();
        let ended = twixt_in(folder.path(), "--config agent.toml agent --check");
        ended.expect(code).says(&[says]);
    };
    let rest = "[spool]\ndirectory = \"s\"\n[collector]\nurl = \"http://127.0.0.1:1\"\n";
    let point = "[[point]]\nname = \"p\"\ninterface = \"lo\"\n";
    check(&format!("{rest}{point}"), 0, "the configuration is valid");
    check(&format!("colour = 1\n{rest}{point}"), 2, "colour");
    check(&format!("{rest}{point}colour = 1\n"), 2, "colour");
    check(&format!("[run]\nname = \"x\"\n{rest}{point}"), 2, "name");
    check(rest, 2, "--interface");
    check(&format!("{rest}{point}{point}"), 2, "duplicate point name");
    check(&format!("{rest}{point}direction = \"up\"\n"), 2, "direction");
    check(&format!("{rest}{point}threads = 0\n"), 2, "threads");
    check(&format!("{rest}{point}filter = \"port\"\n"), 2, "filter");
    check(&format!("[epoch]\nlength = \"whole\"\n{rest}{point}"), 2, "epoch length");
    check(&format!("[[synopsis]]\nalgorithm = \"x\"\n{rest}{point}"), 2, "unknown algorithm");
    check(&format!("[run]\nuser = \"no such user\"\n{rest}{point}"), 1, "useradd");
    let large = "[[synopsis]]\nalgorithm = \"colate\"\ncounters = 100000\n";
    let small = rest.replace("\"s\"\n", "\"s\"\nbytes_max = \"1MiB\"\n");
    check(&format!("{large}{small}{point}"), 2, "bytes_max is too small");
    let plain = rest.replace("127.0.0.1:1", "collector");
    check(&format!("{plain}{point}"), 2, "plain http");
    check(point, 2, "--spool");
    let line = "agent -i no-such-thing0 --spool s --collector http://127.0.0.1:1";
    twixt_in(folder.path(), line).expect(1).says(&["no-such-thing0"]);
}

//! What the agent does where it may not capture, may not write a point, or has no disk. Needs root,
//! `ip`, `unshare`, `setpriv` and `mount`.

use std::process::Command;

use twixt_testing::{SmallDisk, require, run, wait_until};

use crate::support::collector::{Mood, TestCollector};
use crate::support::live::{Capturing, PACKETS, agent_metric, in_namespace, send};
use crate::support::{folder, twixt_in};

#[test]
fn who_may_not_capture_is_told_how_to() {
    require!(capabilities);
    let folder = folder();
    let mut command = Command::new("setpriv");
    command.args(["--bounding-set=-net_raw", "--inh-caps=-net_raw"]);
    command.arg(env!("CARGO_BIN_EXE_twixt")).current_dir(folder.path());
    command.args("agent -i lo --spool spool --collector http://127.0.0.1:1".split(' '));
    let ended = command.output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(1), "{said}");
    for part in ["CAP_NET_RAW", "sudo setcap cap_net_raw=ep", "lo"] {
        assert!(said.contains(part), "{part:?} is not said in: {said}");
    }
    assert!(!folder.path().join("spool").exists(), "nothing was begun");
}

#[test]
fn a_point_that_is_not_allowed_holds_up_no_other() {
    in_namespace(|| {
        run("ip link set lo up");
        let (folder, collector) = (folder(), TestCollector::start(Mood::OnlyDown));
        let config = format!(
            "[epoch]\nlength = \"100ms\"\n[[synopsis]]\nalgorithm = \"lda\"\n\
             [[point]]\nname = \"up\"\ninterface = \"near\"\ndirection = \"out\"\nfilter = \"udp\"\n\
             [[point]]\nname = \"down\"\ninterface = \"far\"\ndirection = \"in\"\nfilter = \"udp\"\n\
             [spool]\ndirectory = \"spool\"\n[collector]\nurl = \"http://{}\"\n",
            collector.address
        );
        std::fs::write(folder.path().join("agent.toml"), config).unwrap();
        let agent = Capturing::start(folder.path(), "--config agent.toml agent");
        send();
        let packets = |point: &str| collector.packets(point, "lda");
        wait_until("the other point's packets are there", || packets("down") == u64::from(PACKETS));
        assert_eq!(packets("up"), 0);
        collector.set_mood(Mood::Well);
        wait_until("nothing was lost meanwhile", || packets("up") == u64::from(PACKETS));
        agent.signal("TERM");
        agent.ended().expect(0).says(&[
            "may not write that point",
            "not allowed to write point",
            "accepts epochs",
        ]);
    });
}

#[test]
fn a_full_disk_costs_epochs_and_not_the_agent() {
    in_namespace(|| {
        run("ip link set lo up");
        let (folder, collector) = (folder(), TestCollector::start(Mood::Refuses(503)));
        let spool = folder.path().join("spool");
        let disk = SmallDisk::mount(&spool, "size=128k");
        let line = format!(
            "agent -i far --direction in --collector http://{} --spool spool -a exact \
             --epoch 100ms --metrics 127.0.0.1:9470 udp port 5000",
            collector.address
        );
        let agent = Capturing::start(folder.path(), &line);
        let lost = || {
            agent_metric("twixt_agent_epochs_discarded_total")
                + agent_metric("twixt_agent_epochs_unwritten_total")
        };
        for _ in 0..20 {
            if lost() > 0.0 {
                break;
            }
            send();
        }
        assert!(lost() > 0.0, "a full disk takes no epochs");
        disk.remount("remount,size=8m");
        collector.set_mood(Mood::Well);
        let stored = collector.stored();
        wait_until("it goes on by itself", || collector.stored() > stored + 20);
        let unwritten = agent_metric("twixt_agent_epochs_unwritten_total");
        let discarded = agent_metric("twixt_agent_epochs_discarded_total");
        wait_until("nothing more waits", || agent_metric("twixt_agent_spool_epochs") <= 1.0);
        agent.signal("TERM");
        agent.ended().expect(0);
        // Whatever is missing was counted: every gap is known as one.
        let epochs = collector.epochs("far", "exact");
        let numbers: Vec<i64> = epochs.iter().map(|sealed| sealed.epoch.0).collect();
        assert!(numbers.is_sorted(), "{numbers:?}");
        let sealed = numbers.last().unwrap() - numbers[0] + 1;
        let missing = sealed - numbers.len() as i64;
        assert!(missing > 0 && missing as f64 <= unwritten + discarded, "{missing} {numbers:?}");
    });
}

#[test]
fn a_spool_that_cannot_be_written_is_explained() {
    in_namespace(|| {
        run("ip link set lo up");
        let folder = folder();
        let spool = folder.path().join("spool");
        let _disk = SmallDisk::mount(&spool, "ro");
        let line = "agent -i lo --spool spool --collector http://127.0.0.1:1";
        twixt_in(folder.path(), line).expect(1).says(&["spool", "Read-only file system"]);
    });
}

//! A real ptp4l, and what the agent and `doctor` learn from it. Two of them keep a virtual cable's
//! ends in step by the kernel's times; none sets the clock of this machine. Needs root, `ip`,
//! `unshare`, `nsenter`, `mount` and linuxptp.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use twixt_testing::{require, run, wait_until};

use crate::support::folder;
use crate::support::live::{Capturing, agent_metric, in_namespace};

/// `free_running`: measures, and leaves the clock alone.
const COMMON: &str = "[global]\nfree_running 1\ntime_stamping software\nnetwork_transport L2\n\
                      logMinDelayReqInterval -3\n";

/// A process that ends with the value.
struct Ending(Child);

impl Ending {
    fn start(command: &mut Command) -> Self {
        Self(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A `/run` of its own, for as long as the process lives.
struct Place(Ending);

impl Place {
    fn new() -> Self {
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "sh", "-c"]);
        let place = Self(Ending::start(
            command.arg("mount -t tmpfs run /run && mkdir /run/ready && exec sleep 600"),
        ));
        wait_until("/run is its own", || {
            place.command("test").args(["-d", "/run/ready"]).status().unwrap().success()
        });
        place
    }

    /// A command in this place.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--mount", "--target", &self.0.0.id().to_string(), "--", program]);
        command
    }

    fn ptp4l(&self, folder: &Path, interface: &str, rest: &str) -> Ending {
        let file = folder.join(interface);
        std::fs::write(&file, format!("{COMMON}{rest}")).unwrap();
        Ending::start(self.command("ptp4l").args(["-i", interface, "-f"]).arg(&file))
    }

    /// Whether ptp4l there follows a master.
    fn follows(&self) -> bool {
        let mut command = self.command("pmc");
        command.args(["-u", "-b", "0", "-s", "/run/ptp4l", "GET CURRENT_DATA_SET"]);
        let said = command.output().unwrap();
        String::from_utf8_lossy(&said.stdout).contains("stepsRemoved     1")
    }
}

#[test]
fn a_real_ptp4l_is_understood() {
    require!(program "ptp4l");
    require!(program "pmc");
    in_namespace(|| {
        run("ip link set lo up");
        let (folder, place) = (folder(), Place::new());
        let _master = place.ptp4l(
            folder.path(),
            "near",
            "priority1 1\nlogSyncInterval -3\nlogAnnounceInterval -1\nuds_address /run/master\n",
        );
        let _follower = place.ptp4l(folder.path(), "far", "slaveOnly 1\n");
        wait_until("it follows the master", || place.follows());
        let mut agent = place.command(env!("CARGO_BIN_EXE_twixt"));
        agent.current_dir(folder.path()).args(
            "agent -i far --spool spool --collector http://127.0.0.1:1 --metrics 127.0.0.1:9470"
                .split(' '),
        );
        let agent = Capturing::spawn(agent);
        assert_eq!(agent_metric("twixt_agent_clock_synchronised{source=\"ptp4l\"}"), 1.0);
        // Both ends have one clock: what is left is how long a busy machine takes to stamp.
        let bound = agent_metric("twixt_agent_clock_bound_seconds{source=\"ptp4l\"}");
        assert!((0.0..0.1).contains(&bound), "{bound}");
        agent.signal("TERM");
        agent.ended().expect(0);
        let said = place.command(env!("CARGO_BIN_EXE_twixt")).arg("doctor").output().unwrap();
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        assert!(said.contains("ptp4l"), "{said}");
    });
}

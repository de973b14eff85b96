//! What this process may do; capabilities(7).

use super::finding::Finding;

const NAME: &str = "capability";
const STATUS: &str = "/proc/self/status";

/// What a process may do, as `/proc/self/status` says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Capabilities {
    /// What it may do now.
    effective: u64,
    /// What it, and what it starts, can ever be given.
    bounding: u64,
}

/// A capability: linux/capability.h.
struct Capability {
    name: &'static str,
    number: u32,
}

const NET_RAW: Capability = Capability { name: "CAP_NET_RAW", number: 13 };
const NET_ADMIN: Capability = Capability { name: "CAP_NET_ADMIN", number: 12 };
const SETUID: Capability = Capability { name: "CAP_SETUID", number: 7 };
const BPF: Capability = Capability { name: "CAP_BPF", number: 39 };

pub(super) fn examine() -> Vec<Finding> {
    let text = std::fs::read_to_string(STATUS).unwrap_or_default();
    let Some(capabilities) = Capabilities::read(&text) else {
        let detail = format!("{STATUS} has no capabilities; capturing needs Linux");
        return vec![Finding::fail(NAME, NET_RAW.name, detail)];
    };
    capabilities.judge()
}

impl Capabilities {
    fn read(status: &str) -> Option<Self> {
        let field = |key: &str| {
            let digits = status.lines().find_map(|line| line.strip_prefix(key))?;
            u64::from_str_radix(digits.trim(), 16).ok()
        };
        Some(Self { effective: field("CapEff:")?, bounding: field("CapBnd:")? })
    }

    fn judge(self) -> Vec<Finding> {
        vec![self.judge_capturing(), self.judge_setting(), self.judge_changing(), self.judge_bpf()]
    }

    fn judge_capturing(self) -> Finding {
        if self.has(&NET_RAW) {
            return Finding::ok(NAME, NET_RAW.name, "interfaces can be captured");
        }
        let detail = "missing: no interface can be captured";
        Finding::fail(NAME, NET_RAW.name, detail).mended_by(match self.can_have(&NET_RAW) {
            true => "sudo setcap cap_net_raw=ep \"$(command -v twixt)\"",
            false => {
                "docker run --cap-add NET_RAW …, or AmbientCapabilities=CAP_NET_RAW in the unit"
            }
        })
    }

    fn judge_setting(self) -> Finding {
        Finding::ok(
            NAME,
            NET_ADMIN.name,
            match self.has(&NET_ADMIN) {
                true => "the adapter's timestamps can be switched on",
                false => "missing: only --times switch-on-adapter needs it",
            },
        )
    }

    fn judge_changing(self) -> Finding {
        Finding::ok(
            NAME,
            SETUID.name,
            match self.has(&SETUID) {
                true => "an agent can switch to another user once its sockets are open",
                false => "missing: an agent keeps running as the user who starts it",
            },
        )
    }

    fn judge_bpf(self) -> Finding {
        Finding::ok(
            NAME,
            BPF.name,
            match self.has(&BPF) {
                true => "present; not needed",
                false => "missing; not needed",
            },
        )
    }

    const fn has(self, capability: &Capability) -> bool {
        self.effective >> capability.number & 1 == 1
    }

    const fn can_have(self, capability: &Capability) -> bool {
        self.bounding >> capability.number & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::Status;
    use super::*;

    const ROOT: &str = "Name:\tcat\nUid:\t0\t0\t0\t0\nCapInh:\t0000000000000000\n\
        CapPrm:\t000001ffffffffff\nCapEff:\t000001ffffffffff\nCapBnd:\t000001ffffffffff\n\
        CapAmb:\t0000000000000000\nNoNewPrivs:\t0\n";
    const USER: &str = "CapEff:\t0000000000000000\nCapBnd:\t000001ffffffffff\n";
    const CONTAINER: &str = "CapEff:\t00000000a80405fb\nCapBnd:\t00000000a80405fb\n";
    const ONLY_RAW: &str = "CapEff:\t0000000000002000\nCapBnd:\t000001ffffffffff\n";

    /// Checks the finding about capturing.
    #[track_caller]
    fn check(status: &str, expected: Status, fix: Option<&str>) {
        let finding = Capabilities::read(status).unwrap().judge_capturing();
        assert_eq!(finding.status, expected);
        assert_eq!(finding.fix.is_some(), fix.is_some(), "{finding:?}");
        assert!(finding.fix.unwrap_or_default().contains(fix.unwrap_or_default()));
    }

    #[test]
    fn capturing_needs_one_capability() {
        check(ROOT, Status::Ok, None);
        check(ONLY_RAW, Status::Ok, None);
        check(USER, Status::Fail, Some("setcap cap_net_raw=ep"));
        check(CONTAINER, Status::Fail, Some("--cap-add NET_RAW"));
    }

    #[test]
    fn what_else_is_missing_fails_nothing() {
        let findings = Capabilities::read(ONLY_RAW).unwrap().judge();
        assert!(findings.iter().all(|finding| finding.status == Status::Ok));
        let missing = findings.iter().filter(|finding| finding.detail.contains("missing")).count();
        assert_eq!((findings.len(), missing), (4, 3));
    }

    #[test]
    fn a_status_without_capabilities_tells_nothing() {
        assert_eq!(Capabilities::read("Name:\tcat\n"), None);
        assert_eq!(Capabilities::read("CapEff:\tzz\nCapBnd:\t00\n"), None);
    }
}

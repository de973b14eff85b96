//! What this kernel can do, by trying it.

use std::path::Path;

use twixt_capture::{Adapter, LiveError, LiveOptions, LiveSource, RingSize, interface_names};

use super::finding::Finding;
use crate::output::units;

/// The first with a ring of the third version whose frames say what offloads did to them.
const OLDEST: Version = Version { major: 4, minor: 6 };
const RELEASE: &str = "/proc/sys/kernel/osrelease";
const TYPES: &str = "/sys/kernel/btf/vmlinux";

/// The first two numbers of a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Version {
    major: u32,
    minor: u32,
}

pub(super) fn examine(interfaces: &[String]) -> Vec<Finding> {
    let release = std::fs::read_to_string(RELEASE).unwrap_or_default();
    vec![judge_release(release.trim()), try_ring(interfaces), judge_types()]
}

fn judge_release(release: &str) -> Finding {
    let Some(version) = Version::read(release) else {
        let detail = format!("{RELEASE} has no version; capturing needs Linux");
        return Finding::warn("kernel", "unknown", detail);
    };
    let Version { major, minor } = OLDEST;
    match version >= OLDEST {
        true => Finding::ok("kernel", release, format!("{major}.{minor} or later, as required")),
        false => {
            let detail = format!("older than {major}.{minor}: interfaces cannot be captured");
            Finding::fail("kernel", release, detail).mended_by("apt-get dist-upgrade && reboot")
        }
    }
}

/// A ring as `record -i` has it, but small, and nothing is read.
fn try_ring(interfaces: &[String]) -> Finding {
    let Some(interface) = interface_to_try(interfaces) else {
        let detail = "no interface is up to try a ring on";
        return Finding::warn("ring", "TPACKET_V3", detail).mended_by("ip link set lo up");
    };
    let ring = RingSize::of_bytes(1 << 20);
    let options = LiveOptions { promiscuous: false, ring, ..LiveOptions::default() };
    match LiveSource::open(&interface, &options) {
        Ok(_) => Finding::ok(
            "ring",
            interface,
            format!("TPACKET_V3 with VNET_HDR works ({} tried)", units::bytes(ring.bytes() as u64)),
        ),
        Err(error) => ring_refused(interface, &error),
    }
}

fn ring_refused(interface: String, error: &LiveError) -> Finding {
    let detail = format!("no interface can be captured: {}", chain(error));
    let finding = Finding::fail("ring", interface, detail);
    match error {
        LiveError::NotPermitted { .. } => {
            finding.mended_by("sudo setcap cap_net_raw=ep \"$(command -v twixt)\"")
        }
        LiveError::Down { interface } => finding.mended_by(format!("ip link set {interface} up")),
        LiveError::NoSuchInterface { .. } => finding.mended_by("ip link show"),
        _ => finding,
    }
}

/// One that was named, else loopback if it is up, else any that is.
fn interface_to_try(named: &[String]) -> Option<String> {
    if let Some(first) = named.first() {
        return Some(first.clone());
    }
    let is_up = |name: &String| Adapter::look_at(name).is_ok_and(|adapter| adapter.is_up);
    let names = interface_names().unwrap_or_default();
    let loopback = names.iter().find(|name| *name == "lo" && is_up(name));
    loopback.or_else(|| names.iter().find(|name| is_up(name))).cloned()
}

fn judge_types() -> Finding {
    Finding::ok(
        "bpf",
        "BTF",
        match Path::new(TYPES).exists() {
            true => "kernel type information is available; not needed",
            false => "kernel type information is not available; not needed",
        },
    )
}

/// An error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

impl Version {
    /// Of `6.1.0-18-amd64` and the like.
    fn read(release: &str) -> Option<Self> {
        let mut numbers = release.split(|character: char| !character.is_ascii_digit());
        let mut next = || numbers.next()?.parse().ok();
        Some(Self { major: next()?, minor: next()? })
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::Status;
    use super::*;

    #[track_caller]
    fn check(release: &str, expected: Status) {
        assert_eq!(judge_release(release).status, expected, "{release}");
    }

    #[test]
    fn old_kernels_cannot_capture() {
        check("6.1.0-18-amd64", Status::Ok);
        check("4.6.0", Status::Ok);
        check("5.15.153.1-microsoft-standard-WSL2", Status::Ok);
        check("10.0", Status::Ok);
        check("4.5.7", Status::Fail);
        check("3.10.0-1160.el7.x86_64", Status::Fail);
        check("", Status::Warn);
        check("99999999999.1", Status::Warn);
    }

    #[test]
    fn a_refused_ring_says_what_to_do() {
        let down = LiveError::Down { interface: "eth7".to_owned() };
        let finding = ring_refused("eth7".to_owned(), &down);
        assert_eq!(finding.status, Status::Fail);
        assert_eq!(finding.fix.as_deref(), Some("ip link set eth7 up"));
    }
}

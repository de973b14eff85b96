//! Interfaces, and what their adapters do to frames and times.

use twixt_capture::{Adapter, Offloads, interface_names};

use super::finding::Finding;
use crate::output::units;

/// Looks at the interfaces that were named, or at all.
pub(super) fn examine(named: &[String]) -> Vec<Finding> {
    if !named.is_empty() {
        return named.iter().flat_map(|name| examine_one(name, Wish::Named)).collect();
    }
    match interface_names() {
        Ok(names) => names.iter().flat_map(|name| examine_one(name, Wish::Found)).collect(),
        Err(error) => {
            vec![Finding::fail("interface", "all", format!("cannot be determined: {error}"))]
        }
    }
}

/// Whether it was requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    Named,
    Found,
}

fn examine_one(name: &str, wish: Wish) -> Vec<Finding> {
    match Adapter::look_at(name) {
        Ok(adapter) => judge(name, &adapter, wish),
        Err(error) => {
            let detail = format!("cannot be captured: {error}");
            vec![Finding::fail("interface", name, detail).mended_by("ip link show")]
        }
    }
}

fn judge(name: &str, adapter: &Adapter, wish: Wish) -> Vec<Finding> {
    let mut findings = vec![judge_state(name, adapter, wish)];
    // An unused interface needs no fix.
    if !adapter.is_loopback && (adapter.is_up || wish == Wish::Named) {
        findings.push(judge_offloads(name, adapter.offloads));
        findings.push(judge_stamps(name, adapter));
        findings.extend(judge_rings(name, adapter));
    }
    findings
}

fn judge_state(name: &str, adapter: &Adapter, wish: Wish) -> Finding {
    let driver = adapter.driver.as_deref().unwrap_or("unknown driver");
    let mtu = adapter.packet_bytes_max;
    if adapter.is_running || (adapter.is_up && adapter.is_loopback) {
        return Finding::ok("interface", name, format!("up, MTU {mtu}, {driver}"));
    }
    if adapter.is_up {
        let detail = format!("up, but no carrier; MTU {mtu}, {driver}");
        return Finding::warn("interface", name, detail).mended_by(format!("ip link show {name}"));
    }
    let finding = match wish {
        Wish::Named => Finding::fail("interface", name, "is down: it cannot be captured"),
        Wish::Found => {
            let detail = format!("down, MTU {mtu}, {driver}");
            return Finding::ok("interface", name, detail);
        }
    };
    finding.mended_by(format!("ip link set {name} up"))
}

fn judge_offloads(name: &str, offloads: Offloads) -> Finding {
    let Offloads { gro, gso, tso, lro } = offloads;
    let all = [("gro", gro), ("gso", gso), ("tso", tso), ("lro", lro)];
    if all.iter().all(|(_, is_on)| is_on.is_none()) {
        return Finding::warn("offload", name, "the driver does not report its offloads");
    }
    let on: Vec<&str> =
        all.iter().filter(|(_, is_on)| *is_on == Some(true)).map(|(offload, _)| *offload).collect();
    if on.is_empty() {
        return Finding::ok("offload", name, "off: packets are seen as on the wire");
    }
    let detail = match lro {
        Some(true) => {
            "the adapter merges packets irreversibly: the measured packets differ from those on \
             the wire"
        }
        _ => "packets are merged; they are measured individually, but share one timestamp",
    };
    let fix = on.iter().map(|offload| format!(" {offload} off")).collect::<String>();
    let detail = format!("{} on: {detail}", on.join(", "));
    Finding::warn("offload", name, detail).mended_by(format!("ethtool -K {name}{fix}"))
}

fn judge_stamps(name: &str, adapter: &Adapter) -> Finding {
    let detail = match adapter.stamps {
        Some(stamps) if stamps.can_stamp_all_received => {
            let clock = stamps
                .clock
                .map_or("no clock".to_owned(), |number| format!("its clock is /dev/ptp{number}"));
            format!("the adapter can timestamp all received frames (--times adapter); {clock}")
        }
        Some(stamps) if stamps.clock.is_some() => {
            "the adapter timestamps only some frames: kernel timestamps are used".to_owned()
        }
        _ => "the adapter has no timestamps: kernel timestamps are used, taken when a frame \
             reaches the kernel"
            .to_owned(),
    };
    Finding::ok("timestamp", name, detail)
}

fn judge_rings(name: &str, adapter: &Adapter) -> Option<Finding> {
    let rings = adapter.rings?;
    let [received, most] = [rings.received, rings.received_max].map(u64::from).map(units::count);
    if rings.received >= rings.received_max {
        let detail = format!("receive ring of {received} frames, which is the maximum");
        return Some(Finding::ok("adapter-ring", name, detail));
    }
    let detail = format!(
        "receive ring of {received} frames, of {most} possible: bursts may be dropped unnoticed"
    );
    let fix = format!("ethtool -G {name} rx {}", rings.received_max);
    Some(Finding::warn("adapter-ring", name, detail).mended_by(fix))
}

#[cfg(test)]
mod tests;

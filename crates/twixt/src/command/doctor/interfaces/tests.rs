use twixt_capture::{AdapterRings, AdapterStamps};

use super::super::finding::Status;
use super::*;

const OFF: Offloads =
    Offloads { gro: Some(false), gso: Some(false), tso: Some(false), lro: Some(false) };

#[track_caller]
fn check_offloads(offloads: Offloads, expected: Status, fix: Option<&str>) {
    let finding = judge_offloads("eth0", offloads);
    assert_eq!((finding.status, finding.fix.as_deref()), (expected, fix), "{finding:?}");
}

#[test]
fn offloads_that_are_on_can_be_switched_off() {
    check_offloads(OFF, Status::Ok, None);
    let gro = Offloads { gro: Some(true), ..OFF };
    check_offloads(gro, Status::Warn, Some("ethtool -K eth0 gro off"));
    let sent = Offloads { gso: Some(true), tso: Some(true), lro: None, ..OFF };
    check_offloads(sent, Status::Warn, Some("ethtool -K eth0 gso off tso off"));
    check_offloads(Offloads::default(), Status::Warn, None);
}

#[test]
fn irreversible_merging_is_distinguished() {
    let finding = judge_offloads("eth0", Offloads { lro: Some(true), ..OFF });
    assert!(finding.detail.starts_with("lro on: the adapter merges packets irreversibly"));
}

fn adapter(is_up: bool, is_running: bool) -> Adapter {
    let mut adapter = Adapter::default();
    (adapter.is_up, adapter.is_running, adapter.packet_bytes_max) = (is_up, is_running, 1500);
    adapter.driver = Some("ixgbe".to_owned());
    adapter
}

#[track_caller]
fn check_state(adapter: &Adapter, wish: Wish, expected: Status, detail: &str) {
    let finding = judge_state("eth0", adapter, wish);
    assert_eq!((finding.status, finding.detail.as_str()), (expected, detail));
}

#[test]
fn an_interface_that_is_down_matters_to_whoever_named_it() {
    check_state(&adapter(true, true), Wish::Found, Status::Ok, "up, MTU 1500, ixgbe");
    check_state(&adapter(false, false), Wish::Found, Status::Ok, "down, MTU 1500, ixgbe");
    let down = "is down: it cannot be captured";
    check_state(&adapter(false, false), Wish::Named, Status::Fail, down);
    let idle = "up, but no carrier; MTU 1500, ixgbe";
    check_state(&adapter(true, false), Wish::Named, Status::Warn, idle);
}

#[test]
fn small_rings_can_be_made_larger() {
    let mut adapter = adapter(true, true);
    assert_eq!(judge_rings("eth0", &adapter), None);
    let rings = AdapterRings { received: 512, received_max: 4096, sent: 256, sent_max: 256 };
    adapter.rings = Some(rings);
    let finding = judge_rings("eth0", &adapter).unwrap();
    assert_eq!(finding.fix.as_deref(), Some("ethtool -G eth0 rx 4096"));
    adapter.rings = Some(AdapterRings { received: 4096, ..rings });
    assert_eq!(judge_rings("eth0", &adapter).unwrap().status, Status::Ok);
}

#[track_caller]
fn check_stamps(stamps: Option<AdapterStamps>, detail: &str) {
    let mut adapter = adapter(true, true);
    adapter.stamps = stamps;
    let finding = judge_stamps("eth0", &adapter);
    assert_eq!(finding.status, Status::Ok);
    assert!(finding.detail.starts_with(detail), "{finding:?}");
}

#[test]
fn time_stamps_are_of_all_frames_some_or_none() {
    let stamps = |all, clock| Some(AdapterStamps { can_stamp_all_received: all, clock });
    check_stamps(stamps(true, Some(0)), "the adapter can timestamp all received frames");
    check_stamps(stamps(false, Some(0)), "the adapter timestamps only some frames");
    check_stamps(stamps(false, None), "the adapter has no timestamps");
    check_stamps(None, "the adapter has no timestamps");
}

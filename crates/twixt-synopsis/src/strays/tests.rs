//! What is said of strays, by what they are like.

use super::*;

fn packet(flow: u64, length: u32) -> OneSided {
    OneSided { flow: FlowHash(flow), length, ..OneSided::default() }
}

#[track_caller]
fn check(
    missing: &[OneSided],
    strays: &[OneSided],
    matched: &[(u64, u64)],
    lost: [u64; 2],
    cause: Option<StrayCause>,
) {
    let unmatched = Unmatched {
        missing: missing.to_vec(),
        strays: strays.to_vec(),
        matched: matched.iter().map(|&(flow, count)| (FlowHash(flow), count)).collect(),
        longest: [1500, 1500],
    };
    assert_eq!(unmatched.loss(), LossRange { min: lost[0], max: lost[1] });
    assert_eq!(unmatched.cause(), cause);
}

#[test]
fn strays_of_a_flow_may_be_what_it_misses() {
    let (missing, strays) = ([packet(1, 80); 20], [packet(1, 80); 15]);
    check(&missing, &strays, &[(1, 500)], [5, 20], Some(StrayCause::Rewriting));
    let unlike = [packet(1, 70); 15];
    check(&missing, &unlike, &[(1, 500)], [5, 20], Some(StrayCause::Unknown));
}

#[test]
fn strays_of_other_flows_are_not_what_a_flow_misses() {
    let (missing, strays) = ([packet(1, 80); 20], [packet(9, 80); 15]);
    check(&missing, &strays, &[(1, 500)], [20, 20], Some(StrayCause::OtherTraffic));
}

#[test]
fn a_flow_that_is_missing_whole_may_be_one_that_came_under_another_name() {
    let (missing, strays) = ([packet(2, 80); 20], [packet(9, 80); 20]);
    check(&missing, &strays, &[(1, 500)], [0, 20], Some(StrayCause::Translation));
}

#[test]
fn a_few_strays_leave_loss_as_it_is() {
    check(&[packet(1, 80); 100], &[packet(1, 80); 5], &[(1, 900)], [100, 100], None);
    check(&[], &[packet(1, 80); 5], &[(1, 900)], [0, 0], None);
}

#[test]
fn copies_are_no_packets_that_are_missing() {
    let copy = |twin_ns| OneSided { twin_ns: Some(twin_ns), ..packet(1, 80) };
    let missing = [packet(1, 80); 20];
    check(&missing, &[copy(900); 50], &[(1, 500)], [20, 20], Some(StrayCause::DoubledFrames));
    check(&missing, &[copy(900_000); 50], &[(1, 500)], [20, 20], Some(StrayCause::Duplicates));
}

#[test]
fn lengths_tell_what_adapters_and_routers_did() {
    let missing = [packet(1, 1500); 20];
    let fragment = OneSided { is_fragment: true, ..packet(7, 600) };
    let fragments = [[packet(1, 900); 20], [fragment; 20]].concat();
    check(&missing, &fragments, &[(1, 500)], [0, 20], Some(StrayCause::Fragmentation));
    let merged = [packet(1, 4500); 7];
    check(&missing, &merged, &[(1, 500)], [13, 20], Some(StrayCause::OffloadDownstream));
    let whole = [packet(1, 9000); 7];
    check(&whole, &missing, &[(1, 500)], [0, 7], Some(StrayCause::OffloadUpstream));
}

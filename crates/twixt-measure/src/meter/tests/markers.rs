//! Epochs that end where markers are.

use expect_test::{Expect, expect};
use proptest::prelude::*;
use twixt_model::{Batch, Epoch, PointId};

use super::{list, packet};
use crate::fixtures::{at_ms, config, drain, synopsis};
use crate::marker::Marker;
use crate::meter::{Cutting, Meter, MeterConfig};

fn follower() -> Meter {
    let cutting = Cutting::FollowMarkers { upstream: PointId("up".to_owned()) };
    Meter::new(MeterConfig { cutting, ..config("down") }, synopsis("exact")).unwrap()
}

/// The leader sees a packet every 40 ms. What it sends is then changed by `change`, and seen by
/// the follower.
#[track_caller]
fn check_markers(change: impl Fn(Vec<Marker>) -> Vec<Marker>, expected: &Expect) {
    let leading = MeterConfig { cutting: Cutting::SendMarkers, ..config("up") };
    let mut leader = Meter::new(leading, synopsis("exact")).unwrap();
    let mut follower = follower();
    let follow = |leader: &mut Meter, follower: &mut Meter| {
        let sent: Vec<Marker> = std::iter::from_fn(|| leader.poll_marker()).collect();
        change(sent).iter().for_each(|marker| follower.observe_marker(marker));
    };
    for ms in (0..400).step_by(40) {
        leader.advance(at_ms(ms));
        follow(&mut leader, &mut follower);
        leader.observe(Batch::of(&[packet(ms as u64, at_ms(ms))]));
        follower.observe(Batch::of(&[packet(ms as u64, at_ms(ms + 5_000))]));
    }
    leader.finish();
    follow(&mut leader, &mut follower);
    follower.finish();
    let counts = follower.counts();
    expected.assert_eq(&format!(
        "{}lost {}, old {}, foreign {}\n",
        list(&mut follower),
        counts.lost_markers,
        counts.old_markers,
        counts.foreign_markers,
    ));
}

#[test]
fn markers_cut_at_the_same_packet_at_both_points() {
    check_markers(
        |sent| sent,
        &expect![[r#"
            epoch 0: 3 packets
            epoch 1: 2 packets
            epoch 2: 3 packets
            epoch 3: 2 packets
            lost 0, old 0, foreign 0
        "#]],
    );
}

#[test]
fn a_lost_marker_tears_the_epochs_beside_it() {
    check_markers(
        |sent| sent.into_iter().filter(|marker| marker.sequence != 2).collect(),
        &expect![[r#"
            epoch 0: 3 packets
            epoch 1: 5 packets, 1 torn
            epoch 3: 2 packets
            lost 1, old 0, foreign 0
        "#]],
    );
    check_markers(
        |sent| sent.into_iter().filter(|marker| marker.sequence > 0).collect(),
        &expect![[r#"
            epoch 0: 3 packets, 1 torn
            epoch 1: 2 packets
            epoch 2: 3 packets
            epoch 3: 2 packets
            lost 0, old 0, foreign 0
        "#]],
    );
    check_markers(
        |sent| sent.into_iter().filter(|marker| marker.sequence < 4).collect(),
        &expect![[r#"
            epoch 0: 3 packets
            epoch 1: 2 packets
            epoch 2: 3 packets
            epoch 3: 2 packets, 1 torn
            lost 0, old 0, foreign 0
        "#]],
    );
}

#[test]
fn duplicate_and_foreign_markers_are_ignored_and_counted() {
    check_markers(
        |sent| {
            let foreign = |marker: &Marker| Marker { stream: !marker.stream, ..*marker };
            sent.iter().flat_map(|marker| [*marker, *marker, foreign(marker)]).collect()
        },
        &expect![[r#"
            epoch 0: 3 packets
            epoch 1: 2 packets
            epoch 2: 3 packets
            epoch 3: 2 packets
            lost 0, old 5, foreign 5
        "#]],
    );
}

#[test]
fn an_upstream_agent_that_restarts_tears_the_epoch() {
    check_markers(
        |sent| {
            let restarted = |marker: &Marker| match marker.sequence {
                0..2 => *marker,
                sequence => Marker { run: 2, sequence: sequence - 2, ..*marker },
            };
            sent.iter().map(restarted).collect()
        },
        &expect![[r#"
            epoch 0: 3 packets
            epoch 1: 2 packets, 1 torn
            epoch 2: 3 packets
            epoch 3: 2 packets
            lost 0, old 0, foreign 0
        "#]],
    );
}

#[test]
fn silent_epochs_need_but_one_marker() {
    let leading = MeterConfig { cutting: Cutting::SendMarkers, ..config("up") };
    let mut leader = Meter::new(leading, synopsis("exact")).unwrap();
    let mut follower = follower();
    for ms in [0, 350] {
        leader.advance(at_ms(ms));
        follower.observe_marker(&leader.poll_marker().unwrap());
    }
    assert!(leader.poll_marker().is_none());
    expect![[r#"
        epoch 0: 0 packets
        epoch 1: 0 packets
        epoch 2: 0 packets
    "#]]
    .assert_eq(&list(&mut leader));
    assert_eq!(drain(&mut follower).len(), 3);
}

#[test]
fn markers_with_impossible_epochs_are_foreign() {
    let mut follower = follower();
    let stream = Marker::stream_of("lab", &PointId("up".to_owned()), "");
    let marker = |ends, starts| Marker {
        stream,
        run: 1,
        sequence: 0,
        ends: Epoch(ends),
        starts: Epoch(starts),
    };
    for (ends, starts) in [(i64::MIN, 0), (0, i64::MAX), (5, 5), (5, 4)] {
        follower.observe_marker(&marker(ends, starts));
    }
    assert_eq!(follower.counts().foreign_markers, 4);
}

/// A few runs, with sequence numbers and epochs that often fit together and often do not.
fn any_marker() -> impl Strategy<Value = Marker> {
    let stream = Marker::stream_of("lab", &PointId("up".to_owned()), "");
    let epoch = prop_oneof![9 => 0_i64..6, 1 => any::<i64>()];
    let sequence = prop_oneof![9 => 0_u64..6, 1 => any::<u64>()];
    (0_u64..2, sequence, epoch.clone(), epoch).prop_map(move |(run, sequence, ends, starts)| {
        Marker { stream, run, sequence, ends: Epoch(ends), starts: Epoch(starts) }
    })
}

proptest! {
    #![proptest_config(twixt_testing::cases(256))]

    #[test]
    fn no_markers_lose_packets_or_make_an_epoch_whole_that_is_not(
        markers in prop::collection::vec(any_marker(), 0..20),
    ) {
        let mut follower = follower();
        let (mut sealed, mut last): (_, Option<Marker>) = (Vec::new(), None);
        for marker in &markers {
            follower.observe(Batch::of(&[packet(1, at_ms(0))]));
            follower.observe_marker(marker);
            let new = drain(&mut follower);
            let fits = last.is_some_and(|last| {
                (marker.run, marker.sequence) == (last.run, last.sequence.saturating_add(1))
                    && marker.ends == last.starts
            });
            prop_assert!(fits || new.iter().all(|sealed| sealed.torn));
            if !new.is_empty() {
                last = Some(*marker);
            }
            sealed.extend(new);
        }
        follower.finish();
        sealed.append(&mut drain(&mut follower));
        let counted: u64 = sealed.iter().map(|sealed| sealed.packets).sum();
        prop_assert!(last.is_none() || counted == markers.len() as u64);
    }
}

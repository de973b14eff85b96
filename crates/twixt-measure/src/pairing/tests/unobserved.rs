//! Packets that a point did not observe are never called lost.

use std::ops::Range;

use expect_test::{Expect, expect};
use twixt_model::{
    Batch, Delay, Estimate, Evidence, LossRange, Observation, Scope, Span, Unobserved,
};

use super::{delayed, pair, sent};
use crate::fixtures::{MS, at_ms, config, drain, seal, synopsis};
use crate::meter::{Meter, MeterConfig};
use crate::pairing::PairingEvent;
use crate::pairing::unobserved::Observed;
use crate::sealed::Sealed;

/// Packets that a point did not observe, and what it knows of them.
struct Drops {
    digests: Range<u64>,
    noticed_ms: i64,
    /// When they were dropped, if that is known.
    within_ms: Option<Range<i64>>,
}

/// Those of packets that pass well within epoch 1, from 126 to 147 ms.
fn drops(noticed_ms: i64, within_ms: Option<Range<i64>>) -> Drops {
    Drops { digests: 18..22, noticed_ms, within_ms }
}

fn sealed_without(
    drops: &Drops,
    point: &str,
    algorithm: &str,
    packets: &[Observation],
) -> Vec<Sealed> {
    let is_dropped = |packet: &&Observation| drops.digests.contains(&packet.digest.0);
    let dropped = packets.iter().filter(is_dropped).count() as u64;
    let lateness = Delay::from_nanos(30 * MS);
    let mut meter =
        Meter::new(MeterConfig { lateness, ..config(point) }, synopsis(algorithm)).unwrap();
    let (mut sealed, mut is_noticed) = (Vec::new(), false);
    for packet in packets {
        if packet.time >= at_ms(drops.noticed_ms) && !is_noticed {
            is_noticed = true;
            meter.count_dropped(dropped);
            if let Some(Range { start, end }) = drops.within_ms {
                meter.note_missing(dropped, Span { start: at_ms(start), end: at_ms(end) });
            }
        }
        if !is_dropped(&packet) {
            meter.observe(Batch::of(&[*packet]));
        }
        sealed.append(&mut drain(&mut meter));
    }
    meter.finish();
    sealed.append(&mut drain(&mut meter));
    sealed
}

fn show(event: &PairingEvent) -> String {
    let PairingEvent::Estimated { epoch, estimates, upstream, downstream, .. } = event else {
        return format!("{event:?}\n");
    };
    let evidence = &estimates[0].evidence;
    let lost = match (evidence.lost, evidence.lost_between) {
        (Some(lost), None) => lost.to_string(),
        (None, Some(range)) => format!("{} to {}", range.min, range.max),
        (None, None) => "unknown".to_owned(),
        both => panic!("{both:?}"),
    };
    let reason = estimates[0].reason.as_deref().unwrap_or("-");
    let dropped = [upstream.dropped, downstream.dropped];
    format!("epoch {}: lost {lost}, dropped {dropped:?}: {reason}\n", epoch.0)
}

#[track_caller]
fn check(upstream: Vec<Sealed>, downstream: Vec<Sealed>, expected: &Expect) {
    let (events, _) = pair(upstream.into_iter().chain(downstream));
    expected.assert_eq(&events.iter().map(show).collect::<String>());
}

#[track_caller]
fn check_downstream(algorithm: &str, drops: &Drops, arrived: &[Observation], expected: &Expect) {
    let downstream = sealed_without(drops, "down", algorithm, arrived);
    check(seal(config("up"), algorithm, &sent()), downstream, expected);
}

#[test]
fn drops_downstream_are_not_loss() {
    let drops = drops(165, Some(125..165));
    check_downstream(
        "lda",
        &drops,
        &delayed(&sent(), 5),
        &expect![[r#"
        epoch 0: lost 0, dropped [0, 0]: -
        epoch 1: lost 0 to 4, dropped [0, 4]: packets dropped or late, up to 4 downstream: loss is between 0 and 4
        epoch 2: lost 0, dropped [0, 0]: -
    "#]],
    );
    check_downstream(
        "exact",
        &drops,
        &delayed(&sent(), 5),
        &expect![[r#"
        epoch 0: lost 0, dropped [0, 0]: -
        epoch 1: lost 0 to 4, dropped [0, 4]: packets dropped or late, up to 4 downstream: loss is between 0 and 4
        epoch 2: lost 0, dropped [0, 0]: -
    "#]],
    );
}

#[test]
fn drops_noticed_an_epoch_later_belong_to_the_epoch_that_lacks_them() {
    let drops = drops(205, Some(125..165));
    check_downstream(
        "lda",
        &drops,
        &delayed(&sent(), 5),
        &expect![[r#"
        epoch 0: lost 0, dropped [0, 0]: -
        epoch 1: lost 0 to 4, dropped [0, 0]: packets dropped or late, up to 4 downstream: loss is between 0 and 4
        epoch 2: lost 0, dropped [0, 4]: -
    "#]],
    );
}

#[test]
fn drops_of_an_unknown_time_belong_to_the_epoch_that_noticed_them_or_one_beside_it() {
    check_downstream(
        "lda",
        &drops(205, None),
        &delayed(&sent(), 5),
        &expect![[r#"
        epoch 0: lost 0, dropped [0, 0]: -
        epoch 1: lost 0 to 4, dropped [0, 0]: packets dropped or late, up to 4 downstream: loss is between 0 and 4
        epoch 2: lost 0, dropped [0, 4]: -
    "#]],
    );
}

#[test]
fn what_is_missing_beyond_the_drops_is_lost() {
    let mut arrived = delayed(&sent(), 5);
    arrived.retain(|packet| ![17, 24].contains(&packet.digest.0));
    check_downstream(
        "lda",
        &drops(165, Some(125..165)),
        &arrived,
        &expect![[r#"
        epoch 0: lost 0, dropped [0, 0]: -
        epoch 1: lost 2 to 6, dropped [0, 4]: packets dropped or late, up to 4 downstream: loss is between 2 and 6
        epoch 2: lost 0, dropped [0, 0]: -
    "#]],
    );
}

/// The kernel drops packets of all kinds, also of those that nobody measures.
#[test]
fn where_nothing_is_missing_nothing_is_lost() {
    let drops = Drops { digests: 0..0, noticed_ms: 165, within_ms: Some(125..165) };
    let mut downstream = sealed_without(&drops, "down", "lda", &delayed(&sent(), 5));
    for sealed in &mut downstream {
        sealed.tally.missing_max = Some(50);
    }
    check(
        seal(config("up"), "lda", &sent()),
        downstream,
        &expect![[r#"
        epoch 0: lost 0, dropped [0, 0]: -
        epoch 1: lost 0, dropped [0, 0]: -
        epoch 2: lost 0, dropped [0, 0]: -
    "#]],
    );
}

/// Where packets are counted, one that upstream did not observe may hide a lost one. Where they are
/// looked for one by one, it is not looked for.
#[test]
fn drops_upstream_hide_loss_where_packets_are_counted() {
    let mut arrived = delayed(&sent(), 5);
    arrived.retain(|packet| ![17, 24, 25, 26].contains(&packet.digest.0));
    let drops = Drops { digests: 18..20, ..drops(165, Some(125..165)) };
    let upstream = |algorithm| sealed_without(&drops, "up", algorithm, &sent());
    let downstream = |algorithm| seal(config("down"), algorithm, &arrived);
    check(
        upstream("lda"),
        downstream("lda"),
        &expect![[r#"
        epoch 0: lost 0, dropped [0, 0]: -
        epoch 1: lost 2 to 4, dropped [2, 0]: packets dropped or late, up to 2 upstream: loss is between 2 and 4
        epoch 2: lost 0, dropped [0, 0]: -
    "#]],
    );
    check(
        upstream("exact"),
        downstream("exact"),
        &expect![[r#"
        epoch 0: lost 0, dropped [0, 0]: -
        epoch 1: lost 4, dropped [2, 0]: -
        epoch 2: lost 0, dropped [0, 0]: -
    "#]],
    );
}

/// More packets downstream than upstream, of which cells tell with 95 % how many there are: what was dropped may be more.
#[test]
fn bounds_on_strays_do_not_narrow_what_drops_may_hide() {
    let limited = |matches_packets| {
        let unobserved = Unobserved { upstream: 59, downstream: 0 };
        let observed = Observed { sent: 209, received: 245, unobserved, matches_packets };
        let (span, lost_between) = (Span::at(at_ms(0)), Some(LossRange { min: 0, max: 1 }));
        let evidence = Evidence { packets: 209, lost_between, ..Evidence::default() };
        let mut estimate = Estimate {
            scope: Scope::All,
            span,
            evidence,
            delay: None,
            reason: None,
            sample: None,
            crossings: None,
        };
        observed.limit(&mut estimate);
        estimate.evidence.loss_range()
    };
    assert_eq!(limited(false), Some(LossRange { min: 0, max: 23 }));
    assert_eq!(limited(true), Some(LossRange { min: 0, max: 1 }));
}

/// Delays are known to be short from the boundaries before: what is missing at those within the
/// stall was dropped, and not late.
#[test]
fn a_stall_of_several_epochs_leaves_all_of_them_uncertain() {
    let packet = |n: u32| crate::fixtures::packet(u64::from(n), at_ms(i64::from(n) * 2));
    let sent: Vec<Observation> = (0..250).map(packet).collect();
    let stall = Drops { digests: 105..185, noticed_ms: 371, within_ms: Some(208..371) };
    let downstream = sealed_without(&stall, "down", "lda", &delayed(&sent, 5));
    check(
        seal(config("up"), "lda", &sent),
        downstream,
        &expect![[r#"
        epoch 0: lost 0, dropped [0, 0]: -
        epoch 1: lost 0, dropped [0, 0]: -
        epoch 2: lost 0 to 45, dropped [0, 80]: packets dropped or late, up to 80 downstream: loss is between 0 and 45
        epoch 3: lost 0 to 35, dropped [0, 0]: packets dropped or late, up to 80 downstream: loss is between 0 and 35
        epoch 4: lost 0, dropped [0, 0]: -
    "#]],
    );
}

/// A packet that comes after its epoch was sealed belongs to the epoch before.
#[test]
fn late_packets_are_not_loss() {
    let mut arrived = delayed(&sent(), 5);
    let late = arrived.remove(10);
    arrived.insert(20, late);
    let lateness = Delay::from_nanos(10 * MS);
    let mut meter =
        Meter::new(MeterConfig { lateness, ..config("down") }, synopsis("lda")).unwrap();
    arrived.iter().for_each(|packet| meter.observe(Batch::of(&[*packet])));
    meter.finish();
    check(
        seal(config("up"), "lda", &sent()),
        drain(&mut meter),
        &expect![[r#"
        epoch 0: lost 0 to 1, dropped [0, 0]: packets dropped or late, up to 1 downstream: loss is between 0 and 1
        epoch 1: lost 0, dropped [0, 0]: -
        epoch 2: lost 0, dropped [0, 0]: -
    "#]],
    );
}

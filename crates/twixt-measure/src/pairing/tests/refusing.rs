//! Epochs that must not be compared are refused, and both sides' values named.

use twixt_model::{DigestProfile, EpochRule};

use super::{epochs, list, pair, sent, show};
use crate::fixtures::{MS, at_ms, config, packet, seal};
use crate::meter::{Cutting, MeterConfig};
use crate::pairing::PairingEvent;

#[track_caller]
fn check_refused(down: MeterConfig, algorithm: &str, message: &str) {
    let upstream = seal(config("up"), "lda", &[packet(1, at_ms(10))]);
    let downstream = seal(down, algorithm, &[packet(1, at_ms(12))]);
    let (events, counts) = pair(upstream.into_iter().chain(downstream));
    assert_eq!(list(&events[..1]), format!("epoch 0: refused: {message}\n"));
    assert_eq!((counts.refused, counts.estimated), (1, 0));
}

#[test]
fn mismatched_epochs_are_refused_and_both_values_named() {
    let mut other = config("down");
    other.digest.profile = DigestProfile::Nat;
    check_refused(
        other,
        "lda",
        "upstream and downstream differ in digest: \
         default profile, xxh3, 0 payload bytes, key id 00000000 against \
         nat profile, xxh3, 0 payload bytes, key id 00000000; record both with the same settings",
    );
    check_refused(config("down"), "exact", "one synopsis is lda, the other is exact");
    check_refused(
        MeterConfig { rule: EpochRule::every(50 * MS).unwrap(), ..config("down") },
        "lda",
        "upstream and downstream differ in epoch length: 100000000 ns against 50000000 ns; \
         record both with the same settings",
    );
    check_refused(
        MeterConfig { rule: EpochRule::WHOLE, ..config("down") },
        "lda",
        "upstream and downstream differ in epoch length: 100000000 ns against one for all time; \
         record both with the same settings",
    );
    check_refused(
        MeterConfig { domain: "field".to_owned(), ..config("down") },
        "lda",
        "upstream and downstream differ in domain: lab against field; \
         record both with the same settings",
    );
    check_refused(
        MeterConfig { cutting: Cutting::SendMarkers, ..config("down") },
        "lda",
        "upstream and downstream differ in cut: by time against by markers; \
         record both with the same settings",
    );
}

/// Whichever comes first, upstream's value does; and a point can disagree with itself.
#[test]
fn mismatched_epoch_lengths_name_whose_they_are() {
    let message = |first, second| {
        let short = MeterConfig { rule: EpochRule::every(50 * MS).unwrap(), ..config(second) };
        let sealed = [config(first), short].map(|config| seal(config, "lda", &sent()).remove(0));
        list(&pair(sealed).0[..1])
    };
    assert_eq!(
        message("down", "up"),
        "epoch 0: refused: upstream and downstream differ in epoch length: 50000000 ns against \
         100000000 ns; record both with the same settings\n"
    );
    assert_eq!(
        message("up", "up"),
        "epoch 0: refused: parts of one point differ in epoch length: 100000000 ns against \
         50000000 ns; record all of them with the same settings\n"
    );
}

#[test]
fn settings_that_differ_are_refused() {
    let mut sealed = epochs();
    let settings = toml::Table::from_iter([("rows".to_owned(), toml::Value::from(512))]);
    let lda = twixt_synopsis::find(twixt_synopsis::Purpose::Delay, "lda").unwrap();
    sealed[3].synopsis = (lda.start)(&settings).unwrap();
    let (events, _) = pair(sealed);
    let message = show(&events[0]);
    assert!(message.contains("rows = 1024") && message.contains("rows = 512"), "{message}");
}

/// Both points began in the midst of epoch 0, which says nothing. What was in flight at its end is
/// known all the same, so the next epoch is whole.
#[test]
fn an_epoch_that_a_point_saw_in_part_is_refused_and_the_next_is_exact() {
    let stream = |point, delay_ms| {
        let packets: Vec<_> =
            (50_i64..250).step_by(2).map(|ms| packet(ms as u64, at_ms(ms + delay_ms))).collect();
        let mut sealed = seal(config(point), "lda", &packets);
        sealed[0].torn = true;
        sealed
    };
    let (events, counts) = pair(stream("up", 0).into_iter().chain(stream("down", 9)));
    assert_eq!(show(&events[0]), "epoch 0: refused: up missed the start or the end of the epoch");
    let PairingEvent::Estimated { estimates, moved, .. } = &events[1] else {
        panic!("{}", show(&events[1]))
    };
    assert!(*moved > 0, "packets were in flight");
    assert_eq!((estimates[0].evidence.packets, estimates[0].evidence.lost), (50, Some(0)));
    assert_eq!(counts.refused, 1);
}

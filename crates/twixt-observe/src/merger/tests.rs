//! Threads' parts in, a point's epochs out.

use twixt_measure::{Meter, MeterConfig};
use twixt_model::{Batch, EpochRule, FlowHash, Observation, PacketDigest, PointId, Timestamp, mix};
use twixt_synopsis::{ALGORITHMS, SplitMerge};

use super::*;

const SEED: u64 = 5;

/// A meter with one packet in every epoch from `first` to `last`.
fn sealed(first: i64, last: i64) -> Vec<(usize, Sealed)> {
    let config = MeterConfig::new(PointId("p".to_owned()), EpochRule::every(1000).unwrap());
    let lda = twixt_synopsis::find(twixt_synopsis::Purpose::Delay, "lda").unwrap();
    let mut meter = Meter::new(config, (lda.start)(&Default::default()).unwrap()).unwrap();
    for epoch in first..=last {
        let time = Timestamp::from_nanos(epoch * 1000 + 500);
        meter.observe(Batch::of(&[Observation { time, ..Observation::default() }]));
    }
    meter.finish();
    std::iter::from_fn(|| meter.poll()).map(|sealed| (0, sealed)).collect()
}

/// Epoch, packets, and `!` if it is torn.
fn drain(merger: &mut Merger) -> String {
    let show = |sealed: Sealed| {
        format!("{}:{}{}", sealed.epoch.0, sealed.packets, if sealed.torn { "!" } else { "" })
    };
    std::iter::from_fn(|| merger.poll()).map(show).collect::<Vec<_>>().join(" ")
}

#[test]
fn an_epoch_goes_on_when_every_thread_has_sealed_it() {
    let mut merger = Merger::new(2);
    merger.add(SealedPart { thread: 0, era: 0, sealed: sealed(0, 2) });
    assert_eq!(drain(&mut merger), "");
    merger.add(SealedPart { thread: 1, era: 0, sealed: sealed(0, 1) });
    assert_eq!(drain(&mut merger), "0:2 1:2");
    merger.add(SealedPart { thread: 1, era: 0, sealed: sealed(3, 3) });
    assert_eq!(drain(&mut merger), "2:1!", "thread 1 did not observe it");
    merger.add(SealedPart { thread: 1, era: 0, sealed: sealed(2, 2) });
    merger.finish();
    assert_eq!(drain(&mut merger), "3:1!");
    let counts = MergerCounts { late_parts: 1, incomplete: 2, misfits: 0 };
    assert_eq!(merger.counts(), counts);
}

#[test]
fn a_thread_that_stands_still_holds_up_a_bounded_number_of_epochs() {
    let mut merger = Merger::new(2);
    for epoch in 0..1000 {
        merger.add(SealedPart { thread: 0, era: 0, sealed: sealed(epoch, epoch) });
    }
    assert_eq!(std::iter::from_fn(|| merger.poll()).count(), 1000 - PENDING_EPOCHS_MAX);
}

#[test]
fn epochs_from_before_and_after_the_clock_was_set_are_kept_apart() {
    let mut merger = Merger::new(2);
    merger.add(SealedPart { thread: 0, era: 0, sealed: sealed(100, 101) });
    merger.add(SealedPart { thread: 0, era: 1, sealed: sealed(5, 6) });
    assert_eq!(drain(&mut merger), "");
    merger.add(SealedPart { thread: 1, era: 0, sealed: sealed(100, 100) });
    assert_eq!(drain(&mut merger), "100:2");
    merger.add(SealedPart { thread: 1, era: 1, sealed: sealed(5, 5) });
    assert_eq!(drain(&mut merger), "5:2 101:1!");
    merger.add(SealedPart { thread: 1, era: 1, sealed: sealed(6, 6) });
    assert_eq!(drain(&mut merger), "6:2");
}

/// Of every algorithm that promises it: two threads make the same bytes as one.
#[test]
fn two_threads_are_as_good_as_one() {
    let packets: Vec<Observation> = (0..2000)
        .map(|number| {
            let bits = mix(SEED + number);
            Observation {
                time: Timestamp::from_nanos(number as i64),
                digest: PacketDigest(bits),
                flow: FlowHash(bits % 50),
                length: 100,
                ..Observation::default()
            }
        })
        .collect();
    let mut checked = 0;
    let exact = |algorithm: &&twixt_synopsis::Algorithm| {
        algorithm.split_merge == SplitMerge::Exact && !algorithm.needs.detail
    };
    for algorithm in ALGORITHMS.iter().filter(exact) {
        let seal = |chosen: &dyn Fn(&Observation) -> bool| {
            let config = MeterConfig::new(PointId("p".to_owned()), EpochRule::every(1000).unwrap());
            let prototype = (algorithm.start)(&Default::default()).unwrap();
            let mut meter = Meter::new(config, prototype).unwrap();
            let chosen: Vec<Observation> =
                packets.iter().copied().filter(|packet| chosen(packet)).collect();
            meter.observe(Batch::of(&chosen));
            meter.finish();
            std::iter::from_fn(|| meter.poll()).map(|sealed| (0, sealed)).collect::<Vec<_>>()
        };
        let mut merger = Merger::new(2);
        merger.add(SealedPart {
            thread: 0,
            era: 0,
            sealed: seal(&|packet| packet.flow.0 % 2 == 0),
        });
        merger.add(SealedPart {
            thread: 1,
            era: 0,
            sealed: seal(&|packet| packet.flow.0 % 2 == 1),
        });
        for (_, one) in seal(&|_| true) {
            let two = merger.poll().unwrap();
            assert_eq!(two.to_bytes(), one.to_bytes(), "{}, seed {SEED}", algorithm.name);
        }
        checked += 1;
    }
    assert!(checked >= 3, "there are such algorithms");
}

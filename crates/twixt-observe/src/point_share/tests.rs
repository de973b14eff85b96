//! What becomes of epochs when the point begins, ends, loses its interface, or its clock is set.

use twixt_model::{DigestHash, DigestProfile, EpochRule, Needs, PointId, TimeSource};
use twixt_synopsis::{Purpose, find};
use twixt_wire::{Digester, HashKey, ObserverOptions};

use super::*;

const SECOND: i64 = 1_000_000_000;

fn at(tenths: i64) -> Timestamp {
    Timestamp::from_nanos(tenths * SECOND / 10)
}

fn share(began: Timestamp) -> PointShare {
    let digester =
        Digester::new(DigestProfile::Default, DigestHash::Xxh3, 0, HashKey::from_seed(1));
    let rule = EpochRule::every(SECOND).unwrap();
    let config = MetersConfig {
        time_source: TimeSource::Kernel,
        ..MetersConfig::new(PointId("p".to_owned()), rule, digester.identity())
    };
    let needs = Needs { digest: true, flow: false, detail: false, group: false, exchange: false };
    let options =
        ObserverOptions { needs, outer: false, filter: None, classes: Vec::new(), digester };
    let lda = (find(Purpose::Delay, "lda").unwrap().start)(&Default::default()).unwrap();
    let observer = Observer::new(options).unwrap();
    PointShare::new(0, config, vec![lda], observer, Era { number: 0, run: 1 }, began).unwrap()
}

/// Run, epoch, and `!` if it is torn.
fn show(part: Option<SealedPart>) -> String {
    let sealed = part.into_iter().flat_map(|part| part.sealed);
    let show = |(_, sealed): (usize, Sealed)| {
        format!("{}/{}{}", sealed.run, sealed.epoch.0, if sealed.torn { "!" } else { "" })
    };
    sealed.map(show).collect::<Vec<_>>().join(" ")
}

#[test]
fn the_first_and_the_last_epoch_are_torn() {
    let mut share = share(at(15));
    share.advance(at(55));
    assert_eq!(show(share.poll()), "1/1! 1/2 1/3 1/4");
    assert_eq!(show(share.finish(at(57))), "1/5!");
}

#[test]
fn an_interface_that_was_away_tears_the_epochs_it_was_away_in() {
    let mut share = share(at(5));
    share.advance(at(25));
    assert_eq!(show(share.poll()), "1/0! 1/1");
    share.lose(at(26));
    share.advance(at(45));
    assert_eq!(show(share.poll()), "1/2! 1/3!");
    share.regain(at(47));
    share.advance(at(65));
    assert_eq!(show(share.poll()), "1/4! 1/5");
}

#[test]
fn a_clock_that_is_set_forward_begins_a_new_run() {
    let mut share = share(at(5));
    share.advance(at(25));
    assert_eq!(show(share.poll()), "1/0! 1/1");
    let last = share.begin_era(Era { number: 1, run: 9 }, at(36_005)).unwrap();
    assert_eq!(show(last), "1/2!");
    share.advance(at(36_025));
    assert_eq!(show(share.poll()), "9/3600! 9/3601", "there are no epochs of the time between");
}

#[test]
fn a_clock_that_is_set_back_does_not_seal_an_epoch_twice() {
    let mut share = share(at(95));
    share.advance(at(125));
    assert_eq!(show(share.poll()), "1/9! 1/10 1/11");
    let last = share.begin_era(Era { number: 1, run: 9 }, at(80)).unwrap();
    assert_eq!(show(last), "1/12!");
    share.advance(at(155));
    // The guard after 12 is doubtful as well.
    assert_eq!(show(share.poll()), "9/8! 9/9! 9/10! 9/11! 9/12! 9/13! 9/14");
}

#[test]
fn hours_of_epochs_leave_nothing_behind() {
    let mut share = share(at(0));
    let mut sizes = Vec::new();
    for second in 1..3600 {
        share.advance(at(second * 10));
        share.poll();
        // The interface and the clock have their troubles, too.
        if second % 7 == 0 {
            share.lose(at(second * 10 - 5));
            share.regain(at(second * 10 - 4));
        }
        if second % 500 == 0 {
            let era = Era { number: second as u64, run: second as u64 };
            share.begin_era(era, at(second * 10)).unwrap();
        }
        if second % 400 == 0 {
            sizes.push(format!("{share:?}").len());
        }
    }
    let (early, latest) = (sizes[1], *sizes.last().unwrap());
    assert!(latest < early + early / 20, "{sizes:?}");
}

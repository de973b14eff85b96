//! The experiments of one observation point come out as they did: few seeds, so that a change of
//! an algorithm that costs accuracy is seen without running them all.

use twixt_evaluate::{Holds, Setting, Size, Summary, Verdict, find};

/// Every claim holds that is not known to differ. Trials follow from seeds alone, so that chance
/// does not change from run to run. Thresholds are the experiment's, made for its own number of
/// seeds: with fewer than here, means of the tail are too uncertain to meet them.
#[track_caller]
fn check(name: &str, seeds: u64) {
    let experiment = find(name).unwrap();
    let trials: Vec<_> = (1..=seeds)
        .map(|seed| (experiment.trial)(Setting { seed, size: Size::Quick, foreign: |_| None }))
        .collect();
    for judged in experiment.judge(&Summary::of(&trials)) {
        let expected = match judged.claim.holds {
            Holds::Differs => Verdict::Differs,
            Holds::Cannot => Verdict::Cannot,
            _ => Verdict::Pass,
        };
        assert_eq!(judged.verdict, expected, "{name}, seeds 1 to {seeds}: {judged:?}");
    }
}

#[test]
fn a_fridge_of_1024_entries_comes_close() {
    check("fridge-percentiles", 8);
}

#[test]
fn fridges_are_unbiased_and_plain_tables_are_not() {
    check("fridge-bias", 12);
}

#[test]
fn stages_take_away_long_lives() {
    check("fridge-stages", 1);
}

#[test]
fn most_prefixes_with_much_reordering_are_found() {
    check("reorder-memory", 1);
}

#[test]
fn large_flows_have_counters() {
    check("heavy-memory", 1);
}

#[test]
fn rap_keeps_a_constant_fraction() {
    check("heavy-rap", 1);
}

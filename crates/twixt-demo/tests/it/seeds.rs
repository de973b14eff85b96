//! Twenty seeds with incidents, twenty without.

use std::ops::RangeInclusive;

use twixt_demo::{DemoSummary, IncidentOutcome, InjectedIncidents, SegmentVerdict, run_once};

/// Runs seeds, and prints what was found.
fn run(seeds: RangeInclusive<u64>, incidents: InjectedIncidents) -> Vec<DemoSummary> {
    let run = |seed| {
        let summary = run_once(seed, incidents).unwrap();
        println!("seed {seed}: {:#?}", summary.incidents);
        summary
    };
    seeds.map(run).collect()
}

#[track_caller]
fn check_found(seeds: RangeInclusive<u64>) {
    for summary in run(seeds, InjectedIncidents::All) {
        assert_eq!(summary.incidents.len(), 2);
        assert!(summary.incidents.iter().all(IncidentOutcome::is_right));
        let changed = summary.segments.iter().filter(|of| of.verdict != Some(SegmentVerdict::Ok));
        // One class of the queue, three of the line.
        assert_eq!(changed.count(), 4);
    }
}

#[track_caller]
fn check_calm(seeds: RangeInclusive<u64>) {
    for summary in run(seeds, InjectedIncidents::None) {
        assert_eq!(summary.incidents, []);
        for segment in summary.segments {
            assert_eq!(segment.verdict, Some(SegmentVerdict::Ok));
            let known = [segment.mean_ns, segment.p99_ns].map(|value| value.is_some());
            assert!(known == [true; 2] && segment.loss.is_some(), "{segment:?}");
        }
    }
}

// Four tests of ten seeds each, so that they run side by side.

#[test]
fn both_incidents_are_found_with_segment_class_and_start() {
    check_found(1..=10);
}

#[test]
fn both_incidents_are_found_with_segment_class_and_start_for_ten_more_seeds() {
    check_found(11..=20);
}

#[test]
fn nothing_is_found_where_nothing_happens() {
    check_calm(1..=10);
}

#[test]
fn nothing_is_found_where_nothing_happens_for_ten_more_seeds() {
    check_calm(11..=20);
}

#[test]
fn one_seed_gives_one_summary() {
    let again = || run_once(3, InjectedIncidents::All).unwrap();
    assert_eq!(again(), again());
}

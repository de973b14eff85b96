//! A sample beside a sketch: percentiles of epochs, and of minutes from the same packets.

use twixt_model::{Estimate, Percentile, by_scope};

use super::*;

/// Epochs of a point that keeps a sample of so many bytes.
fn sampled(seen: &Seen, budget_bytes: u64) -> Vec<Sealed> {
    let sample = find(Purpose::Delay, "sample").unwrap();
    let settings = (sample.sized)(budget_bytes).unwrap();
    seal_with(seen, 100..112, (sample.start)(&settings).unwrap())
}

/// Estimates of a sample when points have these budgets: of epochs, and of five of them added up.
fn reported(budgets: (u64, u64)) -> (Vec<Estimate>, Vec<Estimate>) {
    let (up, down) = (Seen::at("up", 0), Seen::at("down", 5 * MS));
    let seconds = 100..112;
    let points = vec![
        sampled(&up, budgets.0),
        sampled(&down, budgets.1),
        seal(&up, seconds.clone(), "lda"),
        seal(&down, seconds, "lda"),
    ];
    let mut engine = Engine::new(config(&[("up", "down")]));
    let mut epochs = Vec::new();
    for event in run(&mut engine, in_order(points, &[0; 4])) {
        match event {
            EngineEvent::Estimated(pair) if pair.series.algorithm == "sample" => {
                epochs.extend(pair.estimates);
            }
            EngineEvent::Estimated(pair) => assert_eq!(pair.estimates[0].percentile(0.5), None),
            _ => {}
        }
    }
    let minute = |epochs: &[Estimate]| by_scope(epochs).into_values().next().unwrap();
    let minutes = epochs.chunks_exact(5).map(minute).collect();
    (epochs, minutes)
}

/// Delays are 5 to 10 ms, all equally likely.
#[track_caller]
fn holds_truth(share: f64, found: Percentile) -> bool {
    let truth_ns = (5.0 + 5.0 * share) * 1e6;
    assert!(found.low_ns <= found.time_ns && found.time_ns <= found.high_ns);
    // Far beyond the interval nothing is right: 200 of 400 packets, 7 deviations of their median.
    assert!((found.time_ns as f64 - truth_ns).abs() < 1.3e6, "{found:?}");
    (found.low_ns as f64..=found.high_ns as f64).contains(&truth_ns)
}

#[track_caller]
fn check(budgets: (u64, u64), sampled: std::ops::Range<u64>) {
    let (epochs, minutes) = reported(budgets);
    assert!(epochs.len() >= 10 && minutes.len() == 2, "{} {}", epochs.len(), minutes.len());
    let mut held = 0;
    for epoch in &epochs {
        let found = epoch.sample.as_ref().unwrap().packets().len() as u64;
        assert!(sampled.contains(&found), "{found}");
        // Where none is lost, the mean is that of all, and percentiles are those of the sample.
        assert!([found, 400].contains(&epoch.evidence.used), "{}", epoch.evidence.used);
        // At the ends of the traffic the loss is not known; nowhere is there any.
        assert_eq!((epoch.evidence.packets, epoch.evidence.lost.unwrap_or(0)), (400, 0));
        held += u64::from(holds_truth(0.5, epoch.percentile(0.5).unwrap()));
        assert_eq!(epoch.percentile(0.99), None);
        assert!(epoch.reasons().unwrap().contains("p99 needs 368 sampled packets"));
    }
    twixt_testing::check_coverage("medians of epochs", held, epochs.len() as u64, 0.95);
    for minute in &minutes {
        // All packets of its five epochs together, so that what no epoch knows is known now.
        let sample = minute.sample.as_ref().unwrap();
        let found = sample.packets().len() as u64;
        assert!(found > 5 * sampled.start, "{found}");
        assert!([found, 2_000].contains(&minute.evidence.used), "{}", minute.evidence.used);
        for share in [0.5, 0.95, 0.99] {
            holds_truth(share, minute.percentile(share).unwrap());
        }
        assert_eq!(minute.percentile(0.999), None);
        assert!(minute.reasons().unwrap().contains("p99.9 needs 3688"));
    }
}

#[test]
fn minutes_put_packets_together_and_not_percentiles() {
    // 177 packets fit beside the counts; a step of the level drops 8.3 %, give or take three deviations.
    check((4096, 4096), 151..178);
}

#[test]
fn points_with_unequal_budgets_meet_at_the_thinner_sample() {
    // Of these, 87.
    check((16_384, 2048), 73..89);
}

#[test]
fn samples_tell_what_clocks_do() {
    let (up, down) = (Seen::at("up", 0), Seen::at("down", 5 * MS).clock(20 * MS));
    let mut engine = Engine::new(config(&[("up", "down")]));
    let points = vec![sampled(&up, 4096), sampled(&down, 4096)];
    run(&mut engine, in_order(points, &[0; 2]));
    let clocks = engine.clocks();
    let [clock] = clocks.as_slice() else { panic!("{} segments", clocks.len()) };
    assert_eq!((clock.segment.to_string().as_str(), clock.class.as_str()), ("up > down", ""));
    // One direction tells nothing of the offset, and clocks that keep their distance no skew.
    assert_eq!(clock.report.offset, None);
    assert_eq!(clock.report.sure_skew(), None);
    assert!(clock.report.skew.is_some());
}

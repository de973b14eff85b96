use super::*;
use crate::testing::{SECOND_NS, START_NS, gap, row};

#[test]
fn minutes_are_added_up_from_sums() {
    let rows: Vec<Row> = (0..120).map(|number| row("a", "b", number)).collect();
    let minutes = rolled_up(&rows, Step::Minute);
    assert_eq!(minutes.len(), 2);
    let first = &minutes[0];
    assert_eq!((first.start_ns, first.end_ns), (START_NS, START_NS + 60 * SECOND_NS - 1));
    assert_eq!((first.epochs, first.gaps, first.packets), (60, 0, Some(600)));
    let delay = first.delay.as_ref().unwrap();
    assert_eq!((delay.count, delay.sum_ns), (540, 9_000 * (0..60).sum::<i128>()));
    assert_eq!((delay.min_ns, delay.max_ns), (Some(-20), Some(59_020)));
    assert_eq!(delay.quantiles, <[Quantile; 4]>::default(), "nobody knows them");
    // Within each epoch 100 ns²; between epochs that of 0, 1, … 59 µs: (60² - 1) / 12.
    let variance: f64 = 100.0 + 1e6 * (3_600.0 - 1.0) / 12.0;
    assert!((delay.deviation_ns().unwrap() / variance.sqrt() - 1.0).abs() < 1e-9);
}

#[test]
fn hours_from_epochs_are_hours_from_minutes() {
    let rows: Vec<Row> = (0..3_600).map(|number| row("a", "b", number)).collect();
    let hours = rolled_up(&rows, Step::Hour);
    let again = rolled_up(&rolled_up(&rows, Step::Minute), Step::Hour);
    assert_eq!((hours.len(), again.len()), (1, 1));
    let (hour, again) = (hours[0].delay.as_ref().unwrap(), again[0].delay.as_ref().unwrap());
    assert_eq!((hour.count, hour.sum_ns), (again.count, again.sum_ns));
    assert!((hour.deviation_ns().unwrap() / again.deviation_ns().unwrap() - 1.0).abs() < 1e-6);
}

#[test]
fn percentiles_come_from_histograms_of_all_packets() {
    let mut all: Vec<i64> = Vec::new();
    let rows: Vec<Row> = (0..60)
        .map(|number| {
            let mut histogram = Histogram::new(256);
            for packet in 0..100 {
                // Half of the epochs are ten times slower: percentiles of percentiles fail.
                let delay = (1_000_000 + 10_000 * packet) * if number % 2 == 0 { 1 } else { 10 };
                histogram.add(delay, 1.0);
                all.push(delay);
            }
            let mut row = row("a", "b", number);
            row.delay.as_mut().unwrap().histogram = Some(histogram::encode(&histogram));
            row
        })
        .collect();
    all.sort_unstable();
    let minute = &rolled_up(&rows, Step::Minute)[0];
    let quantiles = minute.delay.as_ref().unwrap().quantiles;
    for (quantile, share) in quantiles.iter().zip(QUANTILE_SHARES) {
        let exact = all[(share * all.len() as f64) as usize] as f64;
        let found = quantile.value_ns.unwrap() as f64;
        // Buckets are 1.1 % wide: a value is off by one of them at most, where values lie
        // close together.
        let off = found / exact - 1.0;
        assert!(off.abs() < 0.0112, "{share}: {found} for {exact}");
        let interval = quantile.low_ns.unwrap()..=quantile.high_ns.unwrap();
        assert!(interval.contains(&(exact as i64)), "{share}: {interval:?} for {exact}");
    }
}

#[test]
fn too_few_sampled_packets_tell_no_rare_percentile() {
    let check = |packets: i64, weight: f64, expected: [bool; 4]| {
        let mut histogram = Histogram::new(256);
        (1..=packets).for_each(|packet| histogram.add(1_000 * packet, weight));
        let known = quantiles(&histogram).map(|quantile| quantile.value_ns.is_some());
        assert_eq!(known, expected, "{packets} of weight {weight}");
    };
    check(400, 2.0, [true, true, true, false]);
    check(4_000, 2.0, [true; 4]);
    check(300, 2.0, [true, true, false, false]);
    // Nothing was left out.
    check(300, 1.0, [true; 4]);
}

#[test]
fn jitter_is_added_up_from_its_differences() {
    let steps = |count, sum_ns| Some(DelaySteps { count, sum_ns });
    let mut rows: Vec<Row> = (0..3).map(|number| row("a", "b", number)).collect();
    for (row, steps) in rows.iter_mut().zip([steps(3, 30.0), steps(0, 0.0), steps(1, 2.0)]) {
        row.delay.as_mut().unwrap().steps = steps;
    }
    let jitter = |rows: &[Row]| rolled_up(rows, Step::Minute)[0].delay.as_ref()?.jitter_ns();
    assert_eq!(jitter(&rows), Some(8.0));
    rows[1].delay.as_mut().unwrap().steps = None;
    assert_eq!(jitter(&rows), None, "what one part lacks the whole lacks");
}

#[test]
fn what_one_part_lacks_the_whole_lacks() {
    let mut rows: Vec<Row> = (0..3).map(|number| row("a", "b", number)).collect();
    rows[1].lost = None;
    rows[1].reason = Some("the stash was full".to_owned());
    rows.push(gap("a", "b", 3));
    let minute = &rolled_up(&rows, Step::Minute)[0];
    assert_eq!((minute.packets, minute.lost), (Some(30), None));
    assert_eq!((minute.epochs, minute.gaps), (3, 1));
    assert_eq!(minute.reason.as_deref(), Some("2 of 4 epochs: the stash was full"));
}

#[test]
fn long_gaps_are_cut_at_minutes() {
    let one = gap("a", "b", 30);
    let long = Row { end_ns: one.start_ns + 150 * SECOND_NS - 1, gaps: 150, ..one };
    let minutes = rolled_up([&long], Step::Minute);
    let gaps: Vec<u64> = minutes.iter().map(|minute| minute.gaps).collect();
    assert_eq!(gaps, [30, 60, 60]);
    assert!(minutes.iter().all(Row::is_gap));
}

#[test]
fn epochs_longer_than_a_minute_stay_whole() {
    let mut long = row("a", "b", 0);
    long.series.epoch_ns = 300 * SECOND_NS;
    long.end_ns = long.start_ns + 300 * SECOND_NS - 1;
    let minutes = rolled_up([&long], Step::Minute);
    assert_eq!((minutes[0].start_ns, minutes[0].end_ns), (long.start_ns, long.end_ns));
}

use super::*;
use crate::mix;

/// Packet `number` of an epoch that was sampled at this level.
fn packet(number: u64, delay_ns: i64, level: u16) -> SampledDelay {
    SampledDelay {
        delay: Delay::from_nanos(delay_ns),
        time: Timestamp::from_nanos(number as i64 * 1000),
        flow: 0,
        reach: SampleLevel::of_rank(mix(number)),
        level: SampleLevel::from_number(level).unwrap(),
    }
}

/// What a level keeps of packets `0..count`, whose delays follow from their numbers.
fn sample(numbers: std::ops::Range<u64>, level: u16, delay_ns: impl Fn(u64) -> i64) -> DelaySample {
    let all = numbers.map(|number| packet(number, delay_ns(number), level));
    DelaySample::new(all.filter(|packet| packet.reach >= packet.level).collect())
}

#[test]
fn a_sample_of_everything_is_exact() {
    let all = sample(0..100, 0, |number| number as i64 + 1);
    for (share, expected) in [(0.5, 51), (0.95, 96), (0.99, 100), (0.999, 100)] {
        let found = all.percentile(share).unwrap();
        assert_eq!((found.low_ns, found.time_ns, found.high_ns), (expected, expected, expected));
    }
    assert!(DelaySample::default().percentile(0.5).is_err());
}

#[test]
fn too_few_packets_say_so() {
    let some = sample(0..4000, 32, |number| number as i64);
    let count = some.packets().len() as u64;
    assert!((200..300).contains(&count), "a sixteenth of 4000: {count}");
    assert!(some.percentile(0.95).is_ok());
    let few = some.percentile(0.99).unwrap_err();
    assert_eq!((few.packets, few.needed), (count, 368));
}

#[test]
fn equal_weights_give_plain_order_statistics() {
    let some = sample(0..1600, 32, |number| number as i64 * 7);
    let found = some.percentile(0.5).unwrap();
    let delays: Vec<i64> = some.packets().iter().map(|packet| packet.delay.as_nanos()).collect();
    assert_eq!(found.time_ns, delays[delays.len() / 2]);
    assert!(found.low_ns < found.time_ns && found.time_ns < found.high_ns);
}

#[test]
fn epochs_of_different_levels_count_by_their_packets() {
    // 20 000 packets of 1 µs sampled at a sixteenth, 5 000 of 9 µs of which each was kept: four
    // fifths of all packets took 1 µs, though most of those that were kept took 9 µs.
    let mut both = sample(0..20_000, 32, |_| 1000);
    let few = both.packets().len();
    both.merge(&sample(50_000..55_000, 0, |_| 9000));
    assert!(few < 2000 && both.packets().len() == few + 5000);
    assert_eq!(both.percentile(0.5).unwrap().time_ns, 1000);
    assert_eq!(both.percentile(0.95).unwrap().time_ns, 9000);
    // As many equal ones would tell: (20000 + 5000)^2 / (1250 16^2 + 5000), about 1920.
    let few = both.percentile(0.999).unwrap_err();
    assert!((1700..2200).contains(&few.packets), "{few}");
}

#[test]
fn merged_samples_stay_bounded_and_fair() {
    let mut all = DelaySample::default();
    for epoch in 0..40 {
        let (from, to) = (epoch * 1000, (epoch + 1) * 1000);
        // Later epochs take longer.
        all.merge(&sample(from..to, (epoch % 3) as u16 * 8, |number| number as i64));
    }
    let packets = all.packets();
    assert!((7000..=DelaySample::MERGED_MAX).contains(&packets.len()), "{}", packets.len());
    assert!(packets.is_sorted() && packets.iter().all(|packet| packet.reach >= packet.level));
    for share in [0.5, 0.95, 0.99] {
        let found = all.percentile(share).unwrap();
        let truth = (share * 40_000.0) as i64;
        assert!((found.low_ns..=found.high_ns).contains(&truth), "{found:?}");
    }
    let sum: f64 = packets.iter().map(|packet| packet.level.weight()).sum();
    // About 7 500 packets, each standing for about five: a deviation of about 1 %.
    assert!((sum / 40_000.0 - 1.0).abs() < 0.04, "{sum}");
    assert!((all.histogram(1600).weight() / sum - 1.0).abs() < 1e-9);
}

#[test]
fn jitter_knows_no_clock_offset() {
    let delays = [5, 9, 2, 2];
    let of = |offset: i64| {
        let packets = (0..4).map(|number| packet(number, delays[number as usize] + offset, 0));
        DelaySample::new(packets.collect()).jitter_ns().unwrap()
    };
    assert_eq!(of(0), 11.0 / 3.0);
    assert_eq!(of(0), of(1_000_000_000_000));
    assert_eq!(DelaySample::new(vec![packet(1, 1, 0)]).jitter_ns(), None);
}

#[test]
fn corrected_delays_are_less_by_what_the_clock_was_ahead() {
    let all = sample(0..10, 0, |number| 100 + number as i64);
    let corrected = all.corrected(|time| Delay::from_nanos(time.as_nanos() / 1000));
    assert!(corrected.packets().iter().all(|packet| packet.delay.as_nanos() == 100));
}

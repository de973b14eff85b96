use twixt_model::{
    ClassId, Delay, DelayEstimate, FlowKey, GroupId, LossRange, Scope, Span, Timestamp, mix,
};

use super::*;
use crate::heartbeats::Heartbeats;
use crate::question::{By, KnownFlow};

const FLOWS: u64 = 10;

fn key(flow: u64) -> FlowKey {
    FlowKey { source_port: flow as u16, protocol: 17, ..FlowKey::default() }
}

/// Packet `number` at `time_ns`; one in ten is of flow 0, and so on.
fn packet(number: u64, time_ns: i64) -> Observation {
    Observation {
        time: Timestamp::from_nanos(time_ns),
        digest: PacketDigest(mix(number)),
        flow: FlowHash(mix(number % FLOWS)),
        length: 100,
        ..Observation::default()
    }
}

/// Packets with a delay of a microsecond for each unit of their flow, and a little of their own.
fn delay_ns(number: u64) -> i64 {
    (number % FLOWS) as i64 * 1000 + (mix(!number) % 500) as i64
}

fn both(budgets: (u32, u32), packets: u64, arrives: impl Fn(u64) -> bool) -> (Sample, Sample) {
    let new = |budget| Sample::new(&SampleConfig::new(budget, true).unwrap());
    let (mut upstream, mut downstream) = (new(budgets.0), new(budgets.1));
    for number in 0..packets {
        upstream.update(&packet(number, number as i64 * 100));
        if arrives(number) {
            downstream.update(&packet(number, number as i64 * 100 + delay_ns(number)));
        }
    }
    (upstream, downstream)
}

fn ask(upstream: &Sample, downstream: &Sample, by: By) -> Vec<Estimate> {
    let flows: Vec<KnownFlow> = (0..FLOWS)
        .map(|flow| KnownFlow {
            hash: FlowHash(mix(flow)),
            key: key(flow),
            group: GroupId::default(),
            packets: None,
            class: ClassId::default(),
        })
        .collect();
    let question =
        Question { by, flows: &flows, ..Question::about(Span::at(Timestamp::from_nanos(0))) };
    Sample::estimate(Pair { upstream, downstream }, &question)
}

#[test]
fn few_packets_are_all_kept_and_known_exactly() {
    let (upstream, downstream) = both((4096, 4096), 100, |number| number != 7);
    let estimate = &ask(&upstream, &downstream, By::All)[0];
    assert_eq!((estimate.evidence.packets, estimate.evidence.used), (100, 99));
    assert_eq!(estimate.evidence.lost, Some(1));
    let mut delays: Vec<i64> = (0..100).filter(|&number| number != 7).map(delay_ns).collect();
    delays.sort_unstable();
    let median = estimate.percentile(0.5).unwrap();
    assert_eq!(
        (median.low_ns, median.time_ns, median.high_ns),
        (delays[49], delays[49], delays[49])
    );
    assert_eq!(estimate.delay.unwrap().half_width_ns, Some(0.0));
    assert_eq!(estimate.reasons(), None);
}

#[test]
fn a_full_sample_uses_nine_tenths_of_its_budget_and_more() {
    for packets in [1_000, 10_000, 77_777] {
        let (upstream, _) = both((4096, 4096), packets, |_| true);
        let (kept, room) = (upstream.entries.len(), upstream.config.packets());
        // A step of the level drops 8.3 %, give or take three deviations.
        assert!(kept <= room && kept as f64 > 0.85 * room as f64, "{kept} of {room}");
        assert!(upstream.state_bytes() <= 4096 + 16 + 4 * upstream.config.parts() as u64);
    }
}

#[test]
fn unequal_budgets_meet_at_the_higher_level() {
    let (upstream, downstream) = both((16_384, 2048), 50_000, |_| true);
    assert!(upstream.level < downstream.level);
    let folded = upstream.fold_to(downstream.config()).unwrap();
    assert_eq!(folded.level, downstream.level);
    let estimate = &ask(&upstream, &downstream, By::All)[0];
    // None was lost, so that sums know the mean of all.
    assert_eq!(estimate.evidence.used, 50_000);
    let (estimate, sampled) =
        (by_sample((upstream.clone(), downstream.clone())), &downstream.entries);
    assert_eq!(estimate.evidence.used, sampled.len() as u64);
    assert!(downstream.fold_to(upstream.config()).is_none());
}

#[test]
fn losses_and_strangers_are_told_apart_by_the_sample() {
    // One in five is lost, and as many strays come: totals would show no loss.
    let (upstream, mut downstream) = both((65_536, 65_536), 20_000, |number| number % 5 != 0);
    for stranger in 0..4000 {
        downstream.update(&packet(1 << 40 | stranger, stranger as i64 * 500));
    }
    let estimate = &ask(&upstream, &downstream, By::All)[0];
    // About 500 sampled strays: their number has a deviation of 5 %.
    let (lost, strays) =
        (estimate.evidence.loss_range().unwrap(), estimate.evidence.stray_range().unwrap());
    assert!(strays.min <= 4000 && 4000 <= strays.max, "{strays:?}");
    assert!(strays.max - strays.min < 1200, "{strays:?}");
    // Each stray may be a packet that was changed, and not lost.
    assert_eq!(lost, LossRange { min: 0, max: strays.max });
}

#[test]
fn flows_and_prefixes_are_answered_where_they_are_known() {
    let (upstream, downstream) = both((65_536, 65_536), 20_000, |_| true);
    let by_flow = ask(&upstream, &downstream, By::Flow);
    assert_eq!(by_flow.len(), FLOWS as usize);
    for (flow, estimate) in by_flow.iter().enumerate() {
        assert_eq!(estimate.scope, Scope::Flow(key(flow as u64)));
        let median = estimate.percentile(0.5).unwrap();
        assert_eq!(median.time_ns / 1000, flow as i64);
        // About 320 of 2 000 sampled: a deviation of 5 %.
        assert!(estimate.evidence.packets.abs_diff(2000) < 400, "{}", estimate.evidence.packets);
        assert_eq!(estimate.evidence.loss_range(), None);
        assert!(estimate.reason.as_ref().unwrap().contains("is an estimate"), "{estimate:?}");
    }
    let by_prefix = ask(&upstream, &downstream, By::Prefix { v4: 24, v6: 48 });
    assert_eq!(by_prefix.len(), 1);
    assert_eq!(by_prefix[0].evidence.used, upstream.entries.len() as u64);
}

#[test]
fn percentiles_that_the_sample_cannot_carry_are_not_known() {
    let (upstream, downstream) = both((4096, 4096), 20_000, |_| true);
    let estimate = &ask(&upstream, &downstream, By::All)[0];
    assert!(estimate.percentile(0.95).is_some());
    assert_eq!(estimate.percentile(0.99), None);
    let reasons = estimate.reasons().unwrap();
    assert!(reasons.starts_with("p99 needs 368 sampled packets, there are 1"), "{reasons}");
    assert!(reasons.contains("p99.9 needs 3688"), "{reasons}");
    assert!(estimate.sample.as_ref().unwrap().jitter_ns().unwrap() > 0.0);
}

#[test]
fn a_flood_of_identical_packets_is_dropped_with_its_level() {
    let (mut upstream, _) = both((4096, 4096), 1000, |_| true);
    let level = upstream.level;
    for time in 0..10_000 {
        upstream.update(&packet(5, time));
    }
    assert!(upstream.entries.len() <= upstream.config.packets());
    assert!(upstream.level == level || !upstream.level.keeps(rank_of(PacketDigest(mix(5)))));
}

#[test]
fn split_merged_and_folded_samples_are_the_whole_at_any_level() {
    let whole = both((2048, 2048), 6000, |_| true).0;
    assert!(whole.level > SampleLevel::ALL);
    let mut parts = [(); 3].map(|()| Sample::new(whole.config()));
    for number in 0..6000 {
        parts[(mix(number ^ 9) % 3) as usize].update(&packet(number, number as i64 * 100));
    }
    let [mut sum, two, three] = parts;
    sum.merge(&three);
    sum.merge(&two);
    assert_eq!(sum, whole);
    let small = both((1024, 1024), 6000, |_| true).0;
    assert_eq!(whole.fold_to(small.config()), Some(small));
}

#[test]
fn nothing_sampled_is_nothing_known() {
    let empty = Sample::new(&SampleConfig::default());
    let estimate = &ask(&empty, &empty, By::All)[0];
    assert_eq!((estimate.delay, estimate.evidence.lost), (None, Some(0)));
    assert_eq!(estimate.reason.as_deref(), Some("no packets"));
    let (upstream, _) = both((4096, 4096), 100, |_| true);
    let estimate = &ask(&upstream, &empty, By::All)[0];
    assert_eq!((estimate.delay, estimate.evidence.lost), (None, Some(100)));
    let reason = estimate.reason.as_deref();
    assert_eq!(reason, Some("none of the 100 sampled packets was seen downstream"));
}

#[test]
fn a_clock_offset_of_years_changes_delays_and_nothing_else() {
    const YEARS: i64 = 315_360_000_000_000_000;
    let (upstream, downstream) = both((4096, 4096), 5000, |_| true);
    let config = downstream.config.clone();
    let mut shifted = Sample::new(&config);
    for number in 0..5000 {
        shifted.update(&packet(number, number as i64 * 100 + delay_ns(number) + YEARS));
    }
    let (near, far) =
        (&ask(&upstream, &downstream, By::All)[0], &ask(&upstream, &shifted, By::All)[0]);
    let (one, other) = (near.delay.unwrap(), far.delay.unwrap());
    assert_eq!(other.mean() - one.mean(), Delay::from_nanos(YEARS));
    assert_eq!(other.deviation_ns, one.deviation_ns);
    let jitter = |estimate: &Estimate| estimate.sample.as_ref().unwrap().jitter_ns();
    assert_eq!(jitter(near), jitter(far));
}

/// Scaled up, two of three sampled packets were shown as so many lost packets, and as an exact mean.
#[test]
fn a_handful_of_sampled_packets_is_not_shown_as_a_measurement() {
    // 40 packets of each flow, about five of them sampled.
    let (upstream, downstream) = both((2048, 2048), 400, |number| number % 3 != 0);
    assert!(upstream.level > SampleLevel::ALL);
    let flows = ask(&upstream, &downstream, By::Flow);
    let few = flows.iter().filter(|estimate| estimate.evidence.used == 0);
    assert!(few.clone().count() > 0, "{flows:?}");
    for estimate in few {
        let reason = estimate.reason.as_deref().unwrap();
        assert_eq!(estimate.delay, None);
        assert!(reason.starts_with("only ") || reason.starts_with("none "), "{reason}");
    }
    for estimate in &flows {
        assert_eq!(estimate.evidence.loss_range(), None, "{estimate:?}");
    }
}

/// A sample of traffic of which half repeats one packet, or a few dozen, that take four times as long.
fn repeating(seed: u64, share: f64, digests: u64, budget: u32) -> ((Sample, Sample), f64) {
    let config = SampleConfig::new(budget, true).unwrap();
    let (mut upstream, mut downstream) = (Sample::new(&config), Sample::new(&config));
    let unit = |salt: u64, number: u64| {
        (mix(mix(seed << 48 | salt << 40 | number) ^ 0x7265_7065) >> 11) as f64
            / (1_u64 << 53) as f64
    };
    let mut sum_ns = 0.0;
    for number in 0..30_000 {
        let repeats = unit(1, number) < share;
        let kind = if repeats { (1 << 50) | (number % digests) } else { number };
        let delay_ns = if repeats { 4e6 } else { 1e6 * -(1.0 - unit(2, number)).ln() };
        let sent_ns = number as i64 * 300_000;
        upstream.update(&packet(seed << 51 | kind, sent_ns));
        downstream.update(&packet(seed << 51 | kind, sent_ns + delay_ns as i64));
        sum_ns += delay_ns;
    }
    ((upstream, downstream), sum_ns / 30_000.0)
}

/// What is known of all traffic without the sums of all packets, as where one was lost.
fn by_sample((mut upstream, downstream): (Sample, Sample)) -> Estimate {
    upstream.sums = None;
    ask(&upstream, &downstream, By::All).remove(0)
}

/// Heartbeats fill half of the traffic, and are never in the sample: the mean was off by half, in an
/// interval of a tenth.
#[test]
fn identical_packets_that_no_sample_can_hold_are_noticed() {
    // A fiftieth of the packets takes four times as long: less than a sample of 200 shows by its size.
    for (seed, share) in (0..60).flat_map(|seed| [0.5, 0.1, 0.02].map(|share| (seed, share))) {
        let (ends, truth) = repeating(seed, share, 1, 4096);
        let estimate = ask(&ends.0, &ends.1, By::All).remove(0);
        let reason = estimate.reasons().unwrap_or_default();
        assert!(reason.contains("packets are identical to others, and not in"), "{reason}");
        // None was lost: the sum of all delays is known.
        let delay = estimate.delay.unwrap();
        assert_eq!((delay.half_width_ns, delay.deviation_ns), (Some(0.0), None));
        assert!((delay.mean_ns() - truth).abs() < 1.0, "{seed} {share}: {delay:?} {truth}");
        let estimate = by_sample(ends);
        let reason = estimate.reasons().unwrap_or_default();
        assert!(reason.contains("packets are identical to others, and not in"), "{reason}");
        let interval = estimate.delay.and_then(|delay| delay.interval());
        assert_eq!(interval, None, "{seed} {share}: {truth}");
    }
}

/// Heartbeats that may have been in flight at both ends: that the sums agree tells nothing.
#[test]
fn sums_are_not_believed_where_packets_may_have_been_in_flight() {
    let (upstream, downstream) = both((4096, 4096), 10_000, |_| true);
    let pair = Pair { upstream: &upstream, downstream: &downstream };
    let question = Question::about(Span::at(Timestamp::from_nanos(0)));
    let ask = |question: &Question<'_>| Sample::estimate(pair, question).remove(0);
    let mean_of_all = ask(&question).delay.unwrap();
    assert_eq!(mean_of_all.half_width_ns, Some(0.0));
    let alike = |apart| {
        [Heartbeats {
            digest: PacketDigest(7),
            flow: FlowHash(7),
            packets: 100,
            apart,
            are_complete: false,
        }]
    };
    let little = alike(Delay::from_nanos(mean_of_all.mean_ns() as i64));
    let estimate = ask(&Question { heartbeats: &little, ..question });
    // The mean of the others, by the sample.
    let delay = estimate.delay.unwrap();
    assert!(delay.count < mean_of_all.count && delay.half_width_ns.is_none(), "{delay:?}");
    assert!(estimate.reasons().unwrap().contains("100 identical packets are left out"));
    // A hundredth of the packets that takes a hundred times as long.
    let much = alike(Delay::from_nanos(100 * mean_of_all.mean_ns() as i64));
    let estimate = ask(&Question { heartbeats: &much, ..question });
    assert_eq!(estimate.delay, None);
    assert!(estimate.reasons().unwrap().contains("no mean: 100 identical packets are left out"));
}

/// One flow, 3 000 packets of 1.3 ms, a heartbeat of 300 ms that is so small a part of the packets, a third of all
/// lost: in how many of 60 samples of the flow, or of all traffic, a mean is stated that does not hold, and nothing
/// said of heartbeats.
fn silent(every: u64, by: By) -> u64 {
    let is_silent = |seed: &u64| {
        let config = SampleConfig::default();
        let (mut upstream, mut downstream) = (Sample::new(&config), Sample::new(&config));
        let (mut sum_ns, mut arrived) = (0.0, 0.0);
        for number in 0..3_000 + 3_000 / (every - 1) {
            let is_heartbeat = number % every == 0;
            let kind = if is_heartbeat { 1 << 50 } else { number };
            let delay_ns = if is_heartbeat { 300_000_000 } else { 1_300_000 };
            let sent = Observation {
                flow: FlowHash::default(),
                ..packet(seed << 52 | kind, number as i64 * 10_000_000)
            };
            upstream.update(&sent);
            if mix(seed << 20 | number) % 10 < 7 {
                (sum_ns, arrived) = (sum_ns + delay_ns as f64, arrived + 1.0);
                downstream
                    .update(&Observation { time: sent.time + Delay::from_nanos(delay_ns), ..sent });
            }
        }
        let flow = KnownFlow { key: key(0), ..KnownFlow::default() };
        let span = Span::at(Timestamp::from_nanos(0));
        let question = Question { by, flows: &[flow], ..Question::about(span) };
        let pair = Pair { upstream: &upstream, downstream: &downstream };
        let estimate = Sample::estimate(pair, &question).remove(0);
        let reason = estimate.reasons().unwrap_or_default();
        let off_ns = |delay: DelayEstimate| (delay.mean_ns() - sum_ns / arrived).abs();
        let is_wrong = |delay: DelayEstimate| Some(off_ns(delay) > delay.half_width_ns? + 1.0);
        // The one digest may be in the sample by chance.
        estimate.delay.and_then(is_wrong).unwrap_or_else(|| !reason.contains("identical"))
    };
    (0..60).filter(is_silent).count() as u64
}

/// The mean was stated as 1.3 ms with an interval of 60 us: without a word of heartbeats that are 9 % of the packets, and,
/// as that was mended, of those that are 1 %.
#[test]
fn heartbeats_that_are_not_in_the_sample_are_noticed() {
    for by in [By::All, By::Flow] {
        assert_eq!(silent(11, by), 0, "{by:?}");
        assert_eq!(silent(34, by), 0, "{by:?}");
        // The parts of 3 000 packets have 11.7 each, and the limit of chance is 36: one in twenty times the part of 30
        // heartbeats has fewer. Of 60, 8 or more are with a probability of 1 %.
        let few = silent(101, by);
        println!("{by:?}: {few} of 60 not noticed");
        assert!(few <= 8, "{by:?}: {few} of 60");
    }
}

/// Clusters that are in the sample by chance count as one draw each: intervals hold.
#[test]
fn identical_packets_in_the_sample_are_one_draw() {
    for (digests, budget) in [(3000, 4096), (300, 16_384)] {
        let (mut held, mut all) = (0, 0);
        for seed in 0..100 {
            let (ends, truth) = repeating(seed, 0.2, digests, budget);
            let Some(delay) = by_sample(ends).delay else { continue };
            let Some(width) = delay.half_width_ns else { continue };
            all += 1;
            held += u64::from((delay.mean_ns() - truth).abs() <= width);
        }
        assert!(all > 60, "{digests}: {all}");
        twixt_testing::check_coverage(&format!("{digests} digests"), held, all, 0.95);
    }
}

/// Few of many packets with delays whose mean a few of them make up, which most samples lack: Student's
/// interval alone holds in seven of ten.
#[test]
fn a_mean_that_depends_on_a_few_packets_has_a_wide_interval() {
    let mut held = 0;
    for seed in 0..100_u64 {
        let config = SampleConfig::default();
        let (mut upstream, mut downstream) = (Sample::new(&config), Sample::new(&config));
        let mut sum_ns = 0.0;
        for number in 0..30_000_u64 {
            let unit = (mix(mix(seed << 40 | number)) >> 11) as f64 / (1_u64 << 53) as f64;
            let delay_ns = 333_333.0 * (1.0 - unit).powf(-1.0 / 1.5);
            let kind = packet(seed << 40 | number, number as i64 * 300_000);
            upstream.update(&kind);
            let time = kind.time + Delay::from_nanos(delay_ns as i64);
            downstream.update(&Observation { time, ..kind });
            sum_ns += delay_ns;
        }
        let estimate = by_sample((upstream, downstream));
        assert!(estimate.percentile(0.95).is_some());
        let delay = estimate.delay.unwrap();
        let off_ns = (delay.mean_ns() - sum_ns / 30_000.0).abs();
        held += u64::from(off_ns <= delay.half_width_ns.unwrap());
    }
    twixt_testing::check_coverage("Pareto of 1.5, seeds 0 to 99", held, 100, 0.93);
}

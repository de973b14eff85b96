//! Heartbeats that were in flight at both ends, which equal counts do not show.

use twixt_model::{
    Delay, DelayEstimate, Estimate, FlowHash, FlowKey, Observation, PacketDigest, Span, Timestamp,
    mix,
};
use twixt_synopsis::{
    By, Colate, Heartbeats, KnownFlow, Lda, Lds, Listing, Pair, Question, Synopsis, TwoPoint,
};

const HEARTBEAT: PacketDigest = PacketDigest(mix(7));
const BEATS: i64 = 100;

fn flow() -> KnownFlow {
    let key = FlowKey { source_port: 5, protocol: 17, ..FlowKey::default() };
    KnownFlow { hash: FlowHash(mix(5)), key, ..KnownFlow::default() }
}

/// Ten seconds of a flow: packets of 1 ms, and a heartbeat every 100 ms of 260 ms, of which two were in flight when the
/// captures began, and two when they ended.
fn ends<T: Synopsis>() -> (T, T) {
    let config = T::Config::default();
    let (mut upstream, mut downstream) = (T::new(&config), T::new(&config));
    let seen = |digest: PacketDigest, time_ns: i64| Observation {
        time: Timestamp::from_nanos(time_ns),
        digest,
        flow: flow().hash,
        length: 100,
        ..Observation::default()
    };
    for number in 0..2_000 {
        let digest = PacketDigest(mix(1_000 + number as u64));
        upstream.update(&seen(digest, number * 5_000_000));
        downstream.update(&seen(digest, number * 5_000_000 + 1_000_000));
    }
    for beat in 0..BEATS {
        upstream.update(&seen(HEARTBEAT, beat * 100_000_000));
        downstream.update(&seen(HEARTBEAT, (beat - 2) * 100_000_000 + 260_000_000));
    }
    (upstream, downstream)
}

fn ask<T: TwoPoint>(by: By, heartbeats: &[Heartbeats]) -> Estimate {
    let (upstream, downstream) = ends::<T>();
    let span = Span { start: Timestamp::from_nanos(0), end: Timestamp::from_nanos(10_000_000_000) };
    let question = Question {
        by,
        flows: &[flow()],
        listing: Listing::Passing,
        heartbeats,
        ..Question::about(span)
    };
    T::estimate(Pair { upstream: &upstream, downstream: &downstream }, &question).remove(0)
}

/// The mean is 13.3 ms: 3.8 ms were stated, with certainty. It is that of the others now, and says so.
#[track_caller]
fn check<T: TwoPoint>(by: By) {
    let certain = ask::<T>(by, &[]).delay.unwrap();
    assert!(certain.mean_ns() < 5e6 && certain.half_width_ns.is_some(), "{certain:?}");
    let alike = |apart_ns| Heartbeats {
        digest: HEARTBEAT,
        flow: flow().hash,
        packets: BEATS as u64,
        apart: Delay::from_nanos(apart_ns),
        are_complete: false,
    };
    // A twentieth of the packets: a mean of 1 ms becomes one of 1.05 ms, or of 3 ms.
    let estimate = ask::<T>(by, &[alike(1_000_000)]);
    let reason = estimate.reasons().unwrap_or_default();
    assert!(reason.contains("100 identical packets are left out"), "{reason}");
    let interval = estimate.delay.and_then(|delay| delay.half_width_ns);
    assert_eq!(interval, None, "{estimate:?}");
    let is_near = |delay: DelayEstimate| (delay.mean_ns() - 1e6).abs() < 1e3;
    assert!(estimate.delay.is_none_or(is_near), "{estimate:?}");
    let estimate = ask::<T>(by, &[alike(-41_000_000)]);
    assert_eq!(estimate.delay, None, "{estimate:?}");
    let reason = estimate.reasons().unwrap_or_default();
    assert!(reason.contains("100 identical packets are left out"), "{reason}");
}

#[test]
fn sums_of_heartbeats_that_were_in_flight_at_the_ends_are_not_taken_for_delays() {
    check::<Lda>(By::All);
    check::<Lds>(By::All);
    check::<Lds>(By::Flow);
    check::<Colate>(By::All);
    check::<Colate>(By::Flow);
}

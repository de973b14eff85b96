//! Algorithms that learn from one point: what goes on across the end of an epoch.

use twixt_model::{BatchBuffer, Detail, Exchange, FlowKey, RoundTripEstimate, RoundTripKind, Span};
use twixt_synopsis::{Estimator, Purpose, Question, find};

use super::*;

/// A message of DNS at this moment.
fn message(buffer: &mut BatchBuffer, ms: i64, id: u16, response: bool) {
    let asked = FlowKey {
        source: [10, 0, 0, 1].into(),
        destination: [10, 0, 0, 2].into(),
        source_port: 4000,
        destination_port: 53,
        protocol: 17,
    };
    let key = if response { asked.reversed() } else { asked };
    let exchange = Some(Exchange::Dns { id, response });
    let detail = Detail { key, exchange, ..Detail::default() };
    buffer.push_detailed(packet(ms as u64, at_ms(ms)), detail);
}

/// Queries of DNS whose response was measured in an epoch.
fn matched(sealed: &Sealed) -> u64 {
    let algorithm = find(Purpose::RoundTrip, "exact").unwrap();
    let Estimator::RoundTrip { conclude, .. } = &algorithm.estimator else { unreachable!() };
    let question = Question::about(Span::at(at_ms(0)));
    let estimates = (conclude.conclude)(sealed.synopsis.as_ref(), &question).unwrap();
    let is_query = |estimate: &&RoundTripEstimate| estimate.kind == RoundTripKind::Dns;
    estimates.iter().filter(is_query).map(|estimate| estimate.matched).sum()
}

/// Round trips of epochs of 100 ms, for queries and responses at these times.
#[track_caller]
fn check(lateness_ms: i64, queries_ms: &[i64], responses_ms: &[i64], expected: &[u64]) {
    let config = MeterConfig { lateness: Delay::from_nanos(lateness_ms * MS), ..config("p") };
    let prototype = (find(Purpose::RoundTrip, "exact").unwrap().start)(&Default::default());
    let mut meter = Meter::new(config, prototype.unwrap()).unwrap();
    let queries = queries_ms.iter().enumerate().map(|(id, &ms)| (ms, id as u16, false));
    let responses = responses_ms.iter().enumerate().map(|(id, &ms)| (ms, id as u16, true));
    let mut messages: Vec<_> = queries.chain(responses).collect();
    messages.sort_unstable();
    for (ms, id, response) in messages {
        let mut buffer = BatchBuffer::new();
        message(&mut buffer, ms, id, response);
        meter.observe(buffer.as_batch());
    }
    meter.finish();
    let found: Vec<u64> = drain(&mut meter).iter().map(matched).collect();
    assert_eq!(found, expected);
}

#[test]
fn a_round_trip_counts_in_the_epoch_in_which_it_ends() {
    for lateness_ms in [0, 50, 150] {
        check(lateness_ms, &[10, 20], &[15, 25], &[2]);
        check(lateness_ms, &[90], &[105], &[0, 1]);
        check(lateness_ms, &[10, 90], &[15, 105], &[1, 1]);
        check(lateness_ms, &[90], &[350], &[0, 0, 0, 1]);
        check(lateness_ms, &[90, 110], &[350, 120], &[0, 1, 0, 1]);
    }
}

//! Round trips of TCP over a path with loss, seen from any place on it. The traffic and its truth are
//! made here, not by the simulator.

mod traffic;

use twixt_model::{Batch, RoundTripEstimate, RoundTripKind, Scope, Span, Timestamp};
use twixt_synopsis::{Estimator, Purpose, Question};
use twixt_testing::seed;

use traffic::{MILLISECOND, Path, Seen, Truth, connections};

const SEEDS: u64 = 3;

fn conclude(algorithm: &str, seen: &[Seen]) -> Vec<RoundTripEstimate> {
    let algorithm = twixt_synopsis::find(Purpose::RoundTrip, algorithm).unwrap();
    let mut synopsis = (algorithm.start)(&toml::Table::new()).unwrap();
    let (observations, details): (Vec<_>, Vec<_>) = seen.iter().copied().unzip();
    synopsis.update_batch(Batch { observations: &observations, details: &details });
    let Estimator::RoundTrip { conclude, .. } = &algorithm.estimator else {
        panic!("of another purpose")
    };
    let question = Question::about(Span::at(Timestamp::from_nanos(0)));
    (conclude.conclude)(synopsis.as_ref(), &question).unwrap()
}

/// Number and mean of the round trips of a kind.
#[track_caller]
fn found(estimates: &[RoundTripEstimate], kind: RoundTripKind) -> (u64, f64) {
    let all = |estimate: &&RoundTripEstimate| estimate.scope == Scope::All && estimate.kind == kind;
    let estimate = estimates.iter().find(all).expect("it occurred");
    (estimate.matched, estimate.times.as_ref().expect("it was measured").mean_ns)
}

#[track_caller]
fn each(path: &Path, mut check: impl FnMut(&[RoundTripEstimate], &Truth)) {
    for number in 1..=SEEDS {
        let seed = seed(number);
        let (seen, truth) = connections(path, seed);
        println!("{path:?}, seed {seed}: {truth:?}");
        check(&conclude("exact", &seen), &truth);
    }
}

const PATH: Path = Path {
    connections: 600,
    round_trip_ns: 131 * MILLISECOND,
    place: 0.5,
    loss: 0.0,
    segments: 0,
    reused: false,
    ended: true,
};

/// The legs were pooled: 66 ms for 131 near an endpoint. Every handshake without loss is measured, and
/// those with loss only where nothing is ambiguous: means are those of the very connections that the
/// truth counts, so that they agree to the nanosecond of rounding.
#[test]
fn a_handshake_is_the_sum_of_its_legs_wherever_the_point_is() {
    use RoundTripKind::{TcpHandshake, TcpHandshakeClient, TcpHandshakeServer};
    for place in [0.02, 0.3, 0.5, 0.98] {
        for loss in [0.0, 0.03, 0.1] {
            each(&Path { place, loss, ..PATH }, |estimates, truth| {
                for (kind, expected) in [
                    (TcpHandshake, truth.handshake),
                    (TcpHandshakeServer, truth.server),
                    (TcpHandshakeClient, truth.client),
                ] {
                    let (matched, mean_ns) = found(estimates, kind);
                    assert_eq!(matched, expected.count, "{kind}");
                    assert!((mean_ns - expected.mean_ns()).abs() <= 1.0, "{kind}: {mean_ns}");
                }
                let sum = truth.handshake.mean_ns();
                // Spread by a tenth: four standard errors.
                let error = 4.0 * 0.1 / (truth.handshake.count as f64).sqrt();
                assert!((sum / PATH.round_trip_ns as f64 - 1.0).abs() < error, "{sum}");
            });
        }
    }
}

/// Initial numbers lie before the old ones as often as behind: 46 % of the samples were missing.
#[test]
fn ports_that_are_used_again_lose_nothing() {
    for ended in [false, true] {
        let path = Path { segments: 10, reused: true, ended, ..PATH };
        each(&path, |estimates, truth| {
            let (matched, mean_ns) = found(estimates, RoundTripKind::TcpSequence);
            assert_eq!(matched, truth.data.count);
            assert!((mean_ns - truth.data.mean_ns()).abs() <= 1.0, "{mean_ns}");
            assert_eq!(found(estimates, RoundTripKind::TcpHandshake).0, truth.handshake.count);
        });
    }
}

/// A connection that was never ended was measured up to the end of the next one of its name. Of two
/// initial numbers one in 16 looks like the other: then the older connection goes on, here by as
/// long as the two are apart.
#[test]
fn a_duration_is_that_of_one_connection() {
    let path = Path { reused: true, ended: false, ..PATH };
    each(&path, |estimates, truth| {
        // Only the last connection ends.
        let (matched, mean_ns) = found(estimates, RoundTripKind::TcpDuration);
        assert_eq!((matched, truth.duration.count), (1, 1));
        println!("{mean_ns} for {}", truth.duration.mean_ns());
        assert!(mean_ns < 20.0 * truth.duration.mean_ns());
    });
}

/// A fridge estimates as many handshakes as there are, of the same mean.
#[test]
fn bounded_tables_measure_the_sum_as_well() {
    use RoundTripKind::TcpHandshake;
    let (seen, truth) = connections(&Path { loss: 0.03, place: 0.02, ..PATH }, seed(1));
    for algorithm in ["simple", "fridge"] {
        let (matched, mean_ns) = found(&conclude(algorithm, &seen), TcpHandshake);
        // 600 connections leave tables of 4096 entries nearly without collisions.
        assert!(matched as f64 > 0.8 * truth.handshake.count as f64, "{algorithm}: {matched}");
        let error = 4.0 * 0.1 / (matched as f64).sqrt();
        assert!((mean_ns / truth.handshake.mean_ns() - 1.0).abs() < error, "{algorithm}");
    }
}

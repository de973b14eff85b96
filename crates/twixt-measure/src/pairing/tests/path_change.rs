//! A path that becomes longer or shorter within an epoch: what is said of loss and of the mean holds,
//! or is unknown with a reason.

use twixt_model::{Delay, Estimate, Observation, Span, Timestamp};

use super::pair;
use crate::fixtures::{MS, config, packet, seal};
use crate::pairing::PairingEvent;
use crate::sealed::Sealed;

const EPOCH_MS: i64 = 100;
const GUARD_MS: i64 = 20;
const EPOCHS: i64 = 9;
/// The path changes within this epoch.
const CHANGED: i64 = 4;
const SPACING_NS: i64 = MS / 4;
const ALGORITHMS: [&str; 6] = ["exact", "lda", "lds", "colate", "sample", "cnf"];

/// Packets that take 1 ms before or after a moment, and so much longer on the other side of it.
#[derive(Clone, Copy, Debug)]
struct Change {
    at_ns: i64,
    longer_ns: i64,
    /// It becomes longer, not shorter.
    is_longer: bool,
    /// One packet of so many is lost; none if 0.
    lost_of: u64,
    seed: u64,
}

impl Change {
    fn sent() -> Vec<Observation> {
        let count = EPOCHS * EPOCH_MS * MS / SPACING_NS;
        (0..count).map(|n| packet(n as u64, Timestamp::from_nanos(n * SPACING_NS))).collect()
    }

    fn delay(self, packet: &Observation) -> Option<Delay> {
        let is_after = packet.time.as_nanos() >= self.at_ns;
        let drawn = twixt_model::mix(self.seed << 32 | packet.digest.0);
        let is_lost = self.lost_of > 0 && drawn.is_multiple_of(self.lost_of);
        let jitter_ns = (drawn >> 32) as i64 % (MS / 2);
        let longer_ns = if is_after == self.is_longer { self.longer_ns } else { 0 };
        (!is_lost).then(|| Delay::from_nanos(MS + jitter_ns + longer_ns))
    }

    fn sealed(self, algorithm: &str) -> Vec<Sealed> {
        let sent = Self::sent();
        let arrived = sent.iter().filter_map(|packet| {
            Some(Observation { time: packet.time + self.delay(packet)?, ..*packet })
        });
        let mut arrived: Vec<Observation> = arrived.collect();
        arrived.sort_unstable();
        let mut sealed = seal(config("up"), algorithm, &sent);
        sealed.extend(seal(config("down"), algorithm, &arrived));
        sealed
    }

    /// Packets of an interval that were lost, and the mean delay of the others.
    fn truth(self, span: Span) -> (u64, f64) {
        let own = Self::sent().into_iter().filter(|packet| span.contains(packet.time));
        let (mut lost, mut delays) = (0, Vec::new());
        for packet in own {
            match self.delay(&packet) {
                Some(delay) => delays.push(delay.as_nanos() as f64),
                None => lost += 1,
            }
        }
        (lost, delays.iter().sum::<f64>() / delays.len() as f64)
    }

    #[track_caller]
    fn check_estimate(self, algorithm: &str, estimate: &Estimate) {
        let (lost, mean_ns) = self.truth(estimate.span);
        let what = || format!("{algorithm}, {self:?}: {lost} lost, {mean_ns} ns: {estimate:?}");
        match estimate.evidence.loss_range() {
            Some(range) => assert!(range.min <= lost && lost <= range.max, "{}", what()),
            None => assert!(estimate.reason.is_some(), "{}", what()),
        }
        match estimate.delay {
            Some(delay) => {
                // Four standard deviations of what chance decides, and rounding.
                let half_ns = delay.half_width_ns.map(|half| half / 1.96 * 4.0 + 1.0);
                let is_off = |half: f64| (delay.mean_ns() - mean_ns).abs() > half;
                assert!(!half_ns.is_some_and(is_off), "{}", what());
                assert!(half_ns.is_some() || estimate.reason.is_some(), "{}", what());
            }
            None => assert!(estimate.reason.is_some(), "{}", what()),
        }
    }

    #[track_caller]
    fn check(self) {
        for algorithm in ALGORITHMS {
            let (events, _) = pair(self.sealed(algorithm));
            for event in &events {
                let PairingEvent::Estimated { epoch, estimates, .. } = event else { continue };
                self.check_estimate(algorithm, &estimates[0]);
                // The boundary before the epoch may be near the change.
                let is_before = self.is_longer && epoch.0 < CHANGED - 1 && epoch.0 > 0;
                let is_known = estimates[0].evidence.loss_range().is_some();
                assert!(is_known || !is_before, "{algorithm}, {self:?}: {estimates:?}");
            }
        }
    }
}

/// Half a guard, one, two and ten, at any place.
fn check_all(is_longer: bool, lost_of: u64) {
    for longer_ms in [GUARD_MS / 2, GUARD_MS, 2 * GUARD_MS, 10 * GUARD_MS] {
        for place_ms in [0, 3, 19, 30, 50, 71, 85, 91, 98] {
            let at_ns = (CHANGED * EPOCH_MS + place_ms) * MS + 1;
            let seed = 1 + place_ms as u64;
            let longer_ns = longer_ms * MS;
            Change { at_ns, longer_ns, is_longer, lost_of, seed }.check();
        }
    }
}

#[test]
fn a_path_that_becomes_longer_makes_no_loss() {
    check_all(true, 0);
}

#[test]
fn a_path_that_becomes_longer_hides_no_loss() {
    check_all(true, 50);
}

#[test]
fn a_path_that_becomes_shorter_makes_no_loss() {
    check_all(false, 0);
}

#[test]
fn a_path_that_becomes_shorter_hides_no_loss() {
    check_all(false, 50);
}

/// The last 9 ms of an epoch take a path that is 79 ms longer: 87 packets more than the 40 that were lost
/// seemed lost, and the mean seemed to be 1.1 ms where it was 4.6 ms.
#[test]
fn nothing_that_arrives_after_a_moment_is_noticed() {
    let at_ns = (CHANGED + 1) * EPOCH_MS * MS - 9 * MS;
    Change { at_ns, longer_ns: 79 * MS, is_longer: true, lost_of: 50, seed: 1 }.check();
}

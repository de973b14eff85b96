//! How good the clocks are that stamp packets, as those say who keep them right.

mod chrony;
mod ptp4l;

use std::time::Duration;

use twixt_capture::kernel_clock;
use twixt_model::{Delay, TimeSource};

/// How often they are asked.
pub(crate) const ASK_EVERY: Duration = Duration::from_secs(10);
/// A daemon that does not answer within this time is considered absent.
const TIMEOUT: Duration = Duration::from_millis(200);

/// What one of them says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClockWord {
    /// The clock is synchronised.
    pub(crate) synchronised: bool,
    /// The clock is wrong by no more than this; `None` if that is not known.
    pub(crate) bound: Option<Delay>,
}

impl ClockWord {
    /// A bound is worthless if the clock is not synchronised.
    fn new(synchronised: bool, bound: Delay) -> Self {
        Self { synchronised, bound: Some(bound).filter(|_| synchronised) }
    }
}

/// What all of them say; `None` of those that are not there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClockQuality {
    kernel: Option<ClockWord>,
    chrony: Option<ClockWord>,
    ptp4l: Option<ClockWord>,
}

impl ClockQuality {
    /// Asks all of them.
    pub(crate) fn ask() -> Self {
        let kernel = kernel_clock().ok();
        let kernel = kernel.map(|clock| ClockWord::new(clock.synchronised, clock.error_max));
        Self { kernel, chrony: chrony::ask(TIMEOUT).ok(), ptp4l: ptp4l::ask(TIMEOUT).ok() }
    }

    /// By how much times of this source are wrong at most, where that is known. The system's clock
    /// is that which the kernel stamps with; chrony knows it better than the kernel. The adapter has
    /// a clock of its own, which ptp4l keeps.
    pub(crate) fn bound(&self, source: TimeSource) -> Option<Delay> {
        let word = match source {
            TimeSource::File => None,
            TimeSource::Kernel => self.chrony.or(self.kernel),
            TimeSource::Hardware => self.ptp4l,
        };
        word.and_then(|word| word.bound)
    }

    /// Who says what.
    pub(crate) fn words(&self) -> impl Iterator<Item = (&'static str, ClockWord)> {
        let all = [("kernel", self.kernel), ("chrony", self.chrony), ("ptp4l", self.ptp4l)];
        all.into_iter().filter_map(|(name, word)| Some((name, word?)))
    }
}

/// Seconds as a delay; `None` if they are no number or absurd.
fn seconds(value: f64) -> Option<Delay> {
    let nanos = value * 1e9;
    (nanos.abs() < 1e18).then(|| Delay::from_nanos(nanos as i64))
}

/// The bytes at a place.
fn field<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_source_of_time_has_who_knows_it_best() {
        let word =
            |synchronised, nanos| Some(ClockWord::new(synchronised, Delay::from_nanos(nanos)));
        let quality =
            ClockQuality { kernel: word(true, 900), chrony: word(true, 50), ptp4l: word(true, 7) };
        let bound = |quality: &ClockQuality, source| quality.bound(source).map(Delay::as_nanos);
        assert_eq!(bound(&quality, TimeSource::Kernel), Some(50));
        assert_eq!(bound(&quality, TimeSource::Hardware), Some(7));
        assert_eq!(bound(&quality, TimeSource::File), None);
        let lost = ClockQuality { chrony: word(false, 50), ..quality };
        assert_eq!(bound(&lost, TimeSource::Kernel), None, "it is unknown, rather than small");
        let alone = ClockQuality { chrony: None, ptp4l: None, ..quality };
        assert_eq!(bound(&alone, TimeSource::Kernel), Some(900));
        assert_eq!(bound(&alone, TimeSource::Hardware), None);
        assert_eq!(quality.words().count(), 3);
    }
}

//! The clocks of a machine: one that can be set and drifts, and one that stands still while the machine
//! is suspended.

use std::time::Duration;

use twixt_model::Timestamp;

/// The clocks of one machine.
#[derive(Clone, Debug)]
pub(crate) struct MachineClock {
    /// What it showed when the story began.
    start_ns: i64,
    ahead_ns: i64,
    drift_ppm: i64,
    /// When the drift began.
    drift_since_ns: i64,
    suspended_ns: i64,
}

impl MachineClock {
    pub(crate) const fn new(start_ns: i64) -> Self {
        Self { start_ns, ahead_ns: 0, drift_ppm: 0, drift_since_ns: 0, suspended_ns: 0 }
    }

    /// What the clock shows that can be set.
    pub(crate) const fn wall(&self, now_ns: i64) -> Timestamp {
        let drift_ns = (now_ns - self.drift_since_ns) * self.drift_ppm / 1_000_000;
        Timestamp::from_nanos(self.start_ns + now_ns + self.ahead_ns + drift_ns)
    }

    /// What the other one shows.
    pub(crate) fn steady(&self, now_ns: i64) -> Duration {
        Duration::from_nanos(u64::try_from(now_ns - self.suspended_ns).unwrap_or(0))
    }

    pub(crate) const fn step(&mut self, by_ns: i64) {
        self.ahead_ns += by_ns;
    }

    pub(crate) const fn drift(&mut self, now_ns: i64, ppm: i64) {
        self.ahead_ns += (now_ns - self.drift_since_ns) * self.drift_ppm / 1_000_000;
        self.drift_ppm = ppm;
        self.drift_since_ns = now_ns;
    }

    pub(crate) const fn suspend(&mut self, length_ns: i64) {
        self.suspended_ns += length_ns;
    }
}

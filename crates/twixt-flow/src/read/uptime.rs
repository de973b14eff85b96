//! When a moment was that an exporter counts in milliseconds since it started.
//!
//! The count has 32 bits and restarts every 49.7 days. Of the moments that a count may mean,
//! the one nearest to the message's own time is meant.

use twixt_model::Timestamp;

const MILLISECOND_NS: i64 = 1_000_000;

/// Ties uptimes to the time of day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct UptimeClock {
    /// The time of day of the message, as well as it is known.
    pub(super) now: Timestamp,
    /// The uptime at that moment.
    pub(super) now_uptime_ms: u32,
    /// How well the time of day is known.
    pub(super) resolution_ns: u64,
}

impl UptimeClock {
    /// The moment of an uptime.
    pub(super) fn moment(&self, uptime_ms: u32) -> Timestamp {
        // Signed: a flow may have ended a little after the header was written.
        let ago_ms = self.now_uptime_ms.wrapping_sub(uptime_ms) as i32;
        let ago_ns = i64::from(ago_ms) * MILLISECOND_NS;
        Timestamp::from_nanos(self.now.as_nanos().saturating_sub(ago_ns))
    }

    /// By when the exporter started, as IPFIX tells it. Start and uptime are both cut to
    /// milliseconds.
    pub(super) fn since(started_ms: u64, exported: Timestamp) -> Self {
        let exported_ms = exported.as_nanos().div_euclid(MILLISECOND_NS);
        let uptime_ms = exported_ms.wrapping_sub(started_ms as i64);
        Self { now: exported, now_uptime_ms: uptime_ms as u32, resolution_ns: 2_000_000 }
    }
}

/// What became of an exporter's clock since its last message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClockChange {
    /// It went on.
    None,
    /// It was set.
    Stepped,
    /// The exporter restarted.
    Restarted,
}

/// When an exporter started, as its messages tell: each says its uptime and its time of day.
///
/// NetFlow v9 gives the time of day in whole seconds, so one message tells the start to a second.
/// Each further message narrows it: the start can be no earlier than the latest, and no later than
/// the earliest, that any message allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StartTime {
    earliest_ns: i64,
    latest_ns: i64,
    last_uptime_ms: u32,
}

/// Further apart than clocks drift between messages: the clock was stepped.
const STEP_NS: i64 = 2_000_000_000;

impl StartTime {
    /// From a first message, whose time of day lies in `[time, time + width]`.
    pub(super) fn new(time: Timestamp, width_ns: i64, uptime_ms: u32) -> Self {
        let earliest_ns = start_ns(time, uptime_ms);
        let latest_ns = earliest_ns.saturating_add(width_ns.max(MILLISECOND_NS));
        Self { earliest_ns, latest_ns, last_uptime_ms: uptime_ms }
    }

    /// Takes in a further message.
    pub(super) fn update(&mut self, time: Timestamp, width_ns: i64, uptime_ms: u32) -> ClockChange {
        let next = Self::new(time, width_ns, uptime_ms);
        // After a wrap of the uptime the start seems to be 2^32 ms later.
        let moved_ns = next.earliest_ns.saturating_sub(self.earliest_ns);
        if moved_ns.saturating_sub(WRAP_NS).saturating_abs() <= STEP_NS {
            self.earliest_ns = self.earliest_ns.saturating_add(WRAP_NS);
            self.latest_ns = self.latest_ns.saturating_add(WRAP_NS);
        }
        let apart_ns = next.earliest_ns.saturating_sub(self.latest_ns);
        let apart_ns = apart_ns.max(self.earliest_ns.saturating_sub(next.latest_ns));
        if apart_ns > STEP_NS {
            let restarted = (uptime_ms.wrapping_sub(self.last_uptime_ms) as i32) < 0;
            *self = next;
            return if restarted { ClockChange::Restarted } else { ClockChange::Stepped };
        }
        self.narrow(&next);
        self.last_uptime_ms = uptime_ms;
        ClockChange::None
    }

    /// Ties the uptimes of a message to the time of day: to the middle of what is possible.
    pub(super) fn clock(&self, uptime_ms: u32) -> UptimeClock {
        let width_ns = self.latest_ns.saturating_sub(self.earliest_ns);
        let start_ns = self.earliest_ns.saturating_add((width_ns - MILLISECOND_NS) / 2);
        let now_ns = start_ns.saturating_add(i64::from(uptime_ms) * MILLISECOND_NS);
        UptimeClock {
            now: Timestamp::from_nanos(now_ns),
            now_uptime_ms: uptime_ms,
            resolution_ns: width_ns as u64,
        }
    }

    /// What both allow; where clocks drifted apart, the part of the old that is nearest to the new.
    fn narrow(&mut self, next: &Self) {
        self.earliest_ns = self.earliest_ns.max(next.earliest_ns);
        self.latest_ns = self.latest_ns.min(next.latest_ns);
        if self.latest_ns.saturating_sub(self.earliest_ns) < MILLISECOND_NS {
            let latest_start_ns = next.latest_ns.saturating_sub(MILLISECOND_NS);
            self.earliest_ns = self.earliest_ns.min(latest_start_ns);
            self.latest_ns = self.earliest_ns.saturating_add(MILLISECOND_NS);
        }
    }
}

const WRAP_NS: i64 = (1 << 32) * MILLISECOND_NS;

fn start_ns(time: Timestamp, uptime_ms: u32) -> i64 {
    time.as_nanos().saturating_sub(i64::from(uptime_ms) * MILLISECOND_NS)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    fn at(nanos: i64) -> Timestamp {
        Timestamp::from_nanos(nanos)
    }

    #[test]
    fn uptimes_wrap_and_may_lie_a_little_ahead() {
        let clock = UptimeClock { now: at(100 * SECOND), now_uptime_ms: 5, resolution_ns: 1 };
        assert_eq!(clock.moment(5), at(100 * SECOND));
        assert_eq!(clock.moment(7), at(100 * SECOND + 2 * MILLISECOND_NS));
        assert_eq!(clock.moment(u32::MAX), at(100 * SECOND - 6 * MILLISECOND_NS));
    }

    #[test]
    fn messages_narrow_the_start() {
        // Started at 10.400 s; messages at 20.1, 21.9 and 23.399 s, in whole seconds.
        let mut start = StartTime::new(at(20 * SECOND), SECOND, 9_700);
        assert_eq!(start.clock(9_700).resolution_ns, SECOND as u64);
        assert_eq!(start.update(at(21 * SECOND), SECOND, 11_500), ClockChange::None);
        assert_eq!(start.update(at(23 * SECOND), SECOND, 12_999), ClockChange::None);
        let clock = start.clock(12_999);
        assert!(clock.resolution_ns < 400_000_000, "{clock:?}");
        let error_ns = (clock.now.as_nanos() - 23_399_000_000).abs();
        assert!(error_ns as u64 <= clock.resolution_ns / 2, "{error_ns} {clock:?}");
    }

    #[test]
    fn drift_is_followed_and_steps_are_told_apart_from_restarts() {
        let mut start = StartTime::new(at(20 * SECOND), 0, 10_000);
        assert_eq!(
            start.update(at(30 * SECOND + 5 * MILLISECOND_NS), 0, 20_000),
            ClockChange::None
        );
        assert_eq!(start.clock(20_000).now, at(30 * SECOND + 5 * MILLISECOND_NS));
        assert_eq!(start.update(at(90 * SECOND), 0, 30_000), ClockChange::Stepped);
        assert_eq!(start.update(at(100 * SECOND), 0, 40_000), ClockChange::None);
        assert_eq!(start.update(at(110 * SECOND), 0, 10), ClockChange::Restarted);
    }

    #[test]
    fn a_wrap_of_the_uptime_is_no_restart() {
        let mut start = StartTime::new(at(5_000_000 * SECOND), 0, u32::MAX - 999);
        assert_eq!(start.update(at(5_000_002 * SECOND), 0, 1_000), ClockChange::None);
        assert_eq!(start.clock(1_000).moment(u32::MAX - 999), at(5_000_000 * SECOND));
    }

    #[test]
    fn no_times_are_too_much() {
        for time in [Timestamp::MIN, Timestamp::MAX, at(0)] {
            let mut start = StartTime::new(at(0), SECOND, 0);
            let _ = start.update(time, SECOND, u32::MAX);
            let _ = start.clock(7).moment(u32::MAX);
        }
    }
}

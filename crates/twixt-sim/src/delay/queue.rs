//! A first-in first-out queue that is emptied at a constant rate.
//!
//! Never idle while there is something to send, and never sends two packets at once.

use std::collections::VecDeque;

use twixt_model::quantity::BitRate;

const PICOSECONDS_PER_NANOSECOND: i128 = 1000;

/// A queue with a bound, in packets.
pub(super) struct Queue {
    drain_bits_per_second: i128,
    limit: usize,
    /// When each packet in the queue will have been sent, in picoseconds: a packet of 40 bytes
    /// takes 3.2 ns at 100 Gbit/s, and rounding that to nanoseconds would add up.
    departures_ps: VecDeque<i128>,
    /// When the last of all packets so far was, or will have been, sent.
    free_ps: i128,
}

impl Queue {
    pub(super) fn new(drain: BitRate, limit: u32) -> Self {
        Self {
            drain_bits_per_second: i128::from(drain.0),
            limit: limit as usize,
            departures_ps: VecDeque::new(),
            free_ps: i128::MIN,
        }
    }

    /// Enters the packet, unless the queue is full, and says how long it will be there.
    pub(super) fn cross(&mut self, time_ns: i64, bytes: u32) -> Option<i64> {
        if self.length_at(time_ns) >= self.limit {
            return None;
        }
        let now_ps = i128::from(time_ns) * PICOSECONDS_PER_NANOSECOND;
        self.free_ps = self.free_ps.max(now_ps) + self.transmission_ps(bytes);
        self.departures_ps.push_back(self.free_ps);
        let delay_ps = self.free_ps - now_ps;
        Some((delay_ps / PICOSECONDS_PER_NANOSECOND) as i64)
    }

    /// Packets in the queue, the one in transmission included. Forgets those that have left.
    pub(super) fn length_at(&mut self, time_ns: i64) -> usize {
        let now_ps = i128::from(time_ns) * PICOSECONDS_PER_NANOSECOND;
        while self.departures_ps.front().is_some_and(|&departure| departure <= now_ps) {
            self.departures_ps.pop_front();
        }
        self.departures_ps.len()
    }

    /// How long the queue has been empty; `None` before the first packet.
    pub(super) fn idle_ps(&self, time_ns: i64) -> Option<i128> {
        let now_ps = i128::from(time_ns) * PICOSECONDS_PER_NANOSECOND;
        (self.free_ps != i128::MIN).then(|| (now_ps - self.free_ps).max(0))
    }

    pub(super) fn transmission_ps(&self, bytes: u32) -> i128 {
        let bits = i128::from(bytes) * 8;
        (bits * 1_000_000_000_000 + self.drain_bits_per_second / 2) / self.drain_bits_per_second
    }
}

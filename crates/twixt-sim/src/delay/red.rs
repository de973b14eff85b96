//! Random early detection: a queue that loses packets before it is full.
//!
//! Floyd, Jacobson: "Random early detection gateways for congestion avoidance", IEEE/ACM ToN
//! 1(4), 1993. Figure 2 there is [`EarlyDetection::refuses`].

use super::queue::Queue;
use super::{Entry, Red};
use crate::random::Stream;

/// The packet whose transmission time measures how many packets an idle queue could have sent.
const TYPICAL_BYTES: u32 = 500;

pub(super) struct EarlyDetection {
    model: Red,
    queue: Queue,
    /// Moving average of the length in packets.
    pub(super) average: f64,
    /// Packets since the last early loss while the average was between min and max; `None`
    /// while it is below min.
    count: Option<u32>,
}

impl EarlyDetection {
    pub(super) fn new(model: Red) -> Self {
        let queue = Queue::new(model.drain, model.queue);
        Self { model, queue, average: 0.0, count: None }
    }

    pub(super) fn cross(&mut self, entry: Entry, stream: &mut Stream) -> Option<i64> {
        self.update_average(entry.time_ns);
        // Drawn for every packet, so that parameters do not shift the numbers of later packets.
        let chance = stream.unit();
        if self.refuses(chance) {
            return None;
        }
        let delay_ns = self.queue.cross(entry.time_ns, entry.bytes);
        if delay_ns.is_none() {
            self.count = Some(0);
        }
        delay_ns
    }

    fn update_average(&mut self, time_ns: i64) {
        let weight = self.model.weight;
        let length = self.queue.length_at(time_ns);
        if length > 0 {
            self.average += weight * (length as f64 - self.average);
        } else if let Some(idle_ps) = self.queue.idle_ps(time_ns) {
            // As if this many packets had found the queue empty.
            let missed = idle_ps as f64 / self.queue.transmission_ps(TYPICAL_BYTES) as f64;
            self.average *= libm::pow(1.0 - weight, missed);
        }
    }

    fn refuses(&mut self, chance: f64) -> bool {
        let Red { min, max, max_p, .. } = self.model;
        if self.average < min {
            self.count = None;
            return false;
        }
        if self.average >= max {
            self.count = Some(0);
            return true;
        }
        let count = self.count.map_or(0, |count| count.saturating_add(1));
        let base = max_p * (self.average - min) / (max - min);
        // Makes the number of packets between losses uniform instead of geometric (section VII).
        let left = 1.0 - f64::from(count) * base;
        let refused = left <= 0.0 || chance < base / left;
        self.count = Some(if refused { 0 } else { count });
        refused
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Purpose;

    #[test]
    fn early_losses_are_spread_by_counting() {
        // Half-way between the thresholds the base probability is 0.02, which counting turns into
        // gaps that are uniform on 1, …, 50: mean 25.5, variance (50^2 - 1) / 12.
        let crate::DelayModel::Red(model) =
            "red:drain=1gbit,queue=1000,min=50,max=150,weight=0.002,max-p=0.04".parse().unwrap()
        else {
            panic!("not red")
        };
        let mut red = EarlyDetection { average: 100.0, ..EarlyDetection::new(model) };
        let mut stream = Stream::new(5, Purpose::ForwardDelay);
        let refused: Vec<usize> = (0..500_000).filter(|_| red.refuses(stream.unit())).collect();
        let gaps: Vec<f64> = refused.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
        let n = gaps.len() as f64;
        let mean = gaps.iter().sum::<f64>() / n;
        assert!((mean - 25.5).abs() < 5.0 * (2499.0 / 12.0 / n).sqrt(), "{mean}");
        assert!(gaps.iter().all(|&gap| gap <= 50.0));
        for quarter in [12.0, 25.0, 37.0] {
            let share = gaps.iter().filter(|&&gap| gap <= quarter).count() as f64 / n;
            assert!((share - quarter / 50.0).abs() < 5.0 * (0.25 / n).sqrt(), "{share}");
        }
    }
}

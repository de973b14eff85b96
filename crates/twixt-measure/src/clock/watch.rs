//! The clocks of a segment, watched as samples of epochs come.

use twixt_model::{Delay, DelaySample, SampleLevel, SampledDelay, Timestamp};

use super::{ClockPoint, ClockReport, diagnose};

/// Packets that are kept at most, 32 bytes each.
pub const WATCH_PACKETS_MAX: usize = 4096;
/// How far back they reach.
const REACH: Delay = Delay::from_nanos(600_000_000_000);

/// Packets of the last ten minutes, thinned out alike over all of them.
#[derive(Clone, Debug, Default)]
pub struct ClockWatch {
    packets: Vec<SampledDelay>, // at most WATCH_PACKETS_MAX
    newest: Option<Timestamp>,
}

impl ClockWatch {
    /// Nothing seen yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the packets of an epoch.
    pub fn add(&mut self, sample: &DelaySample) {
        let Some(newest) = sample.packets().iter().map(|packet| packet.time).max() else { return };
        let newest = self.newest.map_or(newest, |before| before.max(newest));
        self.newest = Some(newest);
        self.packets.extend_from_slice(sample.packets());
        self.packets.retain(|packet| packet.time >= newest - REACH);
        self.thin_out();
    }

    /// What they tell, together with those that went the other way.
    #[must_use]
    pub fn report(&self, opposite: Option<&Self>) -> Option<ClockReport> {
        let forward: Vec<ClockPoint> = self.points().collect();
        let backward = opposite.into_iter().flat_map(Self::points).map(ClockPoint::turned);
        diagnose(&forward, &backward.collect::<Vec<_>>())
    }

    fn points(&self) -> impl Iterator<Item = ClockPoint> {
        self.packets.iter().map(ClockPoint::of_packet)
    }

    /// Raises the lowest level until there is room, so that no interval of time weighs more than
    /// its packets did.
    fn thin_out(&mut self) {
        while self.packets.len() > WATCH_PACKETS_MAX {
            let lowest = self.packets.iter().map(|packet| packet.level).min();
            let Some(next) = lowest.and_then(SampleLevel::next) else { break };
            self.packets.retain_mut(|packet| {
                packet.level = packet.level.max(next);
                packet.reach >= packet.level
            });
        }
        // Identical packets cannot be thinned out.
        self.packets.truncate(WATCH_PACKETS_MAX);
    }
}

#[cfg(test)]
mod tests {
    use twixt_model::mix;

    use super::*;

    /// A second of packets whose delay is a millisecond, and what the clock gained.
    fn epoch(second: i64, ppm: f64, delay_ns: i64) -> DelaySample {
        let packet = |number: i64| {
            let time_ns = second * 1_000_000_000 + number * 5_000_000;
            let queued = (mix(time_ns as u64) % 1000).pow(2) as i64 / 1000;
            let gained = (time_ns as f64 * ppm / 1e6) as i64;
            SampledDelay {
                delay: Delay::from_nanos(delay_ns + queued + gained),
                time: Timestamp::from_nanos(time_ns),
                flow: 1,
                reach: SampleLevel::of_rank(mix(!time_ns as u64)),
                level: SampleLevel::ALL,
            }
        };
        DelaySample::new((0..200).map(packet).collect())
    }

    #[test]
    fn skew_shows_while_packets_come_and_memory_stays_bounded() {
        let mut watch = ClockWatch::new();
        assert!(watch.report(None).is_none());
        for second in 0..900 {
            watch.add(&epoch(second, 10.0, 1_000_000));
            assert!(watch.packets.len() <= WATCH_PACKETS_MAX);
        }
        let report = watch.report(None).unwrap();
        let skew = report.skew.unwrap();
        assert!((skew.ppm - 10.0).abs() < 0.01, "{skew:?}");
        assert!((report.span.end - report.span.start) <= REACH);
        assert_eq!(report.offset, None);
    }

    #[test]
    fn with_the_other_direction_the_offset_shows() {
        let (mut there, mut back) = (ClockWatch::new(), ClockWatch::new());
        for second in 0..20 {
            there.add(&epoch(second, 0.0, 1_000_000 + 3_000_000));
            back.add(&epoch(second, 0.0, 1_000_000 - 3_000_000));
        }
        let offset = there.report(Some(&back)).unwrap().offset.unwrap();
        // The fastest packets of both ways are within a microsecond of the floor.
        assert!((offset.offset.as_nanos() - 3_000_000).abs() < 1_000, "{offset:?}");
        assert!((offset.error_bound.as_nanos() - 1_000_000).abs() < 1_000, "{offset:?}");
    }
}

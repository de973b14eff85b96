//! What the delays of single packets tell about the two clocks: how fast they drift apart, when
//! one was set, and, where packets went both ways, how far they are apart.
//!
//! Pure: values in, values out. Where the packets come from (a survey of two captures, samples of
//! epochs) is not known here, nor what is done about it.

mod hull;
mod line;
mod skew;
mod steps;
mod two_way;
mod watch;

pub use hull::{HULL_VERTICES_MAX, Line, LowerHull};
pub use skew::{Skew, SkewBasis};
pub use steps::{ClockStep, STEPS_MAX};
pub use two_way::{ClockOffset, two_way};
pub use watch::{ClockWatch, WATCH_PACKETS_MAX};

use twixt_model::{Delay, DelaySample, SampledDelay, Span, Timestamp};

/// One packet that both points saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockPoint {
    /// When, by the upstream clock.
    pub time: Timestamp,
    /// Downstream time less upstream time, whichever way the packet went.
    pub difference: Delay,
    /// Stands for its flow; 0 where that is not known.
    pub flow: u64,
}

/// What is known of the downstream clock, compared with the upstream one.
#[derive(Clone, Debug, PartialEq)]
pub struct ClockReport {
    /// The interval of upstream time that it rests on.
    pub span: Span,
    /// How much it gains; `None` with too few packets.
    pub skew: Option<Skew>,
    /// When it was set, oldest first.
    pub steps: Vec<ClockStep>,
    /// How far it was ahead at the start of the interval; `None` unless packets went both ways.
    pub offset: Option<ClockOffset>,
}

/// Compares clocks by packets that went downstream and, if there are any, some that went upstream,
/// in any order. `None` without packets that went downstream.
#[must_use]
pub fn diagnose(forward: &[ClockPoint], backward: &[ClockPoint]) -> Option<ClockReport> {
    let (forward, backward) = (Track::new(forward)?, Track::new(backward));
    let steps = steps::find(&forward, backward.as_ref());
    let skew = skew::estimate(&forward.longest_between(&steps));
    let mut report = ClockReport { span: forward.span(), skew, steps: Vec::new(), offset: None };
    report.steps = steps::refined(&forward, &steps, |time| report.gained(time));
    let offset = backward.and_then(|backward| {
        let (down, up) = (report.levelled(&forward).min()?, report.levelled(&backward).max()?);
        let bound = two_way(down, up);
        Some(bound.widened(report.drift_doubt()))
    });
    Some(ClockReport { offset, ..report })
}

impl ClockPoint {
    /// The packets of a sample that went downstream.
    pub fn of_sample(sample: &DelaySample) -> impl Iterator<Item = Self> {
        sample.packets().iter().map(Self::of_packet)
    }

    /// A packet of a sample that went downstream.
    #[must_use]
    pub fn of_packet(packet: &SampledDelay) -> Self {
        Self { time: packet.time, difference: packet.delay, flow: packet.flow.into() }
    }

    /// The same packet as seen from the other point.
    #[must_use]
    pub fn turned(self) -> Self {
        Self { time: self.time + self.difference, difference: -self.difference, ..self }
    }
}

impl ClockReport {
    /// How far the downstream clock was ahead when the upstream one showed `time`, by all that is
    /// known; what is not known counts as nothing.
    #[must_use]
    pub fn ahead(&self, time: Timestamp) -> Delay {
        self.offset.map_or(Delay::ZERO, |offset| offset.offset) + self.gained(time)
    }

    /// Whether there is anything to correct.
    #[must_use]
    pub fn knows_something(&self) -> bool {
        self.offset.is_some() || self.sure_skew().is_some() || !self.steps.is_empty()
    }

    /// The skew, where it differs from none for sure, and a clock can be so wrong: what grows
    /// faster than [`SKEW_MAX_PPM`] is a queue.
    #[must_use]
    pub fn sure_skew(&self) -> Option<Skew> {
        self.skew.filter(|skew| skew.ppm.abs() > skew.error_ppm && skew.ppm.abs() <= SKEW_MAX_PPM)
    }

    /// What was gained since the start of the interval: by drift, and by steps.
    fn gained(&self, time: Timestamp) -> Delay {
        let elapsed_ns = (time - self.span.start).as_nanos() as f64;
        let drifted = self.sure_skew().map_or(0.0, |skew| elapsed_ns * skew.ppm / 1e6);
        let set = self.steps.iter().filter(|step| step.time <= time);
        set.fold(Delay::from_nanos(drifted.round() as i64), |sum, step| sum + step.step)
    }

    /// Differences as they would be if nothing had been gained.
    fn levelled(&self, track: &Track) -> impl Iterator<Item = Delay> {
        track.points.iter().map(|point| point.difference - self.gained(point.time))
    }

    /// What the clocks may have drifted apart beyond what was taken out.
    fn drift_doubt(&self) -> Delay {
        let length_ns = (self.span.end - self.span.start).as_nanos() as f64;
        let doubt = self.sure_skew().map_or(0.0, |skew| length_ns * skew.error_ppm / 1e6);
        Delay::from_nanos(doubt.round() as i64)
    }
}

/// Quartz is off by 100 ppm at worst; no clock is off by ten times as much.
pub const SKEW_MAX_PPM: f64 = 1000.0;

/// Packets that are looked at, at most; of more, one in so many, evenly over time.
const POINTS_MAX: usize = 1 << 17;

/// Packets in the order of their times.
#[derive(Clone, Debug)]
struct Track {
    points: Vec<ClockPoint>, // at least one, at most POINTS_MAX
}

impl Track {
    fn new(points: &[ClockPoint]) -> Option<Self> {
        let mut points = points.to_vec();
        points.sort_unstable_by_key(|point| (point.time, point.difference, point.flow));
        let apart = points.len().div_ceil(POINTS_MAX).max(1);
        let points: Vec<ClockPoint> = points.into_iter().step_by(apart).collect();
        (!points.is_empty()).then_some(Self { points })
    }

    fn span(&self) -> Span {
        Span { start: self.points[0].time, end: self.points[self.points.len() - 1].time }
    }

    /// The longest interval without a clock step.
    fn longest_between(&self, steps: &[ClockStep]) -> Self {
        let at = |step: &ClockStep| self.points.partition_point(|point| point.time < step.time);
        let cuts: Vec<usize> =
            [0].into_iter().chain(steps.iter().map(at)).chain([self.points.len()]).collect();
        let pieces = cuts.windows(2).map(|cut| &self.points[cut[0]..cut[1]]);
        let length = |piece: &&[ClockPoint]| match piece {
            [first, .., last] => last.time - first.time,
            _ => Delay::ZERO,
        };
        Self { points: pieces.max_by_key(length).unwrap_or(&self.points).to_vec() }
    }

    /// The same in floating point: seconds from the start, and nanoseconds from the first
    /// difference, so that an offset of years costs no precision.
    fn relative(&self) -> Vec<Sighting> {
        let first = &self.points[0];
        let relative = |point: &ClockPoint| Sighting {
            seconds: (point.time - first.time).as_nanos() as f64 / 1e9,
            nanos: (point.difference - first.difference).as_nanos() as f64,
            flow: point.flow,
        };
        self.points.iter().map(relative).collect()
    }
}

/// A packet, relative to the first one.
#[derive(Clone, Copy, Debug)]
struct Sighting {
    seconds: f64,
    nanos: f64,
    flow: u64,
}

#[cfg(test)]
mod tests;

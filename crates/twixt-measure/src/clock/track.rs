//! Packets of one direction in the order in which they really passed, and what lies below them.

use twixt_model::{Delay, Span, Timestamp, sort_by_hash, sort_by_number};

use super::{ClockPoint, Skew};

/// Packets that are looked at, at most; of more, one in so many, evenly over time.
const POINTS_MAX: usize = 1 << 17;

/// What both clocks leap by at once, if packets are not in order.
const LEAP_MIN: Delay = Delay::from_nanos(1_000_000_000);

/// The clock by which packets are put in order. One that was set back shows some times twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Upstream,
    Downstream,
}

impl Order {
    /// The clock by which differences jump to and fro the least: packets from before and after a step
    /// alternate, if they are put in order by a clock that was set back. If it was set back to before
    /// the first packet, all times after the step come before all others; then the other clock tells,
    /// which ran through. With the packets of both directions in that order.
    pub(super) fn of(directions: [&[ClockPoint]; 2]) -> (Self, [Option<Track>; 2]) {
        let by_upstream = directions.map(|points| sorted(points.to_vec(), Self::Upstream));
        let by_downstream = directions.map(|points| sorted(points.to_vec(), Self::Downstream));
        let up = by_upstream.map(|points| Track::sorted(&points, Self::Upstream));
        let down = by_downstream.map(|points| Track::sorted(&points, Self::Downstream));
        let unrest = |tracks: &[Option<Track>; 2]| {
            let unrest = tracks
                .iter()
                .flatten()
                .map(|track| (track.restlessness(), track.leap().as_nanos()));
            unrest.fold((0.0, 0), |sum: (f64, i64), one| (sum.0 + one.0, sum.1.max(one.1)))
        };
        let (by_up, by_down) = (unrest(&up), unrest(&down));
        // Twice as much: it differs a little by chance.
        let alternates = by_up.0 > 2.0 * by_down.0;
        let leaps =
            2.0 * by_up.0 >= by_down.0 && by_up.1.saturating_sub(by_down.1) > LEAP_MIN.as_nanos();
        if alternates || leaps { (Self::Downstream, down) } else { (Self::Upstream, up) }
    }

    /// What is gained by this clock's time, by that of the upstream one.
    pub(super) fn by_upstream(self, skew: Skew) -> Skew {
        match self {
            Self::Upstream => skew,
            Self::Downstream => Skew { ppm: skew.ppm / (1.0 - skew.ppm / 1e6), ..skew },
        }
    }

    /// When a packet passed, by this clock.
    pub(super) fn time(self, point: &ClockPoint) -> Timestamp {
        match self {
            Self::Upstream => point.time,
            Self::Downstream => point.time + point.difference,
        }
    }
}

/// Packets in the order in which they passed, and else by what they are.
fn sorted(mut points: Vec<ClockPoint>, order: Order) -> Vec<ClockPoint> {
    // Before 1970 comes first.
    let number = |point: &ClockPoint| order.time(point).as_nanos().cast_unsigned() ^ (1 << 63);
    sort_by_number(&mut points, number);
    points
        .chunk_by_mut(|one, next| order.time(one) == order.time(next))
        .filter(|same_time| same_time.len() > 1)
        .for_each(|same_time| {
            same_time.sort_unstable_by_key(|point| (point.difference, point.flow));
        });
    points
}

/// Packets of one direction, in order.
#[derive(Clone, Debug)]
pub(super) struct Track {
    pub(super) points: Vec<ClockPoint>, // at least one, at most POINTS_MAX
    /// When each passed, by the clock that puts them in order.
    pub(super) times: Vec<Timestamp>,
}

impl Track {
    /// Of packets in this order; `None` without packets.
    fn sorted(points: &[ClockPoint], order: Order) -> Option<Self> {
        let apart = points.len().div_ceil(POINTS_MAX).max(1);
        let points: Vec<ClockPoint> = points.iter().copied().step_by(apart).collect();
        let times = points.iter().map(|point| order.time(point)).collect();
        (!points.is_empty()).then_some(Self { points, times })
    }

    /// The same with all differences turned round: what was their upper end is the lower one.
    pub(super) fn upside_down(&self) -> Self {
        self.changed(|point| -point.difference)
    }

    /// The same with other differences.
    pub(super) fn changed(&self, difference: impl Fn(&ClockPoint) -> Delay) -> Self {
        let changed = |point: &ClockPoint| ClockPoint { difference: difference(point), ..*point };
        Self { points: self.points.iter().map(changed).collect(), times: self.times.clone() }
    }

    pub(super) fn span(&self) -> Span {
        Span { start: self.points[0].time, end: self.points[self.points.len() - 1].time }
    }

    /// The index of the first packet that passed at that time or later.
    pub(super) fn first_from(&self, time: Timestamp) -> usize {
        self.times.partition_point(|&passed| passed < time)
    }

    /// What lies between gaps, which are ranges of indices; the longest part first.
    pub(super) fn between(&self, gaps: &[(usize, usize)]) -> Vec<Self> {
        let (mut parts, mut from) = (Vec::new(), 0);
        for &(first, end) in gaps.iter().chain([&(self.points.len(), self.points.len())]) {
            if from < first {
                let [points, times] = [from..first, from..first];
                let (points, times) = (self.points[points].to_vec(), self.times[times].to_vec());
                parts.push(Self { points, times });
            }
            from = end.max(from);
        }
        parts.sort_by_key(|part| std::cmp::Reverse(part.length()));
        parts
    }

    fn length(&self) -> Delay {
        self.times[self.times.len() - 1] - self.times[0]
    }

    /// The same in floating point: seconds from the start, and nanoseconds from the first
    /// difference, so that an offset of years costs no precision.
    pub(super) fn relative(&self) -> Vec<Sighting> {
        let (first, start) = (&self.points[0], self.times[0]);
        let ranks = self.ranks();
        let relative = |((point, time), rank): ((&ClockPoint, &Timestamp), usize)| Sighting {
            seconds: (*time - start).as_nanos() as f64 / 1e9,
            nanos: (point.difference - first.difference).as_nanos() as f64,
            flow: point.flow,
            rank,
        };
        self.points.iter().zip(&self.times).zip(ranks).map(relative).collect()
    }

    /// For each packet, the number of its flow, counted in the order of their hashes. Packets without a
    /// flow come first; each is one of its own.
    fn ranks(&self) -> Vec<usize> {
        let flows = self.points.iter().enumerate().map(|(index, point)| (point.flow, index));
        let mut flows: Vec<(u64, usize)> = flows.collect();
        sort_by_hash(&mut flows, |(flow, _)| *flow);
        let mut ranks = vec![0; flows.len()];
        let mut rank = 0;
        for (place, (flow, index)) in flows.iter().enumerate() {
            let is_next = place > 0 && (*flow == 0 || *flow != flows[place - 1].0);
            rank += usize::from(is_next);
            ranks[*index] = rank;
        }
        ranks
    }

    /// The largest leap from packet to packet that both clocks make.
    fn leap(&self) -> Delay {
        let leap = |pair: &[ClockPoint]| {
            let sent = (pair[1].time - pair[0].time).as_nanos().saturating_abs();
            let change = (pair[1].difference - pair[0].difference).as_nanos();
            let received = (pair[1].time - pair[0].time).as_nanos().saturating_add(change);
            sent.min(received.saturating_abs())
        };
        Delay::from_nanos(self.points.windows(2).map(leap).max().unwrap_or(0))
    }

    /// By how much differences change from packet to packet, all changes added up.
    fn restlessness(&self) -> f64 {
        let change = |pair: &[ClockPoint]| (pair[1].difference - pair[0].difference).as_nanos();
        self.points.windows(2).map(|pair| change(pair).unsigned_abs() as f64).sum()
    }
}

/// A packet, relative to the first one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sighting {
    pub(super) seconds: f64,
    pub(super) nanos: f64,
    pub(super) flow: u64,
    /// Which flow that is among those of the track.
    pub(super) rank: usize,
}

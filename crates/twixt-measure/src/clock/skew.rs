//! How fast the clocks drift apart as one direction shows it, in three ways, of which the surest
//! counts.
//!
//! Where packets touch the floor of the way, the line below all of them is it. Where every flow has
//! a floor of its own, or none, packets of one flow are compared with each other; and where flows
//! are short, all packets with all others. The last two take queues for noise, not for a trend:
//! their doubt is the larger one of what flows and of what intervals of time disagree by.
//!
//! A clock gains in each half of the time what it gains in all of it. A path that gets longer at once,
//! or a queue that fills in a part of the time, makes a line steep that neither half shows.

use super::hull::{Line, LowerHull};
use super::line::{fit, median, t99};
use super::track::{Sighting, Track};

/// How much the downstream clock gains.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Skew {
    /// Microseconds per second.
    pub ppm: f64,
    /// Half the width of its 99 % interval.
    pub error_ppm: f64,
    /// What it rests on.
    pub basis: SkewBasis,
}

impl Skew {
    /// Whether it differs from none for sure.
    #[must_use]
    pub fn is_sure(&self) -> bool {
        self.ppm.abs() > self.error_ppm
    }
}

/// What a skew rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SkewBasis {
    /// The line below all delays.
    Floor,
    /// Delays of packets of the same flow.
    Flows,
    /// Delays of all packets.
    All,
}

impl SkewBasis {
    /// The name in machine formats.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Floor => "floor",
            Self::Flows => "flows",
            Self::All => "all",
        }
    }
}

/// Fewer packets tell nothing of a trend.
const PACKETS_MIN: usize = 64;
/// Parts that the whole is cut into, of equally many packets.
const BLOCKS_MAX: usize = 32;
const BLOCKS_MIN: usize = 8;
/// Parts of the packets, each a fair sample, that must agree on the floor.
const PARTS: usize = 4;
/// How many times what parts differ by a floor may be off. Of 2000 floors of five kinds of traffic, one
/// in fifty was off by more than parts differed, and none by more than 1.6 times that.
const PARTS_DOUBT: f64 = 1.6;
/// Nanoseconds per second are a thousandth of a part per million.
const PPM: f64 = 1e-3;

/// The surest of the three; `None` with too few packets, or none at two times.
pub(super) fn estimate(track: &Track) -> Option<Skew> {
    let points = track.relative();
    let length = points.last()?.seconds;
    if points.len() < PACKETS_MIN || length <= 0.0 {
        return None;
    }
    let ways: [(SkewBasis, Way); 3] =
        [(SkewBasis::Floor, by_floor), (SkewBasis::Flows, by_flows), (SkewBasis::All, by_all)];
    let sure = ways.into_iter().filter_map(|(basis, way)| Some((basis, steady(way, &points)?)));
    let (basis, slope) = sure.min_by(|one, other| one.1.doubt.total_cmp(&other.1.doubt))?;
    // Times are whole nanoseconds, so that no slope is surer than one of them over the whole
    // interval.
    let doubt = slope.doubt.max(1.0 / length);
    Some(Skew { ppm: slope.slope * PPM, error_ppm: doubt * PPM, basis })
}

type Way = fn(&[Sighting]) -> Option<Slope>;

/// The slope of all packets, with a doubt that is large where one half of them, the earlier or the
/// later, does not show it.
fn steady(way: Way, points: &[Sighting]) -> Option<Slope> {
    let all = way(points)?;
    let (earlier, later) = points.split_at(points.len() / 2);
    let mut doubt = all.doubt;
    for half in [way(earlier)?, way(later)?] {
        let differs = (half.slope - all.slope).abs();
        // Doubts are three deviations: none is so far off by chance.
        if differs > all.doubt + half.doubt {
            doubt = doubt.max(differs);
        }
        // What is level in one half changed at once, not steadily.
        if half.slope * all.slope.signum() < all.slope.abs() / 2.0 {
            doubt = doubt.max(all.slope.abs() + all.doubt);
        }
    }
    Some(Slope { doubt, ..all })
}

/// A slope and half the width of its interval, in nanoseconds per second.
#[derive(Clone, Copy, Debug)]
struct Slope {
    slope: f64,
    doubt: f64,
}

fn by_floor(points: &[Sighting]) -> Option<Slope> {
    let line = floor_of(points.iter())?;
    let parts = (0..PARTS).filter_map(|part| floor_of(points.iter().skip(part).step_by(PARTS)));
    let differ = parts.map(|part| (part.slope - line.slope).abs()).fold(0.0, f64::max);
    let fitted = fit(&touching(points, line))?;
    let doubt = (PARTS_DOUBT * differ).max(t99(fitted.freedom) * fitted.slope_error);
    Some(Slope { slope: line.slope, doubt })
}

fn floor_of<'a>(points: impl Iterator<Item = &'a Sighting>) -> Option<Line> {
    let mut hull = LowerHull::new();
    points.for_each(|point| hull.add(point.seconds, point.nanos));
    hull.line()
}

/// The lowest packet of each block, without the half that is furthest from the floor: there a queue
/// never emptied. All of them, if what is left says nothing of half of the time.
fn touching(points: &[Sighting], line: Line) -> Vec<(f64, f64)> {
    let mut lowest: Vec<(f64, f64)> = blocks(points)
        .filter_map(|block| {
            let above = |point: &&Sighting| point.nanos - line.at(point.seconds);
            block.iter().min_by(|one, other| above(one).total_cmp(&above(other)))
        })
        .map(|point| (point.seconds, point.nanos))
        .collect();
    let all = lowest.clone();
    let above = |point: &(f64, f64)| point.1 - line.at(point.0);
    lowest.sort_by(|one, other| above(one).total_cmp(&above(other)));
    lowest.truncate((all.len() / 2).max(BLOCKS_MIN));
    match length(&lowest) >= length(&all) / 2.0 {
        true => lowest,
        false => all,
    }
}

fn length(points: &[(f64, f64)]) -> f64 {
    let times = || points.iter().map(|point| point.0);
    times().fold(f64::MIN, f64::max) - times().fold(f64::MAX, f64::min)
}

/// Parts of equally many packets.
fn blocks(points: &[Sighting]) -> impl Iterator<Item = &[Sighting]> {
    let count = (points.len() / 8).clamp(BLOCKS_MIN, BLOCKS_MAX);
    points.chunks(points.len().div_ceil(count))
}

/// Packets compared with others of their flow.
fn by_flows(points: &[Sighting]) -> Option<Slope> {
    let mut centred = Vec::with_capacity(points.len());
    let (members, ends) = by_flow(points);
    let mut start = 0;
    for end in ends {
        let members = &members[std::mem::replace(&mut start, end)..end];
        let are_known = members.first().is_some_and(|&index| points[index].flow != 0);
        if members.len() < 2 || !are_known {
            continue;
        }
        let count = members.len() as f64;
        let mean = |pick: fn(&Sighting) -> f64| {
            members.iter().map(|&index| pick(&points[index])).sum::<f64>() / count
        };
        let (seconds, nanos) = (mean(|point| point.seconds), mean(|point| point.nanos));
        centred.extend(members.iter().map(|&index| Centred {
            seconds: points[index].seconds - seconds,
            nanos: points[index].nanos - nanos,
            rank: points[index].rank,
            at: index * BLOCKS_MAX / points.len(),
        }));
    }
    slope_of(&centred)
}

/// The indices of packets flow by flow, in the order of their ranks, and where each flow ends.
fn by_flow(points: &[Sighting]) -> (Vec<usize>, Vec<usize>) {
    let flows = points.iter().map(|point| point.rank + 1).max().unwrap_or(0);
    let (mut places, mut next) = (vec![0; flows], 0);
    points.iter().for_each(|point| places[point.rank] += 1);
    for place in &mut places {
        (*place, next) = (next, next + *place);
    }
    let mut members = vec![0; points.len()];
    for (index, point) in points.iter().enumerate() {
        members[places[point.rank]] = index;
        places[point.rank] += 1;
    }
    (members, places)
}

/// All packets compared with all others.
fn by_all(points: &[Sighting]) -> Option<Slope> {
    let count = points.len() as f64;
    let seconds = points.iter().map(|point| point.seconds).sum::<f64>() / count;
    // Heavy tails: what is far above counts as if it were not quite so far.
    let middle = median(points.iter().map(|point| point.nanos))?;
    let scale = median(points.iter().map(|point| (point.nanos - middle).abs()))?;
    let bounded =
        |point: &Sighting| (point.nanos - middle).clamp(-TAIL_SCALES * scale, TAIL_SCALES * scale);
    let nanos = points.iter().map(bounded).sum::<f64>() / count;
    let centred: Vec<Centred> = points
        .iter()
        .enumerate()
        .map(|(index, point)| Centred {
            seconds: point.seconds - seconds,
            nanos: bounded(point) - nanos,
            rank: point.rank,
            at: index * BLOCKS_MAX / points.len(),
        })
        .collect();
    slope_of(&centred)
}

/// How far from the median, in median distances, a delay may be for it to count as it is.
const TAIL_SCALES: f64 = 20.0;

/// A packet, relative to the mean of those it is compared with.
#[derive(Clone, Copy, Debug)]
struct Centred {
    seconds: f64,
    nanos: f64,
    /// Of its flow.
    rank: usize,
    /// The part that it lies in.
    at: usize,
}

/// Least squares, with a doubt that does not take packets of one flow, or of one part,
/// for independent (the "sandwich" with clusters).
fn slope_of(packets: &[Centred]) -> Option<Slope> {
    let spread: f64 = packets.iter().map(|packet| packet.seconds.powi(2)).sum();
    if packets.len() < PACKETS_MIN / 2 || spread <= 0.0 {
        return None;
    }
    let slope = packets.iter().map(|packet| packet.seconds * packet.nanos).sum::<f64>() / spread;
    let score = |packet: &Centred| packet.seconds * (packet.nanos - slope * packet.seconds);
    // In the order of flows, whose scores are added up in it.
    let mut flows = vec![None; packets.iter().map(|packet| packet.rank + 1).max().unwrap_or(0)];
    let mut blocks = [None; BLOCKS_MAX];
    for packet in packets {
        *flows[packet.rank].get_or_insert(0.0) += score(packet);
        *blocks[packet.at].get_or_insert(0.0) += score(packet);
    }
    let doubt = |scores: &mut dyn Iterator<Item = f64>| {
        let (mut squares, mut count) = (0.0, 0);
        for score in scores {
            squares += score * score;
            count += 1;
        }
        (count > BLOCKS_MIN).then(|| {
            let few = count as f64 / (count - 1) as f64;
            t99(count - 2) * (few * squares).sqrt() / spread
        })
    };
    let by_flow = doubt(&mut flows.into_iter().flatten())?;
    let by_block = doubt(&mut blocks.into_iter().flatten())?;
    Some(Slope { slope, doubt: by_flow.max(by_block) })
}

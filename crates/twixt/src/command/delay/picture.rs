//! Delays as a picture: their distribution, how they and loss change over time, and where packets
//! lie between the two.

use std::collections::BTreeMap;
use std::path::Path;

use twixt_model::binning::{TimeBin, by_time, distribution, percentile, round_length};
use twixt_model::{Crossing, Delay, DelaySample, Estimate, Scope};
use twixt_offline::{ChosenAlgorithm, Concluded, Files, Measured};

use crate::output::units;
use crate::plot::{Axis, Bar, Colour, Layer, Panel, Picture, Quantity, Shape};

/// Scopes that a distribution is drawn of: more lines than that cannot be told apart.
const SCOPES_MAX: usize = 6;
/// Intervals of time over the whole width.
const BINS_MAX: usize = 120;
/// Packets that an interval should have on average, for its percentiles.
const BIN_PACKETS: usize = 20;
/// Lines of the heat map.
const HEAT_LINES: usize = 60;
/// Points of a distribution.
const POINTS_MAX: usize = 1000;

/// Which scopes are drawn, if there are many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScopesDrawn {
    /// Those with most packets.
    Largest,
    /// The first, as in the table.
    First,
}

/// All segments below each other; `None` if there is nothing to draw.
pub(super) fn picture(
    files: Files<'_>,
    chosen: &ChosenAlgorithm,
    segments: &[Measured],
    drawn: ScopesDrawn,
) -> Option<Picture> {
    let first = segments.first()?;
    let panels = |one| panels(files, one, segments, drawn);
    let panels: Vec<Panel> = segments.iter().flat_map(panels).collect();
    let named = first.files(files);
    let (upstream, downstream) = (named.upstream.display(), named.downstream.display());
    let packets: u64 = segments.iter().map(|one| packets_of(&one.concluded[0])).sum();
    (!panels.is_empty()).then(|| Picture {
        title: format!("Delay from {upstream} to {downstream}"),
        subtitle: format!("{} packets, algorithm {}", units::count(packets), chosen.algorithm.name),
        panels,
    })
}

fn packets_of(concluded: &Concluded) -> u64 {
    concluded.estimates.iter().map(|estimate| estimate.evidence.packets).sum()
}

fn panels(
    files: Files<'_>,
    segment: &Measured,
    all: &[Measured],
    drawn: ScopesDrawn,
) -> Vec<Panel> {
    let concluded = &segment.concluded[0];
    let packets: Vec<&Crossing> = crossings(&concluded.estimates).collect();
    let mut panels = match packets.is_empty() {
        true => of_epochs(&concluded.estimates),
        false => of_packets(&concluded.estimates, &packets, drawn),
    };
    if all.len() > 1 {
        let named = segment.files(files);
        let name = |path: &Path| path.file_name().unwrap_or(path.as_os_str()).display().to_string();
        let (upstream, downstream) = (name(named.upstream), name(named.downstream));
        for panel in &mut panels {
            panel.title = format!("{upstream} → {downstream}: {}", panel.title);
        }
    }
    panels
}

fn crossings(estimates: &[Estimate]) -> impl Iterator<Item = &Crossing> {
    let known = estimates.iter().filter_map(|estimate| estimate.crossings.as_deref());
    known.flat_map(|crossings| &crossings.packets)
}

/// From every packet.
fn of_packets(estimates: &[Estimate], packets: &[&Crossing], drawn: ScopesDrawn) -> Vec<Panel> {
    let mut delays: Vec<Delay> = packets.iter().filter_map(|packet| packet.delay()).collect();
    delays.sort_unstable();
    let bins_max = (packets.len() / BIN_PACKETS).clamp(10, BINS_MAX);
    let bins = by_time(packets.iter().copied(), bins_max);
    let mut panels = Vec::new();
    if let Some(scale) = DelayScale::of(&delays) {
        panels.push(distributions(estimates, &delays, &scale, drawn));
        panels.push(over_time(&bins, &scale));
        panels.push(loss_strip(&bins));
        panels.push(heat_map(&bins, &delays, &scale));
    } else if !bins.is_empty() {
        panels.push(loss_strip(&bins));
    }
    panels
}

/// Where delays begin. With clocks far apart, what delays differ by would not be seen: then they
/// are shown beyond the smallest.
struct DelayScale {
    origin: Delay,
    label: String,
}

impl DelayScale {
    fn of(sorted: &[Delay]) -> Option<Self> {
        let (&first, &last) = (sorted.first()?, sorted.last()?);
        Some(Self::between(first, last))
    }

    fn between(first: Delay, last: Delay) -> Self {
        let spread_ns = (last - first).as_nanos().unsigned_abs();
        let is_far =
            first.as_nanos().unsigned_abs() > 1_000_000_000.max(spread_ns.saturating_mul(100));
        match is_far {
            true => {
                let smallest = units::duration_to(first.as_nanos() as f64, 1e6);
                Self { origin: first, label: format!("delay beyond the smallest, {smallest}") }
            }
            false => Self { origin: Delay::ZERO, label: "delay".to_owned() },
        }
    }

    fn ns(&self, delay: Delay) -> f64 {
        (delay - self.origin).as_nanos() as f64
    }

    fn axis(&self, low: f64, high: f64) -> Axis {
        Axis::new(&self.label, Quantity::Duration, low, high)
    }
}

/// An axis begins at 0, if that leaves most of it to the values.
fn from_zero(low: f64, high: f64) -> f64 {
    if low > 0.0 && low < high / 2.0 { 0.0 } else { low }
}

/// The distribution of each scope; of some, if there are many.
fn distributions(
    estimates: &[Estimate],
    all: &[Delay],
    scale: &DelayScale,
    drawn: ScopesDrawn,
) -> Panel {
    let by_scope = delays_by_scope(estimates, drawn);
    let scopes = units::count(by_scope.len() as u64);
    let title = match (by_scope.len() > SCOPES_MAX, drawn) {
        (false, _) => "Distribution".to_owned(),
        (true, ScopesDrawn::Largest) => {
            format!("Distribution ({SCOPES_MAX} largest of {scopes} scopes)")
        }
        (true, ScopesDrawn::First) => {
            format!("Distribution (first {SCOPES_MAX} of {scopes} scopes)")
        }
    };
    let known = by_scope.into_iter().filter(|(_, delays)| !delays.is_empty());
    let layers = known.take(SCOPES_MAX).enumerate();
    let layers = layers.flat_map(|(index, (scope, delays))| one_of(index, scope, delays, scale));
    let (low, high) = (scale.ns(all[0]), scale.ns(all[all.len() - 1]));
    // By ratio, if most packets differ by one.
    let bulk =
        [0.05, 0.95].map(|share| percentile(all, share).map_or(0.0, |delay| scale.ns(delay)));
    let x = match bulk[0] > 0.0 && bulk[1] / bulk[0] > 20.0 {
        true => scale.axis(low, high).logarithmic_if_wide(),
        false => scale.axis(from_zero(low, high), high),
    };
    let y = Axis::new("packets", Quantity::Share, 0.0, 1.0);
    Panel { title, height: 240.0, x, y, layers: layers.collect() }
}

/// Delays of all epochs of each scope, in the order in which scopes are drawn.
fn delays_by_scope(estimates: &[Estimate], drawn: ScopesDrawn) -> Vec<(&Scope, Vec<Delay>)> {
    let mut places: BTreeMap<&Scope, usize> = BTreeMap::new();
    let mut by_scope: Vec<(&Scope, Vec<Delay>)> = Vec::new();
    for estimate in estimates {
        let place = *places.entry(&estimate.scope).or_insert_with(|| {
            by_scope.push((&estimate.scope, Vec::new()));
            by_scope.len() - 1
        });
        let packets = crossings(std::slice::from_ref(estimate));
        by_scope[place].1.extend(packets.filter_map(Crossing::delay));
    }
    if drawn == ScopesDrawn::Largest {
        by_scope.sort_by_key(|(_, delays)| std::cmp::Reverse(delays.len()));
    }
    by_scope
}

fn one_of(index: usize, scope: &Scope, mut delays: Vec<Delay>, scale: &DelayScale) -> Vec<Layer> {
    delays.sort_unstable();
    let marks = [("p50", 0.5), ("p95", 0.95), ("p99", 0.99)];
    let known =
        marks.map(|(name, share)| (name, share, percentile(&delays, share).unwrap_or_default()));
    let shown =
        known.map(|(name, _, delay)| format!("{name} {}", units::duration(scale.ns(delay))));
    let name = if *scope == Scope::All { "all packets".to_owned() } else { scope.to_string() };
    let points = distribution(&delays, POINTS_MAX);
    let points = points.into_iter().map(|(delay, share)| (scale.ns(delay), share));
    let first = (scale.ns(delays[0]), 0.0);
    let points = [first].into_iter().chain(points).collect();
    let dots = known.map(|(_, share, delay)| (scale.ns(delay), share)).to_vec();
    let colour = Colour::Series(index);
    vec![
        Layer::new(format!("{name}: {}", shown.join(", ")), colour, Shape::Steps(points)),
        Layer::new("", colour, Shape::Dots(dots)),
    ]
}

fn middle(bin: &TimeBin) -> f64 {
    (bin.span.start.as_nanos() as f64 + bin.span.end.as_nanos() as f64) / 2.0
}

fn time_axis(bins: &[TimeBin], label: &str) -> Axis {
    let start = bins.first().map_or(0.0, |bin| bin.span.start.as_nanos() as f64);
    let end = bins.last().map_or(1.0, |bin| bin.span.end.as_nanos() as f64);
    Axis::new(label, Quantity::Moment, start, end)
}

/// The median, and bands that hold 50 and 90 % of the packets.
fn over_time(bins: &[TimeBin], scale: &DelayScale) -> Panel {
    let at = |bin: &TimeBin, share| bin.percentile(share).map_or(f64::NAN, |delay| scale.ns(delay));
    let band = |low, high| {
        bins.iter().map(|bin| (middle(bin), at(bin, low), at(bin, high))).collect::<Vec<_>>()
    };
    let line = |share| bins.iter().map(|bin| (middle(bin), at(bin, share))).collect::<Vec<_>>();
    let values = |share| bins.iter().map(move |bin| at(bin, share)).filter(|ns| ns.is_finite());
    let low = values(0.05).fold(f64::INFINITY, f64::min);
    let high = values(0.99).fold(f64::NEG_INFINITY, f64::max);
    let layers = vec![
        Layer::new(
            "p5 to p95",
            Colour::Series(0),
            Shape::Band { points: band(0.05, 0.95), opacity: 0.2 },
        ),
        Layer::new(
            "p25 to p75",
            Colour::Series(0),
            Shape::Band { points: band(0.25, 0.75), opacity: 0.35 },
        ),
        Layer::new("p50", Colour::Series(0), Shape::Line(line(0.5))),
        Layer::new("p99", Colour::Series(4), Shape::Line(line(0.99))),
    ];
    let title = format!("Over time, by when packets were sent, each {}", length_of(bins));
    let y = scale.axis(from_zero(low, high), high);
    Panel { title, height: 220.0, x: time_axis(bins, ""), y, layers }
}

fn length_of(bins: &[TimeBin]) -> String {
    let length = bins.first().map_or(0, |bin| (bin.span.end - bin.span.start).as_nanos());
    units::round_duration(length as f64)
}

fn loss_strip(bins: &[TimeBin]) -> Panel {
    let bar = |bin: &TimeBin| {
        let loss = bin.loss().filter(|&loss| loss > 0.0)?;
        let x = (bin.span.start.as_nanos() as f64, bin.span.end.as_nanos() as f64);
        Some(Bar { x, y: (0.0, loss) })
    };
    let lost: u64 = bins.iter().map(|bin| bin.lost).sum();
    let bars: Vec<Bar> = bins.iter().filter_map(bar).collect();
    let most = bars.iter().map(|bar| bar.y.1).fold(0.01, f64::max);
    Panel {
        title: format!("Loss: {}", units::counted(lost, "packet", "packets")),
        height: 60.0,
        x: time_axis(bins, "time"),
        y: Axis::new("lost", Quantity::Share, 0.0, most),
        layers: vec![Layer::new("", Colour::Loss, Shape::Bars(bars))],
    }
}

/// How many packets took how long, when.
fn heat_map(bins: &[TimeBin], delays: &[Delay], scale: &DelayScale) -> Panel {
    let low = delays[0];
    let high = percentile(delays, 0.999).unwrap_or(low);
    let height_ns = round_length((high - low).as_nanos().max(1), HEAT_LINES);
    let line = |delay: Delay| (delay.min(high) - low).as_nanos() / height_ns;
    let mut cells: Vec<(Bar, u64)> = Vec::new();
    for bin in bins {
        let x = (bin.span.start.as_nanos() as f64, bin.span.end.as_nanos() as f64);
        for run in bin.delays.chunk_by(|one, other| line(*one) == line(*other)) {
            let from = scale.ns(low) + (line(run[0]) * height_ns) as f64;
            cells.push((Bar { x, y: (from, from + height_ns as f64) }, run.len() as u64));
        }
    }
    let most = cells.iter().map(|(_, count)| *count).max().unwrap_or(0);
    let label = format!("1 to {} per cell", units::counted(most, "packet", "packets"));
    let top = scale.ns(low) + ((line(high) + 1) * height_ns) as f64;
    Panel {
        title: "Packets by time and delay (above p99.9: at the top)".to_owned(),
        height: 220.0,
        x: time_axis(bins, "time"),
        y: scale.axis(scale.ns(low), top),
        layers: vec![Layer::new(label, Colour::Series(0), Shape::Heat(cells))],
    }
}

/// From estimates of epochs, of all traffic together: where no packet was kept.
fn of_epochs(estimates: &[Estimate]) -> Vec<Panel> {
    let epochs: Vec<&Estimate> =
        estimates.iter().filter(|estimate| estimate.scope == estimates[0].scope).collect();
    let means: Vec<Delay> = epochs.iter().filter_map(|one| Some(one.delay?.mean())).collect();
    let (Some(&least), Some(&most)) = (means.iter().min(), means.iter().max()) else {
        return Vec::new();
    };
    let scale = DelayScale::between(least, most);
    let mut panels: Vec<Panel> = sampled(&epochs, &scale).into_iter().collect();
    if epochs.len() > 1 {
        panels.push(means_over_time(&epochs, &scale));
        panels.push(losses(&epochs));
    }
    panels
}

/// The distribution that a sample tells.
fn sampled(epochs: &[&Estimate], scale: &DelayScale) -> Option<Panel> {
    let samples = epochs.iter().filter_map(|estimate| estimate.sample.as_deref());
    let mut weighed: Vec<(Delay, f64)> = samples
        .flat_map(DelaySample::packets)
        .map(|packet| (packet.delay, packet.level.weight()))
        .collect();
    weighed.sort_by_key(|(delay, _)| *delay);
    let total: f64 = weighed.iter().map(|(_, weight)| weight).sum();
    let mut below = 0.0;
    let points: Vec<(f64, f64)> = weighed
        .iter()
        .map(|&(delay, weight)| {
            below += weight;
            (scale.ns(delay), below / total)
        })
        .collect();
    let (first, last) = (points.first()?.0, points.last()?.0);
    let label = format!("{} sampled packets", units::count(points.len() as u64));
    Some(Panel {
        title: "Distribution, from the sample".to_owned(),
        height: 240.0,
        x: scale.axis(first, last),
        y: Axis::new("packets", Quantity::Share, 0.0, 1.0),
        layers: vec![Layer::new(label, Colour::Series(0), Shape::Steps(points))],
    })
}

fn epoch_axis(epochs: &[&Estimate], label: &str) -> Axis {
    let start = epochs.iter().map(|one| one.span.start).min();
    let end = epochs.iter().map(|one| one.span.end).max();
    let [start, end] = [start, end].map(|time| time.map_or(0.0, |time| time.as_nanos() as f64));
    Axis::new(label, Quantity::Moment, start, end)
}

/// The mean with its 95 % interval.
fn means_over_time(epochs: &[&Estimate], scale: &DelayScale) -> Panel {
    let at =
        |one: &Estimate| (one.span.start.as_nanos() as f64 + one.span.end.as_nanos() as f64) / 2.0;
    let mean = |one: &Estimate| one.delay.map_or(f64::NAN, |delay| scale.ns(delay.mean()));
    let bounds = |one: &Estimate| {
        let interval = one.delay.and_then(|delay| delay.interval());
        interval.map_or((f64::NAN, f64::NAN), |(low, high)| (scale.ns(low), scale.ns(high)))
    };
    let line: Vec<(f64, f64)> = epochs.iter().map(|one| (at(one), mean(one))).collect();
    let band: Vec<(f64, f64, f64)> =
        epochs.iter().map(|one| (at(one), bounds(one).0, bounds(one).1)).collect();
    let ends = band.iter().flat_map(|&(_, low, high)| [low, high]);
    let values = line.iter().map(|point| point.1).chain(ends).filter(|ns| ns.is_finite());
    let low = values.clone().fold(f64::INFINITY, f64::min);
    let high = values.fold(f64::NEG_INFINITY, f64::max);
    Panel {
        title: "Mean of each epoch".to_owned(),
        height: 220.0,
        x: epoch_axis(epochs, ""),
        y: scale.axis(low, high),
        layers: vec![
            Layer::new(
                "95 % interval",
                Colour::Series(0),
                Shape::Band { points: band, opacity: 0.3 },
            ),
            Layer::new("mean", Colour::Series(0), Shape::Line(line)),
        ],
    }
}

fn losses(epochs: &[&Estimate]) -> Panel {
    let bar = |one: &&Estimate| {
        let packets = one.evidence.packets as f64;
        let loss = one.evidence.lost.filter(|&lost| lost > 0)? as f64 / packets;
        let x = (one.span.start.as_nanos() as f64, one.span.end.as_nanos() as f64);
        Some(Bar { x, y: (0.0, loss) })
    };
    let bars: Vec<Bar> = epochs.iter().filter_map(bar).collect();
    let most = bars.iter().map(|bar| bar.y.1).fold(0.01, f64::max);
    Panel {
        title: "Loss".to_owned(),
        height: 60.0,
        x: epoch_axis(epochs, "time"),
        y: Axis::new("lost", Quantity::Share, 0.0, most),
        layers: vec![Layer::new("", Colour::Loss, Shape::Bars(bars))],
    }
}

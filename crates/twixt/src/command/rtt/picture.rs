//! Round trips as a picture: their distribution by kind, by side and by group, and over time.

use twixt_model::{RoundTripEstimate, RoundTripKind, RoundTripPart, RoundTripTimes, Scope};

use super::watching::{Watched, WatchedEpoch};
use crate::output::units;
use crate::plot::{Axis, Colour, Layer, Panel, Picture, Quantity, Shape};

/// Groups that are drawn: more lines than that cannot be told apart.
const GROUPS_MAX: usize = 6;

/// `None` if there is nothing to draw.
pub(super) fn picture(name: &str, watched: &Watched, epochs: &[WatchedEpoch]) -> Option<Picture> {
    let is_side = |kind| {
        matches!(kind, RoundTripKind::TcpHandshakeServer | RoundTripKind::TcpHandshakeClient)
    };
    let all = |estimate: &&RoundTripEstimate| estimate.is_whole();
    // How long connections last is no round trip, and would stretch the axis.
    let kinds = watched.whole.iter().filter(all);
    let kinds = kinds.filter(|one| one.kind != RoundTripKind::TcpDuration && !is_side(one.kind));
    let legs = watched.whole.iter().filter(all).filter(|estimate| is_side(estimate.kind));
    let parts = || watched.whole.iter().filter(|estimate| estimate.part.is_some());
    let sided = parts().filter(|one| one.kind != RoundTripKind::ServerResponse);
    let served = parts().filter(|one| one.kind == RoundTripKind::ServerResponse);
    let kinds: Vec<Series<'_>> =
        kinds.filter_map(|one| Series::new(one.kind.name(), one)).collect();
    let sides: Vec<Series<'_>> =
        legs.chain(sided).filter_map(|one| Series::new(side(one), one)).collect();
    let served: Vec<Series<'_>> = served.filter_map(|one| Series::new(part(one), one)).collect();
    let mut panels = Vec::new();
    panels.extend(distribution("Distribution by kind", &kinds));
    panels.extend(distribution("By side of the point", &sides));
    panels.extend(distribution("Server responses by protocol", &served));
    panels.extend(groups(&watched.whole));
    panels.extend(over_time(&kinds, epochs));
    let packets = units::count(watched.counts.packets);
    let subtitle = format!("{packets} packets");
    (!panels.is_empty()).then(|| Picture {
        title: format!("Round-trip times at {name}"),
        subtitle,
        panels,
    })
}

/// Toward whom, and by what.
fn side(estimate: &RoundTripEstimate) -> String {
    match estimate.kind {
        RoundTripKind::TcpHandshakeServer => "toward-servers, tcp-handshake".to_owned(),
        RoundTripKind::TcpHandshakeClient => "toward-clients, tcp-handshake".to_owned(),
        kind => format!("{}, {kind}", part(estimate)),
    }
}

fn part(estimate: &RoundTripEstimate) -> &'static str {
    estimate.part.map_or("", RoundTripPart::name)
}

/// One line of a distribution.
struct Series<'a> {
    name: String,
    estimate: &'a RoundTripEstimate,
    times: &'a RoundTripTimes,
}

impl<'a> Series<'a> {
    fn new(name: impl Into<String>, estimate: &'a RoundTripEstimate) -> Option<Self> {
        let times = estimate.times.as_ref().filter(|times| !times.cdf.is_empty())?;
        Some(Self { name: name.into(), estimate, times })
    }

    fn label(&self) -> String {
        let at = |share: f64| self.times.percentiles.iter().find(move |found| found.share == share);
        let shown = |name: &str, share: f64| {
            at(share).map(|found| format!(", {name} {}", units::duration(found.time_ns as f64)))
        };
        let parts = [shown("p50", 0.5), shown("p95", 0.95)].map(Option::unwrap_or_default);
        format!("{}: {}{}", self.name, units::count(self.estimate.matched), parts.concat())
    }
}

fn distribution(title: &str, series: &[Series<'_>]) -> Option<Panel> {
    let low = series.iter().map(|one| one.times.min_ns).min()?;
    let high = series.iter().map(|one| one.times.max_ns).max()?;
    let layer = |(index, one): (usize, &Series<'_>)| {
        let points = one.times.cdf.iter().map(|&(ns, share)| (ns as f64, share));
        let points = [(one.times.min_ns as f64, 0.0)].into_iter().chain(points).collect();
        Layer::new(one.label(), Colour::Series(index), Shape::Steps(points))
    };
    let x = Axis::new("round-trip time", Quantity::Duration, low as f64, high as f64);
    Some(Panel {
        title: title.to_owned(),
        height: 240.0,
        x: x.logarithmic_if_wide(),
        y: Axis::new("round trips", Quantity::Share, 0.0, 1.0),
        layers: series.iter().enumerate().map(layer).collect(),
    })
}

/// The largest groups of the kind that has the most round trips.
fn groups(estimates: &[RoundTripEstimate]) -> Option<Panel> {
    let grouped = || estimates.iter().filter(|estimate| estimate.scope != Scope::All);
    let kind = grouped().max_by_key(|estimate| estimate.matched)?.kind;
    let of_kind = grouped().filter(|estimate| estimate.kind == kind);
    let mut series: Vec<Series<'_>> =
        of_kind.filter_map(|one| Series::new(one.scope.to_string(), one)).collect();
    series.sort_by_key(|one| std::cmp::Reverse(one.estimate.matched));
    let count = series.len();
    series.truncate(GROUPS_MAX);
    let title = match count > GROUPS_MAX {
        true => format!("{} by group ({GROUPS_MAX} largest of {count})", kind.name()),
        false => format!("{} by group", kind.name()),
    };
    distribution(&title, &series)
}

/// The median of each kind, epoch by epoch.
fn over_time(kinds: &[Series<'_>], epochs: &[WatchedEpoch]) -> Option<Panel> {
    let (first, last) = (epochs.first()?, epochs.last()?);
    let median = |epoch: &WatchedEpoch, kind: RoundTripKind| {
        let is_it = |one: &&RoundTripEstimate| one.kind == kind && one.is_whole();
        let times = epoch.estimates.iter().find(is_it)?.times.as_ref()?;
        times.percentiles.iter().find(|found| found.share == 0.5).map(|found| found.time_ns as f64)
    };
    let middle = |epoch: &WatchedEpoch| {
        (epoch.span.start.as_nanos() as f64 + epoch.span.end.as_nanos() as f64) / 2.0
    };
    let line = |(index, one): (usize, &Series<'_>)| {
        let kind = one.estimate.kind;
        let points =
            epochs.iter().map(|epoch| (middle(epoch), median(epoch, kind).unwrap_or(f64::NAN)));
        Layer::new(one.name.clone(), Colour::Series(index), Shape::Line(points.collect()))
    };
    let values = epochs
        .iter()
        .flat_map(|epoch| kinds.iter().filter_map(move |one| median(epoch, one.estimate.kind)));
    let low = values.clone().reduce(f64::min)?;
    let high = values.reduce(f64::max)?;
    let (start, end) = (first.span.start.as_nanos() as f64, last.span.end.as_nanos() as f64);
    Some(Panel {
        title: "Median of each epoch".to_owned(),
        height: 220.0,
        x: Axis::new("time", Quantity::Moment, start, end),
        y: Axis::new("p50", Quantity::Duration, low, high).logarithmic_if_wide(),
        layers: kinds.iter().enumerate().map(line).collect(),
    })
}

//! What the engine still needs of the log after a start.

use std::collections::{BTreeMap, BTreeSet};

use twixt_engine::{SegmentConfig, Series, SeriesProgress};
use twixt_measure::Stream;
use twixt_model::{Segment, Timestamp};
use twixt_store::Found;

/// Of points that no segment is configured for, this much is read.
const OTHERS_NS: i64 = 3_600 * 1_000_000_000;
/// Where a segment has concluded nothing yet, this much is read of its points.
const UNCONCLUDED_NS: i64 = 24 * 3_600 * 1_000_000_000;

/// From when on epochs are needed.
#[derive(Debug)]
pub(super) struct Needs {
    series: BTreeMap<SeriesOfPoint, i64>,
    /// The earliest of all series of a point.
    points: BTreeMap<String, i64>,
    /// Of points of which nothing is known.
    others_ns: i64,
}

/// The epochs of a point that are handed to all its segments alike.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SeriesOfPoint {
    point: String,
    domain: String,
    class: String,
    algorithm: String,
}

/// What the segments of a point have concluded of a series.
#[derive(Debug, Default)]
struct Concluded {
    /// The earliest that one of them needs.
    start_ns: Option<i64>,
    segments: BTreeSet<Segment>,
}

impl Needs {
    pub(super) fn new(
        progress: &[SeriesProgress],
        segments: &[SegmentConfig],
        now: Timestamp,
    ) -> Self {
        let back = |length_ns: i64| now.as_nanos().saturating_sub(length_ns);
        let (unconcluded_ns, others_ns) = (back(UNCONCLUDED_NS), back(OTHERS_NS));
        let of_points = by_point(segments);
        let (mut series, mut points) = (BTreeMap::new(), BTreeMap::new());
        for (of, concluded) in concluded_of_points(progress) {
            let own = of_points.get(of.point.as_str()).map_or(&[][..], Vec::as_slice);
            let start_ns = concluded.start_ns.unwrap_or(others_ns);
            let needed_ns = match concluded.lacks_one_of(own, &of.class) {
                true => start_ns.min(unconcluded_ns),
                false => start_ns,
            };
            let earliest = points.entry(of.point.clone()).or_insert(others_ns);
            *earliest = (*earliest).min(needed_ns);
            series.insert(of, needed_ns);
        }
        for point in of_points.into_keys() {
            points.entry(point.to_owned()).or_insert(unconcluded_ns);
        }
        Self { series, points, others_ns }
    }

    /// Whether a stored epoch is needed.
    pub(super) fn wants(&self, found: &Found) -> bool {
        let Ok(Stream { domain, class, algorithm, .. }) = found.stream.parse::<Stream>() else {
            return false;
        };
        let series = SeriesOfPoint { point: found.point.clone(), domain, class, algorithm };
        let start_ns = self.series.get(&series).copied();
        found.span.start.as_nanos() >= start_ns.unwrap_or_else(|| self.of_point_ns(&found.point))
    }

    /// From when on something of a point is needed.
    pub(super) fn of_point_ns(&self, point: &str) -> i64 {
        self.points.get(point).copied().unwrap_or(self.others_ns)
    }
}

/// The segments that a point is an end of.
fn by_point(segments: &[SegmentConfig]) -> BTreeMap<&str, Vec<&SegmentConfig>> {
    let mut points: BTreeMap<&str, Vec<&SegmentConfig>> = BTreeMap::new();
    for of in segments {
        for point in [&of.segment.upstream, &of.segment.downstream] {
            points.entry(&point.0).or_default().push(of);
        }
    }
    points
}

fn concluded_of_points(progress: &[SeriesProgress]) -> BTreeMap<SeriesOfPoint, Concluded> {
    let mut found: BTreeMap<SeriesOfPoint, Concluded> = BTreeMap::new();
    for SeriesProgress { series, replay_from, realigned_epochs, .. } in progress {
        let Some(length_ns) = series.epoch_ns else { continue };
        let Series { domain, segment, class, algorithm, .. } = series;
        let ends = [(&segment.upstream, 0), (&segment.downstream, realigned_epochs.unwrap_or(0))];
        for (point, ahead) in ends {
            let of = SeriesOfPoint {
                point: point.0.clone(),
                domain: domain.clone(),
                class: class.clone(),
                algorithm: (*algorithm).to_owned(),
            };
            let start_ns = replay_from.0.saturating_add(ahead).saturating_mul(length_ns);
            let concluded = found.entry(of).or_default();
            concluded.start_ns = Some(concluded.start_ns.map_or(start_ns, |of| of.min(start_ns)));
            concluded.segments.insert(segment.clone());
        }
    }
    found
}

impl Concluded {
    /// Whether a segment has concluded nothing yet: it needs more than others of the same point.
    /// Algorithms that need one point only belong to no segment.
    fn lacks_one_of(&self, segments: &[&SegmentConfig], class: &str) -> bool {
        let mut own = segments.iter().filter(|of| of.class.as_ref().is_none_or(|of| of == class));
        self.segments.iter().any(|of| of.upstream != of.downstream)
            && own.any(|of| !self.segments.contains(&of.segment))
    }
}

#[cfg(test)]
mod tests {
    use twixt_model::{Epoch, PointId};

    use super::*;

    const SECOND: i64 = 1_000_000_000;
    const NOW: i64 = 1_000_000;

    fn segment(upstream: &str, downstream: &str) -> Segment {
        let point = |name: &str| PointId(name.to_owned());
        Segment { upstream: point(upstream), downstream: point(downstream) }
    }

    fn progress(segment: Segment, first: i64, ahead: i64) -> SeriesProgress {
        SeriesProgress {
            series: Series {
                domain: String::new(),
                segment,
                class: String::new(),
                algorithm: "lda",
                tag: 1,
                epoch_ns: Some(SECOND),
            },
            through: Epoch(first + 2),
            last: None,
            reported: Vec::new(),
            late: Vec::new(),
            summarised: Timestamp::MIN,
            realigned_epochs: Some(ahead),
            short_delays: 0,
            replay_from: Epoch(first),
        }
    }

    /// How many seconds back epochs of points are needed.
    #[track_caller]
    fn check(progress: &[SeriesProgress], segments: &[Segment], expected: &[(&str, i64)]) {
        let configured: Vec<SegmentConfig> = segments
            .iter()
            .map(|segment| SegmentConfig { segment: segment.clone(), class: None })
            .collect();
        let needs = Needs::new(progress, &configured, Timestamp::from_nanos(NOW * SECOND));
        for (point, back) in expected {
            assert_eq!(NOW - needs.of_point_ns(point) / SECOND, *back, "{point}");
        }
    }

    #[test]
    fn what_was_concluded_is_not_needed_again() {
        let segments = [segment("a", "b"), segment("b", "c")];
        let both = [
            progress(segments[0].clone(), NOW - 9_000, 0),
            progress(segments[1].clone(), NOW - 7_000, -20),
        ];
        check(&both, &segments, &[("a", 9_000), ("b", 9_000), ("c", 7_020), ("d", 3_600)]);
        let recent = [progress(segments[0].clone(), NOW - 10, 0)];
        // Of another series of the point nothing is known.
        check(&recent, &segments[..1], &[("a", 3_600), ("b", 3_600)]);
    }

    #[test]
    fn a_segment_that_has_concluded_nothing_needs_more_than_another_of_its_point() {
        let segments = [segment("a", "b"), segment("b", "c")];
        let first = [progress(segments[0].clone(), NOW - 9_000, 0)];
        check(&first, &segments, &[("a", 9_000), ("b", 86_400), ("c", 86_400)]);
        let one_point = [progress(segment("b", "b"), NOW - 9_000, 0)];
        check(&one_point, &segments, &[("b", 9_000)]);
    }
}

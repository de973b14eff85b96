//! Where an epoch belongs: which segments its point is an end of, and under which keys the engine
//! keeps what belongs together. Segments are found by the point: an epoch costs as much as its point
//! has segments, however many others there are.

use std::collections::{BTreeMap, HashMap};

use twixt_measure::Sealed;
use twixt_model::{PointId, Segment};

use crate::config::SegmentConfig;
use crate::event::Series;
use crate::sample::PointSample;
use crate::segment::Samples;

/// The segments that the operator named, and those that were discovered.
#[derive(Debug)]
pub(crate) struct Routes {
    points: HashMap<PointId, Vec<Route>>,
    discovered: usize,
}

/// One segment of a point.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Route {
    segment: Segment,
    /// All classes when `None`.
    class: Option<String>,
    /// That it was discovered in; `None` if the operator named it, for all domains.
    domain: Option<String>,
}

impl Routes {
    pub(crate) fn new(named: &[SegmentConfig]) -> Self {
        let mut routes = Self { points: HashMap::new(), discovered: 0 };
        for SegmentConfig { segment, class } in named {
            let (segment, class) = (segment.clone(), class.clone());
            routes.add(&Route { segment, class, domain: None });
        }
        routes
    }

    /// Follows a segment that was discovered.
    pub(crate) fn discover(&mut self, domain: &str, segment: &Segment, class: &str) {
        let route = Route {
            segment: segment.clone(),
            class: Some(class.to_owned()),
            domain: Some(domain.to_owned()),
        };
        self.discovered += usize::from(self.add(&route));
    }

    /// How many were discovered.
    pub(crate) const fn discovered(&self) -> usize {
        self.discovered
    }

    /// Whether the operator named a segment.
    pub(crate) fn is_named(&self, segment: &Segment, class: &str) -> bool {
        self.at(&segment.upstream).iter().any(|route| {
            route.domain.is_none() && route.segment == *segment && route.has_class(class)
        })
    }

    /// The segments that an epoch is a half of.
    pub(crate) fn of(&self, sealed: &Sealed) -> Vec<Segment> {
        let mut segments: Vec<Segment> = Vec::new();
        for route in self.at(&sealed.point) {
            let is_domain = route.domain.as_ref().is_none_or(|domain| *domain == sealed.domain);
            // The operator may have named it for one class after the other.
            if is_domain && route.has_class(&sealed.class) && !segments.contains(&route.segment) {
                segments.push(route.segment.clone());
            }
        }
        segments
    }

    fn at(&self, point: &PointId) -> &[Route] {
        self.points.get(point).map_or(&[], Vec::as_slice)
    }

    /// Whether that was new.
    fn add(&mut self, route: &Route) -> bool {
        let Segment { upstream, downstream } = &route.segment;
        let is_new = !self.at(upstream).contains(route);
        if is_new {
            for point in [upstream, downstream] {
                self.points.entry(point.clone()).or_default().push(route.clone());
            }
        }
        is_new
    }
}

impl Route {
    fn has_class(&self, class: &str) -> bool {
        self.class.as_ref().is_none_or(|of| of == class)
    }
}

/// What all series of a segment have in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SegmentKey {
    pub(crate) domain: String,
    pub(crate) segment: Segment,
    pub(crate) class: String,
    pub(crate) epoch_ns: Option<i64>,
}

/// Whose packets near boundaries are kept together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PointKey {
    pub(crate) domain: String,
    pub(crate) point: PointId,
    pub(crate) class: String,
    pub(crate) epoch_ns: Option<i64>,
}

impl Series {
    /// The series of a segment that an epoch belongs to.
    #[must_use]
    pub fn of(segment: Segment, sealed: &Sealed) -> Self {
        Self {
            domain: sealed.domain.clone(),
            segment,
            class: sealed.class.clone(),
            algorithm: sealed.synopsis.name(),
            tag: sealed.synopsis.tag(),
            epoch_ns: sealed.rule.length_ns(),
        }
    }
}

impl SegmentKey {
    pub(crate) fn of(series: &Series) -> Self {
        Self {
            domain: series.domain.clone(),
            segment: series.segment.clone(),
            class: series.class.clone(),
            epoch_ns: series.epoch_ns,
        }
    }

    /// What is known of the packets of its two points.
    pub(crate) fn samples<'a>(&self, samples: &'a BTreeMap<PointKey, PointSample>) -> Samples<'a> {
        let of = |point: &PointId| {
            samples.get(&PointKey {
                domain: self.domain.clone(),
                point: point.clone(),
                class: self.class.clone(),
                epoch_ns: self.epoch_ns,
            })
        };
        Samples { upstream: of(&self.segment.upstream), downstream: of(&self.segment.downstream) }
    }
}

impl PointKey {
    pub(crate) fn of(sealed: &Sealed) -> Self {
        Self {
            domain: sealed.domain.clone(),
            point: sealed.point.clone(),
            class: sealed.class.clone(),
            epoch_ns: sealed.rule.length_ns(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(upstream: usize, downstream: usize) -> Segment {
        let point = |number| PointId(format!("p{number}"));
        Segment { upstream: point(upstream), downstream: point(downstream) }
    }

    /// Each of a thousand points has five segments to others: looking one up looks at ten.
    #[test]
    fn a_point_knows_its_own_segments_only() {
        let ends = (0..5_000).map(|number| (number % 1_000, (number % 1_000 + 1 + number / 1_000)));
        let named = ends
            .map(|(up, down)| SegmentConfig { segment: segment(up, down % 1_000), class: None });
        let routes = Routes::new(&named.collect::<Vec<_>>());
        assert!(routes.points.values().all(|of| of.len() == 10));
        assert!(routes.is_named(&segment(7, 8), "any") && !routes.is_named(&segment(8, 7), "any"));
    }

    #[test]
    fn what_was_discovered_is_followed_once_and_not_named() {
        let mut routes = Routes::new(&[]);
        for class in ["a", "b", "a"] {
            routes.discover("lab", &segment(1, 2), class);
        }
        assert_eq!(routes.discovered(), 2);
        assert!(!routes.is_named(&segment(1, 2), "a"));
    }
}

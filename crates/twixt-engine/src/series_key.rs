//! What belongs together: the names under which an engine keeps things.

use std::collections::BTreeMap;

use twixt_measure::Sealed;
use twixt_model::{PointId, Segment};

use crate::event::Series;
use crate::sample::PointSample;
use crate::segment::Samples;

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

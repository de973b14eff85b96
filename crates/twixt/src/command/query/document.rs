//! The answer as a document, and what is missing from it.

use serde::Serialize;
use twixt_model::{EpochRule, Estimate};
use twixt_offline::{ChosenAlgorithm, Files, Measured};
use twixt_store::Damage;

use super::{EpochRange, Touched, note_some};
use crate::exit::note;
use crate::output::{DelayDocument, EstimateRow, units};

/// What a store does not have of what was asked for.
pub(super) struct Missing {
    pub(super) points: [String; 2],
    /// Epochs between the first and the last that either point has, which upstream or downstream
    /// does not have.
    pub(super) absent: [Vec<EpochRange>; 2],
    pub(super) rule: EpochRule,
    pub(super) damages: Vec<Damage>,
    pub(super) unfinished_bytes: u64,
}

impl Missing {
    /// Whether epochs were never stored, or cannot be used.
    pub(super) fn is_partial(&self) -> bool {
        let is_absent = self.absent.iter().any(|absent| !absent.is_empty());
        is_absent || !self.damages.is_empty() || self.unfinished_bytes > 0
    }

    /// Says what is missing.
    pub(super) fn note(&self) {
        for (point, absent) in self.points.iter().zip(&self.absent) {
            note_some(absent, |range| {
                let (first, last) = (range.start().0, range.end().0);
                let moment = units::moment(self.rule.span_of(*range.start()).start);
                let count = units::count(last.abs_diff(first) + 1);
                format!("{point}: {count} epochs are missing, from {moment} UTC on (epoch {first})")
            });
        }
        note_some(&self.damages, |damage| format!("{damage}; it is left out"));
        if self.unfinished_bytes > 0 {
            let bytes = units::bytes(self.unfinished_bytes);
            note(format_args!("{bytes} at the end of a file are an unfinished record"));
        }
    }
}

/// `twixt query -F json`: as `delay`, and what the epochs say together, and what is missing.
#[derive(Serialize)]
pub(super) struct QueryDocument {
    #[serde(flatten)]
    delay: DelayDocument,
    total: Vec<EstimateRow>,
    missing: MissingDocument,
    read: Touched,
}

#[derive(Serialize)]
struct MissingDocument {
    upstream: Vec<RangeDocument>,
    downstream: Vec<RangeDocument>,
    damaged: Vec<DamageDocument>,
    unfinished_bytes: u64,
}

#[derive(Serialize)]
struct RangeDocument {
    first_epoch: i64,
    last_epoch: i64,
    start_ns: i64,
    end_ns: i64,
}

#[derive(Serialize)]
pub(crate) struct DamageDocument {
    point: String,
    day: String,
    cause: String,
    bytes: u64,
    epoch: Option<i64>,
    start_ns: Option<i64>,
    end_ns: Option<i64>,
}

impl QueryDocument {
    pub(super) fn new(
        files: Files<'_>,
        chosen: &ChosenAlgorithm,
        measured: &Measured,
        totals: &[Estimate],
        missing: &Missing,
        read: Touched,
    ) -> Self {
        let ranges = |absent: &[EpochRange]| {
            absent.iter().map(|range| RangeDocument::new(range, missing.rule)).collect()
        };
        Self {
            delay: DelayDocument::new(files, chosen, measured, &measured.concluded[0]),
            total: totals.iter().map(EstimateRow::from).collect(),
            missing: MissingDocument {
                upstream: ranges(&missing.absent[0]),
                downstream: ranges(&missing.absent[1]),
                damaged: missing.damages.iter().map(DamageDocument::from).collect(),
                unfinished_bytes: missing.unfinished_bytes,
            },
            read,
        }
    }
}

impl RangeDocument {
    fn new(range: &EpochRange, rule: EpochRule) -> Self {
        Self {
            first_epoch: range.start().0,
            last_epoch: range.end().0,
            start_ns: rule.span_of(*range.start()).start.as_nanos(),
            end_ns: rule.span_of(*range.end()).end.as_nanos(),
        }
    }
}

impl From<&Damage> for DamageDocument {
    fn from(damage: &Damage) -> Self {
        Self {
            point: damage.point.clone(),
            day: damage.day.to_string(),
            cause: damage.cause.to_string(),
            bytes: damage.bytes,
            epoch: damage.epoch.map(|epoch| epoch.0),
            start_ns: damage.span.map(|span| span.start.as_nanos()),
            end_ns: damage.span.map(|span| span.end.as_nanos()),
        }
    }
}

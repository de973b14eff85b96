//! Which epochs are taken.

use std::collections::BTreeSet;

use twixt_delivery::{RefusalCode, RefusedEpoch};
use twixt_measure::Sealed;
use twixt_model::{NameError, Span, Timestamp, check_name};

use super::JournalConfig;
use super::runs::{Report, Runs};

/// An epoch further ahead of the collector's clock is not stored: days that have not come would fill
/// the disk.
pub(super) const FUTURE_NS_MAX: i64 = 24 * 3_600 * 1_000_000_000;

/// Why an epoch was not stored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The record is not a sealed epoch: it was damaged before it was sent.
    #[error("{0}")]
    Undecodable(String),
    /// The agent runs a newer release, and keeps the epoch. Upgrade the collector.
    #[error("{0}: upgrade the collector")]
    NewerFormat(String),
    /// The epoch needs more memory than one agent may hold. Raise memory_max, or choose smaller
    /// synopses.
    #[error("the epoch takes {bytes} bytes of memory, {bytes_max} are allowed: raise memory_max")]
    TooLarge {
        /// What it takes.
        bytes: u64,
        /// What one agent may hold.
        bytes_max: u64,
    },
    /// A name has characters that cannot be shown. Choose another.
    #[error("{field}: {problem}")]
    InvalidName {
        /// Which name.
        field: &'static str,
        /// What is wrong with it.
        problem: NameError,
    },
    /// The agent belongs to another domain. Check the names in both configurations.
    #[error("domain {found:?}: this collector accepts only {expected:?}")]
    Domain {
        /// The epoch's.
        found: String,
        /// The collector's.
        expected: String,
    },
    /// One epoch for all time never ends. Cut time into epochs.
    #[error("one epoch for all time cannot be collected: set an epoch length")]
    Endless,
    /// What is this old is deleted.
    #[error("the epoch is older than the retention limit")]
    TooOld,
    /// The agent's clock, or the collector's, is off by a day or more. Set it; the agent keeps the
    /// epoch.
    #[error("the epoch lies more than a day ahead of the collector's clock")]
    Future,
    /// Two agents use one name. Give one of them another.
    #[error(
        "another agent reports as point {point:?}: run {newer} is newer than run {run}, which \
         reported this epoch"
    )]
    Rival {
        /// The name that both use.
        point: String,
        /// This one's run.
        run: u64,
        /// The other one's.
        newer: u64,
    },
    /// The collector has as many points as it may have. Allow more.
    #[error("the collector already has {points} points, which is the limit (points_max)")]
    TooManyPoints {
        /// How many.
        points: usize,
    },
    /// The log cannot take it, ever.
    #[error("{0}")]
    Log(String),
}

impl Refusal {
    /// The code in receipts and metrics.
    pub(crate) const fn code(&self) -> RefusalCode {
        match self {
            Self::Undecodable(_) => RefusalCode::Undecodable,
            Self::NewerFormat(_) => RefusalCode::NewerFormat,
            Self::TooLarge { .. } => RefusalCode::TooLarge,
            Self::InvalidName { .. } => RefusalCode::InvalidName,
            Self::Domain { .. } => RefusalCode::Domain,
            Self::Endless => RefusalCode::Endless,
            Self::TooOld => RefusalCode::TooOld,
            Self::Future => RefusalCode::Future,
            Self::Rival { .. } => RefusalCode::SecondAgent,
            Self::TooManyPoints { .. } => RefusalCode::TooManyPoints,
            Self::Log(_) => RefusalCode::Log,
        }
    }

    /// As it stands in a receipt, of a record of which nothing but its place is known.
    pub(crate) fn of_record(&self, index: usize) -> RefusedEpoch {
        let (code, reason) = (Some(self.code()), self.to_string());
        RefusedEpoch { index: Some(index), code, reason, ..RefusedEpoch::default() }
    }
}

/// Decides on epochs, by what was stored before.
#[derive(Debug)]
pub(super) struct Judge {
    domain: Option<String>,
    age_max_ns: Option<i64>,
    points_max: usize,
    points: BTreeSet<String>, // at most points_max, and what the log had before
    runs: Runs,
    newest: Option<Timestamp>,
    /// The same, but never ahead of the clock when it was stored: a clock that is set back later
    /// must not keep out agents whose clocks are right, and no agent can push this moment on.
    newest_by_clock: Option<Timestamp>,
}

impl Judge {
    pub(super) fn new(config: &JournalConfig, points: impl IntoIterator<Item = String>) -> Self {
        let age = config.retention.age_max;
        Self {
            domain: config.domain.clone(),
            age_max_ns: age.map(|age| i64::try_from(age.as_nanos()).unwrap_or(i64::MAX)),
            points_max: config.points_max,
            points: points.into_iter().collect(),
            runs: Runs::default(),
            newest: None,
            newest_by_clock: None,
        }
    }

    pub(super) fn points(&self) -> usize {
        self.points.len()
    }

    /// The last moment of which something is stored.
    pub(super) const fn newest(&self) -> Option<Timestamp> {
        self.newest
    }

    /// The interval of an accepted epoch. `now` is the clock's time, `old_by` the one
    /// that ages count from.
    pub(super) fn admit(
        &self,
        sealed: &Sealed,
        now: Timestamp,
        old_by: Timestamp,
    ) -> Result<Span, Refusal> {
        if let Some(expected) = &self.domain
            && sealed.domain != *expected
        {
            let (found, expected) = (sealed.domain.clone(), expected.clone());
            return Err(Refusal::Domain { found, expected });
        }
        check_names(sealed)?;
        let span = sealed.rule.length_ns().map(|_| sealed.rule.span_of(sealed.epoch));
        let span = span.ok_or(Refusal::Endless)?;
        let oldest = self.age_max_ns.map(|age| old_by.as_nanos().saturating_sub(age));
        if oldest.is_some_and(|oldest| span.end.as_nanos() < oldest) {
            return Err(Refusal::TooOld);
        }
        let latest = self.newest_by_clock.map_or(now, |newest| newest.max(now));
        if span.start > ahead_of(latest) {
            return Err(Refusal::Future);
        }
        let point = &sealed.point.0;
        if !self.points.contains(point) && self.points.len() >= self.points_max {
            return Err(Refusal::TooManyPoints { points: self.points.len() });
        }
        match self.runs.rival(report(sealed, span)) {
            Some(newer) => Err(Refusal::Rival { point: point.clone(), run: sealed.run, newer }),
            None => Ok(span),
        }
    }

    /// Remembers an epoch that was stored at a moment.
    pub(super) fn note(&mut self, sealed: &Sealed, span: Span, now: Timestamp) {
        if !self.points.contains(&sealed.point.0) {
            self.points.insert(sealed.point.0.clone());
        }
        self.note_run(report(sealed, span), now);
    }

    /// Remembers an epoch that is stored.
    pub(super) fn note_run(&mut self, report: Report<'_>, now: Timestamp) {
        self.note_moment(report.span.end, now);
        self.runs.note(report);
    }

    /// Remembers that something is stored of a moment.
    pub(super) fn note_moment(&mut self, moment: Timestamp, now: Timestamp) {
        self.newest = self.newest.max(Some(moment));
        self.newest_by_clock = self.newest_by_clock.max(Some(moment.min(now)));
    }
}

/// Names reach logs, metrics and pages.
fn check_names(sealed: &Sealed) -> Result<(), Refusal> {
    let names = [("point", &sealed.point.0), ("domain", &sealed.domain), ("class", &sealed.class)];
    for (field, name) in names {
        // Only a point must have a name.
        if field == "point" || !name.is_empty() {
            check_name(name).map_err(|problem| Refusal::InvalidName { field, problem })?;
        }
    }
    Ok(())
}

fn ahead_of(moment: Timestamp) -> Timestamp {
    Timestamp::from_nanos(moment.as_nanos().saturating_add(FUTURE_NS_MAX))
}

fn report(sealed: &Sealed, span: Span) -> Report<'_> {
    Report { domain: &sealed.domain, point: &sealed.point.0, run: sealed.run, span }
}

#[cfg(test)]
mod tests;

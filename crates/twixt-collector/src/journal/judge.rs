//! Which epochs are taken.

use std::collections::BTreeSet;

use twixt_measure::Sealed;
use twixt_model::{Span, Timestamp};

use super::JournalConfig;
use super::runs::{Report, Runs};

/// An epoch this far ahead of the collector's clock, and of all that was stored, is not taken: days
/// that have not come would fill the disk.
pub(super) const FUTURE_NS_MAX: i64 = 24 * 3_600 * 1_000_000_000;

/// Why an epoch was not taken. It never will be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The record is no sealed epoch, or one of a newer release. Upgrade the collector first.
    #[error("{0}")]
    Undecodable(String),
    /// The agent belongs to another domain. Check the names in both configurations.
    #[error("domain {found:?} is not ours, which is {expected:?}")]
    Domain {
        /// The epoch's.
        found: String,
        /// The collector's.
        expected: String,
    },
    /// One epoch for all time never ends. Cut time into epochs.
    #[error("one epoch for all time cannot be collected: give an epoch length")]
    Endless,
    /// What is this old is deleted.
    #[error("the epoch is older than what is kept")]
    TooOld,
    /// The agent's clock, or the collector's, is off by a day or more. Set it.
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
    #[error("the collector has {points} points already, more are not allowed")]
    TooManyPoints {
        /// How many.
        points: usize,
    },
    /// The log cannot take it, ever.
    #[error("{0}")]
    Log(String),
}

impl Refusal {
    /// The name in metrics.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Undecodable(_) => "undecodable",
            Self::Domain { .. } => "domain",
            Self::Endless => "endless",
            Self::TooOld => "too-old",
            Self::Future => "future",
            Self::Rival { .. } => "second-agent",
            Self::TooManyPoints { .. } => "too-many-points",
            Self::Log(_) => "log",
        }
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
        }
    }

    pub(super) fn points(&self) -> usize {
        self.points.len()
    }

    /// The last moment of which something is stored.
    pub(super) const fn newest(&self) -> Option<Timestamp> {
        self.newest
    }

    /// The stretch of time of an epoch that is taken. `now` is the clock's time, `old_by` the one
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
        let span = sealed.rule.length_ns().map(|_| sealed.rule.span_of(sealed.epoch));
        let span = span.ok_or(Refusal::Endless)?;
        let oldest = self.age_max_ns.map(|age| old_by.as_nanos().saturating_sub(age));
        if oldest.is_some_and(|oldest| span.end.as_nanos() < oldest) {
            return Err(Refusal::TooOld);
        }
        // A clock that was set back must not shut out those who are right.
        let latest = self.newest.map_or(now, |newest| newest.max(now));
        if span.start.as_nanos() > latest.as_nanos().saturating_add(FUTURE_NS_MAX) {
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

    /// Remembers an epoch that was stored.
    pub(super) fn note(&mut self, sealed: &Sealed, span: Span) {
        if !self.points.contains(&sealed.point.0) {
            self.points.insert(sealed.point.0.clone());
        }
        self.note_run(report(sealed, span));
    }

    /// Remembers an epoch that was stored before this process began.
    pub(super) fn note_run(&mut self, report: Report<'_>) {
        self.note_moment(report.span.end);
        self.runs.note(report);
    }

    /// Remembers that something is stored of a moment.
    pub(super) fn note_moment(&mut self, moment: Timestamp) {
        self.newest = Some(self.newest.map_or(moment, |newest| newest.max(moment)));
    }
}

fn report(sealed: &Sealed, span: Span) -> Report<'_> {
    Report { domain: &sealed.domain, point: &sealed.point.0, run: sealed.run, span }
}

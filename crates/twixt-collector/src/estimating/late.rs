//! Pairs halves that came after their epoch was given up, from what is stored.
//!
//! The engine says which epochs have such a half. They are estimated as soon as no more of them
//! come, a part at a time, so that estimates of the present do not wait. What the history has is
//! not estimated again, so it does no harm to look at an epoch twice.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tracing::warn;
use twixt_engine::{
    Conclusion, LateEpochs, PairEstimate, Series, StoredHalf, StoredSeries, StreamCheck,
    pair_stored,
};
use twixt_history::{History, HistoryError, ROWS_MAX, Row, RowQuestion, Step};
use twixt_measure::{QuestionTemplate, Sealed, Stream};
use twixt_model::{Delay, Epoch, EpochRule, PointId, Scope, Segment, Span};
use twixt_store::{Depth, Found, Log, Query};
use twixt_synopsis::By;

use crate::history::{series_key, series_of};

/// Epochs that are paired at a time.
const EPOCHS_MAX: i64 = 256;
/// Epochs on either side that are read as well: neighbours have packets in flight, and it takes a
/// few boundaries to know how long delays are.
const MARGIN_EPOCHS: i64 = 8;
/// After a start, gaps of so long are looked at once more.
const GAPS_BACK: Delay = Delay::from_nanos(7 * 24 * 3_600 * 1_000_000_000);
/// When no more halves of a series came late for so long, the rest is paired.
const QUIET: Duration = Duration::from_secs(2);

/// Pairs what came late.
#[derive(Debug)]
pub(super) struct LatePairing {
    log: Log,
    history: Arc<History>,
    by: By,
    /// What came late of a series when it was looked at last, and since when that is all.
    since: BTreeMap<Series, (Vec<(Epoch, Epoch)>, Instant)>,
}

/// Epochs of a series that are paired together.
#[derive(Debug)]
pub(super) struct LateWork {
    pub(super) series: Series,
    pub(super) range: (Epoch, Epoch),
    realigned_epochs: i64,
}

/// Epochs of a series, from first to last.
pub(super) type SeriesRange = (Series, (Epoch, Epoch));

impl LatePairing {
    pub(super) fn new(log: Log, history: Arc<History>, by: By) -> Self {
        Self { log, history, by, since: BTreeMap::new() }
    }

    /// What to pair next, if anything is ready.
    pub(super) fn next(&mut self, late: Vec<LateEpochs>, now: Instant) -> Option<LateWork> {
        self.since.retain(|series, _| late.iter().any(|late| late.series == *series));
        let mut ready = None;
        for LateEpochs { series, ranges, realigned_epochs } in late {
            let known = self.since.entry(series.clone()).or_insert((Vec::new(), now));
            if known.0 != ranges {
                *known = (ranges.clone(), now);
            }
            let is_quiet = now.saturating_duration_since(known.1) >= QUIET;
            if let Some(range) = ready_part(&ranges, is_quiet)
                && ready.is_none()
            {
                ready = Some(LateWork { series, range, realigned_epochs });
            }
        }
        ready
    }

    /// Gaps of the last days, by upstream's numbers. Halves may be stored by now: they came late when
    /// the collector was killed, or a backup of the history lacks the estimates.
    pub(super) fn gaps(&self) -> Result<Vec<SeriesRange>, HistoryError> {
        let mut question = RowQuestion {
            scope: Some(Scope::All.to_string()),
            limit: ROWS_MAX,
            ..RowQuestion::all(Step::Hour)
        };
        let Some(newest) = self.history.newest() else { return Ok(Vec::new()) };
        question.span.start = newest - GAPS_BACK;
        let mut found = Vec::new();
        loop {
            let answer = self.history.answer(&question)?;
            for hour in answer.rows.iter().filter(|row| row.gaps > 0) {
                let Some(series) = series_of(&hour.series) else { continue };
                let ranges = self.gaps_of_hour(hour)?.into_iter();
                found.extend(ranges.map(|range| (series.clone(), range)));
            }
            question.after = answer.next;
            if question.after.is_none() {
                return Ok(found);
            }
        }
    }

    fn gaps_of_hour(&self, hour: &Row) -> Result<Vec<(Epoch, Epoch)>, HistoryError> {
        let point = |name: &String| PointId(name.clone());
        let segment = Segment {
            upstream: point(&hour.series.upstream),
            downstream: point(&hour.series.downstream),
        };
        let question = RowQuestion {
            segment: Some(segment),
            class: Some(hour.series.class.clone()),
            algorithm: Some(hour.series.algorithm.clone()),
            span: hour.span(),
            only_gaps: true,
            ..RowQuestion::all(Step::Epoch)
        };
        let answer = self.history.answer(&question)?;
        let gaps = answer.rows.iter().filter(|row| row.series == hour.series && row.is_gap());
        let range = |row: &Row| {
            let first = row.epoch?;
            Some((Epoch(first), Epoch(first.saturating_add_unsigned(row.gaps).saturating_sub(1))))
        };
        Ok(gaps.filter_map(range).collect())
    }

    /// Estimates the epochs of which both halves are stored, and that were not estimated in time.
    pub(super) fn pair(&self, work: &LateWork) -> io::Result<Vec<PairEstimate>> {
        let Some(rule) = work.series.epoch_ns.and_then(EpochRule::every) else {
            return Ok(Vec::new());
        };
        let Segment { upstream, downstream } = &work.series.segment;
        let ups = self.halves(work, rule, upstream, 0)?;
        let downs = self.halves(work, rule, downstream, work.realigned_epochs)?;
        let mut wanted: BTreeSet<Epoch> = ups.keys().map(|(epoch, _)| *epoch).collect();
        let both: BTreeSet<Epoch> = downs.keys().map(|(epoch, _)| *epoch).collect();
        let estimated = self.estimated(work, rule)?;
        let (first, last) = work.range;
        wanted.retain(|epoch| {
            (first..=last).contains(epoch) && both.contains(epoch) && !estimated.contains(epoch)
        });
        let is_near = |epoch: &Epoch| {
            let (from, to) = (back(*epoch, MARGIN_EPOCHS), forth(*epoch, MARGIN_EPOCHS));
            wanted.range(from..=to).next().is_some()
        };
        let mut records: Vec<(Epoch, Found)> =
            ups.into_iter().chain(downs).map(|((epoch, _), found)| (epoch, found)).collect();
        records.retain(|(epoch, _)| is_near(epoch));
        records.sort_by_key(|(epoch, _)| *epoch);
        self.pair_records(work, &records, &wanted)
    }

    fn pair_records(
        &self,
        work: &LateWork,
        records: &[(Epoch, Found)],
        wanted: &BTreeSet<Epoch>,
    ) -> io::Result<Vec<PairEstimate>> {
        let series = StoredSeries {
            series: work.series.clone(),
            question: QuestionTemplate { by: self.by, ..QuestionTemplate::default() },
            realigned_epochs: work.realigned_epochs,
            check: StreamCheck::Boundaries,
        };
        let mut unreadable = None;
        let sealed = records.iter().map_while(|(_, found)| match read(&self.log, found) {
            Ok(sealed) => Some(sealed),
            Err(problem) => {
                unreadable = Some(problem);
                None
            }
        });
        let halves = sealed.flatten().map(|sealed| StoredHalf { sealed, flows: None });
        let mut estimates = Vec::new();
        pair_stored(series, halves, |conclusion| {
            if let Conclusion::Estimate(pair) = conclusion
                && wanted.contains(&pair.epoch)
            {
                estimates.push(PairEstimate { is_late: true, ..pair });
            }
        });
        unreadable.map_or(Ok(estimates), Err)
    }

    /// The stored halves of a point near the epochs in question, by upstream's number and name of
    /// stream: each run of an agent has one of its own.
    fn halves(
        &self,
        work: &LateWork,
        rule: EpochRule,
        point: &PointId,
        ahead: i64,
    ) -> io::Result<BTreeMap<(Epoch, String), Found>> {
        let (first, last) = work.range;
        let near = back(first, MARGIN_EPOCHS)..=forth(last, MARGIN_EPOCHS);
        let span = span_of(rule, forth(*near.start(), ahead), forth(*near.end(), ahead));
        let query = Query::between(span).at_point(&point.0).to_depth(Depth::Heads);
        let mut scan = self.log.scan(query).map_err(io::Error::other)?;
        let halves = scan.by_ref().filter(|found| is_of(&work.series, found)).map(|found| {
            let epoch = back(found.epoch, ahead);
            ((epoch, found.stream.clone()), found)
        });
        let halves = halves.filter(|((epoch, _), _)| near.contains(epoch)).collect();
        scan.finish().map_err(io::Error::other)?;
        Ok(halves)
    }

    /// Epochs that were estimated in time.
    fn estimated(&self, work: &LateWork, rule: EpochRule) -> io::Result<BTreeSet<Epoch>> {
        let (series, key) = (&work.series, series_key(&work.series));
        let question = RowQuestion {
            segment: Some(series.segment.clone()),
            class: Some(series.class.clone()),
            algorithm: Some(key.algorithm.clone()),
            scope: Some(Scope::All.to_string()),
            span: span_of(rule, work.range.0, work.range.1),
            ..RowQuestion::all(Step::Epoch)
        };
        let answer = self.history.answer(&question).map_err(io::Error::other)?;
        let in_time = answer
            .rows
            .into_iter()
            .filter(|row| row.series == key && !row.is_gap() && row.late_epochs == 0);
        Ok(in_time.filter_map(|row| row.epoch.map(Epoch)).collect())
    }
}

/// The first epochs that can be paired. While halves still come, the last few may lack neighbours.
fn ready_part(ranges: &[(Epoch, Epoch)], is_quiet: bool) -> Option<(Epoch, Epoch)> {
    let &(first, last) = ranges.first()?;
    let end = last.min(forth(first, EPOCHS_MAX - 1));
    let is_full = forth(end, 2) <= last;
    (is_quiet || is_full).then_some((first, end))
}

/// Whether a record is a half of a series.
fn is_of(series: &Series, found: &Found) -> bool {
    found.stream.parse::<Stream>().is_ok_and(|stream| {
        (stream.domain.as_str(), stream.class.as_str(), stream.algorithm.as_str())
            == (&series.domain, &series.class, series.algorithm)
    })
}

fn span_of(rule: EpochRule, first: Epoch, last: Epoch) -> Span {
    rule.span_of(first).union(rule.span_of(last))
}

const fn back(epoch: Epoch, epochs: i64) -> Epoch {
    Epoch(epoch.0.saturating_sub(epochs))
}

const fn forth(epoch: Epoch, epochs: i64) -> Epoch {
    Epoch(epoch.0.saturating_add(epochs))
}

/// The epoch of a record. What is damaged is logged, and left out; an error if it may be readable later.
pub(super) fn read(log: &Log, found: &Found) -> io::Result<Option<Sealed>> {
    let sealed = match log.payload(found) {
        Ok(payload) => {
            Sealed::from_bytes(&payload).map_err(|error| found.damage(&error.to_string()))
        }
        Err(damage) if damage.is_disk_error() => return Err(io::Error::other(damage.to_string())),
        Err(damage) => Err(damage),
    };
    Ok(sealed.inspect_err(|problem| warn!(%problem, "cannot read a stored epoch")).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_ready_when_its_neighbours_came_or_no_more_come() {
        let range = |first, last| (Epoch(first), Epoch(last));
        assert_eq!(ready_part(&[], true), None);
        assert_eq!(ready_part(&[range(5, 9)], false), None);
        assert_eq!(ready_part(&[range(5, 9), range(20, 30)], true), Some(range(5, 9)));
        assert_eq!(ready_part(&[range(0, 255)], false), None);
        assert_eq!(ready_part(&[range(0, 257)], false), Some(range(0, 255)));
        assert_eq!(ready_part(&[range(0, 9_999)], true), Some(range(0, 255)));
    }
}

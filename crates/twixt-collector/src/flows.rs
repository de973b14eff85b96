//! Estimates of single flows, on request.
//!
//! Nothing is kept per flow. On a request, the raw epochs of the time in question, which the
//! log still has, are compared once more, flow by flow. Which epochs belong together the engine has
//! found out before: the history says so, and epochs of which it knows nothing are not compared
//! here either. It does not know how answers are shown.

mod comparing;
mod names;
mod records;
mod series;
mod summing;

use std::collections::BTreeSet;

use twixt_history::{HistoryError, Row, RowAnswer, RowQuestion, Step};
use twixt_model::{Scope, Segment, Span};
use twixt_store::{Log, StoreError};
use twixt_synopsis::{Purpose, find};

use comparing::compare;
use series::{Comparable, comparables};
use summing::FlowSums;

/// Epochs of one question at most, all classes and algorithms together: ten minutes of seconds.
pub const EPOCHS_MAX: usize = 600;
/// Bytes of raw epochs that one question may take to answer.
pub const READ_BYTES_MAX: u64 = 256 << 20;
/// Flows of one question that are added up. Further ones are counted, by epochs that had them.
pub const FLOWS_MAX: usize = 50_000;
/// Rows of the history that are looked at to find epochs, those of algorithms that cannot tell
/// flows apart included.
const ROWS_MAX: usize = 16 * EPOCHS_MAX;

/// Which flows are asked for.
#[derive(Clone, Debug)]
pub struct FlowsAsked {
    /// The two points.
    pub segment: Segment,
    /// Class of traffic; every class when `None`.
    pub class: Option<String>,
    /// Name of the algorithm; every algorithm when `None`.
    pub algorithm: Option<String>,
    /// Epochs that start within.
    pub span: Span,
    /// The only flow, as answers name it; its course over time comes as well. Every flow when `None`.
    pub scope: Option<String>,
}

/// What is known of flows.
#[derive(Clone, Debug, Default)]
pub struct FlowsAnswer {
    /// One for each flow, class and algorithm.
    pub flows: Vec<Row>,
    /// Of the only flow that was asked for: one for each epoch, class and algorithm, in order of time.
    pub course: Vec<Row>,
    /// Epochs that they rest on.
    pub epochs: u64,
    /// Epochs without data.
    pub gaps: u64,
    /// From when to when anything is stored of the segment.
    pub stored: Option<Span>,
    /// Why flows are missing.
    pub reasons: Vec<String>,
    /// Files and records that could not be used.
    pub problems: Vec<String>,
    /// Whether all flows are there that there is a name of.
    pub is_whole: bool,
}

/// Why flows cannot be estimated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FlowsError {
    /// There are more epochs than one question may take. Ask for less.
    #[error(
        "more than {EPOCHS_MAX} epochs would have to be paired again: request a shorter time, one \
         class, or one algorithm"
    )]
    TooManyEpochs,
    /// The epochs are larger than one question may take. Ask for less.
    #[error(
        "more than {} MiB of epochs would have to be read: request a shorter time, one class, or \
         one algorithm",
        READ_BYTES_MAX >> 20
    )]
    TooManyBytes,
    /// The history cannot be read. See the message of the store.
    #[error(transparent)]
    History(#[from] HistoryError),
    /// The log cannot be read. See the message of the store.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Compares the epochs of a segment once more, flow by flow. `ask` answers from the history that
/// belongs to the log.
///
/// # Errors
/// When there is more to read than one question may take, or files cannot be listed.
pub fn flows(
    log: &Log,
    ask: impl FnOnce(&RowQuestion) -> Result<RowAnswer, HistoryError>,
    asked: &FlowsAsked,
) -> Result<FlowsAnswer, FlowsError> {
    let known = ask(&asked.question())?;
    if known.next.is_some() {
        return Err(FlowsError::TooManyEpochs);
    }
    let mut answer = FlowsAnswer {
        stored: known.stored,
        problems: known.problems.iter().map(ToString::to_string).collect(),
        ..FlowsAnswer::default()
    };
    let told_apart = |row: &&Row| {
        find(Purpose::Delay, &row.series.algorithm).is_some_and(|algorithm| algorithm.per_flow)
    };
    let (rows, others): (Vec<&Row>, Vec<&Row>) = known.rows.iter().partition(told_apart);
    answer.gaps = rows.iter().map(|row| row.gaps).sum();
    answer.note_others(&others);
    let comparables = comparables(&rows);
    let epochs: usize = comparables.iter().map(|comparable| comparable.epochs.len()).sum();
    if epochs > EPOCHS_MAX {
        return Err(FlowsError::TooManyEpochs);
    }
    if known.rows.is_empty() {
        answer.reasons.push("no estimate of that segment and time is stored".to_owned());
    }
    answer.compare_all(log, &comparables, FlowSums::of(asked.scope.clone()))?;
    Ok(answer)
}

impl FlowsAsked {
    /// The epochs that the engine has compared.
    fn question(&self) -> RowQuestion {
        RowQuestion {
            segment: Some(self.segment.clone()),
            class: self.class.clone(),
            algorithm: self.algorithm.clone(),
            scope: Some(Scope::All.to_string()),
            span: self.span,
            limit: ROWS_MAX,
            ..RowQuestion::all(Step::Epoch)
        }
    }
}

impl FlowsAnswer {
    /// Says of which algorithms no flows can be had.
    fn note_others(&mut self, rows: &[&Row]) {
        let mut names: Vec<&str> = rows.iter().map(|row| row.series.algorithm.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let reasons = names.iter().map(|name| format!("{name} does not separate flows"));
        self.reasons.extend(reasons);
    }

    fn compare_all(
        &mut self,
        log: &Log,
        comparables: &[Comparable],
        mut sums: FlowSums,
    ) -> Result<(), FlowsError> {
        let mut bytes_left = READ_BYTES_MAX;
        for comparable in comparables {
            let records = records::find(log, comparable, &mut bytes_left)?;
            let compared = compare(log, comparable, &records, &mut sums);
            self.epochs += compared.epochs;
            let lacking = (comparable.epochs.len() as u64).saturating_sub(compared.epochs);
            self.gaps += lacking;
            if lacking > 0 {
                let name = &comparable.series.algorithm;
                self.reasons.push(format!(
                    "{lacking} epochs of {name} are no longer stored, or cannot be paired again"
                ));
            }
            self.reasons.extend(compared.reason);
            self.problems.extend(compared.problems);
            self.problems.extend(records.problems);
        }
        self.reasons.extend(sums.overflow());
        let mut seen = BTreeSet::new();
        self.reasons.retain(|reason| seen.insert(reason.clone()));
        self.is_whole = sums.overflow().is_none() && self.gaps == 0 && self.problems.is_empty();
        (self.flows, self.course) = sums.into_rows();
        Ok(())
    }
}

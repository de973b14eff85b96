//! The raw epochs that it takes, found in the log but not yet read.

use twixt_measure::Stream;
use twixt_model::Span;
use twixt_store::{Depth, Found, Log, Query};
use twixt_synopsis::{ALGORITHMS, Purpose};

use super::FlowsError;
use super::series::Comparable;

/// What an epoch is read for. Names of flows come before the epochs that they are needed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Role {
    /// It may name flows that upstream saw.
    Names,
    Upstream,
    Downstream,
}

/// The epochs of a comparison.
#[derive(Debug, Default)]
pub(super) struct Records {
    /// By upstream's number, in order.
    pub(super) found: Vec<(i64, Role, Found)>,
    /// What of the log could not be read.
    pub(super) problems: Vec<String>,
}

/// Finds the epochs, their neighbours, and what may name flows in them.
pub(super) fn find(
    log: &Log,
    comparable: &Comparable,
    bytes_left: &mut u64,
) -> Result<Records, FlowsError> {
    let mut records = Records::default();
    let Span { start, end } = comparable.span();
    let shift = comparable.shift();
    let later = Span { start: start + shift, end: end + shift };
    let (upstream, downstream) = (&comparable.series.upstream, &comparable.series.downstream);
    records.add(log, upstream, Span { start, end }, comparable, Role::Upstream, bytes_left)?;
    records.add(log, downstream, later, comparable, Role::Downstream, bytes_left)?;
    records.found.sort_by_key(|(epoch, role, _)| (*epoch, *role));
    Ok(records)
}

impl Records {
    fn add(
        &mut self,
        log: &Log,
        point: &str,
        span: Span,
        comparable: &Comparable,
        end: Role,
        bytes_left: &mut u64,
    ) -> Result<(), FlowsError> {
        let mut scan = log.scan(Query::between(span).at_point(point).to_depth(Depth::Heads))?;
        for found in &mut scan {
            let ahead = if end == Role::Downstream { comparable.realigned_epochs } else { 0 };
            let epoch = found.epoch.0.saturating_sub(ahead);
            let Some(role) = role_of(&found, comparable, end) else { continue };
            if !comparable.is_near(epoch) {
                continue;
            }
            *bytes_left =
                bytes_left.checked_sub(found.stored_bytes).ok_or(FlowsError::TooManyBytes)?;
            self.found.push((epoch, role, found));
        }
        self.problems.extend(scan.report().damages.iter().map(ToString::to_string));
        Ok(())
    }
}

/// What a record of a point is good for.
fn role_of(found: &Found, comparable: &Comparable, end: Role) -> Option<Role> {
    let series = &comparable.series;
    let stream: Stream = found.stream.parse().ok()?;
    if stream.domain != series.domain || stream.class != series.class {
        return None;
    }
    let is_heavy = ALGORITHMS
        .iter()
        .any(|algorithm| algorithm.purpose == Purpose::Heavy && algorithm.name == stream.algorithm);
    match () {
        () if stream.algorithm == series.algorithm => Some(end),
        () if end == Role::Upstream && is_heavy => Some(Role::Names),
        () => None,
    }
}

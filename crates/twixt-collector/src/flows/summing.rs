//! Sums the estimates of each flow over epochs, in a bounded number of sums.

use std::collections::BTreeSet;

use twixt_history::{Row, SeriesKey, SeriesTotals};

use super::FLOWS_MAX;

/// Sums of flows.
#[derive(Debug, Default)]
pub(super) struct FlowSums {
    /// The only flow that is wanted, if one is.
    wanted: Option<String>,
    /// Its estimates, epoch by epoch: as many as epochs are paired again, at most.
    course: Vec<Row>,
    totals: SeriesTotals,
    /// Series and flows that are added up.
    known: BTreeSet<(SeriesKey, String)>, // at most FLOWS_MAX
    /// Rows of flows beyond the bound.
    refused: u64,
}

impl FlowSums {
    /// Sums of all flows, or of one, with its course over time.
    pub(super) fn of(wanted: Option<String>) -> Self {
        Self { wanted, ..Self::default() }
    }

    /// Adds the estimate of a flow in an epoch.
    pub(super) fn add(&mut self, row: &Row) {
        if let Some(wanted) = &self.wanted {
            if row.scope != *wanted {
                return;
            }
            self.course.push(row.clone());
        }
        let key = (row.series.clone(), row.scope.clone());
        if !self.known.contains(&key) {
            if self.known.len() >= FLOWS_MAX {
                self.refused += 1;
                return;
            }
            self.known.insert(key);
        }
        self.totals.add(row);
    }

    /// What was left out.
    pub(super) fn overflow(&self) -> Option<String> {
        let refused = self.refused;
        (refused > 0).then(|| {
            format!(
                "more than {FLOWS_MAX} flows: {refused} estimates of single epochs of other flows \
                 are left out; request a shorter time"
            )
        })
    }

    /// The sums, and the course of the only flow that was wanted, in order of time.
    pub(super) fn into_rows(self) -> (Vec<Row>, Vec<Row>) {
        let mut course = self.course;
        course.sort_by(|one, other| {
            (one.start_ns, &one.series).cmp(&(other.start_ns, &other.series))
        });
        (self.totals.rows().collect(), course)
    }
}

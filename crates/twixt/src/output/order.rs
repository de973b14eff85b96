//! In which order rows are shown.

use std::cmp::Ordering;

use clap::ValueEnum;
use twixt_model::Estimate;

/// `--sort`: the largest first, what is unknown last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SortKey {
    /// Mean delay
    Mean,
    /// 95th percentile
    P95,
    /// Share of packets lost
    Loss,
    /// Packets
    Packets,
    /// Jitter
    Jitter,
}

/// How many rows of a table are shown, and in which order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowsShown {
    pub(crate) most: usize,
    /// As given, if the user asked for an order.
    pub(crate) is_sorted: bool,
}

impl From<usize> for RowsShown {
    fn from(most: usize) -> Self {
        Self { most, is_sorted: false }
    }
}

impl SortKey {
    /// Puts estimates in order; those that are equal stay as they are.
    pub(crate) fn sort(self, estimates: &mut [Estimate]) {
        sort_by_value(estimates, |estimate| self.value(estimate));
    }

    fn value(self, estimate: &Estimate) -> Option<f64> {
        match self {
            Self::Mean => estimate.delay.map(|delay| delay.mean_ns()),
            Self::P95 => estimate.percentile(0.95).map(|found| found.time_ns as f64),
            Self::Loss => {
                let lost = estimate.evidence.loss_range()?.max as f64;
                Some(lost / estimate.evidence.packets.max(1) as f64)
            }
            Self::Packets => Some(estimate.evidence.packets as f64),
            Self::Jitter => estimate.jitter_ns(),
        }
    }
}

/// The largest first, what is unknown last.
pub(crate) fn sort_by_value<T>(rows: &mut [T], value: impl Fn(&T) -> Option<f64>) {
    rows.sort_by(|one, other| match (value(one), value(other)) {
        (Some(one), Some(other)) => other.total_cmp(&one),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => Ordering::Equal,
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_comes_first_and_the_unknown_last() {
        let mut rows = [Some(1.0), None, Some(-3.0), Some(7.0)];
        sort_by_value(&mut rows, |row| *row);
        assert_eq!(rows, [Some(7.0), Some(1.0), Some(-3.0), None]);
    }
}

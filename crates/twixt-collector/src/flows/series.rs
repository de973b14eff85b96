//! Which epochs of two points belong together, as the history has it.

use std::collections::{BTreeMap, BTreeSet};

use twixt_history::{Row, SeriesKey};
use twixt_model::{Delay, Span, Timestamp};

/// Epochs of a series that are compared in one go: downstream's numbers are larger by the same
/// everywhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Comparable {
    pub(super) series: SeriesKey,
    pub(super) realigned_epochs: i64,
    /// By upstream's numbers. Never empty.
    pub(super) epochs: BTreeSet<i64>,
}

/// What rows of epochs say can be compared.
pub(super) fn comparables(rows: &[&Row]) -> Vec<Comparable> {
    let mut sorted: BTreeMap<(&SeriesKey, i64), BTreeSet<i64>> = BTreeMap::new();
    for row in rows.iter().filter(|row| !row.is_gap()) {
        let Some(epoch) = row.epoch else { continue };
        let key = (&row.series, row.realigned_epochs.unwrap_or(0));
        sorted.entry(key).or_default().insert(epoch);
    }
    let comparable = |((series, realigned_epochs), epochs): ((&SeriesKey, i64), BTreeSet<i64>)| {
        Comparable { series: series.clone(), realigned_epochs, epochs }
    };
    sorted.into_iter().map(comparable).collect()
}

impl Comparable {
    /// By how much downstream's times are later to find their epoch.
    pub(super) fn shift(&self) -> Delay {
        Delay::from_nanos(self.realigned_epochs.saturating_mul(self.series.epoch_ns))
    }

    /// Whether an epoch, by upstream's number, helps to compare: packets in flight at the
    /// boundaries of one are sorted out with the help of its neighbours.
    pub(super) fn is_near(&self, epoch: i64) -> bool {
        let (from, to) = (epoch.saturating_sub(1), epoch.saturating_add(1));
        self.epochs.range(from..=to).next().is_some()
    }

    /// The time of all of them, and of their neighbours, by upstream's clock.
    pub(super) fn span(&self) -> Span {
        let length_ns = self.series.epoch_ns;
        let (Some(&first), Some(&last), true) =
            (self.epochs.first(), self.epochs.last(), length_ns > 0)
        else {
            return Span { start: Timestamp::MIN, end: Timestamp::MAX };
        };
        let start_ns = first.saturating_sub(1).saturating_mul(length_ns);
        let end_ns = last.saturating_add(2).saturating_mul(length_ns);
        Span { start: Timestamp::from_nanos(start_ns), end: Timestamp::from_nanos(end_ns) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(algorithm: &str, epoch: i64, realigned_epochs: i64) -> Row {
        let series =
            SeriesKey { algorithm: algorithm.to_owned(), epoch_ns: 1_000, ..SeriesKey::default() };
        Row {
            series,
            epoch: Some(epoch),
            epochs: 1,
            realigned_epochs: Some(realigned_epochs),
            ..Row::default()
        }
    }

    #[test]
    fn epochs_are_compared_with_those_that_they_were_compared_with() {
        let mut gap = row("lds", 9, 0);
        gap.epochs = 0;
        let rows = [row("lds", 5, 0), row("exact", 5, 0), row("lds", 6, 0), row("lds", 7, 3), gap];
        let found = comparables(&rows.iter().collect::<Vec<_>>());
        let found: Vec<(&str, i64, Vec<i64>)> = found
            .iter()
            .map(|one| {
                let epochs = one.epochs.iter().copied().collect();
                (one.series.algorithm.as_str(), one.realigned_epochs, epochs)
            })
            .collect();
        assert_eq!(found, [("exact", 0, vec![5]), ("lds", 0, vec![5, 6]), ("lds", 3, vec![7])]);
    }

    #[test]
    fn neighbours_are_read_too() {
        let rows = [row("lds", 5, 3), row("lds", 8, 3)];
        let one = &comparables(&rows.iter().collect::<Vec<_>>())[0];
        let near: Vec<i64> = (0..12).filter(|&epoch| one.is_near(epoch)).collect();
        assert_eq!(near, [4, 5, 6, 7, 8, 9]);
        assert_eq!((one.span().start.as_nanos(), one.span().end.as_nanos()), (4_000, 10_000));
        assert_eq!(one.shift().as_nanos(), 3_000);
    }
}

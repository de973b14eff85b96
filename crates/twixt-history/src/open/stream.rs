//! Names of streams in the log of an hour: a series, and whether the record is a gap.

use xxhash_rust::xxh3::xxh3_64;

use super::SHARDS;
use crate::row::{Row, SeriesKey};

/// The shard of a segment.
pub(crate) fn shard_of(upstream: &str, downstream: &str) -> u64 {
    xxh3_64(format!("{}:{upstream}{downstream}", upstream.len()).as_bytes()) % SHARDS
}

/// The stream of a row: each part of the series behind its length.
pub(crate) fn stream_of(row: &Row) -> String {
    let series = &row.series;
    let kind = if row.is_gap() { "gap" } else { "estimate" };
    let epoch_ns = series.epoch_ns.to_string();
    let parts = [
        kind,
        &series.domain,
        &series.upstream,
        &series.downstream,
        &series.class,
        &series.algorithm,
        &epoch_ns,
    ];
    parts.iter().map(|part| format!("{}:{part}", part.len())).collect()
}

/// The series of a stream; `None` if that is no name of ours.
pub(crate) fn series_of(stream: &str) -> Option<SeriesKey> {
    let mut rest = stream;
    let mut next = || {
        let (length, behind) = rest.split_once(':')?;
        let (part, left) = behind.split_at_checked(length.parse().ok()?)?;
        rest = left;
        Some(part.to_owned())
    };
    let _kind = next()?;
    let (domain, upstream, downstream) = (next()?, next()?, next()?);
    let (class, algorithm) = (next()?, next()?);
    let epoch_ns = next()?.parse().ok()?;
    let series = SeriesKey { upstream, downstream, class, algorithm, domain, epoch_ns };
    rest.is_empty().then_some(series)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{gap, row};

    #[test]
    fn series_have_names_of_their_own() {
        for (upstream, downstream) in [("a", "b"), ("a:", "1:b"), ("", ""), ("zürich", "→")] {
            let row = row(upstream, downstream, 0);
            assert_eq!(series_of(&stream_of(&row)), Some(row.series));
        }
        assert_ne!(stream_of(&row("ab", "c", 0)), stream_of(&row("a", "bc", 0)));
        assert_ne!(stream_of(&row("a", "b", 0)), stream_of(&gap("a", "b", 0)));
        for other in ["", "3:lab", "99:x", "estimate", "8:estimate1:a1:b1:c1:d1:e1:f"] {
            assert_eq!(series_of(other), None, "{other}");
        }
    }
}

//! Reads from the log what the engine still needs after a start, in order of time.

use std::collections::BTreeMap;
use std::io;

use tracing::warn;
use twixt_measure::Sealed;
use twixt_model::{Span, Timestamp};
use twixt_store::{Depth, Found, Log, Query};

use crate::engine::Concluded;

/// Of points whose epochs never came to a conclusion, this much is read.
const UNPAIRED_NS: i64 = 3_600 * 1_000_000_000;
/// Read and sorted at a time: bounds memory, whatever the time to catch up with.
const STRETCH_NS: i64 = 600 * 1_000_000_000;

/// Hands over the epochs that are needed to go on, and returns how many there were. What cannot
/// be read is said, and left out.
pub(super) fn replay(
    log: &Log,
    concluded: &[Concluded],
    now: Timestamp,
    mut take: impl FnMut(Sealed) -> io::Result<bool>,
) -> io::Result<u64> {
    if !log.folder().is_dir() {
        return Ok(0);
    }
    let starts = starts(log, concluded, now)?;
    let Some(&first) = starts.values().min() else { return Ok(0) };
    let mut replayed = 0;
    let mut start_ns = first;
    let end_ns = last_end(log, &starts)?;
    while start_ns <= end_ns {
        let next_ns = start_ns.saturating_add(STRETCH_NS);
        for found in stretch(log, &starts, start_ns, next_ns)? {
            if let Some(sealed) = read(log, &found) {
                take(sealed)?;
                replayed += 1;
            }
        }
        if next_ns == start_ns {
            break;
        }
        start_ns = next_ns;
    }
    Ok(replayed)
}

/// From when on the epochs of each point are needed.
fn starts(log: &Log, concluded: &[Concluded], now: Timestamp) -> io::Result<BTreeMap<String, i64>> {
    let recent = now.as_nanos().saturating_sub(UNPAIRED_NS);
    let points = log.points().map_err(io::Error::other)?;
    let mut starts = BTreeMap::new();
    for point in points {
        let involved = concluded.iter().filter_map(|concluded| start_of(concluded, &point));
        starts.insert(point.clone(), involved.min().unwrap_or(recent));
    }
    Ok(starts)
}

/// From when on a series needs the epochs of a point, if it is one of its ends.
fn start_of(concluded: &Concluded, point: &str) -> Option<i64> {
    let segment = &concluded.series.segment;
    let length_ns = concluded.series.epoch_ns?;
    let ahead = concluded.realigned_epochs.unwrap_or(0);
    let first = concluded.replay_from.0;
    let ends = [(&segment.upstream, first), (&segment.downstream, first.saturating_add(ahead))];
    let needed = ends.into_iter().filter(|(end, _)| end.0 == point);
    needed.map(|(_, epoch)| epoch.saturating_mul(length_ns)).min()
}

/// When the last epoch that is needed ends.
fn last_end(log: &Log, starts: &BTreeMap<String, i64>) -> io::Result<i64> {
    let mut last = i64::MIN;
    for (point, &start_ns) in starts {
        let span = Span { start: Timestamp::from_nanos(start_ns), end: Timestamp::MAX };
        let query = Query::between(span).at_point(point).to_depth(Depth::Heads);
        let scan = log.scan(query).map_err(io::Error::other)?;
        last = scan.map(|found| found.span.start.as_nanos()).fold(last, i64::max);
    }
    Ok(last)
}

/// The epochs that begin in a stretch of time, in order: both halves of an epoch come together.
fn stretch(
    log: &Log,
    starts: &BTreeMap<String, i64>,
    start_ns: i64,
    next_ns: i64,
) -> io::Result<Vec<Found>> {
    let mut epochs = Vec::new();
    for (point, &needed_ns) in starts {
        let span =
            Span { start: Timestamp::from_nanos(start_ns), end: Timestamp::from_nanos(next_ns) };
        let query = Query::between(span).at_point(point).to_depth(Depth::Heads);
        let begins = |found: &Found| {
            let begin = found.span.start.as_nanos();
            (start_ns.max(needed_ns)..next_ns).contains(&begin)
        };
        epochs.extend(log.scan(query).map_err(io::Error::other)?.filter(begins));
    }
    epochs.sort_by_key(|found| (found.span.start, found.epoch));
    Ok(epochs)
}

fn read(log: &Log, found: &Found) -> Option<Sealed> {
    let payload = log.payload(found).map_err(|damage| damage.to_string());
    let sealed = payload.and_then(|payload| {
        Sealed::from_bytes(&payload).map_err(|error| found.damage(&error.to_string()).to_string())
    });
    sealed.inspect_err(|problem| warn!(%problem, "an epoch of the log cannot be read")).ok()
}

//! Reads from the log what the engine still needs after a start, in order of time.

use std::collections::BTreeSet;
use std::io;

use twixt_engine::{SegmentConfig, SeriesProgress};
use twixt_measure::Sealed;
use twixt_model::{Span, Timestamp};
use twixt_store::{Depth, Found, Log, Query};

use super::late::read;
use super::needs::Needs;

/// Read and sorted at a time: bounds memory, whatever the time to catch up with.
const SLICE_NS: i64 = 600 * 1_000_000_000;

/// The epochs that are needed to go on, in order of time.
#[derive(Debug)]
pub(super) struct Replay {
    log: Log,
    needs: Needs,
    slices: BTreeSet<i64>,
    /// What is left of the present slice.
    found: std::vec::IntoIter<Found>,
    replayed: u64,
}

impl Replay {
    pub(super) fn new(
        log: &Log,
        progress: &[SeriesProgress],
        segments: &[SegmentConfig],
        now: Timestamp,
    ) -> io::Result<Self> {
        let needs = Needs::new(progress, segments, now);
        let slices = match log.has_folder().map_err(io::Error::other)? {
            true => needs.slices(log)?,
            false => BTreeSet::new(),
        };
        let found = Vec::new().into_iter();
        Ok(Self { log: log.clone(), needs, slices, found, replayed: 0 })
    }

    /// The next epoch. What is damaged is logged, and left out.
    pub(super) fn next(&mut self) -> io::Result<Option<Sealed>> {
        loop {
            while let Some(found) = self.found.as_slice().first() {
                let sealed = read(&self.log, found)?;
                self.found.next();
                if sealed.is_some() {
                    self.replayed += 1;
                    return Ok(sealed);
                }
            }
            let Some(&slice) = self.slices.first() else { return Ok(None) };
            self.found = self.needs.within(&self.log, slice)?.into_iter();
            self.slices.remove(&slice);
        }
    }

    /// How many there were so far.
    pub(super) const fn replayed(&self) -> u64 {
        self.replayed
    }
}

impl Needs {
    /// The intervals of time in which something is needed, by number.
    fn slices(&self, log: &Log) -> io::Result<BTreeSet<i64>> {
        let mut slices = BTreeSet::new();
        for point in log.points().map_err(io::Error::other)? {
            let start = Timestamp::from_nanos(self.of_point_ns(&point));
            let span = Span { start, end: Timestamp::MAX };
            self.scan(log, &point, span, |found| slices.extend([slice_of(&found)]))?;
        }
        Ok(slices)
    }

    /// What is needed in an interval, in order: both halves of an epoch come together.
    fn within(&self, log: &Log, slice: i64) -> io::Result<Vec<Found>> {
        let start_ns = slice.saturating_mul(SLICE_NS);
        let start = Timestamp::from_nanos(start_ns);
        let end = Timestamp::from_nanos(start_ns.saturating_add(SLICE_NS));
        let mut needed = Vec::new();
        for point in log.points().map_err(io::Error::other)? {
            let is_within = |found: &Found| slice_of(found) == slice;
            self.scan(log, &point, Span { start, end }, |found| {
                needed.extend(Some(found).filter(is_within));
            })?;
        }
        needed.sort_by_key(|found| (found.span.start, found.epoch));
        Ok(needed)
    }

    /// An error if something cannot be read that may be sound: it would be missing from estimates.
    fn scan(&self, log: &Log, point: &str, span: Span, take: impl FnMut(Found)) -> io::Result<()> {
        let query = Query::between(span).at_point(point).to_depth(Depth::Heads);
        let mut scan = log.scan(query).map_err(io::Error::other)?;
        scan.by_ref().filter(|found| self.wants(found)).for_each(take);
        scan.finish().map(drop).map_err(io::Error::other)
    }
}

fn slice_of(found: &Found) -> i64 {
    found.span.start.as_nanos().div_euclid(SLICE_NS)
}

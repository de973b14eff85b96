//! The epochs of both points that a query needs, read one by one.

use std::collections::BTreeSet;

use twixt_measure::{Sealed, Stream};
use twixt_model::{Epoch, EpochRule, PointId, Segment, Span, Timestamp};
use twixt_store::{Damage, Depth, Found, Log, Query};

use super::document::Missing;
use super::families::Families;
use super::{Args, EpochRange, Touched};
use crate::exit::{no_answer, usage};
use crate::measure::{End, Measured, Plan, Recordings, rough_delay};

/// Records that one query may need. Their heads are held in memory.
const RECORDS_MAX: usize = 1 << 21;

/// Records of both points, found but not yet read.
pub(super) struct Epochs<'a> {
    log: &'a Log,
    args: &'a Args,
    /// In the order of epochs.
    records: Vec<(End, Found)>,
    first: Sealed,
    asked: EpochRange,
    damages: Vec<Damage>,
    unfinished_bytes: u64,
    touched: Touched,
}

impl<'a> Epochs<'a> {
    /// Finds the records of a stretch of time, and those of the epochs beside it: packets in
    /// flight at the ends are sorted out with their help.
    pub(super) fn find(
        log: &'a Log,
        args: &'a Args,
        families: &Families,
        span: Span,
    ) -> anyhow::Result<Self> {
        let mut epochs = Self::heads(log, args, families, span)?;
        epochs.touched.add(families.touched);
        let asked = epochs.asked.clone();
        if let Some(length_ns) = epochs.first.rule.length_ns() {
            let beside = twixt_model::Delay::from_nanos(length_ns.saturating_mul(2));
            let wider = Span { start: span.start - beside, end: span.end + beside };
            let beside = Self::heads(log, args, families, wider)?;
            epochs.records = beside.records;
            epochs.touched.add(beside.touched);
            let near =
                Epoch(asked.start().0.saturating_sub(1))..=Epoch(asked.end().0.saturating_add(1));
            epochs.records.retain(|(_, found)| near.contains(&found.epoch));
        }
        Ok(epochs)
    }

    fn heads(
        log: &'a Log,
        args: &'a Args,
        families: &Families,
        span: Span,
    ) -> anyhow::Result<Self> {
        let mut records = Vec::new();
        let (mut damages, mut unfinished_bytes) = (Vec::new(), 0);
        let mut touched = Touched::default();
        let ends = [
            (End::Upstream, &args.from, &families.upstream),
            (End::Downstream, &args.to, &families.downstream),
        ];
        for (end, point, family) in ends {
            let query = Query::between(span).at_point(point).to_depth(Depth::Heads);
            let mut scan = log.scan(query)?;
            let of_family = |found: &Found| {
                found.stream.parse().is_ok_and(|stream: Stream| stream.family() == *family)
            };
            records.extend(
                scan.by_ref().filter(of_family).map(|found| (end, found)).take(RECORDS_MAX),
            );
            damages.extend(scan.report().damages.iter().cloned());
            unfinished_bytes += scan.report().unfinished_bytes;
            touched.add_heads(scan.report());
        }
        if records.len() >= RECORDS_MAX {
            return Err(usage(
                "too many epochs for one query: ask for less with --start and --end",
            ));
        }
        records.sort_by_key(|(end, found)| (found.epoch, *end));
        let first = records.iter().find_map(|(_, found)| {
            touched.add_record(found);
            read(log, found).ok()
        });
        let first = first.ok_or_else(|| no_answer("no record of that time can be read"))?;
        let (Some((_, low)), Some((_, high))) = (records.first(), records.last()) else {
            return Err(no_answer("there is no record of that time"));
        };
        let asked = low.epoch..=high.epoch;
        Ok(Self { log, args, records, first, asked, damages, unfinished_bytes, touched })
    }

    /// An epoch that tells how all of them were recorded.
    pub(super) const fn first(&self) -> &Sealed {
        &self.first
    }

    /// How many epochs are asked for.
    pub(super) const fn count(&self) -> u64 {
        self.asked.end().0.abs_diff(self.asked.start().0).saturating_add(1)
    }

    /// What was read of the store so far.
    pub(super) const fn touched(&self) -> Touched {
        self.touched
    }

    /// Reads and pairs them. Afterwards it is known what could not be read.
    pub(super) fn pair(&mut self, plan: &Plan<'_>) -> Measured {
        let recordings = Recordings {
            segment: Segment {
                upstream: PointId(self.args.from.clone()),
                downstream: PointId(self.args.to.clone()),
            },
            reference: self.reference(),
            asked: self.asked.clone(),
        };
        self.records.iter().for_each(|(_, found)| self.touched.add_record(found));
        let (log, asked, damages) = (self.log, &self.asked, &mut self.damages);
        let sealed = self.records.iter().filter_map(|(end, found)| match read(log, found) {
            Ok(sealed) => Some((*end, sealed)),
            Err(damage) => {
                if asked.contains(&found.epoch) {
                    damages.push(damage);
                }
                None
            }
        });
        recordings.pair(plan, sealed)
    }

    /// What is not there, as far as that is known by now. Where packets just begin or end, one
    /// point may well have an epoch more: it counts as missing only if it was missed.
    pub(super) fn missing(&self, measured: &Measured) -> Missing {
        let problems = measured.concluded.iter().flat_map(|concluded| &concluded.problems);
        let missed: BTreeSet<Epoch> = problems.map(|problem| problem.epoch).collect();
        let absent = |end: End| {
            let there = self
                .records
                .iter()
                .filter(|(of, found)| *of == end || !missed.contains(&found.epoch));
            let there: BTreeSet<Epoch> = there.map(|(_, found)| found.epoch).collect();
            match self.first.rule {
                EpochRule::WHOLE => Vec::new(),
                _ => gaps(&there, &self.asked),
            }
        };
        Missing {
            points: [self.args.from.clone(), self.args.to.clone()],
            absent: [absent(End::Upstream), absent(End::Downstream)],
            rule: self.first.rule,
            damages: self.damages.clone(),
            unfinished_bytes: self.unfinished_bytes,
        }
    }

    /// The delay that the first packets of the first common epoch let expect.
    fn reference(&self) -> twixt_model::Delay {
        let start = |end: End, epoch: Epoch| -> Option<Timestamp> {
            let of_epoch =
                self.records.iter().filter(|(of, found)| *of == end && found.epoch == epoch);
            of_epoch.map(|(_, found)| found.span.start).min()
        };
        let common = self.records.windows(2).find_map(|pair| {
            let [(one, found), (other, next)] = pair else { return None };
            (one != other && found.epoch == next.epoch).then_some(found.epoch)
        });
        let start_of = |end| common.and_then(|epoch| start(end, epoch));
        rough_delay(start_of(End::Upstream), start_of(End::Downstream))
    }
}

/// Reads an epoch.
fn read(log: &Log, found: &Found) -> Result<Sealed, Damage> {
    let payload = log.payload(found)?;
    Sealed::from_bytes(&payload).map_err(|error| found.damage(&error.to_string()))
}

/// Runs of epochs that are not there.
fn gaps(there: &BTreeSet<Epoch>, asked: &EpochRange) -> Vec<EpochRange> {
    let mut gaps = Vec::new();
    let mut next = asked.start().0;
    let present = there.range(asked.clone()).map(|epoch| epoch.0);
    // The end is a bound like one that is there, were it one further.
    for epoch in present.chain([asked.end().0.saturating_add(1)]) {
        if epoch > next {
            gaps.push(Epoch(next)..=Epoch(epoch - 1));
        }
        next = epoch.saturating_add(1);
    }
    gaps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_what_is_not_there() {
        let check = |there: &[i64], expected: &[(i64, i64)]| {
            let there = there.iter().map(|&epoch| Epoch(epoch)).collect();
            let found: Vec<(i64, i64)> = gaps(&there, &(Epoch(3)..=Epoch(9)))
                .iter()
                .map(|gap| (gap.start().0, gap.end().0))
                .collect();
            assert_eq!(found, expected);
        };
        check(&[3, 4, 5, 6, 7, 8, 9], &[]);
        check(&[], &[(3, 9)]);
        check(&[2, 5, 6, 10], &[(3, 4), (7, 9)]);
        check(&[3, 9], &[(4, 8)]);
    }
}

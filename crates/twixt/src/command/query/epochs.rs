//! The epochs of both points that a query needs, read one by one.

use std::collections::BTreeSet;

use twixt_measure::Sealed;
use twixt_model::{Epoch, EpochRule, PointId, Segment, Side, Span, Timestamp};
use twixt_offline::{Measured, Plan, Recordings, Split, rough_delay};
use twixt_store::{Damage, Found, Log, Payloads};
use twixt_synopsis::{By, KnownFlow};

use super::ahead::read_ahead;
use super::document::Missing;
use super::families::{Families, is_of};
use super::heads::Heads;
use super::{Args, EpochRange, Touched};
use crate::exit::no_answer;

/// Records of both points, found but not yet read.
pub(super) struct Epochs<'a> {
    log: &'a Log,
    args: &'a Args,
    /// In the order of epochs.
    records: Vec<(Side, Found)>,
    first: Sealed,
    asked: EpochRange,
    /// Whether both points were set up alike.
    are_alike: bool,
    damages: Vec<Damage>,
    unfinished_bytes: u64,
    touched: Touched,
}

impl<'a> Epochs<'a> {
    /// Finds the records of an interval of time, and those of the epochs beside it: packets in
    /// flight at the ends are sorted out with their help.
    pub(super) fn find(
        log: &'a Log,
        args: &'a Args,
        families: Families,
        span: Span,
    ) -> anyhow::Result<Self> {
        let are_alike = families.are_alike();
        let Families { upstream, downstream, heads } = families;
        let families = [upstream.as_str(), downstream.as_str()];
        let (mut damages, mut unfinished_bytes) = (Vec::new(), 0);
        let mut touched = Touched::default();
        for heads in &heads {
            damages.extend(heads.damages.iter().cloned());
            unfinished_bytes += heads.unfinished_bytes;
            touched.add(heads.touched);
        }
        let mut records = in_order(heads, families);
        let (Some((_, low)), Some((_, high))) = (records.first(), records.last()) else {
            return Err(no_answer("no record of that time"));
        };
        let asked = low.epoch..=high.epoch;
        // Any flow will do to learn how they were recorded, which is no reason to read all of one.
        let anyone = [KnownFlow::default()];
        let mut payloads = log.payloads();
        let first = records.iter().find_map(|(_, found)| {
            touched.add_record(found);
            read(&mut payloads, found, &anyone).ok()
        });
        let first = first.ok_or_else(|| no_answer("no readable record of that time"))?;
        if let Some(length_ns) = first.rule.length_ns() {
            let beside = twixt_model::Delay::from_nanos(length_ns.saturating_mul(2));
            let wider = Span { start: span.start - beside, end: span.end + beside };
            let heads = [Heads::find(log, &args.from, wider)?, Heads::find(log, &args.to, wider)?];
            heads.iter().for_each(|heads| touched.add(heads.touched));
            let near =
                Epoch(asked.start().0.saturating_sub(1))..=Epoch(asked.end().0.saturating_add(1));
            records = in_order(heads, families);
            records.retain(|(_, found)| near.contains(&found.epoch));
        }
        Ok(Self { log, args, records, first, asked, are_alike, damages, unfinished_bytes, touched })
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
    pub(super) fn pair(&mut self, plan: &Plan) -> Measured {
        let recordings = Recordings {
            segment: Segment {
                upstream: PointId(self.args.from.clone()),
                downstream: PointId(self.args.to.clone()),
            },
            reference: self.reference(),
            asked: self.asked.clone(),
        };
        self.records.iter().for_each(|(_, found)| self.touched.add_record(found));
        let flows = self.only_flows(plan);
        let (asked, damages) = (&self.asked, &mut self.damages);
        let read = |payloads: &mut Payloads<'_>, (end, found): &(Side, Found)| {
            read(payloads, found, &flows)
                .map(|sealed| (*end, sealed))
                .map_err(|damage| (found.epoch, damage))
        };
        read_ahead(
            &self.records,
            || self.log.payloads(),
            read,
            |records| {
                let sealed = records.filter_map(|record| match record {
                    Ok(sealed) => Some(sealed),
                    Err((epoch, damage)) => {
                        if asked.contains(&epoch) {
                            damages.push(damage);
                        }
                        None
                    }
                });
                recordings.pair(plan, sealed)
            },
        )
    }

    /// The flows that are asked about, if nothing else is: epochs are read no further than that.
    /// Points with different settings are compared by folding, which takes all there is.
    fn only_flows(&self, plan: &Plan) -> Vec<KnownFlow> {
        let by_flow = matches!(plan.split, Split::By(By::Flow | By::Prefix { .. } | By::Port));
        match by_flow && self.are_alike {
            true => plan.flows.known(&plan.digest.digester()),
            false => Vec::new(),
        }
    }

    /// What is not there, as far as that is known by now. Where packets just begin or end, one
    /// point may well have an epoch more: it counts as missing only if it was missed.
    pub(super) fn missing(&self, measured: &Measured) -> Missing {
        let problems = measured.concluded.iter().flat_map(|concluded| &concluded.problems);
        let missed: BTreeSet<Epoch> = problems.map(|problem| problem.epoch).collect();
        let absent = |end: Side| {
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
            absent: [absent(Side::Upstream), absent(Side::Downstream)],
            rule: self.first.rule,
            damages: self.damages.clone(),
            unfinished_bytes: self.unfinished_bytes,
        }
    }

    /// The delay that the first packets of the first common epoch let expect.
    fn reference(&self) -> twixt_model::Delay {
        let start = |end: Side, epoch: Epoch| -> Option<Timestamp> {
            let of_epoch =
                self.records.iter().filter(|(of, found)| *of == end && found.epoch == epoch);
            of_epoch.map(|(_, found)| found.span.start).min()
        };
        let common = self.records.windows(2).find_map(|pair| {
            let [(one, found), (other, next)] = pair else { return None };
            (one != other && found.epoch == next.epoch).then_some(found.epoch)
        });
        let start_of = |end| common.and_then(|epoch| start(end, epoch));
        rough_delay(start_of(Side::Upstream), start_of(Side::Downstream))
    }
}

/// Records of both points, each of its own family, in the order of epochs.
fn in_order(heads: [Heads; 2], families: [&str; 2]) -> Vec<(Side, Found)> {
    let ends = [Side::Upstream, Side::Downstream].into_iter().zip(heads).zip(families);
    let records = ends.flat_map(|((end, heads), family)| {
        let records = heads.records.into_iter().filter(move |found| is_of(found, family));
        records.map(move |found| (end, found))
    });
    let mut records: Vec<(Side, Found)> = records.collect();
    records.sort_by_key(|(end, found)| (found.epoch, *end));
    records
}

/// Reads an epoch as far as it takes to answer for some flows; all of it, if none are named. The
/// store compares checksums.
fn read(payloads: &mut Payloads<'_>, found: &Found, flows: &[KnownFlow]) -> Result<Sealed, Damage> {
    let payload = payloads.read(found)?;
    Sealed::about(payload, flows).map_err(|error| found.damage(&error.to_string()))
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

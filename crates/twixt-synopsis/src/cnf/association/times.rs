//! Records that wait until all of their flow that may matter to them has come, and are judged by
//! their times then.

use std::collections::{HashMap, VecDeque};

use foldhash::fast::RandomState;
use twixt_model::{ClassId, FlowKey, FlowRecord, Side, Timestamp};

use super::timing::{Judge, Neighbours, TimingBounds, TimingVerdict};
use super::{Associated, AssociationCounts};

/// Records of both points in the order in which they came, so that memory is touched in that
/// order too, and their flows, of which little is kept.
#[derive(Debug)]
pub(super) struct Times {
    bounds: TimingBounds,
    held: VecDeque<Held>,
    /// The number of the first of `held`: records are numbered as they come.
    first: u64,
    flows: HashMap<(FlowKey, ClassId), Flow, RandomState>,
    /// A record is looked at so long after it is due, and all of its flow that is due by then is
    /// concluded with it: a flow of many records is not looked through for each.
    pace_ns: i64,
    /// Room for the records of the flow that is looked at, upstream and downstream.
    lanes: [Lane; 2],
}

/// The looks at a flow within a window: each costs time, fewer cost memory.
const LOOKS_PER_WINDOW: i64 = 8;

#[derive(Debug)]
struct Held {
    record: FlowRecord,
    side: Side,
    is_concluded: bool,
    /// The number of the record of the flow that came before; it may be gone.
    older: Option<u64>,
}

#[derive(Debug, Default)]
struct Flow {
    /// The number of the record that came last.
    newest: Option<u64>,
    waiting: usize,
    /// Ends of the latest records that are concluded.
    upstream_end: Option<Timestamp>,
    downstream_end: Option<Timestamp>,
    out_of_step: bool,
}

/// Records that ended before these times have waited long enough; `None`: all have.
#[derive(Clone, Copy)]
struct Due {
    upstream: Option<Timestamp>,
    /// Where clocks differ, the partner of an upstream record that is not yet due looks older:
    /// downstream records wait longer.
    downstream: Option<Timestamp>,
}

impl Times {
    pub(super) fn new(bounds: TimingBounds, window_ns: i64) -> Self {
        let (held, flows) = (VecDeque::new(), HashMap::default());
        let pace_ns = window_ns / LOOKS_PER_WINDOW;
        Self { bounds, held, first: 0, flows, pace_ns, lanes: Default::default() }
    }

    pub(super) fn len(&self) -> usize {
        self.held.len()
    }

    /// How long a pair may wait after it is due, with the time for which its record was open.
    pub(super) const fn longest_wait_ns(&self) -> i64 {
        self.pace_ns.saturating_add(self.bounds.active_timeout_ns)
    }

    pub(super) fn offer(&mut self, side: Side, record: FlowRecord) {
        let flow = self.flows.entry((record.key, record.class)).or_default();
        let older = flow.newest.replace(self.first + self.held.len() as u64);
        flow.waiting += 1;
        self.held.push_back(Held { record, side, is_concluded: false, older });
    }

    /// Concludes records that ended before that time.
    pub(super) fn conclude_older(
        &mut self,
        before: Timestamp,
        ready: &mut VecDeque<Associated>,
        counts: &mut AssociationCounts,
    ) {
        let overdue = Timestamp::from_nanos(before.as_nanos().saturating_sub(self.pace_ns));
        let due = Due { upstream: Some(before), downstream: Some(overdue) };
        while let Some(held) = self.held.front()
            && (held.is_concluded || held.record.last < overdue)
        {
            self.conclude_first(due, ready, counts);
        }
    }

    pub(super) fn conclude_all(
        &mut self,
        ready: &mut VecDeque<Associated>,
        counts: &mut AssociationCounts,
    ) {
        while !self.held.is_empty() {
            self.conclude_first(Due { upstream: None, downstream: None }, ready, counts);
        }
    }

    /// Lets go of the first record, once what is due of its flow is concluded.
    fn conclude_first(
        &mut self,
        due: Due,
        ready: &mut VecDeque<Associated>,
        counts: &mut AssociationCounts,
    ) {
        if let Some(Held { record, is_concluded: false, .. }) = self.held.front() {
            self.conclude_flow((record.key, record.class), due, ready, counts);
        }
        self.held.pop_front();
        self.first += 1;
    }

    fn conclude_flow(
        &mut self,
        name: (FlowKey, ClassId),
        due: Due,
        ready: &mut VecDeque<Associated>,
        counts: &mut AssociationCounts,
    ) {
        let Self { held, first, flows, bounds, lanes, .. } = self;
        let flow = flows.get_mut(&name).expect("a record that waits has its flow");
        fill(lanes, held, *first, flow);
        let [upstream, downstream] = lanes;
        let upstream_done = upstream.ended(due.upstream);
        let mut judge = Judge {
            upstream: upstream.after(flow.upstream_end),
            downstream: downstream.after(flow.downstream_end),
            bounds,
            from: 0,
            out_of_step: flow.out_of_step,
        };
        for (place, &record) in upstream.records[..upstream_done].iter().enumerate() {
            conclude(record, judge.verdict(place), &downstream.records, ready, counts);
        }
        let downstream_done = judge.from.max(downstream.ended(due.downstream));
        flow.out_of_step = judge.out_of_step;
        flow.upstream_end = upstream.end_of(upstream_done).or(flow.upstream_end);
        flow.downstream_end = downstream.end_of(downstream_done).or(flow.downstream_end);
        let done = [&upstream.numbers[..upstream_done], &downstream.numbers[..downstream_done]];
        for number in done.into_iter().flatten() {
            held[(number - *first) as usize].is_concluded = true;
            flow.waiting -= 1;
        }
        // The ends of a flow of which nothing waits are older than the window: no record that is
        // still to come begins within a timeout of them.
        if flow.waiting == 0 {
            flows.remove(&name);
        }
    }
}

/// Fills the lanes with the records of a flow that wait upstream and downstream.
fn fill(lanes: &mut [Lane; 2], held: &VecDeque<Held>, first: u64, flow: &Flow) {
    lanes.iter_mut().for_each(Lane::clear);
    let (mut next, mut left) = (flow.newest, flow.waiting);
    // Each step may be far in memory: none is taken beyond the last that waits.
    while left > 0
        && let Some(number) = next
    {
        let Held { record, side, is_concluded, older } = &held[(number - first) as usize];
        if !is_concluded {
            let lane = &mut lanes[usize::from(*side == Side::Downstream)];
            lane.records.push(*record);
            lane.numbers.push(number);
            left -= 1;
        }
        next = *older;
    }
    lanes.iter_mut().for_each(Lane::order);
}

/// The records of a flow that wait at one point, by their first times, and their numbers.
#[derive(Debug, Default)]
struct Lane {
    records: Vec<FlowRecord>,
    numbers: Vec<u64>,
}

impl Lane {
    fn clear(&mut self) {
        self.records.clear();
        self.numbers.clear();
    }

    /// Puts in order what was pushed newest first, which mostly is the opposite.
    fn order(&mut self) {
        self.records.reverse();
        self.numbers.reverse();
        if !self.records.is_sorted_by_key(|record| (record.first, record.last)) {
            let mut both: Vec<_> = self.records.drain(..).zip(self.numbers.drain(..)).collect();
            both.sort_unstable_by_key(|(record, number)| (record.first, record.last, *number));
            (self.records, self.numbers) = both.into_iter().unzip();
        }
    }

    fn after(&self, end_before: Option<Timestamp>) -> Neighbours<'_> {
        Neighbours { records: &self.records, end_before }
    }

    /// How many of the records are up to the last that ended before that time.
    fn ended(&self, before: Option<Timestamp>) -> usize {
        let is_due = |record: &FlowRecord| before.is_none_or(|before| record.last < before);
        self.records.iter().rposition(is_due).map_or(0, |place| place + 1)
    }

    /// The end of the last of so many records.
    fn end_of(&self, count: usize) -> Option<Timestamp> {
        Some(self.records[count.checked_sub(1)?].last)
    }
}

fn conclude(
    upstream: FlowRecord,
    verdict: TimingVerdict,
    downstream: &[FlowRecord],
    ready: &mut VecDeque<Associated>,
    counts: &mut AssociationCounts,
) {
    match verdict {
        TimingVerdict::Accepted { downstream: place } => {
            counts.associated += 1;
            let downstream = downstream[place];
            let (same_first, same_last) = (true, true);
            ready.push_back(Associated { upstream, downstream, same_first, same_last });
        }
        TimingVerdict::NoPartner => counts.unmatched += 1,
        _ => counts.doubtful += 1,
    }
}

//! By times, packets and bytes alone: conditions C1 to C5 of Lee, Duffield and Kompella, section
//! III-D, with the subscripts as the text means them (upstream record s, downstream record r).

use std::collections::{HashMap, VecDeque};

use twixt_model::{ClassId, FlowKey, FlowRecord, Timestamp};

use super::{Associated, AssociationCounts, Side};

/// What is known of the segment and of the two meters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimingBounds {
    /// Least propagation delay (e1-), clock offset included.
    pub propagation_min_ns: i64,
    /// Greatest propagation delay (e1+).
    pub propagation_max_ns: i64,
    /// Greatest time in queues and processing (e2).
    pub processing_ns: i64,
    /// Greatest difference of the clocks beyond their known offset (e3).
    pub clock_ns: i64,
    /// The meters' active timeout.
    pub active_timeout_ns: i64,
    /// The meters' inactive timeout.
    pub inactive_timeout_ns: i64,
}

impl TimingBounds {
    /// The least and the greatest difference of two times of one packet.
    #[must_use]
    pub const fn window_ns(&self) -> (i64, i64) {
        let low = self.propagation_min_ns.saturating_sub(self.clock_ns);
        let high = self.propagation_max_ns.saturating_add(self.processing_ns);
        (low, high.saturating_add(self.clock_ns))
    }

    /// How much the spacing of two packets can differ between the points.
    pub(super) const fn slack_ns(&self) -> i64 {
        let (low, high) = self.window_ns();
        high.saturating_sub(low)
    }

    /// The same for records whose times are that coarse: each of two times may be off by as much.
    fn blurred(&self, resolution_ns: u64) -> Self {
        let blur_ns = i64::try_from(resolution_ns.saturating_sub(1)).unwrap_or(i64::MAX);
        Self { clock_ns: self.clock_ns.saturating_add(blur_ns), ..*self }
    }
}

/// What the conditions say of an upstream record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimingVerdict {
    /// All hold for this downstream record, by its place in the list.
    Accepted {
        /// Its place.
        downstream: usize,
    },
    /// No downstream record has compatible times (C1).
    NoPartner,
    /// Packets or bytes differ (C2).
    DifferentCounts,
    /// The active timeout may have cut the flow at one point only (C3).
    NearActiveTimeout,
    /// The inactive timeout may have cut the flow at one point only (C4).
    NearInactiveTimeout,
    /// A gap beside the record, or its duration, is so near a timeout that the points may have
    /// cut the flow differently. C4 cannot see this: after C1 it always holds.
    NearSplit,
    /// After a doubtful pair nothing of the flow is trusted until both points saw it pause for
    /// longer than the inactive timeout (C5).
    OutOfStep,
}

/// Records that wait until all of their flow that may matter to them has come.
#[derive(Debug)]
pub(super) struct Times {
    bounds: TimingBounds,
    flows: HashMap<(FlowKey, ClassId), Flow>,
    held: usize,
    swept: Option<Timestamp>,
}

#[derive(Debug, Default)]
struct Flow {
    upstream: Vec<FlowRecord>,
    downstream: Vec<FlowRecord>,
    latest: Option<Timestamp>,
}

impl Times {
    pub(super) fn new(bounds: TimingBounds) -> Self {
        Self { bounds, flows: HashMap::new(), held: 0, swept: None }
    }

    pub(super) const fn len(&self) -> usize {
        self.held
    }

    pub(super) fn offer(&mut self, side: Side, record: FlowRecord) {
        let flow = self.flows.entry((record.key, record.class)).or_default();
        match side {
            Side::Upstream => flow.upstream.push(record),
            Side::Downstream => flow.downstream.push(record),
        }
        flow.latest = flow.latest.max(Some(record.last));
        self.held += 1;
    }

    /// Concludes flows of which nothing was heard since. Looks around once whenever that moment
    /// has moved on by the inactive timeout, so that the look costs little per record.
    pub(super) fn conclude_older(
        &mut self,
        before: Timestamp,
        ready: &mut VecDeque<Associated>,
        counts: &mut AssociationCounts,
    ) {
        let swept = *self.swept.get_or_insert(before);
        if (before - swept).as_nanos() < self.bounds.inactive_timeout_ns {
            return;
        }
        self.swept = Some(before);
        self.conclude_if(|flow| flow.latest < Some(before), ready, counts);
    }

    pub(super) fn conclude_all(
        &mut self,
        ready: &mut VecDeque<Associated>,
        counts: &mut AssociationCounts,
    ) {
        self.conclude_if(|_| true, ready, counts);
    }

    fn conclude_if(
        &mut self,
        is_due: impl Fn(&Flow) -> bool,
        ready: &mut VecDeque<Associated>,
        counts: &mut AssociationCounts,
    ) {
        let Self { bounds, flows, held, .. } = self;
        // In the order of the flows' keys, so that equal input gives equal output.
        let mut due: Vec<_> = flows.extract_if(|_, flow| is_due(flow)).collect();
        due.sort_unstable_by_key(|(name, _)| *name);
        for (_, mut flow) in due {
            *held -= flow.upstream.len() + flow.downstream.len();
            flow.conclude(bounds, ready, counts);
        }
    }
}

impl Flow {
    fn conclude(
        &mut self,
        bounds: &TimingBounds,
        ready: &mut VecDeque<Associated>,
        counts: &mut AssociationCounts,
    ) {
        let by_first = |record: &FlowRecord| (record.first, record.last);
        self.upstream.sort_unstable_by_key(by_first);
        self.downstream.sort_unstable_by_key(by_first);
        let verdicts = judge_by_timing(&self.upstream, &self.downstream, bounds);
        for (&upstream, verdict) in self.upstream.iter().zip(verdicts) {
            match verdict {
                TimingVerdict::Accepted { downstream } => {
                    counts.associated += 1;
                    let downstream = self.downstream[downstream];
                    let (same_first, same_last) = (true, true);
                    ready.push_back(Associated { upstream, downstream, same_first, same_last });
                }
                TimingVerdict::NoPartner => counts.unmatched += 1,
                _ => counts.doubtful += 1,
            }
        }
    }
}

/// What the conditions say of each upstream record. Both lists are of one flow, by their first
/// times.
#[must_use]
pub fn judge_by_timing(
    upstream: &[FlowRecord],
    downstream: &[FlowRecord],
    bounds: &TimingBounds,
) -> Vec<TimingVerdict> {
    let mut verdicts = vec![TimingVerdict::NoPartner; upstream.len()];
    // Nothing before this place downstream is left: times rise on both sides.
    let mut from = 0;
    let mut out_of_step = false;
    for (place, record) in upstream.iter().enumerate() {
        if out_of_step {
            let paused = |downstream_place| {
                is_after_pause(upstream, place, bounds)
                    && is_after_pause(downstream, downstream_place, bounds)
            };
            match partner(record, downstream, from, bounds) {
                Some(found) if paused(found) => out_of_step = false,
                _ => {
                    verdicts[place] = TimingVerdict::OutOfStep;
                    continue;
                }
            }
        }
        let Some(found) = partner(record, downstream, from, bounds) else { continue };
        from = found + 1;
        let doubt = doubt(record, &downstream[found], bounds).or_else(|| {
            let near =
                is_near_split(upstream, place, bounds) || is_near_split(downstream, found, bounds);
            near.then_some(TimingVerdict::NearSplit)
        });
        out_of_step = doubt.is_some();
        verdicts[place] = doubt.unwrap_or(TimingVerdict::Accepted { downstream: found });
    }
    verdicts
}

/// Records of one flow that begin within one window and are compared with a record, at most:
/// meters do not close more in so short a time.
const COMPARED_MAX: usize = 64;

/// The first downstream record whose times are compatible (C1).
fn partner(
    record: &FlowRecord,
    downstream: &[FlowRecord],
    from: usize,
    bounds: &TimingBounds,
) -> Option<usize> {
    let (_, high_ns) = bounds.blurred(record.resolution_ns).window_ns();
    let resolution_ns = |other: &FlowRecord| other.resolution_ns.max(record.resolution_ns);
    let latest = record.first.as_nanos().saturating_add(high_ns);
    let near = downstream[from..].iter().enumerate().take_while(|(_, other)| {
        other.first.as_nanos().saturating_sub(resolution_ns(other) as i64) <= latest
    });
    near.take(COMPARED_MAX)
        .map(|(index, other)| (from + index, other))
        .find(|(_, other)| {
            let bounds = bounds.blurred(resolution_ns(other));
            is_compatible(record.first, other.first, &bounds)
                && is_compatible(record.last, other.last, &bounds)
        })
        .map(|(place, _)| place)
}

fn is_compatible(sent: Timestamp, received: Timestamp, bounds: &TimingBounds) -> bool {
    let (low_ns, high_ns) = bounds.window_ns();
    (low_ns..=high_ns).contains(&(received - sent).as_nanos())
}

/// Conditions C2 to C4.
fn doubt(sent: &FlowRecord, received: &FlowRecord, bounds: &TimingBounds) -> Option<TimingVerdict> {
    if (sent.packets, sent.bytes) != (received.packets, received.bytes) {
        return Some(TimingVerdict::DifferentCounts);
    }
    // When the last packet that downstream saw can have passed upstream at the latest.
    let latest_ns = received
        .last
        .as_nanos()
        .saturating_sub(bounds.propagation_min_ns)
        .saturating_add(bounds.clock_ns);
    if latest_ns >= sent.first.as_nanos().saturating_add(bounds.active_timeout_ns) {
        return Some(TimingVerdict::NearActiveTimeout);
    }
    if latest_ns >= sent.last.as_nanos().saturating_add(bounds.inactive_timeout_ns) {
        return Some(TimingVerdict::NearInactiveTimeout);
    }
    None
}

/// Whether a gap beside a record, or its duration, lies so near a timeout that the other point
/// may have seen it on the other side.
fn is_near_split(records: &[FlowRecord], place: usize, bounds: &TimingBounds) -> bool {
    let slack_ns = bounds.slack_ns();
    let near = |length_ns: i64, timeout_ns: i64| {
        length_ns.saturating_sub(timeout_ns).unsigned_abs() <= slack_ns.unsigned_abs()
    };
    let record = &records[place];
    let before =
        place.checked_sub(1).map(|before| (record.first - records[before].last).as_nanos());
    let after = records.get(place + 1).map(|after| (after.first - record.last).as_nanos());
    let gap = |gap: Option<i64>| gap.is_some_and(|gap| near(gap, bounds.inactive_timeout_ns));
    gap(before)
        || gap(after)
        || near((record.last - record.first).as_nanos(), bounds.active_timeout_ns)
}

/// Whether nothing of the flow came for longer than the inactive timeout before this record.
fn is_after_pause(records: &[FlowRecord], place: usize, bounds: &TimingBounds) -> bool {
    place.checked_sub(1).is_none_or(|before| {
        (records[place].first - records[before].last).as_nanos() > bounds.inactive_timeout_ns
    })
}

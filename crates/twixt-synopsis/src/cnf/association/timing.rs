//! By times, packets and bytes alone: conditions C1 to C5 of Lee, Duffield and Kompella, section
//! III-D, with the subscripts as the text means them (upstream record s, downstream record r).

use twixt_model::{FlowRecord, Timestamp};

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
    /// Those of the published evaluation: propagation 10 to 20 ms, queues up to 47.6 ms, clocks
    /// within 1 ms.
    pub const PUBLISHED: Self = Self {
        propagation_min_ns: 10_000_000,
        propagation_max_ns: 20_000_000,
        processing_ns: 47_600_000,
        clock_ns: 1_000_000,
        active_timeout_ns: 30_000_000_000,
        inactive_timeout_ns: 10_000_000_000,
    };

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

/// What the conditions say of each upstream record. Both lists are of one flow, by their first
/// times.
#[must_use]
pub fn judge_by_timing(
    upstream: &[FlowRecord],
    downstream: &[FlowRecord],
    bounds: &TimingBounds,
) -> Vec<TimingVerdict> {
    let [upstream, downstream] =
        [upstream, downstream].map(|records| Neighbours { records, end_before: None });
    let mut judge = Judge { upstream, downstream, bounds, from: 0, out_of_step: false };
    (0..upstream.records.len()).map(|place| judge.verdict(place)).collect()
}

/// Records of one flow at one point, by their first times.
#[derive(Clone, Copy)]
pub(super) struct Neighbours<'a> {
    pub(super) records: &'a [FlowRecord],
    /// The end of the record before these.
    pub(super) end_before: Option<Timestamp>,
}

impl Neighbours<'_> {
    /// The pause before a record; `None` before the first of all.
    fn pause_before_ns(&self, place: usize) -> Option<i64> {
        let before = place.checked_sub(1).map(|before| self.records[before].last);
        Some((self.records[place].first - before.or(self.end_before)?).as_nanos())
    }

    fn pause_after_ns(&self, place: usize) -> Option<i64> {
        Some((self.records.get(place + 1)?.first - self.records[place].last).as_nanos())
    }

    /// Whether nothing of the flow came for longer than the inactive timeout before this record.
    fn is_after_pause(&self, place: usize, bounds: &TimingBounds) -> bool {
        self.pause_before_ns(place).is_none_or(|pause_ns| pause_ns > bounds.inactive_timeout_ns)
    }

    /// Whether a pause beside a record, or its duration, lies so near a timeout that the other
    /// point may have seen it on the other side.
    fn is_near_split(&self, place: usize, bounds: &TimingBounds) -> bool {
        let slack_ns = bounds.slack_ns().unsigned_abs();
        let near = |length_ns: i64, timeout_ns: i64| {
            length_ns.saturating_sub(timeout_ns).unsigned_abs() <= slack_ns
        };
        let record = &self.records[place];
        let pauses = [self.pause_before_ns(place), self.pause_after_ns(place)];
        pauses.into_iter().flatten().any(|pause_ns| near(pause_ns, bounds.inactive_timeout_ns))
            || near((record.last - record.first).as_nanos(), bounds.active_timeout_ns)
    }
}

/// Goes through the records of one flow.
pub(super) struct Judge<'a> {
    pub(super) upstream: Neighbours<'a>,
    pub(super) downstream: Neighbours<'a>,
    pub(super) bounds: &'a TimingBounds,
    /// Nothing before this place downstream is left: times rise on both sides.
    pub(super) from: usize,
    pub(super) out_of_step: bool,
}

impl Judge<'_> {
    /// Of the next upstream record.
    pub(super) fn verdict(&mut self, place: usize) -> TimingVerdict {
        let Self { upstream, downstream, bounds, from, .. } = *self;
        let record = &upstream.records[place];
        let found = partner(record, downstream.records, from, bounds);
        let paused = found.is_some_and(|found| {
            upstream.is_after_pause(place, bounds) && downstream.is_after_pause(found, bounds)
        });
        if self.out_of_step && !paused {
            return TimingVerdict::OutOfStep;
        }
        self.out_of_step = false;
        let Some(found) = found else { return TimingVerdict::NoPartner };
        self.from = found + 1;
        let near = upstream.is_near_split(place, bounds) || downstream.is_near_split(found, bounds);
        let doubt = doubt(record, &downstream.records[found], bounds)
            .or_else(|| near.then_some(TimingVerdict::NearSplit));
        self.out_of_step = doubt.is_some();
        doubt.unwrap_or(TimingVerdict::Accepted { downstream: found })
    }
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

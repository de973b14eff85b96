//! The records of two points in one order of time, a few at a time.
//!
//! Each point hands over its records about in the order in which they were closed. What is merged
//! is never held: only the next few of each point are, as a look ahead.

use std::collections::VecDeque;

use twixt_model::{FlowRecord, Side, Timestamp};

/// Records of each point that are looked at before one is taken. The earliest of them says how far
/// the point is: a single record with a time far ahead must not hold its point back until all of
/// the other point has been read.
const AHEAD: usize = 16;

/// Takes turns between two points, so that neither gets ahead of the other.
#[derive(Clone, Debug)]
pub struct Merge {
    upstream: Ahead,
    downstream: Ahead,
}

/// The next records of a point.
#[derive(Clone, Debug)]
struct Ahead {
    /// Each with how often the clock had been set back before it.
    records: VecDeque<(u32, FlowRecord)>,
    /// So many of them were looked at.
    seen: usize, // at most AHEAD
    has_ended: bool,
    /// How far the point is; `None` if there are no records.
    progress: Option<(u32, Timestamp)>,
    steps: StepsBack,
}

/// How often the clock of a point was set back.
#[derive(Clone, Copy, Debug)]
struct StepsBack {
    count: u32,
    /// How far the point was since then.
    reached: Timestamp,
    /// Records in a row that ended long before that.
    behind: usize,
    /// Records end at most so much before others that came earlier.
    window_ns: i64,
}

impl Merge {
    /// Nothing yet. Records of a point end at most `window_ns` before others that came earlier;
    /// where many in a row do, its clock was set back.
    #[must_use]
    pub fn new(window_ns: u64) -> Self {
        let window_ns = i64::try_from(window_ns).unwrap_or(i64::MAX);
        let steps = StepsBack { count: 0, reached: Timestamp::MIN, behind: 0, window_ns };
        let records = VecDeque::new();
        let ahead = Ahead { records, seen: 0, has_ended: false, progress: None, steps };
        Self { upstream: ahead.clone(), downstream: ahead }
    }

    /// A point of which more must be known before a record can be taken.
    #[must_use]
    pub fn wants(&self) -> Option<Side> {
        let sides = [(Side::Upstream, &self.upstream), (Side::Downstream, &self.downstream)];
        sides.into_iter().find(|(_, ahead)| ahead.is_short()).map(|(side, _)| side)
    }

    /// The next record of a point.
    pub fn push(&mut self, side: Side, record: FlowRecord) {
        self.side(side).push(record);
    }

    /// A point has no more.
    pub fn end(&mut self, side: Side) {
        self.side(side).has_ended = true;
    }

    /// Takes the next record: of the point that is behind, or upstream if neither is.
    pub fn take(&mut self) -> Option<(Side, FlowRecord)> {
        let side = match (self.upstream.progress, self.downstream.progress) {
            (None, None) => return None,
            (Some(up), Some(down)) if up <= down => Side::Upstream,
            (Some(_), None) => Side::Upstream,
            (_, Some(_)) => Side::Downstream,
        };
        self.side(side).pop().map(|record| (side, record))
    }

    fn side(&mut self, side: Side) -> &mut Ahead {
        match side {
            Side::Upstream => &mut self.upstream,
            Side::Downstream => &mut self.downstream,
        }
    }
}

impl Ahead {
    fn is_short(&self) -> bool {
        !self.has_ended && self.records.len() < AHEAD
    }

    fn push(&mut self, record: FlowRecord) {
        self.records.push_back((0, record));
        if self.seen < AHEAD {
            self.look_ahead();
        }
    }

    fn pop(&mut self) -> Option<FlowRecord> {
        if self.seen == AHEAD {
            let (_, earliest) = self.progress?;
            self.steps.reached = self.steps.reached.max(earliest);
        }
        let (_, record) = self.records.pop_front()?;
        self.seen -= 1;
        self.look_ahead();
        Some(record)
    }

    fn look_ahead(&mut self) {
        let Self { records, seen, progress, steps, .. } = self;
        while *seen < AHEAD.min(records.len()) {
            let (count, record) = &mut records[*seen];
            *count = steps.count_until(record.last);
            *seen += 1;
            if steps.is_new() {
                // Those that showed it came after it as well.
                records.iter_mut().take(*seen).for_each(|(count, _)| *count = steps.count);
            }
        }
        *progress = records.front().map(|&(count, _)| {
            let alike = records.iter().take(*seen).filter(|(other, _)| *other == count);
            let ends = alike.map(|(_, record)| record.last);
            (count, ends.min().expect("the first is among them"))
        });
    }
}

impl StepsBack {
    /// How often the clock was set back until a record that ends so.
    fn count_until(&mut self, last: Timestamp) -> u32 {
        let is_behind = last.as_nanos() < self.reached.as_nanos().saturating_sub(self.window_ns);
        self.behind = if is_behind { self.behind + 1 } else { 0 };
        if self.behind >= AHEAD {
            self.count = self.count.saturating_add(1);
            self.reached = last;
        }
        self.count
    }

    /// Whether the latest record showed that the clock was set back.
    const fn is_new(&self) -> bool {
        self.behind >= AHEAD
    }
}

/// The records of both points as a collector would receive them: each point's in the order in
/// which they were closed, the point that is behind first. `window_ns` as for [`Merge`].
pub fn in_order(
    upstream: impl IntoIterator<Item = FlowRecord>,
    downstream: impl IntoIterator<Item = FlowRecord>,
    window_ns: u64,
) -> impl Iterator<Item = (Side, FlowRecord)> {
    let (mut upstream, mut downstream) = (upstream.into_iter(), downstream.into_iter());
    let mut merge = Merge::new(window_ns);
    std::iter::from_fn(move || {
        while let Some(side) = merge.wants() {
            let next = match side {
                Side::Upstream => upstream.next(),
                Side::Downstream => downstream.next(),
            };
            match next {
                Some(record) => merge.push(side, record),
                None => merge.end(side),
            }
        }
        merge.take()
    })
}

#[cfg(test)]
mod tests {
    use twixt_model::{ClassId, FlowEnd, FlowKey};

    use super::*;

    fn record(last_ns: i64) -> FlowRecord {
        FlowRecord {
            key: FlowKey::default(),
            class: ClassId::default(),
            first: Timestamp::from_nanos(0),
            last: Timestamp::from_nanos(last_ns),
            packets: 1,
            bytes: 1,
            tcp_flags: 0,
            first_label: None,
            last_label: None,
            end: FlowEnd::Idle,
            resolution_ns: 1,
        }
    }

    /// The ends of upstream and downstream records, in the order in which they are taken.
    fn order(upstream: &[i64], downstream: &[i64]) -> Vec<(Side, i64)> {
        let records = |ends: &[i64]| ends.iter().map(|&end| record(end)).collect::<Vec<_>>();
        in_order(records(upstream), records(downstream), 100)
            .map(|(side, record)| (side, record.last.as_nanos()))
            .collect()
    }

    #[test]
    fn the_point_that_is_behind_comes_first() {
        use Side::{Downstream as D, Upstream as U};
        let ends: Vec<i64> = (0..40).collect();
        let both = order(&ends, &ends);
        assert_eq!(both[..4], [(U, 0), (D, 0), (U, 1), (D, 1)]);
        assert_eq!(both.len(), 80);
        assert_eq!(order(&[], &[3, 4]), [(D, 3), (D, 4)]);
        assert_eq!(order(&[3], &[]), [(U, 3)]);
        assert_eq!(order(&[], &[]), []);
    }

    /// By how many records the points get apart at most.
    #[track_caller]
    fn check_apart(upstream: &[i64], downstream: &[i64], most: usize) {
        let (mut up, mut down, mut apart_max) = (0_usize, 0_usize, 0);
        for (side, _) in order(upstream, downstream) {
            match side {
                Side::Upstream => up += 1,
                Side::Downstream => down += 1,
            }
            apart_max = apart_max.max(up.abs_diff(down));
        }
        assert!(apart_max <= most, "{apart_max}");
    }

    #[test]
    fn one_false_time_does_not_hold_a_point_back() {
        let right: Vec<i64> = (0..1000).collect();
        for wrong_ns in [i64::MAX, i64::MIN] {
            let mut upstream = right.clone();
            upstream[10] = wrong_ns;
            check_apart(&upstream, &right, AHEAD);
            check_apart(&right, &upstream, AHEAD);
        }
    }

    #[test]
    fn a_clock_that_is_set_back_at_both_points_does_not_part_them() {
        let ends: Vec<i64> = (10_000..11_000).chain(0..1000).collect();
        check_apart(&ends, &ends, 2 * AHEAD);
        // One of them has a few records less.
        let fewer: Vec<i64> = ends.iter().copied().filter(|end| end % 100 != 7).collect();
        check_apart(&ends, &fewer, 2 * AHEAD + 20);
    }
}

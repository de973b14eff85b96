//! The rows of an epoch of one point: what was observed in all, and then its kinds, prefixes or flows.

use twixt_engine::{Conclusions, PointEstimate};
use twixt_history::{
    HeavySums, PointMisses, PointSums, ReorderSums, RoundTripSums, Row, SeriesKey, Table,
    scope_kind,
};
use twixt_model::{HeavyFlow, ReorderEstimate, RoundTripEstimate, RoundTripPart, Scope};

/// Groups of round trips of an epoch, of all kinds together, that have a row each.
const GROUPS_MAX: usize = 256;
/// Prefixes of an epoch that have a row each.
const PREFIXES_MAX: usize = 256;
/// Flows of an epoch that have a row each.
const FLOWS_MAX: usize = 100;
/// What scopes of prefixes are called.
const PREFIX: &str = "prefix";

/// The rows of an epoch, their table, and how many scopes have none of their own.
pub(super) fn rows_of(point: &PointEstimate) -> (Table, Vec<Row>, u64) {
    let all = row_of_all(point);
    match &point.conclusions {
        Conclusions::RoundTrips(estimates) => {
            let (rows, left_out) = round_trips(&all, estimates);
            (Table::RoundTrips, rows, left_out)
        }
        Conclusions::Reordering(prefixes) => {
            let (rows, left_out) = reordering(&all, prefixes);
            (Table::Reordering, rows, left_out)
        }
        Conclusions::Heavy(flows) => {
            let (rows, left_out) = heavy(&all, flows);
            (Table::Heavy, rows, left_out)
        }
    }
}

/// What the point observed in all.
fn row_of_all(point: &PointEstimate) -> Row {
    let series = SeriesKey {
        upstream: point.point.0.clone(),
        downstream: point.point.0.clone(),
        class: point.class.clone(),
        algorithm: point.algorithm.to_owned(),
        domain: point.domain.clone(),
        epoch_ns: point.epoch_ns.unwrap_or(0),
    };
    let counts = &point.counts;
    Row {
        // The same number, with the sign that integers of files have.
        run: Some(point.run as i64),
        packets: Some(counts.packets),
        missed_upstream: PointMisses { dropped: Some(counts.dropped), late: Some(counts.late) },
        ..Row::observed(series, point.epoch.0, point.span)
    }
}

/// A row of the same epoch, about a part of it.
fn row_of(all: &Row, kind: &str, scope: String, point: PointSums) -> Row {
    Row {
        scope_kind: kind.to_owned(),
        scope,
        packets: None,
        missed_upstream: PointMisses::default(),
        point: Some(point),
        ..all.clone()
    }
}

fn round_trips(all: &Row, estimates: &[RoundTripEstimate]) -> (Vec<Row>, u64) {
    let row = |estimate: &RoundTripEstimate, scope: &Scope, sums: RoundTripSums| Row {
        kind: estimate.kind.name().to_owned(),
        part: estimate.part.map_or("", RoundTripPart::name).to_owned(),
        ..row_of(all, scope_kind(scope), scope.to_string(), PointSums::RoundTrips(Box::new(sums)))
    };
    let (whole, mut groups): (Vec<_>, Vec<_>) =
        estimates.iter().partition(|estimate| estimate.scope == Scope::All);
    groups.sort_by(|one, other| other.weighted.total_cmp(&one.weighted));
    let small = groups.split_off(groups.len().min(GROUPS_MAX));
    let kept = whole.into_iter().chain(groups);
    let kept = kept.map(|estimate| row(estimate, &estimate.scope, RoundTripSums::of(estimate)));
    let mut rows: Vec<Row> = [all.clone()].into_iter().chain(kept).collect();
    let left_out = small.len() as u64;
    for of_kind in by_kind(small) {
        let sums: Vec<RoundTripSums> = of_kind.iter().map(|of| RoundTripSums::of(of)).collect();
        if let (Some(first), Some(total)) = (of_kind.first(), RoundTripSums::total(&sums)) {
            add_to_other(&mut rows, row(first, &Scope::Other, total));
        }
    }
    (rows, left_out)
}

fn by_kind(mut estimates: Vec<&RoundTripEstimate>) -> Vec<Vec<&RoundTripEstimate>> {
    estimates.sort_by_key(|estimate| estimate.kind);
    estimates.chunk_by(|one, other| one.kind == other.kind).map(<[_]>::to_vec).collect()
}

/// Adds a row of what has none of its own to that of the algorithm, if there is one.
fn add_to_other(rows: &mut Vec<Row>, other: Row) {
    let same = |row: &&mut Row| row.kind == other.kind && row.scope_kind == other.scope_kind;
    let Some(row) = rows.iter_mut().find(same) else { return rows.push(other) };
    if let (Some(PointSums::RoundTrips(one)), Some(PointSums::RoundTrips(more))) =
        (&mut row.point, &other.point)
        && let Some(total) = RoundTripSums::total([&**one, &**more])
    {
        **one = total;
    }
}

fn reordering(all: &Row, prefixes: &[ReorderEstimate]) -> (Vec<Row>, u64) {
    let mut prefixes: Vec<&ReorderEstimate> = prefixes.iter().collect();
    let order = |of: &ReorderEstimate| (of.out_of_order + of.undecided, of.packets);
    prefixes.sort_by(|one, other| {
        order(other).cmp(&order(one)).then_with(|| one.prefix.cmp(&other.prefix))
    });
    let small = prefixes.split_off(prefixes.len().min(PREFIXES_MAX));
    let total = |of: &[&ReorderEstimate]| {
        of.iter().map(|of| ReorderSums::of(of)).reduce(|mut sum, sums| {
            sum.add(&sums);
            sum
        })
    };
    let (kept, rest) = (total(&prefixes), total(&small));
    let mut sum = kept.unwrap_or_default();
    rest.iter().for_each(|rest| sum.add(rest));
    let of_all = Row { point: Some(PointSums::Reordering(sum)), ..all.clone() };
    let row = |kind: &str, scope: String, sums: ReorderSums| {
        row_of(all, kind, scope, PointSums::Reordering(sums))
    };
    let scoped = prefixes.iter().map(|of| row(PREFIX, of.prefix.to_string(), ReorderSums::of(of)));
    let other = rest.map(|sums| row(scope_kind(&Scope::Other), Scope::Other.to_string(), sums));
    ([of_all].into_iter().chain(scoped).chain(other).collect(), small.len() as u64)
}

fn heavy(all: &Row, flows: &[HeavyFlow]) -> (Vec<Row>, u64) {
    let mut flows: Vec<&HeavyFlow> = flows.iter().collect();
    flows.sort_by(|one, other| {
        other.packets.cmp(&one.packets).then_with(|| one.key.cmp(&other.key))
    });
    let packets = all.packets.unwrap_or(0);
    let certain: u64 = flows.iter().map(|flow| flow.packets_at_least).sum();
    // Packets that are certainly those of a flow are not those of another.
    let rest = packets.saturating_sub(certain);
    let at_most = |flow: &HeavyFlow| {
        let by_others = flow.packets_at_least.saturating_add(rest);
        flow.packets_at_most
            .map_or(by_others, |most| most.min(by_others))
            .max(flow.packets_at_least)
    };
    // A flow that is not in the algorithm's list has no more than any that is, where that is promised.
    let promised = flows.iter().map(|flow| flow.packets_at_most).min().flatten();
    let small = flows.split_off(flows.len().min(FLOWS_MAX));
    let unlisted_max = small.iter().map(|flow| at_most(flow)).max();
    let unlisted_max = unlisted_max.unwrap_or(0).max(promised.map_or(rest, |most| most.min(rest)));
    let sums = |flow: &HeavyFlow| HeavySums {
        packets: flow.packets,
        bytes: flow.bytes,
        packets_min: flow.packets_at_least,
        packets_max: at_most(flow),
        unlisted_max,
        listed: 0,
    };
    let total = |of: &[&HeavyFlow]| {
        of.iter().map(|flow| sums(flow)).reduce(|mut total, sums| {
            total.add(&sums);
            HeavySums { unlisted_max, ..total }
        })
    };
    let (kept, left_out) = (total(&flows), total(&small));
    let mut sum = kept.unwrap_or_default();
    left_out.iter().for_each(|rest| sum.add(rest));
    let sum = HeavySums { unlisted_max, listed: flows.len() as u64, ..sum };
    let of_all = Row { point: Some(PointSums::Heavy(sum)), ..all.clone() };
    let row = |scope: &Scope, sums: HeavySums| {
        row_of(all, scope_kind(scope), scope.to_string(), PointSums::Heavy(sums))
    };
    let listed = flows.iter().map(|flow| row(&Scope::Flow(flow.key), sums(flow)));
    let other = left_out.map(|sums| row(&Scope::Other, sums));
    ([of_all].into_iter().chain(listed).chain(other).collect(), small.len() as u64)
}

#[cfg(test)]
mod tests {
    use twixt_model::{FlowHash, FlowKey};

    use super::*;

    fn flow(port: u16, packets: u64, at_least: u64, at_most: Option<u64>) -> HeavyFlow {
        HeavyFlow {
            hash: FlowHash::default(),
            key: FlowKey { source_port: port, ..FlowKey::default() },
            packets,
            bytes: 100 * packets,
            packets_at_least: at_least,
            packets_at_most: at_most,
        }
    }

    #[track_caller]
    fn check(packets: u64, flows: &[HeavyFlow], unlisted_max: u64, most: &[u64]) {
        let all = Row { packets: Some(packets), ..Row::default() };
        let (rows, _) = heavy(&all, flows);
        let sums: Vec<HeavySums> =
            rows.iter().map(|row| *row.point.as_ref().unwrap().heavy().unwrap()).collect();
        assert!(sums.iter().all(|sums| sums.unlisted_max == unlisted_max), "{sums:?}");
        let found: Vec<u64> = sums[1..].iter().map(|sums| sums.packets_max).collect();
        assert_eq!(found, most);
    }

    #[test]
    fn what_a_list_leaves_over_bounds_what_it_does_not_have() {
        // Every packet belongs to a flow for certain: there is no other.
        check(30, &[flow(1, 20, 20, Some(20)), flow(2, 10, 10, Some(10))], 0, &[20, 10]);
        // As of a full table of space-saving: an unlisted flow has no more than the smallest.
        check(100, &[flow(1, 60, 50, Some(60)), flow(2, 40, 30, Some(40))], 20, &[60, 40]);
        check(1_000, &[flow(1, 60, 50, Some(60)), flow(2, 40, 30, Some(40))], 40, &[60, 40]);
        // No promise: what is left over may all be of one flow.
        check(100, &[flow(1, 60, 50, None), flow(2, 40, 30, None)], 20, &[70, 50]);
        check(7, &[], 7, &[]);
    }

    #[test]
    fn flows_beyond_the_bound_are_counted_and_bounded() {
        let flows: Vec<HeavyFlow> = (0..FLOWS_MAX as u16 + 5)
            .map(|port| flow(port, 1_000 - u64::from(port), 1_000 - u64::from(port), None))
            .collect();
        let packets = flows.iter().map(|flow| flow.packets).sum();
        let all = Row { packets: Some(packets), ..Row::default() };
        let (rows, left_out) = heavy(&all, &flows);
        assert_eq!((rows.len(), left_out), (FLOWS_MAX + 2, 5));
        let sums = |row: &Row| *row.point.as_ref().unwrap().heavy().unwrap();
        let other = rows.last().unwrap();
        assert_eq!(other.scope_kind, "other");
        assert_eq!(sums(&rows[0]).unlisted_max, 1_000 - FLOWS_MAX as u64);
        assert_eq!(sums(&rows[0]).packets, packets);
        let listed: u64 = rows[1..].iter().map(|row| sums(row).packets).sum();
        assert_eq!(listed, packets);
    }
}

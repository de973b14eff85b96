//! The columns of the tables of one point: those that all of them begin with, and each one's own.

use twixt_model::RoundTripTimes;

use super::{Cell, Column, EPOCHS, GAPS, Kind, REASON, STEP};
use crate::point_sums::{HeavySums, PointSums, ReorderSums, RoundTripSums};
use crate::row::Row;

/// The point: the history knows it as both ends of a segment.
const POINT: Column = Column {
    name: "point",
    kind: Kind::Text,
    required: true,
    about: "the point that observed it",
    get: |row| Cell::Text(&row.series.upstream),
    set: Some(|row, cell| {
        row.series.upstream = cell.text().unwrap_or_default();
        row.series.downstream.clone_from(&row.series.upstream);
    }),
};
const CLASS: Column = text!("class", series.class, "class of traffic; empty without classes");
const ALGORITHM: Column = text!("algorithm", series.algorithm, "the algorithm of the synopsis");
const DOMAIN: Column = text!("domain", series.domain, "domain within which point names are unique");
const EPOCH_NS: Column = integer!("epoch_ns", series.epoch_ns, "length of an epoch");
const SCOPE: Column = text!("scope", scope, "scope of the row");
const START: Column =
    integer!("start_ns", start_ns, "start, by the clock of the point, nanoseconds since 1970 UTC");
const END: Column =
    integer!("end_ns", end_ns, "end, inclusive; the next row starts one nanosecond later");
const EPOCH: Column = maybe!("epoch", epoch, "number of the epoch, or of the first one");
const RUN: Column = maybe!("run", run, "number of the run of the agent; of epochs only");
const PACKETS: Column = count!("packets", packets, "packets observed; in rows of all traffic only");
const DROPPED: Column = count!(
    "dropped",
    missed_upstream.dropped,
    "packets that the kernel dropped, of all classes; in rows of all traffic only"
);
const LATE: Column = count!(
    "late",
    missed_upstream.late,
    "packets observed after their epoch was sealed; in rows of all traffic only"
);

fn trips(row: &Row) -> Option<&RoundTripSums> {
    row.point.as_ref().and_then(PointSums::round_trips)
}

fn trips_mut(row: &mut Row) -> &mut RoundTripSums {
    let point = row.point.get_or_insert_with(|| PointSums::RoundTrips(Box::default()));
    if !matches!(point, PointSums::RoundTrips(_)) {
        *point = PointSums::RoundTrips(Box::default());
    }
    match point {
        PointSums::RoundTrips(sums) => sums,
        _ => unreachable!("it was made just now"),
    }
}

fn reordering_mut(row: &mut Row) -> &mut ReorderSums {
    let none = || PointSums::Reordering(ReorderSums::default());
    let point = row.point.get_or_insert_with(none);
    if !matches!(point, PointSums::Reordering(_)) {
        *point = none();
    }
    match point {
        PointSums::Reordering(sums) => sums,
        _ => unreachable!("it was made just now"),
    }
}

fn heavy_mut(row: &mut Row) -> &mut HeavySums {
    let none = || PointSums::Heavy(HeavySums::default());
    let point = row.point.get_or_insert_with(none);
    if !matches!(point, PointSums::Heavy(_)) {
        *point = none();
    }
    match point {
        PointSums::Heavy(sums) => sums,
        _ => unreachable!("it was made just now"),
    }
}

/// A column of what is known of round trips.
macro_rules! trip {
    ($name:literal, $kind:ident, $get:expr, $set:expr, $about:literal) => {
        Column {
            name: $name,
            kind: Kind::$kind,
            required: false,
            about: $about,
            get: |row| {
                let get: fn(&RoundTripSums) -> Cell<'_> = $get;
                trips(row).map_or(Cell::Null, get)
            },
            set: Some(|row, cell| {
                let set: fn(&mut RoundTripSums, Cell<'_>) = $set;
                if cell != Cell::Null {
                    set(trips_mut(row), cell);
                }
            }),
        }
    };
}

/// A column of how long round trips took.
macro_rules! time {
    ($name:literal, $kind:ident, $get:expr, $set:expr, $about:literal) => {
        trip!(
            $name,
            $kind,
            |sums| {
                let get: fn(&RoundTripTimes) -> Cell<'_> = $get;
                sums.times.as_ref().map_or(Cell::Null, get)
            },
            |sums, cell| {
                let set: fn(&mut RoundTripTimes, Cell<'_>) = $set;
                set(sums.times_mut(), cell);
            },
            $about
        )
    };
}

/// A percentile; the ends of its interval follow.
macro_rules! percentile {
    ($name:literal, $at:literal, $about:literal) => {
        time!(
            $name,
            Integer,
            |times| Cell::of_integer(times.percentiles.get($at).map(|found| found.time_ns)),
            |times, cell| {
                if let Some(found) = times.percentiles.get_mut($at) {
                    found.time_ns = cell.integer().unwrap_or_default();
                    (found.low_ns, found.high_ns) = (found.time_ns, found.time_ns);
                }
            },
            $about
        )
    };
}

/// An end of its interval, where the error is known.
macro_rules! percentile_end {
    ($name:literal, $at:literal, $field:ident, $about:literal) => {
        time!(
            $name,
            Integer,
            |times| {
                let known = times.percentiles.get($at).filter(|_| times.half_width_ns.is_some());
                Cell::of_integer(known.map(|found| found.$field))
            },
            |times, cell| {
                if let Some(found) = times.percentiles.get_mut($at) {
                    found.$field = cell.integer().unwrap_or_default();
                }
            },
            $about
        )
    };
}

/// A count among the sums of a row.
macro_rules! summed {
    ($name:literal, $variant:ident, $of:ident, $field:ident, $about:literal) => {
        Column {
            name: $name,
            kind: Kind::Integer,
            required: false,
            about: $about,
            get: |row| match &row.point {
                Some(PointSums::$variant(sums)) => Cell::of_count(Some(sums.$field)),
                _ => Cell::Null,
            },
            set: Some(|row, cell| {
                if let Some(count) = cell.count() {
                    $of(row).$field = count;
                }
            }),
        }
    };
}

/// Of round trips.
pub(crate) const ROUND_TRIP_COLUMNS: &[Column] = &[
    STEP,
    POINT,
    CLASS,
    ALGORITHM,
    DOMAIN,
    EPOCH_NS,
    text!("kind", kind, "kind of round trips; empty for what the point observed in all"),
    text!("part", part, "part of the kind; empty for the whole"),
    text!("scope_kind", scope_kind, "all, prefix-pair, flow, port, class or other"),
    SCOPE,
    START,
    END,
    EPOCH,
    RUN,
    EPOCHS,
    GAPS,
    PACKETS,
    DROPPED,
    LATE,
    REASON,
    trip!(
        "requests",
        Integer,
        |sums| Cell::of_count(sums.requests),
        |sums, cell| sums.requests = cell.count(),
        "packets that could begin a round trip; of all traffic only"
    ),
    trip!(
        "responses",
        Integer,
        |sums| Cell::of_count(sums.responses),
        |sums, cell| sums.responses = cell.count(),
        "packets that could end one; of all traffic only"
    ),
    trip!(
        "ambiguous",
        Integer,
        |sums| Cell::of_count(sums.ambiguous),
        |sums, cell| sums.ambiguous = cell.count(),
        "packets that could begin or end one, if it were known which; of all traffic only"
    ),
    trip!(
        "matched",
        Integer,
        |sums| Cell::of_count(Some(sums.matched)),
        |sums, cell| sums.matched = cell.count().unwrap_or_default(),
        "round trips that were measured"
    ),
    trip!(
        "weighted",
        Real,
        |sums| Cell::of_real(Some(sums.weighted)),
        |sums, cell| sums.weighted = cell.real().unwrap_or_default(),
        "round trips that there were, as estimated from those that were measured"
    ),
    time!(
        "mean_ns",
        Integer,
        |times| Cell::Integer(times.mean_ns as i64),
        |times, cell| times.mean_ns = cell.integer().unwrap_or_default() as f64,
        "mean round-trip time"
    ),
    time!(
        "stddev_ns",
        Real,
        |times| Cell::Real(times.deviation_ns),
        |times, cell| times.deviation_ns = cell.real().unwrap_or_default(),
        "standard deviation"
    ),
    derived!(
        "ci95_low_ns",
        Integer,
        |row| Cell::of_integer(interval(row).map(|ends| ends.0)),
        "lower end of the 95 % interval of the mean"
    ),
    derived!(
        "ci95_high_ns",
        Integer,
        |row| Cell::of_integer(interval(row).map(|ends| ends.1)),
        "upper end of the 95 % interval of the mean"
    ),
    time!(
        "half_width_ns",
        Real,
        |times| Cell::of_real(times.half_width_ns),
        |times, cell| times.half_width_ns = cell.real(),
        "half the width of the 95 % interval of the mean; null if the error is unknown"
    ),
    time!(
        "min_ns",
        Integer,
        |times| Cell::Integer(times.min_ns),
        |times, cell| times.min_ns = cell.integer().unwrap_or_default(),
        "shortest that was measured"
    ),
    percentile!("p50_ns", 0, "median"),
    percentile_end!("p50_low_ns", 0, low_ns, "lower end of its 95 % interval"),
    percentile_end!("p50_high_ns", 0, high_ns, "upper end of its 95 % interval"),
    percentile!("p90_ns", 1, "90th percentile"),
    percentile_end!("p90_low_ns", 1, low_ns, "lower end of its 95 % interval"),
    percentile_end!("p90_high_ns", 1, high_ns, "upper end of its 95 % interval"),
    percentile!("p95_ns", 2, "95th percentile"),
    percentile_end!("p95_low_ns", 2, low_ns, "lower end of its 95 % interval"),
    percentile_end!("p95_high_ns", 2, high_ns, "upper end of its 95 % interval"),
    percentile!("p99_ns", 3, "99th percentile"),
    percentile_end!("p99_low_ns", 3, low_ns, "lower end of its 95 % interval"),
    percentile_end!("p99_high_ns", 3, high_ns, "upper end of its 95 % interval"),
    percentile!("p999_ns", 4, "99.9th percentile"),
    percentile_end!("p999_low_ns", 4, low_ns, "lower end of its 95 % interval"),
    percentile_end!("p999_high_ns", 4, high_ns, "upper end of its 95 % interval"),
    time!(
        "max_ns",
        Integer,
        |times| Cell::Integer(times.max_ns),
        |times, cell| times.max_ns = cell.integer().unwrap_or_default(),
        "longest that was measured"
    ),
    trip!(
        "horizon_ns",
        Integer,
        |sums| Cell::of_integer(sums.horizon_ns),
        |sums, cell| sums.horizon_ns = cell.integer(),
        "the longest round trip of which enough could have been measured"
    ),
    trip!(
        "forgotten_flows",
        Integer,
        |sums| Cell::of_count(sums.forgotten_flows),
        |sums, cell| sums.forgotten_flows = cell.count(),
        "flows whose state gave way to that of others"
    ),
    trip!(
        "histogram",
        Bytes,
        |sums| sums.histogram.as_deref().map_or(Cell::Null, Cell::Bytes),
        |sums, cell| {
            if let Cell::Bytes(bytes) = cell {
                sums.histogram = Some(bytes.to_vec());
            }
        },
        "all times, as a histogram that can be summed"
    ),
];

/// The 95 % interval of the mean.
fn interval(row: &Row) -> Option<(i64, i64)> {
    let times = trips(row)?.times.as_ref()?;
    let half_ns = times.half_width_ns?;
    let end = |ns: f64| ns.round() as i64;
    Some((end(times.mean_ns - half_ns), end(times.mean_ns + half_ns)))
}

/// Of reordering.
pub(crate) const REORDERING_COLUMNS: &[Column] = &[
    STEP,
    POINT,
    CLASS,
    ALGORITHM,
    DOMAIN,
    EPOCH_NS,
    text!("scope_kind", scope_kind, "all, prefix or other"),
    SCOPE,
    START,
    END,
    EPOCH,
    RUN,
    EPOCHS,
    GAPS,
    PACKETS,
    DROPPED,
    LATE,
    REASON,
    summed!("judged", Reordering, reordering_mut, packets, "packets with data that were judged"),
    summed!(
        "out_of_order",
        Reordering,
        reordering_mut,
        out_of_order,
        "packets that others overtook"
    ),
    summed!(
        "retransmitted",
        Reordering,
        reordering_mut,
        retransmitted,
        "packets that came late because they were sent again"
    ),
    summed!(
        "undecided",
        Reordering,
        reordering_mut,
        undecided,
        "packets that came late, and nothing tells why"
    ),
    summed!("duplicates", Reordering, reordering_mut, duplicates, "copies of packets; not judged"),
    Column {
        name: "extent_sum",
        kind: Kind::Real,
        required: false,
        about: "sum over the packets that were overtaken of how far",
        get: |row| {
            let sums = row.point.as_ref().and_then(PointSums::reordering);
            Cell::of_real(sums.and_then(|sums| sums.extent_sum))
        },
        set: Some(|row, cell| {
            if let Some(sum) = cell.real() {
                reordering_mut(row).extent_sum = Some(sum);
            }
        }),
    },
    Column {
        name: "extent_max",
        kind: Kind::Integer,
        required: false,
        about: "how far the one was overtaken that was overtaken most",
        get: |row| {
            let sums = row.point.as_ref().and_then(PointSums::reordering);
            Cell::of_count(sums.and_then(|sums| sums.extent_max))
        },
        set: Some(|row, cell| {
            if let Some(largest) = cell.count() {
                reordering_mut(row).extent_max = Some(largest);
            }
        }),
    },
];

/// Of large flows.
pub(crate) const HEAVY_COLUMNS: &[Column] = &[
    STEP,
    POINT,
    CLASS,
    ALGORITHM,
    DOMAIN,
    EPOCH_NS,
    text!("scope_kind", scope_kind, "all, flow or other"),
    SCOPE,
    START,
    END,
    EPOCH,
    RUN,
    EPOCHS,
    GAPS,
    PACKETS,
    DROPPED,
    LATE,
    REASON,
    summed!(
        "flow_packets",
        Heavy,
        heavy_mut,
        packets,
        "packets of the flow, as counted or estimated"
    ),
    summed!("flow_bytes", Heavy, heavy_mut, bytes, "bytes of these packets"),
    summed!("packets_min", Heavy, heavy_mut, packets_min, "packets that it certainly had"),
    summed!(
        "packets_max",
        Heavy,
        heavy_mut,
        packets_max,
        "packets that it had at most in the epochs that list it"
    ),
    summed!(
        "unlisted_max",
        Heavy,
        heavy_mut,
        unlisted_max,
        "packets of a flow at most in an epoch that does not list it, summed over the epochs of the row"
    ),
    summed!(
        "listed",
        Heavy,
        heavy_mut,
        listed,
        "flows listed, epoch by epoch; of all traffic only"
    ),
];

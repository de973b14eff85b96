//! The columns of rows, table by table: the only list of them. Files, log records, `twixt query` and the
//! documentation follow from it.
//!
//! Columns are stable: one may be added at the end, none is renamed, moved or given another
//! meaning. Those that are derived from others are there for reading the files with other
//! programs; we compute them again.

use crate::row::{DelayPart, Row};
use crate::step::Step;

pub(crate) use of_point::{HEAVY_COLUMNS, REORDERING_COLUMNS, ROUND_TRIP_COLUMNS};

/// A column.
pub struct Column {
    /// Its name in files.
    pub name: &'static str,
    /// What its values are.
    pub kind: Kind,
    /// Whether every row has a value.
    pub required: bool,
    /// What it means.
    pub about: &'static str,
    pub(crate) get: fn(&Row) -> Cell<'_>,
    /// `None` for a column that is derived from others.
    pub(crate) set: Option<fn(&mut Row, Cell<'_>)>,
}

/// What the values of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// UTF-8.
    Text,
    /// 64 bits, signed.
    Integer,
    /// A float of 64 bits.
    Real,
    /// An integer of up to 38 digits.
    Wide,
    /// Bytes.
    Bytes,
}

/// A value of a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Cell<'a> {
    Null,
    Text(&'a str),
    Integer(i64),
    Real(f64),
    Wide(i128),
    Bytes(&'a [u8]),
}

impl<'a> Cell<'a> {
    fn text(self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text.to_owned()),
            _ => None,
        }
    }

    fn integer(self) -> Option<i64> {
        match self {
            Self::Integer(value) => Some(value),
            _ => None,
        }
    }

    fn count(self) -> Option<u64> {
        self.integer().map(|value| value.max(0) as u64)
    }

    fn real(self) -> Option<f64> {
        match self {
            Self::Real(value) => Some(value),
            _ => None,
        }
    }

    fn of_count(count: Option<u64>) -> Self {
        count.map_or(Self::Null, |count| Self::Integer(i64::try_from(count).unwrap_or(i64::MAX)))
    }

    fn of_integer(value: Option<i64>) -> Self {
        value.map_or(Self::Null, Self::Integer)
    }

    fn of_real(value: Option<f64>) -> Self {
        value.map_or(Self::Null, Self::Real)
    }

    fn of_text(text: Option<&'a str>) -> Self {
        text.map_or(Self::Null, Self::Text)
    }
}

fn delay(row: &mut Row) -> &mut DelayPart {
    row.delay.get_or_insert_default()
}

/// A column of text that every row has.
macro_rules! text {
    ($name:literal, $($field:ident).+, $about:literal) => {
        Column {
            name: $name, kind: Kind::Text, required: true, about: $about,
            get: |row| Cell::Text(&row.$($field).+),
            set: Some(|row, cell| row.$($field).+ = cell.text().unwrap_or_default()),
        }
    };
}

/// A column of integers that every row has.
macro_rules! integer {
    ($name:literal, $($field:ident).+, $about:literal) => {
        Column {
            name: $name, kind: Kind::Integer, required: true, about: $about,
            get: |row| Cell::Integer(row.$($field).+),
            set: Some(|row, cell| row.$($field).+ = cell.integer().unwrap_or_default()),
        }
    };
}

/// A column of counts that may be unknown.
macro_rules! count {
    ($name:literal, $($field:ident).+, $about:literal) => {
        Column {
            name: $name,
            kind: Kind::Integer,
            required: false,
            about: $about,
            get: |row| Cell::of_count(row.$($field).+),
            set: Some(|row, cell| row.$($field).+ = cell.count()),
        }
    };
}

/// A column of integers that may be unknown.
macro_rules! maybe {
    ($name:literal, $field:ident, $about:literal) => {
        Column {
            name: $name,
            kind: Kind::Integer,
            required: false,
            about: $about,
            get: |row| Cell::of_integer(row.$field),
            set: Some(|row, cell| row.$field = cell.integer()),
        }
    };
}

/// A column that is computed from others.
macro_rules! derived {
    ($name:literal, $kind:ident, $get:expr, $about:literal) => {
        Column {
            name: $name,
            kind: Kind::$kind,
            required: false,
            about: $about,
            get: $get,
            set: None,
        }
    };
}

/// A part of what is known of delay.
macro_rules! part {
    ($name:expr, $kind:ident, $get:expr, $set:expr, $about:literal) => {
        Column {
            name: $name,
            kind: Kind::$kind,
            required: false,
            about: $about,
            get: |row| {
                let get: fn(&DelayPart) -> Cell<'_> = $get;
                row.delay.as_ref().map_or(Cell::Null, get)
            },
            set: Some(|row, cell| {
                let set: fn(&mut DelayPart, Cell<'_>) = $set;
                if cell != Cell::Null {
                    set(delay(row), cell);
                }
            }),
        }
    };
}

/// A percentile or an end of its interval.
macro_rules! quantile {
    ($name:literal, $index:literal, $field:ident, $about:literal) => {
        part!(
            $name,
            Integer,
            |part| Cell::of_integer(part.quantiles[$index].$field),
            |part, cell| part.quantiles[$index].$field = cell.integer(),
            $about
        )
    };
}

mod of_point;

/// Of every table.
const STEP: Column = Column {
    name: "step",
    kind: Kind::Text,
    required: true,
    about: "length of the row: epoch, minute or hour",
    get: |row| Cell::Text(row.step.name()),
    set: Some(|row, cell| {
        let text = cell.text().unwrap_or_default();
        row.step = text.parse().unwrap_or(Step::Epoch);
    }),
};
/// Of every table.
const EPOCHS: Column = Column {
    name: "epochs",
    kind: Kind::Integer,
    required: true,
    about: "epochs that the row rests on; 0 for a gap",
    get: |row| Cell::of_count(Some(row.epochs)),
    set: Some(|row, cell| row.epochs = cell.count().unwrap_or_default()),
};
/// Of every table.
const GAPS: Column = Column {
    name: "gaps",
    kind: Kind::Integer,
    required: true,
    about: "epochs without an estimate",
    get: |row| Cell::of_count(Some(row.gaps)),
    set: Some(|row, cell| row.gaps = cell.count().unwrap_or_default()),
};
/// Of every table.
const REASON: Column = Column {
    name: "reason",
    kind: Kind::Text,
    required: false,
    about: "why a value is unknown",
    get: |row| Cell::of_text(row.reason.as_deref()),
    set: Some(|row, cell| row.reason = cell.text()),
};

/// The columns of estimates, in the order in which they stand in files.
pub(crate) const COLUMNS: &[Column] = &[
    STEP,
    text!("upstream", series.upstream, "the point that packets pass first"),
    text!("downstream", series.downstream, "the point that packets pass second"),
    text!("class", series.class, "class of traffic; empty without classes"),
    text!("algorithm", series.algorithm, "the algorithm of the estimate"),
    text!("domain", series.domain, "domain within which point names are unique"),
    integer!("epoch_ns", series.epoch_ns, "length of an epoch"),
    text!("scope_kind", scope_kind, "all, class, prefix-pair, flow, port or other"),
    text!("scope", scope, "scope of the estimate"),
    integer!("start_ns", start_ns, "start, by the upstream clock, nanoseconds since 1970 UTC"),
    integer!("end_ns", end_ns, "end, inclusive; the next row starts one nanosecond later"),
    maybe!("epoch", epoch, "number of the epoch, or of the first one"),
    EPOCHS,
    GAPS,
    count!("packets", packets, "packets counted upstream"),
    count!("used", used, "packets that the estimate rests on"),
    count!("lost", lost, "packets lost by the network; null if unknown"),
    count!("bytes", bytes, "bytes of the packets, by their IP headers"),
    derived!(
        "mean_ns",
        Integer,
        |row| Cell::of_integer(row.delay.as_ref().map(DelayPart::mean_ns)),
        "mean delay"
    ),
    derived!(
        "stddev_ns",
        Real,
        |row| Cell::of_real(row.delay.as_ref().and_then(DelayPart::deviation_ns)),
        "standard deviation of the delay of single packets"
    ),
    derived!(
        "ci95_low_ns",
        Integer,
        |row| Cell::of_integer(row.delay.as_ref().and_then(DelayPart::interval).map(|ci| ci.0)),
        "lower end of the 95 % interval of the mean"
    ),
    derived!(
        "ci95_high_ns",
        Integer,
        |row| Cell::of_integer(row.delay.as_ref().and_then(DelayPart::interval).map(|ci| ci.1)),
        "upper end of the 95 % interval of the mean"
    ),
    part!(
        "min_ns",
        Integer,
        |part| Cell::of_integer(part.min_ns),
        |part, cell| part.min_ns = cell.integer(),
        "smallest delay"
    ),
    quantile!("p50_ns", 0, value_ns, "median delay"),
    quantile!("p50_low_ns", 0, low_ns, "lower end of its 95 % interval"),
    quantile!("p50_high_ns", 0, high_ns, "upper end of its 95 % interval"),
    quantile!("p95_ns", 1, value_ns, "95th percentile of delay"),
    quantile!("p95_low_ns", 1, low_ns, "lower end of its 95 % interval"),
    quantile!("p95_high_ns", 1, high_ns, "upper end of its 95 % interval"),
    quantile!("p99_ns", 2, value_ns, "99th percentile of delay"),
    quantile!("p99_low_ns", 2, low_ns, "lower end of its 95 % interval"),
    quantile!("p99_high_ns", 2, high_ns, "upper end of its 95 % interval"),
    quantile!("p999_ns", 3, value_ns, "99.9th percentile of delay"),
    quantile!("p999_low_ns", 3, low_ns, "lower end of its 95 % interval"),
    quantile!("p999_high_ns", 3, high_ns, "upper end of its 95 % interval"),
    part!(
        "max_ns",
        Integer,
        |part| Cell::of_integer(part.max_ns),
        |part, cell| part.max_ns = cell.integer(),
        "largest delay"
    ),
    maybe!("clock_offset_ns", clock_offset_ns, "how far the downstream clock is ahead"),
    maybe!("clock_error_ns", clock_error_ns, "bound on the clock difference"),
    maybe!("realigned_epochs", realigned_epochs, "downstream epoch numbers are larger by this"),
    count!("moved", moved, "packets in flight at boundaries that were moved to their epoch"),
    REASON,
    part!(
        "delay_count",
        Integer,
        |part| Cell::of_count(Some(part.count)),
        |part, cell| part.count = cell.count().unwrap_or(1).max(1),
        "number of packets in delay_sum_ns"
    ),
    part!(
        "delay_sum_ns",
        Wide,
        |part| Cell::Wide(part.sum_ns),
        |part, cell| {
            if let Cell::Wide(sum) = cell {
                part.sum_ns = sum;
            }
        },
        "sum of their delays"
    ),
    part!(
        "delay_squares_ns2",
        Real,
        |part| Cell::of_real(part.squares_ns2),
        |part, cell| part.squares_ns2 = cell.real(),
        "sum of squared differences from their mean"
    ),
    part!(
        "delay_half_width_ns",
        Real,
        |part| Cell::of_real(part.half_width_ns),
        |part, cell| part.half_width_ns = cell.real(),
        "half the width of the 95 % interval of the mean"
    ),
    part!(
        "delay_histogram",
        Bytes,
        |part| part.histogram.as_deref().map_or(Cell::Null, Cell::Bytes),
        |part, cell| {
            if let Cell::Bytes(bytes) = cell {
                part.histogram = Some(bytes.to_vec());
            }
        },
        "all delays, as a histogram that can be summed"
    ),
    derived!(
        "jitter_ns",
        Real,
        |row| Cell::of_real(row.delay.as_ref().and_then(DelayPart::jitter_ns)),
        "mean absolute difference of the delays of consecutive sampled packets"
    ),
    part!(
        "jitter_count",
        Integer,
        |part| Cell::of_count(part.steps.map(|steps| steps.count)),
        |part, cell| part.steps.get_or_insert_default().count = cell.count().unwrap_or(0),
        "number of differences in jitter_sum_ns"
    ),
    part!(
        "jitter_sum_ns",
        Real,
        |part| Cell::of_real(part.steps.map(|steps| steps.sum_ns)),
        |part, cell| part.steps.get_or_insert_default().sum_ns = cell.real().unwrap_or(0.0),
        "sum of these differences"
    ),
    Column {
        name: "late_epochs",
        kind: Kind::Integer,
        required: false,
        about: "epochs among them that were estimated late: `gaps` may still count them",
        get: |row| Cell::of_count(Some(row.late_epochs).filter(|epochs| *epochs > 0)),
        set: Some(|row, cell| row.late_epochs = cell.count().unwrap_or_default()),
    },
    count!(
        "lost_min",
        lost_min,
        "packets lost by the network at least; equals lost if that is known"
    ),
    count!(
        "lost_max",
        lost_max,
        "packets lost by the network at most; equals lost if that is known"
    ),
    count!(
        "upstream_dropped",
        missed_upstream.dropped,
        "packets that the kernel dropped upstream, of all classes; noticed in this time"
    ),
    count!(
        "downstream_dropped",
        missed_downstream.dropped,
        "packets that the kernel dropped downstream, of all classes; noticed in this time"
    ),
    count!(
        "upstream_late",
        missed_upstream.late,
        "packets observed upstream after their epoch was sealed"
    ),
    count!(
        "downstream_late",
        missed_downstream.late,
        "packets observed downstream after their epoch was sealed"
    ),
    count!("strays", strays, "packets that only downstream observed; null if unknown"),
    count!(
        "strays_min",
        strays_min,
        "packets that only downstream observed at least; equals strays if that is known"
    ),
    count!(
        "strays_max",
        strays_max,
        "packets that only downstream observed at most; equals strays if that is known"
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pages_have_every_column() {
        check(COLUMNS, include_str!("../../../docs/reference/estimates.md"));
        let page = include_str!("../../../docs/reference/one-point.md");
        let from = |heading: &str| page.split_once(heading).unwrap().1;
        check(ROUND_TRIP_COLUMNS, from("### Columns of round trips"));
        check(REORDERING_COLUMNS, from("### Columns of reordering"));
        check(HEAVY_COLUMNS, from("### Columns of large flows"));
    }

    #[track_caller]
    fn check(columns: &[Column], page: &str) {
        let mut lines = page.lines().skip_while(|line| !line.starts_with("| `step`"));
        for column in columns {
            let kind = match column.kind {
                Kind::Text => "text",
                Kind::Integer => "integer",
                Kind::Real => "float",
                Kind::Wide => "decimal(38,0)",
                Kind::Bytes => "bytes",
            };
            let null = if column.required { "" } else { ", may be null" };
            let line = format!("| `{}` | {kind}{null} | {} |", column.name, column.about);
            assert_eq!(lines.next(), Some(line.as_str()));
        }
    }
}

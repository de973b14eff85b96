//! Columns of a table, and which of them a narrow terminal shows.

/// A column of the table of segments or flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Column {
    Name,
    Flow,
    Class,
    Packets,
    Mean,
    P50,
    P95,
    P99,
    Loss,
    Course,
}

/// Columns of segments, from left to right.
pub(crate) const OF_SEGMENTS: &[Column] = &[
    Column::Name,
    Column::Class,
    Column::Mean,
    Column::P50,
    Column::P95,
    Column::P99,
    Column::Loss,
    Column::Packets,
    Column::Course,
];
/// Columns of flows.
pub(crate) const OF_FLOWS: &[Column] = &[
    Column::Flow,
    Column::Mean,
    Column::P50,
    Column::P95,
    Column::P99,
    Column::Loss,
    Column::Packets,
];
/// What a narrow terminal leaves out, in this order.
const LEFT_OUT: [Column; 7] = [
    Column::Packets,
    Column::P50,
    Column::P95,
    Column::Course,
    Column::Class,
    Column::P99,
    Column::Loss,
];
/// Columns between two columns.
const GAP: usize = 1;
/// The course is no wider than this.
const COURSE_MAX: usize = 60;
/// Names are no wider than this, nor than they need, as long as a course is narrower than it may be.
const NAME_ENOUGH: usize = 40;

impl Column {
    /// At the head of the column, and in the status line.
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Name => "segment",
            Self::Flow => "flow",
            Self::Class => "class",
            Self::Packets => "packets",
            Self::Mean => "mean ± 95 %",
            Self::P50 => "p50",
            Self::P95 => "p95",
            Self::P99 => "p99",
            Self::Loss => "loss",
            Self::Course => "over time",
        }
    }

    /// Whether rows can be sorted by it.
    pub(crate) fn is_sortable(self) -> bool {
        self != Self::Course
    }

    const fn width_min(self) -> usize {
        match self {
            Self::Name => 17,
            // Two addresses with ports, of IPv4.
            Self::Flow => 38,
            Self::Class => 7,
            Self::Mean => 18,
            Self::Packets | Self::P50 | Self::P95 | Self::P99 => 7,
            Self::Loss => 8,
            Self::Course => 10,
        }
    }
}

/// The columns that fit, with their widths; the widest name of a segment needs so many.
pub(crate) fn fitting(columns: &[Column], width: usize, names: usize) -> Vec<(Column, usize)> {
    let mut shown = columns.to_vec();
    let needed = |shown: &[Column]| -> usize {
        shown.iter().map(|column| column.width_min() + GAP).sum::<usize>() - GAP
    };
    for column in LEFT_OUT {
        if needed(&shown) <= width {
            break;
        }
        shown.retain(|of| *of != column);
    }
    let mut spare = width.saturating_sub(needed(&shown));
    let has_course = shown.contains(&Column::Course);
    let mut widths: Vec<(Column, usize)> =
        shown.into_iter().map(|column| (column, column.width_min())).collect();
    let mut widen = |of: Column, most: usize| {
        if let Some((_, wide)) = widths.iter_mut().find(|(column, _)| *column == of) {
            let more = spare.min(most.saturating_sub(*wide));
            (*wide, spare) = (*wide + more, spare - more);
        }
    };
    if has_course {
        widen(Column::Name, names.min(NAME_ENOUGH));
        widen(Column::Course, COURSE_MAX);
    }
    widen(Column::Name, usize::MAX);
    widen(Column::Flow, usize::MAX);
    widths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(columns: &[Column], width: usize, expected: &str) {
        let fitting = fitting(columns, width, 17);
        let titles: Vec<&str> = fitting.iter().map(|(column, _)| column.title()).collect();
        assert_eq!(titles.join(" "), expected);
        let used: usize = fitting.iter().map(|(_, wide)| wide + GAP).sum::<usize>() - GAP;
        assert!(used <= width.max(Column::Name.width_min() + Column::Mean.width_min() + GAP));
    }

    #[test]
    fn columns_are_left_out_in_a_fixed_order() {
        let all = "segment class mean ± 95 % p50 p95 p99 loss packets over time";
        check(OF_SEGMENTS, 200, all);
        check(OF_SEGMENTS, 96, all);
        check(OF_SEGMENTS, 95, "segment class mean ± 95 % p50 p95 p99 loss over time");
        check(OF_SEGMENTS, 80, "segment class mean ± 95 % p95 p99 loss over time");
        check(OF_SEGMENTS, 79, "segment class mean ± 95 % p99 loss over time");
        check(OF_SEGMENTS, 70, "segment class mean ± 95 % p99 loss");
        check(OF_SEGMENTS, 60, "segment mean ± 95 % p99 loss");
        check(OF_SEGMENTS, 50, "segment mean ± 95 % loss");
        check(OF_SEGMENTS, 42, "segment mean ± 95 %");
        check(OF_SEGMENTS, 10, "segment mean ± 95 %");
        check(OF_FLOWS, 80, "flow mean ± 95 % p99 loss");
        check(OF_FLOWS, 97, "flow mean ± 95 % p50 p95 p99 loss");
    }

    #[test]
    fn what_is_left_widens_names_and_courses() {
        #[track_caller]
        fn check(width: usize, names: usize, name: usize, course: usize) {
            let columns = fitting(OF_SEGMENTS, width, names);
            let ends = (columns.first(), columns.last());
            assert_eq!(ends, (Some(&(Column::Name, name)), Some(&(Column::Course, course))));
        }
        check(200, 17, 71, 60);
        check(110, 17, 17, 24);
        check(110, 25, 25, 16);
        check(110, usize::MAX, 31, 10);
        check(150, usize::MAX, 40, 41);
    }
}

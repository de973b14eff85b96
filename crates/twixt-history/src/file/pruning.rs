//! Which rows of a row group need to be looked at, by what the page index says of their pages.

use std::ops::Range;

use parquet::file::metadata::ParquetMetaData;
use parquet::file::page_index::column_index::ColumnIndexMetaData;

/// Runs of rows, in order, that do not touch each other.
pub(super) type Rows = Vec<Range<usize>>;

/// Pages of a column that may have what is wanted.
pub(super) struct Pages<'a> {
    pub(super) metadata: &'a ParquetMetaData,
    pub(super) group: usize,
}

impl Pages<'_> {
    /// All rows of the group.
    pub(super) fn all(&self) -> Rows {
        let rows = usize::try_from(self.metadata.row_group(self.group).num_rows()).unwrap_or(0);
        std::iter::once(0..rows).filter(|rows| !rows.is_empty()).collect()
    }

    /// Those of pages whose range of texts has `text`.
    pub(super) fn with_text(&self, column: usize, text: &str) -> Rows {
        let text = text.as_bytes();
        self.pages(column, |index, page| match index {
            ColumnIndexMetaData::BYTE_ARRAY(index) => {
                index.min_value(page).is_none_or(|least| least <= text)
                    && index.max_value(page).is_none_or(|most| text <= most)
            }
            _ => true,
        })
    }

    /// Those of pages whose range of integers has something in common with `range`.
    pub(super) fn with_integers(&self, column: usize, from: i64, to: i64) -> Rows {
        self.pages(column, |index, page| match index {
            ColumnIndexMetaData::INT64(index) => {
                index.min_value(page).is_none_or(|least| *least <= to)
                    && index.max_value(page).is_none_or(|most| from <= *most)
            }
            _ => true,
        })
    }

    /// Whether some rows have no value in a column, by what the index says of their pages.
    pub(super) fn is_null(&self, column: usize, rows: &Rows) -> bool {
        common(&self.pages(column, |index, page| !index.is_null_page(page)), rows).is_empty()
    }

    /// Rows of the pages that may match; all where there is no index.
    fn pages(&self, column: usize, matches: impl Fn(&ColumnIndexMetaData, usize) -> bool) -> Rows {
        let index =
            self.metadata.column_index().and_then(|index| index.get(self.group)?.get(column));
        let offsets =
            self.metadata.offset_index().and_then(|index| index.get(self.group)?.get(column));
        let (Some(index), Some(offsets)) = (index, offsets) else { return self.all() };
        let locations = offsets.page_locations();
        // One without an index has no number of pages either, and says so by panicking.
        if matches!(index, ColumnIndexMetaData::NONE) || index.num_pages() != locations.len() as u64
        {
            return self.all();
        }
        let end = self.all().last().map_or(0, |rows| rows.end);
        let starts =
            locations.iter().map(|page| usize::try_from(page.first_row_index).unwrap_or(0));
        let ends = starts.clone().skip(1).chain([end]);
        let mut rows: Rows = Vec::new();
        for (page, (start, end)) in starts.zip(ends).enumerate() {
            if start < end && matches(index, page) {
                match rows.last_mut() {
                    Some(last) if last.end == start => last.end = end,
                    _ => rows.push(start..end),
                }
            }
        }
        rows
    }
}

/// What two have in common.
pub(super) fn common(one: &Rows, other: &Rows) -> Rows {
    let (mut ones, mut others) = (one.iter().peekable(), other.iter().peekable());
    let mut rows = Vec::new();
    while let (Some(one), Some(other)) = (ones.peek(), others.peek()) {
        let both = one.start.max(other.start)..one.end.min(other.end);
        if !both.is_empty() {
            rows.push(both);
        }
        if one.end < other.end {
            ones.next()
        } else {
            others.next()
        };
    }
    rows
}

/// Those of some rows that are to be kept, by their places among them.
pub(super) fn kept(rows: &Rows, is_kept: &[bool]) -> Rows {
    let numbers = rows.iter().cloned().flatten();
    let mut kept: Rows = Vec::new();
    for (number, _) in numbers.zip(is_kept).filter(|(_, is_kept)| **is_kept) {
        match kept.last_mut() {
            Some(last) if last.end == number => last.end += 1,
            _ => kept.push(number..number + 1),
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(one: &[(usize, usize)], other: &[(usize, usize)], both: &[(usize, usize)]) {
        let rows =
            |rows: &[(usize, usize)]| -> Rows { rows.iter().map(|rows| rows.0..rows.1).collect() };
        assert_eq!(common(&rows(one), &rows(other)), rows(both));
    }

    #[test]
    fn rows_that_are_kept_are_runs_again() {
        let is_kept = [true, true, false, false, true, true];
        assert_eq!(kept(&vec![3..6, 8..11], &is_kept), [3..5, 9..11]);
        assert_eq!(kept(&vec![3..5, 6..7], &[false; 3]), Rows::new());
    }

    #[test]
    fn rows_in_common_are_those_of_both() {
        check(&[(0, 10), (20, 30)], &[(5, 25)], &[(5, 10), (20, 25)]);
        check(&[(0, 10)], &[(10, 20)], &[]);
        check(&[(0, 5), (5, 9)], &[(0, 9)], &[(0, 5), (5, 9)]);
        check(&[], &[(0, 9)], &[]);
    }
}

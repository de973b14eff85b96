//! Lines in an order, some of which pass a filter, and one of which is selected.

use std::cmp::Ordering;

use unicode_width::UnicodeWidthStr;

use crate::columns::Column;
use crate::known::KnownLine;
use crate::news::{KindLine, PointLine};

/// What a table needs to know of its lines.
pub(crate) trait Line {
    /// Distinguishes it from others, for as long as it is there.
    fn name(&self) -> String;
    /// A value to sort by; unknown ones are last, in any order.
    fn value(&self, column: Column) -> Option<f64>;
    /// Columns that the name of its segment needs, if it has one.
    fn name_columns(&self) -> usize {
        0
    }
}

impl Line for KnownLine {
    fn name(&self) -> String {
        let cell = &self.cell;
        match self.scope.as_str() {
            "" | "all" => format!("{} > {} {}", cell.upstream, cell.downstream, cell.class),
            flow => flow.to_owned(),
        }
    }

    fn value(&self, column: Column) -> Option<f64> {
        self.value(column)
    }

    fn name_columns(&self) -> usize {
        self.cell.upstream.width() + " > ".len() + self.cell.downstream.width()
    }
}

impl Line for KindLine {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn value(&self, column: Column) -> Option<f64> {
        let (mean_ns, _, percentiles) = self.times_ns?;
        let of = |at: usize| percentiles[at].map(|ns| ns as f64);
        match column {
            Column::Packets => Some(self.measured as f64),
            Column::Mean => Some(mean_ns),
            Column::P50 => of(0),
            Column::P95 => of(1),
            Column::P99 => of(2),
            _ => None,
        }
    }
}

impl Line for PointLine {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn value(&self, column: Column) -> Option<f64> {
        (column == Column::Packets).then_some(self.packets as f64)
    }
}

/// A line with what it is sorted and found by, made once for each answer: there may be thousands.
#[derive(Clone, Debug)]
struct Entry<L> {
    name: String,
    /// The name in small letters.
    folded: String,
    line: L,
}

impl<L: Line> From<L> for Entry<L> {
    fn from(line: L) -> Self {
        let name = line.name();
        Self { folded: name.to_lowercase(), name, line }
    }
}

/// Lines, and what was chosen of them.
#[derive(Clone, Debug)]
pub(crate) struct Table<L> {
    entries: Vec<Entry<L>>,
    /// Columns of the widest name of a segment.
    pub(crate) name_columns: usize,
    pub(crate) sort: Column,
    /// Smallest first; names from the last.
    pub(crate) is_reversed: bool,
    /// Name and place of the selected line: the name holds while lines come and go, the place once
    /// the line is gone.
    chosen: Option<(String, usize)>,
}

impl<L: Line> Table<L> {
    pub(crate) const fn sorted_by(sort: Column) -> Self {
        Self { entries: Vec::new(), name_columns: 0, sort, is_reversed: false, chosen: None }
    }

    pub(crate) fn replace(&mut self, lines: Vec<L>) {
        self.name_columns = lines.iter().map(Line::name_columns).max().unwrap_or(0);
        self.entries = lines.into_iter().map(Entry::from).collect();
        self.sort();
    }

    pub(crate) fn sort_by(&mut self, sort: Column, is_reversed: bool) {
        (self.sort, self.is_reversed) = (sort, is_reversed);
        self.sort();
    }

    fn sort(&mut self) {
        self.entries.sort_by(|one, other| order(one, other, self.sort, self.is_reversed));
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Lines with this in their names, in order, and where the selected one stands among them. Capital
    /// letters count as small ones.
    pub(crate) fn shown(&self, filter: &str) -> (Vec<&L>, usize) {
        let passing = self.passing(filter);
        let place = self.place(&passing);
        (passing.into_iter().map(|entry| &entry.line).collect(), place)
    }

    fn passing(&self, filter: &str) -> Vec<&Entry<L>> {
        let wanted = filter.to_lowercase();
        self.entries.iter().filter(|entry| entry.folded.contains(&wanted)).collect()
    }

    fn place(&self, passing: &[&Entry<L>]) -> usize {
        let Some((name, place)) = &self.chosen else { return 0 };
        let found = passing.iter().position(|entry| entry.name == *name);
        found.unwrap_or((*place).min(passing.len().saturating_sub(1)))
    }

    pub(crate) fn selected(&self, filter: &str) -> Option<&L> {
        let (shown, place) = self.shown(filter);
        shown.get(place).copied()
    }

    /// Selects another line, so many further on.
    pub(crate) fn go(&mut self, filter: &str, by: isize) {
        let passing = self.passing(filter);
        let place = self.place(&passing).saturating_add_signed(by);
        let place = place.min(passing.len().saturating_sub(1));
        self.chosen = passing.get(place).map(|entry| (entry.name.clone(), place));
    }

    pub(crate) fn forget_choice(&mut self) {
        self.chosen = None;
    }
}

/// Largest first, names from the first; what is not known last in either case.
fn order<L: Line>(one: &Entry<L>, other: &Entry<L>, sort: Column, is_reversed: bool) -> Ordering {
    let by_name = || one.name.cmp(&other.name);
    if matches!(sort, Column::Name | Column::Flow | Column::Class) {
        return if is_reversed { by_name().reverse() } else { by_name() };
    }
    let ordering = match (one.line.value(sort), other.line.value(sort)) {
        (Some(one), Some(other)) if is_reversed => one.total_cmp(&other),
        (Some(one), Some(other)) => other.total_cmp(&one),
        (one, other) => other.is_some().cmp(&one.is_some()),
    };
    ordering.then_with(by_name)
}

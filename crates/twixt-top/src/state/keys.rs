//! What keys do.

use super::{Table, TopState, View};
use crate::columns::{Column, OF_FLOWS, OF_SEGMENTS};
use crate::known::KnownLine;

/// A key that was pressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopKey {
    /// One line up.
    Up,
    /// One line down.
    Down,
    /// A page up.
    PageUp,
    /// A page down.
    PageDown,
    /// The first line.
    Home,
    /// The last line.
    End,
    /// Opens what is selected.
    Enter,
    /// Closes what was opened.
    Escape,
    /// The other table.
    Tab,
    /// Deletes a letter.
    Backspace,
    /// A letter.
    Letter(char),
}

/// Lines of a page.
const PAGE: isize = 10;
/// Letters of a filter.
const FILTER_MAX: usize = 100;

impl TopState {
    /// Takes a key; whether the view goes on.
    #[must_use]
    pub fn press(&mut self, key: TopKey) -> bool {
        if self.shows_help {
            self.shows_help = false;
            return key != TopKey::Letter('q');
        }
        if self.is_typing {
            self.type_filter(key);
            return true;
        }
        match key {
            TopKey::Letter('q') => return false,
            TopKey::Letter('?' | 'h') => self.shows_help = true,
            TopKey::Letter('/') => self.is_typing = true,
            TopKey::Letter('r') => self.asked += 1,
            TopKey::Letter('s') => self.sort_by_next(),
            TopKey::Letter('o') => self.reverse(),
            TopKey::Up | TopKey::Letter('k') => self.go(-1),
            TopKey::Down | TopKey::Letter('j') => self.go(1),
            TopKey::PageUp => self.go(-PAGE),
            TopKey::PageDown => self.go(PAGE),
            TopKey::Home | TopKey::Letter('g') => self.go(isize::MIN),
            TopKey::End | TopKey::Letter('G') => self.go(isize::MAX),
            TopKey::Enter => self.open(),
            TopKey::Escape => self.close(),
            TopKey::Tab => {
                if let View::Point { has_flows } = &mut self.view {
                    *has_flows = !*has_flows;
                }
            }
            TopKey::Backspace | TopKey::Letter(_) => {}
        }
        true
    }

    fn type_filter(&mut self, key: TopKey) {
        match key {
            TopKey::Letter(letter) if self.filter.chars().count() < FILTER_MAX => {
                self.filter.push(letter);
            }
            TopKey::Backspace => {
                self.filter.pop();
            }
            TopKey::Enter => self.is_typing = false,
            TopKey::Escape => {
                self.is_typing = false;
                self.filter.clear();
            }
            _ => {}
        }
    }

    fn open(&mut self) {
        if self.view == View::Segments
            && let Some(cell) = self.selected_cell()
        {
            self.flows = Table::sorted_by(Column::Mean);
            self.flows_answer = None;
            self.filter.clear();
            self.view = View::Flows(cell);
        }
    }

    /// Goes back; where there is nothing to go back to, the filter ends.
    fn close(&mut self) {
        let has_filter = !self.filter.is_empty();
        self.filter.clear();
        if matches!(self.view, View::Flows(_)) && !has_filter {
            self.view = View::Segments;
        }
    }

    fn go(&mut self, by: isize) {
        let filter = self.filter.clone();
        match &self.view {
            View::Segments => self.segments.go(&filter, by),
            View::Flows(_) => self.flows.go(&filter, by),
            View::Point { has_flows: false } => self.kinds.go(&filter, by),
            View::Point { has_flows: true } => self.point_flows.go(&filter, by),
        }
    }

    fn sort_by_next(&mut self) {
        const OF_KINDS: &[Column] =
            &[Column::Packets, Column::Mean, Column::P50, Column::P95, Column::P99, Column::Name];
        const OF_POINT: &[Column] = &[Column::Packets, Column::Name];
        match &self.view {
            View::Segments => sort_next(&mut self.segments, OF_SEGMENTS),
            View::Flows(_) => sort_next(&mut self.flows, OF_FLOWS),
            View::Point { has_flows: false } => sort_next(&mut self.kinds, OF_KINDS),
            View::Point { has_flows: true } => sort_next(&mut self.point_flows, OF_POINT),
        }
    }

    fn reverse(&mut self) {
        match &self.view {
            View::Segments => reverse(&mut self.segments),
            View::Flows(_) => reverse(&mut self.flows),
            View::Point { has_flows: false } => reverse(&mut self.kinds),
            View::Point { has_flows: true } => reverse(&mut self.point_flows),
        }
    }

    /// The table that has the keys: its order, and how many of its lines are shown.
    pub(crate) fn focus(&self) -> (Column, bool, usize, usize) {
        let filter = &self.filter;
        match &self.view {
            View::Segments => focus(&self.segments, filter),
            View::Flows(_) => focus::<KnownLine>(&self.flows, filter),
            View::Point { has_flows: false } => focus(&self.kinds, filter),
            View::Point { has_flows: true } => focus(&self.point_flows, filter),
        }
    }
}

fn focus<L: super::Line>(table: &Table<L>, filter: &str) -> (Column, bool, usize, usize) {
    (table.sort, table.is_reversed, table.shown(filter).0.len(), table.len())
}

fn sort_next<L: super::Line>(table: &mut Table<L>, columns: &[Column]) {
    let sortable = || columns.iter().copied().filter(|column| column.is_sortable());
    let next = sortable().skip_while(|column| *column != table.sort).nth(1);
    let next = next.or_else(|| sortable().next()).unwrap_or(Column::Name);
    table.sort_by(next, false);
    table.forget_choice();
}

fn reverse<L: super::Line>(table: &mut Table<L>) {
    table.sort_by(table.sort, !table.is_reversed);
    table.forget_choice();
}

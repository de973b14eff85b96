//! Lines of tables: cells of a fixed width beside each other.

use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use crate::plain::plain;

/// Which side of a cell a text stands at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Left,
    Right,
}

/// A line that is being put together.
#[derive(Debug, Default)]
pub(super) struct TableLine {
    spans: Vec<Span<'static>>,
}

impl TableLine {
    /// Adds a text in so many columns; what does not fit is cut.
    pub(super) fn add(&mut self, text: &str, width: usize, side: Side, style: Style) {
        if !self.spans.is_empty() {
            self.spans.push(Span::raw(" "));
        }
        let text = plain(text, width);
        let space = " ".repeat(width.saturating_sub(text.width()));
        let padded = match side {
            Side::Left => text + &space,
            Side::Right => space + &text,
        };
        self.spans.push(Span::styled(padded, style));
    }

    /// The line; the selected one is marked.
    pub(super) fn finish(self, is_selected: bool) -> Line<'static> {
        let line = Line::from(self.spans);
        match is_selected {
            true => line.style(Style::new().add_modifier(Modifier::REVERSED)),
            false => line,
        }
    }
}

/// Heads of columns.
pub(super) const fn head() -> Style {
    Style::new().add_modifier(Modifier::BOLD)
}

/// The head of the column that rows are sorted by.
pub(super) const fn sorted_head() -> Style {
    Style::new().add_modifier(Modifier::BOLD.union(Modifier::UNDERLINED))
}

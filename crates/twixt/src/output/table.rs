//! Tables that fit the terminal.

use std::fmt;
use std::io::IsTerminal;

use comfy_table::{CellAlignment, ContentArrangement, presets};

use super::human::UNKNOWN;

/// A table with its first column to the left and the others to the right.
pub(crate) struct Table {
    headings: Vec<String>,
    rows: Vec<Vec<String>>,
    /// Headings of columns that may be left out, the first of them first.
    expendable: &'static [&'static str],
}

/// Columns between two cells.
const GAP: usize = 2;

impl Table {
    /// With these headings.
    pub(crate) fn new(headings: &[&str]) -> Self {
        let headings = headings.iter().map(|&heading| heading.to_owned()).collect();
        Self { headings, rows: Vec::new(), expendable: &[] }
    }

    /// Leaves these columns out, in this order, where all do not fit.
    pub(crate) fn expending(self, expendable: &'static [&'static str]) -> Self {
        Self { expendable, ..self }
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// As many of the columns as fit, and the names of those that do not.
    fn fitting(&self, room: Option<usize>) -> (Vec<usize>, Vec<&'static str>) {
        let mut columns: Vec<usize> = (0..self.headings.len()).collect();
        let mut left_out = Vec::new();
        let width = |columns: &[usize]| -> usize {
            columns
                .iter()
                .map(|&column| self.width_of(column) + GAP)
                .sum::<usize>()
                .saturating_sub(GAP)
        };
        for &name in self.expendable {
            if room.is_none_or(|room| width(&columns) <= room) {
                break;
            }
            let found = columns.iter().position(|&column| self.headings[column] == name);
            if let Some(found) = found {
                columns.remove(found);
                left_out.push(name);
            }
        }
        (columns, left_out)
    }

    fn width_of(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column));
        cells.chain([&self.headings[column]]).map(|cell| cell.chars().count()).max().unwrap_or(0)
    }

    /// The lines of the table in as much room as there is.
    fn lines(&self, room: Option<usize>, paint: Paint) -> Vec<String> {
        let (columns, left_out) = self.fitting(room);
        let cells = |row: &[String]| -> Vec<String> {
            columns.iter().map(|&column| row.get(column).cloned().unwrap_or_default()).collect()
        };
        let mut table = comfy_table::Table::new();
        table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
        table.set_header(cells(&self.headings));
        for (index, column) in table.column_iter_mut().enumerate() {
            column.set_padding((0, GAP as u16));
            column.set_cell_alignment(match index {
                0 => CellAlignment::Left,
                _ => CellAlignment::Right,
            });
        }
        for row in &self.rows {
            table.add_row(cells(row));
        }
        let mut lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
        if paint == Paint::Colours {
            self.paint(&mut lines, &columns);
        }
        if !left_out.is_empty() {
            lines.push(format!("not shown, for lack of room: {}", left_out.join(", ")));
        }
        lines
    }

    /// Loss is red, and what is unknown is faint.
    fn paint(&self, lines: &mut [String], columns: &[usize]) {
        for (line, row) in lines.iter_mut().skip(1).zip(&self.rows) {
            let mut painted = String::new();
            let mut letters = line.chars();
            for &column in columns {
                let field: String = letters.by_ref().take(self.width_of(column) + GAP).collect();
                let cell = row.get(column).map_or("", String::as_str);
                let style = match self.headings[column].as_str() {
                    _ if cell == UNKNOWN => Some("2"),
                    "lost" if cell != "0" => Some("31"),
                    _ => None,
                };
                painted += &style
                    .map_or(field.clone(), |style| format!("\u{1b}[{style}m{field}\u{1b}[0m"));
            }
            *line = painted;
        }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in self.lines(columns(), Paint::of_terminal()) {
            writeln!(formatter, "{line}")?;
        }
        Ok(())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Paint {
    Colours,
    Plain,
}

impl Paint {
    /// Colours on a terminal only, and not against the user's will (<https://no-color.org>).
    fn of_terminal() -> Self {
        let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        match std::io::stdout().is_terminal() && !is_set("NO_COLOR") && !is_dumb {
            true => Self::Colours,
            false => Self::Plain,
        }
    }
}

/// How wide the terminal is, or what `COLUMNS` says; without either there is no limit.
fn columns() -> Option<usize> {
    const LEAST: usize = 40;
    let asked = std::env::var("COLUMNS").ok().and_then(|text| text.parse::<usize>().ok());
    let of_terminal = || {
        let size = std::io::stdout().is_terminal().then(terminal_size::terminal_size).flatten()?;
        Some(usize::from(size.0.0))
    };
    asked.or_else(of_terminal).map(|columns| columns.max(LEAST))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(&["scope", "packets", "lost", "p50", "max"]);
        table.row(["all", "1 234", "0", "17.61 ms", "115.1 ms"].map(str::to_owned).to_vec());
        table.row(["b", "7", "2 (28.57 %)", "–", "–"].map(str::to_owned).to_vec());
        table.expending(&["max", "p50"])
    }

    #[test]
    fn all_columns_are_shown_where_there_is_room() {
        let expected = [
            "scope  packets         lost       p50       max",
            "all      1 234            0  17.61 ms  115.1 ms",
            "b            7  2 (28.57 %)         –         –",
        ];
        assert_eq!(table().lines(None, Paint::Plain), expected);
        assert_eq!(table().lines(Some(47), Paint::Plain), expected);
    }

    #[test]
    fn columns_are_left_out_in_order_and_named() {
        let expected = [
            "scope  packets         lost       p50",
            "all      1 234            0  17.61 ms",
            "b            7  2 (28.57 %)         –",
            "not shown, for lack of room: max",
        ];
        assert_eq!(table().lines(Some(46), Paint::Plain), expected);
        let narrow = table().lines(Some(10), Paint::Plain);
        assert_eq!(narrow[3], "not shown, for lack of room: max, p50");
        assert_eq!(narrow[0], "scope  packets         lost");
    }

    #[test]
    fn colours_change_no_letter() {
        let plain = table().lines(None, Paint::Plain);
        let painted = table().lines(None, Paint::Colours);
        assert!(painted[2].contains("\u{1b}[31m") && !painted[1].contains("\u{1b}[31m"));
        for (plain, painted) in plain.iter().zip(painted) {
            let bare = ["\u{1b}[31m", "\u{1b}[2m", "\u{1b}[0m"]
                .iter()
                .fold(painted, |line, code| line.replace(code, ""));
            assert_eq!(bare.trim_end(), plain);
        }
    }
}

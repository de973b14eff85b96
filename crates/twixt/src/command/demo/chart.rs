//! Bars that fit a terminal.

/// One row: what it is about, how long its bar is, and what is written behind it.
pub(super) struct Row {
    pub(super) label: String,
    /// `None` where nothing is known.
    pub(super) value: Option<f64>,
    pub(super) cells: Vec<String>,
}

/// Characters of the longest bar.
const WIDTH: usize = 32;
/// Bars grow by eighths of a character.
const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

/// Draws rows below each other; the largest value has the longest bar. `headings` are those of
/// the label, the bar and the cells.
pub(super) fn draw(headings: &[&str], rows: &[Row]) -> String {
    let largest = rows.iter().filter_map(|row| row.value).fold(0.0, f64::max);
    let lines = rows.iter().map(|row| {
        let bar = row.value.map_or_else(|| "?".to_owned(), |value| bar(value, largest));
        [row.label.clone(), bar].into_iter().chain(row.cells.iter().cloned()).collect()
    });
    let headings = headings.iter().map(|&heading| heading.to_owned()).collect();
    let lines: Vec<Vec<String>> = std::iter::once(headings).chain(lines).collect();
    let widths = widths(&lines);
    lines.iter().map(|line| aligned(line, &widths) + "\n").collect()
}

/// A bar in proportion. What is not nothing is not shown as nothing.
fn bar(value: f64, largest: f64) -> String {
    if largest <= 0.0 || value <= 0.0 {
        return String::new();
    }
    let total = WIDTH * EIGHTHS.len();
    let eighths = ((value / largest * total as f64).round() as usize).clamp(1, total);
    "█".repeat(eighths / EIGHTHS.len()) + EIGHTHS[eighths % EIGHTHS.len()]
}

fn widths(lines: &[Vec<String>]) -> Vec<usize> {
    let columns = lines.iter().map(Vec::len).max().unwrap_or(0);
    let cells = |column: usize| lines.iter().filter_map(move |line| line.get(column));
    (0..columns)
        .map(|column| cells(column).map(|cell| cell.chars().count()).max().unwrap_or(0))
        .collect()
}

/// Label to the right, bar to the left, cells to the right.
fn aligned(line: &[String], widths: &[usize]) -> String {
    let columns = line.iter().zip(widths).enumerate();
    let padded = columns.map(|(column, (cell, &width))| match column {
        1 => format!("{cell:<width$}"),
        _ => format!("{cell:>width$}"),
    });
    padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(value: f64, largest: f64, expected: &str) {
        assert_eq!(bar(value, largest), expected, "{value} of {largest}");
    }

    #[test]
    fn bars_are_in_proportion() {
        check(10.0, 10.0, &"█".repeat(WIDTH));
        check(5.0, 10.0, &"█".repeat(WIDTH / 2));
        check(1.0, WIDTH as f64, "█");
        check(1.5, WIDTH as f64, "█▌");
        check(0.125, WIDTH as f64, "▏");
    }

    #[test]
    fn bars_never_lie() {
        check(0.0, 10.0, "");
        check(-3.0, 10.0, "");
        check(0.000_001, 10.0, "▏");
        check(7.0, 0.0, "");
        check(f64::NAN, 10.0, "▏");
        // Rounding does not lead beyond the width.
        check(10.000_001, 10.0, &"█".repeat(WIDTH));
    }

    #[test]
    fn columns_line_up() {
        let row = |label: &str, value, cell: &str| Row {
            label: label.to_owned(),
            value,
            cells: vec![cell.to_owned()],
        };
        let drawn = draw(
            &["time", "delay", "lost"],
            &[row("0.9 s", Some(1.0), "7"), row("1 s", Some(32.0), "12 %"), row("2 s", None, "–")],
        );
        let expected = format!(
            " time  delay{0}  lost\n0.9 s  █{1}     7\n  1 s  {2}  12 %\n  2 s  ?{1}     –\n",
            " ".repeat(WIDTH - 5),
            " ".repeat(WIDTH - 1),
            "█".repeat(WIDTH)
        );
        assert_eq!(drawn, expected);
    }
}
